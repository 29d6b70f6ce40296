/* SPDX-License-Identifier: Apache-2.0 */
/* Examining a plugin file: opens it, checks it and reads its manifest. None of its code runs.
 *
 * The path is checked first, then the file is opened and compared with the file that was checked. So a file that
 * another user puts there in between is not read. A plugin that fails a check stays in the list as refused, with the
 * reason; only a lack of memory or descriptors is an error. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/base/file.h>
#include <core/registry/registry_internal.h>

static tn_status cannot_open(const char *path, int number, tn_error *err)
{
  tn_status status = TN_INVALID_ARGUMENT;
  const char *reason = "the system refuses to open it";
  if (number == EMFILE || number == ENFILE || number == ENOMEM)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "'%s' cannot be opened: out of file descriptors or memory", path);
  if (number == EACCES) {
    status = TN_PERMISSION_DENIED;
    reason = "permission denied";
  } else if (number == ENOENT) {
    status = TN_NOT_FOUND;
    reason = "it does not exist";
  }
  return tn_error_set(err, status, "'%s' cannot be read: %s", path, reason);
}

/* Opens the file that was checked and reads its manifest. O_NONBLOCK and O_NOCTTY: it may have become a FIFO or a
 * terminal since. */
static tn_status read_manifest(tn__plugin *plugin, tn_error *err)
{
  struct stat st;
  const char *section = NULL;
  size_t size = 0;
  int fd = open(plugin->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return cannot_open(plugin->path, errno, err);
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

/* The manifest of a linked module is in memory. */
static tn_status read_linked(tn__plugin *plugin, tn_error *err)
{
  tn_status status = tn__manifest_parse(plugin->linked, plugin->linked_size, &plugin->arena, &plugin->manifest, err);
  plugin->named = status == TN_OK;
  return status;
}

/* `status` and e are the result of the check of the plugin's path. Stores the verdict in the plugin and clears e. */
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
          "static build: this program is linked statically and cannot load files; the plugin must be linked into it");
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
