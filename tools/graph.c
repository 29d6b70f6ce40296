/* SPDX-License-Identifier: Apache-2.0 */
/* tenon graph: a picture of a model. */
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
    "Draws a model: its nodes in frames for name scopes, with types and shapes beside the arrows. Constants\n"
    "are lines in the boxes that use them; what is too much to read is folded, scope by scope. Pictures are\n"
    "made by Graphviz (its program 'dot'); DOT text needs none.\n"
    "\n"
    "  -o, --output FILE  where to, by its ending: .svg, .png, .pdf, or .dot and .gv for DOT text; without it\n"
    "                     DOT text goes to standard output\n"
    "  --around NAME      only what is near to a node, or to the nodes of a name scope\n"
    "  --depth N          how many steps away from it, default 2; 1 for a scope\n"
    "  --fold N           fold until there are about N boxes, default 150\n"
    "  --no-fold          fold nothing\n"
    "  --columns N        divide a long chain into N columns; default: as many as it takes, 1: never\n"
    "  --constants        constants as boxes of their own\n"
    "  --names            names in full\n"
    "  -h, --help         show this text\n";

typedef struct request {
  const char *model;
  const char *output; /* NULL: standard output */
  const char *format; /* for dot; NULL: DOT text */
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
    return tool_usage("graph", "%s '%s': a number from %" PRIu32 " to %d is wanted", option, text, min, (int)MOST);
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
  if (optind == argc) return tool_usage("graph", "the file of the model is missing");
  if (optind + 1 < argc) return tool_usage("graph", "one model is wanted, '%s' is one more", argv[optind + 1]);
  if (r->options.depth != PICTURE_NONE && r->options.around == NULL)
    return tool_usage("graph", "--depth N belongs to --around NAME");
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
  tool_text_free(&drawn);
  return status;
}

static tn_status draw(const request *r, tn_error *err)
{
  tn_graph *graph = NULL;
  picture p;
  tool_text dot = { 0 };
  /* Before any work is done: what cannot be written in the end is said now. */
  tn_status status = r->output != NULL ? picture_check_place(r->output, err) : TN_OK;
  if (status == TN_OK) status = tool_model_open(r->model, &graph, err);
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
  tool_text_free(&dot);
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

const tool_command tool_cmd_graph = { "graph", "draw a model as a picture", help, run };
