/* SPDX-License-Identifier: Apache-2.0 */
/* tenon checkpoint import: writes the arrays of an .npz file as a checkpoint. */
#include <fnmatch.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <tools/checkpoint/checkpoint.h>

enum { MOST_SHARDS = 99999 };

typedef struct typing {
  char *pattern;
  tn_dtype dtype;
} typing;

typedef struct request {
  const char *file, *prefix;
  typing *types;
  size_t n_types, type_room;
  int32_t shards;
} request;

/* ---- reading ---- */

static tn_dtype dtype_of(const request *r, const char *key)
{
  for (size_t i = r->n_types; i > 0; i--)
    if (strcmp(r->types[i - 1].pattern, key) == 0 || fnmatch(r->types[i - 1].pattern, key, 0) == 0)
      return r->types[i - 1].dtype;
  return TN_DTYPE_INVALID;
}

/* The object graph is exported as bytes. */
static tn_status join_bytes(tn_tensor **tensor, tn_error *err)
{
  const char *text = tn_tensor_data(*tensor);
  size_t length = tn_tensor_bytes(*tensor);
  tn_tensor *joined;
  if (length == 0) text = "";
  tn_status status = tn_tensor_from_strings(NULL, 0, &text, &length, &joined, err);
  if (status != TN_OK) return status;
  tn_tensor_unref(*tensor);
  *tensor = joined;
  return TN_OK;
}

static tn_status load(const request *r, tn_npz *npz, const char *key, tn_tensor **out, tn_error *err)
{
  tn_dtype dtype = dtype_of(r, key);
  tn_status status = tn_npz_load(npz, key, dtype, out, err);
  /* Plain pairs of bytes are bfloat16, as export writes it. */
  if (status != TN_OK && dtype == TN_DTYPE_INVALID && tn_npz_load(npz, key, TN_BFLOAT16, out, NULL) == TN_OK) {
    tn_error_clear(err);
    return TN_OK;
  }
  if (status == TN_OK && strcmp(key, checkpoint_object_graph) == 0 && tn_tensor_dtype(*out) == TN_UINT8)
    status = join_bytes(out, err);
  if (status != TN_OK) tn_error_prefix(err, "key '%s'", key);
  return status;
}

/* ---- writing ---- */

static uint64_t bytes_of(tn_tensor *const *tensors, size_t n)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < n; i++) bytes += tn_tensor_bytes(tensors[i]);
  return bytes;
}

static tn_status save(const request *r, const char *const *keys, tn_tensor *const *tensors, size_t n, tn_error *err)
{
  tn_checkpoint_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.shards = r->shards;
  tool_progress *progress = tool_progress_start_writing("writing", bytes_of(tensors, n));
  tn_status status = tn_checkpoint_save(r->prefix, keys, tensors, n, &options, err);
  tool_progress_end(progress);
  return status;
}

static tn_status import_arrays(const request *r, tn_npz *npz, tn_error *err)
{
  tn_status status = TN_OK;
  size_t n = tn_npz_count(npz);
  char text[32];
  const char **keys = tool_alloc(n, sizeof(*keys));
  tn_tensor **tensors = tool_alloc(n, sizeof(tn_tensor *));
  tool_progress *progress = tool_progress_start("reading", n);
  for (size_t i = 0; i < n && status == TN_OK; i++) {
    keys[i] = tn_npz_key(npz, i);
    status = load(r, npz, keys[i], &tensors[i], err);
    tool_progress_set(progress, i + 1);
  }
  tool_progress_end(progress);
  if (status == TN_OK) status = save(r, keys, tensors, n, err);
  if (status == TN_OK)
    printf("%s: %zu tensor%s with %s\n", r->prefix, n, n == 1 ? "" : "s", tool_bytes_text(text, bytes_of(tensors, n)));
  for (size_t i = 0; i < n; i++) tn_tensor_unref(tensors[i]);
  free(tensors);
  free(keys);
  return status;
}

static tn_status import(const request *r, tn_error *err)
{
  tn_npz *npz = NULL;
  char *real = NULL;
  tn_status status = tool_real_name(r->prefix, &real, err); /* before any work */
  free(real);
  if (status == TN_OK) status = tn_npz_open(r->file, &npz, err);
  if (status == TN_OK) status = import_arrays(r, npz, err);
  tn_npz_close(npz);
  return status;
}

/* ---- the command line ---- */

static int add_type(request *r, const char *text)
{
  const char *equals = strrchr(text, '=');
  tn_dtype dtype = equals != NULL ? tn_dtype_from_name(equals + 1) : TN_DTYPE_INVALID;
  if (equals == NULL) return tool_usage("checkpoint", "--dtype '%s': expected KEY=TYPE, as in weights=bfloat16", text);
  if (tn_dtype_size(dtype) == 0)
    return tool_usage("checkpoint", "--dtype '%s': there is no type '%s'", text, equals + 1);
  r->types = tool_grow(r->types, r->n_types, &r->type_room, sizeof(*r->types));
  typing *type = &r->types[r->n_types++];
  type->dtype = dtype;
  type->pattern = tool_alloc((size_t)(equals - text) + 1, 1);
  memcpy(type->pattern, text, (size_t)(equals - text));
  return TOOL_OK;
}

static int parse_shards(request *r, const char *text)
{
  size_t digits = strspn(text, "0123456789");
  long n = digits > 0 && digits < 6 && text[digits] == '\0' ? strtol(text, NULL, 10) : 0;
  if (n < 1) return tool_usage("checkpoint", "--shards '%s': expected a number from 1 to %d", text, (int)MOST_SHARDS);
  r->shards = (int32_t)n;
  return TOOL_OK;
}

static int check(request *r, int argc, char **argv)
{
  int status = checkpoint_arguments(argc, argv, 2, "IN.npz PREFIX");
  if (status != TOOL_OK) return status;
  r->file = argv[optind];
  r->prefix = argv[optind + 1];
  size_t length = strlen(r->prefix);
  if (optind + 2 < argc) return tool_usage("checkpoint", "unexpected argument '%s'", argv[optind + 2]);
  if (!checkpoint_is_npz(r->file))
    return tool_usage("checkpoint", "'%s': the name of the input file must end in .npz", r->file);
  if (length == 0 || r->prefix[length - 1] == '/')
    return tool_usage("checkpoint", "'%s': expected a prefix, such as folder/model", r->prefix);
  return TOOL_OK;
}

int checkpoint_import(int argc, char **argv)
{
  static const struct option options[] = {
    { "dtype", required_argument, NULL, 'd' },
    { "shards", required_argument, NULL, 's' },
    { NULL, 0, NULL, 0 },
  };
  request r;
  tn_error err = TN_ERROR_INIT;
  int c, status = TOOL_OK;
  memset(&r, 0, sizeof(r));
  while (status == TOOL_OK && (c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    switch (c) {
    case 'd': status = add_type(&r, optarg); break;
    case 's': status = parse_shards(&r, optarg); break;
    default: status = tool_bad_option("checkpoint", c, argv);
    }
  }
  if (status == TOOL_OK) status = check(&r, argc, argv);
  if (status == TOOL_OK && import(&r, &err) != TN_OK) status = tool_fail(&err);
  for (size_t i = 0; i < r.n_types; i++) free(r.types[i].pattern);
  free(r.types);
  return status;
}
