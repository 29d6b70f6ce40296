/* SPDX-License-Identifier: Apache-2.0 */
/* No plugins are linked into the library; a program may pass its own to tn_runtime_preload. */
#include <core/registry/registry_internal.h>

const void *const tn__own_modules = NULL;
