/* SPDX-License-Identifier: Apache-2.0 */
/* tenon checkpoint export: writes the tensors of a checkpoint to an .npz file.
 *
 * NumPy drops zero bytes at the end of a string. Strings are therefore written without them, with a warning, and the
 * object graph, a serialized message, is written as an array of bytes. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/checkpoint/checkpoint.h>

/* Tensors are read in groups, so that several threads read and the progress is seen. */
enum { GROUP_KEYS = 256 };
static const uint64_t GROUP_BYTES = UINT64_C(1) << 26;

typedef struct request {
  const char *path, *file;
  char *const *patterns;
  int n_patterns;
  bool compress, skip;
} request;

typedef struct content {
  const char **keys; /* borrowed from the checkpoint */
  tn_tensor **tensors;
  uint64_t *sizes;
  size_t n;
  uint64_t bytes;
} content;

/* ---- strings ---- */

static size_t length_without_zeros(const char *text, size_t length)
{
  while (length > 0 && text[length - 1] == '\0') length--;
  return length;
}

/* The number of strings that end in a zero byte; *texts and *lengths receive all of them without these bytes. */
static int64_t strip(const tn_tensor *tensor, const char **texts, size_t *lengths)
{
  int64_t n = 0;
  for (int64_t i = 0; i < tn_tensor_elements(tensor); i++) {
    size_t length = 0;
    texts[i] = "";
    tn_tensor_get_string(tensor, i, &texts[i], &length, NULL);
    lengths[i] = length_without_zeros(texts[i], length);
    if (lengths[i] < length) n++;
  }
  return n;
}

/* Replaces the object graph by its bytes. */
static tn_status replace_by_bytes(tn_tensor **tensor, tn_error *err)
{
  const char *text;
  size_t length;
  tn_tensor *bytes;
  tn_status status = tn_tensor_get_string(*tensor, 0, &text, &length, err);
  int64_t dims[1] = { (int64_t)length };
  if (status == TN_OK) status = tn_tensor_from_data(TN_UINT8, dims, 1, text, length, &bytes, err);
  if (status != TN_OK) return status;
  tn_tensor_unref(*tensor);
  *tensor = bytes;
  return TN_OK;
}

/* Drops zero bytes at the ends of strings; with --skip, the tensor becomes NULL. */
static tn_status make_storable(const request *r, const char *key, tn_tensor **tensor, tn_error *err)
{
  tn_dtype dtype = tn_tensor_dtype(*tensor);
  int64_t elements = tn_tensor_elements(*tensor);
  tn_tensor *stripped = NULL;
  tn_status status = TN_OK;
  if (dtype != TN_STRING) return TN_OK;
  if (strcmp(key, checkpoint_object_graph) == 0 && elements == 1) return replace_by_bytes(tensor, err);
  const char **texts = tool_alloc((size_t)elements, sizeof(*texts));
  size_t *lengths = tool_alloc((size_t)elements, sizeof(*lengths));
  int64_t n = strip(*tensor, texts, lengths);
  if (n > 0)
    fprintf(stderr, "key '%s': %" PRId64 " of %" PRId64 " strings end in zero bytes, which NumPy does not keep: %s\n",
            key, n, elements, r->skip ? "left out" : "written without them");
  if (n > 0 && !r->skip)
    status = tn_tensor_from_strings(tn_tensor_dims(*tensor), tn_tensor_rank(*tensor), texts, lengths, &stripped, err);
  if (status == TN_OK && n > 0) {
    tn_tensor_unref(*tensor);
    *tensor = stripped;
  }
  free(texts);
  free(lengths);
  return status;
}

/* ---- reading ---- */

static void choose_keys(const request *r, const tn_checkpoint *checkpoint, content *out)
{
  size_t n = tn_checkpoint_count(checkpoint);
  out->keys = tool_alloc(n, sizeof(*out->keys));
  out->sizes = tool_alloc(n, sizeof(*out->sizes));
  out->tensors = tool_alloc(n, sizeof(tn_tensor *));
  for (size_t i = 0; i < n; i++) {
    tn_checkpoint_entry entry = checkpoint_entry_at(checkpoint, i);
    if (!checkpoint_matches(r->patterns, r->n_patterns, entry.key)) continue;
    out->keys[out->n] = entry.key;
    out->sizes[out->n++] = entry.bytes;
    out->bytes += entry.bytes;
  }
}

/* The end of the group that begins at `first`; *bytes is increased by its size. */
static size_t end_of_group(const content *c, size_t first, uint64_t *bytes)
{
  size_t end = first;
  for (uint64_t in_group = 0; end < c->n && end < first + GROUP_KEYS && in_group < GROUP_BYTES; end++) {
    in_group += c->sizes[end];
    *bytes += c->sizes[end];
  }
  return end;
}

static tn_status read_tensors(const request *r, tn_checkpoint *checkpoint, content *c, tn_error *err)
{
  tn_status status = TN_OK;
  uint64_t done = 0;
  tool_progress *progress = tool_progress_start_bytes("reading", c->bytes);
  for (size_t i = 0, end; i < c->n && status == TN_OK; i = end) {
    end = end_of_group(c, i, &done);
    status = tn_checkpoint_read_many(checkpoint, c->keys + i, end - i, c->tensors + i, err);
    tool_progress_set(progress, done);
  }
  tool_progress_end(progress);
  for (size_t i = 0; i < c->n && status == TN_OK; i++) {
    status = make_storable(r, c->keys[i], &c->tensors[i], err);
    if (status != TN_OK) tn_error_prefix(err, "key '%s'", c->keys[i]);
  }
  return status;
}

/* ---- the command ---- */

/* Removes the tensors that were left out. */
static void close_gaps(content *c)
{
  size_t kept = 0;
  for (size_t i = 0; i < c->n; i++) {
    if (c->tensors[i] == NULL) continue;
    c->keys[kept] = c->keys[i];
    c->tensors[kept++] = c->tensors[i];
  }
  c->n = kept;
}

static tn_status write_npz(const request *r, const content *c, tn_error *err)
{
  char bytes[32];
  if (c->n == 0)
    return tn_error_set(err, TN_NOT_FOUND, "'%s': no tensor to export%s", r->path,
                        r->n_patterns > 0 ? " matches the patterns" : "");
  tool_progress *progress = tool_progress_start_writing("writing", r->compress ? 0 : c->bytes);
  tn_status status = tn_npz_save(c->keys, c->tensors, c->n, r->compress ? TN_NPZ_DEFLATE : 0, r->file, err);
  tool_progress_end(progress);
  if (status == TN_OK)
    printf("%s: %zu array%s with %s\n", r->file, c->n, c->n == 1 ? "" : "s", tool_bytes_text(bytes, c->bytes));
  return status;
}

static tn_status export(const request *r, tn_error *err)
{
  tn_checkpoint *checkpoint = NULL;
  content c = { NULL, NULL, NULL, 0, 0 };
  char *real = NULL;
  tn_status status = tool_real_name(r->file, &real, err); /* before any work */
  free(real);
  if (status == TN_OK) status = tn_checkpoint_open(r->path, &checkpoint, err);
  if (status == TN_OK) choose_keys(r, checkpoint, &c);
  if (status == TN_OK) status = read_tensors(r, checkpoint, &c, err);
  if (status == TN_OK) close_gaps(&c);
  if (status == TN_OK) status = write_npz(r, &c, err);
  for (size_t i = 0; i < c.n; i++) tn_tensor_unref(c.tensors[i]);
  free(c.keys);
  free(c.tensors);
  free(c.sizes);
  tn_checkpoint_close(checkpoint);
  return status;
}

int checkpoint_export(int argc, char **argv)
{
  static const struct option options[] = {
    { "compress", no_argument, NULL, 'z' },
    { "skip", no_argument, NULL, 's' },
    { NULL, 0, NULL, 0 },
  };
  request r;
  tn_error err = TN_ERROR_INIT;
  int c;
  memset(&r, 0, sizeof(r));
  while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    switch (c) {
    case 'z': r.compress = true; break;
    case 's': r.skip = true; break;
    default: return tool_bad_option("checkpoint", c, argv);
    }
  }
  int status = checkpoint_arguments(argc, argv, 2, "PREFIX OUT.npz");
  if (status != TOOL_OK) return status;
  r.path = argv[optind];
  r.file = argv[optind + 1];
  r.patterns = argv + optind + 2;
  r.n_patterns = argc - optind - 2;
  if (!checkpoint_is_npz(r.file))
    return tool_usage("checkpoint", "'%s': the name of the output file must end in .npz", r.file);
  return export(&r, &err) == TN_OK ? TOOL_OK : tool_fail(&err);
}
