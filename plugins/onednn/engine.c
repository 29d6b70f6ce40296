/* SPDX-License-Identifier: Apache-2.0 */
/* The engine, a stream for each thread, and the avoidance of OpenMP: Debian's oneDNN uses it, and a team of its threads
 * in addition to ours, or the program's, costs more than the work. A primitive made for one thread runs on the calling
 * thread. */
#include "onednn.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_status_t made;
static pthread_key_t stream_key;
static int key_error;

static void free_stream(void *stream) { dnnl_stream_destroy(stream); }

static void make(void)
{
  int before = dnn_one_thread();
  made = dnnl_engine_create(&engine, dnnl_cpu, 0);
  key_error = pthread_key_create(&stream_key, free_stream);
  dnn_restore_threads(before);
}

dnnl_engine_t dnn_engine(tn_error *err)
{
  pthread_once(&once, make);
  if (made == dnnl_success && key_error == 0) return engine;
  dnn_status(made != dnnl_success ? made : dnnl_out_of_memory, "engine", err);
  return NULL;
}

dnnl_stream_t dnn_stream(tn_error *err)
{
  dnnl_engine_t e = dnn_engine(err);
  if (e == NULL) return NULL;
  dnnl_stream_t s = pthread_getspecific(stream_key);
  if (s != NULL) return s;
  dnnl_status_t st = dnnl_stream_create(&s, e, dnnl_stream_default_flags);
  if (st == dnnl_success && pthread_setspecific(stream_key, s) != 0) {
    dnnl_stream_destroy(s);
    st = dnnl_out_of_memory;
  }
  if (st == dnnl_success) return s;
  dnn_status(st, "stream", err);
  return NULL;
}

int dnn_one_thread(void)
{
  int before = omp_get_max_threads();
  if (before != 1) omp_set_num_threads(1);
  return before;
}

void dnn_restore_threads(int before)
{
  if (before != 1) omp_set_num_threads(before);
}

tn_status dnn_status(dnnl_status_t st, const char *what, tn_error *err)
{
  switch (st) {
  case dnnl_success: return TN_OK;
  case dnnl_out_of_memory: return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "oneDNN: out of memory for a %s", what);
  case dnnl_unimplemented:
  case dnnl_invalid_arguments: /* such a case is left to the library's own kernel */
    return tn_error_set(err, TN_UNIMPLEMENTED, "oneDNN has no %s for these shapes", what);
  default: return tn_error_set(err, TN_INTERNAL, "oneDNN: %s failed with status %d", what, (int)st);
  }
}

dnnl_memory_desc_t dnn_strided(const int64_t *dims, const int64_t *strides, int n, dnnl_data_type_t type)
{
  dnnl_memory_desc_t md;
  if (dnnl_memory_desc_init_by_strides(&md, n, dims, type, strides) != dnnl_success) md = (dnnl_memory_desc_t){ 0 };
  return md;
}

dnnl_memory_desc_t dnn_any(const int64_t *dims, int n, dnnl_data_type_t type)
{
  dnnl_memory_desc_t md;
  if (dnnl_memory_desc_init_by_tag(&md, n, dims, type, dnnl_format_tag_any) != dnnl_success)
    md = (dnnl_memory_desc_t){ 0 };
  return md;
}

dnnl_data_type_t dnn_type(tn_dtype dtype)
{
  if (dtype == TN_FLOAT) return dnnl_f32;
  return dtype == TN_BFLOAT16 ? dnnl_bf16 : dnnl_data_type_undef;
}

bool dnn_type_is_fast(tn_dtype dtype)
{
  const unsigned wanted = dnnl_cpu_isa_avx512_core_bf16;
  return dtype == TN_FLOAT || (dtype == TN_BFLOAT16 && ((unsigned)dnnl_get_effective_cpu_isa() & wanted) == wanted);
}

bool dnn_fused_is_faster(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
  return !__builtin_cpu_is("amd");
#else
  return true;
#endif
}

bool dnn_multiplies_faster(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
  const char *all = getenv("TENON_ONEDNN_ALL");
  return !__builtin_cpu_supports("fma") || dnn_packs_weights() || (all != NULL && strcmp(all, "1") == 0);
#else
  return true;
#endif
}

bool dnn_packs_weights(void)
{
  const unsigned wanted = dnnl_cpu_isa_avx512_core;
  return ((unsigned)dnnl_get_effective_cpu_isa() & wanted) == wanted;
}

bool dnn_dims_fit(const int64_t *dims, int32_t rank)
{
  int64_t count = 1;
  for (int32_t d = 0; d < rank; d++) {
    if (dims[d] < 1 || dims[d] > DNN_MOST / count) return false;
    count *= dims[d];
  }
  return true;
}

bool dnn_fits(const tn_view *v) { return dnn_dims_fit(v->dims, v->rank); }

bool dnn_shape_read(const tn_view *v, int rank, int64_t *dims)
{
  bool narrow = v->dtype == TN_INT32;
  if (!narrow && v->dtype != TN_INT64) {
    if (v->rank != rank) return false;
    for (int d = 0; d < rank; d++) dims[d] = v->dims[d];
    return dnn_dims_fit(dims, rank);
  }
  if (v->rank != 1 || v->count != rank || v->data == NULL) return false;
  for (int d = 0; d < rank; d++) dims[d] = narrow ? ((const int32_t *)v->data)[d] : ((const int64_t *)v->data)[d];
  return dnn_dims_fit(dims, rank);
}
