/* SPDX-License-Identifier: Apache-2.0 */
/* What the kit needs of rooms above it: set by them before a session exists. */
#ifndef TN_CORE_EXEC_KIT_HOOKS_H
#define TN_CORE_EXEC_KIT_HOOKS_H

#include <tenon/kit.h>

/* Closes every session that the factory made, without waiting. */
extern tn_status (*tn__kit_close_sessions)(const tn_session_factory *factory, tn_error *err);

#endif
