/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the subcommands of `tenon`. A subcommand is tools/NAME.c or tools/NAME/NAME.c, which defines `const tool_command
 * tool_cmd_NAME`, and one line in tools/tools.mk; the table is generated from that list.
 *
 * The command never calls setlocale, so numbers are read and written in the C locale. Memory that runs out ends it with
 * a message and status 1. */
#ifndef TENON_TOOLS_TOOL_H
#define TENON_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <tenon/op.h>
#include <tenon/tenon.h>

/* ---- subcommands ---- */

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

typedef struct tool_command {
  const char *name;
  const char *summary;               /* for the list of `tenon --help` */
  const char *help;                  /* the whole text of `tenon NAME --help` */
  int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name; returns an exit status */
} tool_command;

extern const tool_command *const tool_commands[];
extern const size_t n_tool_commands;

/* ---- errors (error.c) ---- */

/* Prints "tenon: CODE: message" with the causes, clears the error, returns TOOL_FAILED. */
int tool_fail(tn_error *err);

/* Prints "tenon: INVALID_ARGUMENT: message" and where help is found, returns TOOL_USAGE. command is NULL for `tenon`
 * itself. */
int tool_usage(const char *command, const char *format, ...) TN_PRINTF(2, 3);

/* What getopt_long's '?' or ':' means, as tool_usage says it. */
int tool_bad_option(const char *command, int c, char **argv);

/* Flushes standard output; a write that failed is reported and turns `status` into TOOL_FAILED. When nobody reads it
 * any more, and SIGPIPE was not ignored at the start, the process ends by that signal. */
int tool_finish(int status);
extern bool tool_pipe_was_default;

/* ---- memory and text (text.c) ---- */

void *tool_alloc(size_t count, size_t size); /* zeroed */
/* Room for one more element in items[n]: *room counts elements. */
void *tool_grow(void *items, size_t n, size_t *room, size_t size);

typedef struct tool_text {
  char *data; /* ends with a NUL once something was added */
  size_t length;
  size_t room;
} tool_text;

void tool_text_add(tool_text *text, const char *data, size_t length);
void tool_text_printf(tool_text *text, const char *format, ...) TN_PRINTF(2, 3);
void tool_text_free(tool_text *text);

/* "847 B", "120.3 kB", "1.2 GB"; in `buffer`, which is returned. */
const char *tool_bytes_text(char buffer[32], uint64_t bytes);

/* "847 ns", "1.20 us", "12.0 ms", "120 s": three digits and a unit; in `buffer`, which is returned. */
const char *tool_duration_text(char buffer[32], double ns);

/* "[?, 8, 8, 1]", or "unknown shape". */
void tool_text_shape(tool_text *text, const int64_t *dims, int32_t rank);

/* Collects the names that are most like a wrong one. Call tool_near_offer with each name there is; then
 * tool_near_text gives " (did you mean 'a' or 'b'?)" or "". Names must live as long as the struct. */
typedef struct tool_near {
  const char *wanted;
  const char *best[3];
  size_t distance[3];
} tool_near;

void tool_near_init(tool_near *near, const char *wanted);
void tool_near_offer(tool_near *near, const char *name);
void tool_near_text(const tool_near *near, tool_text *out);

/* ---- tables and JSON (table.c) ---- */

/* Text in columns, two spaces apart; the last column is not padded. Cells are copied. */
typedef struct tool_table {
  size_t columns;
  char **cells;
  size_t n;
  size_t room;
  uint32_t right; /* bit c set: column c is aligned to the right */
} tool_table;

void tool_table_init(tool_table *table, size_t columns, uint32_t right);
void tool_table_cell(tool_table *table, const char *format, ...) TN_PRINTF(2, 3);
void tool_table_print(tool_table *table, const char *indent, FILE *out); /* and frees it */
void tool_table_free(tool_table *table);

/* A string; bytes that are no UTF-8 become U+FFFD. */
json_t *tool_json_text(const char *text);
json_t *tool_json_shape(const int64_t *dims, int32_t rank); /* null for an unknown rank or dimension */
/* Adds a value, which is taken over. */
void tool_json_set(json_t *object, const char *key, json_t *value);
void tool_json_append(json_t *array, json_t *value);
/* Prints and frees; returns an exit status. */
int tool_json_print(json_t *value);

/* ---- pictures of characters (screen.c) ---- */

/* What standard output can show. */
typedef struct tool_screen {
  size_t width; /* columns, 40 to 120; 80 for a file */
  bool blocks;  /* characters of Unicode */
  bool colour;
} tool_screen;

tool_screen tool_screen_look(void);

/* ---- numbers (number.c) ---- */

/* The small floating-point types: half, bfloat16 and the float8 ones. */
bool tool_float_is_small(tn_dtype dtype);
double tool_float_decode(tn_dtype dtype, uint32_t bits);
/* Rounds to nearest, ties to even. False when the value is too large for the type. */
bool tool_float_encode(tn_dtype dtype, double value, uint32_t *bits);

/* Range of an integer type, quantised ones included; false for another type. */
bool tool_integer_range(tn_dtype dtype, int64_t *min, uint64_t *max);

/* The shortest decimal digits that read back as the same value of the type: value = 0.d1d2d3... times 10^*exponent.
 * value is finite and above zero. */
enum { TOOL_DIGITS = 32 };
void tool_shortest_digits(tn_dtype dtype, double value, char digits[TOOL_DIGITS], int *exponent);

/* ---- values (literal.c, print.c) ---- */

/* Makes a tensor of the given type from a number, true, false, a string or a nested list of those. */
tn_status tool_literal(const char *text, tn_dtype dtype, tn_tensor **out, tn_error *err);

/* Appends the elements as NumPy prints them: shortened beyond 1,000 elements. */
tn_status tool_text_tensor(tool_text *text, const tn_tensor *tensor, tn_error *err);

/* ---- feeds (feed.c) ---- */

/* Appends the content of a regular file. */
tn_status tool_read_file(const char *path, tool_text *out, tn_error *err);

/* The tensor that VALUE of --feed TENSOR=VALUE stands for; dtype is that of the endpoint, TN_DTYPE_INVALID when
 * unknown. */
tn_status tool_make_feed(const char *value, tn_dtype dtype, tn_tensor **out, tn_error *err);

/* Whether a value is "FILE.npz" or "FILE.npz:KEY": the length of the file's name, and the key or NULL. */
bool tool_split_npz(const char *value, size_t *length, const char **key);

/* ---- fetches that are saved (save.c) ---- */

/* Where a fetched tensor goes. */
typedef struct tool_place {
  const char *tensor; /* its name, for messages */
  char *file;         /* NULL: it is printed */
  const char *key;    /* of an .npz file; NULL: an .npy file */
  char *real;         /* the file's real name, once the places were checked */
} tool_place;

/* Takes the value of --fetch TENSOR=VALUE, NULL without one, apart; both texts must live as long as the place. Returns an
 * exit status, as tool_places_check does: whether all can be written, as far as that is known before. */
int tool_place_parse(tool_place *place, const char *tensor, const char *value);
int tool_places_check(tool_place *places, size_t n);
tn_status tool_places_save(const tool_place *places, tn_tensor *const *tensors, size_t n, tn_error *err);
void tool_places_free(tool_place *places, size_t n);

/* ---- progress (progress.c) ---- */

typedef struct tool_progress tool_progress;

/* A line on standard error, if that is a terminal, once half a second has passed; drawn by a thread of its own, so that
 * work that is measured pays one store for each step. NULL where there is nothing to draw on, which all take. */
tool_progress *tool_progress_start(const char *what, uint64_t total);
void tool_progress_set(tool_progress *progress, uint64_t done);
void tool_progress_end(tool_progress *progress); /* wipes the line */

/* What else the line shows, such as a loss; making it costs something, so it is asked for when it will be drawn. Copied. */
bool tool_progress_wants_note(tool_progress *progress);
void tool_progress_note(tool_progress *progress, const char *note);
/* Writes text to standard output without spoiling the line. */
void tool_progress_print(tool_progress *progress, const tool_text *text);

uint64_t tool_now_ns(void); /* monotonic */

/* The number after a word in a file of "word: number ..." lines, after "" the first number; UINT64_MAX: the file or the word is
 * missing. */
uint64_t tool_number_in(const char *path, const char *word);
uint64_t tool_peak_memory(void); /* the highest resident memory of this process since its program began; 0: not known */

/* ---- runtimes (target.c) ---- */

/* Appends the target that "NAME[:KEY=VALUE,...]" or "PATH[:KEY=VALUE,...]" of --runtime means; the runtime of a file is loaded. */
tn_status tool_target(const char *text, tool_text *out, tn_error *err);
/* Where the message says that the file brings another kind of plugin: adds which option takes it. */
void tool_hint(tn_error *err, const char *part, const char *option, const char *file);
tn_status tool_set_target(tn_session_options *options, const char *text, tn_error *err);
/* If there is no runtime at all, says on standard error where runtimes are looked for. */
void tool_hint_no_runtime(void);

/* ---- the end of the process (ending.c) ---- */

/* From now on no signal leaves an unfinished file behind, and a plugin that ends the process is named; exit is then for tool_exit
 * only, and main's last word is tool_ending_done. */
void tool_ending_watch(void);
int tool_ending_done(int status); /* returns it */
_Noreturn void tool_exit(int status);
/* A child that ends when a signal ends this process; 0: none. */
void tool_ending_child(int pid);
/* Ends the process as the signal does when it is not caught; a shell calls that 128 plus its number, which is returned. */
int tool_end_by_signal(int number);

/* ---- Ctrl-C (interrupt.c) ---- */

/* Catches SIGINT, SIGTERM and SIGHUP until tool_interrupt_stop. *out, borrowed until then, is cancelled by the first one.
 * `what` as for tool_interrupt_doing. */
tn_status tool_interrupt_start(const char *what, tn_cancellation **out, tn_error *err);
/* What goes on, as "the model was read": then the first signal says so and ends the process. NULL: it only cancels, and
 * the caller sees to the rest. The text must stay. */
void tool_interrupt_doing(const char *what);
int tool_interrupted(void); /* the first signal that came, 0 when none did */
void tool_interrupt_stop(void);

/* ---- models (model.c) ---- */

/* Reads a model; on failure the error is in err. */
tn_status tool_model_open(const char *path, tn_graph **out, tn_error *err);

/* What is known of a node beyond the graph itself. */
typedef struct tool_node {
  tn_operation *op;
  bool used;                          /* another node takes an output of it, or waits for it */
  bool reached;                       /* by the walk of tool_model_scan */
  uint8_t support;                    /* TOOL_SUPPORTED... */
  const char *needs;                  /* TOOL_IN_FUNCTION: an op that a function needs which it calls */
  const struct tool_node *blocked_by; /* the first node on the way here that cannot run, NULL when none */
} tool_node;

enum { TOOL_SUPPORTED = 0, TOOL_NO_OP = 1, TOOL_NO_KERNEL = 2, TOOL_IN_FUNCTION = 3 };

/* Ops that no kernel computes: the plan takes care of them. */
#define TOOL_BUILT_IN                                                                                                 \
  (TN_TRAIT_PLACEHOLDER | TN_TRAIT_CONSTANT | TN_TRAIT_IDENTITY | TN_TRAIT_NO_EFFECT | TN_TRAIT_SWITCH |             \
   TN_TRAIT_MERGE | TN_TRAIT_ENTER | TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION | TN_TRAIT_LOOP_COND |                   \
   TN_TRAIT_CONTROL_TRIGGER)

typedef struct tool_model {
  tn_graph *graph;  /* borrowed */
  tool_node *nodes; /* in the graph's order */
  size_t n;
  uint32_t *by_address; /* numbers of nodes, sorted by address */
} tool_model;

void tool_model_scan(tool_model *model, tn_graph *graph);
uint8_t tool_support_of(const tn_operation *op); /* of the node itself, without what it calls */

/* Functions of a graph, and what of them cannot run (model_functions.c). */
typedef struct tool_functions tool_functions;
tool_functions *tool_functions_scan(const tn_graph *graph);
/* An op that is not supported, and needed by a function that the node calls; NULL: none. */
const char *tool_functions_need(tool_functions *functions, const tn_operation *op);
void tool_functions_free(tool_functions *functions);
void tool_model_free(tool_model *model);
tool_node *tool_model_node(const tool_model *model, const tn_operation *op); /* NULL for one that is not there */

/* Inputs: placeholders, those with a default (which need no feed) too. Outputs: nodes with outputs that nobody uses,
 * but for constants. Targets: nodes without outputs that nobody waits for. */
bool tool_node_is_input(const tool_node *node);
bool tool_node_has_default(const tool_node *node);
bool tool_node_is_output(const tool_node *node);
bool tool_node_is_target(const tool_node *node);

/* Prints inputs, outputs and targets, at most `most` of each (describe.c). */
void tool_describe_ends(const tool_model *model, size_t most, FILE *out);

/* "float32 [?, 8, 8, 1]" of an output. */
void tool_text_output(tool_text *text, tn_output output);
/* Dims of an output in a new array, *rank -1 when unknown. */
int64_t *tool_output_dims(tn_output output, int32_t *rank);

/* Finds "node:output" or "node" in the graph. NOT_FOUND with the nearest names, OUT_OF_RANGE, INVALID_ARGUMENT. */
tn_status tool_find_output(tn_graph *graph, const char *what, const char *name, tn_output *out, tn_error *err);
tn_status tool_find_node(tn_graph *graph, const char *what, const char *name, tn_operation **out, tn_error *err);

/* Type of an output; of one whose op is not known, the type that a user of it wants. TN_DTYPE_INVALID when nothing
 * tells. */
tn_dtype tool_output_dtype(tn_graph *graph, tn_output output);

/* Types in a list like "float|double" or "float, double": bit n stands for dtype n. */
uint64_t tool_parse_types(const char *list, size_t length);

/* One of the kernels' type constraints, "T=float|double,Tidx=int32": calls `each` for every attribute with its list. */
void tool_each_constraint(const char *types,
                          void (*each)(void *user, const char *attr, size_t attr_length, const char *list,
                                       size_t list_length),
                          void *user);

/* ---- functions (inspect) ---- */

void tool_print_functions(const tn_graph *graph, FILE *out); /* nothing when there are none */
json_t *tool_json_functions(const tn_graph *graph);

#endif
