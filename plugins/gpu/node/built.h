/* SPDX-License-Identifier: Apache-2.0 */
/* A node whose launches are built, as schedules use it. */
#ifndef GPU_NODE_BUILT_H
#define GPU_NODE_BUILT_H

#include "node/node.h"

typedef struct gpu_arg {
  int kind;
  uint32_t index; /* input, output, packed */
  size_t at;      /* scratch; VALUE: into `values` of the launch; LOCAL: nothing */
  size_t size;    /* VALUE, LOCAL */
} gpu_arg;
struct gpu_launch {
  gpu_node *node;
  gpu_launch *next;
  const char *file;   /* NULL: text */
  char *text, *kernel, *options;
  gpu_arg *args;
  size_t n_args, args_room;
  unsigned char *values;
  size_t n_values, values_room;
  cl_uint n_dims;
  size_t global[3], local[3];
  gpu_library library; /* in place of a kernel; `values` is what it is given */
  bool copies;        /* no kernel: output `copy_to` gets the bytes of input `copy_from` */
  uint32_t copy_to, copy_from;
  gpu_explain explain; /* NULL: it takes all elements */
  int64_t limit;
};
static inline bool gpu_has_kernel(const gpu_launch *l) { return !l->copies && l->library == NULL; }
typedef struct gpu_pack {
  struct gpu_pack *next;
  uint32_t input; /* UINT32_MAX: a table */
  uint64_t key;
  size_t bytes;
  tn_status (*pack)(const void *user, const gpu_value *from, void *to, tn_error *err);
  void *user;      /* its own */
  void *data;      /* of a table */
} gpu_pack;
typedef struct gpu_built {
  gpu_launch *launches, *last_launch;
  gpu_pack *packs; /* in the order of their ids */
  uint32_t n_packs;
  size_t scratch_bytes;
  tn_status status; /* of the first builder that failed */
  tn_error error;
} gpu_built;
/* Plans a node; n->op, device, inputs and outputs are set. On success n->built is the caller's, for gpu_built_destroy.
 */
tn_status gpu_node_plan(gpu_node *n, const gpu_op *op, tn_error *err);
void gpu_built_destroy(gpu_built *built); /* NULL allowed */

#endif
