/* SPDX-License-Identifier: Apache-2.0 */
/* Op schemas, their language, the tables of ops and kernels. */
#include "core/graph/graph_structs.h"
#include "conformance/support/graph_kit.h"

#include <pthread.h>
#include <string.h>

/* The first look-up registers the library's own families. This must be the first test, as it
 * happens once per process. */
static tn_status best_kernel(const tn_operation *op, const char *device, const tn_kernel_def **out, tn_error *err)
{
  size_t n;
  *out = NULL;
  return tn__kernels_find(op, device, out, 1, &n, err);
}

static void schema__first_use_without_memory_can_be_repeated(void)
{
  tn_error err = TN_ERROR_INIT;
  for (uint64_t n = 1;; n++) {
    uint64_t before = tn_test_live_bytes();
    tn_test_fail_allocation(n, 0);
    tn_status st = tn__ops_ensure(&err);
    bool failed = tn_test_allocation_failed();
    tn_test_fail_allocation(0, 0);
    if (!failed) {
      CHECK_OK(st, &err);
      break;
    }
    CHECK_STATUS(st, TN_RESOURCE_EXHAUSTED, &err);
    CHECK_INT(tn_test_live_bytes(), before);
    tn_error_clear(&err);
  }
  CHECK(tn_n_op_schemas() > 0 || tn__n_op_families == 0);
}

/* Registers one op; the caller removes the family. */
static tn_op_def one_def;
static tn_op_family one_family;
static tn_status register_one(const char *inputs, const char *outputs, const char *attrs, tn_error *err)
{
  one_def = (tn_op_def){
    .struct_size = TN_OP_DEF_SIZE, .name = "GkOne", .inputs = inputs, .outputs = outputs, .attrs = attrs
  };
  one_family = (tn_op_family){ .struct_size = TN_OP_FAMILY_SIZE, .name = "one", .ops = &one_def, .n_ops = 1 };
  return tn_register_ops(&one_family, err);
}

static const tn__attr_spec *attr_of(const tn_op_schema *s, const char *name)
{
  int32_t i = tn__schema_attr_index(s, name, strlen(name));
  REQUIRE_MSG(i >= 0, "attribute %s", name);
  return &s->attrs[i];
}

static void schema__reads_every_kind_of_attribute(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_register();
  const tn_op_schema *s = tn_op_schema_find("GkAttrs");
  REQUIRE_PTR(s);
  CHECK_INT(s->n_attrs, 14);
  CHECK_STR(attr_of(s, "s")->value.v.text.data, "plain");
  CHECK_INT(attr_of(s, "mode")->n_strings, 2);
  CHECK_INT(attr_of(s, "i")->minimum, -5);
  CHECK_INT(attr_of(s, "i")->value.v.i, 7);
  CHECK_DOUBLE(attr_of(s, "f")->value.v.f, 1.5, 0);
  CHECK_INT(attr_of(s, "b")->value.v.b, 1);
  CHECK_INT(attr_of(s, "t")->value.v.type, TN_INT32);
  CHECK_INT(attr_of(s, "shape")->value.v.shape.rank, 2);
  CHECK_INT(attr_of(s, "shape")->value.v.shape.dims[1], -1);
  CHECK_INT(attr_of(s, "l")->value.v.list.n, 2);
  CHECK_INT(attr_of(s, "lf")->value.v.list.n, 0);
  CHECK_INT(attr_of(s, "lt")->types, UINT64_C(1) << TN_FLOAT | UINT64_C(1) << TN_INT32);
  const tn__shape *shapes = attr_of(s, "lsh")->value.v.list.items;
  CHECK_INT(attr_of(s, "lsh")->value.v.list.n, 2);
  CHECK_INT(shapes[0].rank, 0);
  CHECK_INT(shapes[1].rank, -1);
  tn_error_clear(&err);
}

static void schema__reads_arguments(void)
{
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(register_one("a: float, b: T, c: N * T, d: Ref(T), e: Tlist, f: Ref(M * int32), g: M * Ref(T)",
                          "y: N*string", "T: type; N: int; M: int; Tlist: list(type)", &err),
             &err);
  const tn_op_schema *s = tn_op_schema_find("GkOne");
  REQUIRE_PTR(s);
  CHECK_INT(s->n_inputs, 7);
  CHECK_INT(s->inputs[0].dtype, TN_FLOAT);
  CHECK_INT(s->inputs[1].type_attr, 0);
  CHECK_INT(s->inputs[2].number_attr, 1);
  CHECK(s->inputs[3].is_ref && !s->inputs[1].is_ref);
  CHECK_INT(s->inputs[4].list_attr, 3);
  CHECK(s->inputs[5].is_ref && s->inputs[5].number_attr == 2 && s->inputs[5].dtype == TN_INT32);
  CHECK(s->inputs[6].is_ref && s->inputs[6].number_attr == 2 && s->inputs[6].type_attr == 0);
  CHECK_INT(s->outputs[0].dtype, TN_STRING);
  CHECK(attr_of(s, "N")->has_minimum && attr_of(s, "N")->minimum == 0); /* a number is never negative */
  tn__ops_remove(&one_family);
  CHECK_NULL(tn_op_schema_find("GkOne"));
}

static void schema__reads_named_sets_of_types(void)
{
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(register_one("", "",
                          "R: realnumbertype; T: {numbertype, variant}; Q: quantizedtype = qint16; U: list({bool})",
                          &err),
             &err);
  const tn_op_schema *s = tn_op_schema_find("GkOne");
  uint64_t r = attr_of(s, "R")->types, t = attr_of(s, "T")->types, q = attr_of(s, "Q")->types;
  CHECK_INT(__builtin_popcountll(r), 12);
  CHECK_INT(__builtin_popcountll(t), 18);
  CHECK_INT(__builtin_popcountll(q), 5);
  CHECK(t & tn__type_bit(TN_COMPLEX64) && t & tn__type_bit(TN_QINT32) && t & tn__type_bit(TN_VARIANT));
  CHECK(!(r & tn__type_bit(TN_COMPLEX64)) && r & tn__type_bit(TN_BFLOAT16));
  CHECK_INT(attr_of(s, "U")->types, tn__type_bit(TN_BOOL));
  tn__ops_remove(&one_family);
}

static void schema__rejects_malformed_texts(void)
{
  static const struct {
    const char *inputs, *attrs, *part;
  } cases[] = {
    { "x", "", "inputs: character 2: wanted ':'" },
    { "x: T", "", "inputs: character 4: wanted a type, or an attribute of kind type, found 'T'" },
    { "x: float,", "", "the name of an argument" },
    { "x: float y: float", "", "wanted ',' or the end" },
    { "x: N * float", "", "an int attribute before '*'" },
    { "x: T * float", "T: type", "an int attribute before '*'" },
    { "x: N * N * float", "N: int", "an int attribute before '*'" },
    { "x: N * L", "N: int; L: list(type)", "one type after '*'" },
    { "x: Ref(float", "", "wanted ')'" },
    { "x: Ref(Ref(float))", "", "a type" },
    { "", "T", "attrs: character 2: wanted ':', found the end" },
    { "", "T: typ", "a kind of attribute" },
    { "", "T: type; T: int", "an unused name" },
    { "", "T: {float, flot}", "wanted a type, found 'flot}'" },
    { "", "T: {}", "a type" },
    { "", "T: {float", "wanted ',' or '}'" },
    { "", "m: {'A', 'B'} = 'C'", "a default that the attribute allows" },
    { "", "T: {float} = int32", "a default that the attribute allows" },
    { "", "N: int >= 2 = 1", "a default that the attribute allows" },
    { "", "L: list(int) >= 2 = [1]", "a default that the attribute allows" },
    { "", "s: string = 'x", "a quote" },
    { "", "s: string = x", "a text in quotes" },
    { "", "s: string >= 1", "a minimum only" },
    { "", "b: bool = 1", "true or false" },
    { "", "i: int = 1.5", "';' or the end" },
    { "", "i: int = 99999999999999999999", "an integer" },
    { "", "f: float = fast", "a number" },
    { "", "s: shape = 3", "a shape" },
    { "", "s: shape = [-2]", "a dimension of at least -1" },
    { "", "t: tensor = 1", "no default" },
    { "", "l: list(list(int))", "a kind of attribute" },
    { "", "l: list(int = [1]", "')'" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_status st = register_one(cases[i].inputs, "", cases[i].attrs, &err);
    CHECK_MSG(st == TN_INVALID_ARGUMENT, "case %zu gives %s", i, tn_status_name(st));
    CHECK_CONTAINS(tn_error_message(&err), "op 'GkOne': ");
    CHECK_CONTAINS(tn_error_message(&err), cases[i].part);
    CHECK_NULL(tn_op_schema_find("GkOne"));
    if (st == TN_OK) tn__ops_remove(&one_family);
    tn_error_clear(&err);
  }
}

/* A text truncated anywhere is a schema or an error, never a crash. */
static void schema__survives_every_cut(void)
{
  const char *attrs =
      "T: {half, numbertype} = float; m: {'A', 'B\\'s'} = \"A\"; l: list(shape) >= 1 = [[1, ?], ?]; f: float = -1e-5";
  char text[200];
  for (size_t n = 0; n <= strlen(attrs); n++) {
    tn_error err = TN_ERROR_INIT;
    memcpy(text, attrs, n);
    text[n] = 0;
    tn_status st = register_one("x: T", "y: Ref(T)", text, &err);
    CHECK(st == TN_OK || st == TN_INVALID_ARGUMENT);
    if (st == TN_OK) tn__ops_remove(&one_family);
    tn_error_clear(&err);
  }
}

static void schema__formats_as_text(void)
{
  char text[200];
  gk_register();
  const tn_op_schema *s = tn_op_schema_find("GkAdd");
  size_t n = tn_op_schema_format(s, text, sizeof text);
  CHECK_STR(text, "GkAdd(x: T, y: T) -> (z: T); T: {half, float, double, int32, int64}");
  CHECK_INT(n, strlen(text));
  CHECK_INT(tn_op_schema_format(s, text, 8), n);
  CHECK_STR(text, "GkAdd(x");
  tn_op_schema_format(tn_op_schema_find("GkRun"), text, sizeof text);
  CHECK_STR(text, "GkRun() -> ()");
}

/* ---- the table ---- */

static void schema__lists_ops_in_the_order_of_names(void)
{
  gk_register();
  size_t n = tn_n_op_schemas(), seen = 0;
  CHECK(n >= gk_family.n_ops);
  for (size_t i = 0; i < n; i++) {
    const tn_op_schema *s = tn_op_schema_at(i);
    REQUIRE_PTR(s);
    if (i > 0) CHECK(strcmp(tn_op_schema_name(tn_op_schema_at(i - 1)), tn_op_schema_name(s)) < 0);
    seen += strncmp(tn_op_schema_name(s), "Gk", 2) == 0;
  }
  CHECK_INT(seen, gk_family.n_ops);
  CHECK_NULL(tn_op_schema_at(n));
  CHECK_NULL(tn_op_schema_find("NoSuchOp"));
  CHECK_NULL(tn_op_schema_find(NULL));
  CHECK_INT(tn_op_schema_traits(tn_op_schema_find("GkMerge")), TN_TRAIT_MERGE);
}

static bool has_kernel(const tn_op_schema *s, const tn_kernel_def *wanted)
{
  const tn_kernel_def *k;
  for (size_t i = 0; (k = tn_op_schema_kernel(s, i)) != NULL; i++)
    if (k == wanted) return true;
  return false;
}

static void schema__ops_of_the_library_are_sound(void)
{
  size_t n_ops = 0, n_kernels = 0;
  for (size_t f = 0; f < tn__n_op_families; f++) {
    const tn_op_family *family = tn__op_families[f];
    for (size_t i = 0; i < family->n_ops; i++, n_ops++) {
      const tn_op_schema *s = tn_op_schema_find(family->ops[i].name);
      const char *name = family->ops[i].name;
      CHECK_MSG(s != NULL, "%s: op '%s' has a malformed schema or kernel: see the log", family->name, name);
      CHECK_MSG(s == NULL || tn__schema_def(s) == &family->ops[i], "%s: op '%s' is in another family, too",
                family->name, name);
    }
    for (size_t i = 0; i < family->n_kernels; i++, n_kernels++)
      CHECK_MSG(has_kernel(tn_op_schema_find(family->kernels[i].op), &family->kernels[i]),
                "%s: kernel '%s' for op '%s' is not in the table", family->name, family->kernels[i].name,
                family->kernels[i].op);
  }
  tap_note("%zu ops, %zu kernels", n_ops, n_kernels);
}

static void schema__rejects_a_duplicate_op(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_register();
  size_t n = tn_n_op_schemas();
  CHECK_STATUS(tn_register_ops(&gk_family, &err), TN_ALREADY_EXISTS, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'GkIn'");
  CHECK_INT(tn_n_op_schemas(), n);
  /* All or nothing: the second op of the family clashes, so the first is not registered either. */
  tn_op_def two[2] = { { .struct_size = TN_OP_DEF_SIZE, .name = "GkFresh" },
                       { .struct_size = TN_OP_DEF_SIZE, .name = "GkAdd" } };
  tn_op_family f = { .struct_size = TN_OP_FAMILY_SIZE, .name = "two", .ops = two, .n_ops = 2 };
  CHECK_STATUS(tn_register_ops(&f, &err), TN_ALREADY_EXISTS, &err);
  CHECK_NULL(tn_op_schema_find("GkFresh"));
  two[1].name = "GkFresh";
  CHECK_STATUS(tn_register_ops(&f, &err), TN_ALREADY_EXISTS, &err);
  CHECK_NULL(tn_op_schema_find("GkFresh"));
  tn_error_clear(&err);
}

static void schema__rejects_bad_families(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_op_def op = { .struct_size = TN_OP_DEF_SIZE, .name = "Gk Space" };
  tn_op_family f = { .struct_size = TN_OP_FAMILY_SIZE, .name = "bad", .ops = &op, .n_ops = 1 };
  CHECK_STATUS(tn_register_ops(NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  op.name = NULL;
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  op.name = "GkShort";
  op.struct_size = 8;
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "struct_size is 8");
  op.struct_size = TN_OP_DEF_SIZE;
  op.traits = TN_TRAIT_CONSTANT; /* without a constant_attr */
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  f.struct_size = 0;
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_NULL(tn_op_schema_find("GkShort"));
  tn_error_clear(&err);
}

static void costs_one(tn_cost_ctx *ctx) { ctx->flops = 1; }
static void costs_two(tn_cost_ctx *ctx) { ctx->flops = 2; }

static void schema__costs_of_a_family_belong_to_it(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_cost_def cost = { .struct_size = TN_COST_DEF_SIZE, .op = "GkAdd" };
  tn_op_family f = { .struct_size = sizeof f, .name = "costs", .n_costs = 1 }, more = f;
  gk_register();
  const tn_op_schema *add = tn_op_schema_find("GkAdd");
  REQUIRE_PTR(add);
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err); /* no table */
  f.costs = &cost;
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "cost 0 ('GkAdd') lacks its op or function");
  cost.cost = costs_one;
  REQUIRE_OK(tn_register_ops(&f, &err), &err);
  CHECK(atomic_load(&add->cost) == &cost);
  tn_cost_def other[] = { { .struct_size = TN_COST_DEF_SIZE, .op = "GkAdd", .cost = costs_two },
                          { .struct_size = TN_COST_DEF_SIZE, .op = "GkAbsent", .cost = costs_two } };
  more.costs = other;
  more.n_costs = 2;
  REQUIRE_OK(tn_register_ops(&more, &err), &err); /* the first one registered applies; unknown ops are ignored */
  CHECK(atomic_load(&add->cost) == &cost);
  tn__ops_remove(&more);
  CHECK(atomic_load(&add->cost) == &cost);
  tn__ops_remove(&f);
  CHECK_NULL(atomic_load(&add->cost));
  tn_error_clear(&err);
}

static tn_status register_and_remove(void *arg)
{
  tn_error err = TN_ERROR_INIT;
  tn_status st = register_one("x: T, y: N * T", "z: Ref(T)",
                              "T: {float, int32} = float; N: int >= 1; l: list(string) = ['a', 'b']", &err);
  if (st == TN_OK) tn__ops_remove(&one_family);
  tn_error_clear(&err);
  return st;
}

static void schema__nothing_is_registered_without_memory(void)
{
  tn_test_oom_sweep(register_and_remove, NULL);
  CHECK_NULL(tn_op_schema_find("GkOne"));
}

static void *find_many(void *arg)
{
  for (int i = 0; i < 200; i++) {
    if (tn_op_schema_find("GkAttrs") == NULL || tn_op_schema_find("GkAdd") == NULL) return arg;
    if (tn_op_schema_at((size_t)i % gk_family.n_ops) == NULL) return arg;
  }
  return NULL;
}

static void schema__looks_up_during_registration(void)
{
  pthread_t threads[4];
  gk_register();
  for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, find_many, threads), 0);
  for (int i = 0; i < 50; i++) register_and_remove(NULL);
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    CHECK_NULL(failed);
  }
}

/* ---- kernels ---- */

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err) { return TN_OK; }
static tn_status compute(tn_kernel_ctx *ctx) { return TN_OK; }

#define KERNEL(op_, device_, types_, name_, rank_) \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = device_, .types = types_, .name = name_, .rank = rank_, \
    .prepare = prepare, .compute = compute }

static tn_operation *build(tn_graph *graph, const char *op, const char *name, tn_dtype dtype, int n_inputs)
{
  tn_error err = TN_ERROR_INIT;
  tn_output in[2];
  tn_operation *out = NULL;
  char input_name[32];
  for (int i = 0; i < n_inputs; i++) {
    snprintf(input_name, sizeof input_name, "%s_in%d", name, i);
    tn_operation_builder *b = tn_operation_begin(graph, "GkIn", input_name, 0);
    tn_operation_set_type(b, "T", dtype);
    REQUIRE_OK(tn_operation_finish(b, &out, &err), &err);
    in[i] = (tn_output){ out, 0 };
  }
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  for (int i = 0; i < n_inputs; i++) tn_operation_add_input(b, in[i]);
  REQUIRE_OK(tn_operation_finish(b, &out, &err), &err);
  return out;
}

static void kernel__best_rank_that_fits_wins(void)
{
  static const tn_kernel_def kernels[] = {
    KERNEL("GkAdd", "CPU", "T=float|double", "c_float", TN_RANK_C),
    KERNEL("GkAdd", "CPU", "T=int32", "c_int", TN_RANK_C),
    KERNEL("GkAdd", "CPU", "T=int32", "c_int_later", TN_RANK_C),
    KERNEL("GkAdd", "CPU", "T=float", "fast_float", 200),
    KERNEL("GkAdd", "CPU", NULL, "off", 0),
    KERNEL("GkAdd", "GPU", "T = float", "gpu_float", 50),
  };
  static const tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "kernels", .kernels = kernels,
                                       .n_kernels = sizeof kernels / sizeof *kernels };
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  const tn_kernel_def *k;
  gk_register();
  REQUIRE_OK(tn_register_ops(&family, &err), &err);
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  tn_operation *f = build(graph, "GkAdd", "f", TN_FLOAT, 2), *d = build(graph, "GkAdd", "d", TN_DOUBLE, 2);
  tn_operation *i = build(graph, "GkAdd", "i", TN_INT32, 2), *h = build(graph, "GkAdd", "h", TN_HALF, 2);
  CHECK_OK(best_kernel(f, "CPU", &k, &err), &err);
  CHECK_STR(k->name, "fast_float");
  CHECK_OK(best_kernel(d, "CPU", &k, &err), &err);
  CHECK_STR(k->name, "c_float");
  CHECK_OK(best_kernel(i, "CPU", &k, &err), &err);
  CHECK_STR(k->name, "c_int"); /* the first of equal ranks */
  CHECK_OK(best_kernel(f, "GPU", &k, &err), &err);
  CHECK_STR(k->name, "gpu_float");
  CHECK_STATUS(best_kernel(h, "CPU", &k, &err), TN_UNIMPLEMENTED, &err);
  CHECK_NULL(k);
  CHECK_CONTAINS(tn_error_message(&err), "node 'h': op 'GkAdd' has no kernel for device CPU with T=half");
  CHECK_CONTAINS(tn_error_message(&err), "CPU T=float|double");
  CHECK_CONTAINS(tn_error_message(&err), "GPU T = float");
  CHECK_STR(tn_error_node(&err), "h");
  tn_error_clear(&err);
  CHECK_STATUS(best_kernel(d, "GPU", &k, &err), TN_UNIMPLEMENTED, &err);
  CHECK_STR(tn_op_schema_kernel(tn_op_schema_find("GkAdd"), 0)->name, "fast_float");
  CHECK_NULL(tn_op_schema_kernel(tn_op_schema_find("GkAdd"), 6));
  tn_graph_unref(graph);
  tn__ops_remove(&family);
  CHECK_NULL(tn_op_schema_kernel(tn_op_schema_find("GkAdd"), 0));
  tn_error_clear(&err);
}

static void kernel__constrains_lists_of_types(void)
{
  static const tn_kernel_def kernel = KERNEL("GkPack", "CPU", "Tlist=float|int32", "pack", TN_RANK_C);
  static const tn_op_family family = {
    .struct_size = TN_OP_FAMILY_SIZE, .name = "pack", .kernels = &kernel, .n_kernels = 1
  };
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  const tn_kernel_def *k;
  gk_register();
  REQUIRE_OK(tn_register_ops(&family, &err), &err);
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  tn_output f = { build(graph, "GkPass", "f", TN_FLOAT, 1), 0 }, d = { build(graph, "GkPass", "d", TN_DOUBLE, 1), 0 };
  for (int bad = 0; bad <= 1; bad++) {
    tn_output list[2] = { f, bad ? d : f };
    tn_operation *op;
    tn_operation_builder *b = tn_operation_begin(graph, "GkPack", bad ? "bad" : "good", 0);
    tn_operation_add_input(b, f);
    tn_operation_add_input_list(b, list, 2);
    REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
    CHECK_STATUS(best_kernel(op, "CPU", &k, &err), bad ? TN_UNIMPLEMENTED : TN_OK, &err);
  }
  CHECK_CONTAINS(tn_error_message(&err), "Tlist=[float32,float64]");
  tn_graph_unref(graph);
  tn__ops_remove(&family);
  tn_error_clear(&err);
}

static void kernel__rejects_wrong_definitions(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_kernel_def k = KERNEL("GkAdd", "CPU", "T=float", "k", 100);
  tn_op_family f = { .struct_size = TN_OP_FAMILY_SIZE, .name = "bad", .kernels = &k, .n_kernels = 1 };
  gk_register();
  k.op = "NoSuchOp";
  CHECK_STATUS(tn_register_ops(&f, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "op 'NoSuchOp' is not registered");
  k.op = "GkAdd";
  k.types = "S=float";
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "character 1: wanted an attribute of kind type");
  k.types = "T=flat";
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  k.types = "T=float|";
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  k.types = NULL;
  k.compute = NULL;
  CHECK_STATUS(tn_register_ops(&f, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "lacks 'compute'");
  CHECK_NULL(tn_op_schema_kernel(tn_op_schema_find("GkAdd"), 0));
  tn_error_clear(&err);
}

static void kernel__of_an_unknown_op_is_not_found(void) /* S-GRA-06 */
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  tn_operation *op;
  const tn_kernel_def *k;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  tn_operation_builder *b = tn_operation_begin(graph, "Mystery", "m", TN_BUILD_KEEP_UNKNOWN_OP);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  CHECK_STATUS(best_kernel(op, "CPU", &k, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'm': op 'Mystery'");
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

TAP_MAIN(TAP_TEST(schema__first_use_without_memory_can_be_repeated),
         TAP_TEST(schema__reads_every_kind_of_attribute), TAP_TEST(schema__reads_arguments),
         TAP_TEST(schema__reads_named_sets_of_types), TAP_TEST(schema__rejects_malformed_texts),
         TAP_TEST(schema__survives_every_cut), TAP_TEST(schema__formats_as_text),
         TAP_TEST(schema__lists_ops_in_the_order_of_names), TAP_TEST(schema__ops_of_the_library_are_sound),
         TAP_TEST(schema__rejects_a_duplicate_op), TAP_TEST(schema__rejects_bad_families),
         TAP_TEST(schema__costs_of_a_family_belong_to_it),
         TAP_TEST(schema__nothing_is_registered_without_memory), TAP_TEST(schema__looks_up_during_registration),
         TAP_TEST(kernel__best_rank_that_fits_wins), TAP_TEST(kernel__constrains_lists_of_types),
         TAP_TEST(kernel__rejects_wrong_definitions), TAP_TEST(kernel__of_an_unknown_op_is_not_found))
