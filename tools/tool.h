/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the subcommands of `tenon`. A subcommand is tools/NAME.c or tools/NAME/NAME.c, which defines `const
 * tool_command tool_cmd_NAME`, and one line in tools/tools.mk; the table is generated from that list.
 *
 * The command never calls setlocale, so numbers are read and written in the C locale. If memory runs out, the command
 * prints a message and exits with status 1. */
#ifndef TENON_TOOLS_TOOL_H
#define TENON_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <tenon/checkpoint.h>
#include <tenon/model.h>
#include <tenon/op.h>
#include <tenon/tenon.h>

/* ---- subcommands ---- */

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

typedef struct tool_command {
  const char *name;
  const char *summary;               /* shown by `tenon --help` */
  const char *help;                  /* the whole text of `tenon NAME --help` */
  int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name; returns an exit status */
} tool_command;

extern const tool_command *const tool_commands[];
extern const size_t n_tool_commands;

/* ---- errors (error.c) ---- */

/* Prints "tenon: CODE: message" and the causes, clears the error and returns TOOL_FAILED. */
int tool_fail(tn_error *err);

/* Prints "tenon: INVALID_ARGUMENT: message" and how to get help; returns TOOL_USAGE. command is NULL for `tenon`
 * itself. */
int tool_usage(const char *command, const char *format, ...) TN_PRINTF(2, 3);

/* Reports getopt_long's '?' or ':' through tool_usage. */
int tool_bad_option(const char *command, int c, char **argv);

/* Flushes standard output. A failed write is reported, and the result is TOOL_FAILED instead of `status`. If the reader
 * has closed the pipe and SIGPIPE was not ignored at the start, the process ends with that signal. */
int tool_finish(int status);
extern bool tool_pipe_was_default;

/* ---- memory and text (text.c) ---- */

void *tool_alloc(size_t count, size_t size); /* zeroed */
/* Ensures capacity for one more element at items[n]. *room is the capacity in elements. */
void *tool_grow(void *items, size_t n, size_t *room, size_t size);

typedef struct tool_text {
  char *data; /* NUL-terminated once something was added */
  size_t length;
  size_t room;
} tool_text;

void tool_text_add(tool_text *text, const char *data, size_t length);
void tool_text_printf(tool_text *text, const char *format, ...) TN_PRINTF(2, 3);
void tool_text_fini(tool_text *text);

/* Writes "847 B", "120.3 kB" or "1.2 GB" to `buffer` and returns it. */
const char *tool_bytes_text(char buffer[32], uint64_t bytes);

/* Decimal places with which a value below 999.5 is printed with three digits. */
int tool_decimals(double value);

/* Writes "847 ns", "1.20 us", "12.0 ms" or "120 s", three digits and a unit, to `buffer` and returns it. */
const char *tool_duration_text(char buffer[32], double ns);

/* Length in bytes of the UTF-8 character at `text`, which has `length` bytes; 0 if it is invalid. */
size_t tool_utf8_length(const char *text, size_t length);

/* Appends "[?, 8, 8, 1]" or "unknown shape". */
void tool_text_shape(tool_text *text, const int64_t *dims, int32_t rank);

/* Collects the names nearest to a wrong one. Call tool_near_offer with each valid name; then tool_near_text appends
 * " (did you mean 'a' or 'b'?)" or nothing. Names must outlive the struct. */
typedef struct tool_near {
  const char *wanted;
  const char *best[3];
  size_t distance[3];
} tool_near;

void tool_near_init(tool_near *near, const char *wanted);
void tool_near_offer(tool_near *near, const char *name);
void tool_near_text(const tool_near *near, tool_text *out);

/* ---- tables and JSON (table.c) ---- */

/* Text in columns, separated by two spaces; the last column is not padded. Cells are copied. */
typedef struct tool_table {
  size_t columns;
  char **cells;
  size_t n;
  size_t room;
  uint32_t right; /* bit c set: column c is right-aligned */
} tool_table;

void tool_table_init(tool_table *table, size_t columns, uint32_t right);
void tool_table_cell(tool_table *table, const char *format, ...) TN_PRINTF(2, 3);
void tool_table_print(tool_table *table, const char *indent, FILE *out); /* also frees the table */
void tool_table_fini(tool_table *table);

/* Creates a string; bytes that are not UTF-8 become U+FFFD. */
json_t *tool_json_text(const char *text);
json_t *tool_json_shape(const int64_t *dims, int32_t rank); /* unknown ranks and dimensions are null */
/* Adds a value and takes ownership of it. */
void tool_json_set(json_t *object, const char *key, json_t *value);
void tool_json_append(json_t *array, json_t *value);
/* Prints and frees the value; returns an exit status. */
int tool_json_print(json_t *value);

/* ---- character graphics (screen.c) ---- */

/* Capabilities of standard output. */
typedef struct tool_screen {
  size_t width; /* columns, 40 to 120; 80 for a file */
  bool blocks;  /* Unicode block characters */
  bool colour;
} tool_screen;

tool_screen tool_screen_look(void);

/* Appends a bar that fills `share` (0 to 1) of `width` columns, in eighths of a column if block characters are
 * available. `some`: not empty, however small the share. `colour` is the number of an ANSI colour. */
void tool_text_bar(tool_text *text, const tool_screen *screen, double share, size_t width, bool some, int colour);

/* ---- numbers (number.c) ---- */

/* The small floating-point types: half, bfloat16 and the float8 ones. */
bool tool_float_is_small(tn_dtype dtype);
double tool_float_decode(tn_dtype dtype, uint32_t bits);
double tool_float_load(tn_dtype dtype, const void *at); /* of any float type, also float and double */
/* Rounds to nearest, ties to even. False if the value is too large for the type. */
bool tool_float_encode(tn_dtype dtype, double value, uint32_t *bits);

/* Range of an integer type, including quantised types; false for other types. */
bool tool_integer_range(tn_dtype dtype, int64_t *min, uint64_t *max);

/* The shortest decimal digits that read back as the same value of the type: value = 0.d1d2d3... times 10^*exponent.
 * value is finite and above zero. */
enum { TOOL_DIGITS = 32 };
void tool_shortest_digits(tn_dtype dtype, double value, char digits[TOOL_DIGITS], int *exponent);

/* ---- values (literal.c, print.c) ---- */

/* Creates a tensor of the given type from a number, true, false, a string or a nested list of these. */
tn_status tool_literal(const char *text, tn_dtype dtype, tn_tensor **out, tn_error *err);

/* Appends the elements as NumPy prints them; more than 1,000 elements are abbreviated. */
tn_status tool_text_tensor(tool_text *text, const tn_tensor *tensor, tn_error *err);

/* The elements of a tensor as numbers (values.c). */
typedef struct tool_values {
  tn_dtype dtype;
  const uint8_t *data; /* NULL: strings and handles */
  uint8_t *copy;       /* of a tensor in device memory */
  int64_t n;
} tool_values;

tn_status tool_values_init(tool_values *values, const tn_tensor *tensor, tn_error *err);
/* Element i; *imaginary is 0 unless the type is complex. Not for strings. 64-bit integers are rounded. */
double tool_value_at(const tool_values *values, int64_t i, double *imaginary);
void tool_values_fini(tool_values *values);

/* ---- feeds (feed.c) ---- */

/* Creates the tensor for VALUE of --feed TENSOR=VALUE. dtype is the endpoint's type, or TN_DTYPE_INVALID if
 * unknown. */
tn_status tool_make_feed(const char *value, tn_dtype dtype, tn_tensor **out, tn_error *err);

/* Tests for "FILE.npz" or "FILE.npz:KEY"; returns the length of the file name, and the key or NULL. */
bool tool_split_npz(const char *value, size_t *length, const char **key);

/* ---- saving fetches (save.c) ---- */

/* Destination of a fetched tensor. */
typedef struct tool_place {
  const char *tensor; /* its name, for messages */
  char *file;         /* NULL: print the tensor */
  const char *key;    /* key in an .npz file; NULL: an .npy file */
  char *real;         /* the file's real path, set by tool_places_check */
} tool_place;

/* Parses VALUE of --fetch TENSOR=VALUE, NULL if there is none. Both texts must outlive the place. Returns an exit
 * status. tool_places_check also returns one: it checks in advance, as far as possible, that all files can be
 * written. */
int tool_place_parse(tool_place *place, const char *tensor, const char *value);
int tool_places_check(tool_place *places, size_t n);
/* Joins the real path of a file's folder and the file's name; the caller frees *out. Fails if the folder does not exist
 * or cannot be written to. */
tn_status tool_real_name(const char *file, char **out, tn_error *err);
tn_status tool_places_save(const tool_place *places, tn_tensor *const *tensors, size_t n, tn_error *err);
void tool_places_destroy(tool_place *places, size_t n);

/* ---- progress (progress.c) ---- */

typedef struct tool_progress tool_progress;

/* A progress line on standard error, shown after half a second if that is a terminal. A separate thread draws it, so
 * the measured work pays one store per step. Returns NULL if there is no terminal; all functions accept NULL. */
tool_progress *tool_progress_start(const char *what, uint64_t total);
tool_progress *tool_progress_start_bytes(const char *what, uint64_t total); /* shows "12.3 MB of 1.2 GB" */
/* The same for one call that reads or writes about `total` bytes: the progress is what the process reads or writes from
 * now on. */
tool_progress *tool_progress_start_reading(const char *what, uint64_t total);
tool_progress *tool_progress_start_writing(const char *what, uint64_t total);
bool tool_progress_is_shown(void); /* standard error is a terminal for it */
void tool_progress_set(tool_progress *progress, uint64_t done);
void tool_progress_end(tool_progress *progress); /* erases the line */

/* Sets an extra note in the line, such as a loss. Formatting costs time, so do it only when a note is wanted.
 * Copied. */
bool tool_progress_wants_note(tool_progress *progress);
void tool_progress_note(tool_progress *progress, const char *note);
/* Writes text to standard output without garbling the line. */
void tool_progress_print(tool_progress *progress, const tool_text *text);

uint64_t tool_now_ns(void); /* monotonic */

/* Returns the number after `word` in a file of "word: number ..." lines; for "", the first number. UINT64_MAX if the
 * file or the word is missing. */
uint64_t tool_number_in(const char *path, const char *word);
uint64_t tool_peak_memory(void); /* peak resident memory of this program; 0: unknown */

/* ---- runtimes (target.c) ---- */

/* Appends the target for --runtime "NAME[:KEY=VALUE,...]" or "PATH[:KEY=VALUE,...]". Loads the runtime in a file. */
tn_status tool_target(const char *text, tool_text *out, tn_error *err);
/* Finds the real path of a plugin file and allows loading it; the caller frees *path, also after a failure. `what`
 * begins the message. */
tn_status tool_plugin_path(const char *what, const char *file, char **path, tn_error *err);
/* If the message says that the file provides `part`, another kind of plugin, adds which option accepts it. */
void tool_hint(tn_error *err, const char *part, const char *option, const char *file);
tn_status tool_set_target(tn_session_options *options, const char *text, tn_error *err);
/* If there is no runtime at all, prints on standard error where runtimes are searched. */
void tool_hint_no_runtime(void);

/* ---- process exit (ending.c) ---- */

/* From now on signals remove unfinished files, and a plugin that ends the process is reported by name. After this, only
 * tool_exit may call exit, and main must return through tool_ending_done. */
void tool_ending_watch(void);
int tool_ending_done(int status); /* returns `status` */
_Noreturn void tool_exit(int status);
/* Registers a child to be killed if a signal ends this process; 0: none. */
void tool_ending_child(int pid);
/* Ends the process by the default action of the signal. Returns the shell's status for it, 128 plus its number. */
int tool_end_by_signal(int number);

/* ---- Ctrl-C (interrupt.c) ---- */

/* Catches SIGINT, SIGTERM and SIGHUP until tool_interrupt_stop. The first one cancels *out, which is borrowed until
 * then. For `what` see tool_interrupt_doing. */
tn_status tool_interrupt_start(const char *what, tn_cancellation **out, tn_error *err);
/* Sets the current activity, such as "the model was read": the first signal then prints it and ends the process. If
 * NULL, the signal only cancels, and the caller handles the rest. The text must stay valid. */
void tool_interrupt_doing(const char *what);
int tool_interrupted(void); /* number of the first signal received, 0 if none */
void tool_interrupt_stop(void);

/* ---- models and their signatures (source.c) ---- */

/* What the command line says about the model. */
typedef struct tool_source_request {
  const char *path;
  const char *tags;       /* "a,b"; NULL: the default */
  const char *signature;  /* NULL: the default, if the model has one */
  const char *checkpoint; /* NULL: the model's own */
} tool_source_request;

typedef struct tool_source {
  const tool_source_request *request;
  tn_model *model;
  tn_graph *graph; /* borrowed from the model */
  tn_model_info info;
  tn_model_signature signature; /* the chosen one; its name is NULL if there is none */
} tool_source;

/* Opens a model. A frozen graph is a model without signatures. tool_source_close is allowed after a failure. */
tn_status tool_source_open(tool_source *source, const tool_source_request *request, tn_error *err);
void tool_source_close(tool_source *source);

/* Makes a session of the model, with its variables restored. Shows progress. */
tn_status tool_source_session(const tool_source *source, const tn_session_options *options, tn_session **out,
                              tn_error *err);

/* Opens a model and returns its graph only. */
tn_status tool_graph_open(const char *path, tn_graph **out, tn_error *err);

/* A tensor that a key of a signature or the tensor's own name denotes. */
typedef struct tool_tensor {
  const char *name; /* "node:0"; borrowed from the model or the argument */
  tn_output output;
  tn_dtype dtype; /* TN_DTYPE_INVALID: unknown */
  bool by_key;
} tool_tensor;

/* Which keys are looked up, and how messages call the result. */
typedef struct tool_lookup {
  const tool_source *source;
  const char *what;          /* "feed" or "fetch" */
  bool input;                /* else an output */
  const char *signatures[2]; /* the first wins; NULL: none */
} tool_lookup;

/* Finds a tensor: a key of a signature wins over the name of a tensor. NOT_FOUND lists the keys, with the nearest
 * names; OUT_OF_RANGE, INVALID_ARGUMENT. */
tn_status tool_source_find(const tool_lookup *lookup, const char *name, tool_tensor *out, tn_error *err);

/* ---- signatures in print (signatures.c) ---- */

typedef struct tool_model tool_model;

/* Prints the inputs and outputs of a signature, at most `most` of each. With a scan of the graph it also says what
 * cannot run; `scan` may be NULL. */
void tool_print_signature(const tool_source *source, const tn_model_signature *signature, const tool_model *scan,
                          size_t most, FILE *out);
json_t *tool_json_signatures(const tool_source *source, const tool_model *scan);
/* Appends "TensorFlow 2.21.0", or nothing if it is unknown who made the model. */
void tool_text_maker(tool_text *text, const tn_model_info *info);
/* Appends "{serve, gpu}", the tags of MetaGraph i; "{}" if it has none. */
void tool_text_tags(tool_text *text, const tn_model *model, size_t i);

/* ---- graphs (model.c) ---- */

/* Facts about a node beyond the graph itself. */
typedef struct tool_node {
  tn_operation *op;
  bool used;                          /* another node uses an output or control-depends on it */
  bool reached;                       /* visited by tool_model_scan */
  uint8_t support;                    /* TOOL_SUPPORTED... */
  const char *needs;                  /* TOOL_IN_FUNCTION: an unsupported op needed by a called function */
  const struct tool_node *blocked_by; /* the first node it depends on that cannot run, or NULL */
} tool_node;

enum { TOOL_SUPPORTED = 0, TOOL_NO_OP = 1, TOOL_NO_KERNEL = 2, TOOL_IN_FUNCTION = 3 };

/* Ops that the planner handles without a kernel. */
#define TOOL_BUILT_IN                                                                                                 \
  (TN_TRAIT_PLACEHOLDER | TN_TRAIT_CONSTANT | TN_TRAIT_IDENTITY | TN_TRAIT_NO_EFFECT | TN_TRAIT_SWITCH |             \
   TN_TRAIT_MERGE | TN_TRAIT_ENTER | TN_TRAIT_EXIT | TN_TRAIT_NEXT_ITERATION | TN_TRAIT_LOOP_COND |                   \
   TN_TRAIT_CONTROL_TRIGGER)

struct tool_model {
  tn_graph *graph;  /* borrowed */
  tool_node *nodes; /* in the graph's order */
  size_t n;
  uint32_t *by_address; /* node numbers, sorted by address */
};

void tool_model_scan(tool_model *model, tn_graph *graph);
uint8_t tool_support_of(const tn_operation *op); /* of the node itself, ignoring called functions */

/* A graph's functions, and which of them cannot run (model_functions.c). */
typedef struct tool_functions tool_functions;
tool_functions *tool_functions_scan(const tn_graph *graph);
/* Returns an unsupported op needed by a function that the node calls, or NULL. */
const char *tool_functions_need(tool_functions *functions, const tn_operation *op);
void tool_functions_destroy(tool_functions *functions);
void tool_model_fini(tool_model *model);
tool_node *tool_model_node(const tool_model *model, const tn_operation *op); /* NULL if not found */

/* Inputs: placeholders, including those with a default, which need no feed. Outputs: nodes other than constants whose
 * outputs are unused. Targets: nodes without outputs on which no node depends. */
bool tool_node_is_input(const tool_node *node);
bool tool_node_has_default(const tool_node *node);
bool tool_node_is_output(const tool_node *node);
bool tool_node_is_target(const tool_node *node);

/* Prints inputs, outputs and targets, at most `most` of each (describe.c). */
void tool_describe_ends(const tool_model *model, size_t most, FILE *out);
/* Adds a cell with the reason why a node cannot run, or else `otherwise`. */
void tool_table_reason(tool_table *table, const tool_node *node, const char *otherwise);

/* Appends an output's type and shape: "float32 [?, 8, 8, 1]". */
void tool_text_output(tool_text *text, tn_output output);
/* Returns an output's dims in a new array; *rank is -1 if unknown. */
int64_t *tool_output_dims(tn_output output, int32_t *rank);

/* Finds "node:output" or "node" in the graph. NOT_FOUND with the nearest names, OUT_OF_RANGE, INVALID_ARGUMENT. */
tn_status tool_find_output(tn_graph *graph, const char *what, const char *name, tn_output *out, tn_error *err);
tn_status tool_find_node(tn_graph *graph, const char *what, const char *name, tn_operation **out, tn_error *err);

/* Type of an output. If its op is unknown, the type that a user of the output requires; TN_DTYPE_INVALID if that is
 * also unknown. */
tn_dtype tool_output_dtype(tn_graph *graph, tn_output output);

/* Parses a list of types, "float|double" or "float, double"; bit n is dtype n. */
uint64_t tool_parse_types(const char *list, size_t length);

/* Parses a kernel's type constraints, "T=float|double,Tidx=int32"; calls `each` with each attribute and its list. */
void tool_each_constraint(const char *types,
                          void (*each)(void *user, const char *attr, size_t attr_length, const char *list,
                                       size_t list_length),
                          void *user);

#endif
