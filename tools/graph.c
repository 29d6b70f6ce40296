/* SPDX-License-Identifier: Apache-2.0 */
/* tenon graph: draws a model. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <tools/picture/picture.h>

static const char help[] =
    "Usage: tenon graph MODEL [-o FILE] [OPTION...]\n"
    "\n"
    "Draws a model. Nodes are grouped in frames by name scope; arrows are labelled with types and shapes.\n"
    "Constants are shown in the boxes of their users, and large graphs are folded scope by scope. Pictures are\n"
    "rendered by Graphviz (program 'dot'); DOT output does not need it.\n"
    "\n"
    "  -o, --output FILE  the output file; its suffix selects the format: .svg, .png, .pdf, or .dot and .gv\n"
    "                     for DOT text; without this option DOT text is written to standard output\n"
    "  --around NAME      draw only the neighbourhood of a node, or of the nodes in a name scope\n"
    "  --depth N          maximum distance from it in steps; default 2, or 1 for a scope\n"
    "  --fold N           fold until about N boxes remain; default 150\n"
    "  --no-fold          do not fold\n"
    "  --columns N        split a long chain into N columns; default: as many as needed, 1: never split\n"
    "  --constants        draw constants as separate boxes\n"
    "  --names            show full names\n"
    "  -h, --help         show this help\n";

typedef struct request {
  const char *model;
  const char *output; /* NULL: standard output */
  const char *format; /* dot's output format; NULL: DOT text */
  picture_options options;
} request;

/* ---- the command line ---- */

static int parse_number(const char *option, const char *text, uint32_t min, uint32_t *out)
{
  enum { MOST = 1000000 };
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < min || value > MOST)
    return tool_usage("graph", "%s '%s': expected a number from %" PRIu32 " to %d", option, text, min, (int)MOST);
  *out = (uint32_t)value;
  return TOOL_OK;
}

static int parse_output(request *r)
{
  static const struct {
    const char *ending, *format;
  } formats[] = { { ".svg", "svg" }, { ".png", "png" }, { ".pdf", "pdf" }, { ".dot", NULL }, { ".gv", NULL } };
  if (r->output == NULL) return TOOL_OK;
  const char *name = picture_last_part(r->output), *dot = strrchr(name, '.');
  for (size_t i = 0; dot != NULL && dot != name && i < sizeof(formats) / sizeof(formats[0]); i++)
    if (strcasecmp(dot, formats[i].ending) == 0) {
      r->format = formats[i].format;
      return TOOL_OK;
    }
  return tool_usage("graph", "-o '%s': the file must end in .svg, .png, .pdf, .dot or .gv", r->output);
}

static int check(request *r, int argc, char **argv)
{
  if (optind == argc) return tool_usage("graph", "no model file was given");
  if (optind + 1 < argc) return tool_usage("graph", "expected one model, but '%s' is a second one", argv[optind + 1]);
  if (r->options.depth != PICTURE_NONE && r->options.around == NULL)
    return tool_usage("graph", "--depth N requires --around NAME");
  r->model = argv[optind];
  return parse_output(r);
}

static int parse(request *r, int argc, char **argv)
{
  static const struct option options[] = {
    { "output", required_argument, NULL, 'o' }, { "around", required_argument, NULL, 'a' },
    { "depth", required_argument, NULL, 'd' },  { "fold", required_argument, NULL, 'f' },
    { "no-fold", no_argument, NULL, 'F' },      { "constants", no_argument, NULL, 'c' },
    { "names", no_argument, NULL, 'n' },        { "columns", required_argument, NULL, 'C' },
    { NULL, 0, NULL, 0 },
  };
  int c, status = TOOL_OK;
  memset(r, 0, sizeof(*r));
  r->options.boxes = PICTURE_BOXES;
  r->options.depth = PICTURE_NONE;
  while (status == TOOL_OK && (c = getopt_long(argc, argv, ":o:", options, NULL)) != -1) {
    switch (c) {
    case 'o': r->output = optarg; break;
    case 'a': r->options.around = optarg; break;
    case 'd': status = parse_number("--depth", optarg, 0, &r->options.depth); break;
    case 'f': status = parse_number("--fold", optarg, 1, &r->options.boxes); break;
    case 'F': r->options.boxes = 0; break;
    case 'C': status = parse_number("--columns", optarg, 1, &r->options.columns); break;
    case 'c': r->options.constants = true; break;
    case 'n': r->options.names = true; break;
    default: return tool_bad_option("graph", c, argv);
    }
  }
  return status == TOOL_OK ? check(r, argc, argv) : status;
}

/* ---- the picture ---- */

static tn_status put(const request *r, const picture *p, const tool_text *dot, tn_error *err)
{
  tool_text drawn = { 0 };
  tn_status status = TN_OK;
  if (r->output == NULL) {
    fwrite(dot->data, 1, dot->length, stdout);
    return TN_OK;
  }
  if (r->format != NULL) status = picture_render(r->format, dot, &drawn, err);
  const tool_text *content = r->format != NULL ? &drawn : dot;
  if (status == TN_OK) status = picture_save(r->output, content->data, content->length, err);
  if (status == TN_OK)
    printf("%s: %" PRIu32 " box%s and %zu arrow%s for %" PRIu32 " node%s\n", r->output, p->n_boxes,
           p->n_boxes == 1 ? "" : "es", p->n_arrows, p->n_arrows == 1 ? "" : "s", p->n, p->n == 1 ? "" : "s");
  tool_text_fini(&drawn);
  return status;
}

static tn_status draw(const request *r, tn_error *err)
{
  tn_graph *graph = NULL;
  picture p;
  tool_text dot = { 0 };
  /* Check the output file before doing any work. */
  tn_status status = r->output != NULL ? picture_check_place(r->output, err) : TN_OK;
  if (status == TN_OK) status = tool_graph_open(r->model, &graph, err);
  if (status != TN_OK) return status;
  status = picture_read(&p, graph, &r->options, err);
  if (status == TN_OK) {
    p.title = picture_last_part(r->model);
    picture_group_names(&p);
    picture_fold(&p);
    picture_divide(&p);
    picture_write(&p, &dot);
    status = put(r, &p, &dot, err);
  }
  tool_text_fini(&dot);
  picture_free(&p);
  tn_graph_unref(graph);
  return status;
}

static int run(int argc, char **argv)
{
  request r;
  tn_error err = TN_ERROR_INIT;
  int status = parse(&r, argc, argv);
  if (status != TOOL_OK) return status;
  return draw(&r, &err) == TN_OK ? TOOL_OK : tool_fail(&err);
}

const tool_command tool_cmd_graph = { "graph", "draw a model", help, run };
