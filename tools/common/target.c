/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime on the command line: its name or the path of its file, either one followed by a colon and settings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/plugins.h>

#include <tools/tool.h>

/* Whether the text is a path: it contains a slash, or it names an existing file with a plugin's suffix. No runtime name
 * has a slash, and hardly any has the suffix. */
static bool is_path(const char *text)
{
  size_t size = strlen(text);
  if (strchr(text, '/') != NULL) return true;
  return size > 3 && strcmp(text + size - 3, ".so") == 0 && access(text, F_OK) == 0;
}

void tool_hint(tn_error *err, const char *part, const char *option, const char *file)
{
  tn_status status = tn_error_code(err);
  if (status == TN_OK || strstr(tn_error_message(err), part) == NULL) return;
  tool_text text = { 0 };
  tool_text_printf(&text, "%s: use it with %s %s", tn_error_message(err), option, file);
  tn_error_clear(err);
  tn_error_set(err, status, "%s", text.data);
  tool_text_fini(&text);
}

tn_status tool_plugin_path(const char *what, const char *file, char **path, tn_error *err)
{
  *path = realpath(file, NULL);
  if (*path != NULL) return tn_runtime_allow_files(1, err);
  return tn_error_set(err, errno == ENOENT ? TN_NOT_FOUND : TN_INVALID_ARGUMENT, "%s '%s': %s", what, file,
                      strerror(errno));
}

static tn_status load(const char *file, tn_runtime_info *info, tn_error *err)
{
  char *path;
  tn_status status = tool_plugin_path("runtime", file, &path, err);
  if (status == TN_OK) status = tn_runtime_load_file(path, info, err);
  tool_hint(err, "provides ops or kernels", "--op-library", file);
  free(path);
  return status;
}

tn_status tool_target(const char *text, tool_text *out, tn_error *err)
{
  tn_runtime_info info = { .struct_size = sizeof(info) };
  tool_text file = { 0 };
  size_t size = strcspn(text, ":");
  tn_status status = TN_OK;
  tool_text_add(&file, text, size);
  if (size > 0 && is_path(file.data)) {
    status = load(file.data, &info, err);
    if (status == TN_OK) tool_text_printf(out, "%s%s", info.name, text + size);
  } else {
    tool_text_printf(out, "%s", text);
  }
  tool_text_fini(&file);
  return status;
}

tn_status tool_set_target(tn_session_options *options, const char *text, tn_error *err)
{
  tool_text target = { 0 };
  if (text == NULL) return TN_OK;
  tn_status status = tool_target(text, &target, err);
  if (status == TN_OK) status = tn_session_options_set_target(options, target.data == NULL ? "" : target.data, err);
  tool_text_fini(&target);
  return status;
}

void tool_hint_no_runtime(void)
{
  tn_runtime_info info;
  memset(&info, 0, sizeof(info));
  info.struct_size = sizeof(info);
  if (tn_runtime_at(0, &info, NULL) != TN_OUT_OF_RANGE) return;
  fputs("No runtime is installed. Set TENON_PLUGIN_PATH to folders that contain runtimes.\n", stderr);
}
