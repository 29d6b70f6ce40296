/* SPDX-License-Identifier: Apache-2.0 */
/* Data types, buffers and tensors.
 *
 * A tensor is a data type, a shape and a reference to a buffer; it is immutable in dtype and shape. Tensors and buffers
 * are counted: `_ref` adds a holder, `_unref` removes one, from any thread. The elements of a tensor may be written only
 * while its maker is the only holder. Since 0.1 */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include <tenon/status.h>

TN_BEGIN_DECLS

/* X(NAME, number, bytes an element, "name"). Numbers and names equal TensorFlow's. int4, uint4, int2 and uint2 take one
 * byte an element; a string element is a tn_string; resource and variant elements are a tn_handle pointer. */
#define TN_DTYPE_MAP(X)                    \
  X(FLOAT, 1, 4, "float32")                \
  X(DOUBLE, 2, 8, "float64")               \
  X(INT32, 3, 4, "int32")                  \
  X(UINT8, 4, 1, "uint8")                  \
  X(INT16, 5, 2, "int16")                  \
  X(INT8, 6, 1, "int8")                    \
  X(STRING, 7, 24, "string")               \
  X(COMPLEX64, 8, 8, "complex64")          \
  X(INT64, 9, 8, "int64")                  \
  X(BOOL, 10, 1, "bool")                   \
  X(QINT8, 11, 1, "qint8")                 \
  X(QUINT8, 12, 1, "quint8")               \
  X(QINT32, 13, 4, "qint32")               \
  X(BFLOAT16, 14, 2, "bfloat16")           \
  X(QINT16, 15, 2, "qint16")               \
  X(QUINT16, 16, 2, "quint16")             \
  X(UINT16, 17, 2, "uint16")               \
  X(COMPLEX128, 18, 16, "complex128")      \
  X(HALF, 19, 2, "half")                   \
  X(RESOURCE, 20, 8, "resource")           \
  X(VARIANT, 21, 8, "variant")             \
  X(UINT32, 22, 4, "uint32")               \
  X(UINT64, 23, 8, "uint64")               \
  X(FLOAT8_E5M2, 24, 1, "float8_e5m2")     \
  X(FLOAT8_E4M3FN, 25, 1, "float8_e4m3fn") \
  X(FLOAT8_E4M3FNUZ, 26, 1, "float8_e4m3fnuz")       \
  X(FLOAT8_E4M3B11FNUZ, 27, 1, "float8_e4m3b11fnuz") \
  X(FLOAT8_E5M2FNUZ, 28, 1, "float8_e5m2fnuz")       \
  X(INT4, 29, 1, "int4")                   \
  X(UINT4, 30, 1, "uint4")                 \
  X(INT2, 31, 1, "int2")                   \
  X(UINT2, 32, 1, "uint2")

enum {
  TN_DTYPE_INVALID = 0,
#define TN__DTYPE_ENUM(name, number, bytes, text) TN_##name = number,
  TN_DTYPE_MAP(TN__DTYPE_ENUM)
#undef TN__DTYPE_ENUM
  TN_DTYPE_REF = 100 /* added to a type in the signature of an op that passes a variable by reference */
};

/* Name of a type, as "float32" ("float32_ref" for a reference type); "invalid" for a number that is none. Static text.
 * Any thread. Since 0.1 */
TN_API const char *tn_dtype_name(tn_dtype dtype);

/* Type of a name; also takes the aliases "float", "double", "float16" and protobuf's "DT_FLOAT" form.
 * TN_DTYPE_INVALID for any other. Any thread. Since 0.1 */
TN_API tn_dtype tn_dtype_from_name(const char *name);

/* Bytes of one element in memory, 0 for a number that is no type. Any thread. Since 0.1 */
TN_API size_t tn_dtype_size(tn_dtype dtype);

/* Elements and bytes of a shape; both checked against overflow and against PTRDIFF_MAX.
 * dims  rank numbers, none negative; may be NULL when rank is 0.
 * Returns TN_INVALID_ARGUMENT naming the dimension. Any thread. Since 0.1 */
TN_API tn_status tn_shape_elements(const int64_t *dims, int32_t rank, int64_t *elements, tn_error *err);
TN_API tn_status tn_shape_bytes(tn_dtype dtype, const int64_t *dims, int32_t rank, size_t *bytes, tn_error *err);

/* ---- strings ---- */

/* One string element: 24 bytes in TensorFlow's TF_TString layout (little-endian). The two low bits of the first byte say
 * which form it has: 0 small (the length times 4 is the first byte, the text follows, up to 22 bytes and a NUL), 1 large
 * (size_t length times 4 plus 1, size_t capacity, pointer owned through the library's allocator), 2 offset (uint32 length
 * times 4 plus 2, uint32 offset from the element's own address, uint32 count), 3 view (size_t length times 4 plus 3,
 * pointer borrowed). All bytes zero is the empty string. */
struct tn_string {
  union {
    uint8_t small[24];
    struct { size_t size; size_t capacity; char *data; } large;
    struct { uint32_t size; uint32_t offset; uint32_t count; } offset;
    struct { size_t size; const char *data; } view;
  } u;
};

/* The text of an element: pointer and length; not ended by a NUL in general. Borrowed from the element. Since 0.1 */
TN_API const char *tn_string_data(const tn_string *s, size_t *length);

/* Makes the element own a copy of data[length]; what it held before is freed (the element must be valid, all-zero is).
 * Returns TN_RESOURCE_EXHAUSTED and leaves the element as it was. Since 0.1 */
TN_API tn_status tn_string_set(tn_string *s, const void *data, size_t length, tn_error *err);

/* Frees what the element owns and makes it empty. Since 0.1 */
TN_API void tn_string_clear(tn_string *s);

/* ---- handles ---- */

/* An element of dtype resource or variant is a pointer to an object whose first member is this, or NULL. The library
 * counts holders through it; copying a tensor adds one a handle. */
struct tn_handle {
  const struct tn_handle_class *cls;
};
typedef struct tn_handle_class {
  size_t struct_size;
  const char *type_name;         /* for messages */
  void (*ref)(tn_handle *self);  /* any thread */
  void (*unref)(tn_handle *self);
} tn_handle_class;

/* ---- buffers ---- */

enum {
  TN_MEMORY_HOST = 0,    /* address is valid in this process */
  TN_MEMORY_PINNED = 1,  /* host memory that a device reads directly */
  TN_MEMORY_DEVICE = 2,  /* `handle` belongs to a device; host access through map or read */
  TN_MEMORY_SHARED = 3   /* one address for host and device */
};
enum {
  TN_BUFFER_OWNED = 0,     /* the holders may write while there is one */
  TN_BUFFER_IMMUTABLE = 1, /* never written: constants, mapped files */
  TN_BUFFER_FOREIGN = 2    /* lent by the program: never written, copied when stored in state */
};

/* What a buffer is made of. Zero every field that is not used. */
struct tn_buffer_desc {
  size_t struct_size;
  int32_t memory;        /* TN_MEMORY_... */
  int32_t ownership;     /* TN_BUFFER_... */
  const char *device;    /* full device name, copied; NULL = the host CPU */
  void *data;            /* host address, NULL when not host memory */
  void *handle;          /* the device's own handle, else NULL */
  size_t bytes;
  void *ready_event;     /* the device's event after which the content is valid, else NULL */
  /* Makes device memory visible to the host: *address valid until unmap. NULL when the memory has a host address.
   * Any thread, calls for one buffer are serialised by the library. */
  tn_status (*map)(void *user, tn_buffer *buffer, void **address, tn_error *err);
  void (*unmap)(void *user, tn_buffer *buffer, void *address);
  tn_release_fn release; /* called once when the last holder is gone; NULL = nothing to do */
  void *user;            /* first argument of map, unmap and release */
  void *holder;          /* the plugin that made it (from its host's `self`), kept loaded; NULL in a program */
};

/* Makes a buffer with one holder. `desc` is copied. On failure release is not called: the memory stays the caller's.
 * Returns TN_INVALID_ARGUMENT, TN_RESOURCE_EXHAUSTED. Any thread. Since 0.1 */
TN_API tn_status tn_buffer_create(const tn_buffer_desc *desc, tn_buffer **out, tn_error *err);
TN_API tn_buffer *tn_buffer_ref(tn_buffer *buffer); /* returns its argument; NULL allowed */
TN_API void tn_buffer_unref(tn_buffer *buffer);     /* NULL allowed */

/* Reads the description; pointers are borrowed from the buffer. Any thread. Since 0.1 */
TN_API const tn_buffer_desc *tn_buffer_describe(const tn_buffer *buffer);

/* ---- tensors ---- */

/* Makes a tensor with memory of its own, aligned to 64 bytes: strings are empty, handles NULL, the rest is not set.
 * dims   rank numbers, copied; rank 0 is a scalar, at most TN_MAX_RANK.
 * Returns TN_INVALID_ARGUMENT (dtype, rank, dims), TN_RESOURCE_EXHAUSTED. One holder: the caller. Any thread. Since 0.1 */
TN_API tn_status tn_tensor_create(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err);

/* The same with the elements copied from data[bytes]; bytes must fit the shape exactly. Not for strings and handles.
 * Since 0.1 */
TN_API tn_status tn_tensor_from_data(tn_dtype dtype, const int64_t *dims, int32_t rank, const void *data, size_t bytes,
                                     tn_tensor **out, tn_error *err);

/* A tensor over the caller's memory, without a copy (TN_BUFFER_FOREIGN). data must be aligned for the type.
 * release  called once when nobody needs the memory any more; NULL: the caller keeps it alive longer than the tensor.
 * On error release is not called. Not for handles; string elements stay the caller's. Since 0.1 */
TN_API tn_status tn_tensor_wrap(tn_dtype dtype, const int64_t *dims, int32_t rank, void *data, size_t bytes,
                                tn_release_fn release, void *user, tn_tensor **out, tn_error *err);

/* A tensor over a part of a buffer, from byte `offset`; adds a holder to the buffer. Since 0.1 */
TN_API tn_status tn_tensor_from_buffer(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_buffer *buffer,
                                       size_t offset, tn_tensor **out, tn_error *err);

/* A scalar or vector of strings from texts that are copied. lengths NULL: the texts end with a NUL. Since 0.1 */
TN_API tn_status tn_tensor_from_strings(const int64_t *dims, int32_t rank, const char *const *texts,
                                        const size_t *lengths, tn_tensor **out, tn_error *err);

/* A view of the same elements with another shape of equal size; adds a holder to the buffer. Since 0.1 */
TN_API tn_status tn_tensor_reshape(tn_tensor *tensor, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err);

/* A copy with memory of its own (strings and handles too). Device memory is read. Since 0.1 */
TN_API tn_status tn_tensor_copy(const tn_tensor *tensor, tn_tensor **out, tn_error *err);

TN_API tn_tensor *tn_tensor_ref(tn_tensor *tensor); /* returns its argument; NULL allowed */
TN_API void tn_tensor_unref(tn_tensor *tensor);     /* NULL allowed */

TN_API tn_dtype tn_tensor_dtype(const tn_tensor *tensor);
TN_API int32_t tn_tensor_rank(const tn_tensor *tensor);
TN_API const int64_t *tn_tensor_dims(const tn_tensor *tensor); /* rank numbers, borrowed */
TN_API int64_t tn_tensor_elements(const tn_tensor *tensor);
TN_API size_t tn_tensor_bytes(const tn_tensor *tensor); /* elements times element size */

/* Address of the first element, NULL when the memory is not the host's. Write only as the tensor's only holder. */
TN_API void *tn_tensor_data(const tn_tensor *tensor);
TN_API tn_buffer *tn_tensor_buffer(const tn_tensor *tensor); /* borrowed */

/* True when this tensor is the only holder of memory that it may write. */
TN_API tn_bool tn_tensor_is_exclusive(const tn_tensor *tensor);

/* Copies all elements to `to`, from any kind of memory; bytes must equal tn_tensor_bytes. Not for strings and handles.
 * Waits for the content to be ready. Since 0.1 */
TN_API tn_status tn_tensor_read(const tn_tensor *tensor, void *to, size_t bytes, tn_error *err);

/* Element i of a string tensor, borrowed; TN_INVALID_ARGUMENT for another dtype, TN_OUT_OF_RANGE for i. Setting one wants
 * an exclusive tensor, else TN_FAILED_PRECONDITION. Since 0.1 */
TN_API tn_status tn_tensor_get_string(const tn_tensor *tensor, int64_t i, const char **text, size_t *length, tn_error *err);
TN_API tn_status tn_tensor_set_string(tn_tensor *tensor, int64_t i, const void *text, size_t length, tn_error *err);

#ifndef TN_PLUGIN
/* ---- .npy files (NumPy format 1.0 to 3.0) ---- */

/* Reads one array. Fortran order is turned into C order, big-endian into little-endian; bfloat16 is read from its two-byte
 * void type '<V2' only when `as` asks for it. Object arrays are refused, nothing is ever unpickled.
 * as    the dtype wanted where the file's type leaves a choice (formats.md of the package), TN_DTYPE_INVALID = what
 *       the file says.
 * Returns TN_NOT_FOUND, TN_PERMISSION_DENIED, TN_INVALID_ARGUMENT with path and byte offset, TN_DATA_LOSS when cut short,
 *       TN_UNIMPLEMENTED (objects, records, dates), TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_npy_load(const char *path, tn_dtype as, tn_tensor **out, tn_error *err);

/* The same from memory; `name` is used in messages. Since 0.1 */
TN_API tn_status tn_npy_parse(const void *bytes, size_t size, const char *name, tn_dtype as, tn_tensor **out, tn_error *err);

/* Writes format 1.0 to a temporary file beside `path` and renames it, so that nothing half written is left behind; a
 * terminal, pipe or device is written directly. A type without a NumPy type is written as integers (quantised, int4) or as
 * plain bits ('<V2' for bfloat16); strings as fixed-width bytes 'S' when no element holds a zero byte at its end, else
 * TN_UNIMPLEMENTED. Since 0.1 */
TN_API tn_status tn_npy_save(const tn_tensor *tensor, const char *path, tn_error *err);

/* ---- .npz files: several arrays under keys, an .npy file each, in a zip archive ---- */

/* An archive that is read. For one thread at a time. */
typedef struct tn_npz tn_npz;

/* Opens an archive and reads its list of keys. The first call of this, the next, or tn_npz_save loads libzip.
 * Returns TN_NOT_FOUND, TN_PERMISSION_DENIED, TN_INVALID_ARGUMENT (no archive, a key that is there twice), TN_DATA_LOSS
 *       when cut short or damaged, TN_RESOURCE_EXHAUSTED, TN_UNAVAILABLE without libzip, TN_UNIMPLEMENTED in a build
 *       without it. Any thread. Since 0.1 */
TN_API tn_status tn_npz_open(const char *path, tn_npz **out, tn_error *err);

/* The same of bytes in memory, which must stay as they are until the archive is closed; `name` is used in messages.
 * Since 0.1 */
TN_API tn_status tn_npz_open_bytes(const void *bytes, size_t size, const char *name, tn_npz **out, tn_error *err);

/* Tensors that were loaded stay. NULL allowed. Since 0.1 */
TN_API void tn_npz_close(tn_npz *npz);

/* How many arrays there are, and the key of one: its name in the archive without ".npy", in UTF-8; NULL for an i past
 * the end. Borrowed until the archive is closed. Since 0.1 */
TN_API size_t tn_npz_count(const tn_npz *npz);
TN_API const char *tn_npz_key(const tn_npz *npz, size_t i);

/* How many bytes the arrays that one call loads may have together. What is stored is bounded by the file anyhow, but a
 * compressed array may be a thousand times larger than the file. At first it is 1 GiB plus 100 times the size of the
 * archive; UINT64_MAX lifts it. Since 0.1 */
TN_API void tn_npz_set_budget(tn_npz *npz, uint64_t bytes);

/* Reads the array of a key, which may have ".npy" behind it. Memory is taken for the array once, after its size has
 * been compared with the archive's and with the budget; the checksum is compared.
 * as    as for tn_npy_load
 * Returns TN_NOT_FOUND with the keys that there are; TN_RESOURCE_EXHAUSTED above the budget or without memory;
 *       TN_DATA_LOSS when damaged; TN_UNIMPLEMENTED for an entry that is encrypted or neither stored nor deflated;
 *       what tn_npy_parse returns. Since 0.1 */
TN_API tn_status tn_npz_load(tn_npz *npz, const char *key, tn_dtype as, tn_tensor **out, tn_error *err);

/* Reads all arrays, in the order of tn_npz_key.
 * as    tn_npz_count types, NULL = what the file says
 * out   tn_npz_count places; all NULL on failure. Since 0.1 */
TN_API tn_status tn_npz_load_all(tn_npz *npz, const tn_dtype *as, tn_tensor **out, tn_error *err);

enum {
  TN_NPZ_DEFLATE = 1u << 0 /* compressed, as by numpy.savez_compressed; else stored */
};

/* Writes n tensors (at least one), each under the key of its number, to a temporary file beside `path` and renames it;
 * what was there before is replaced as a whole. Equal tensors give equal bytes. Types are written as by tn_npy_save.
 * keys   UTF-8, each once; ".npy" is put behind
 * flags  TN_NPZ_...
 * Returns TN_INVALID_ARGUMENT (keys; a pipe or terminal, which an archive cannot be written to), TN_UNIMPLEMENTED for a
 *       dtype that cannot be written and in a build without libzip, TN_PERMISSION_DENIED, TN_NOT_FOUND for the folder,
 *       TN_RESOURCE_EXHAUSTED, TN_UNAVAILABLE without libzip. Any thread. Since 0.1 */
TN_API tn_status tn_npz_save(const char *const *keys, tn_tensor *const *tensors, size_t n, uint32_t flags,
                             const char *path, tn_error *err);
#endif

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
