/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel plugins: their registrations match their manifest, and their kernels give the same results as the library's,
 * do not write to inputs, and run on several threads at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <conformance/plugin/plugin_cases.h>
#include <conformance/plugin/plugin_world.h>

#include <tenon/plugins.h>

/* ---- registering ---- */

static bool register_them(tn_status *st)
{
  pg_start();
  if (pg_it.plugin->register_kernels == NULL) return false;
  cf_reached("its register_kernels");
  pg_world *world = pg_call_begin("its register_kernels");
  *st = pg_it.plugin->register_kernels(&pg_it.err);
  pg_call_end(world, "its register_kernels");
  return pg_check_refusal(*st, &pg_it.err, "its register_kernels");
}

static void plugin_kernels__are_registered(void) /* P-37, P-40, P-61, P-83, P-87, P-94 */
{
  tn_status st = TN_OK;
  double begin = pg_now();
  if (!register_them(&st)) return;
  CHECK_MSG(pg_now() - begin < 5, "its register_kernels took %.1f s; the time limit of a probe is 5 s",
            pg_now() - begin);
  if (st == TN_UNAVAILABLE) TAP_SKIP("UNAVAILABLE: %s", tn_error_message(&pg_it.err));
  CHECK_OK(st, &pg_it.err);
  CHECK_MSG(pg_n_families > 0, "its register_kernels returned OK and registered nothing");
}

/* Ends the test if registering fails. */
static void registered(void)
{
  tn_status st = TN_OK;
  REQUIRE_MSG(register_them(&st) && st == TN_OK, "it registers nothing: %s", tn_error_message(&pg_it.err));
}

/* Loaded by its path, as a program may do. */
static void plugin_kernels__are_taken_by_the_library(void) /* P-29, P-81 */
{
  tn_error err = TN_ERROR_INIT;
  if (!cf_runtime_enter(cf_under_test)) return;
  REQUIRE_OK(tn_runtime_allow_files(1, &err), &err);
  cf_reached("its loading by the library");
  tn_status st = tn_load_op_library(cf_under_test->plugin, NULL, &err);
  if (st == TN_UNAVAILABLE) tap_skip("UNAVAILABLE: %s", tn_error_message(&err));
  else CHECK_OK(st, &err);
  tn_error_clear(&err);
}

typedef void visit(const tn_op_family *family, const tn_kernel_def *kernel);

static void each_kernel(visit *look)
{
  for (size_t f = 0; f < pg_n_families; f++)
    for (size_t k = 0; k < pg_families[f]->n_kernels; k++) look(pg_families[f], &pg_families[f]->kernels[k]);
}

static void check_kernel(const tn_op_family *family, const tn_kernel_def *k)
{
  const char *op = k->op != NULL ? k->op : "(NULL)";
  CHECK_MSG(k->struct_size >= TN_KERNEL_DEF_SIZE, "family '%s': struct_size of the kernel of '%s' is %zu", family->name,
            op, k->struct_size);
  CHECK_MSG(k->op != NULL && k->device != NULL && k->name != NULL, "a kernel of '%s' lacks its op, device or name", op);
  CHECK_MSG(k->prepare != NULL && k->compute != NULL, "the kernel '%s' of '%s' lacks prepare or compute", k->name, op);
  CHECK_MSG(k->rank >= 0 && k->rank <= 1000, "the kernel '%s' has rank %d, wanted 0 to 1000", k->name, (int)k->rank);
  CHECK_MSG(k->flags == 0, "the kernel '%s' has flags 0x%x, wanted 0", k->name, (unsigned)k->flags);
}

static void plugin_kernels__are_well_described(void) /* P-24, P-26, P-37, P-58 */
{
  registered();
  for (size_t f = 0; f < pg_n_families; f++)
    CHECK_MSG(pg_families[f]->struct_size >= TN_OP_FAMILY_SIZE, "struct_size of family %zu is %zu", f,
              pg_families[f]->struct_size);
  each_kernel(check_kernel);
}

/* ---- the manifest ---- */

static pg_claim *claims;
static size_t n_claims;

/* Whether "T=float|double,Tidx=int32" allows the type; NULL allows all. */
static bool allows(const char *types, tn_dtype dtype)
{
  char name[40];
  if (types == NULL || dtype == TN_DTYPE_INVALID) return true;
  for (const char *at = strchr(types, '='); at != NULL; at = strpbrk(at, "|=")) {
    size_t size = strcspn(++at, "|,");
    snprintf(name, sizeof(name), "%.*s", (int)(size < 39 ? size : 39), at);
    if (tn_dtype_from_name(name) == dtype) return true;
  }
  return false;
}

static const pg_claim *current;
static bool current_is_there;

static void look_for_current(const tn_op_family *family, const tn_kernel_def *k)
{
  (void)family;
  if (strcmp(k->op, current->op) == 0 && strcmp(k->device, current->device) == 0 && allows(k->types, current->dtype))
    current_is_there = true;
}

/* The plugin's own ops are only requested after it is loaded. */
static bool is_own_op(const char *op)
{
  for (size_t f = 0; f < pg_n_families; f++)
    for (size_t i = 0; i < pg_families[f]->n_ops; i++)
      if (strcmp(pg_families[f]->ops[i].name, op) == 0) return true;
  return false;
}

static void check_claimed(const tn_op_family *family, const tn_kernel_def *k)
{
  bool op_there = false, type_there = false;
  (void)family;
  for (size_t i = 0; i < n_claims; i++) {
    if (strcmp(claims[i].op, k->op) != 0 || strcmp(claims[i].device, k->device) != 0) continue;
    op_there = true;
    type_there = type_there || allows(k->types, claims[i].dtype);
  }
  if (is_own_op(k->op)) return;
  CHECK_MSG(op_there, "the kernel '%s' is for %s@%s, which its manifest does not name: it is never loaded for it",
            k->name, k->op, k->device);
  CHECK_MSG(!op_there || type_there, "the kernel '%s' of %s is for '%s', of which its manifest names none", k->name,
            k->op, k->types != NULL ? k->types : "");
}

static void plugin_kernels__are_those_of_its_manifest(void) /* P-15, P-19 */
{
  claims = pg_claims(&n_claims);
  registered();
  CHECK_MSG(n_claims > 0, "its manifest names no kernels, so it is never loaded");
  for (size_t i = 0; i < n_claims; i++) {
    current = &claims[i];
    current_is_there = false;
    each_kernel(look_for_current);
    CHECK_MSG(current_is_there, "its manifest names %s@%s%s%s, but it registers no such kernel", current->op,
              current->device, current->dtype != TN_DTYPE_INVALID ? ":" : "",
              current->dtype != TN_DTYPE_INVALID ? tn_dtype_name(current->dtype) : "");
  }
  each_kernel(check_claimed);
  free(claims);
}

/* Whether the list "AcmeScale,AcmeClip" contains the name. */
static bool names(const char *list, const char *op)
{
  size_t size = strlen(op);
  for (const char *at = list; at != NULL && *at != '\0'; at += strcspn(at, ","), at += *at == ',')
    if (strcspn(at, ",") == size && memcmp(at, op, size) == 0) return true;
  return false;
}

/* Its own ops: a graph that uses one loads the plugin. */
static void plugin_kernels__ops_are_those_of_its_manifest(void) /* P-15, P-19 */
{
  const char *ops = pg_value(pg_the_file(), "ops");
  registered();
  for (const char *at = ops; at != NULL && *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    char op[128];
    snprintf(op, sizeof(op), "%.*s", (int)strcspn(at, ","), at);
    CHECK_MSG(is_own_op(op), "its manifest names the op '%s', but it does not register it", op);
  }
  for (size_t f = 0; f < pg_n_families; f++)
    for (size_t i = 0; i < pg_families[f]->n_ops; i++)
      if (!names(ops, pg_families[f]->ops[i].name))
        cf_note("it registers the op '%s', but its manifest does not name it: a graph that uses the op does not load "
                "the plugin",
                pg_families[f]->ops[i].name);
}

/* ---- computing ---- */

/* A case with the results of the library's kernels; for the plugin's own op, the results of its kernel. */
typedef struct example {
  const pg_claim *claim;
  const pg_shapes *shapes;
  tn_tensor *feeds[PG_MOST_INPUTS];
  tn_tensor *wanted;
  char own[80]; /* the library's kernel */
} example;

static example *examples;
static size_t n_examples;

/* Appends to a text of `size` bytes. */
__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size, const char *format, ...)
{
  size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, size - used, format, args);
  va_end(args);
}

/* Whether a kernel's code is in the file under test. */
static bool is_of_the_plugin(const tn_kernel_def *k)
{
  Dl_info where;
  void *code = NULL;
  memcpy(&code, &k->compute, sizeof(code));
  if (dladdr(code, &where) == 0 || where.dli_fname == NULL || cf_under_test->plugin == NULL) return false;
  const char *in = strrchr(where.dli_fname, '/'), *file = strrchr(cf_under_test->plugin, '/');
  return in != NULL && file != NULL && strcmp(in, file) == 0;
}

/* Appends the loaded kernels of the plugin that may compute the case: " 'acme_scale_float'". */
static void name_kernels(const pg_claim *claim, char *text, size_t size)
{
  const tn_op_schema *schema = tn_op_schema_find(claim->op);
  const tn_kernel_def *k;
  for (size_t i = 0; schema != NULL && (k = tn_op_schema_kernel(schema, i)) != NULL; i++)
    if (is_of_the_plugin(k) && strcmp(k->device, claim->device) == 0 && allows(k->types, claim->dtype))
      append(text, size, " '%.60s'", k->name);
}

/* Describes the step, for the report if the process ends: "its kernel 'acme_scale_float' of AcmeScale (float32), inputs
 * [3, 8]". */
static const char *name_case(const char *whose, const pg_claim *claim, const pg_shapes *shapes, const char *more)
{
  static char text[CF_STEP_BYTES];
  snprintf(text, sizeof(text), "%s kernel", whose);
  if (strcmp(whose, "its") == 0) name_kernels(claim, text, sizeof(text));
  append(text, sizeof(text), " of %s (%s), inputs", claim->op,
         tn_dtype_name(claim->dtype != TN_DTYPE_INVALID ? claim->dtype : TN_FLOAT));
  for (int i = 0; i < shapes->n; i++) {
    append(text, sizeof(text), "%s [", i > 0 ? "," : "");
    for (int32_t d = 0; d < shapes->rank[i]; d++)
      append(text, sizeof(text), "%s%lld", d > 0 ? ", " : "", (long long)shapes->dims[i][d]);
    append(text, sizeof(text), "]");
  }
  append(text, sizeof(text), "%s", more);
  return text;
}

static void drop_feeds(example *e)
{
  for (int k = 0; k < PG_MOST_INPUTS; k++) tn_tensor_unref(e->feeds[k]);
}

static void add_example(const pg_claim *claim, const pg_shapes *shapes, bool own_op)
{
  example e = { .claim = claim, .shapes = shapes };
  tn_graph *graph = pg_case_graph(claim, shapes);
  const char *kernel_plugins = own_op ? "always" : "never";
  tn_session *session = graph != NULL ? pg_case_session(graph, kernel_plugins) : NULL;
  cf_reached(name_case(own_op ? "its" : "the library's own", claim, shapes, ""));
  bool good = session != NULL && pg_case_feeds(claim, shapes, e.feeds) &&
              pg_case_run(session, e.feeds, shapes->n, &e.wanted, e.own, NULL) == TN_OK;
  if (own_op) e.own[0] = '\0';
  tn_session_destroy(session);
  tn_graph_unref(graph);
  if (good) examples[n_examples++] = e;
  else drop_feeds(&e);
}

/* Collects cases for each CPU op of the manifest, with suitable shapes. Runs the library's kernels first, because once
 * the plugin is loaded, any session may select its kernels. */
static void find_examples(size_t from, size_t to)
{
  char select[160];
  snprintf(select, sizeof(select), "direct,%s", cf_under_test->name);
  setenv("TENON_PLUGIN_SELECT", select, 1); /* no other kernels */
  bool found = cf_runtime_enter(cf_under_test);
  REQUIRE_MSG(found, "%s is not found", cf_under_test->name);
  claims = pg_claims(&n_claims);
  examples = cf_alloc(n_claims * (to - from), sizeof(example));
  const char *ops = pg_value(pg_the_file(), "ops");
  for (int own_op = 0; own_op <= 1; own_op++)
    for (size_t i = 0; i < n_claims; i++) {
      if (strcmp(claims[i].device, "CPU") != 0 || names(ops, claims[i].op) != (own_op == 1)) continue;
      for (size_t k = from; k < to; k++) add_example(&claims[i], &pg_all_shapes[k], own_op == 1);
    }
}

/* Loads the plugin, so that the names of its kernels are known before one runs. Other tests report a refusal. */
static void load_it(void)
{
  cf_reached("its loading by the library");
  if (tn_runtime_allow_files(1, NULL) == TN_OK) tn_load_op_library(cf_under_test->plugin, NULL, NULL);
}

/* Calls check for each case with a session that may use the plugin; check returns whether the plugin's kernel ran. */
static void each_example(size_t from, size_t to, bool (*check)(const example *e, tn_session *session))
{
  size_t ours = 0, ops = 0;
  const pg_claim *last = NULL;
  find_examples(from, to);
  load_it();
  for (size_t i = 0; i < n_examples; i++) {
    example *e = &examples[i];
    tn_graph *graph = pg_case_graph(e->claim, e->shapes);
    tn_session *session = graph != NULL ? pg_case_session(graph, "always") : NULL;
    bool used = session != NULL && check(e, session);
    ops += used && e->claim != last;
    if (used) last = e->claim;
    ours += used;
    tn_session_destroy(session);
    tn_graph_unref(graph);
    drop_feeds(e);
    tn_tensor_unref(e->wanted);
  }
  cf_note("its kernels computed %zu of %zu cases, for %zu of %zu entries of its manifest", ours, n_examples, ops,
          n_claims);
  free(examples);
  free(claims);
  if (ours == 0) tap_skip("no case was found that its kernels accept");
}

static tn_status run_example(const example *e, tn_session *session, tn_tensor **found, char *kernel, tn_error *err)
{
  return pg_case_run(session, (tn_tensor *const *)e->feeds, e->shapes->n, found, kernel, err);
}

static bool compare(const example *e, tn_session *session)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *found = NULL;
  char kernel[80];
  int64_t at = -1;
  cf_reached(name_case("its", e->claim, e->shapes, ""));
  tn_status st = run_example(e, session, &found, kernel, &err);
  bool good =
      CHECK_MSG(st == TN_OK, "%s: with the plugin's kernels it fails: %s", e->claim->op, tn_error_message(&err));
  if (good && !pg_same_values(e->wanted, found, &at))
    FAIL("%s: '%s' differs from '%s', at element %lld: %g, wanted %g", e->claim->op, kernel, e->own, (long long)at,
         at >= 0 ? pg_element(found, at) : NAN, at >= 0 ? pg_element(e->wanted, at) : NAN);
  tn_tensor_unref(found);
  tn_error_clear(&err);
  return strcmp(e->own, kernel) != 0; /* equal if it declined and the library's kernel ran */
}

/* Feeds are read-only: a kernel that writes to them raises a signal. */
static void plugin_kernels__give_the_results_of_the_librarys_own(void) /* P-58, S-RUN-01, S-RUN-28, P-94 */
{
  each_example(0, pg_first_empty, compare);
}

static void plugin_kernels__take_values_without_elements(void) /* P-58, S-RUN-01 */
{
  each_example(pg_first_empty, pg_n_shapes, compare);
}

/* ---- threads and memory ---- */

enum { AT_ONCE = 8 }; /* steps of each of four threads */

typedef struct shared {
  const example *example;
  tn_session *session;
  atomic_int wrong;
} shared;

static void run_often(void *user, int thread)
{
  shared *s = user;
  (void)thread;
  for (int i = 0; i < AT_ONCE; i++) {
    tn_tensor *found = NULL;
    int64_t at;
    tn_status st = run_example(s->example, s->session, &found, NULL, NULL);
    if (st != TN_OK || !pg_same_values(s->example->wanted, found, &at)) atomic_fetch_add(&s->wrong, 1);
    tn_tensor_unref(found);
  }
}

static bool takes(const example *e, tn_session *session)
{
  tn_tensor *found = NULL;
  char kernel[80] = "";
  cf_reached(name_case("its", e->claim, e->shapes, ""));
  bool good = run_example(e, session, &found, kernel, NULL) == TN_OK && strcmp(e->own, kernel) != 0;
  tn_tensor_unref(found);
  return good;
}

static bool run_at_once(const example *e, tn_session *session)
{
  shared s = { .example = e, .session = session };
  if (!takes(e, session)) return false;
  cf_reached(name_case("its", e->claim, e->shapes, ", on 4 threads at once"));
  pg_threads(4, run_often, &s);
  CHECK_MSG(atomic_load(&s.wrong) == 0, "%s on 4 threads: %d of %d steps failed or gave wrong values", e->claim->op,
            atomic_load(&s.wrong), 4 * AT_ONCE);
  return true;
}

static void plugin_kernels__run_on_several_threads(void) /* P-69 */
{
  each_example(0, pg_first_empty, run_at_once);
}

/* Sessions in sequence: the resources of create and prepare must be released. */
static bool open_again(const example *e, tn_session *session)
{
  static int done;
  if (done >= 5 || !takes(e, session)) return false;
  done++;
  pg_held before = { 0 };
  for (int i = 0; i < 60; i++) {
    tn_tensor *found = NULL;
    if (i == 20) before = pg_measure();
    tn_session *again = pg_case_session(tn_session_graph(session), "always");
    REQUIRE(again != NULL && run_example(e, again, &found, NULL, NULL) == TN_OK);
    tn_tensor_unref(found);
    tn_session_destroy(again);
  }
  pg_check_held(&before, e->claim->op, 32768);
  return true;
}

static void plugin_kernels__leave_nothing(void) /* P-46 */
{
  each_example(0, pg_first_empty, open_again);
}

/* ---- side effects ---- */

static bool run_watched(const example *e, tn_session *session)
{
  char call[CF_STEP_BYTES];
  snprintf(call, sizeof(call), "%s", name_case("its", e->claim, e->shapes, ""));
  pg_world *world = pg_call_begin(call);
  bool used = takes(e, session);
  pg_call_end(world, call);
  return used;
}

static void plugin_kernels__change_nothing_else(void) /* P-101 */
{
  pg_watch();
  each_example(0, pg_first_empty, run_watched);
}

static void plugin_kernels__change_nothing_else_when_loaded(void) /* P-101 */
{
  pg_watch();
  registered();
}

TAP_MAIN(
  TAP_TEST(plugin_kernels__are_registered),
  TAP_TEST(plugin_kernels__are_taken_by_the_library),
  TAP_TEST(plugin_kernels__are_well_described),
  TAP_TEST(plugin_kernels__are_those_of_its_manifest),
  TAP_TEST(plugin_kernels__ops_are_those_of_its_manifest),
  TAP_TEST(plugin_kernels__give_the_results_of_the_librarys_own),
  TAP_TEST(plugin_kernels__take_values_without_elements),
  TAP_TEST(plugin_kernels__run_on_several_threads),
  TAP_TEST(plugin_kernels__leave_nothing),
  TAP_TEST(plugin_kernels__change_nothing_else),
  TAP_TEST(plugin_kernels__change_nothing_else_when_loaded))
