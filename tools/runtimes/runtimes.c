/* SPDX-License-Identifier: Apache-2.0 */
/* tenon runtimes: lists runtimes and kernel plugins, and why some cannot be used. */
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
    "Examines runtimes and kernel plugins. Plugins are searched in the folders of TENON_PLUGIN_PATH, then in\n"
    "the installation's folder.\n"
    "\n"
    "  list        list plugins without running their code\n"
    "  explain     show how a target and options select a runtime, how each runtime answers, and which\n"
    "              devices the session gets\n"
    "  probe       load, query and initialise plugins, each in a separate process that may crash or hang\n"
    "  doctor      look for problems and suggest fixes; exits with status 1 if there is any problem\n"
    "  conform     run tenon-conformance on a plugin\n"
    "  cache       show where probe results are cached; 'clear' deletes them\n"
    "\n"
    "  --load      load each plugin, which finds problems that only loading reveals\n"
    "  --option FIELD=VALUE  set a session option\n"
    "  --timeout MS          time limit for a plugin (default: TENON_PROBE_TIMEOUT_MS, or 5000)\n"
    "  --no-probe  do not probe plugins\n"
    "  --json      print JSON\n"
    "  -h, --help  show this help\n";

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
  if (or_empty(info->name)[0] == '\0') { /* the manifest was not read */
    tool_table_cell(table, "-");
    tool_table_cell(table, "-");
  } else {
    tool_table_cell(table, "%" PRId32 ".%" PRId32, info->abi_major, info->abi_minor);
    tool_table_cell(table, "%" PRId32, info->rank);
  }
  tool_table_cell(table, "%s", or_empty(info->types)[0] != '\0' ? info->types : "-");
  tool_table_cell(table, "%s", failure != NULL ? "unusable" : state(info));
  tool_table_cell(table, "%s", or_empty(info->file)[0] != '\0' ? info->file : or_empty(info->origin));
  /* The reason is a sentence, so it gets its own line. */
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

/* Loads a runtime that appears usable; returns the error text, or NULL on success. */
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
    fputs("This tenon is statically linked: only its built-in runtimes are available; it cannot load plugins.\n",
          stderr);
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
  tool_table_fini(&table);
  json_decref(array);
  return status;
}

int runtimes_too_many(const char *argument) { return tool_usage("runtimes", "unexpected argument '%s'", argument); }

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
  tool_text_fini(&text);
  return status;
}

const tool_command tool_cmd_runtimes = { "runtimes", "list and diagnose runtimes", help, run };
