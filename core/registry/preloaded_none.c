/* SPDX-License-Identifier: Apache-2.0 */
/* No plugins are linked into this library or program, but those that tn_runtime_preload is told of. */
#include <core/registry/registry_internal.h>

const void *const tn__own_modules = NULL;
