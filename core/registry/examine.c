/* SPDX-License-Identifier: Apache-2.0 */
/* Examining a plugin file: opens it, checks it and reads its manifest. None of its code runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/base/file.h>
#include <core/registry/registry_internal.h>

/* Opens the file that was checked and reads its manifest. */
static tn_status read_manifest(tn__plugin *plugin, tn_error *err)
{
  struct stat st;
  const char *section = NULL;
  size_t size = 0;
  int fd = open(plugin->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    int number = errno;
    if (number == EMFILE || number == ENFILE || number == ENOMEM)
      return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "'%s' cannot be opened: no file descriptor or memory left",
                          plugin->path);
    return tn_error_set(err,
                        number == EACCES   ? TN_PERMISSION_DENIED
                        : number == ENOENT ? TN_NOT_FOUND
                                           : TN_INVALID_ARGUMENT,
                        "'%s' cannot be read: %s", plugin->path,
                        number == EACCES   ? "permission denied"
                        : number == ENOENT ? "it does not exist"
                                           : "the system refuses");
  }
  tn_status status = TN_OK;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_dev != plugin->id.dev || st.st_ino != plugin->id.ino)
    status = tn_error_set(err, TN_FAILED_PRECONDITION, "'%s' was replaced while it was checked", plugin->path);
  tn__object object;
  memset(&object, 0, offsetof(tn__object, page));
  object.fd = fd;
  object.size = status == TN_OK ? (uint64_t)st.st_size : 0;
  if (status == TN_OK) status = tn__elf_read_manifest(&object, &plugin->arena, &section, &size, err);
  close(fd);
  if (status == TN_OK) status = tn__manifest_parse(section, size, &plugin->arena, &plugin->manifest, err);
  if (status == TN_OK) plugin->named = true;
  return status;
}

static tn_status read_linked(tn__plugin *plugin, tn_error *err)
{
  tn_status status = tn__manifest_parse(plugin->linked, plugin->linked_size, &plugin->arena, &plugin->manifest, err);
  plugin->named = status == TN_OK;
  return status;
}

/* `status` and e are the result of the check of its path. e is cleared. */
static tn_status examine(tn__plugin *plugin, tn_status status, tn_error *e, tn_error *err)
{
  plugin->rank = 0;
  if (status == TN_OK) {
    status = plugin->module != NULL ? read_linked(plugin, e) : read_manifest(plugin, e);
    plugin->claims = plugin->named;
    plugin->rank = plugin->manifest.rank;
    const tn__manifest *m = &plugin->manifest;
    if (status == TN_OK)
      status = tn__abi_check(m->abi_major, m->abi_minor, m->min_host_minor, TN_ABI_MAJOR, TN_ABI_MINOR, e);
    if (status == TN_OK && plugin->module == NULL && !tn__loads_files()) /* P-91 */
      status = tn_error_set(
          e, TN_UNIMPLEMENTED,
          "static build: this program is linked statically and loads no files; the plugin has to be linked "
          "into it");
  }
  plugin->state = status == TN_OK ? TN__PLUGIN_FOUND : TN__PLUGIN_REFUSED;
  if (status == TN_RESOURCE_EXHAUSTED)
    tn_error_copy(err, e);
  else if (status != TN_OK && !tn__plugin_blame(plugin, e))
    status = tn__no_memory(err, "a plugin's reason", 1);
  else
    status = TN_OK;
  tn_error_clear(e);
  return status;
}

tn_status tn__plugin_examine(tn__plugin *plugin, tn_error *err)
{
  tn_error e = TN_ERROR_INIT;
  tn_status status = TN_OK;
  if (plugin->module == NULL)
    status = tn__path_check(plugin->path, tn__elevated(), &plugin->id, &plugin->foreign, &e);
  return examine(plugin, status, &e, err);
}

tn_status tn__plugin_examine_in(tn__plugin *plugin, bool folder_foreign, tn_error *err)
{
  tn_error e = TN_ERROR_INIT;
  plugin->foreign = folder_foreign;
  tn_status status = tn__path_check_last(plugin->path, tn__elevated(), &plugin->id, &plugin->foreign, &e);
  return examine(plugin, status, &e, err);
}
