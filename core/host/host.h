/* SPDX-License-Identifier: Apache-2.0 */
/* The host table that plugins are given (include/tenon/host.h). */
#ifndef TN_CORE_HOST_H
#define TN_CORE_HOST_H

#include <core/registry/registry.h>
#include <core/resource/container.h>
#include <tenon/runtime.h>

/* Gives the registry the host table, and buffers the way to hold their plugin. Cheap after the first call; any thread.
 * Every public call that may load a plugin makes it first. */
void tn__host_install(void);

const tn_host *tn__host_table(void);

/* containers.c: the containers of a factory, made at the first question; they live as long as it is registered. NULL without
 * memory. */
tn__containers *tn__factory_containers(tn__factory *factory);

#endif
