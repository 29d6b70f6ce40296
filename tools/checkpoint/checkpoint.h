/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `tenon checkpoint`. argv[0] is the command's name. */
#ifndef TENON_TOOLS_CHECKPOINT_CHECKPOINT_H
#define TENON_TOOLS_CHECKPOINT_CHECKPOINT_H

#include <tools/tool.h>

int checkpoint_list(int argc, char **argv);
int checkpoint_show(int argc, char **argv);
int checkpoint_diff(int argc, char **argv);
int checkpoint_export(int argc, char **argv);
int checkpoint_import(int argc, char **argv);

/* The key of the object graph. Its value is a serialized message, not a variable. */
extern const char checkpoint_object_graph[];

/* Reports unless there are `wanted` arguments from optind on; `names` says what they are, as in "PREFIX KEY". */
int checkpoint_arguments(int argc, char **argv, int wanted, const char *names);

/* Entry i, which exists. */
tn_checkpoint_entry checkpoint_entry_at(const tn_checkpoint *checkpoint, size_t i);
bool checkpoint_is_npz(const char *file); /* by its name */
/* Whether one of the n shell patterns matches a key; true if there are none. */
bool checkpoint_matches(char *const *patterns, int n, const char *key);
/* Appends "float32 [3, 4]". */
void checkpoint_text_type(tool_text *text, const tn_checkpoint_entry *entry);
json_t *checkpoint_json_entry(const tn_checkpoint_entry *entry);

/* ---- object paths (paths.c) ---- */

/* The paths of an object-based checkpoint, sorted by key. */
typedef struct checkpoint_path {
  const char *key, *path; /* borrowed from the checkpoint */
  size_t order;
} checkpoint_path;

typedef struct checkpoint_paths {
  checkpoint_path *items;
  size_t n;
} checkpoint_paths;

checkpoint_paths checkpoint_paths_read(const tn_checkpoint *checkpoint);
/* The first path to a key, and how many there are; 0 with NULL. */
const checkpoint_path *checkpoint_paths_find(const checkpoint_paths *paths, const char *key, size_t *n);

/* ---- statistics (statistics.c) ---- */

/* Of the finite elements; those of complex numbers are their absolute values. */
typedef struct checkpoint_statistics {
  uint64_t n, finite, zeros, nans, infinities;
  double min, max, mean, std; /* std: of the population, as NumPy's */
} checkpoint_statistics;

enum { CHECKPOINT_BINS = 24 };

/* Bins of equal width with round limits. */
typedef struct checkpoint_histogram {
  double first; /* lower limit of bin 0, in widths */
  double width; /* 0: all values are `first` */
  size_t n;
  bool whole; /* the values are integers: a bin ends before the next one's limit */
  uint64_t counts[CHECKPOINT_BINS];
} checkpoint_histogram;

void checkpoint_statistics_of(const tool_values *values, checkpoint_statistics *out);
void checkpoint_histogram_of(const tool_values *values, const checkpoint_statistics *s, checkpoint_histogram *out);
double checkpoint_bin_low(const checkpoint_histogram *h, size_t bin);
void checkpoint_print_histogram(const checkpoint_histogram *h, const checkpoint_statistics *s);

#endif
