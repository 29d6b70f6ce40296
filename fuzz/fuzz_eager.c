/* SPDX-License-Identifier: Apache-2.0 */
/* An eager session used by a program that makes any calls in any order.
 *
 * The bytes are calls: operations by name and by kept op, with handles that are valid, released or of no session;
 * scopes, copies, detached tensors, safe points, waits, resets, allocation failures. For every sequence: a failed
 * status has a message, outputs exist exactly if the call was OK, the counters are consistent, and destroying the
 * session frees all memory. */
#include <fuzz/bytes.h>
#include <fuzz/runtime.h>

#include <stdbool.h>
#include <stdio.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_MEMORY ((size_t)16 << 20)
#define MOST_CALLS 80
#define HANDLES 8
#define OPS 3
#define MOST_OUTPUTS 6
#define TIMES 5

typedef struct world {
  bytes b;
  tn_eager_session *session;
  tn_eager_handle handles[HANDLES];
  tn_eager_op *ops[OPS];
  uint8_t next_handle;
  int scopes;
  tn_error err;
} world;

static tn_graph *functions;

static void quiet_log(void *user, int32_t level, const char *line) { (void)user, (void)level, (void)line; }
static void quiet_print(void *user, int32_t to, const char *text, size_t n)
{
  (void)user, (void)to, (void)text, (void)n;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  static const char text[] = "library { function { signature { name: 'F' input_arg { name: 'a' type: DT_FLOAT } "
                             "output_arg { name: 'b' type: DT_FLOAT } } "
                             "node_def { name: 'n' op: 'Neg' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } } "
                             "ret { key: 'b' value: 'n:y:0' } } }";
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  (void)argc, (void)argv;
  fuzz_limit_memory(MOST_MEMORY);
  fuzz_make_options();
  tn_set_log_sink(quiet_log, NULL);
  tn_set_print_sink(quiet_print, NULL);
  if (tn_graph_create(&functions, NULL) != TN_OK ||
      tn_graph_import(functions, text, sizeof text - 1, &options, NULL) != TN_OK)
    abort();
  return 0;
}

static tn_status said(world *w, tn_status status)
{
  fuzz_fail_allocation(0);
  check_status(status, &w->err);
  if (status == TN_INTERNAL || status != tn_error_code(&w->err)) abort();
#ifdef FUZZ_SHOW
  fprintf(stderr, "  %s %s\n", tn_status_name(status), tn_error_message(&w->err));
#endif
  return status;
}

/* ---- handles ---- */

static tn_eager_handle some_handle(world *w)
{
  uint8_t kind = next(&w->b);
  if (kind > 245) return (tn_eager_handle){ (uint64_t)number(&w->b) };
  return w->handles[kind % HANDLES];
}

/* A handle exists exactly if the call was OK. The session deletes overwritten handles. */
static void keep(world *w, tn_status status, tn_eager_handle made)
{
  if ((made.id != 0) != (status == TN_OK)) abort();
  if (status == TN_OK) w->handles[w->next_handle++ % HANDLES] = made;
}

static void bring(world *w)
{
  tn_tensor *t = next_tensor(&w->b);
  tn_eager_handle made = { 77 };
  if (next(&w->b) > 220) fuzz_fail_allocation(1 + next(&w->b) % 16);
  keep(w, said(w, tn_eager_from_tensor(w->session, t, &made, &w->err)), made);
  tn_tensor_unref(t);
}

static void take(world *w)
{
  tn_tensor *t = NULL;
  uint8_t kind = next(&w->b);
  tn_eager_handle handle = some_handle(w);
  tn_status st = said(w, kind & 1 ? tn_eager_detach(w->session, handle, &t, &w->err)
                                  : tn_eager_tensor(w->session, handle, &t, &w->err));
  if ((t != NULL) != (st == TN_OK)) abort();
  tn_tensor_unref(t);
}

static void place(world *w)
{
  static const char *const devices[] = { "",   "/device:CPU:0", "CPU:0", "/device:CPU:1", "/device:GPU:0",
                                         "//", "/job:localhost" };
  tn_eager_handle made = { 77 };
  const char *where = NULL;
  tn_eager_handle handle = some_handle(w);
  keep(w, said(w, tn_eager_copy_to_device(w->session, handle, devices[next(&w->b) % 7], &made, &w->err)), made);
  if (said(w, tn_eager_device(w->session, handle, &where, &w->err)) == TN_OK && where == NULL) abort();
}

/* ---- operations ---- */

static const char *const names[] = { "AddV2",
                                     "Mul",
                                     "MatMul",
                                     "Reshape",
                                     "Identity",
                                     "Sum",
                                     "Fill",
                                     "ConcatV2",
                                     "Split",
                                     "Pack",
                                     "Cast",
                                     "Shape",
                                     "Less",
                                     "Where",
                                     "F",
                                     "PartitionedCall",
                                     "VarHandleOp",
                                     "AssignVariableOp",
                                     "ReadVariableOp",
                                     "AssignAddVariableOp",
                                     "VarIsInitializedOp",
                                     "DestroyResourceOp",
                                     "NoOp",
                                     "Switch",
                                     "Placeholder",
                                     "Const",
                                     "TensorListReserve",
                                     "TensorListStack",
                                     "IdentityN",
                                     "" };
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

typedef struct attrs {
  tn_eager_attr at[3];
  size_t n;
  int64_t dims[3];
  tn_dtype types[2];
} attrs;

/* Attributes of the ops above, mostly with valid values. */
static void some_attrs(world *w, attrs *a)
{
  static const struct { const char *name; int32_t kind;
  } list[] = { { "T", TN_ATTR_TYPE },
               { "dtype", TN_ATTR_TYPE },
               { "DstT", TN_ATTR_TYPE },
               { "shape", TN_ATTR_SHAPE },
               { "N", TN_ATTR_INT },
               { "num_split", TN_ATTR_INT },
               { "f", TN_ATTR_FUNC },
               { "Tout", TN_ATTR_LIST + TN_ATTR_TYPE },
               { "shared_name", TN_ATTR_STRING },
               { "keep_dims", TN_ATTR_BOOL },
               { "container", TN_ATTR_STRING },
               { "transpose_a", TN_ATTR_BOOL },
               { "element_dtype", TN_ATTR_TYPE },
               { "no_such", TN_ATTR_FLOAT } };
  static const tn_dtype common[] = { TN_FLOAT, TN_INT32, TN_INT64, TN_BOOL };
  uint8_t kind = next(&w->b);
  for (a->n = 0; a->n < (size_t)kind % 4; a->n++) {
    uint8_t which = next(&w->b), value = next(&w->b);
    tn_eager_attr *at = &a->at[a->n];
    *at = (tn_eager_attr){ .name = list[which % COUNT(list)].name,
                           .kind = list[which % COUNT(list)].kind,
                           .i = value % 5 };
    if (value > 250) at->kind = (int32_t)number(&w->b) % 20;
    for (int i = 0; i < 3; i++) a->dims[i] = value % 4 + i;
    a->types[0] = a->types[1] = value < 200 ? common[value % 4] : value % 40;
    switch (at->kind) {
    case TN_ATTR_TYPE: at->i = a->types[0]; break;
    case TN_ATTR_SHAPE: at->at = a->dims, at->rank = value % 4; break;
    case TN_ATTR_STRING: at->at = "b", at->n = value & 1; break;
    case TN_ATTR_FUNC: at->at = value < 240 ? "F" : "G"; break;
    case TN_ATTR_INT: at->i = value < 240 ? value % 5 : number(&w->b); break;
    case TN_ATTR_LIST + TN_ATTR_TYPE: at->at = a->types, at->n = 1 + (value >> 3 & 1); break;
    default:
      if (at->kind < TN_ATTR_LIST) break;
      at->kind = TN_ATTR_FLOAT; /* lists of missing values would be the caller's mistake */
    }
    if (at->kind == TN_ATTR_TENSOR) at->kind = TN_ATTR_INT;
  }
}

static bool is_resource(world *w, tn_eager_handle handle)
{
  tn_tensor *tensor = NULL;
  bool found = tn_eager_tensor(w->session, handle, &tensor, &w->err) == TN_OK && tn_tensor_dtype(tensor) == TN_RESOURCE;
  tn_tensor_unref(tensor);
  return found;
}

/* At most one resource: a variable that holds its own handle, or two that hold each other's, are never freed. */
static size_t some_inputs(world *w, tn_eager_handle *inputs)
{
  size_t n = next(&w->b) % 4, resources = 0;
  for (size_t i = 0; i < n; i++) {
    inputs[i] = some_handle(w);
    if (is_resource(w, inputs[i]) && resources++ > 0) inputs[i].id = 0;
  }
  return n;
}

static void check_outputs(world *w, tn_status status, const tn_eager_handle *outputs, size_t n, size_t room)
{
  if (status == TN_OK && n > room) abort();
  for (size_t i = 0; i < room; i++)
    if ((outputs[i].id != 0) != (status == TN_OK && i < n)) abort();
  for (size_t i = 0; status == TN_OK && i < n; i++) w->handles[w->next_handle++ % HANDLES] = outputs[i];
}

static const char *some_op(world *w)
{
  uint8_t kind = next(&w->b);
  if (kind < 200) return names[kind % COUNT(names)];
  const char *name = tn_op_schema_name(next_op(&w->b));
  /* Excludes ops that wait in their own thread or write files. */
  return strstr(name, "Dequeue") || strstr(name, "File") || strstr(name, "Save") || strstr(name, "Take") ? "Neg" : name;
}

static void call(world *w)
{
  attrs a;
  tn_eager_handle inputs[4], outputs[MOST_OUTPUTS] = { { 0 } };
  const char *op = some_op(w);
  some_attrs(w, &a);
  size_t n_inputs = some_inputs(w, inputs), n = 0, room = next(&w->b) < 230 ? MOST_OUTPUTS : 0;
  if (next(&w->b) > 220) fuzz_fail_allocation(1 + next(&w->b) % 64);
  tn_status st = said(w, tn_eager_call(w->session, op, a.at, a.n, inputs, n_inputs, outputs, room, &n, &w->err));
  check_outputs(w, st, outputs, n, room);
}

static void make_op(world *w)
{
  attrs a;
  uint8_t kind = next(&w->b);
  tn_eager_op **op = &w->ops[kind % OPS];
  tn_eager_op_destroy(*op);
  const char *name = some_op(w);
  some_attrs(w, &a);
  *op = NULL;
  if (kind > 220) fuzz_fail_allocation(1 + next(&w->b) % 16);
  tn_status st =
      said(w, tn_eager_op_create(w->session, name, kind & 16 ? "/device:CPU:0" : NULL, a.at, a.n, op, &w->err));
  if ((*op != NULL) != (st == TN_OK)) abort();
}

static void call_op(world *w)
{
  tn_eager_handle inputs[4], outputs[MOST_OUTPUTS] = { { 0 } };
  tn_eager_op *op = w->ops[next(&w->b) % OPS];
  size_t n = 0, n_inputs = some_inputs(w, inputs);
  if (op == NULL) return;
  tn_status st = said(w, tn_eager_op_call(op, inputs, n_inputs, outputs, MOST_OUTPUTS, &n, &w->err));
  check_outputs(w, st, outputs, n, MOST_OUTPUTS);
}

/* ---- the rest ---- */

static void scope(world *w)
{
  uint8_t kind = next(&w->b);
  if (kind & 1) {
    if (said(w, tn_eager_scope_push(w->session, &w->err)) == TN_OK) w->scopes++;
    return;
  }
  tn_eager_handle kept[2] = { some_handle(w), some_handle(w) };
  tn_status st = said(w, tn_eager_scope_pop(w->session, kept, kind >> 1 & 1 ? 1 + (kind >> 2 & 1) : 0, &w->err));
  if (st == TN_OK && w->scopes-- == 0) abort();
}

static void count(world *w)
{
  tn_eager_counters c = { .struct_size = sizeof c };
  if (tn_eager_get_counters(w->session, &c, &w->err) != TN_OK) abort();
  if (c.live + c.unused + c.deleted + c.detached > c.allocated || c.bytes > c.peak_bytes ||
      c.longest_pause_ns > c.pause_ns)
    abort();
}

static void open_session(world *w)
{
  tn_eager_options options;
  uint8_t kind = next(&w->b);
  tn_eager_options_init(&options);
  options.session = options_of[kind & 1];
  options.strategy = kind >> 2 & 1 ? TN_EAGER_ON_SESSION_CLOSE : TN_EAGER_IN_BACKGROUND;
  if (kind >> 1 & 1) options.strategy = TN_EAGER_ON_SAFE_POINTS;
  options.async = kind >> 3 & 1;
  options.device_policy = kind >> 4 & 3;
  if (kind >> 6 & 1) options.memory_limit_bytes = 4096;
  if (said(w, tn_eager_session_create(&options, &w->session, &w->err)) != TN_OK) abort();
}

static void one_call(world *w)
{
  uint8_t kind = next(&w->b);
#ifdef FUZZ_SHOW
  fprintf(stderr, "%d\n", kind % 16);
#endif
  switch (kind % 16) {
  case 0: said(w, tn_eager_release(w->session, some_handle(w), &w->err)); break;
  case 1: take(w); break;
  case 2: place(w); break;
  case 3: scope(w); break;
  case 4: count(w); break;
  case 5: make_op(w); break;
  case 6:
  case 7: call_op(w); break;
  case 8: said(w, kind & 16 ? tn_eager_safe_point(w->session, &w->err) : tn_eager_wait(w->session, &w->err)); break;
  case 9: if (kind > 128) said(w, tn_eager_add_functions(w->session, functions, &w->err)); break;
  case 10: if (kind > 240) said(w, tn_eager_session_close(w->session, &w->err)); break;
  case 11: if (kind > 240) said(w, tn_reset(options_of[1], NULL, 0, &w->err)); break;
  case 12:
  case 13: bring(w); break;
  default: call(w); break;
  }
}

static void everything(const uint8_t *data, size_t size)
{
  world w = { .b = { data, data + size }, .err = TN_ERROR_INIT };
  open_session(&w);
  for (int n = 0; n < MOST_CALLS && w.b.at < w.b.end; n++) one_call(&w);
  if (tn_eager_session_close(w.session, &w.err) != TN_OK) abort();
  count(&w);
  while (w.scopes > 0 && tn_eager_scope_pop(w.session, NULL, 0, &w.err) == TN_OK) w.scopes--;
  if (w.scopes != 0) abort();
  tn_eager_session_destroy(w.session);
  for (size_t i = 0; i < OPS; i++) tn_eager_op_destroy(w.ops[i]);
  tn_error_clear(&w.err);
  if (tn_reset(options_of[1], NULL, 0, NULL) != TN_OK) abort();
}

/* Runs repeatedly, as the library creates its process-wide objects during the first runs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  size_t first = 0, before = SIZE_MAX;
  for (int n = 0; n < TIMES; n++) {
    everything(data, size);
    size_t now = fuzz_memory_in_use;
    if (now <= before && n > 0) return 0;
    before = now;
    if (n == 0) first = now;
  }
  fprintf(stderr, "%zu bytes are left, %zu were\n", before, first);
  abort();
}
