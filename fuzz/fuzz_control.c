/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow and state: graphs made from a fuzzer's bytes, run at both levels.
 *
 * The bytes are statements: arithmetic, branches and loops in frames, calls of functions, control edges, queues,
 * variables. Most frames are complete; some are not. For every graph: no step ends with TN_INTERNAL, and if nothing
 * depends on the order of effects, both levels give the same results, and so does a second step. */
#include <fuzz/bytes.h>
#include <fuzz/runtime.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_VALUES 24
#define MOST_DEPTH 3
#define MOST_NODES 300
#define MOST_FETCHES 3
#define FUNCTIONS 3
#define ROOM ((size_t)1 << 17)
#define MOST_MEMORY ((size_t)64 << 20)
#define STEP_MS 40

/* ---- the process ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  fuzz_limit_memory(MOST_MEMORY);
  fuzz_make_options();
  return 0;
}

/* ---- text of a graph ---- */

#define NO_NODE (-1)

/* An output of node `n<number>`; in a function outputs have names. */
typedef struct value {
  int node; /* NO_NODE: the placeholder, or the argument, of that name */
  int index;
  const char *name;
} value;

/* The values that statements of one scope may read: a branch and a loop have their own. */
typedef struct scope {
  value ints[MOST_VALUES], bools[MOST_VALUES];
  int n_ints, n_bools;
  int pivot;      /* constants wait for it; NO_NODE = none */
  int last_state; /* last node with an effect: the next one waits for it; NO_NODE = none */
} scope;

typedef struct gen {
  bytes b;
  char *text;
  size_t size;
  int n_nodes, n_frames;
  int control;      /* the next node waits for it; NO_NODE = none */
  bool in_function, full;
  bool any_order;   /* effects are unordered: results may differ */
  bool ahead;       /* a dequeue has no control input, so it may wait for a later element */
  int n_reads;      /* from the queue */
  bool state;       /* there are effects */
} gen;

static void add(gen *g, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  int n = vsnprintf(g->text + g->size, ROOM - g->size, format, args);
  va_end(args);
  if (n < 0 || (size_t)n >= ROOM - g->size) g->full = true;
  else g->size += (size_t)n;
}

static void input(gen *g, value v)
{
  if (v.node == NO_NODE) add(g, "input: '%s' ", v.name);
  else if (g->in_function) add(g, "input: 'n%d:%s:0' ", v.node, v.name);
  else add(g, "input: 'n%d:%d' ", v.node, v.index);
}

static void open_node(gen *g, int number, const char *op)
{
  add(g, "%s { name: 'n%d' op: '%s' ", g->in_function ? "node_def" : "node", number, op);
}

/* Control inputs follow the others. */
static void wait_for(gen *g, int node)
{
  if (node != NO_NODE) add(g, "input: '^n%d' ", node);
}

static void close_node(gen *g, const char *attrs)
{
  wait_for(g, g->control);
  g->control = NO_NODE;
  add(g, "%s }\n", attrs);
}

#define INT_T "attr { key: 'T' value { type: DT_INT32 } }"
#define LIST_OF(key, type) "attr { key: '" key "' value { list { type: " type " } } }"
#define IN_OUT LIST_OF("Tin", "DT_INT32") LIST_OF("Tout", "DT_INT32")

static value made(gen *g, const char *op, const char *attrs, const char *out, value a, const value *b)
{
  int number = g->n_nodes++;
  open_node(g, number, op);
  input(g, a);
  if (b != NULL) input(g, *b);
  close_node(g, attrs);
  return (value){ number, 0, out };
}

static value constant(gen *g, const scope *s, int n, bool vector)
{
  int number = g->n_nodes++;
  open_node(g, number, "Const");
  wait_for(g, s->pivot);
  add(g,
      "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 "
      "tensor_shape "
      "{ %s } int_val: %d } } } ",
      vector ? "dim { size: 2 }" : "", n);
  close_node(g, "");
  return (value){ number, 0, "output" };
}

/* ---- scopes ---- */

static void keep(value *list, int *n, value v)
{
  if (*n < MOST_VALUES) list[(*n)++] = v;
  else list[v.node % MOST_VALUES] = v;
}

static void keep_int(scope *s, value v) { keep(s->ints, &s->n_ints, v); }

/* Prefers recent values. */
static value some_int(gen *g, const scope *s)
{
  uint8_t k = next(&g->b);
  int recent = s->n_ints < 4 ? s->n_ints : 4;
  return s->ints[k < 128 ? s->n_ints - 1 - k % recent : k % s->n_ints];
}

static value compared(gen *g, const scope *s)
{
  static const char *const ops[] = { "Less", "Greater", "Equal", "NotEqual" };
  const char *op = ops[next(&g->b) % 4];
  value a = some_int(g, s), b = some_int(g, s);
  return made(g, op, INT_T, "z", a, &b);
}

static value some_bool(gen *g, scope *s)
{
  uint8_t k = next(&g->b);
  if (s->n_bools == 0 || k > 200) keep(s->bools, &s->n_bools, compared(g, s));
  return s->bools[k % s->n_bools];
}

static value switched(gen *g, value v, value by, int side)
{
  value sw = made(g, "Switch", INT_T, side ? "output_true" : "output_false", v, &by);
  sw.index = side;
  return sw;
}

#define MERGE INT_T "attr { key: 'N' value { i: 2 } }"

static void block(gen *g, scope *s, int depth);

/* ---- branches and loops ---- */

static value side_of(gen *g, const scope *s, value by, int side, int depth)
{
  scope inside = { .pivot = NO_NODE, .last_state = NO_NODE };
  for (int n = 1 + next(&g->b) % 2; n > 0; n--) keep_int(&inside, switched(g, some_int(g, s), by, side));
  value pivot = made(g, "Identity", INT_T, "output", inside.ints[0], NULL);
  keep_int(&inside, pivot);
  if (next(&g->b) % 4 != 0) inside.pivot = pivot.node; /* otherwise constants are always live */
  block(g, &inside, depth + 1);
  return inside.ints[inside.n_ints - 1];
}

static void branch(gen *g, scope *s, int depth)
{
  value by = some_bool(g, s);
  value no = side_of(g, s, by, 0, depth), yes = side_of(g, s, by, 1, depth);
  value m = made(g, "Merge", MERGE, "output", no, &yes);
  keep_int(s, m);
  if (next(&g->b) % 4 == 0) keep_int(s, (value){ m.node, 1, "value_index" });
}

static value entered(gen *g, value v, int frame, bool is_constant)
{
  char attrs[256];
  snprintf(attrs, sizeof attrs,
           INT_T "attr { key: 'frame_name' value { s: 'f%d' } } attr { key: 'is_constant' value { b: %s } }", frame,
           is_constant ? "true" : "false");
  return made(g, "Enter", attrs, "output", v, NULL);
}

static void next_iteration(gen *g, int number, value v)
{
  open_node(g, number, "NextIteration");
  input(g, v);
  close_node(g, INT_T);
}

/* A loop of at most 5 iterations, with a counter and one or two more variables. `wrong` chooses a defect: 0 = none. */
static void loop(gen *g, scope *s, int depth)
{
  enum { OTHER_FRAME = 1, NO_COND, CONSTANT_ENTER, EARLY_EXIT, FROM_OUTSIDE, KINDS = 40 };
  int n = 2 + next(&g->b) % 2, wrong = next(&g->b) % KINDS, turns = next(&g->b) % 6, frame = g->n_frames++;
  value enters[3], merges[3], bodies[3], exits[3];
  int nexts[3];
  for (int i = 0; i < n; i++) {
    value from = i == 0 ? constant(g, s, 0, false) : some_int(g, s);
    enters[i] = entered(g, from, wrong == OTHER_FRAME && i == 1 ? frame + 1 : frame, wrong == CONSTANT_ENTER && i == 1);
    nexts[i] = g->n_nodes++;
    merges[i] = made(g, "Merge", MERGE, "output", enters[i], &(value){ nexts[i], 0, "output" });
  }
  scope inside = { .pivot = merges[0].node, .last_state = NO_NODE };
  value limit =
      next(&g->b) % 2 ? constant(g, &inside, turns, false) : entered(g, constant(g, s, turns, false), frame, true);
  value go = made(g, "Less", INT_T, "z", merges[0], &limit);
  if (wrong != NO_COND) go = made(g, "LoopCond", "", "output", go, NULL);
  for (int i = 0; i < n; i++) {
    value sw = made(g, "Switch", INT_T, "output_false", merges[i], &go);
    exits[i] = made(g, "Exit", INT_T, "output", wrong == EARLY_EXIT && i == 1 ? merges[1] : sw, NULL);
    bodies[i] = made(g, "Identity", INT_T, "output", (value){ sw.node, 1, "output_true" }, NULL);
    keep_int(&inside, bodies[i]);
  }
  if (next(&g->b) % 4 == 0) keep_int(&inside, entered(g, some_int(g, s), frame, true));
  inside.pivot = bodies[0].node;
  value one = constant(g, &inside, 1, false);
  block(g, &inside, depth + 1);
  for (int i = 0; i < n; i++) {
    value v = i == 0 ? made(g, "AddV2", INT_T, "z", bodies[0], &one) : inside.ints[inside.n_ints - i];
    next_iteration(g, nexts[i], wrong == FROM_OUTSIDE && i == 1 ? s->ints[0] : v);
    keep_int(s, exits[i]);
  }
}

/* Frame nodes without a complete frame. */
static void half_a_frame(gen *g, scope *s)
{
  static const char *const ops[] = { "Exit", "NextIteration" };
  uint8_t kind = next(&g->b);
  if (kind % 3 == 0) keep_int(s, entered(g, some_int(g, s), kind % (g->n_frames + 1), kind & 64));
  else if (kind % 3 == 1) keep_int(s, made(g, ops[kind / 3 % 2], INT_T, "output", some_int(g, s), NULL));
  else keep(s->bools, &s->n_bools, made(g, "LoopCond", "", "output", some_bool(g, s), NULL));
}

/* ---- functions ---- */

static void call(gen *g, scope *s)
{
  static const char *const ops[] = { "PartitionedCall", "StatefulPartitionedCall", "If",   "StatelessIf",
                                     "While",           "StatelessWhile",          "Case", "StatelessCase" };
  uint8_t kind = next(&g->b) % 8, f = next(&g->b) % FUNCTIONS, h = next(&g->b) % FUNCTIONS;
  value v = some_int(g, s), by = { 0 };
  char attrs[600];
  if (kind < 2) {
    snprintf(attrs, sizeof attrs, IN_OUT "attr { key: 'f' value { func { name: 'F%d' } } }", f);
  } else if (kind < 4) {
    by = some_bool(g, s);
    snprintf(attrs, sizeof attrs,
             IN_OUT "attr { key: 'Tcond' value { type: DT_BOOL } } attr { key: 'then_branch' value { func "
                    "{ name: 'F%d' } } } attr { key: 'else_branch' value { func { name: 'F%d' } } }",
             f, h);
  } else if (kind < 6) {
    snprintf(attrs, sizeof attrs,
             LIST_OF("T", "DT_INT32") "attr { key: 'cond' value { func { name: 'Below' } } } attr { key: "
                                      "'body' value { func { name: 'More%d' } } }",
             f);
  } else {
    by = some_int(g, s);
    snprintf(attrs, sizeof attrs,
             IN_OUT "attr { key: 'branches' value { list { func { name: 'F%d' } func { name: 'F%d' } } } }", f, h);
  }
  keep_int(s, kind < 2 || kind == 4 || kind == 5 ? made(g, ops[kind], attrs, "output", v, NULL)
                                                 : made(g, ops[kind], attrs, "output", by, &v));
}

/* ---- effects ---- */

static value handle(gen *g, const scope *s, bool queue)
{
  int number = g->n_nodes++;
  open_node(g, number, queue ? "FIFOQueueV2" : "VarHandleOp");
  wait_for(g, s->pivot);
  add(g, queue ? LIST_OF("component_types",
                         "DT_INT32") "attr { key: 'capacity' value { i: 2 } } attr { key: 'shared_name' value { "
                                     "s: 'q' } } "
               : "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'shape' value { shape { unknown_rank: "
                 "true } } } attr { "
                 "key: 'shared_name' value { s: 'v' } } ");
  close_node(g, "");
  return (value){ number, 0, queue ? "handle" : "resource" };
}

#define DTYPE "attr { key: 'dtype' value { type: DT_INT32 } }"

static void effect(gen *g, scope *s, int depth)
{
  static const struct {
    const char *op, *attrs, *out;
    bool queue, takes;
  } kinds[] = { { "QueueEnqueueV2", LIST_OF("Tcomponents", "DT_INT32"), NULL, true, true },
                { "QueueDequeueV2", LIST_OF("component_types", "DT_INT32"), "components", true, false },
                { "QueueSizeV2", "", "size", true, false },
                { "AssignVariableOp", DTYPE, NULL, false, true },
                { "AssignAddVariableOp", DTYPE, NULL, false, true },
                { "ReadVariableOp", DTYPE, "value", false, false } };
  uint8_t kind = next(&g->b), k = kind % 6;
  g->state = true;
  if (depth > 0 || g->in_function) g->any_order = true;
  value v = some_int(g, s), to = handle(g, s, kinds[k].queue);
  int number = g->n_nodes++;
  open_node(g, number, kinds[k].op);
  input(g, to);
  if (kinds[k].takes) input(g, v);
  wait_for(g, s->last_state);
  close_node(g, kinds[k].attrs);
  bool ahead = k == 1 && kind % 4 == 1;
  g->n_reads += k == 1 || k == 2;
  g->ahead |= ahead;
  g->any_order |= kind >= 240 || (g->ahead && g->n_reads > 1);
  if (kind < 240 && !ahead) s->last_state = number;
  if (kinds[k].out != NULL) keep_int(s, (value){ number, 0, kinds[k].out });
}

/* ---- statements ---- */

static void arithmetic(gen *g, scope *s)
{
  static const char *const ops[] = { "AddV2", "Sub", "Mul", "Maximum", "Minimum", "Add" };
  const char *op = ops[next(&g->b) % 6];
  value a = some_int(g, s), b = some_int(g, s);
  keep_int(s, made(g, op, INT_T, "z", a, &b));
}

static void for_order(gen *g, const scope *s)
{
  uint8_t kind = next(&g->b);
  int on = some_int(g, s).node;
  if (kind % 3 == 0) {
    g->control = on;
    return;
  }
  int number = g->n_nodes++;
  open_node(g, number, kind % 3 == 1 ? "ControlTrigger" : "NoOp");
  wait_for(g, on);
  close_node(g, "");
  g->control = number; /* the next node waits for it */
}

static void statement(gen *g, scope *s, int depth)
{
  uint8_t kind = next(&g->b);
  switch (kind % 16) {
  case 0: keep_int(s, constant(g, s, kind / 16 - 4, kind == 0)); break;
  case 1: keep(s->bools, &s->n_bools, compared(g, s)); break;
  case 2: keep_int(s, made(g, "Identity", INT_T, "output", some_int(g, s), NULL)); break;
  case 3: {
    value by = some_bool(g, s), v = switched(g, some_int(g, s), by, kind / 128);
    keep_int(s, v);
    break;
  }
  case 4: {
    value a = some_int(g, s), b = some_int(g, s);
    keep_int(s, made(g, "Merge", MERGE, "output", a, &b));
    break;
  }
  case 5:
  case 6:
    if (depth < MOST_DEPTH) branch(g, s, depth);
    break;
  case 7:
  case 8:
    if (depth < MOST_DEPTH) loop(g, s, depth);
    break;
  case 9: call(g, s); break;
  case 10: effect(g, s, depth); break;
  case 11: for_order(g, s); break;
  case 12:
    if (kind > 200) half_a_frame(g, s);
    break;
  default: arithmetic(g, s); break;
  }
}

static void block(gen *g, scope *s, int depth)
{
  for (int n = 1 + next(&g->b) % 4; n > 0 && g->n_nodes < MOST_NODES && g->b.at < g->b.end; n--) statement(g, s, depth);
  g->control = NO_NODE; /* the next node may be in another frame */
}

/* ---- graphs ---- */

#define SIGNATURE(result) \
  "signature { name: '%s%d' input_arg { name: 'x' type: DT_INT32 } output_arg { name: 'y' type: " result " } } "

static void function(gen *g, int k)
{
  scope s = { .ints = { { NO_NODE, 0, "x" } }, .n_ints = 1, .pivot = NO_NODE, .last_state = NO_NODE };
  add(g, "function { " SIGNATURE("DT_INT32"), "F", k);
  g->control = NO_NODE;
  block(g, &s, 1);
  value y = s.ints[s.n_ints - 1];
  g->control = NO_NODE;
  if (y.node == NO_NODE) add(g, "ret { key: 'y' value: 'x' } }\n");
  else add(g, "ret { key: 'y' value: 'n%d:%s:0' } }\n", y.node, y.name);
  add(g,
      "function { " SIGNATURE(
          "DT_INT32") "node_def { name: 'a' op: 'Abs' input: 'x' " INT_T " } node_def { name: 'c' op: 'F%d' "
                      "input: 'a:y:0' } node_def { name: 'm' op: 'Maximum' input: 'c:y:0' input: 'a:y:0' " INT_T
                      " } node_def { name: 'o' op: "
                      "'OnesLike' input: 'x' " INT_T
                      " } node_def { name: 's' op: 'AddV2' input: 'm:z:0' input: 'o:y:0' " INT_T " } ret { key: 'y' "
                      "value: 's:z:0' } }\n",
      "More", k, k);
}

static void library(gen *g)
{
  g->in_function = true;
  add(g, "library { function { signature { name: 'Below' input_arg { name: 'x' type: DT_INT32 } output_arg { name: 'y' "
         "type: DT_BOOL } "
         "} node_def { name: 'k' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value "
         "{ tensor { dtype: "
         "DT_INT32 tensor_shape { } int_val: 4 } } } } node_def { name: 'l' op: 'Less' input: 'x' input: "
         "'k:output:0' " INT_T " } ret "
         "{ key: 'y' value: 'l:z:0' } }\n");
  for (int k = 0; k < FUNCTIONS; k++) function(g, k);
  add(g, "}\n");
  g->in_function = false;
}

static void graph(gen *g, scope *s)
{
  *s = (scope){ .ints = { { NO_NODE, 0, "x" } },
                .n_ints = 1,
                .bools = { { NO_NODE, 0, "p" } },
                .n_bools = 1,
                .pivot = NO_NODE,
                .last_state = NO_NODE };
  library(g);
  add(g, "node { name: 'x' op: 'Placeholder' " DTYPE " }\n"
         "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } }\n");
  g->control = NO_NODE;
  while (g->b.at < g->b.end && g->n_nodes < MOST_NODES) statement(g, s, 0);
}

/* ---- steps ---- */

typedef struct results {
  tn_status status;
  tn_tensor *at[MOST_FETCHES];
} results;

typedef struct program {
  tn_graph *graph;
  tn_tensor *fed[2];
  char names[MOST_FETCHES][32], target[32];
  size_t n_fetches, n_targets;
} program;

static void run(const program *p, tn_session *session, results *r, bool quiet)
{
  static const char *const feeds[] = { "x", "p" };
  const char *fetches[MOST_FETCHES], *target = p->target;
  tn_error err = TN_ERROR_INIT;
  tn_run_options limited;
  tn_run_options_init(&limited);
  limited.timeout_ms = STEP_MS;
  for (size_t i = 0; i < p->n_fetches; i++) fetches[i] = p->names[i];
  *r = (results){ .status = TN_OK };
  r->status = tn_session_run(session, &limited, feeds, p->fed, 2, fetches, r->at, p->n_fetches, &target, p->n_targets,
                             NULL, quiet ? NULL : &err);
#ifdef FUZZ_SHOW
  fprintf(stderr, "%s %s\n", tn_status_name(r->status), tn_error_message(&err));
#endif
  if (!quiet) check_status(r->status, &err);
  if (r->status == TN_INTERNAL) {
    fprintf(stderr, "%s\n", tn_error_message(&err));
    abort();
  }
  for (size_t i = 0; i < p->n_fetches; i++)
    if ((r->at[i] != NULL) != (r->status == TN_OK)) abort();
  tn_error_clear(&err);
}

static void results_free(results *r)
{
  for (size_t i = 0; i < MOST_FETCHES; i++) tn_tensor_unref(r->at[i]);
}

static void compare(const program *p, const results *a, const results *b, const char *what)
{
  if (a->status != TN_OK || b->status != TN_OK) return;
  for (size_t i = 0; i < p->n_fetches; i++) {
    const tn_tensor *x = a->at[i], *y = b->at[i];
    size_t n = tn_tensor_bytes(x);
    if (n == tn_tensor_bytes(y) && memcmp(tn_tensor_data(x), tn_tensor_data(y), n) == 0) continue;
    fprintf(stderr, "'%s' is %d and %d: %s differ\n", p->names[i], n > 0 ? *(int *)tn_tensor_data(x) : 0,
            tn_tensor_bytes(y) > 0 ? *(int *)tn_tensor_data(y) : 0, what);
    abort();
  }
}

static void run_program(const gen *g, const program *p)
{
  results first[2], second;
  for (int level = 0; level < 2; level++) {
    tn_session *session;
    tn_error err = TN_ERROR_INIT;
    first[level] = (results){ .status = tn_session_create(options_of[level], &session, &err) };
    if (first[level].status == TN_OK && tn_session_set_graph(session, p->graph, &err) != TN_OK) abort();
    tn_error_clear(&err);
    if (first[level].status != TN_OK) continue;
    run(p, session, &first[level], false);
    if (first[level].status != TN_DEADLINE_EXCEEDED) {
      run(p, session, &second, true);
      if (!g->state) compare(p, &first[level], &second, "two steps");
      results_free(&second);
    }
    tn_session_destroy(session);
  }
  if (!g->any_order) compare(p, &first[0], &first[1], "the levels");
  results_free(&first[0]);
  results_free(&first[1]);
}

static void choose(gen *g, const scope *s, program *p)
{
  p->n_fetches = 1 + g->size % MOST_FETCHES;
  for (size_t i = 0; i < p->n_fetches; i++) {
    value v = s->ints[i < (size_t)s->n_ints ? (size_t)s->n_ints - 1 - i : 0];
    if (v.node == NO_NODE) snprintf(p->names[i], sizeof p->names[i], "%s", v.name);
    else snprintf(p->names[i], sizeof p->names[i], "n%d:%d", v.node, v.index);
  }
  p->n_targets = s->last_state != NO_NODE;
  snprintf(p->target, sizeof p->target, "n%d", s->last_state);
}

static tn_tensor *scalar(tn_dtype dtype, int32_t n)
{
  tn_tensor *t;
  if (tn_tensor_create(dtype, NULL, 0, &t, NULL) != TN_OK) abort();
  if (dtype == TN_BOOL) *(uint8_t *)tn_tensor_data(t) = n & 1;
  else *(int32_t *)tn_tensor_data(t) = n;
  return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const tn_import_options text = { .struct_size = sizeof text, .flags = TN_IMPORT_TEXT };
  gen g = { .b = { data, data + size }, .text = malloc(ROOM) };
  tn_error err = TN_ERROR_INIT;
  scope top;
  program p;
  if (g.text == NULL || tn_graph_create(&p.graph, &err) != TN_OK) abort();
  uint8_t x = next(&g.b);
  graph(&g, &top);
#ifdef FUZZ_SHOW
  fprintf(stderr, "%s", g.text);
#endif
  tn_status st = g.full ? TN_OUT_OF_RANGE : tn_graph_import(p.graph, g.text, g.size, &text, &err);
  if (!g.full) check_status(st, &err);
#ifdef FUZZ_SHOW
  if (st != TN_OK) fprintf(stderr, "import: %s\n", tn_error_message(&err));
#endif
  if (st == TN_OK) {
    p.fed[0] = scalar(TN_INT32, x % 16 - 4);
    p.fed[1] = scalar(TN_BOOL, x / 16);
    choose(&g, &top, &p);
    run_program(&g, &p);
    tn_tensor_unref(p.fed[0]);
    tn_tensor_unref(p.fed[1]);
  }
  tn_error_clear(&err);
  tn_graph_unref(p.graph);
  free(g.text);
  return 0;
}
