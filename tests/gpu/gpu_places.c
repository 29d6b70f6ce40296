/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of the runtime gpu that move elements, or add them up at other places or along an axis:
 * all of it runs on the device, and results equal those of `direct`. */
#include <stdio.h>

#include "conformance/support/calls_kit.h"
#include "tests/support/gpu_kit.h"

static int all_on_device;

static void hear(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  all_on_device += strstr(line, "a plan for ") != NULL && strstr(line, " on the device, 0 on the CPU") != NULL;
}

/* ---- graphs: x of some rows and columns, i of indices ---- */

#define INTS(name, dims, values)                                                                              \
  NODE(name, "Const", "",                                                                                     \
       "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 " \
       "tensor_shape { " dims " } tensor_content: '" values "' } } }")
#define D(n) "dim { size: " n " } "
#define INT_OF_32(bytes) bytes "\\000\\000\\000"
#define GRAPH_OF(type) IN("x", type) IN("i", "DT_INT32")
#define FLAG(key) "attr { key: '" key "' value { b: true } }"
#define BLOCKS "attr { key: 'Tblock_shape' value { type: DT_INT32 } }"
#define INDICES "attr { key: 'Tindices' value { type: DT_INT32 } }"

typedef struct scene {
  const char *text;
  tn_dtype dtype;    /* of x */
  int64_t rows, columns;
  int32_t n, i[6];
} scene;

#define CUMULATES(op, axis, attrs) \
  GRAPH_OF("DT_FLOAT")             \
  NODE("axis", "Const", "", INT_OF(axis)) NODE("y", op, "input: 'x' input: 'axis'", T("DT_FLOAT") attrs)
#define CUMULATES_INTEGERS(axis, attrs) \
  GRAPH_OF("DT_INT32")                  \
  NODE("axis", "Const", "", INT_OF(axis)) NODE("y", "Cumsum", "input: 'x' input: 'axis'", T("DT_INT32") attrs)
/* Updates for the rows selected by i, in another order: the rows of x from the last to the
 * first. */
#define SCATTERS(op, type) \
  GRAPH_OF(type) INTS("axes", D("1"), INT_OF_32("\\000")) \
  NODE("turned", "ReverseV2", "input: 'x' input: 'axes'", T(type)) \
  NODE("updates", "Gather", "input: 'turned' input: 'i'", "attr { key: 'Tparams' value { type: " type " } }" INDICES) \
  NODE("rows", "ExpandDims", "input: 'i' input: 'one'", T("DT_INT32")) NODE("one", "Const", "", INT_OF("1")) \
  NODE("y", op, "input: 'x' input: 'rows' input: 'updates'", T(type) INDICES)

/* x of 6 x 20 as [batch, places, heads, features] and as [features, heads, places], with the
 * products of attention. */
#define EQUATION(name, text, x, y)                      \
  NODE(name, "Einsum", "input: '" x "' input: '" y "'", \
       T("DT_FLOAT") "attr { key: 'N' value { i: 2 } } attr { key: 'equation' value { s: '" text "' } }")
#define IN_SHAPE(name, n, dims) \
  INTS(name "_dims", D(n), dims) NODE(name, "Reshape", "input: 'x' input: '" name "_dims'", T("DT_FLOAT") \
       "attr { key: 'Tshape' value { type: DT_INT32 } }")
#define HEADS \
  GRAPH_OF("DT_FLOAT") IN_SHAPE("q", "4", INT_OF_32("\\002") INT_OF_32("\\003") INT_OF_32("\\004") INT_OF_32("\\005")) \
  IN_SHAPE("w", "3", INT_OF_32("\\005") INT_OF_32("\\004") INT_OF_32("\\006"))

static const scene scenes[] = {
  { CUMULATES("Cumsum", "1", ""), TN_FLOAT, 3, 5, .n = 1 },
  { CUMULATES("Cumsum", "0", FLAG("exclusive")), TN_FLOAT, 700, 3, .n = 1 },
  { CUMULATES("Cumsum", "1", FLAG("reverse")), TN_FLOAT, 2, 1500, .n = 1 },
  { CUMULATES("Cumsum", "-1", FLAG("reverse") FLAG("exclusive")), TN_FLOAT, 2, 577, .n = 1 },
  { CUMULATES("Cumsum", "1", ""), TN_FLOAT, 1, 512, .n = 1 },
  { CUMULATES("Cumprod", "0", ""), TN_FLOAT, 6, 4, .n = 1 },
  { CUMULATES_INTEGERS("1", ""), TN_INT32, 3, 4099, .n = 1 },
  { CUMULATES_INTEGERS("0", FLAG("exclusive")), TN_INT32, 5, 7, .n = 1 },
  { SCATTERS("TensorScatterAdd", "DT_FLOAT"), TN_FLOAT, 5, 3, 6, { 2, 0, 2, 4, 2, 0 } },
  { SCATTERS("TensorScatterSub", "DT_INT32"), TN_INT32, 5, 3, 4, { 1, 1, 1, 1 } },
  { SCATTERS("TensorScatterMax", "DT_FLOAT"), TN_FLOAT, 5, 3, 3, { 4, 0, 3 } },
  { SCATTERS("TensorScatterMin", "DT_INT32"), TN_INT32, 5, 3, 3, { 4, 0, 4 } },
  { SCATTERS("TensorScatterUpdate", "DT_FLOAT"), TN_FLOAT, 5, 3, 5, { 3, 1, 3, 3, 0 } }, /* the last one wins */
  { GRAPH_OF("DT_FLOAT") INTS("shift", D("2"), INT_OF_32("\\003") "\\376\\377\\377\\377")
        INTS("axes", D("2"), INT_OF_32("\\001") INT_OF_32("\\000"))
            NODE("y", "Roll", "input: 'x' input: 'shift' input: 'axes'",
                 T("DT_FLOAT") "attr { key: 'Tshift' value { type: DT_INT32 } } attr { key: 'Taxis' value { type: "
                               "DT_INT32 } }"),
    TN_FLOAT, 5, 7, .n = 1 },
  { GRAPH_OF("DT_FLOAT") NODE("lower", "Const", "", INT_OF("1")) NODE("upper", "Const", "", INT_OF("-1"))
        NODE("y", "MatrixBandPart", "input: 'x' input: 'lower' input: 'upper'",
             T("DT_FLOAT") "attr { key: 'Tindex' value { type: DT_INT32 } }"),
    TN_FLOAT, 5, 4, .n = 1 },
  { GRAPH_OF("DT_INT32") NODE("lower", "Const", "", INT_OF("0")) NODE("upper", "Const", "", INT_OF("2"))
        NODE("y", "MatrixBandPart", "input: 'x' input: 'lower' input: 'upper'",
             T("DT_INT32") "attr { key: 'Tindex' value { type: DT_INT32 } }"),
    TN_INT32, 4, 6, .n = 1 },
  { GRAPH_OF("DT_FLOAT") INTS("block", D("1"), INT_OF_32("\\003"))
        INTS("pads", D("1") D("2"), INT_OF_32("\\002") INT_OF_32("\\000"))
            NODE("y", "SpaceToBatchND", "input: 'x' input: 'block' input: 'pads'",
                 T("DT_FLOAT") BLOCKS "attr { key: 'Tpaddings' value { type: DT_INT32 } }"),
    TN_FLOAT, 4, 7, .n = 1 },
  { GRAPH_OF("DT_FLOAT") INTS("block", D("1"), INT_OF_32("\\002"))
        INTS("crops", D("1") D("2"), INT_OF_32("\\001") INT_OF_32("\\002"))
            NODE("y", "BatchToSpaceND", "input: 'x' input: 'block' input: 'crops'",
                 T("DT_FLOAT") BLOCKS "attr { key: 'Tcrops' value { type: DT_INT32 } }"),
    TN_FLOAT, 4, 5, .n = 1 },
  { GRAPH_OF("DT_INT32") NODE("k", "Const", "", INT_OF("17"))
        NODE("top", "TopKV2", "input: 'x' input: 'k'", T("DT_INT32")) NODE("y", "Neg", "input: 'top:1'", T("DT_INT32")),
    TN_INT32, 3, 300, .n = 1 }, /* equal elements: the first comes first */
  { GRAPH_OF("DT_INT32") INTS("shape", D("3"), INT_OF_32("\\005") INT_OF_32("\\002") INT_OF_32("\\007"))
        INTS("begin", D("3"), INT_OF_32("\\003") INT_OF_32("\\001") INT_OF_32("\\000"))
            INTS("end", D("3"), INT_OF_32("\\000") INT_OF_32("\\002") INT_OF_32("\\007"))
                INTS("steps", D("3"), "\\376\\377\\377\\377" INT_OF_32("\\001") INT_OF_32("\\003")) NODE(
                    "y", "StridedSliceGrad", "input: 'shape' input: 'begin' input: 'end' input: 'steps' input: 'x'",
                    T("DT_INT32") "attr { key: 'Index' value { type: DT_INT32 } } attr { key: 'shrink_axis_mask' value "
                                  "{ i: 2 } }"),
    TN_INT32, 2, 3, .n = 1 },
  { HEADS EQUATION("y", "aecd,abcd->acbe", "q", "q"), TN_FLOAT, 6, 20, .n = 1 },
  { HEADS EQUATION("scores", "aecd,abcd->acbe", "q", "q") EQUATION("y", "acbe,aecd->abcd", "scores", "q"), TN_FLOAT, 6,
    20, .n = 1 },
  { HEADS EQUATION("y", "abhc,cde->abhde", "q", "w"), TN_FLOAT, 6, 20, .n = 1 },
  { HEADS EQUATION("y", "...hc,chd->...d", "q", "w"), TN_FLOAT, 6, 20, .n = 1 },
  { HEADS EQUATION("y", "abhc,cde->ead", "q", "w"), TN_FLOAT, 6, 20, .n = 1 },
};
enum { N_SCENES = sizeof scenes / sizeof *scenes };

static void open_on(ts *t, const char *target, int level, const char *text)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

static tn_tensor *values_of(const scene *s)
{
  const int64_t dims[] = { s->rows, s->columns };
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(s->dtype, dims, 2, &t, NULL), NULL);
  for (int64_t i = 0; i < s->rows * s->columns; i++) {
    int32_t number = (int32_t)(i * 37 % 101) - 50;
    if (s->dtype == TN_FLOAT) ((float *)tn_tensor_data(t))[i] = (float)number / 32;
    else ((int32_t *)tn_tensor_data(t))[i] = number * 40000001; /* sums wrap */
  }
  return t;
}

static tn_tensor *answer(const scene *s, const char *target, int level)
{
  const int64_t n = s->n;
  ts t;
  tn_tensor *feeds[2] = { values_of(s), NULL }, *out = NULL;
  const char *fetch = "y";
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &n, 1, s->i, (size_t)n * sizeof *s->i, &feeds[1], NULL), NULL);
  open_on(&t, target, level, s->text);
  REQUIRE_OK(tn_session_run(t.session, NULL, NAMES("x", "i"), feeds, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err),
             &t.err);
  ts_fini(&t);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  return out;
}

static void check_same(tn_tensor *a, tn_tensor *b, size_t number)
{
  int wrong = 0;
  REQUIRE_INT(tn_tensor_rank(a), tn_tensor_rank(b));
  for (int32_t d = 0; d < tn_tensor_rank(a); d++) REQUIRE_INT(tn_tensor_dims(a)[d], tn_tensor_dims(b)[d]);
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    const float *x = tn_tensor_data(a), *y = tn_tensor_data(b);
    const int32_t *p = tn_tensor_data(a), *q = tn_tensor_data(b);
    if (tn_tensor_dtype(a) == TN_FLOAT ? x[i] - y[i] > 1e-4f || y[i] - x[i] > 1e-4f : p[i] != q[i]) wrong++;
  }
  CHECK_MSG(wrong == 0, "scene %zu: %d of %lld elements differ", number, wrong, (long long)tn_tensor_elements(a));
}

static void gpu_places__results_on_the_device_equal_those_of_the_cpu(void)
{
  GPU_NEEDS_DEVICE();
  for (int level = 0; level <= 1; level++)
    for (size_t i = 0; i < N_SCENES; i++) {
      all_on_device = 0;
      tn_set_log_sink(hear, NULL);
      tn_set_log_level(TN_LOG_INFO);
      tn_tensor *device = answer(&scenes[i], "gpu:placement=device", level);
      tn_set_log_level(TN_LOG_WARNING);
      tn_set_log_sink(NULL, NULL);
      tn_tensor *cpu = answer(&scenes[i], "direct", level);
      CHECK_MSG(all_on_device == 1, "scene %zu at level %d is not on the device", i, level);
      check_same(cpu, device, i);
      tn_tensor_unref(cpu);
      tn_tensor_unref(device);
    }
}

TAP_MAIN(TAP_TEST(gpu_places__results_on_the_device_equal_those_of_the_cpu))
