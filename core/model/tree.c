/* SPDX-License-Identifier: Apache-2.0 */
/* Removing a folder that could not be completed. */
#define _GNU_SOURCE /* nftw */
#include <core/model/save.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
  (void)st, (void)type, (void)ftw;
  if (remove(path) != 0) tn_log(TN_LOG_DEBUG, "cannot remove '%s': %s", path, tn__strerror(errno));
  return 0;
}

void tn__tree_remove(const char *folder) { nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); }
