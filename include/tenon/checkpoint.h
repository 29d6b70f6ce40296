/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: files of tensors under keys, as TensorFlow's savers write them.
 *
 * Version 2 is an index, PREFIX.index, and data files, PREFIX.data-00000-of-0000N. Version 1, which
 * is only read, is one table file, or several named PREFIX-00000-of-0000N. Every checksum is
 * verified before a value is returned.
 *
 * Threads: any thread may read an open checkpoint, several at once. Since 0.1 */
#ifndef TENON_CHECKPOINT_H
#define TENON_CHECKPOINT_H

#include <tenon/tensor.h>

TN_BEGIN_DECLS

#ifndef TN_PLUGIN

/* ---- reading ---- */

typedef struct tn_checkpoint tn_checkpoint;

/* A tensor of a checkpoint. Pointers are borrowed from the checkpoint. */
typedef struct tn_checkpoint_entry {
  size_t struct_size;
  const char *key;
  tn_dtype dtype;
  int32_t rank;
  const int64_t *dims; /* rank numbers */
  uint64_t bytes;      /* of the stored value; for strings, with their lengths */
  uint64_t n_slices;   /* of a partitioned tensor; 0: stored as a whole */
} tn_checkpoint_entry;

/* Opens a checkpoint and reads its index. Data files are opened when a value is read.
 * path     the prefix, the index file, a table file of version 1 (or the pattern
 *          PREFIX-?????-of-0000N), or a folder: then the newest checkpoint that its state file
 *          `checkpoint` names.
 * Returns  TN_NOT_FOUND, TN_PERMISSION_DENIED, TN_DATA_LOSS (a damaged index; the message names the
 *          file and the byte), TN_INVALID_ARGUMENT (not a checkpoint, or a version that needs a newer
 *          reader), TN_RESOURCE_EXHAUSTED. Any thread. Since 0.1 */
TN_API tn_status tn_checkpoint_open(const char *path, tn_checkpoint **out, tn_error *err);
TN_API void tn_checkpoint_close(tn_checkpoint *checkpoint); /* tensors read from it stay valid; NULL allowed */

/* The prefix of the files, borrowed, and the version: 1 or 2. Since 0.1 */
TN_API const char *tn_checkpoint_prefix(const tn_checkpoint *checkpoint);
TN_API int32_t tn_checkpoint_version(const tn_checkpoint *checkpoint);

/* The number of tensors, and tensor i in the order of the keys' bytes. The caller sets
 * out->struct_size. TN_OUT_OF_RANGE past the end. Since 0.1 */
TN_API size_t tn_checkpoint_count(const tn_checkpoint *checkpoint);
TN_API tn_status tn_checkpoint_at(const tn_checkpoint *checkpoint, size_t i, tn_checkpoint_entry *out, tn_error *err);
/* The tensor of a key. TN_NOT_FOUND names the nearest keys. Since 0.1 */
TN_API tn_status tn_checkpoint_find(const tn_checkpoint *checkpoint, const char *key, tn_checkpoint_entry *out,
                                    tn_error *err);

/* Reads the tensor of a key. Slices are put together.
 * Returns  TN_NOT_FOUND (no such key, or no data file), TN_DATA_LOSS (a wrong checksum, a file that
 *          ends too early, slices that do not cover the tensor), TN_RESOURCE_EXHAUSTED.
 *          Since 0.1 */
TN_API tn_status tn_checkpoint_read(tn_checkpoint *checkpoint, const char *key, tn_tensor **out, tn_error *err);

/* Reads n tensors, on several threads where that is faster. out[i] is NULL for all i on failure.
 * Since 0.1 */
TN_API tn_status tn_checkpoint_read_many(tn_checkpoint *checkpoint, const char *const *keys, size_t n, tn_tensor **out,
                                         tn_error *err);

/* ---- object-based checkpoints (Keras, tf.train.Checkpoint) ---- */

/* The number of paths through the checkpoint's object graph that lead to a tensor, and path i with
 * the key of the tensor; the shortest path of each tensor comes first. Names of edges are joined
 * with '/'; a '/' within a name is written %2F. An attribute other than VARIABLE_VALUE follows a
 * colon. Of an object with many paths at most eight are listed. 0: not an object-based checkpoint.
 * Borrowed from the checkpoint. TN_OUT_OF_RANGE past the end. Since 0.1 */
TN_API size_t tn_checkpoint_path_count(const tn_checkpoint *checkpoint);
TN_API tn_status tn_checkpoint_path_at(const tn_checkpoint *checkpoint, size_t i, const char **path, const char **key,
                                       tn_error *err);

/* The key of the tensor to which a path leads, such as "model/layer-1/kernel". Any path through the
 * graph is accepted, listed or not. The slot variable of an optimizer is
 * "OPTIMIZER:SLOT(VARIABLE)" with the paths of both.
 * Returns  TN_NOT_FOUND with the part of the path that leads nowhere and the names there,
 *          TN_FAILED_PRECONDITION if the checkpoint has no object graph. Since 0.1 */
TN_API tn_status tn_checkpoint_resolve(const tn_checkpoint *checkpoint, const char *path, const char **key,
                                       tn_error *err);

/* ---- writing ---- */

/* Options of writing; NULL = all defaults. New fields are only added at the end. */
typedef struct tn_checkpoint_options {
  size_t struct_size;
  int32_t shards;       /* data files; 0 or 1: one. Tensors are distributed by their sizes */
  tn_bool update_state; /* name the checkpoint in the folder's state file `checkpoint`, as the newest */
  tn_bool reserved[3];
  int32_t keep;         /* with update_state: delete listed checkpoints beyond the newest N; 0: keep all */
} tn_checkpoint_options;

/* Writes n tensors under their keys as a checkpoint of version 2. An existing checkpoint of the
 * prefix stays whole until the new one is complete on disk, and is then replaced; after a crash one
 * of the two can be read. Not for handles.
 * Returns  TN_INVALID_ARGUMENT (an empty or repeated key, a dtype that cannot be stored),
 *          TN_NOT_FOUND for the folder, TN_PERMISSION_DENIED, TN_RESOURCE_EXHAUSTED (memory, or the
 *          disk is full). Any thread. Since 0.1 */
TN_API tn_status tn_checkpoint_save(const char *prefix, const char *const *keys, tn_tensor *const *tensors, size_t n,
                                    const tn_checkpoint_options *options, tn_error *err);

/* The prefix of the newest checkpoint that a folder's state file names; to be freed with tn_free.
 * TN_NOT_FOUND if there is no state file or the checkpoint is gone. Since 0.1 */
TN_API tn_status tn_checkpoint_latest(const char *folder, char **prefix, tn_error *err);

/* ---- variables of a session ---- */

enum {
  /* Restore what the checkpoint has and report the rest. Else a variable without a value, or with
   * one of another shape or dtype, is an error, and nothing is restored. */
  TN_RESTORE_PARTIAL = 1u << 0
};

/* Options of a restore; NULL = all defaults: every variable, from the key that equals its name. */
typedef struct tn_restore_options {
  size_t struct_size;
  uint32_t flags;               /* TN_RESTORE_... */
  uint32_t reserved;
  const char *const *variables; /* n names of variables to restore, each from keys[i]; NULL: all variables */
  const char *const *keys;      /* keys, or paths of an object-based checkpoint; NULL: the names of the variables */
  size_t n;
} tn_restore_options;

typedef struct tn_restore_report tn_restore_report;

enum {
  TN_RESTORED = 0,          /* a variable that has its value now */
  TN_RESTORE_MISSING = 1,   /* a variable for which the checkpoint has no value */
  TN_RESTORE_LEFT_OVER = 2, /* a key that no variable uses */
  TN_RESTORE_MISFIT = 3     /* a variable whose dtype or shape the value does not fit */
};

/* Restores variables of a session's graph (VarHandleOp, VariableV2, Variable) by name: values are
 * read from the checkpoint into the variables, without running a saver. All or none: nothing is
 * assigned unless every value was read.
 * A variable without a key of its name is found in an object-based checkpoint by the name that it
 * had in the program, or, if the session is of a model, by the key under which the model's saver
 * stores it, or else by the only key that ends in that one. "All variables" of such a session are
 * those of the saver.
 * report   may be NULL; else receives the report, also if a variable is missing or misfits.
 * Returns  TN_NOT_FOUND (a name or key that does not exist, a value that is missing),
 *          TN_INVALID_ARGUMENT (a misfit), else as tn_checkpoint_read_many. Since 0.1 */
TN_API tn_status tn_session_restore(tn_session *session, tn_checkpoint *checkpoint, const tn_restore_options *options,
                                    tn_restore_report **report, tn_error *err);

/* Saves the variables of a session's graph that have a value, each under its name.
 * names    n names of variables; NULL: all. Returns TN_FAILED_PRECONDITION for a named variable
 *          without a value, else as tn_checkpoint_save. Since 0.1 */
TN_API tn_status tn_session_save(tn_session *session, const char *prefix, const char *const *names, size_t n,
                                 const tn_checkpoint_options *options, tn_error *err);

/* The number of items of a kind, and the name (a key for TN_RESTORE_LEFT_OVER) and explanation of
 * item i: "" for a restored one, else such as "float32 [3,4] in the checkpoint, [4,3] wanted".
 * Borrowed from the report. NULL past the end. Since 0.1 */
TN_API size_t tn_restore_report_count(const tn_restore_report *report, int32_t kind);
TN_API const char *tn_restore_report_at(const tn_restore_report *report, int32_t kind, size_t i, const char **text);
TN_API void tn_restore_report_destroy(tn_restore_report *report); /* NULL allowed */

#endif

TN_END_DECLS

#endif
