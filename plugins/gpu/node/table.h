/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of the device. */
#ifndef GPU_NODE_TABLE_H
#define GPU_NODE_TABLE_H

#include "node/node.h"

/* The tables of ops/, as gpu.mk lists their files; made by build-aux/gen-table.sh. Ends with a NULL. */
extern const gpu_op *const gpu_op_tables[];

/* The op's entry for a node whose type attributes fit, or NULL. */
const gpu_op *gpu_op_find(const tn_operation *op);
/* Enters kernels for device type GPU in the library's op table, one for each gpu_op, so that placement knows of
 * them. */
tn_status gpu_ops_register(tn_error *err);

#endif
