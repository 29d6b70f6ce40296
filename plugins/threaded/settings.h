/* SPDX-License-Identifier: Apache-2.0 */
/* What options say of threads: the target's settings go before the fields. */
#ifndef TENON_PLUGINS_THREADED_SETTINGS_H
#define TENON_PLUGINS_THREADED_SETTINGS_H

#include <tenon/runtime.h>

/* How many pools the options list: 0 = none, the session has its quota of the process's. */
size_t threaded_pools(const tn_session_options *options);

/* Of the workers of pool i: 0 is the session's own quota when the options name no pools. TN_OUT_OF_RANGE past the end,
 * TN_INVALID_ARGUMENT with the setting that is wrong and what it may be. Texts are borrowed from the options. */
tn_status threaded_settings(const tn_session_options *options, size_t i, tn_kit_workers_config *out, tn_error *err);

#endif
