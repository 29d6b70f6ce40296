/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack import and export of tensors and handles of eager sessions.
 * tests/tensor/check-dlpack.sh compares with NumPy. */
#include <core/tensor/dlpack.h>

#include "conformance/support/eager_kit.h"
#include "conformance/support/oom.h"

static tn_error err;
static const int64_t d23[] = { 2, 3 };

/* ---- tensors lent by other libraries ---- */

/* An array of another library that counts the calls of its deleter. */
typedef struct lent {
  union {
    struct DLManagedTensor plain;
    struct DLManagedTensorVersioned versioned;
  } u;
  int64_t shape[TN_MAX_RANK + 1], strides[TN_MAX_RANK + 1];
  _Alignas(64) char data[256];
  atomic_int deleted;
  atomic_uintptr_t thread;
} lent;

static void delete_plain(struct DLManagedTensor *self)
{
  lent *l = self->manager;
  atomic_store(&l->thread, ts_this_thread());
  atomic_fetch_add(&l->deleted, 1);
}

static void delete_versioned(struct DLManagedTensorVersioned *self)
{
  lent *l = self->manager;
  atomic_store(&l->thread, ts_this_thread());
  atomic_fetch_add(&l->deleted, 1);
}

/* float32 [2, 3] */
static tn__dl_tensor usual(lent *l)
{
  for (int i = 0; i < 6; i++) ((float *)l->data)[i] = (float)i + 1;
  l->shape[0] = 2;
  l->shape[1] = 3;
  l->strides[0] = 3;
  l->strides[1] = 1;
  return (tn__dl_tensor){ l->data, TN__DL_CPU, 0, 2, { TN__DL_FLOAT, 32, 1 }, l->shape, l->strides, 0 };
}

static tn__dl_tensor *lend(lent *l)
{
  memset(l, 0, sizeof *l);
  l->u.plain.manager = l;
  l->u.plain.deleter = delete_plain;
  l->u.plain.tensor = usual(l);
  return &l->u.plain.tensor;
}

static tn__dl_tensor *lend_versioned(lent *l, uint64_t flags)
{
  memset(l, 0, sizeof *l);
  l->u.versioned.version.major = 1;
  l->u.versioned.manager = l;
  l->u.versioned.deleter = delete_versioned;
  l->u.versioned.flags = flags;
  l->u.versioned.tensor = usual(l);
  return &l->u.versioned.tensor;
}

/* ---- import ---- */

static void dlpack__tensors_are_imported_without_a_copy(void)
{
  lent l;
  tn_tensor *t;
  for (int versioned = 0; versioned < 2; versioned++) {
    if (versioned) lend_versioned(&l, 0);
    else lend(&l);
    if (versioned) REQUIRE_OK(tn_tensor_from_dlpack_versioned(&l.u.versioned, &t, &err), &err);
    else REQUIRE_OK(tn_tensor_from_dlpack(&l.u.plain, &t, &err), &err);
    CHECK(tn_tensor_data(t) == l.data);
    CHECK_INT(tn_tensor_dtype(t), TN_FLOAT);
    CHECK_INT(tn_tensor_rank(t), 2);
    CHECK_BYTES(tn_tensor_dims(t), d23, sizeof d23);
    CHECK_INT(tn_buffer_describe(tn_tensor_buffer(t))->ownership, TN_BUFFER_FOREIGN);
    CHECK(!tn_tensor_is_exclusive(t));
    tn_tensor_ref(t);
    tn_tensor_unref(t);
    CHECK_INT(atomic_load(&l.deleted), 0);
    tn_tensor_unref(t);
    CHECK_INT(atomic_load(&l.deleted), 1);
  }
}

static void dlpack__the_deleter_is_optional(void)
{
  lent l;
  tn_tensor *t;
  lend(&l);
  l.u.plain.deleter = NULL;
  REQUIRE_OK(tn_tensor_from_dlpack(&l.u.plain, &t, &err), &err);
  tn_tensor_unref(t);
  lend_versioned(&l, 0);
  l.u.versioned.deleter = NULL;
  REQUIRE_OK(tn_tensor_from_dlpack_versioned(&l.u.versioned, &t, &err), &err);
  tn_tensor_unref(t);
}

/* Irrelevant strides, offsets, pinned memory, no elements. */
static void dlpack__all_forms_of_row_major_are_accepted(void)
{
  static const struct {
    int64_t shape[3], strides[3];
    int32_t ndim, device;
    size_t offset;
    bool no_strides, no_data;
  } cases[] = {
    { { 2, 3 }, { 3, 1 }, 2, TN__DL_CPU, 0, false, false },
    { { 2, 3 }, { 0, 0 }, 2, TN__DL_CPU, 0, true, false },
    { { 2, 3 }, { 3, 1 }, 2, TN__DL_CUDA_HOST, 0, false, false },
    { { 2, 3 }, { 3, 1 }, 2, TN__DL_ROCM_HOST, 8, false, false },
    { { 1, 6 }, { -77, 1 }, 2, TN__DL_CPU, 0, false, false },
    { { 6, 1 }, { 1, 1 << 20 }, 2, TN__DL_CPU, 4, false, false },
    { { 2, 1, 3 }, { 3, 0, 1 }, 3, TN__DL_CPU, 0, false, false },
    { { 1, 1, 1 }, { 9, 8, 7 }, 3, TN__DL_CPU, 20, false, false },
    { { 0 }, { 0 }, 0, TN__DL_CPU, 4, false, false },
    { { 0 }, { 0 }, 0, TN__DL_CPU, 4, true, false },
    { { 2, 0, 3 }, { -1, 50, 2 }, 3, TN__DL_CPU, 0, false, true },
    { { 2, 0, 3 }, { 3, 3, 1 }, 3, TN__DL_CPU, 4, false, false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    lent l;
    tn_tensor *t;
    tn__dl_tensor *d = lend(&l);
    memcpy(l.shape, cases[i].shape, sizeof cases[i].shape);
    memcpy(l.strides, cases[i].strides, sizeof cases[i].strides);
    d->ndim = cases[i].ndim;
    d->device_type = cases[i].device;
    d->byte_offset = cases[i].offset;
    if (cases[i].no_strides) d->strides = NULL;
    if (cases[i].no_strides && d->ndim == 0) d->shape = NULL;
    if (cases[i].no_data) d->data = NULL;
    CHECK_OK(tn_tensor_from_dlpack(&l.u.plain, &t, &err), &err);
    if (t == NULL) continue;
    CHECK_INT(tn_tensor_rank(t), cases[i].ndim);
    if (tn_tensor_elements(t) > 0) CHECK_MSG(tn_tensor_data(t) == l.data + cases[i].offset, "case %zu", i);
    tn_tensor_unref(t);
    CHECK_INT(atomic_load(&l.deleted), 1);
  }
}

/* Rejected: the caller still owns it, and the deleter is not called. */
static void refused(lent *l, bool versioned, tn_status code, const char *const *parts)
{
  tn_tensor *t = (tn_tensor *)l;
  tn_status st = versioned ? tn_tensor_from_dlpack_versioned(&l->u.versioned, &t, &err)
                           : tn_tensor_from_dlpack(&l->u.plain, &t, &err);
  CHECK_STATUS(st, code, &err);
  CHECK_NULL(t);
  for (; *parts != NULL; parts++) CHECK_CONTAINS(tn_error_message(&err), *parts);
  CHECK_INT(atomic_load(&l->deleted), 0);
}
#define REFUSED(l, code, ...) refused((l), false, (code), (const char *const[]){ __VA_ARGS__, NULL })

static void dlpack__errors_name_other_devices(void)
{
  static const struct { int32_t type; const char *name; } devices[] = {
    { 2, "(CUDA)" }, { 4, "(OpenCL)" }, { 7, "(Vulkan)" }, { 8, "(Metal)" }, { 10, "(ROCm)" }, { 13, "(CUDA managed)" },
    { 14, "(oneAPI)" }, { 18, "(Trainium)" }, { 5, "unknown" }, { 0, "none" }, { 19, "unknown" }, { -1, "unknown" },
    { INT32_MIN, "unknown" }, { INT32_MAX, "unknown" } };
  for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
    lent l;
    tn__dl_tensor *d = lend(&l);
    d->device_type = devices[i].type;
    d->device_id = 3;
    REFUSED(&l, TN_UNIMPLEMENTED, devices[i].name, "device 3", "wanted the host's");
  }
}

static void dlpack__errors_name_other_types(void)
{
  static const struct { tn__dl_dtype type; const char *part;
  } types[] = { { { TN__DL_FLOAT, 32, 4 }, "4 lanes" },
                { { TN__DL_FLOAT, 32, 0 }, "0 lanes" },
                { { TN__DL_FLOAT, 128, 1 }, "float (code 2) with 128 bits" },
                { { TN__DL_INT, 1, 1 }, "int (code 0) with 1 bits" },
                { { TN__DL_INT, 24, 1 }, "24 bits" },
                { { 3, 64, 1 }, "opaque handle" },
                { { TN__DL_BOOL, 1, 1 }, "bool" },
                { { 7, 8, 1 }, "float8_e3m4" },
                { { 14, 8, 1 }, "float8_e8m0fnu" },
                { { 15, 6, 1 }, "float6" },
                { { 17, 4, 1 }, "float4_e2m1fn" },
                { { 18, 8, 1 }, "unknown (code 18)" },
                { { 255, 8, 1 }, "code 255" },
                { { TN__DL_COMPLEX, 32, 1 }, "complex" },
                { { TN__DL_BFLOAT, 32, 1 }, "bfloat" },
                { { TN__DL_INT, 4, 1 }, "share bytes" } };
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    lent l;
    lend(&l)->dtype = types[i].type;
    REFUSED(&l, TN_UNIMPLEMENTED, types[i].part);
  }
}

static void dlpack__impossible_shapes_are_rejected(void)
{
  lent l;
  lend(&l)->ndim = -1;
  REFUSED(&l, TN_INVALID_ARGUMENT, "DLPack", "rank -1");
  lend(&l)->ndim = TN_MAX_RANK + 1;
  REFUSED(&l, TN_INVALID_ARGUMENT, "DLPack", "rank 255");
  lend(&l)->ndim = INT32_MAX;
  REFUSED(&l, TN_INVALID_ARGUMENT, "DLPack");
  lend(&l)->shape = NULL;
  REFUSED(&l, TN_INVALID_ARGUMENT, "no dimensions");
  lend(&l);
  l.shape[1] = -3;
  REFUSED(&l, TN_INVALID_ARGUMENT, "dimension 1", "-3");
  lend(&l);
  l.shape[0] = INT64_MAX;
  REFUSED(&l, TN_INVALID_ARGUMENT, "too large");
  lend(&l);
  l.shape[0] = INT64_C(1) << 61; /* the size in bytes overflows */
  l.shape[1] = 1;
  REFUSED(&l, TN_INVALID_ARGUMENT, "too large");
}

static void dlpack__other_layouts_are_rejected(void)
{
  static const struct { int64_t strides[2]; const char *parts[4];
  } cases[] = { { { 1, 2 }, { "dimension 1", "[2,3]", "stride 2", "wanted 1" } },
                { { 4, 1 }, { "dimension 0", "[2,3]", "stride 4", "wanted 3" } },
                { { -3, 1 }, { "dimension 0", "[2,3]", "stride -3", "wanted 3" } },
                { { 3, -1 }, { "dimension 1", "[2,3]", "stride -1", "wanted 1" } },
                { { 0, 1 }, { "dimension 0", "[2,3]", "stride 0", "wanted 3" } },
                { { INT64_MIN, 1 }, { "dimension 0", "[2,3]", "stride -9", "wanted 3" } },
                { { 3, INT64_MAX }, { "dimension 1", "[2,3]", "stride 9", "wanted 1" } } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    lent l;
    lend(&l);
    memcpy(l.strides, cases[i].strides, sizeof cases[i].strides);
    REFUSED(&l, TN_INVALID_ARGUMENT, cases[i].parts[0], cases[i].parts[1], cases[i].parts[2], cases[i].parts[3]);
  }
}

static void dlpack__impossible_addresses_are_rejected(void)
{
  lent l;
  lend(&l)->byte_offset = 2;
  REFUSED(&l, TN_INVALID_ARGUMENT, "not aligned", "float32");
  lend(&l)->data = l.data + 1;
  REFUSED(&l, TN_INVALID_ARGUMENT, "not aligned", "float32");
  lend(&l)->data = NULL;
  REFUSED(&l, TN_INVALID_ARGUMENT, "24 bytes", "without an address");
  lend(&l)->byte_offset = UINT64_MAX;
  REFUSED(&l, TN_INVALID_ARGUMENT, "byte_offset 18446744073709551615", "outside the address space");
  lend(&l)->byte_offset = UINT64_MAX - (uintptr_t)l.data - 8; /* the end wraps around */
  REFUSED(&l, TN_INVALID_ARGUMENT, "outside the address space");
}

static void dlpack__other_major_versions_are_rejected(void)
{
  static const char *const parts[] = { "2.7", "wanted 1", NULL }, *const before[] = { "0.8", NULL };
  lent l;
  tn_tensor *t;
  lend_versioned(&l, 0);
  l.u.versioned.version.major = 2;
  l.u.versioned.version.minor = 7;
  l.u.versioned.tensor.ndim = -5; /* not read */
  refused(&l, true, TN_UNIMPLEMENTED, parts);
  l.u.versioned.version.major = 0;
  l.u.versioned.version.minor = 8;
  refused(&l, true, TN_UNIMPLEMENTED, before);
  lend_versioned(&l, 0);
  l.u.versioned.version.minor = 99; /* a newer minor with the same layout */
  REQUIRE_OK(tn_tensor_from_dlpack_versioned(&l.u.versioned, &t, &err), &err);
  tn_tensor_unref(t);
  CHECK_INT(atomic_load(&l.deleted), 1);
}

static void dlpack__errors_name_missing_pointers(void)
{
  lent l;
  tn_tensor *t;
  struct DLManagedTensor *m;
  struct DLManagedTensorVersioned *v;
  lend(&l);
  CHECK_STATUS(tn_tensor_from_dlpack(NULL, &t, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "managed is NULL");
  CHECK_NULL(t);
  CHECK_STATUS(tn_tensor_from_dlpack(&l.u.plain, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_tensor_from_dlpack_versioned(NULL, &t, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_tensor_from_dlpack_versioned(&l.u.versioned, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_tensor_to_dlpack(NULL, &m, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "tensor is NULL");
  CHECK_NULL(m);
  CHECK_STATUS(tn_tensor_to_dlpack_versioned(NULL, &v, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_NULL(v);
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, d23, 2, &t, &err), &err);
  CHECK_STATUS(tn_tensor_to_dlpack(t, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_tensor_to_dlpack_versioned(t, NULL, &err), TN_INVALID_ARGUMENT, &err);
  tn_tensor_unref(t);
  CHECK_INT(atomic_load(&l.deleted), 0);
}

/* ---- export, and round trips ---- */

static const struct { tn_dtype dtype; tn__dl_dtype type; } all_types[] = {
  { TN_FLOAT, { 2, 32, 1 } }, { TN_DOUBLE, { 2, 64, 1 } }, { TN_HALF, { 2, 16, 1 } }, { TN_BFLOAT16, { 4, 16, 1 } },
  { TN_INT8, { 0, 8, 1 } }, { TN_INT16, { 0, 16, 1 } }, { TN_INT32, { 0, 32, 1 } }, { TN_INT64, { 0, 64, 1 } },
  { TN_UINT8, { 1, 8, 1 } }, { TN_UINT16, { 1, 16, 1 } }, { TN_UINT32, { 1, 32, 1 } }, { TN_UINT64, { 1, 64, 1 } },
  { TN_BOOL, { 6, 8, 1 } }, { TN_COMPLEX64, { 5, 64, 1 } }, { TN_COMPLEX128, { 5, 128, 1 } },
  { TN_FLOAT8_E4M3B11FNUZ, { 9, 8, 1 } }, { TN_FLOAT8_E4M3FN, { 10, 8, 1 } }, { TN_FLOAT8_E4M3FNUZ, { 11, 8, 1 } },
  { TN_FLOAT8_E5M2, { 12, 8, 1 } }, { TN_FLOAT8_E5M2FNUZ, { 13, 8, 1 } },
  { TN_INT4, { 0, 4, 1 } }, { TN_UINT4, { 1, 4, 1 } }, { TN_INT2, { 0, 2, 1 } }, { TN_UINT2, { 1, 2, 1 } },
};

static void check_described(const tn__dl_tensor *d, const tn_tensor *t, tn__dl_dtype type)
{
  static const int64_t strides[] = { 3, 1 };
  CHECK(d->data == tn_tensor_data(t));
  CHECK_INT(d->device_type, TN__DL_CPU);
  CHECK_INT(d->device_id, 0);
  CHECK_BYTES(&d->dtype, &type, sizeof type);
  REQUIRE_INT(d->ndim, 2);
  CHECK_BYTES(d->shape, d23, sizeof d23);
  CHECK_BYTES(d->strides, strides, sizeof strides);
  CHECK_INT(d->byte_offset, 0);
}

static void dlpack__every_type_round_trips(void)
{
  for (size_t i = 0; i < sizeof all_types / sizeof all_types[0]; i++) {
    tn_tensor *t, *back;
    struct DLManagedTensor *m;
    struct DLManagedTensorVersioned *v;
    bool small = all_types[i].type.bits < 8;
    uint64_t blocks = tn_test_live_blocks();
    REQUIRE_OK(tn_tensor_create(all_types[i].dtype, d23, 2, &t, &err), &err);
    memset(tn_tensor_data(t), small ? 1 : 65, tn_tensor_bytes(t));
    REQUIRE_OK(tn_tensor_to_dlpack_versioned(t, &v, &err), &err);
    check_described(&v->tensor, t, all_types[i].type);
    CHECK_INT(v->version.major, 1);
    CHECK_INT(v->flags, small ? TN__DL_PADDED : 0);
    REQUIRE_OK(tn_tensor_from_dlpack_versioned(v, &back, &err), &err);
    CHECK_INT(tn_tensor_dtype(back), all_types[i].dtype);
    CHECK(tn_tensor_data(back) == tn_tensor_data(t));
    tn_tensor_unref(back);
    CHECK_STATUS(tn_tensor_to_dlpack(t, &m, &err), small ? TN_UNIMPLEMENTED : TN_OK, &err);
    if (small) CHECK_CONTAINS(tn_error_message(&err), tn_dtype_name(all_types[i].dtype));
    if (m != NULL) check_described(&m->tensor, t, all_types[i].type);
    tn_tensor_unref(t);
    if (m != NULL) { /* it is the last owner of the elements */
      REQUIRE_OK(tn_tensor_from_dlpack(m, &back, &err), &err);
      CHECK_INT(*(char *)tn_tensor_data(back), 65);
      tn_tensor_unref(back);
    }
    CHECK_INT(tn_test_live_blocks(), blocks);
  }
}

static void dlpack__errors_name_types_that_dlpack_lacks(void)
{
  static const tn_dtype types[] = { TN_STRING, TN_RESOURCE, TN_VARIANT, TN_QINT8,
                                    TN_QUINT8, TN_QINT16,   TN_QUINT16, TN_QINT32 };
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    tn_tensor *t;
    struct DLManagedTensor *m;
    struct DLManagedTensorVersioned *v;
    REQUIRE_OK(tn_tensor_create(types[i], d23, 2, &t, &err), &err);
    CHECK_STATUS(tn_tensor_to_dlpack(t, &m, &err), TN_UNIMPLEMENTED, &err);
    CHECK_CONTAINS(tn_error_message(&err), tn_dtype_name(types[i]));
    CHECK_NULL(m);
    CHECK_STATUS(tn_tensor_to_dlpack_versioned(t, &v, &err), TN_UNIMPLEMENTED, &err);
    CHECK_NULL(v);
    tn_tensor_unref(t);
  }
}

static void dlpack__small_integers_have_a_byte_each(void)
{
  static const struct { tn__dl_dtype type; int8_t value; bool good; } cases[] = {
    { { 0, 4, 1 }, 7, true }, { { 0, 4, 1 }, -8, true }, { { 0, 4, 1 }, 8, false }, { { 0, 4, 1 }, -9, false },
    { { 1, 4, 1 }, 15, true }, { { 1, 4, 1 }, 16, false }, { { 1, 4, 1 }, -1, false }, { { 0, 2, 1 }, 1, true },
    { { 0, 2, 1 }, -2, true }, { { 0, 2, 1 }, 2, false }, { { 1, 2, 1 }, 3, true }, { { 1, 2, 1 }, 4, false } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    lent l;
    tn_tensor *t;
    lend_versioned(&l, TN__DL_PADDED)->dtype = cases[i].type;
    memset(l.data, 0, 6);
    l.data[5] = (char)cases[i].value;
    CHECK_STATUS(tn_tensor_from_dlpack_versioned(&l.u.versioned, &t, &err), cases[i].good ? TN_OK : TN_INVALID_ARGUMENT,
                 &err);
    if (!cases[i].good) CHECK_CONTAINS(tn_error_message(&err), "element 5");
    tn_tensor_unref(t);
    CHECK_INT(atomic_load(&l.deleted), cases[i].good);
  }
}

static void dlpack__shapes_without_elements_and_of_any_rank(void)
{
  int64_t many[TN_MAX_RANK];
  static const int64_t empty[] = { 4, 0, 5 };
  tn_tensor *t, *back;
  struct DLManagedTensor *m;
  for (int i = 0; i < TN_MAX_RANK; i++) many[i] = 1;
  many[3] = 2;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, many, TN_MAX_RANK, &t, &err), &err);
  REQUIRE_OK(tn_tensor_to_dlpack(t, &m, &err), &err);
  CHECK_INT(m->tensor.ndim, TN_MAX_RANK);
  CHECK_INT(m->tensor.strides[2], 2);
  CHECK_INT(m->tensor.strides[3], 1);
  REQUIRE_OK(tn_tensor_from_dlpack(m, &back, &err), &err);
  CHECK_BYTES(tn_tensor_dims(back), many, sizeof many);
  tn_tensor_unref(back);
  tn_tensor_unref(t);
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, empty, 3, &t, &err), &err);
  REQUIRE_OK(tn_tensor_to_dlpack(t, &m, &err), &err);
  CHECK_NULL(m->tensor.data);
  REQUIRE_OK(tn_tensor_from_dlpack(m, &back, &err), &err);
  CHECK_INT(tn_tensor_elements(back), 0);
  tn_tensor_unref(back);
  tn_tensor_unref(t);
}

/* Checks the export of a tensor: writable, flagged as read-only, or rejected if there are no
 * flags. */
static void check_flag(tn_tensor *t, bool writable, bool plain)
{
  struct DLManagedTensor *m;
  struct DLManagedTensorVersioned *v;
  REQUIRE_OK(tn_tensor_to_dlpack_versioned(t, &v, &err), &err);
  CHECK_INT(v->flags, writable ? 0 : TN__DL_READ_ONLY);
  v->deleter(v);
  CHECK_STATUS(tn_tensor_to_dlpack(t, &m, &err), plain ? TN_OK : TN_FAILED_PRECONDITION, &err);
  if (m != NULL) m->deleter(m);
  else CHECK_CONTAINS(tn_error_message(&err), "read-only");
}

static void nothing(void *user, void *data, size_t bytes) { (void)user, (void)data, (void)bytes; }

static void dlpack__read_only_memory_is_flagged(void)
{
  static float value = 1;
  static const int64_t one[] = { 1 };
  lent l;
  tn_tensor *t, *view;
  tn_buffer *buffer;
  const tn_buffer_desc constant = {
    .struct_size = sizeof constant, .ownership = TN_BUFFER_IMMUTABLE, .data = &value, .bytes = 4, .release = nothing
  };
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, d23, 2, &t, &err), &err);
  check_flag(t, true, true);
  tn_tensor_ref(t); /* another owner */
  check_flag(t, false, true);
  tn_tensor_unref(t);
  check_flag(t, true, true);
  tn_tensor_unref(t);
  REQUIRE_OK(tn_buffer_create(&constant, &buffer, &err), &err);
  REQUIRE_OK(tn_tensor_from_buffer(TN_FLOAT, NULL, 0, buffer, 0, &t, &err), &err);
  tn_buffer_unref(buffer);
  check_flag(t, false, false);
  tn_tensor_unref(t);
  REQUIRE_OK(tn_tensor_wrap(TN_FLOAT, NULL, 0, &value, 4, NULL, NULL, &t, &err), &err);
  REQUIRE_OK(tn_tensor_reshape(t, one, 1, &view, &err), &err);
  check_flag(view, true, true); /* the program's memory */
  tn_tensor_unref(view);
  tn_tensor_unref(t);
  for (uint64_t flags = 0; flags < 4; flags++) { /* flags are kept from import to export */
    lend_versioned(&l, flags);
    REQUIRE_OK(tn_tensor_from_dlpack_versioned(&l.u.versioned, &t, &err), &err);
    check_flag(t, (flags & TN__DL_READ_ONLY) == 0, (flags & TN__DL_READ_ONLY) == 0);
    tn_tensor_unref(t);
  }
  lend(&l);
  REQUIRE_OK(tn_tensor_from_dlpack(&l.u.plain, &t, &err), &err);
  check_flag(t, true, true);
  tn_tensor_unref(t);
}

static void dlpack__device_memory_is_rejected(void)
{
  tn_tensor *t;
  tn_buffer *buffer;
  struct DLManagedTensor *m;
  struct DLManagedTensorVersioned *v;
  const tn_buffer_desc desc = {
    .struct_size = sizeof desc, .memory = TN_MEMORY_DEVICE, .device = "/device:XPU:3", .handle = &err, .bytes = 24
  };
  REQUIRE_OK(tn_buffer_create(&desc, &buffer, &err), &err);
  REQUIRE_OK(tn_tensor_from_buffer(TN_FLOAT, d23, 2, buffer, 0, &t, &err), &err);
  tn_buffer_unref(buffer);
  CHECK_STATUS(tn_tensor_to_dlpack(t, &m, &err), TN_UNIMPLEMENTED, &err);
  CHECK_CONTAINS(tn_error_message(&err), "/device:XPU:3");
  CHECK_NULL(m);
  CHECK_STATUS(tn_tensor_to_dlpack_versioned(t, &v, &err), TN_UNIMPLEMENTED, &err);
  CHECK_NULL(v);
  tn_tensor_unref(t);
}

/* ---- eager sessions ---- */

static void *address(te *t, tn_eager_handle h)
{
  tn_tensor *tensor;
  REQUIRE_OK(tn_eager_tensor(t->session, h, &tensor, &t->err), &t->err);
  void *data = tn_tensor_data(tensor);
  tn_tensor_unref(tensor);
  return data;
}

static tn_eager_handle six_ones(te *t)
{
  static const float ones[] = { 1, 1, 1, 1, 1, 1 };
  tn_eager_handle h;
  REQUIRE_OK(tn_eager_from_data(t->session, TN_FLOAT, d23, 2, ones, sizeof ones, &h, &t->err), &t->err);
  return h;
}

static void dlpack__handles_are_passed_without_a_copy(void)
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    lent l;
    tn_eager_handle x, y;
    struct DLManagedTensor *m;
    struct DLManagedTensorVersioned *v;
    for (int async = 0; async < 2; async++) {
      te_init(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
      t.options.async = (tn_bool)async;
      te_start(&t);
      lend(&l);
      REQUIRE_OK(tn_eager_from_dlpack(t.session, &l.u.plain, &x, &t.err), &t.err);
      CHECK(address(&t, x) == l.data);
      y = te_add(&t, x, x);
      REQUIRE_OK(tn_eager_to_dlpack(t.session, y, &m, &t.err), &t.err);
      REQUIRE_OK(tn_eager_to_dlpack_versioned(t.session, y, &v, &t.err), &t.err);
      CHECK(m->tensor.data == address(&t, y));
      CHECK(v->tensor.data == m->tensor.data);
      CHECK_INT(v->flags, TN__DL_READ_ONLY); /* the session owns it, too */
      v->deleter(v);
      REQUIRE_OK(tn_eager_to_dlpack_versioned(t.session, x, &v, &t.err), &t.err);
      CHECK(v->tensor.data == l.data);
      CHECK_INT(v->flags, 0);
      te_release(&t, y);
      for (int i = 0; i < 20; i++) te_release(&t, te_add(&t, x, six_ones(&t))); /* not in its memory */
      te_release(&t, x);
      te_fini(&t);
      CHECK_INT(atomic_load(&l.deleted), 0); /* exported tensors outlive the session */
      v->deleter(v);
      CHECK_INT(atomic_load(&l.deleted), 1);
      CHECK_DOUBLE(((float *)m->tensor.data)[5], 12, 0);
      m->deleter(m);
    }
  }
}

static void dlpack__the_sessions_thread_calls_the_deleter(void) /* S-EAG-07 */
{
  te t;
  lent l;
  tn_eager_handle h;
  te_open(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  lend_versioned(&l, TN__DL_READ_ONLY);
  REQUIRE_OK(tn_eager_from_dlpack_versioned(t.session, &l.u.versioned, &h, &t.err), &t.err);
  te_release(&t, h);
  CHECK(te_wait_for(&l.deleted, 1));
  CHECK(atomic_load(&l.thread) != ts_this_thread());
  te_fini(&t);
  CHECK_INT(atomic_load(&l.deleted), 1);
}

static void dlpack__the_caller_keeps_tensors_of_failed_imports(void)
{
  te t;
  lent l;
  tn_eager_handle h = { 5 };
  struct DLManagedTensor *m = NULL;
  struct DLManagedTensorVersioned *v = NULL;
  te_open(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  tn_eager_handle x = te_scalar(&t, 1);
  lend(&l);
  CHECK_STATUS(tn_eager_from_dlpack(NULL, &l.u.plain, &h, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_eager_from_dlpack(t.session, NULL, &h, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_eager_from_dlpack(t.session, &l.u.plain, NULL, &err), TN_INVALID_ARGUMENT, &err);
  l.u.plain.tensor.device_type = 2;
  CHECK_STATUS(tn_eager_from_dlpack(t.session, &l.u.plain, &h, &err), TN_UNIMPLEMENTED, &err);
  CHECK_INT(h.id, 0);
  CHECK_STATUS(tn_eager_to_dlpack(t.session, x, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_eager_to_dlpack(t.session, (tn_eager_handle){ 77 }, &m, &err), TN_FAILED_PRECONDITION, &err);
  CHECK_NULL(m);
  REQUIRE_OK(tn_eager_session_close(t.session, &t.err), &t.err);
  lend(&l);
  CHECK_STATUS(tn_eager_from_dlpack(t.session, &l.u.plain, &h, &err), TN_FAILED_PRECONDITION, &err); /* S-EAG-18 */
  CHECK_INT(atomic_load(&l.deleted), 0);
  lend_versioned(&l, 0);
  CHECK_STATUS(tn_eager_from_dlpack_versioned(t.session, &l.u.versioned, &h, &err), TN_FAILED_PRECONDITION, &err);
  CHECK_INT(h.id, 0);
  CHECK_STATUS(tn_eager_to_dlpack_versioned(t.session, x, &v, &err), TN_FAILED_PRECONDITION, &err);
  CHECK_NULL(v);
  te_fini(&t);
  CHECK_INT(atomic_load(&l.deleted), 0);
}

/* ---- graph sessions, state ---- */

/* From one library to another through an eager session and a graph session, whose kernels read
 * the elements in their original memory. */
static void dlpack__kernels_read_the_original_memory(void)
{
  static const tn_eager_attr slot[] = { { .name = "slot", .kind = TN_ATTR_INT, .i = 2 } };
  static const char *const name = "in", *const fetch = "count";
  FOR_RUNTIMES(runtime)
  {
    te t;
    ts g;
    lent l;
    tn_eager_handle x, back, out;
    tn_tensor *feed, *fetched = NULL;
    struct DLManagedTensorVersioned *v;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    tn_output in = ts_open_watched(&g, 1);
    ts_watch_op(g.graph, "TestCount", "count", in, 1);
    ts_start(&g);
    lend(&l);
    REQUIRE_OK(tn_eager_from_dlpack(t.session, &l.u.plain, &x, &t.err), &t.err);
    REQUIRE_OK(tn_eager_tensor(t.session, x, &feed, &t.err), &t.err);
    REQUIRE_OK(tn_session_run(g.session, NULL, &name, &feed, 1, &fetch, &fetched, 1, NULL, 0, NULL, &g.err), &g.err);
    CHECK(atomic_load(&ts_watched.input[1]) == (uintptr_t)l.data);
    REQUIRE_OK(tn_eager_from_tensor(t.session, fetched, &back, &t.err), &t.err);
    REQUIRE_OK(tn_eager_call(t.session, "TestCount", slot, 1, &back, 1, &out, 1, NULL, &t.err), &t.err);
    CHECK(atomic_load(&ts_watched.input[2]) == (uintptr_t)tn_tensor_data(fetched));
    REQUIRE_OK(tn_eager_to_dlpack_versioned(t.session, back, &v, &t.err), &t.err);
    CHECK(v->tensor.data == tn_tensor_data(fetched));
    CHECK_DOUBLE(((float *)v->tensor.data)[5], 6, 0);
    v->deleter(v);
    tn_tensor_unref(feed);
    tn_tensor_unref(fetched);
    te_fini(&t);
    ts_fini(&g);
    CHECK_INT(atomic_load(&l.deleted), 1);
  }
}

static void dlpack__state_gets_a_copy(void)
{
  static const int64_t no_dims[] = { 0 };
  const tn_eager_attr attrs[] = { { .name = "shared_name", .kind = TN_ATTR_STRING, .at = "dlpack_state", .n = 12 },
                                  { .name = "dtype", .kind = TN_ATTR_TYPE, .i = TN_FLOAT },
                                  { .name = "shape", .kind = TN_ATTR_SHAPE, .at = no_dims, .rank = 0 } };
  const tn_eager_attr type[] = { { .name = "dtype", .kind = TN_ATTR_TYPE, .i = TN_FLOAT } };
  te t;
  lent l;
  tn_eager_handle x, variable, value;
  te_open(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  lend(&l)->ndim = 0;
  REQUIRE_OK(tn_eager_from_dlpack(t.session, &l.u.plain, &x, &t.err), &t.err);
  REQUIRE_OK(tn_eager_call(t.session, "VarHandleOp", attrs, 3, NULL, 0, &variable, 1, NULL, &t.err), &t.err);
  const tn_eager_handle assign[] = { variable, x };
  REQUIRE_OK(tn_eager_call(t.session, "AssignVariableOp", type, 1, assign, 2, NULL, 0, NULL, &t.err), &t.err);
  te_release(&t, x);
  REQUIRE_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
  CHECK_INT(atomic_load(&l.deleted), 1);
  memset(l.data, 0, sizeof l.data); /* owned by the lender again */
  REQUIRE_OK(tn_eager_call(t.session, "ReadVariableOp", type, 1, &variable, 1, &value, 1, NULL, &t.err), &t.err);
  CHECK_DOUBLE(te_value(&t, value), 1, 0);
  te_fini(&t);
}

/* ---- lack of memory ---- */

static tn_status around(void *arg)
{
  lent *l = arg;
  tn_tensor *t, *back = NULL;
  struct DLManagedTensor *m = NULL;
  struct DLManagedTensorVersioned *v = NULL;
  lend_versioned(l, 0);
  tn_status st = tn_tensor_from_dlpack_versioned(&l->u.versioned, &t, &err);
  bool taken = st == TN_OK;
  if (st == TN_OK) st = tn_tensor_to_dlpack(t, &m, &err);
  if (st == TN_OK) st = tn_tensor_to_dlpack_versioned(t, &v, &err);
  if (v != NULL) v->deleter(v);
  if (st == TN_OK && (st = tn_tensor_from_dlpack(m, &back, &err)) == TN_OK) m = NULL;
  if (m != NULL) m->deleter(m);
  tn_tensor_unref(back);
  tn_tensor_unref(t);
  CHECK_INT(atomic_load(&l->deleted), taken);
  return st;
}

static tn_status around_eager(void *arg)
{
  tn_eager_session *s;
  tn_eager_handle h = { 0 };
  lent l;
  struct DLManagedTensor *m = NULL;
  lend(&l);
  tn_status st = tn_eager_session_create(arg, &s, &err);
  if (st == TN_OK) st = tn_eager_from_dlpack(s, &l.u.plain, &h, &err);
  if (st == TN_OK) st = tn_eager_to_dlpack(s, h, &m, &err);
  tn_eager_session_destroy(s);
  CHECK_INT(atomic_load(&l.deleted), h.id != 0 && m == NULL);
  if (m != NULL) m->deleter(m);
  CHECK_INT(atomic_load(&l.deleted), h.id != 0);
  return st;
}

static void dlpack__nothing_leaks_without_memory(void)
{
  te t;
  lent l;
  tn_test_oom_sweep(around, &l);
  te_init(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  tn_test_oom_sweep(around_eager, &t.options);
  te_fini(&t);
  tn_error_clear(&err);
}

TAP_MAIN(TAP_TEST(dlpack__tensors_are_imported_without_a_copy), TAP_TEST(dlpack__the_deleter_is_optional),
         TAP_TEST(dlpack__all_forms_of_row_major_are_accepted), TAP_TEST(dlpack__errors_name_other_devices),
         TAP_TEST(dlpack__errors_name_other_types), TAP_TEST(dlpack__impossible_shapes_are_rejected),
         TAP_TEST(dlpack__other_layouts_are_rejected), TAP_TEST(dlpack__impossible_addresses_are_rejected),
         TAP_TEST(dlpack__other_major_versions_are_rejected), TAP_TEST(dlpack__errors_name_missing_pointers),
         TAP_TEST(dlpack__every_type_round_trips), TAP_TEST(dlpack__errors_name_types_that_dlpack_lacks),
         TAP_TEST(dlpack__small_integers_have_a_byte_each), TAP_TEST(dlpack__shapes_without_elements_and_of_any_rank),
         TAP_TEST(dlpack__read_only_memory_is_flagged), TAP_TEST(dlpack__device_memory_is_rejected),
         TAP_TEST(dlpack__handles_are_passed_without_a_copy), TAP_TEST(dlpack__the_sessions_thread_calls_the_deleter),
         TAP_TEST(dlpack__the_caller_keeps_tensors_of_failed_imports),
         TAP_TEST(dlpack__kernels_read_the_original_memory), TAP_TEST(dlpack__state_gets_a_copy),
         TAP_TEST(dlpack__nothing_leaks_without_memory))
