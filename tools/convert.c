/* SPDX-License-Identifier: Apache-2.0 */
/* tenon convert: copies a model to another file, in the format that the file's name selects. */
#include <getopt.h>
#include <string.h>

#include <tools/tool.h>

static const char help[] =
    "Usage: tenon convert MODEL -o FILE [--text]\n"
    "\n"
    "Writes the graph of a model to another file. If the name of FILE ends in .pbtxt, the file is written in\n"
    "protobuf's text form, otherwise as bytes. Nodes, attributes, functions and versions are unchanged. An\n"
    "invalid model is rejected, as by 'tenon run'.\n"
    "\n"
    "  -o, --output FILE  the output file; may be /dev/stdout\n"
    "  --text             write the text form, whatever the name of FILE\n"
    "  -h, --help         show this help\n";

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
  if (optind == argc) return tool_usage("convert", "no model file was given");
  if (optind + 1 < argc) return tool_usage("convert", "expected one model, but '%s' is a second one", argv[optind + 1]);
  if (output == NULL) return tool_usage("convert", "-o FILE is required");
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  if (tool_graph_open(argv[optind], &graph, &err) != TN_OK) return tool_fail(&err);
  tn_status status = tn_graph_export_file(graph, output, flags, &err);
  tn_graph_unref(graph);
  return status == TN_OK ? TOOL_OK : tool_fail(&err);
}

const tool_command tool_cmd_convert = {
  .name = "convert",
  .summary = "convert a model between text and binary form",
  .help = help,
  .run = run,
};
