/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of checkpoints, in the order in which they are tried. */
#include <core/formats/checkpoint/checkpoint.h>

static const tn__store_kind *const kinds[] = { &tn__store_bundle, &tn__store_v1 };

const tn__store_kind *tn__store_kind_of(const char *path)
{
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i]->fits(path)) return kinds[i];
  return NULL;
}

bool tn__checkpoint_exists(const char *path) { return tn__store_kind_of(path) != NULL; }
