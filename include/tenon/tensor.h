/* SPDX-License-Identifier: Apache-2.0 */
/* Data types, buffers and tensors.
 *
 * A tensor is a data type, a shape and a reference to a buffer; its dtype and shape never change.
 * Tensors and buffers are reference-counted: `_ref` adds a holder, `_unref` removes one, from any
 * thread. The elements of a tensor may be written only while its creator is the only holder.
 * Since 0.1 */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include <tenon/status.h>

TN_BEGIN_DECLS

/* X(NAME, number, bytes per element, "name"). Numbers and names equal TensorFlow's. int4, uint4,
 * int2 and uint2 take one byte per element; a string element is a tn_string; resource and variant
 * elements are tn_handle pointers. */
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

/* Name of a type, for example "float32" ("float32_ref" for a reference type); "invalid" for a
 * number that is not a type. Static text. Any thread. Since 0.1 */
TN_API const char *tn_dtype_name(tn_dtype dtype);

/* Type of a name. Also accepts the aliases "float", "double", "float16" and protobuf's "DT_FLOAT"
 * form. TN_DTYPE_INVALID for any other name. Any thread. Since 0.1 */
TN_API tn_dtype tn_dtype_from_name(const char *name);

/* Bytes of one element in memory, 0 for a number that is not a type. Any thread. Since 0.1 */
TN_API size_t tn_dtype_size(tn_dtype dtype);

/* Elements and bytes of a shape; both are checked against overflow and against PTRDIFF_MAX.
 * dims  rank numbers, none negative; may be NULL if rank is 0.
 * Returns TN_INVALID_ARGUMENT naming the dimension. Any thread. Since 0.1 */
TN_API tn_status tn_shape_elements(const int64_t *dims, int32_t rank, int64_t *elements, tn_error *err);
TN_API tn_status tn_shape_bytes(tn_dtype dtype, const int64_t *dims, int32_t rank, size_t *bytes, tn_error *err);

/* ---- strings ---- */

/* One string element: 24 bytes in TensorFlow's TF_TString layout (little-endian). The two low bits
 * of the first byte give the form: 0 small (the first byte is the length times 4, followed by the
 * text, up to 22 bytes, and a NUL), 1 large (size_t length times 4 plus 1, size_t capacity, pointer
 * owned through the library's allocator), 2 offset (uint32 length times 4 plus 2, uint32 offset
 * from the element's own address, uint32 count), 3 view (size_t length times 4 plus 3, pointer
 * borrowed). All bytes zero is the empty string. */
struct tn_string {
  union {
    uint8_t small[24];
    struct { size_t size; size_t capacity; char *data; } large;
    struct { uint32_t size; uint32_t offset; uint32_t count; } offset;
    struct { size_t size; const char *data; } view;
  } u;
};

/* The text of an element: pointer and length; in general not NUL-terminated. Borrowed from the
 * element. Since 0.1 */
TN_API const char *tn_string_data(const tn_string *s, size_t *length);

/* Makes the element own a copy of data[length]. The old text is freed; the element must be valid
 * (all zero is).
 * Returns TN_RESOURCE_EXHAUSTED and leaves the element unchanged. Since 0.1 */
TN_API tn_status tn_string_set(tn_string *s, const void *data, size_t length, tn_error *err);

/* Frees the text that the element owns and makes the element empty. Since 0.1 */
TN_API void tn_string_clear(tn_string *s);

/* ---- handles ---- */

/* An element of dtype resource or variant is NULL or a pointer to an object whose first member is a
 * tn_handle. The library counts the object's holders through it; copying a tensor adds one holder
 * per handle. */
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
  TN_MEMORY_HOST = 0,    /* the address is valid in this process */
  TN_MEMORY_PINNED = 1,  /* host memory that a device reads directly */
  TN_MEMORY_DEVICE = 2,  /* `handle` belongs to a device; the host uses map or read */
  TN_MEMORY_SHARED = 3   /* one address for host and device */
};
enum {
  TN_BUFFER_OWNED = 0,     /* the holder may write while it is the only one */
  TN_BUFFER_IMMUTABLE = 1, /* never written: constants, mapped files */
  TN_BUFFER_FOREIGN = 2    /* lent by the program: never written, copied when stored in state */
};

/* Description of a buffer. Set unused fields to zero. */
struct tn_buffer_desc {
  size_t struct_size;
  int32_t memory;        /* TN_MEMORY_... */
  int32_t ownership;     /* TN_BUFFER_... */
  const char *device;    /* full device name, copied; NULL = the host CPU */
  void *data;            /* host address, NULL if not host memory */
  void *handle;          /* the device's own handle, else NULL */
  size_t bytes;
  void *ready_event;     /* device event after which the content is valid, else NULL */
  /* Makes device memory visible to the host: *address is valid until unmap. NULL if the memory has
   * a host address. Any thread; the library serialises calls for one buffer. */
  tn_status (*map)(void *user, tn_buffer *buffer, void **address, tn_error *err);
  void (*unmap)(void *user, tn_buffer *buffer, void *address);
  tn_release_fn release; /* called once, after the last holder's unref; NULL = nothing to do */
  void *user;            /* first argument of map, unmap and release */
  void *holder;          /* the plugin that made it (its host's `self`), kept loaded; NULL in a program */
};

/* Creates a buffer with one holder. `desc` is copied. On failure release is not called: the memory
 * stays the caller's.
 * Returns TN_INVALID_ARGUMENT, TN_RESOURCE_EXHAUSTED. Any thread. Since 0.1 */
TN_API tn_status tn_buffer_create(const tn_buffer_desc *desc, tn_buffer **out, tn_error *err);
TN_API tn_buffer *tn_buffer_ref(tn_buffer *buffer); /* returns its argument; NULL allowed */
TN_API void tn_buffer_unref(tn_buffer *buffer);     /* NULL allowed */

/* The description of a buffer; pointers are borrowed from the buffer. Any thread. Since 0.1 */
TN_API const tn_buffer_desc *tn_buffer_describe(const tn_buffer *buffer);

/* ---- tensors ---- */

/* Creates a tensor with memory of its own, aligned to 64 bytes. Strings are empty, handles NULL,
 * other elements uninitialised.
 * dims   rank numbers, copied. Rank 0 is a scalar; the maximum is TN_MAX_RANK.
 * Returns TN_INVALID_ARGUMENT (dtype, rank, dims), TN_RESOURCE_EXHAUSTED. The caller is the one
 *         holder. Any thread. Since 0.1 */
TN_API tn_status tn_tensor_create(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err);

/* The same with the elements copied from data[bytes]; bytes must match the shape exactly. Not for
 * strings and handles. Since 0.1 */
TN_API tn_status tn_tensor_from_data(tn_dtype dtype, const int64_t *dims, int32_t rank, const void *data, size_t bytes,
                                     tn_tensor **out, tn_error *err);

/* Creates a tensor over the caller's memory, without a copy (TN_BUFFER_FOREIGN). data must be
 * aligned for the type.
 * release  called once when the memory is no longer used. If NULL, the caller keeps the memory
 *          valid for longer than the tensor.
 * On error release is not called. Not for handles; string elements stay the caller's. Since 0.1 */
TN_API tn_status tn_tensor_wrap(tn_dtype dtype, const int64_t *dims, int32_t rank, void *data, size_t bytes,
                                tn_release_fn release, void *user, tn_tensor **out, tn_error *err);

/* Creates a tensor over part of a buffer, from byte `offset`; adds a holder to the buffer.
 * Since 0.1 */
TN_API tn_status tn_tensor_from_buffer(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_buffer *buffer,
                                       size_t offset, tn_tensor **out, tn_error *err);

/* Creates a tensor of strings; the texts are copied. If lengths is NULL, the texts are
 * NUL-terminated. Since 0.1 */
TN_API tn_status tn_tensor_from_strings(const int64_t *dims, int32_t rank, const char *const *texts,
                                        const size_t *lengths, tn_tensor **out, tn_error *err);

/* A view of the same elements with another shape of equal size; adds a holder to the buffer.
 * Since 0.1 */
TN_API tn_status tn_tensor_reshape(tn_tensor *tensor, const int64_t *dims, int32_t rank, tn_tensor **out,
                                   tn_error *err);

/* A copy with memory of its own (strings and handles too). Device memory is read. Since 0.1 */
TN_API tn_status tn_tensor_copy(const tn_tensor *tensor, tn_tensor **out, tn_error *err);

TN_API tn_tensor *tn_tensor_ref(tn_tensor *tensor); /* returns its argument; NULL allowed */
TN_API void tn_tensor_unref(tn_tensor *tensor);     /* NULL allowed */

TN_API tn_dtype tn_tensor_dtype(const tn_tensor *tensor);
TN_API int32_t tn_tensor_rank(const tn_tensor *tensor);
TN_API const int64_t *tn_tensor_dims(const tn_tensor *tensor); /* rank numbers, borrowed */
TN_API int64_t tn_tensor_elements(const tn_tensor *tensor);
TN_API size_t tn_tensor_bytes(const tn_tensor *tensor); /* elements times element size */

/* Address of the first element, NULL if the memory is not the host's. Write only if the tensor has
 * no other holder. */
TN_API void *tn_tensor_data(const tn_tensor *tensor);
TN_API tn_buffer *tn_tensor_buffer(const tn_tensor *tensor); /* borrowed */

/* True if this tensor is the only holder of its memory and may write it. */
TN_API tn_bool tn_tensor_is_exclusive(const tn_tensor *tensor);

/* Copies all elements to `to`, from any kind of memory; bytes must equal tn_tensor_bytes. Not for
 * strings and handles. Waits until the content is ready. Since 0.1 */
TN_API tn_status tn_tensor_read(const tn_tensor *tensor, void *to, size_t bytes, tn_error *err);

/* Element i of a string tensor, borrowed. Returns TN_INVALID_ARGUMENT for another dtype,
 * TN_OUT_OF_RANGE for i. Setting an element requires an exclusive tensor, otherwise
 * TN_FAILED_PRECONDITION. Since 0.1 */
TN_API tn_status tn_tensor_get_string(const tn_tensor *tensor, int64_t i, const char **text, size_t *length,
                                      tn_error *err);
TN_API tn_status tn_tensor_set_string(tn_tensor *tensor, int64_t i, const void *text, size_t length, tn_error *err);

#ifndef TN_PLUGIN
/* ---- .npy files (NumPy format 1.0 to 3.0) ---- */

/* Reads one array. Fortran order is converted to C order, big-endian to little-endian. bfloat16 is
 * read from its two-byte void type '<V2' only if `as` requests it. Object arrays are rejected;
 * nothing is ever unpickled.
 * as     the dtype to use if the file's type allows several (formats.md of the package),
 *        TN_DTYPE_INVALID = that of the file.
 * Returns TN_NOT_FOUND, TN_PERMISSION_DENIED, TN_INVALID_ARGUMENT with path and byte offset,
 *         TN_DATA_LOSS if truncated, TN_UNIMPLEMENTED (objects, records, dates),
 *         TN_RESOURCE_EXHAUSTED. Since 0.1 */
TN_API tn_status tn_npy_load(const char *path, tn_dtype as, tn_tensor **out, tn_error *err);

/* The same from memory; `name` is used in messages. Since 0.1 */
TN_API tn_status tn_npy_parse(const void *bytes, size_t size, const char *name, tn_dtype as, tn_tensor **out,
                              tn_error *err);

/* Writes format 1.0 to a temporary file next to `path` and renames it, so that no partly written
 * file remains; a terminal, pipe or device is written directly. A type without a NumPy type is
 * written as integers (quantised, int4) or as plain bits ('<V2' for bfloat16). Strings are written
 * as fixed-width bytes 'S'; if an element ends in a zero byte, TN_UNIMPLEMENTED. Since 0.1 */
TN_API tn_status tn_npy_save(const tn_tensor *tensor, const char *path, tn_error *err);

/* ---- .npz files: several arrays under keys, an .npy file each, in a zip archive ---- */

/* An archive open for reading. Only one thread at a time may use it. */
typedef struct tn_npz tn_npz;

/* Opens an archive and reads its list of keys. The first call of this function, tn_npz_open_bytes
 * or tn_npz_save loads libzip.
 * Returns TN_NOT_FOUND, TN_PERMISSION_DENIED, TN_INVALID_ARGUMENT (not an archive, duplicate key),
 *         TN_DATA_LOSS if truncated or damaged, TN_RESOURCE_EXHAUSTED, TN_UNAVAILABLE without
 *         libzip, TN_UNIMPLEMENTED in a build without it. Any thread. Since 0.1 */
TN_API tn_status tn_npz_open(const char *path, tn_npz **out, tn_error *err);

/* The same from bytes in memory, which must stay unchanged until the archive is closed; `name` is
 * used in messages. Since 0.1 */
TN_API tn_status tn_npz_open_bytes(const void *bytes, size_t size, const char *name, tn_npz **out, tn_error *err);

/* Closes an archive. Tensors loaded from it stay valid. NULL allowed. Since 0.1 */
TN_API void tn_npz_close(tn_npz *npz);

/* The number of arrays, and the key of one: its name in the archive without ".npy", in UTF-8; NULL
 * if i is past the end. Borrowed until the archive is closed. Since 0.1 */
TN_API size_t tn_npz_count(const tn_npz *npz);
TN_API const char *tn_npz_key(const tn_npz *npz, size_t i);

/* Sets the maximum total bytes of the arrays that one call loads. Stored arrays cannot exceed the
 * size of the file, but a compressed array may be a thousand times larger. The default is 1 GiB
 * plus 100 times the size of the archive; UINT64_MAX removes the limit. Since 0.1 */
TN_API void tn_npz_set_budget(tn_npz *npz, uint64_t bytes);

/* Reads the array of a key; the key may end in ".npy". Memory for the array is allocated once,
 * after its size was checked against the archive's and the budget. The checksum is verified.
 * as     as for tn_npy_load
 * Returns TN_NOT_FOUND listing the existing keys; TN_RESOURCE_EXHAUSTED above the budget or without
 *         memory; TN_DATA_LOSS if damaged; TN_UNIMPLEMENTED for an entry that is encrypted or
 *         neither stored nor deflated; otherwise as tn_npy_parse. Since 0.1 */
TN_API tn_status tn_npz_load(tn_npz *npz, const char *key, tn_dtype as, tn_tensor **out, tn_error *err);

/* Reads all arrays, in the order of tn_npz_key.
 * as    tn_npz_count types, NULL = those of the file
 * out   room for tn_npz_count tensors; all NULL on failure. Since 0.1 */
TN_API tn_status tn_npz_load_all(tn_npz *npz, const tn_dtype *as, tn_tensor **out, tn_error *err);

enum {
  TN_NPZ_DEFLATE = 1u << 0 /* compressed, as by numpy.savez_compressed; else stored */
};

/* Writes n tensors (at least one), each under its key, to a temporary file next to `path` and
 * renames it; an existing file is replaced as a whole. Equal tensors give equal bytes. Types are
 * written as by tn_npy_save.
 * keys   keys[i] for tensors[i]; UTF-8, unique; ".npy" is appended
 * flags  TN_NPZ_...
 * Returns TN_INVALID_ARGUMENT (keys; a pipe or terminal, to which no archive can be written),
 *         TN_UNIMPLEMENTED for a dtype that cannot be written and in a build without libzip,
 *         TN_PERMISSION_DENIED, TN_NOT_FOUND for the folder, TN_RESOURCE_EXHAUSTED, TN_UNAVAILABLE
 *         without libzip. Any thread. Since 0.1 */
TN_API tn_status tn_npz_save(const char *const *keys, tn_tensor *const *tensors, size_t n, uint32_t flags,
                             const char *path, tn_error *err);
#endif

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
