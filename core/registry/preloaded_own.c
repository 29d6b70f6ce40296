/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins given to configure --enable-preloaded: libtool makes their table when it links libtenon. */
#include <ltdl.h>

#include <core/registry/registry_internal.h>

extern const lt_dlsymlist lt_libtenon_LTX_preloaded_symbols[];

const void *const tn__own_modules = lt_libtenon_LTX_preloaded_symbols;
