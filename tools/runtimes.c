/* SPDX-License-Identifier: Apache-2.0 */
/* tenon runtimes: the runtimes and kernel plugins that are found, and why one cannot be used. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/tool.h>

static const char help[] =
    "Usage: tenon runtimes [--load] [--json]\n"
    "\n"
    "Lists the runtimes and kernel plugins that are found, without running any of their code. They are\n"
    "looked for in the folders of TENON_PLUGIN_PATH, then in that of the installation.\n"
    "\n"
    "  --load      load each of them, so that what only shows then is found out, too\n"
    "  --json      as JSON\n"
    "  -h, --help  show this text\n";

static const char *or_empty(const char *text) { return text != NULL ? text : ""; }

static const char *state(const tn_runtime_info *info)
{
  if (info->shadowed) return "shadowed";
  if (!info->usable) return "unusable";
  return info->loaded ? "loaded" : "ready";
}

static void add_row(tool_table *table, const tn_runtime_info *info, const char *failure)
{
  const char *reason = failure != NULL ? failure : or_empty(info->reason);
  tool_table_cell(table, "%s", or_empty(info->name)[0] != '\0' ? info->name : "-");
  tool_table_cell(table, "%s", or_empty(info->kind)[0] != '\0' ? info->kind : "-");
  tool_table_cell(table, "%s", or_empty(info->version)[0] != '\0' ? info->version : "-");
  if (or_empty(info->name)[0] == '\0') { /* no manifest was read */
    tool_table_cell(table, "-");
    tool_table_cell(table, "-");
  } else {
    tool_table_cell(table, "%" PRId32 ".%" PRId32, info->abi_major, info->abi_minor);
    tool_table_cell(table, "%" PRId32, info->rank);
  }
  tool_table_cell(table, "%s", or_empty(info->types)[0] != '\0' ? info->types : "-");
  tool_table_cell(table, "%s", failure != NULL ? "unusable" : state(info));
  tool_table_cell(table, "%s", or_empty(info->file)[0] != '\0' ? info->file : or_empty(info->origin));
  /* The reason on a line of its own: it is a sentence. */
  if (reason[0] == '\0') return;
  tool_table_cell(table, "  %s", reason);
  for (int i = 1; i < 8; i++) tool_table_cell(table, "%s", "");
}

static void add_json(json_t *array, const tn_runtime_info *info, const char *failure)
{
  json_t *entry = json_object();
  char abi[32];
  snprintf(abi, sizeof(abi), "%" PRId32 ".%" PRId32, info->abi_major, info->abi_minor);
  tool_json_set(entry, "name", tool_json_text(or_empty(info->name)));
  tool_json_set(entry, "kind", tool_json_text(or_empty(info->kind)));
  tool_json_set(entry, "file", tool_json_text(or_empty(info->file)));
  tool_json_set(entry, "origin", tool_json_text(or_empty(info->origin)));
  tool_json_set(entry, "version", tool_json_text(or_empty(info->version)));
  tool_json_set(entry, "vendor", tool_json_text(or_empty(info->vendor)));
  tool_json_set(entry, "abi", tool_json_text(abi));
  tool_json_set(entry, "rank", json_integer(info->rank));
  tool_json_set(entry, "devices", tool_json_text(or_empty(info->types)));
  tool_json_set(entry, "loaded", json_boolean(info->loaded));
  tool_json_set(entry, "usable", json_boolean(info->usable && failure == NULL));
  tool_json_set(entry, "shadowed", json_boolean(info->shadowed));
  tool_json_set(entry, "reason", tool_json_text(failure != NULL ? failure : or_empty(info->reason)));
  tool_json_append(array, entry);
}

/* Loads a runtime that seems usable; gives back why that failed, NULL when it did not. */
static char *try_load(tn_runtime_info *info)
{
  tn_error err = TN_ERROR_INIT;
  tn_runtime_info after;
  memset(&after, 0, sizeof(after));
  after.struct_size = sizeof(after);
  if (!info->usable || info->shadowed || strcmp(or_empty(info->kind), "runtime") != 0) return NULL;
  if (tn_runtime_load(info->name, &after, &err) == TN_OK) {
    *info = after;
    return NULL;
  }
  size_t length = tn_error_format(&err, NULL, 0);
  char *text = tool_alloc(length + 1, 1);
  tn_error_format(&err, text, length + 1);
  for (char *at = text; *at != '\0'; at++)
    if (*at == '\n') *at = ' ';
  tn_error_clear(&err);
  return text;
}

static int list(bool load, tool_table *table, json_t *array)
{
  tn_error err = TN_ERROR_INIT;
  tn_status status;
  size_t n = 0;
  for (;; n++) {
    tn_runtime_info info;
    memset(&info, 0, sizeof(info));
    info.struct_size = sizeof(info);
    status = tn_runtime_at(n, &info, &err);
    if (status != TN_OK) break;
    char *failure = load ? try_load(&info) : NULL;
    if (array != NULL)
      add_json(array, &info, failure);
    else
      add_row(table, &info, failure);
    free(failure);
  }
  if (status != TN_OUT_OF_RANGE) return tool_fail(&err);
  tn_error_clear(&err);
  if (array == NULL) tool_hint_no_runtime();
  return TOOL_OK;
}

void tool_hint_no_runtime(void)
{
  tn_runtime_info info;
  memset(&info, 0, sizeof(info));
  info.struct_size = sizeof(info);
  if (tn_runtime_at(0, &info, NULL) != TN_OUT_OF_RANGE) return;
  fputs(
      "No runtime is installed here; TENON_PLUGIN_PATH names folders that have some, in a build tree plugins/.libs.\n",
      stderr);
}

static int run(int argc, char **argv)
{
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },
    { "load", no_argument, NULL, 'l' },
    { NULL, 0, NULL, 0 },
  };
  bool json = false, load = false;
  int c;
  while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
    if (c != 'j' && c != 'l') return tool_bad_option("runtimes", c, argv);
    if (c == 'j')
      json = true;
    else
      load = true;
  }
  if (optind < argc) return tool_usage("runtimes", "'%s' is one argument too many", argv[optind]);
  tool_table table;
  static const char *const titles[] = { "NAME", "KIND", "VERSION", "ABI", "RANK", "DEVICES", "STATE", "FILE" };
  tool_table_init(&table, 8, 1u << 4);
  for (int i = 0; i < 8; i++) tool_table_cell(&table, "%s", titles[i]);
  json_t *array = json ? json_array() : NULL;
  int status = list(load, &table, array);
  if (status == TOOL_OK && json) {
    json_t *root = json_object();
    tool_json_set(root, "runtimes", json_incref(array));
    status = tool_json_print(root);
  } else if (status == TOOL_OK && table.n > table.columns) {
    tool_table_print(&table, "", stdout);
  }
  tool_table_free(&table);
  json_decref(array);
  return status;
}

const tool_command tool_cmd_runtimes = { "runtimes", "list the runtimes that are found", help, run };
