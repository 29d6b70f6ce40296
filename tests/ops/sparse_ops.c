/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on sparse and ragged tensors and on segments as a program sees them: inferred shapes, inputs that contradict each
 * other, dense shapes that no machine can hold, work that is divided among threads, maps of sparse tensors, and lack of
 * memory. Recorded cases check the values. */
#include "conformance/support/op_kit.h"

#include <core/graph/graph_internal.h>
#include <ops/kernel/sorted_rows.h>

#include <stdlib.h>

#define LONGS(name, shape, values) TENSOR(name, "DT_INT64", shape, values)
#define FLOATS(name, shape, values) TENSOR(name, "DT_FLOAT", shape, values)
#define N(n) " int64_val: " #n
#define IN(name) " input: '" #name "'"
#define I32(key) TYPE(key, "DT_INT32")
#define I64(key) TYPE(key, "DT_INT64")
#define KINDS(kinds) "attr { key: 'row_partition_types' value { list { " kinds " } } }"

/* A sparse matrix of shape [3,4] with three entries, a ragged tensor of 3 rows, and operands. */
#define INDICES LONGS("at", D(3) D(2), N(0) N(1) N(1) N(3) N(2) N(0)) LONGS("size", D(2), N(3) N(4))
#define OPERANDS INDICES                                                                                           \
  FLOATS("v", D(3), "float_val: 1 float_val: 2 float_val: 3") LONGS("splits", D(4), N(0) N(2) N(2) N(3))           \
  LONGS("ids", D(3), N(0) N(0) N(2))                                                                               \
  LONGS("far", D(4), N(0) N(2) N(2) N(9)) LONGS("down", D(4), N(0) N(2) N(1) N(3))                                 \
  LONGS("huge", "", N(1125899906842624))                                                                           \
  LONGS("wide", D(2), N(1125899906842624) N(1)) LONGS("vast", D(2), N(4611686018427387904) N(4611686018427387904)) \
  LONGS("minus", D(2), N(3) N(-4)) LONGS("shuffled", D(3), N(2) N(0) N(1)) LONGS("outside", D(3), N(0) N(1) N(7))  \
  LONGS("any", "", N(-1)) LONGS("rows", "", N(3)) LONGS("wild", D(3) D(2), N(0) N(1) N(9) N(3) N(2) N(0))          \
  FLOATS("none", D(0), "") FLOATS("zero", "", "float_val: 0") FLOATS("dense", D(4) D(2), "float_val: 1")           \
  FLOATS("line", D(1) D(2), "float_val: 1") LONGS("out", D(2), N(1125899906842624) N(2))                           \
  FLOATS("few", D(2), "float_val: 1 float_val: 1") LONGS("row", "", N(0)) INTS("zero32", "", "int_val: 0")

#define TO_TENSOR(name, inputs, n, kinds)    \
  NODE(name, "RaggedTensorToTensor", inputs, \
       F I64("Tshape") I64("Tindex") INT("num_row_partition_tensors", n) KINDS(kinds))
#define SPLITS "s: 'ROW_SPLITS'"

static tn_status run_target(ts *t, const char *name)
{
  return tn_session_run(t->session, NULL, NULL, NULL, 0, NULL, NULL, 0, &name, 1, NULL, &t->err);
}

/* ---- shapes ---- */

static void sparse_ops__shapes_are_inferred(void)
{
  ts t;
  ops_open_text(&t, OPERANDS ANY("p", "DT_FLOAT")
                NODE("product", "SparseTensorDenseMatMul", IN(at) IN(v) IN(size) IN(dense), F I64("Tindices"))
                NODE("dense_of", "SparseToDense", IN(at) IN(size) IN(v) IN(zero), F I64("Tindices"))
                NODE("order", "SparseReorder", IN(at) IN(v) IN(size), F)
                NODE("fill", "SparseFillEmptyRows", IN(at) IN(v) IN(size) IN(zero), F)
                NODE("sums", "UnsortedSegmentSum", IN(dense) IN(splits) IN(rows), F I64("Tindices") I64("Tnumsegments"))
                NODE("picked", "SparseSegmentSumWithNumSegments", IN(dense) IN(ids) IN(ids) IN(rows),
                     F I64("Tidx") I64("Tsegmentids") I64("Tnumsegments"))
                TO_TENSOR("tensor", IN(size) IN(v) IN(zero) IN(splits), 1, SPLITS)
                NODE("counts", "DenseBincount", IN(ids) IN(rows) IN(none), F I64("Tidx")));
  CHECK_STR(ops_shape_of(&t, "product", 0), "[3,2]");
  CHECK_STR(ops_shape_of(&t, "dense_of", 0), "[3,4]");
  CHECK_STR(ops_shape_of(&t, "order", 0), "[3,2]");
  CHECK_STR(ops_shape_of(&t, "fill", 0), "[?,2]");
  CHECK_STR(ops_shape_of(&t, "fill", 2), "[3]");
  CHECK_STR(ops_shape_of(&t, "sums", 0), "[3,2]");
  CHECK_STR(ops_shape_of(&t, "picked", 0), "[3,2]");
  CHECK_STR(ops_shape_of(&t, "tensor", 0), "[3,4]");
  CHECK_STR(ops_shape_of(&t, "counts", 0), "[3]");
  ts_fini(&t);
}

/* TensorFlow's shape function refuses kinds of partitions that contradict each other. */
static void sparse_ops__kinds_of_partitions_must_follow_each_other(void)
{
  static const char *const nodes[] = { "ids_first", "size_alone", "size_before_splits", "lengths", "two_for_one" };
  ts t;
  ops_open_text(&t, OPERANDS TO_TENSOR("ids_first", IN(any) IN(v) IN(zero) IN(ids), 1, "s: 'VALUE_ROWIDS'")
                TO_TENSOR("size_alone", IN(any) IN(v) IN(zero) IN(rows), 1, "s: 'FIRST_DIM_SIZE'")
                TO_TENSOR("size_before_splits", IN(any) IN(v) IN(zero) IN(rows) IN(splits), 2,
                          "s: 'FIRST_DIM_SIZE' " SPLITS)
                TO_TENSOR("lengths", IN(any) IN(v) IN(zero) IN(splits), 1, "s: 'ROW_LENGTHS'")
                TO_TENSOR("two_for_one", IN(any) IN(v) IN(zero) IN(splits), 1, SPLITS SPLITS));
  for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
    const tn_operation *op = tn_graph_find(t.graph, nodes[i]);
    CHECK_STATUS(tn__operation_check_shapes(op, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "row_partition_types");
  }
  ts_fini(&t);
}

/* ---- bad inputs ---- */

typedef struct bad_node {
  const char *node, *message;
} bad_node;

#define BAD_NODES                                                                                                     \
  NODE("SparseToDense", "SparseToDense", IN(wild) IN(size) IN(v) IN(zero), F I64("Tindices"))                         \
  NODE("SparseSoftmax", "SparseSoftmax", IN(at) IN(v) IN(minus), F)                                                   \
  NODE("SparseReshape", "SparseReshape", IN(at) IN(size) IN(wide), "")                                                \
  NODE("SparseTensorDenseMatMul", "SparseTensorDenseMatMul", IN(wild) IN(v) IN(size) IN(dense), F I64("Tindices"))    \
  NODE("SparseFillEmptyRows", "SparseFillEmptyRows", IN(wild) IN(v) IN(size) IN(zero), F)                             \
  NODE("SparseConcat", "SparseConcat", IN(at) IN(at) IN(v) IN(v) IN(size) IN(minus), F INT("N", 2)                    \
       INT("concat_dim", 0))                                                                                          \
  NODE("SegmentSum", "SegmentSum", IN(v) IN(shuffled), F I64("Tindices"))                                             \
  NODE("SparseSegmentSum", "SparseSegmentSum", IN(v) IN(outside) IN(ids), F I64("Tidx") I64("Tsegmentids"))           \
  NODE("UnsortedSegmentSum", "UnsortedSegmentSum", IN(v) IN(outside) IN(rows), F I64("Tindices") I64("Tnumsegments")) \
  NODE("RaggedGather", "RaggedGather", IN(far) IN(v) IN(ids), TYPE("Tvalues", "DT_FLOAT") I64("Tindices")             \
       I64("Tsplits") INT("PARAMS_RAGGED_RANK", 1) INT("OUTPUT_RAGGED_RANK", 1))                                      \
  NODE("RaggedTensorToSparse", "RaggedTensorToSparse", IN(far) IN(v), F I64("Tsplits") INT("RAGGED_RANK", 1))         \
  NODE("RaggedTensorToVariant", "RaggedTensorToVariant", IN(far) IN(v), TYPE("Tvalues", "DT_FLOAT") I64("Tsplits")    \
       INT("RAGGED_RANK", 1) "attr { key: 'batched_input' value { b: true } }")                                       \
  NODE("RaggedBincount", "RaggedBincount", IN(far) IN(ids) IN(rows) IN(none), F I64("Tidx"))                          \
  NODE("RaggedCountSparseOutput", "RaggedCountSparseOutput", IN(far) IN(ids) IN(none), I64("T")                       \
       TYPE("output_type", "DT_FLOAT") "attr { key: 'binary_output' value { b: false } }")                            \
  NODE("DenseBincount", "DenseBincount", IN(ids) IN(rows) IN(few), F I64("Tidx"))                                     \
  TO_TENSOR("RaggedTensorToTensor", IN(any) IN(v) IN(zero) IN(down), 1, SPLITS)

static void sparse_ops__inputs_that_contradict_each_other_are_refused(void)
{
  static const bad_node bad[] = {
    { "SparseToDense", "9" },
    { "SparseSoftmax", "-4" },
    { "SparseReshape", "1125899906842624" },
    { "SparseTensorDenseMatMul", "9" },
    { "SparseFillEmptyRows", "9" },
    { "SparseConcat", "-4" },
    { "SegmentSum", "0" },
    { "SparseSegmentSum", "7" },
    { "UnsortedSegmentSum", "7" },
    { "RaggedGather", "9" },
    { "RaggedTensorToSparse", "9" },
    { "RaggedTensorToVariant", "9" },
    { "RaggedBincount", "9" },
    { "RaggedCountSparseOutput", "9" },
    { "DenseBincount", "2" },
    { "RaggedTensorToTensor", "splits" },
  };
  ts t;
  ops_open_text(&t, OPERANDS BAD_NODES);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    tn_status st = run_target(&t, bad[i].node);
    CHECK_MSG(st == TN_INVALID_ARGUMENT, "%s: status %d: %s", bad[i].node, (int)st, tn_error_message(&t.err));
    CHECK_CONTAINS(tn_error_message(&t.err), bad[i].node);
    CHECK_CONTAINS(tn_error_message(&t.err), bad[i].message);
  }
  ts_fini(&t);
}

#define VAST_NODES                                                                                      \
  NODE("dense_wide", "SparseToDense", IN(at) IN(wide) IN(v) IN(zero), F I64("Tindices"))                \
  NODE("dense_vast", "SparseToDense", IN(at) IN(vast) IN(v) IN(zero), F I64("Tindices"))                \
  NODE("product", "SparseTensorDenseMatMul", IN(at) IN(v) IN(wide) IN(line), F I64("Tindices"))         \
  NODE("fill", "SparseFillEmptyRows", IN(at) IN(v) IN(wide) IN(zero), F)                                \
  NODE("sum", "SparseReduceSum", IN(at) IN(v) IN(out) IN(last), F)                                      \
  NODE("segments", "UnsortedSegmentSum", IN(v) IN(ids) IN(huge), F I64("Tindices") I64("Tnumsegments")) \
  NODE("picked", "SparseSegmentSumWithNumSegments", IN(dense) IN(ids) IN(ids) IN(huge),                 \
       F I64("Tidx") I64("Tsegmentids") I64("Tnumsegments"))                                            \
  NODE("last_id", "SegmentSum", IN(one) IN(huge_id), F I64("Tindices"))                                 \
  NODE("counts", "DenseBincount", IN(ids) IN(huge) IN(none), F I64("Tidx"))                             \
  NODE("row_counts", "RaggedBincount", IN(splits) IN(ids) IN(huge) IN(none), F I64("Tidx"))             \
  NODE("range", "RaggedRange", IN(row) IN(huge) IN(step), I64("T") I64("Tsplits"))                      \
  TO_TENSOR("tensor", IN(wide) IN(v) IN(zero) IN(splits), 1, SPLITS)                                    \
  NODE("numbers", "AddManySparseToTensorsMap", IN(at) IN(v) IN(wide), F)                                \
  INTS("last", D(1), "int_val: 1") LONGS("step", "", N(1)) FLOATS("one", D(1), "float_val: 1")          \
  LONGS("huge_id", D(1), N(1125899906842624))

/* Small inputs ask for outputs of 2^50 rows and more. */
static void sparse_ops__outputs_that_no_machine_holds_are_refused(void)
{
  static const char *const nodes[] = { "dense_wide", "dense_vast", "product", "fill", "sum", "segments", "picked",
                                       "last_id", "counts", "row_counts", "range", "tensor", "numbers" };
  ts t;
  ops_open_text(&t, OPERANDS VAST_NODES);
  for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
    uint64_t held = tn_test_live_bytes();
    tn_status st = run_target(&t, nodes[i]);
    CHECK_MSG(st == TN_RESOURCE_EXHAUSTED || st == TN_INVALID_ARGUMENT, "%s: status %d", nodes[i], (int)st);
    CHECK(tn_test_live_bytes() < held + 100000);
  }
  ts_fini(&t);
}

/* ---- large work ---- */

enum { ROWS = 900, ENTRIES = 20000, INNER = 61, PICKED = 5000 };

static float *numbers_of(tn_tensor **out, int64_t rows, int64_t inner)
{
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, (int64_t[]){ rows, inner }, inner > 0 ? 2 : 1, out, NULL), NULL);
  float *v = tn_tensor_data(*out);
  for (int64_t i = 0; i < rows * (inner > 0 ? inner : 1); i++) v[i] = (float)((i * 7919) % 1009) / 64 - 7;
  return v;
}

static int64_t *longs_of(tn_tensor **out, int64_t n, int64_t columns)
{
  REQUIRE_OK(tn_tensor_create(TN_INT64, (int64_t[]){ n, columns }, columns > 0 ? 2 : 1, out, NULL), NULL);
  return tn_tensor_data(*out);
}

static void check_bits(const ts *t, tn_tensor *found, const float *wanted, size_t n, const char *what)
{
  (void)t;
  CHECK_MSG(found != NULL && memcmp(tn_tensor_data(found), wanted, n * sizeof *wanted) == 0, "%s", what);
  tn_tensor_unref(found);
}

/* Sums are added in the order of the rows, whatever the number of threads. */
static void sparse_ops__large_sums_are_those_of_a_loop(void)
{
  static const char *const names[] = { "at", "v", "dense", "ids", "from" };
  static const char *const fetches[] = { "product:0", "sums:0", "picked:0" };
  static const int64_t shape[] = { ROWS, ENTRIES };
  ts t;
  tn_tensor *feeds[5], *out[3] = { NULL };
  ops_open_text(&t, ANY("at", "DT_INT64") ANY("v", "DT_FLOAT") ANY("dense", "DT_FLOAT") ANY("ids", "DT_INT64")
                ANY("from", "DT_INT64") LONGS("size", D(2), N(900) N(20000)) LONGS("rows", "", N(900))
                NODE("product", "SparseTensorDenseMatMul", IN(at) IN(v) IN(size) IN(dense), F I64("Tindices"))
                NODE("sums", "UnsortedSegmentSum", IN(dense) IN(ids) IN(rows), F I64("Tindices") I64("Tnumsegments"))
                NODE("picked", "SparseSegmentSumWithNumSegments", IN(dense) IN(from) IN(from) IN(rows),
                     F I64("Tidx") I64("Tsegmentids") I64("Tnumsegments")));
  int64_t *at = longs_of(&feeds[0], ENTRIES, 2), *ids = longs_of(&feeds[3], ENTRIES, 0);
  int64_t *from = longs_of(&feeds[4], PICKED, 0);
  float *v = numbers_of(&feeds[1], ENTRIES, 0), *dense = numbers_of(&feeds[2], ENTRIES, INNER);
  float *wanted[3];
  for (int k = 0; k < 3; k++) REQUIRE((wanted[k] = calloc(ROWS * INNER, sizeof(float))) != NULL);
  for (int64_t i = 0; i < ENTRIES; i++) {
    at[2 * i] = i * 37 % shape[0];
    at[2 * i + 1] = i * 101 % shape[1];
    ids[i] = i * 17 % (ROWS + 3) - 3;
    for (int j = 0; j < INNER; j++) {
      wanted[0][at[2 * i] * INNER + j] += v[i] * dense[at[2 * i + 1] * INNER + j];
      if (ids[i] >= 0) wanted[1][ids[i] * INNER + j] += dense[i * INNER + j];
    }
  }
  for (int64_t i = 0; i < PICKED; i++) from[i] = i * ROWS / PICKED;
  for (int64_t i = 0; i < PICKED; i++)
    for (int j = 0; j < INNER; j++) wanted[2][from[i] * INNER + j] += dense[from[i] * INNER + j];
  REQUIRE_OK(tn_session_run(t.session, NULL, names, feeds, 5, fetches, out, 3, NULL, 0, NULL, &t.err), &t.err);
  for (int k = 0; k < 3; k++) check_bits(&t, out[k], wanted[k], ROWS * INNER, fetches[k]);
  for (int k = 0; k < 3; k++) free(wanted[k]);
  for (int k = 0; k < 5; k++) tn_tensor_unref(feeds[k]);
  ts_fini(&t);
}

/* ---- sorting ---- */

/* Rows are sorted by counting if their values are close together, else by merging. */
static void check_sort(int64_t n, int64_t range, int64_t least, int32_t keys, const int32_t *order)
{
  size_t bytes;
  REQUIRE(tn__int_rows_room(n, &bytes));
  int64_t *at = malloc((size_t)n * 3 * sizeof *at), bad = 0;
  void *room = malloc(bytes);
  REQUIRE(at != NULL && room != NULL);
  for (int64_t i = 0; i < 3 * n; i++) at[i] = least + i * 7919 % range * (i % 3 == 1 ? 1 : 3) / 3;
  const tn__int_rows rows = { at, n, 3, keys, order };
  tn__poll poll = tn__poll_here();
  const int64_t *sorted = tn__int_rows_sort(&rows, room, &poll);
  for (int64_t i = 1; sorted != NULL && i < n; i++) {
    int before = tn__int_rows_compare(&rows, sorted[i - 1], sorted[i]);
    bad += before > 0 || (before == 0 && sorted[i - 1] > sorted[i]);
  }
  CHECK(sorted != NULL);
  CHECK_INT(bad, 0);
  free(room);
  free(at);
}

static void sparse_ops__rows_are_sorted_and_equal_ones_keep_their_order(void)
{
  static const int32_t order[] = { 2, 0, 1 };
  static const int64_t sizes[] = { 1, 15, 63, 64, 65, 1000, 40000 };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    check_sort(sizes[i], 1, INT64_MAX - 1, 3, NULL);
    check_sort(sizes[i], 50, INT64_MIN, 2, NULL);
    check_sort(sizes[i], 63, -9, 3, order);
    check_sort(sizes[i], 900, 5, 1, order);
    check_sort(sizes[i], INT64_C(1000003), -1000, 3, NULL);
  }
}

/* ---- maps ---- */

#define MAP "attr { key: 'shared_name' value { s: 'map' } }"

static tn_tensor *fetch(ts *t, const char *name, tn_tensor *const *numbers, tn_status wanted)
{
  static const char *const feed = "numbers";
  tn_tensor *out = NULL;
  tn_status st = tn_session_run(t->session, NULL, &feed, numbers, numbers != NULL, &name, &out, 1, NULL, 0, NULL,
                                &t->err);
  CHECK_INT(st, wanted);
  return out;
}

static void sparse_ops__sparse_tensors_are_taken_once(void)
{
  static const int64_t empty_row[] = { 3, 4 };
  ts t;
  ops_open_text(&t, OPERANDS ANY("numbers", "DT_INT64")
                NODE("add", "AddManySparseToTensorsMap", IN(at) IN(v) IN(size), F MAP)
                NODE("take", "TakeManySparseFromTensorsMap", IN(numbers), TYPE("dtype", "DT_FLOAT") MAP));
  tn_tensor *numbers = fetch(&t, "add:0", NULL, TN_OK), *more = fetch(&t, "add:0", NULL, TN_OK);
  tn_tensor *taken = fetch(&t, "take:2", &numbers, TN_OK);
  REQUIRE(taken != NULL);
  CHECK_BYTES(tn_tensor_data(taken), empty_row, sizeof empty_row);
  tn_tensor_unref(taken);
  fetch(&t, "take:0", &numbers, TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "map 'map' has no sparse tensor with the number 0");
  taken = fetch(&t, "take:1", &more, TN_OK);
  CHECK(taken != NULL && ((const float *)tn_tensor_data(taken))[2] == 3);
  tn_tensor_unref(taken);
  tn_tensor_unref(more);
  tn_tensor_unref(numbers);
  ts_clean(&t, NULL);
  ts_fini(&t);
}

/* ---- lack of memory ---- */

#define TEXTS(name, shape, values) TENSOR(name, "DT_STRING", shape, values)
#define LONG "a text that does not fit into an element of its own"
#define LIST(key, items) "attr { key: '" key "' value { list { " items " } } }"
#define BOOL(key, value) "attr { key: '" key "' value { b: " #value " } }"
#define ONE_OF_EACH                                                                                           \
  TEXTS("words", D(3), "string_val: '" LONG "' string_val: 'b' string_val: '" LONG "'")                       \
  TEXTS("filler", "", "string_val: '" LONG "'") TEXTS("dash", "", "string_val: '-'")                          \
  NODE("order", "SparseReorder", IN(at) IN(words) IN(size), TYPE("T", "DT_STRING"))                           \
  NODE("join", "SparseConcat", IN(at) IN(at) IN(words) IN(words) IN(size) IN(size),                           \
       TYPE("T", "DT_STRING") INT("N", 2) INT("concat_dim", 0))                                               \
  NODE("split", "SparseSplit", IN(row) IN(at) IN(words) IN(size), TYPE("T", "DT_STRING") INT("num_split", 2)) \
  NODE("fill", "SparseFillEmptyRows", IN(at) IN(words) IN(size) IN(filler), TYPE("T", "DT_STRING"))           \
  NODE("flat", "SparseToDense", IN(at) IN(size) IN(words) IN(filler), TYPE("T", "DT_STRING") I64("Tindices")) \
  NODE("add", "SparseAdd", IN(at) IN(v) IN(size) IN(at) IN(v) IN(size) IN(zero), F TYPE("Treal", "DT_FLOAT")) \
  NODE("cross", "SparseCrossV2", IN(at) IN(at) IN(words) IN(words) IN(size) IN(size) IN(dash),                \
       INT("N", 2) LIST("sparse_types", "type: DT_STRING type: DT_STRING") LIST("dense_types", ""))           \
  NODE("ragged_cross", "RaggedCross", IN(words) IN(words) IN(splits) IN(splits),                              \
       LIST("ragged_values_types", "type: DT_STRING type: DT_STRING")                                         \
       LIST("ragged_splits_types", "type: DT_INT64 type: DT_INT64") LIST("sparse_values_types", "")           \
       LIST("dense_types", "") INT("Nsparse", 0) "attr { key: 'input_order' value { s: 'RR' } }"              \
       BOOL("hashed_output", false) INT("num_buckets", 0) INT("hash_key", 1)                                  \
       TYPE("out_values_type", "DT_STRING") TYPE("out_row_splits_type", "DT_INT64"))                          \
  NODE("gather", "RaggedGather", IN(splits) IN(words) IN(ids), TYPE("Tvalues", "DT_STRING") I64("Tindices")   \
       I64("Tsplits") INT("PARAMS_RAGGED_RANK", 1) INT("OUTPUT_RAGGED_RANK", 1))                              \
  TO_TENSOR("line_up", IN(any) IN(v) IN(zero) IN(splits), 1, SPLITS)                                          \
  NODE("to", "RaggedTensorToVariant", IN(splits) IN(words), TYPE("Tvalues", "DT_STRING") I64("Tsplits")       \
       INT("RAGGED_RANK", 1) BOOL("batched_input", true))                                                     \
  NODE("from", "RaggedTensorFromVariant", IN(to), TYPE("Tvalues", "DT_STRING") I64("Tsplits")                 \
       INT("input_ragged_rank", 0) INT("output_ragged_rank", 1))                                              \
  NODE("counts", "DenseCountSparseOutput", IN(ids) IN(nothing), I64("T") TYPE("output_type", "DT_FLOAT")      \
       BOOL("binary_output", false)) FLOATS("nothing", D(0), "")                                              \
  NODE("grad", "SparseSegmentSumGradV2", IN(v) IN(ids) IN(ids) IN(three), F I64("Tidx") I64("Tsegmentids"))   \
  INTS("three", "", "int_val: 3")

static tn_status compile_and_run(void *arg)
{
  static const char *const names[] = { "order:1", "join:1", "split:1", "fill:1", "flat:0", "add:1", "cross:1",
                                       "ragged_cross:0", "gather:1", "line_up:0", "from:1", "counts:1", "grad:0" };
  enum { FETCHES = sizeof names / sizeof names[0] };
  ts *t = arg;
  tn_callable callable;
  tn_tensor *out[FETCHES] = { NULL };
  tn_status st = tn_session_make_callable(t->session, NULL, NULL, 0, names, FETCHES, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(t->session, callable, NULL, 0, out, FETCHES, NULL, NULL);
  for (int k = 0; k < FETCHES; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(t->session, callable, NULL);
  return st;
}

static void sparse_ops__nothing_leaks_without_memory(void)
{
  ts t;
  ops_open_text(&t, OPERANDS ONE_OF_EACH);
  REQUIRE_INT(compile_and_run(&t), TN_OK);
  tn_test_oom_sweep(compile_and_run, &t);
  ts_fini(&t);
}

#define MAP_OF_EACH INDICES                                                                        \
  TEXTS("words", D(3), "string_val: '" LONG "' string_val: 'b' string_val: '" LONG "'")            \
  NODE("one", "AddSparseToTensorsMap", IN(at) IN(words) IN(size), TYPE("T", "DT_STRING") MAP)      \
  NODE("many", "AddManySparseToTensorsMap", IN(at) IN(words) IN(size), TYPE("T", "DT_STRING") MAP) \
  NODE("take", "TakeManySparseFromTensorsMap", IN(many), TYPE("dtype", "DT_STRING") MAP)

static tn_status open_and_run(void *unused)
{
  static const char *const names[] = { "one:0", "take:1" };
  tn_session *session = NULL;
  tn_tensor *out[2] = { NULL };
  (void)unused;
  tn_status st = ts_open_isolated(MAP_OF_EACH, &session);
  if (st == TN_OK) st = tn_session_run(session, NULL, NULL, NULL, 0, names, out, 2, NULL, 0, NULL, NULL);
  for (int k = 0; k < 2; k++) tn_tensor_unref(out[k]);
  tn_session_destroy(session);
  return st;
}

static void sparse_ops__maps_leak_nothing_without_memory(void)
{
  REQUIRE_INT(open_and_run(NULL), TN_OK);
  tn_test_oom_sweep(open_and_run, NULL);
}

TAP_MAIN(
  TAP_TEST(sparse_ops__shapes_are_inferred),
  TAP_TEST(sparse_ops__kinds_of_partitions_must_follow_each_other),
  TAP_TEST(sparse_ops__inputs_that_contradict_each_other_are_refused),
  TAP_TEST(sparse_ops__outputs_that_no_machine_holds_are_refused),
  TAP_TEST(sparse_ops__large_sums_are_those_of_a_loop),
  TAP_TEST(sparse_ops__rows_are_sorted_and_equal_ones_keep_their_order),
  TAP_TEST(sparse_ops__sparse_tensors_are_taken_once),
  TAP_TEST(sparse_ops__nothing_leaks_without_memory),
  TAP_TEST(sparse_ops__maps_leak_nothing_without_memory))
