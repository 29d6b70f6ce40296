/* SPDX-License-Identifier: Apache-2.0 */
/* tenon freeze: writes a signature of a model as a GraphDef without variables. */
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>

#include <tools/tool.h>

static const char help[] =
    "Usage: tenon freeze MODEL -o FILE [OPTION...]\n"
    "\n"
    "Writes one signature of a model as a frozen graph: a GraphDef in which variables are constants with their\n"
    "current values, without the nodes that the signature's outputs do not need. Inputs and outputs keep the names\n"
    "of their tensors. MODEL is the folder of a SavedModel, or a MetaGraph (X.meta) with --checkpoint.\n"
    "\n"
    "  -o, --output FILE        the output file, as for 'tenon convert': .pbtxt selects protobuf's text form\n"
    "  --signature NAME         the signature; default: serving_default, or the only one\n"
    "  --tags TAG[,TAG...]      the MetaGraph with these tags; default: serve, or the only one\n"
    "  --checkpoint PREFIX      take the variables from this checkpoint instead of the model's own\n"
    "  --inline                 replace calls of functions by the functions' nodes\n"
    "  --runtime NAME[:K=V,...] the runtime that initialises the model\n"
    "  -h, --help               show this help\n"
    "\n"
    "Examples:\n"
    "  tenon freeze half_plus_two -o half_plus_two.pb\n"
    "  tenon freeze model --signature predict --inline -o predict.pbtxt\n";

typedef struct request {
  tool_source_request source;
  const char *output, *runtime;
  uint32_t flags;
} request;

static tn_status open_session(const request *r, const tool_source *source, tn_session **out, tn_error *err)
{
  tn_session_options *options = NULL;
  *out = NULL;
  tn_status status = tn_session_options_create(&options, err);
  /* Only the initialisers run; the devices that other nodes ask for need not exist here. */
  if (status == TN_OK) status = tn_session_options_set_bool(options, "allow_soft_placement", 1, err);
  if (status == TN_OK) status = tool_set_target(options, r->runtime, err);
  if (status == TN_OK) status = tool_source_session(source, options, out, err);
  tn_session_options_destroy(options);
  return status;
}

static void print_result(const request *r, const tool_source *source, tn_graph *frozen)
{
  struct stat about;
  char bytes[32];
  printf("%s: %zu node%s", r->output, tn_graph_n_operations(frozen), tn_graph_n_operations(frozen) == 1 ? "" : "s");
  if (stat(r->output, &about) == 0 && S_ISREG(about.st_mode))
    printf(", %s", tool_bytes_text(bytes, (uint64_t)about.st_size));
  fputc('\n', stdout);
  if (source->signature.name != NULL) tool_print_signature(source, &source->signature, NULL, 20, stdout);
}

/* Whether the graph is written where the result would be printed. */
static bool to_standard_output(const char *path)
{
  struct stat file, out;
  return stat(path, &file) == 0 && fstat(1, &out) == 0 && file.st_dev == out.st_dev && file.st_ino == out.st_ino;
}

static tn_status freeze(const request *r, tn_error *err)
{
  tool_source source;
  tn_session *session = NULL;
  tn_graph *frozen = NULL;
  tn_status status = tool_source_open(&source, &r->source, err);
  if (status != TN_OK) return status;
  status = open_session(r, &source, &session, err);
  if (status == TN_OK) status = tn_model_freeze(session, r->source.signature, r->flags, &frozen, err);
  if (status == TN_OK) status = tn_graph_export_file(frozen, r->output, 0, err);
  if (status == TN_OK && !to_standard_output(r->output)) print_result(r, &source, frozen);
  tn_graph_unref(frozen);
  tn_session_destroy(session);
  tool_source_close(&source);
  return status;
}

static int run(int argc, char **argv)
{
  static const struct option options[] = {
    { "output", required_argument, NULL, 'o' },
    { "signature", required_argument, NULL, 's' },
    { "tags", required_argument, NULL, 't' },
    { "checkpoint", required_argument, NULL, 'c' },
    { "inline", no_argument, NULL, 'i' },
    { "runtime", required_argument, NULL, 'r' },
    { NULL, 0, NULL, 0 },
  };
  request r;
  tn_error err = TN_ERROR_INIT;
  int c;
  memset(&r, 0, sizeof(r));
  while ((c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
    switch (c) {
    case 'o': r.output = optarg; break;
    case 's': r.source.signature = optarg; break;
    case 't': r.source.tags = optarg; break;
    case 'c': r.source.checkpoint = optarg; break;
    case 'i': r.flags |= TN_FREEZE_INLINE; break;
    case 'r': r.runtime = optarg; break;
    default: return tool_bad_option("freeze", c, argv);
    }
  }
  if (optind == argc) return tool_usage("freeze", "no model was given");
  if (optind + 1 < argc) return tool_usage("freeze", "expected one model, but '%s' is a second one", argv[optind + 1]);
  if (r.output == NULL) return tool_usage("freeze", "-o FILE is required");
  r.source.path = argv[optind];
  tn_status status = freeze(&r, &err);
  int result = status == TN_OK ? TOOL_OK : tool_fail(&err);
  if (status == TN_NOT_FOUND) tool_hint_no_runtime();
  return result;
}

const tool_command tool_cmd_freeze = { "freeze", "write a signature of a model as a graph without variables", help,
                                       run };
