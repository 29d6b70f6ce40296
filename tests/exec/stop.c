/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that takes long ends soon after its step is cancelled. Each op with a loop gets
 * inputs that would take seconds. Measured is the CPU time that the process takes after the
 * cancellation, which does not depend on how busy the machine is. TENON_STOP_MS is the limit in
 * milliseconds (`make check-long` sets 50); without it the limit only shows that the kernel did
 * not run to its end. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <core/base/threads/stop.h>

#include "conformance/support/session_kit.h"

#define BEGUN_MS 150   /* of work before a step is cancelled */
#define DOUBT_MS 4000  /* sanitizers make much of 50 ms */

/* Inputs, one word each: f[dims] random floats, c[dims] floats that all differ, n[dims] NaNs, d[dims] doubles,
 * x<n>[dims] random int32 below n, z[dims] random complex64, t[dims] strings; I(list) an int32 vector, S(n) an int32
 * scalar, F(x) a float scalar. All but the last three are fed. */
typedef struct stop_case {
  const char *op, *inputs, *attrs;
} stop_case;

#define T_F "T=float "
#define WINDOW(k) T_F "ksize=[1," #k "," #k ",1] strides=[1,1,1,1] padding=SAME "
#define CONV T_F "strides=[1,1,1,1] padding=SAME "
#define CONV3 T_F "strides=[1,1,1,1,1] padding=SAME "

static const stop_case cases[] = {
  { "Conv2D", "f[1,400,400,32] f[31,31,32,32]", CONV },
  { "Conv2D", "f[1,400,400,32] f[31,31,32,32]", CONV "dilations=[1,2,2,1] " },
  { "Conv2D", "d[1,300,300,16] d[31,31,16,16]", "T=double strides=[1,1,1,1] padding=SAME " },
  { "Conv2DBackpropInput", "I(1,400,400,32) f[31,31,32,32] f[1,400,400,32]", CONV },
  { "Conv2DBackpropFilter", "f[1,400,400,32] I(31,31,32,32) f[1,400,400,32]", CONV },
  { "Conv3D", "f[1,64,64,64,16] f[15,15,15,16,16]", CONV3 },
  { "Conv3DBackpropInputV2", "I(1,64,64,64,16) f[15,15,15,16,16] f[1,64,64,64,16]", CONV3 },
  { "Conv3DBackpropFilterV2", "f[1,64,64,64,16] I(15,15,15,16,16) f[1,64,64,64,16]", CONV3 },
  { "DepthwiseConv2dNative", "f[1,500,500,32] f[101,101,32,1]", CONV },
  { "DepthwiseConv2dNative", "f[1,500,500,16] f[101,101,16,2]", CONV },
  { "DepthwiseConv2dNativeBackpropInput", "I(1,500,500,32) f[101,101,32,1] f[1,500,500,32]", CONV },
  { "DepthwiseConv2dNativeBackpropFilter", "f[1,500,500,32] I(101,101,32,1) f[1,500,500,32]", CONV },
  { "Dilation2D", "f[1,500,500,32] f[101,101,32]", T_F "strides=[1,1,1,1] rates=[1,1,1,1] padding=SAME " },
  { "Dilation2DBackpropInput", "f[1,300,300,32] f[101,101,32] f[1,300,300,32]",
    T_F "strides=[1,1,1,1] rates=[1,1,1,1] padding=SAME " },
  { "Dilation2DBackpropFilter", "f[1,300,300,32] f[101,101,32] f[1,300,300,32]",
    T_F "strides=[1,1,1,1] rates=[1,1,1,1] padding=SAME " },
  { "MaxPool", "f[1,1000,1000,8]", WINDOW(301) },
  { "MaxPool", "f[1,1,100000,1000]", T_F "ksize=[1,1,9999,1] strides=[1,1,1,1] padding=SAME " },
  { "AvgPool", "f[1,1000,1000,8]", WINDOW(301) },
  { "MaxPoolGrad", "f[1,500,500,8] f[1,500,500,8] f[1,500,500,8]", WINDOW(301) },
  { "MaxPoolGradGrad", "f[1,500,500,8] f[1,500,500,8] f[1,500,500,8]", WINDOW(301) },
  { "AvgPoolGrad", "I(1,500,500,8) f[1,500,500,8]", WINDOW(301) },
  { "MaxPoolWithArgmax", "f[1,500,500,8]", WINDOW(301) "Targmax=int64 " },
  { "MaxPool3D", "f[1,100,100,100,8]", T_F "ksize=[1,51,51,51,1] strides=[1,1,1,1,1] padding=SAME " },
  { "AvgPool3D", "f[1,100,100,100,8]", T_F "ksize=[1,51,51,51,1] strides=[1,1,1,1,1] padding=SAME " },
  { "LRN", "f[1,32,32,20000]", T_F "depth_radius=9000 " },
  { "LRNGrad", "f[1,32,32,10000] f[1,32,32,10000] f[1,32,32,10000]", T_F "depth_radius=9000 " },
  { "MatMul", "f[6000,6000] f[6000,6000]", T_F },
  { "MatMul", "f[6000,6000] f[6000,6000]", T_F "transpose_a=true " },
  { "MatMul", "f[6000,6000] f[6000,6000]", T_F "transpose_b=true " },
  { "MatMul", "x9[4000,4000] x9[4000,4000]", "T=int32 " },
  { "MatMul", "z[2500,2500] z[2500,2500]", "T=complex64 " },
  { "BatchMatMulV2", "f[40,1800,1800] f[40,1800,1800]", T_F },
  { "BatchMatMulV2", "f[20000,60,60] f[20000,60,60]", T_F },
  { "BatchMatMulV2", "f[2,1,2500,2500] f[1,4,2500,2500]", T_F },
  { "Einsum", "f[4,2500,2500] f[4,2500,2500]", "T=float equation=bij,bjk->bik N=2 " },
  { "Einsum", "f[3000,3000] f[3000,3000]", "T=float equation=ij,kj->ij N=2 " },
  { "Igamma", "f[20000000] f[20000000]", T_F },
  { "Zeta", "f[20000000] f[20000000]", T_F },
  { "Betainc", "f[10000000] f[10000000] f[10000000]", T_F },
  { "Pow", "d[20000000] d[20000000]", "T=double " },
  { "Sin", "d[30000000]", "T=double " },
  { "AddV2", "f[8000,1] f[1,8000]", T_F },
  { "CumulativeLogsumexp", "f[30000000] S(0)", T_F "Tidx=int32 " },
  { "Cumsum", "f[50000000] S(0)", T_F "Tidx=int32 " },
  { "Cumprod", "f[50,1000000] S(0)", T_F "Tidx=int32 " },
  { "Sum", "f[70000000] I(0)", T_F "Tidx=int32 " },
  { "Prod", "f[10,7000000] I(0)", T_F "Tidx=int32 " },
  { "ArgMax", "f[70000000] S(0)", T_F "Tidx=int32 output_type=int64 " },
  { "TopKV2", "f[20000000] S(10000000)", T_F },
  { "TopKV2", "d[20,1000000] S(500000)", "T=double " },
  { "NthElement", "f[50000000] S(100000)", T_F },
  { "InTopKV2", "f[1000,50000] x50000[1000] S(4)", "T=int32 " },
  { "Unique", "c[20000000]", T_F "out_idx=int32 " },
  { "Unique", "n[500000]", T_F "out_idx=int32 " },
  { "UniqueWithCounts", "x20000000[30000000]", "T=int32 out_idx=int32 " },
  { "ListDiff", "n[500000] n[500000]", T_F "out_idx=int32 " },
  { "Where", "f[30000000]", T_F },
  { "LowerBound", "f[1,20000000] f[1,20000000]", T_F "out_type=int32 " },
  { "NonMaxSuppressionV3", "f[150000,4] c[150000] S(150000) F(1.0) F(-1.0)", T_F },
  { "NonMaxSuppressionV5", "f[50000,4] c[50000] S(50000) F(1.0) F(-1.0) F(0.5)", T_F },
  { "CombinedNonMaxSuppression", "f[1,100000,1,4] f[1,100000,4] S(100000) S(100000) F(1.0) F(-1.0)", "" },
  { "ResizeBilinear", "f[1,100,100,1] I(8000,8000)", T_F },
  { "ResizeBicubic", "f[1,100,100,1] I(8000,8000)", T_F },
  { "ResizeArea", "f[1,7000,7000,1] I(3,3)", T_F },
  { "ResizeNearestNeighbor", "f[1,100,100,1] I(8000,8000)", T_F },
  { "ResizeNearestNeighborGrad", "f[1,7000,7000,1] I(3,3)", T_F },
  { "ScaleAndTranslate", "f[1,4000,4000,1] I(50,4000) F2(0.01,1.0) F2(0.0,0.0)",
    T_F "kernel_type=lanczos5 antialias=true " },
  { "CropAndResize", "f[1,1000,1000,3] f[300,4] x1[300] I(250,250)", T_F "method=bilinear " },
  { "CropAndResizeGradImage", "f[300,250,250,3] f[300,4] x1[300] I(1,1000,1000,3)", T_F "method=bilinear " },
  { "CropAndResizeGradBoxes", "f[300,250,250,3] f[1,1000,1000,3] f[300,4] x1[300]", T_F "method=bilinear " },
  { "ExtractImagePatches", "f[1,300,300,8]", T_F "ksizes=[1,9,9,1] strides=[1,1,1,1] rates=[1,1,1,1] padding=SAME " },
  { "RandomGamma", "I(30000000) F1(2.5)", "S=int32 T=float seed=1 " },
  { "RandomPoissonV2", "I(30000000) F1(50.0)", "S=int32 R=float dtype=float seed=1 " },
  { "RandomPoissonV2", "I(3000000) F1(65900.0)", "S=int32 R=float dtype=half seed=1 " },
  { "RandomStandardNormal", "I(50000000)", "T=int32 dtype=float seed=1 " },
  { "TruncatedNormal", "I(50000000)", "T=int32 dtype=float seed=1 " },
  { "Multinomial", "f[1,100000] S(30000000)", T_F "output_dtype=int32 seed=1 " },
  { "Multinomial", "f[2,30000000] S(1)", T_F "output_dtype=int32 seed=1 " },
  { "RandomShuffle", "x9[30000000]", "T=int32 seed=1 " },
  { "GatherV2", "f[10000000] x10000000[30000000] S(0)", "Tparams=float Tindices=int32 Taxis=int32 " },
  { "GatherNd", "f[10000000] x10000000[20000000,1]", "Tparams=float Tindices=int32 " },
  { "DynamicPartition", "f[20000000] x3[20000000]", T_F "num_partitions=3 " },
  { "ScatterNd", "x1000000[20000000,1] f[20000000] I(1000000)", T_F "Tindices=int32 " },
  { "TensorScatterAdd", "f[1000000] x1000000[20000000,1] f[20000000]", T_F "Tindices=int32 " },
  { "Transpose", "f[8000,8000] I(1,0)", T_F "Tperm=int32 " },
  { "Tile", "f[1,1000] I(70000,1)", T_F "Tmultiples=int32 " },
  { "OneHot", "x200[300000] S(200) F(1.0) F(0.0)", T_F "TI=int32 " },
  { "Softmax", "f[700,100000]", T_F },
  { "SoftmaxCrossEntropyWithLogits", "f[30,1000000] f[30,1000000]", T_F },
  { "FusedBatchNormV3", "f[1,1000,1000,40] f[40] f[40] f[0] f[0]", "T=float U=float is_training=true " },
  { "BlockLSTM", "V(300) f[300,8,1000] f[8,1000] f[8,1000] f[2000,4000] f[1000] f[1000] f[1000] f[4000]", T_F },
  { "AudioSpectrogram", "f[3000000,1]", "window_size=1024 stride=64 " },
  { "Mfcc", "f[1,20000,513] S(16000)", "dct_coefficient_count=400 filterbank_channel_count=400 " },
  { "StringJoin", "t[1500000] t[1500000]", "N=2 " },
  { "StringToNumber", "t[3000000]", "out_type=float " },
  { "AsString", "f[2000000]", T_F },
  { "StringToHashBucketStrong", "t[3000000]", "num_buckets=100 key=[1,2] " },
  { "StringSplitV2", "t[1500000] W(.)", "" },
  { "StringUpper", "t[2000000]", "" },
  { "ReduceJoin", "t[2000000] I(0)", "" },
  { "ConcatV2", "t[1000000] t[1000000] S(0)", "T=string Tidx=int32 N=2 " },
  { "UnicodeTranscode", "t[2000000]", "input_encoding=UTF-8 output_encoding=UTF-16-BE " },
  { "EncodeBase64", "t[2000000]", "" },
  { "StringNGrams", "t[500000] L(0,500000)",
    "separator=x left_pad= right_pad= ngram_widths=[4] pad_width=0 preserve_short_sequences=false Tsplits=int64 " },
};
#define N_CASES (sizeof cases / sizeof *cases)

/* ---- inputs ---- */

typedef struct input {
  char kind;
  int64_t below, dims[8];
  int32_t rank;
} input;

static uint32_t draw(uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void fill_strings(tn_string *to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) REQUIRE_INT(tn_string_set(&to[i], "12.5", 4, NULL), TN_OK);
}

static tn_tensor *make_input(const input *in)
{
  static const char kinds[] = "fcndxzt";
  static const tn_dtype dtypes[] = { TN_FLOAT, TN_FLOAT, TN_FLOAT, TN_DOUBLE, TN_INT32, TN_COMPLEX64, TN_STRING };
  tn_tensor *t = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_tensor_create(dtypes[strchr(kinds, in->kind) - kinds], in->dims, in->rank, &t, &err), &err);
  int64_t n = tn_tensor_elements(t) * (in->kind == 'z' ? 2 : 1);
  uint32_t state = 1;
  void *data = tn_tensor_data(t);
  if (in->kind == 't') fill_strings(data, n);
  for (int64_t i = 0; i < n && in->kind != 't'; i++) {
    float x = (float)(draw(&state) % 65521 + 1) / 65536;
    if (in->kind == 'x') ((int32_t *)data)[i] = (int32_t)(draw(&state) % (uint32_t)in->below);
    else if (in->kind == 'd') ((double *)data)[i] = (double)x;
    else if (in->kind == 'c') ((float *)data)[i] = (float)i;
    else ((float *)data)[i] = in->kind == 'n' ? NAN : x;
  }
  return t;
}

/* ---- graphs ---- */

typedef struct text {
  char at[8192];
  size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  t->n += (size_t)vsnprintf(t->at + t->n, sizeof t->at - t->n, format, args);
  va_end(args);
  REQUIRE(t->n < sizeof t->at);
}

static const char *type_of(const char *word, size_t n)
{
  static const char *const names[][2] = { { "float", "DT_FLOAT" },  { "double", "DT_DOUBLE" },
                                          { "half", "DT_HALF" },    { "int32", "DT_INT32" },
                                          { "int64", "DT_INT64" },  { "complex64", "DT_COMPLEX64" },
                                          { "string", "DT_STRING" } };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i][0]) == n && strncmp(names[i][0], word, n) == 0) return names[i][1];
  return NULL;
}

static void add_value(text *t, const char *word, size_t n)
{
  const char *type = type_of(word, n);
  if (type != NULL) add(t, "type: %s ", type);
  else if ((n == 4 && strncmp(word, "true", 4) == 0) || (n == 5 && strncmp(word, "false", 5) == 0))
    add(t, "b: %.*s ", (int)n, word);
  else if (n > 0 && strspn(word, "-0123456789") >= n) add(t, "i: %.*s ", (int)n, word);
  else if (n > 0 && strspn(word, "-.0123456789") >= n) add(t, "f: %.*s ", (int)n, word);
  else add(t, "s: '%.*s' ", (int)n, word);
}

static void add_attrs(text *t, const char *at)
{
  for (size_t n; *(at += strspn(at, " ")) != 0; at += n) {
    n = strcspn(at, " ");
    const char *value = memchr(at, '=', n);
    REQUIRE(value != NULL);
    add(t, "attr { key: '%.*s' value { ", (int)(value - at), at);
    size_t left = n - (size_t)(++value - at);
    if (*value != '[') {
      add_value(t, value, left);
    } else {
      add(t, "list { ");
      for (const char *item = value + 1, *end = value + left - 1; item < end; item += strcspn(item, ",]") + 1)
        add_value(t, item, strcspn(item, ",]"));
      add(t, "} ");
    }
    add(t, "} } ");
  }
}

/* A constant of the numbers in parentheses. */
static void add_constant(text *t, size_t i, const char *word, size_t n)
{
  const char *list = memchr(word, '(', n), *end = word + n - 1;
  REQUIRE(list != NULL);
  bool vector = word[0] == 'I' || word[0] == 'L' || (list - word == 2);
  const char *type = "DT_INT32", *field = "int_val";
  size_t count = 1;
  switch (word[0]) {
  case 'F': type = "DT_FLOAT", field = "float_val"; break;
  case 'W': type = "DT_STRING", field = "string_val"; break;
  case 'V':
  case 'L': type = "DT_INT64", field = "int64_val"; break;
  default: break;
  }
  for (const char *c = list; c < end; c++) count += *c == ',';
  add(t,
      "node { name: 'p%zu' op: 'Const' attr { key: 'dtype' value { type: %s } } attr { key: 'value' value { tensor { "
      "dtype: %s tensor_shape { ",
      i, type, type);
  if (vector) add(t, "dim { size: %zu } ", count);
  add(t, "} ");
  for (const char *item = list + 1; item < end; item += strcspn(item, ",)") + 1)
    add(t, word[0] == 'W' ? "%s: '%.*s' " : "%s: %.*s ", field, (int)strcspn(item, ",)"), item);
  add(t, "} } } }\n");
}

static void read_input(const char *word, input *in)
{
  *in = (input){ .kind = word[0] };
  char *end;
  in->below = strtoll(word + 1, &end, 10);
  while (*end != 0 && *end != ']' && *end != ' ') in->dims[in->rank++] = strtoll(end + 1, &end, 10);
}

typedef struct run_of {
  ts t;
  const char *names[12];
  tn_tensor *feeds[12];
  size_t n;
  tn_cancellation *cancellation;
  tn_status status;
  atomic_bool over;
  int64_t ended_ns; /* in CPU time of the process */
  char node[100];
} run_of;

static int64_t clock_ns(clockid_t which)
{
  struct timespec now;
  clock_gettime(which, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void open_case(run_of *r, const stop_case *c, const char *kernels)
{
  static const char *const names[] = { "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11" };
  static const char *const dtypes[] = { "DT_FLOAT", "DT_FLOAT",     "DT_FLOAT", "DT_DOUBLE",
                                        "DT_INT32", "DT_COMPLEX64", "DT_STRING" };
  text t = { .n = 0 };
  size_t i = 0;
  for (const char *word = c->inputs; *(word += strspn(word, " ")) != 0; word += strcspn(word, " "), i++) {
    const char *kind = strchr("fcndxzt", word[0]);
    if (kind == NULL) {
      add_constant(&t, i, word, strcspn(word, " "));
      continue;
    }
    input in;
    read_input(word, &in);
    r->names[r->n] = names[i];
    r->feeds[r->n++] = make_input(&in);
    add(&t, "node { name: 'p%zu' op: 'Placeholder' attr { key: 'dtype' value { type: %s } } }\n", i,
        dtypes[kind - "fcndxzt"]);
  }
  add(&t, "node { name: 'y' op: '%s' ", c->op);
  for (size_t k = 0; k < i; k++) add(&t, "input: 'p%zu' ", k);
  add_attrs(&t, c->attrs);
  add(&t, "}\n");
  ts_init(&r->t, 1);
  REQUIRE_OK(tn_session_options_set_string(r->t.options, "kernel_plugins", kernels, &r->t.err), &r->t.err);
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  REQUIRE_OK(tn_graph_import(r->t.graph, t.at, t.n, &options, &r->t.err), &r->t.err);
  ts_start(&r->t);
}

/* ---- cancelled steps ---- */

static void *run_step(void *arg)
{
  run_of *r = arg;
  const char *fetch = "y";
  tn_tensor *out = NULL;
  tn_run_options options;
  tn_run_options_init(&options);
  options.cancellation = r->cancellation;
  r->status =
      tn_session_run(r->t.session, &options, r->names, r->feeds, r->n, &fetch, &out, 1, NULL, 0, NULL, &r->t.err);
  r->ended_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  atomic_store(&r->over, true);
  tn_tensor_unref(out);
  return NULL;
}

static void close_case(run_of *r)
{
  for (size_t i = 0; i < r->n; i++) tn_tensor_unref(r->feeds[i]);
  tn_cancellation_unref(r->cancellation);
  ts_fini(&r->t);
}

static double most_ms(bool *strict)
{
  const char *said = getenv("TENON_STOP_MS");
  *strict = said != NULL;
  return said != NULL ? atof(said) : DOUBT_MS;
}

static void stop_one(const stop_case *c, const char *kernels)
{
  run_of r = { .n = 0 };
  pthread_t thread;
  bool strict;
  double most = most_ms(&strict);
  open_case(&r, c, kernels);
  REQUIRE_OK(tn_cancellation_create(NULL, &r.cancellation, &r.t.err), &r.t.err);
  int64_t begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  REQUIRE_INT(pthread_create(&thread, NULL, run_step, &r), 0);
  while (!atomic_load(&r.over) && clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun < BEGUN_MS * INT64_C(1000000))
    ts_sleep_ms(2);
  int64_t stopped = clock_ns(CLOCK_PROCESS_CPUTIME_ID), wall = clock_ns(CLOCK_MONOTONIC);
  tn_cancellation_cancel(r.cancellation);
  pthread_join(thread, NULL);
  double ms = (double)(r.ended_ns - stopped) / 1e6, all = (double)(clock_ns(CLOCK_MONOTONIC) - wall) / 1e6;
  if (strict)
    printf("# %-36s kernels %-6s %8.2f ms of processors, %8.2f ms: %s\n", c->op, kernels, ms, all,
           tn_status_name(r.status));
  bool ended = r.status == TN_OK || r.status == TN_CANCELLED; /* a fast machine may have finished it */
  if (!ended || ms > most)
    printf("# %s %s: status %s, %s, %.1f ms\n", c->op, c->inputs, tn_status_name(r.status), tn_error_message(&r.t.err),
           ms);
  CHECK(ended);
  CHECK(ms <= most);
  close_case(&r);
}

/* `make check` tests every eighth op, enough to see whether loops stop at all. */
static void stop_all(const char *kernels)
{
  bool strict;
  const char *only = getenv("TENON_STOP_OP");
  most_ms(&strict);
  tn_test_fill_memory(!strict);
  for (size_t i = 0; i < N_CASES; i++)
    if (only != NULL ? strcmp(only, cases[i].op) == 0 : strict || i % 8 == 0) stop_one(&cases[i], kernels);
  tn_test_fill_memory(true);
}

static void stop__kernels_end_soon_after_a_cancellation(void) /* S-CAN-15 */
{
  stop_all("never");
}

static void stop__kernels_of_plugins_end_soon_after_a_cancellation(void) /* S-CAN-15 */
{
  stop_all("always");
}

/* ---- preparation ---- */

#define FLOATS(name, dims)                                                                             \
  "node { name: '" name                                                                                \
  "' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { " \
  "dtype: DT_FLOAT tensor_shape { " dims " } float_val: 1 } } } }\n"
#define OP(name, op, inputs, attrs) \
  "node { name: '" name "' op: '" op "' " inputs " attr { key: 'T' value { type: DT_FLOAT } } " attrs " }\n"
#define D(n) "dim { size: " #n " } "
#define CONVOLVED                                                      \
  OP("y", "Conv2D", "input: 'x' input: 'w'",                           \
     "attr { key: 'strides' value { list { i: 1 i: 1 i: 1 i: 1 } } } " \
     "attr { key: 'padding' value { s: 'SAME' } }")

static void open_text(run_of *r, const char *graph)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  *r = (run_of){ .n = 0 };
  ts_init(&r->t, 1);
  REQUIRE_OK(tn_session_options_set_string(r->t.options, "kernel_plugins", "never", &r->t.err), &r->t.err);
  REQUIRE_OK(tn_graph_import(r->t.graph, graph, strlen(graph), &options, &r->t.err), &r->t.err);
  ts_start(&r->t);
  REQUIRE_OK(tn_cancellation_create(NULL, &r->cancellation, &r->t.err), &r->t.err);
}

/* Cancels the step after the process has worked for `ms`; returns the milliseconds of work after
 * that. */
static double cancel_after(run_of *r, double ms)
{
  pthread_t thread;
  int64_t begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  atomic_store(&r->over, false);
  REQUIRE_INT(pthread_create(&thread, NULL, run_step, r), 0);
  while (!atomic_load(&r->over) && (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun) < ms * 1e6) ts_sleep_ms(1);
  int64_t stopped = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  tn_cancellation_cancel(r->cancellation);
  pthread_join(thread, NULL);
  return (double)(r->ended_ns - stopped) / 1e6;
}

/* Nodes with constant inputs are computed in advance, but not if that takes long, and not beyond
 * the time limit of the call. */
static void stop__constant_folding_respects_the_limits_of_the_call(void) /* S-CAN-16 */
{
  run_of r;
  bool strict;
  open_text(&r, FLOATS("x", D(1) D(900) D(900) D(32)) FLOATS("w", D(31) D(31) D(32) D(32)) CONVOLVED);
  double ms = cancel_after(&r, BEGUN_MS);
  CHECK_STATUS(r.status, TN_CANCELLED, &r.t.err);
  CHECK(ms <= most_ms(&strict));
  close_case(&r);
}

static tn_status run_for(ts *t, int64_t ms, const char *feed, tn_tensor *in)
{
  const char *fetch = "y";
  tn_tensor *out = NULL;
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = ms;
  tn_status st = tn_session_run(t->session, &options, &feed, &in, 1, &fetch, &out, 1, NULL, 0, NULL, &t->err);
  tn_tensor_unref(out);
  return st;
}

/* Weights of 100 MB are packed in the first step. A time limit that is too short for that ends
 * the step with an error that says so; a longer one does not. */
static void stop__the_time_limit_covers_preparation(void) /* S-CAN-16, S-RO-05, S-RO-07 */
{
  run_of r;
  const char *fetch = "y", *feed = "x";
  tn_callable callable;
  tn_run_options options;
  open_text(&r, "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n" FLOATS(
                    "w", D(5000) D(5000)) OP("y", "MatMul", "input: 'x' input: 'w'", ""));
  tn_tensor *x = ts_filled(2, (int64_t[]){ 20, 5000 }, 1);
  CHECK_STATUS(run_for(&r.t, 1, "x", x), TN_DEADLINE_EXCEEDED, &r.t.err);
  CHECK_CONTAINS(tn_error_message(&r.t.err), "exceeded its time limit during preparation");
  CHECK_OK(run_for(&r.t, 600000, "x", x), &r.t.err);
  CHECK_OK(run_for(&r.t, 600000, "x", x), &r.t.err);
  tn_run_options_init(&options);
  options.timeout_ms = 1; /* applies to its runs */
  CHECK_OK(tn_session_make_callable(r.t.session, &options, &feed, 1, &fetch, 1, NULL, 0, &callable, &r.t.err),
           &r.t.err);
  tn_tensor_unref(x);
  close_case(&r);
}

/* ---- state ---- */

#define REF(name, op, inputs, attrs) \
  "node { name: '" name "' op: '" op "' " inputs " attr { key: 'T' value { type: DT_FLOAT } } " attrs " }\n"
#define ELEMENTS 20000000
#define TEXT_OF(n) #n
#define TEXT(n) TEXT_OF(n)

static float element(const tn_tensor *t, int64_t i) { return ((const float *)tn_tensor_data(t))[i]; }

/* An update that has begun is completed. */
static void stop__a_variable_is_never_left_half_updated(void) /* S-CAN-17 */
{
  run_of r;
  open_text(&r, "node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' "
                "value { shape { "
                "dim { size: " TEXT(ELEMENTS) " } } } } }\n" FLOATS("one", "dim { size: " TEXT(ELEMENTS) " }")
                    REF("set", "Assign", "input: 'v' input: 'one'", "")
                        REF("y", "AssignAdd", "input: 'v' input: 'one'", ""));
  const char *set = "set", *read = "v";
  REQUIRE_OK(tn_session_run(r.t.session, NULL, NULL, NULL, 0, NULL, NULL, 0, &set, 1, NULL, &r.t.err), &r.t.err);
  for (int k = 0; k < 6; k++) {
    tn_tensor *v = NULL;
    cancel_after(&r, 3 * k);
    tn_cancellation_unref(r.cancellation);
    REQUIRE_OK(tn_cancellation_create(NULL, &r.cancellation, &r.t.err), &r.t.err);
    REQUIRE_OK(tn_session_run(r.t.session, NULL, NULL, NULL, 0, &read, &v, 1, NULL, 0, NULL, &r.t.err), &r.t.err);
    int64_t others = 0;
    for (int64_t i = 1; i < ELEMENTS; i++) others += element(v, i) != element(v, 0);
    CHECK_INT(others, 0);
    tn_tensor_unref(v);
  }
  close_case(&r);
}

/* ---- steps that kernels run ---- */

static tn_session *inner_session;           /* that the kernel of TestOuter runs */
static tn_cancellation *outer_cancellation; /* that it cancels before */
static bool outer_stopped, inner_stopped;   /* what its own step and the inner one saw then */

static tn_status prepare_like(tn_prepare_ctx *ctx, tn_error *err) { return tn_prepare_output_like(ctx, 0, 0, err); }

static tn_status compute_inner(tn_kernel_ctx *ctx)
{
  inner_stopped = tn__stopped_now();
  *(float *)ctx->outputs[0]->data = 1;
  return TN_OK;
}

static tn_status compute_outer(tn_kernel_ctx *ctx)
{
  const char *feed = "x", *fetch = "y";
  tn_tensor *x = ts_filled(0, NULL, 1), *y = NULL;
  tn_cancellation_cancel(outer_cancellation);
  outer_stopped = tn__stopped_now();
  tn_status st = tn_session_run(inner_session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, NULL);
  *(float *)ctx->outputs[0]->data = 1;
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  return st;
}

static void register_steps(void)
{
#define TEST_OP(name_)                                                                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = "x: float", .outputs = "y: float", .attrs = "", \
    .traits = TN_TRAIT_STATEFUL }
#define TEST_KERNEL(op_, compute_)                                                                        \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = op_ "_cpu", .rank = TN_RANK_C, \
    .prepare = prepare_like, .compute = compute_ }
  static const tn_op_def ops[] = { TEST_OP("TestInner"), TEST_OP("TestOuter") };
  static const tn_kernel_def kernels[] = { TEST_KERNEL("TestInner", compute_inner),
                                           TEST_KERNEL("TestOuter", compute_outer) };
  static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "test_steps", .ops = ops, .n_ops = 2,
                                       .kernels = kernels, .n_kernels = 2 };
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_register_ops(&family, &err), &err);
}

#define STEP_OF(op)                                                                              \
  "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"        \
  "node { name: 'y' op: '" op "' input: 'x' }\n"

/* Work in a kernel sees the limits of its own step, also where it is not the work of tn_parallel_for, and not those of
 * the step around it. */
static void stop__each_step_has_its_own_limits(void) /* S-CAN-15 */
{
  run_of outer, inner;
  register_steps();
  open_text(&inner, STEP_OF("TestInner"));
  open_text(&outer, STEP_OF("TestOuter"));
  inner_session = inner.t.session;
  outer_cancellation = outer.cancellation;
  outer.names[0] = "x";
  outer.feeds[0] = ts_filled(0, NULL, 1);
  outer.n = 1;
  inner_stopped = true;
  run_step(&outer);
  CHECK_STATUS(outer.status, TN_CANCELLED, &outer.t.err);
  CHECK(outer_stopped);
  CHECK(!inner_stopped);
  close_case(&outer);
  close_case(&inner);
}

TAP_MAIN(TAP_TEST(stop__kernels_end_soon_after_a_cancellation),
         TAP_TEST(stop__kernels_of_plugins_end_soon_after_a_cancellation),
         TAP_TEST(stop__constant_folding_respects_the_limits_of_the_call),
         TAP_TEST(stop__the_time_limit_covers_preparation),
         TAP_TEST(stop__a_variable_is_never_left_half_updated),
         TAP_TEST(stop__each_step_has_its_own_limits))
