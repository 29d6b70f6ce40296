/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and error objects.
 *
 * Every function that can fail returns a tn_status and has `tn_error *err` as its last parameter,
 * which may be NULL. A public function first resets the error object, so afterwards the object
 * describes that call.
 * Since 0.1 */
#ifndef TENON_STATUS_H
#define TENON_STATUS_H

#include <tenon/types.h>

TN_BEGIN_DECLS

/* X(name, number, text). Names and numbers are those of gRPC and TensorFlow. */
#define TN_STATUS_MAP(X)                                                 \
  X(OK, 0, "no error")                                                   \
  X(CANCELLED, 1, "the operation was cancelled")                         \
  X(UNKNOWN, 2, "unknown error")                                         \
  X(INVALID_ARGUMENT, 3, "an argument is invalid")                       \
  X(DEADLINE_EXCEEDED, 4, "the time limit was exceeded")                 \
  X(NOT_FOUND, 5, "the requested item does not exist")                   \
  X(ALREADY_EXISTS, 6, "the item to be created already exists")          \
  X(PERMISSION_DENIED, 7, "permission denied")                           \
  X(RESOURCE_EXHAUSTED, 8, "memory or another resource is exhausted")    \
  X(FAILED_PRECONDITION, 9, "the current state does not allow the call") \
  X(ABORTED, 10, "the operation was aborted")                            \
  X(OUT_OF_RANGE, 11, "a value is out of range")                         \
  X(UNIMPLEMENTED, 12, "not supported")                                  \
  X(INTERNAL, 13, "an internal invariant was violated")                  \
  X(UNAVAILABLE, 14, "the service or device is currently unavailable")   \
  X(DATA_LOSS, 15, "data was lost or corrupted")                         \
  X(UNAUTHENTICATED, 16, "no valid credentials")

enum {
#define TN__STATUS_ENUM(name, number, text) TN_##name = number,
  TN_STATUS_MAP(TN__STATUS_ENUM)
#undef TN__STATUS_ENUM
  /* Not an error: a kernel's compute is waiting and will be called again (op.h). */
  TN_PENDING = 1000
};

/* Name of a code, for example "INVALID_ARGUMENT"; "UNKNOWN" for any other number. Static text.
 * Any thread. Since 0.1 */
TN_API const char *tn_status_name(tn_status code);

/* One line that explains a code. Static text. Any thread. Since 0.1 */
TN_API const char *tn_status_text(tn_status code);

/* Code of a name such as "INVALID_ARGUMENT".
 * Returns TN_OK and *out; TN_NOT_FOUND for an unknown name, with *out set to TN_UNKNOWN.
 *         Any thread. Since 0.1 */
TN_API tn_status tn_status_from_name(const char *name, tn_status *out);

/* An error object is owned by its caller and usually lives on the stack:
 *
 *   tn_error err = TN_ERROR_INIT;
 *   if (tn_session_run(..., &err) != TN_OK) fprintf(stderr, "%s\n", tn_error_message(&err));
 *   tn_error_clear(&err);
 *
 * Short texts are stored in `inline_text`, longer ones on the heap. If heap memory is not
 * available, the text is truncated and ends in "...". Read the fields through the functions below.
 * An object must not be used by two threads at once. */
struct tn_error {
  size_t struct_size;
  tn_status code;
  uint32_t n_causes;
  uint32_t used;       /* bytes in use: message, node and causes, each with its NUL */
  uint32_t spill_size; /* bytes allocated for spill */
  char *spill;         /* the texts if they do not fit inline_text, else NULL */
  char inline_text[224];
};

#define TN_ERROR_INIT { sizeof(tn_error), 0, 0, 0, 0, NULL, { 0 } }

/* Initialises an error object to TN_OK, without texts. It must not hold a text: nothing is freed.
 * Since 0.1 */
TN_API void tn_error_init(tn_error *err);

/* Frees the texts of the object and resets it to TN_OK. NULL is allowed. Since 0.1 */
TN_API void tn_error_clear(tn_error *err);

/* The code; TN_OK for NULL. Since 0.1 */
TN_API tn_status tn_error_code(const tn_error *err);

/* The message without causes, "" for TN_OK. Borrowed until the next change of `err`. Since 0.1 */
TN_API const char *tn_error_message(const tn_error *err);

/* Name of the node that failed, "" if there is none. Borrowed like the message. Since 0.1 */
TN_API const char *tn_error_node(const tn_error *err);

/* The chain of causes, nearest first; the last is the deepest, for example a message of the dynamic
 * linker. Past the end tn_error_cause returns "". Borrowed like the message. Since 0.1 */
TN_API size_t tn_error_n_causes(const tn_error *err);
TN_API const char *tn_error_cause(const tn_error *err, size_t i);

/* Writes "CODE: message" and a line "  caused by: ..." for each cause to buffer[size], always
 * NUL-terminated. Returns the length of the whole text without its NUL, as snprintf does. Since 0.1 */
TN_API size_t tn_error_format(const tn_error *err, char *buffer, size_t size);

/* Copies code, texts and causes. An older error in `to` is freed. Since 0.1 */
TN_API void tn_error_copy(tn_error *to, const tn_error *from);

/* Sets the node name of an error, unless the code is TN_OK or a name is already set. Since 0.1 */
TN_API void tn_error_set_node(tn_error *err, const char *node);

/* Records an error, formatted as by printf. Does nothing if `err` is NULL or already holds an
 * error: the first error wins. Returns `code`, so that a function can `return tn_error_set(err,
 * TN_NOT_FOUND, "...")`. Since 0.1 */
#ifdef TN_PLUGIN
#define tn_error_set (TN_HOST_TABLE->base->error_set)
#define tn_error_wrap (TN_HOST_TABLE->base->error_wrap)
#define tn_error_prefix (TN_HOST_TABLE->base->error_prefix)
#else
TN_API tn_status tn_error_set(tn_error *err, tn_status code, const char *format, ...) TN_PRINTF(3, 4);

/* Replaces the message of an error; the old message becomes the first cause. The code becomes
 * `code`, or is kept if `code` is TN_OK. Returns the code, or TN_UNKNOWN if neither `err` nor
 * `code` has one. Since 0.1 */
TN_API tn_status tn_error_wrap(tn_error *err, tn_status code, const char *format, ...) TN_PRINTF(3, 4);

/* Prepends "text: " to the message of an error. Returns its code, TN_UNKNOWN for NULL. Since 0.1 */
TN_API tn_status tn_error_prefix(tn_error *err, const char *format, ...) TN_PRINTF(2, 3);
#endif

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
