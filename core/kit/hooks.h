/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of higher layers that the kit calls. Those layers set them before a session exists. */
#ifndef TN_CORE_KIT_HOOKS_H
#define TN_CORE_KIT_HOOKS_H

#include <tenon/kit.h>

/* Closes every session that the factory made, without waiting, and gives the containers new
 * generations: those named; if none is named, the default one; with TN_RESET_ALL, all. A session
 * that is being made meanwhile sees either both effects or neither. */
extern tn_status (*tn__kit_reset_sessions)(const tn_session_factory *factory, const char *const *containers, size_t n,
                                           uint32_t flags, tn_error *err);

#endif
