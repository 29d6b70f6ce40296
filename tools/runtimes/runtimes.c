/* SPDX-License-Identifier: Apache-2.0 */
/* tenon runtimes: the runtimes and kernel plugins that are found, and why one cannot be used. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/runtimes/runtimes.h>

static const char help[] =
    "Usage: tenon runtimes [list] [--load] [--json]\n"
    "       tenon runtimes explain [TARGET] [--option FIELD=VALUE]... [--json]\n"
    "       tenon runtimes probe FILE... [--timeout MS] [--json]\n"
    "       tenon runtimes doctor [--no-probe] [--json]\n"
    "       tenon runtimes conform FILE [ARGUMENT...]\n"
    "       tenon runtimes cache [clear]\n"
    "\n"
    "Runtimes and kernel plugins. They are looked for in the folders of TENON_PLUGIN_PATH, then in that of\n"
    "the installation.\n"
    "\n"
    "  list        lists them without running any of their code\n"
    "  explain     says how a target and options choose a runtime, what each of them says to it, and which\n"
    "              devices a session has then\n"
    "  probe       opens, asks and initialises plugins, each in a process of its own that may crash or hang\n"
    "  doctor      looks for everything that is wrong, and says what to do about it; ends with 1 when\n"
    "              there is something\n"
    "  conform     runs tenon-conformance on a plugin\n"
    "  cache       where the verdicts of probes are kept; clear forgets them\n"
    "\n"
    "  --load      load each of them, so that what only shows then is found out, too\n"
    "  --option FIELD=VALUE  an option of the session\n"
    "  --timeout MS          how long a plugin may take (TENON_PROBE_TIMEOUT_MS, or 5000)\n"
    "  --no-probe  without trying the plugins\n"
    "  --json      as JSON\n"
    "  -h, --help  show this text\n";

static const char *or_empty(const char *text) { return text != NULL ? text : ""; }

static const char *state(const tn_runtime_info *info)
{
  if (info->disabled) return "disabled";
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
  if (failure == NULL && or_empty(info->shadowed_by)[0] != '\0')
    tool_table_cell(table, "  %s: %s", reason, info->shadowed_by);
  else
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
  tool_json_set(entry, "shadowed_by", tool_json_text(or_empty(info->shadowed_by)));
  tool_json_set(entry, "disabled", json_boolean(info->disabled));
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
  char *text = runtimes_error_line(&err);
  tn_error_clear(&err);
  return text;
}

char *runtimes_error_line(const tn_error *err)
{
  size_t length = tn_error_format(err, NULL, 0);
  char *text = tool_alloc(length + 1, 1);
  tn_error_format(err, text, length + 1);
  for (char *at = text; *at != '\0'; at++)
    if (*at == '\n') *at = ' ';
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
  if (array == NULL && !tn_runtime_loads_files())
    fputs("This tenon is linked statically: it has the runtimes that it carries and loads no files.\n", stderr);
  return TOOL_OK;
}

static int run_list(int argc, char **argv)
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
  if (optind < argc) return runtimes_too_many(argv[optind]);
  tool_table table;
  static const char *const titles[] = { "NAME", "KIND", "VERSION", "ABI", "RANK", "DEVICES", "STATE", "FILE" };
  tool_table_init(&table, 8, 1u << 4);
  for (int i = 0; i < 8; i++) tool_table_cell(&table, "%s", titles[i]);
  json_t *array = json ? json_array() : NULL;
  int status = list(load, &table, array);
  if (status == TOOL_OK && json) {
    json_t *root = json_object();
    tool_json_set(root, "runtimes", json_incref(array));
    tool_json_set(root, "loads_files", json_boolean(tn_runtime_loads_files()));
    status = tool_json_print(root);
  } else if (status == TOOL_OK && table.n > table.columns) {
    tool_table_print(&table, "", stdout);
  }
  tool_table_free(&table);
  json_decref(array);
  return status;
}

int runtimes_too_many(const char *argument) { return tool_usage("runtimes", "'%s' is one argument too many", argument); }

static int run(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
  } commands[] = {
    { "list", run_list },           { "explain", runtimes_explain }, { "probe", runtimes_probe },
    { "doctor", runtimes_doctor }, { "conform", runtimes_conform }, { "cache", runtimes_cache },
  };
  if (argc < 2 || argv[1][0] == '-') return run_list(argc, argv);
  for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
    if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
  tool_near near;
  tool_text text = { 0 };
  tool_near_init(&near, argv[1]);
  for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) tool_near_offer(&near, commands[i].name);
  tool_near_text(&near, &text);
  int status = tool_usage("runtimes", "unknown command 'runtimes %s'%s", argv[1], text.data != NULL ? text.data : "");
  tool_text_free(&text);
  return status;
}

const tool_command tool_cmd_runtimes = { "runtimes", "the runtimes that are found, and what is wrong with them", help, run };
