/* SPDX-License-Identifier: Apache-2.0 */
/* An uninstalled library uses the plugins and the probe program of its own build tree: libtool leaves the library in
 * ROOT/.libs, beside ROOT/libtenon.la, ROOT/plugins/.libs and ROOT/tools. An installed library has another layout, so
 * it never finds a build tree; neither does a library in a statically linked program.
 *
 * ROOT may be a folder that other users can write to, such as /tmp. So everything that makes it a build tree must be
 * owned by the owner of the library, and none of it may be a symbolic link. The usual checks (P-78) follow when a
 * plugin is used. */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <sys/stat.h>

#include <core/base/file.h>
#include <core/registry/registry_internal.h>

static const char here = 1; /* an address in this library */

/* Stores the name of the object that holds `here`; it is empty for the program itself. */
static int look_for_library(struct dl_phdr_info *info, size_t size, void *user)
{
  (void)size;
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uintptr_t begin = (uintptr_t)(info->dlpi_addr + segment->p_vaddr);
    if (segment->p_type != PT_LOAD || (uintptr_t)&here < begin || (uintptr_t)&here - begin >= segment->p_memsz)
      continue;
    *(const char **)user = info->dlpi_name;
    return 1;
  }
  return 0;
}

/* ROOT of "ROOT/.libs/libtenon.so..."; its size is 0 for any other path. */
static tn__slice root_of(const char *library)
{
  static const char folder[] = "/" TN_OBJDIR, file[] = "/libtenon.so";
  const char *name = strrchr(library, '/');
  size_t size = name != NULL ? (size_t)(name - library) : 0, n = sizeof(folder) - 1;
  bool fits = library[0] == '/' && size > n && memcmp(name - n, folder, n) == 0 &&
              strncmp(name, file, sizeof(file) - 1) == 0;
  return (tn__slice){ library, fits ? size - n : 0 };
}

/* Stores "ROOT/name" in path. Returns whether it exists with this type and owner. */
static bool find(tn__slice root, const char *name, mode_t type, uid_t owner, char path[PATH_MAX])
{
  struct stat st;
  int n = tn__snprintf(path, PATH_MAX, "%.*s%s", (int)root.size, root.data, name);
  return n > 0 && n < PATH_MAX && lstat(path, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == owner;
}

/* Stores the path of ROOT/name, which is inside ROOT/folder, in path. */
static bool find_in_build(const char *folder, const char *name, mode_t type, char path[PATH_MAX])
{
  const char *library = NULL;
  struct stat st;
  if (tn__elevated() || !tn__loads_files()) return false;
  if (dl_iterate_phdr(look_for_library, &library) == 0 || library == NULL) return false;
  tn__slice root = root_of(library);
  if (root.size == 0 || root.size >= PATH_MAX || !tn__path_is_plain(library, root.size)) return false;
  return stat(library, &st) == 0 && find(root, "/libtenon.la", S_IFREG, st.st_uid, path) &&
         find(root, folder, S_IFDIR, st.st_uid, path) && find(root, name, type, st.st_uid, path);
}

bool tn__uninstalled_plugins(char path[PATH_MAX])
{
  return find_in_build("/plugins", "/plugins/" TN_OBJDIR, S_IFDIR, path);
}

bool tn__uninstalled_probe(char path[PATH_MAX])
{
  return find_in_build("/tools", "/tools/tenon-probe", S_IFREG, path);
}
