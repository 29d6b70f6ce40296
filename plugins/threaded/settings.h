/* SPDX-License-Identifier: Apache-2.0 */
/* The session options for threads: a target's settings take precedence over the fields. */
#ifndef TENON_PLUGINS_THREADED_SETTINGS_H
#define TENON_PLUGINS_THREADED_SETTINGS_H

#include <tenon/runtime.h>

/* The number of pools in the options; 0: none, the session uses its quota of the process's pool. */
size_t threaded_pools(const tn_session_options *options);

/* The configuration of pool i's workers; pool 0 is the session's quota if the options have no pools. TN_OUT_OF_RANGE
 * past the end, TN_INVALID_ARGUMENT with the invalid setting and its valid values. Texts are borrowed from the
 * options. */
tn_status threaded_settings(const tn_session_options *options, size_t i, tn_kit_workers_config *out, tn_error *err);

#endif
