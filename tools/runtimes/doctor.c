/* SPDX-License-Identifier: Apache-2.0 */
/* tenon runtimes doctor: lists the plugin folders and plugins, and for each problem its cause and a fix. Plugins
 * without a visible problem are probed in separate processes. */
#include <dirent.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <tools/runtimes/runtimes.h>

typedef struct doctor {
  json_t *problems, *notes, *folders, *good;
  bool json, probe;
  bool cannot_probe; /* reported once */
} doctor;

static void add(json_t *list, const char *what, const char *reason)
{
  json_t *entry = json_object();
  tool_json_set(entry, "what", tool_json_text(what));
  tool_json_set(entry, "why", tool_json_text(reason));
  tool_json_set(entry, "do", tool_json_text(runtimes_advice(reason)));
  tool_json_append(list, entry);
}

static void print_list(const json_t *list, const char *title)
{
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *entry = json_array_get(list, i);
    printf("\n%s %s\n  why   %s\n  do    %s\n", title, json_string_value(json_object_get(entry, "what")),
           json_string_value(json_object_get(entry, "why")), json_string_value(json_object_get(entry, "do")));
  }
}

/* ---- folders and the environment ---- */

/* Libraries skipped because of their file names, possibly unintentionally. */
static void look_at_names(doctor *d, const char *folder)
{
  static const char reason[] = "its name is not a plugin name: expected [a-z][a-z0-9_]*.so";
  DIR *dir = opendir(folder);
  const struct dirent *entry;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    size_t size = strlen(entry->d_name);
    if (size < 4 || strcmp(entry->d_name + size - 3, ".so") != 0 || runtimes_name_is_looked_at(entry->d_name)) continue;
    tool_text what = { 0 };
    tool_text_printf(&what, "%s/%s", folder, entry->d_name);
    add(d->notes, what.data, reason);
    tool_text_fini(&what);
  }
  if (dir != NULL) closedir(dir);
}

/* A missing folder is not an error: the installation may have no plugins. */
static tn_status look_at_folders(doctor *d, tn_error *err)
{
  const char *path = NULL, *fault = NULL;
  tn_status status;
  if (!d->json) printf("Plugin folders\n");
  for (size_t i = 0; (status = tn_runtime_directory_at(i, &path, &fault, err)) == TN_OK; i++) {
    json_t *entry = json_object();
    tool_json_set(entry, "path", tool_json_text(path));
    tool_json_set(entry, "fault", tool_json_text(fault));
    tool_json_append(d->folders, entry);
    if (!d->json) printf("  %s%s%s%s\n", path, fault[0] != '\0' ? " (" : "", fault, fault[0] != '\0' ? ")" : "");
    if (fault[0] == '\0') look_at_names(d, path);
    if (fault[0] != '\0') add(strcmp(fault, "it does not exist") == 0 ? d->notes : d->problems, path, fault);
  }
  if (status != TN_OUT_OF_RANGE) return status;
  tn_error_clear(err);
  return TN_OK;
}

static tn_status look_at_notes(doctor *d, tn_error *err)
{
  size_t needed = 0;
  tn_status status = tn_runtime_notes(NULL, 0, &needed, err);
  if (status != TN_OK) return status;
  char *text = tool_alloc(needed + 1, 1);
  tn_runtime_notes(text, needed + 1, NULL, NULL);
  for (char *line = text; *line != '\0';) {
    size_t n = strcspn(line, "\n");
    bool last = line[n] == '\0';
    line[n] = '\0';
    add(d->problems, "the environment", line);
    line += last ? n : n + 1;
  }
  free(text);
  return TN_OK;
}

/* ---- plugins ---- */

/* Adds a working plugin: a runtime has run a step, a kernel plugin has registered its kernels. */
static void well(doctor *d, const tn_runtime_info *info)
{
  bool registers = d->probe && !d->cannot_probe && strcmp(info->kind, "kernels") == 0;
  if (!d->json)
    printf("  %s (%s)%s\n", info->name, info->file[0] != '\0' ? info->file : info->origin,
           registers ? ": its kernels were registered, and none was run" : "");
  tool_json_append(d->good, tool_json_text(info->name));
}

/* Probes a plugin without a visible problem; false if the probe fails. */
static bool try_plugin(doctor *d, const tn_runtime_info *info, const char *what)
{
  tn_error err = TN_ERROR_INIT;
  tn_probe_report report;
  if (!d->probe || info->file[0] == '\0') return true;
  const char *verdict = runtimes_try(info->file, 0, &report, &err);
  bool good = strcmp(verdict, "well") == 0;
  char *reason = good ? NULL : runtimes_error_line(&err);
  if (strcmp(verdict, "not run") == 0) {
    if (!d->cannot_probe) add(d->problems, "probing plugins", reason);
    d->cannot_probe = true;
    good = true;
  } else if (report.verdict == TN_PROBE_ERROR && report.status == TN_UNAVAILABLE) {
    add(d->notes, what, reason); /* P-41: the plugin works, but this machine lacks its device */
  } else if (runtimes_refuses_session(&report)) {
    tool_text why = { 0 };
    tool_text_printf(&why, "it loads, but refuses a session without settings: %s", reason);
    add(d->notes, what, why.data);
    tool_text_fini(&why);
  } else if (!good) {
    add(d->problems, what, reason);
  }
  free(reason);
  tn_error_clear(&err);
  return good;
}

static void look_at(doctor *d, const tn_runtime_info *info)
{
  tool_text what = { 0 };
  if (info->name[0] != '\0') tool_text_printf(&what, "%s '%s' ", info->kind, info->name);
  tool_text_printf(&what, "%s", info->file[0] != '\0' ? info->file : info->origin);
  if (info->disabled || info->shadowed) {
    tool_text why = { 0 };
    tool_text_printf(&why, "%s%s%s", info->reason, info->shadowed_by[0] != '\0' ? ": " : "", info->shadowed_by);
    add(d->notes, what.data, why.data);
    tool_text_fini(&why);
  } else if (!info->usable)
    add(strncmp(info->reason, "static build: ", 14) == 0 ? d->notes : d->problems, what.data, info->reason);
  else if (try_plugin(d, info, what.data))
    well(d, info);
  tool_text_fini(&what);
}

static tn_status look_at_plugins(doctor *d, tn_error *err)
{
  if (!d->json)
    printf("\n%s\n", d->probe ? "Working (a session of each ran a step)" : "Working, according to their manifests");
  for (size_t n = 0;; n++) {
    tn_runtime_info info;
    memset(&info, 0, sizeof(info));
    info.struct_size = sizeof(info);
    tn_status status = tn_runtime_at(n, &info, err);
    if (status == TN_OK) {
      look_at(d, &info);
      continue;
    }
    if (!d->json && json_array_size(d->good) == 0) printf("  none\n");
    if (status != TN_OUT_OF_RANGE) return status;
    tn_error_clear(err);
    return TN_OK;
  }
}

static int finish(doctor *d)
{
  size_t n = json_array_size(d->problems);
  if (d->json) {
    json_t *root = json_object();
    tool_json_set(root, "folders", json_incref(d->folders));
    tool_json_set(root, "well", json_incref(d->good));
    tool_json_set(root, "problems", json_incref(d->problems));
    tool_json_set(root, "notes", json_incref(d->notes));
    if (tool_json_print(root) != TOOL_OK) return TOOL_FAILED;
    return n == 0 ? TOOL_OK : TOOL_FAILED;
  }
  print_list(d->problems, "PROBLEM");
  print_list(d->notes, "note   ");
  if (n == 0) printf("\nNo problems found.\n");
  else printf("\n%zu problem%s\n", n, n == 1 ? "" : "s");
  return n == 0 ? TOOL_OK : TOOL_FAILED;
}

int runtimes_doctor(int argc, char **argv)
{
  static const struct option known[] = { { "no-probe", no_argument, NULL, 'n' },
                                         { "json", no_argument, NULL, 'j' },
                                         { NULL, 0, NULL, 0 } };
  doctor d = { .probe = true };
  tn_error err = TN_ERROR_INIT;
  int c;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    if (c != 'n' && c != 'j') return tool_bad_option("runtimes", c, argv);
    if (c == 'n') d.probe = false;
    else d.json = true;
  }
  if (optind < argc) return runtimes_too_many(argv[optind]);
  d.problems = json_array();
  d.notes = json_array();
  d.folders = json_array();
  d.good = json_array();
  tn_set_log_level(TN_LOG_ERROR); /* doctor reports everything itself */
  tn_status status = look_at_folders(&d, &err);
  if (status == TN_OK) status = look_at_plugins(&d, &err);
  if (status == TN_OK) status = look_at_notes(&d, &err);
  int result = status == TN_OK ? finish(&d) : tool_fail(&err);
  json_decref(d.problems);
  json_decref(d.notes);
  json_decref(d.folders);
  json_decref(d.good);
  return result;
}
