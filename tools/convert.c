/* SPDX-License-Identifier: Apache-2.0 */
/* tenon convert: a model into another file, in the form that its name says. */
#include <getopt.h>
#include <string.h>

#include <tools/tool.h>

static const char help[] =
    "Usage: tenon convert MODEL -o FILE [--text]\n"
    "\n"
    "Writes the graph of a model into another file. A FILE that ends in .pbtxt gets protobuf's text form, any\n"
    "other one its bytes. Nodes, attributes, functions and versions stay as they are; a model that is not\n"
    "valid is refused, as it is by tenon run.\n"
    "\n"
    "  -o, --output FILE  where the graph goes; /dev/stdout works, too\n"
    "  --text             the text form, whatever FILE is called\n"
    "  -h, --help         show this text\n";

static int run(int argc, char **argv)
{
  static const struct option options[] = {
    { "output", required_argument, NULL, 'o' },
    { "text", no_argument, NULL, 't' },
    { NULL, 0, NULL, 0 },
  };
  const char *output = NULL;
  uint32_t flags = 0;
  int c;
  while ((c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
    if (c == 'o')
      output = optarg;
    else if (c == 't')
      flags |= TN_EXPORT_TEXT;
    else
      return tool_bad_option("convert", c, argv);
  }
  if (optind == argc) return tool_usage("convert", "the file of the model is missing");
  if (optind + 1 < argc) return tool_usage("convert", "one model is wanted, '%s' is one more", argv[optind + 1]);
  if (output == NULL) return tool_usage("convert", "'-o FILE' is missing");
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  if (tool_model_open(argv[optind], &graph, &err) != TN_OK) return tool_fail(&err);
  tn_status status = tn_graph_export_file(graph, output, flags, &err);
  tn_graph_unref(graph);
  return status == TN_OK ? TOOL_OK : tool_fail(&err);
}

const tool_command tool_cmd_convert = {
  .name = "convert",
  .summary = "write a model in text form or as bytes",
  .help = help,
  .run = run,
};
