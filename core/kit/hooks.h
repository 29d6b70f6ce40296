/* SPDX-License-Identifier: Apache-2.0 */
/* What the kit needs of rooms above it: set by them before a session exists. */
#ifndef TN_CORE_KIT_HOOKS_H
#define TN_CORE_KIT_HOOKS_H

#include <tenon/kit.h>

/* Closes every session that the factory made, without waiting, and gives the containers new generations (none named:
 * the default one; TN_RESET_ALL: all), both at one moment for sessions that are being made. */
extern tn_status (*tn__kit_reset_sessions)(const tn_session_factory *factory, const char *const *containers, size_t n,
                                           uint32_t flags, tn_error *err);

#endif
