/* SPDX-License-Identifier: Apache-2.0 */
/* Array descriptions from other libraries. Each description gives a tensor or a status with a message. The deleter
 * is called once, when the last reference is released, and never if the description was refused; an exported tensor
 * has the same description. */
#include <fuzz/bytes.h>
#include <fuzz/runtime.h>

#include <core/tensor/dlpack.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY 4096
#define DIMS 12

static uint8_t *memory; /* exactly MEMORY bytes */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  fuzz_limit_memory((size_t)16 << 20);
  fuzz_make_options();
  if (posix_memalign((void **)&memory, 64, MEMORY) != 0) abort();
  return 0;
}

/* ---- a description ---- */

typedef struct loan {
  struct DLManagedTensor plain;
  struct DLManagedTensorVersioned versioned;
  int64_t shape[DIMS], strides[DIMS];
  int deleted;
  bool has_deleter;
} loan;

static void delete_plain(struct DLManagedTensor *self) { ((loan *)self->manager)->deleted++; }
static void delete_versioned(struct DLManagedTensorVersioned *self) { ((loan *)self->manager)->deleted++; }

/* Mostly row-major strides, as most lenders use. */
static void some_strides(bytes *b, loan *l, int32_t n)
{
  int64_t stride = 1;
  for (int32_t i = n > 0 ? n : 0; i-- > 0;) { /* an invalid number of dimensions has no strides */
    uint8_t kind = next(b);
    l->strides[i] = stride;
    if (kind > 240) l->strides[i] = number(b);
    else if (kind > 230) l->strides[i] = (int64_t)((uint64_t)stride + 1);
    if (__builtin_mul_overflow(stride, l->shape[i], &stride)) stride = 1;
  }
}

static void some_tensor(bytes *b, loan *l, tn__dl_tensor *t)
{
  static const uint8_t widths[] = { 8, 16, 32, 64, 128, 1, 2, 4 };
  uint8_t kind = next(b), type = next(b), bits = next(b), at = next(b);
  *t = (tn__dl_tensor){ .data = memory + (at < 200 ? at % 4 * 16 : at % 16),
                        .device_type = TN__DL_CPU,
                        .ndim = kind % 5 };
  if (kind >= 200) t->ndim = (int32_t)number(b);
  if ((kind & 7) == 5) t->device_type = (int32_t)number(b);
  if ((kind & 15) == 9) t->device_id = (int32_t)number(b);
  t->dtype =
      (tn__dl_dtype){ .code = type < 240 ? type % 16 : type, .bits = bits < 230 ? widths[bits % 8] : bits, .lanes = 1 };
  if (type >= 200) t->dtype.lanes = next(b);
  if (at >= 240) t->byte_offset = (uint64_t)number(b);
  if (at == 239) t->data = NULL;
  for (int32_t i = 0; i < t->ndim && i < DIMS; i++) {
    uint8_t dim = next(b);
    l->shape[i] = dim < 220 ? dim % 6 : number(b);
  }
  if (t->dtype.bits < 8) { /* elements of these types are read, so they must exist */
    t->byte_offset = 0;
    for (int32_t i = 0; i < DIMS; i++) l->shape[i] &= 1;
  }
  some_strides(b, l, t->ndim < DIMS ? t->ndim : DIMS);
  t->shape = t->ndim > DIMS || (kind & 31) == 30 ? NULL : l->shape;
  t->strides = kind & 32 ? l->strides : NULL;
}

/* ---- imported tensors ---- */

/* Reads the elements, unless the description misstates the memory. */
static bool all_there(const tn_tensor *t)
{
  const uint8_t *at = tn_tensor_data(t);
  size_t bytes = tn_tensor_bytes(t);
  if (bytes == 0) return true;
  if (at < memory || at > memory + MEMORY || bytes > (size_t)(memory + MEMORY - at)) return false;
  unsigned sum = 0;
  for (size_t i = 0; i < bytes; i++) sum += at[i];
  return sum != 1;
}

static void same(const tn_tensor *a, const tn_tensor *b)
{
  int32_t rank = tn_tensor_rank(a);
  if (tn_tensor_dtype(a) != tn_tensor_dtype(b) || rank != tn_tensor_rank(b) || tn_tensor_data(a) != tn_tensor_data(b) ||
      (rank > 0 && memcmp(tn_tensor_dims(a), tn_tensor_dims(b), (size_t)rank * sizeof(int64_t)) != 0))
    abort();
}

/* Exports and imports again, in one of the forms. */
static void go_round(tn_tensor *t, bool versioned, tn_error *err)
{
  struct DLManagedTensorVersioned *v = NULL;
  struct DLManagedTensor *p = NULL;
  tn_tensor *again = NULL;
  tn_status st = versioned ? tn_tensor_to_dlpack_versioned(t, &v, err) : tn_tensor_to_dlpack(t, &p, err);
  check_status(st, err);
  if ((v != NULL || p != NULL) != (st == TN_OK)) abort();
  if (st != TN_OK) return;
  st = versioned ? tn_tensor_from_dlpack_versioned(v, &again, err) : tn_tensor_from_dlpack(p, &again, err);
  check_status(st, err);
  if (st == TN_OK) same(t, again);
  else if (versioned) v->deleter(v);
  else p->deleter(p);
  tn_tensor_unref(again);
}

/* A handle of the same description, in a session that reads it. */
static void use_eagerly(loan *l, bool versioned, tn_error *err)
{
  tn_eager_options options;
  tn_eager_session *session = NULL;
  tn_eager_handle handle = { 77 }, sum = { 77 };
  tn_eager_options_init(&options);
  options.session = options_of[1];
  options.strategy = TN_EAGER_ON_SAFE_POINTS;
  if (tn_eager_session_create(&options, &session, err) != TN_OK) abort();
  tn_status st = versioned ? tn_eager_from_dlpack_versioned(session, &l->versioned, &handle, err)
                           : tn_eager_from_dlpack(session, &l->plain, &handle, err);
  check_status(st, err);
  if ((handle.id != 0) != (st == TN_OK)) abort();
  if (st == TN_OK) check_status(tn_eager_add(session, handle, handle, &sum, err), err);
  tn_eager_session_destroy(session);
  if (l->deleted != (st == TN_OK && l->has_deleter)) abort();
}

static void lend(bytes *b)
{
  loan l = { .deleted = 0 };
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t = NULL;
  uint8_t kind = next(b);
  bool versioned = kind & 1;
  l.has_deleter = (kind & 6) != 6;
  l.versioned.version.major = kind & 8 && kind > 128 ? next(b) : TN__DL_MAJOR;
  l.versioned.version.minor = next(b);
  l.versioned.flags = (uint64_t)(kind >> 4);
  l.plain.manager = l.versioned.manager = &l;
  if (l.has_deleter) l.plain.deleter = delete_plain, l.versioned.deleter = delete_versioned;
  some_tensor(b, &l, &l.plain.tensor);
  l.versioned.tensor = l.plain.tensor;
  tn_status st =
      versioned ? tn_tensor_from_dlpack_versioned(&l.versioned, &t, &err) : tn_tensor_from_dlpack(&l.plain, &t, &err);
  check_status(st, &err);
  if ((t != NULL) != (st == TN_OK) || l.deleted != 0) abort();
  bool there = t != NULL && all_there(t);
  if (there) go_round(t, next(b) & 1, &err);
  tn_tensor_unref(t);
  if (l.deleted != (st == TN_OK && l.has_deleter)) abort();
  l.deleted = 0;
  if (there) use_eagerly(&l, versioned, &err);
  tn_error_clear(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  bytes b = { data, data + size };
  lend(&b);
  return 0;
}
