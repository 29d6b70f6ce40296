/* SPDX-License-Identifier: Apache-2.0 */
/* tenon runtimes explain, probe, conform and cache. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tools/runtimes/runtimes.h>

/* ---- messages of a runtime ---- */

typedef struct listener {
  json_t *notes;
  int32_t level; /* level up to which messages are also printed, as usual */
} listener;

static void hear(void *user, int32_t level, const char *line)
{
  static const char *const names[] = { "error", "warning", "info", "debug" };
  const listener *l = user;
  if (level <= TN_LOG_INFO) tool_json_append(l->notes, tool_json_text(line));
  if (level <= l->level) fprintf(stderr, "tenon: %s: %s\n", names[level], line);
}

/* notes: log lines at level info, in which a runtime describes the session's resources. */
static tn_status create_session(const tn_session_options *options, json_t *notes, tn_session **out, tn_error *err)
{
  listener l = { notes, TN_LOG_DEBUG };
  while (l.level > TN_LOG_ERROR && !tn_log_enabled(l.level)) l.level--;
  tn_set_log_sink(hear, &l);
  if (l.level < TN_LOG_INFO) tn_set_log_level(TN_LOG_INFO);
  tn_status status = tn_session_create(options, out, err);
  tn_set_log_level(l.level);
  tn_set_log_sink(NULL, NULL);
  return status;
}

/* ---- explain ---- */

static tn_status set_option(tn_session_options *options, char *text, tn_error *err)
{
  char *equals = strchr(text, '=');
  *equals = '\0';
  tn_status status = tn_session_options_parse(options, text, equals + 1, err);
  *equals = '=';
  return status;
}

/* Adds the devices of a session with these options; if the session cannot be created, nothing, and sets err. */
static json_t *list_devices(const tn_session_options *options, json_t *notes, tn_error *err)
{
  tn_session *session = NULL;
  if (create_session(options, notes, &session, err) != TN_OK) return NULL;
  json_t *devices = json_array();
  tn_device_info info = { .struct_size = sizeof(info) };
  for (size_t i = 0; tn_session_device(session, i, &info, NULL) == TN_OK; i++) {
    json_t *device = json_object();
    tool_json_set(device, "name", tool_json_text(info.name));
    tool_json_set(device, "type", tool_json_text(info.type));
    if (info.model != NULL && info.model[0] != '\0') tool_json_set(device, "model", tool_json_text(info.model));
    if (info.memory_bytes > 0) tool_json_set(device, "memory_bytes", json_integer(info.memory_bytes));
    tool_json_append(devices, device);
  }
  tn_session_destroy(session);
  return devices;
}

static void print_devices(const json_t *devices)
{
  for (size_t i = 0; i < json_array_size(devices); i++) {
    const json_t *device = json_array_get(devices, i), *model = json_object_get(device, "model");
    printf("device %s", json_string_value(json_object_get(device, "name")));
    if (model != NULL)
      printf(" (%s, %lld MB)", json_string_value(model),
             (long long)json_integer_value(json_object_get(device, "memory_bytes")) / 1000000);
    putchar('\n');
  }
}

static void print_notes(const json_t *notes)
{
  for (size_t i = 0; i < json_array_size(notes); i++) printf("note: %s\n", json_string_value(json_array_get(notes, i)));
}

/* Adds the lines and the chosen name, or null. */
static int explain_json(char *text, json_t *devices, json_t *notes)
{
  json_t *root = json_object(), *lines = json_array(), *chosen = json_null();
  for (char *line = text; *line != '\0';) {
    size_t n = strcspn(line, "\n");
    bool last = line[n] == '\0';
    line[n] = '\0';
    if (strncmp(line, "chosen: ", 8) == 0) chosen = tool_json_text(line + 8);
    else tool_json_append(lines, tool_json_text(line));
    line += last ? n : n + 1;
  }
  tool_json_set(root, "chosen", chosen);
  tool_json_set(root, "lines", lines);
  tool_json_set(root, "devices", devices);
  tool_json_set(root, "notes", notes);
  return tool_json_print(root);
}

static int explain(tn_session_options *options, bool json)
{
  tn_error err = TN_ERROR_INIT;
  size_t room = 4096, needed = 0;
  char *text = tool_alloc(room, 1);
  tn_status status;
  while ((status = tn_explain_selection(options, text, room, &needed, &err)), needed >= room) {
    free(text); /* loading a plugin may change the explanation */
    room = needed + 4096;
    text = tool_alloc(room, 1);
  }
  int result = TOOL_OK;
  json_t *notes = json_array(), *devices = status == TN_OK ? list_devices(options, notes, &err) : NULL;
  if (status == TN_OK) status = tn_error_code(&err);
  if (json) {
    result = explain_json(text, devices != NULL ? devices : json_array(), notes);
  } else {
    fputs(text, stdout);
    print_devices(devices);
    print_notes(notes);
    json_decref(devices);
    json_decref(notes);
  }
  free(text);
  return status == TN_OK ? result : tool_fail(&err);
}

int runtimes_explain(int argc, char **argv)
{
  static const struct option known[] = { { "option", required_argument, NULL, 'o' },
                                         { "json", no_argument, NULL, 'j' },
                                         { NULL, 0, NULL, 0 } };
  bool json = false;
  tn_error err = TN_ERROR_INIT;
  tn_session_options *options = NULL;
  tn_status status = tn_session_options_create(&options, &err);
  int c, result = TOOL_OK;
  while (status == TN_OK && (c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    if (c == 'j')
      json = true;
    else if (c != 'o')
      result = tool_bad_option("runtimes", c, argv);
    else if (strchr(optarg, '=') == NULL)
      result = tool_usage("runtimes", "--option '%s': expected FIELD=VALUE", optarg);
    else
      status = set_option(options, optarg, &err);
    if (result != TOOL_OK) break;
  }
  if (status == TN_OK && result == TOOL_OK && optind + 1 < argc) result = runtimes_too_many(argv[optind + 1]);
  if (status == TN_OK && result == TOOL_OK && optind < argc)
    status = tool_set_target(options, argv[optind], &err);
  if (status != TN_OK)
    result = tool_fail(&err);
  else if (result == TOOL_OK)
    result = explain(options, json);
  tn_session_options_destroy(options);
  return result;
}

/* ---- probe ---- */

/* Returns the absolute path of the file; the caller frees it. */
static char *absolute_path(const char *path)
{
  tool_text text = { 0 };
  char here[PATH_MAX];
  if (path[0] != '/' && getcwd(here, sizeof(here)) != NULL) tool_text_printf(&text, "%s/", here);
  tool_text_printf(&text, "%s", path);
  return text.data;
}

const char *runtimes_try(const char *path, int64_t timeout_ms, tn_probe_report *report, tn_error *err)
{
  static const char *const verdicts[] = { "well", "error", "signal", "exit", "timeout", "memory" };
  memset(report, 0, sizeof(*report));
  report->struct_size = sizeof(*report);
  tn_status status = tn_runtime_probe(path, timeout_ms, report, err);
  if (report->step == NULL) return status == TN_UNIMPLEMENTED ? "not run" : "error";
  return verdicts[report->verdict];
}

/* [a-z][a-z0-9_]*.so, with at most 64 characters before the suffix (P-06). */
bool runtimes_name_is_looked_at(const char *path)
{
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  size_t size = strlen(name);
  if (size < 4 || size > 64 + 3 || strcmp(name + size - 3, ".so") != 0 || name[0] < 'a' || name[0] > 'z') return false;
  return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == size - 3;
}

/* Sets an error with the nearest valid name. */
static void refuse_name(const char *path, tn_error *err)
{
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  tool_text near = { 0 };
  size_t size = strlen(name);
  if (size > 3 && strcmp(name + size - 3, ".so") == 0) size -= 3;
  for (size_t i = 0; i < size; i++) {
    char c = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    bool letter = c >= 'a' && c <= 'z', other = (c >= '0' && c <= '9') || c == '_';
    if (near.length == 0 && !letter) continue;
    if (near.length < 64) tool_text_printf(&near, "%c", letter || other ? c : '_');
  }
  tn_error_set(err, TN_INVALID_ARGUMENT,
               "it works, but would not be found in a plugin folder: its name is not a plugin name: expected "
               "[a-z][a-z0-9_]*.so (did you mean "
               "'%s.so'?)",
               near.length > 0 ? near.data : "plugin");
  tool_text_fini(&near);
}

bool runtimes_refuses_session(const tn_probe_report *report)
{
  static const char *const steps[] = { "its new_session", "its prepare", "its step" };
  if (report->verdict != TN_PROBE_ERROR || report->step == NULL) return false;
  if (report->status == TN_INTERNAL || report->status == TN_UNKNOWN || report->status == TN_DATA_LOSS) return false;
  for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
    if (strcmp(report->step, steps[i]) == 0) return true;
  return false;
}

static const char *what_was_tried(const tn_probe_report *report)
{
  return strcmp(report->step, "the end") == 0 ? "a session ran a step"
                                              : "its kernels were registered, and none was run";
}

static void probe_json(json_t *array, const char *path, const char *verdict, const tn_probe_report *report,
                       const char *text)
{
  json_t *entry = json_object();
  tool_json_set(entry, "file", tool_json_text(path));
  tool_json_set(entry, "verdict", json_string(verdict));
  tool_json_set(entry, "signal", json_integer(report->signal));
  tool_json_set(entry, "exit_status", json_integer(report->exit_status));
  tool_json_set(entry, "last_step", tool_json_text(report->step != NULL ? report->step : ""));
  tool_json_set(entry, "milliseconds", json_real((double)report->duration_us / 1e3));
  tool_json_set(entry, "peak_bytes", json_integer((json_int_t)report->peak_bytes));
  tool_json_set(entry, "message", tool_json_text(text));
  tool_json_append(array, entry);
}

/* True if the probe succeeded. */
static bool probe_file(const char *file, int64_t timeout_ms, json_t *array)
{
  tn_error err = TN_ERROR_INIT;
  tn_probe_report report;
  char *path = absolute_path(file);
  const char *verdict = runtimes_try(path, timeout_ms, &report, &err);
  bool well = strcmp(verdict, "well") == 0;
  if (well && !runtimes_name_is_looked_at(path)) {
    refuse_name(path, &err);
    verdict = "error";
    well = false;
  }
  char *text = well ? NULL : runtimes_error_line(&err);
  if (array != NULL)
    probe_json(array, path, verdict, &report, well ? "" : text);
  else if (well)
    printf("%s: OK, %.1f ms: %s\n", path, (double)report.duration_us / 1e3, what_was_tried(&report));
  else
    printf("%s: %s%s%s\n  %s\n  %s\n", path, verdict,
           runtimes_refuses_session(&report) ? ": it loads, but refuses a session in " : "",
           runtimes_refuses_session(&report) ? report.step : "", text,
           runtimes_advice(runtimes_refuses_session(&report) ? "it loads, but refuses a session" : text));
  fflush(stdout);
  free(text);
  free(path);
  tn_error_clear(&err);
  return well;
}

int runtimes_probe(int argc, char **argv)
{
  static const struct option known[] = { { "timeout", required_argument, NULL, 't' },
                                         { "json", no_argument, NULL, 'j' },
                                         { NULL, 0, NULL, 0 } };
  json_t *array = NULL;
  long timeout = 0;
  char *end = NULL;
  bool json = false, well = true;
  int c;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    if (c != 't' && c != 'j') return tool_bad_option("runtimes", c, argv);
    if (c == 'j') {
      json = true;
      continue;
    }
    errno = 0;
    timeout = strtol(optarg, &end, 10);
    if (errno != 0 || end == optarg || *end != '\0' || timeout < 1)
      return tool_usage("runtimes", "--timeout '%s': expected a number of milliseconds, 1 or more", optarg);
  }
  if (optind == argc) return tool_usage("runtimes", "probe: no file was given");
  if (json) array = json_array();
  for (int i = optind; i < argc; i++) well = probe_file(argv[i], timeout, array) && well;
  if (json) {
    json_t *root = json_object();
    tool_json_set(root, "probes", array);
    if (tool_json_print(root) != TOOL_OK) return TOOL_FAILED;
  }
  return well ? TOOL_OK : TOOL_FAILED;
}

/* ---- conform ---- */

/* In the folder of this program, else in PATH. */
int runtimes_conform(int argc, char **argv)
{
  char self[PATH_MAX];
  if (argc < 2) return tool_usage("runtimes", "conform: no file was given");
  ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
  char **arguments = tool_alloc((size_t)argc + 1, sizeof(*arguments));
  static char program_name[] = "tenon-conformance";
  arguments[0] = program_name;
  for (int i = 1; i < argc; i++) arguments[i] = argv[i];
  if (n > 0) {
    tool_text program = { 0 };
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) *slash = '\0';
    tool_text_printf(&program, "%s/%s", self, arguments[0]);
    execv(program.data, arguments);
    tool_text_fini(&program);
  }
  execvp(arguments[0], arguments);
  free(arguments);
  fprintf(
      stderr,
      "tenon: UNIMPLEMENTED: tenon-conformance is not installed here: it is looked for beside this program and on the "
      "PATH\n");
  return TOOL_FAILED;
}

/* ---- cache ---- */

int runtimes_cache(int argc, char **argv)
{
  tn_error err = TN_ERROR_INIT;
  char path[PATH_MAX] = "";
  size_t n = 0;
  if (argc > 2) return runtimes_too_many(argv[2]);
  if (argc == 2 && strcmp(argv[1], "clear") != 0)
    return tool_usage("runtimes", "unknown command 'runtimes cache %s', expected 'clear' or nothing", argv[1]);
  if (tn_runtime_cache_path(path, sizeof(path), NULL, &err) != TN_OK) return tool_fail(&err);
  if (path[0] == '\0') {
    printf("probe results are not cached: none of TENON_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder\n");
    return TOOL_OK;
  }
  if (argc == 2) {
    if (tn_runtime_clear_cache(&n, &err) != TN_OK) return tool_fail(&err);
    printf("%zu probe result%s deleted\n", n, n == 1 ? "" : "s");
    return TOOL_OK;
  }
  printf("%s\n", path);
  return TOOL_OK;
}
