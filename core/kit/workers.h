/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of a runtime's session, as other parts of the library see them. */
#ifndef TN_CORE_KIT_WORKERS_H
#define TN_CORE_KIT_WORKERS_H

#include <core/pool/pool.h>
#include <tenon/kit.h>

/* Their pool client, borrowed. NULL for NULL: no workers. */
tn__pool_client *tn__kit_workers_client(const tn_kit_workers *workers);

#endif
