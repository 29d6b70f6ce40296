/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of eager sessions, and their plans. */
#ifndef TN_CORE_EAGER_OP_H
#define TN_CORE_EAGER_OP_H

#include <core/eager/eager.h>
#include <core/plan/states.h>

/* A plan for one tuple of input types, and a device. Immutable once made; concurrent calls share
 * it. */
typedef struct tn__eager_plan {
  struct tn__eager_plan *next; /* in the list of the op */
  tn_graph *graph; /* a reference */
  tn_plan *plan;   /* a reference */
  tn_executable *executable; /* the runtime's, released with the plan */
  tn__kernel_states states;
  uint32_t n_inputs, n_outputs;
  uint16_t asked;          /* the requested device, if that is not a CPU; else 0 */
  bool moved;              /* it runs on the default device: `asked` has no kernel for it */
  uint64_t on_host;        /* bit i: input i gives shapes, so it is read on the host wherever the operation runs */
  tn_dtype *outputs; /* in dtypes, after those of the inputs */
  tn_dtype dtypes[];
} tn__eager_plan;

/* Calls of one op may run concurrently. */
struct tn_eager_op {
  tn_eager_session *session; /* a reference */
  tn_eager_op *prev, *next;  /* of the session, guarded by its mu */
  char *name, *device;       /* in the arena, as what follows */
  tn_eager_attr *attrs;      /* copies; tensors are references */
  size_t n_attrs;
  tn__arena arena;
  tn__mutex mu;              /* held while a plan is made */
  _Atomic(tn__eager_plan *) plans; /* newest first; freed with the op, or when the session is closed */
  _Atomic(tn__eager_plan *) last;  /* the one used last */
  _Atomic uint32_t n_plans;
  bool takes_list;           /* more than one count of inputs is possible */
  uint16_t place;            /* the device on which it runs, or TN__EAGER_ANYWHERE */
};

/* ---- op.c ---- */

/* Copies name, device and attributes; tensors are only referenced. The op is in no list of the
 * session. */
tn_status tn__eager_op_create(tn_eager_session *session, const char *op, const char *device, const tn_eager_attr *attrs,
                           size_t n, tn_eager_op **out, tn_error *err);
/* Whether the attributes are well-formed; not whether they fit the op. */
tn_status tn__eager_attrs_check(const char *op, const tn_eager_attr *attrs, size_t n, tn_error *err);
void tn__eager_op_destroy(tn_eager_op *op); /* its plans are freed already */
/* Replaces the caller's tensors in attributes by copies; false without memory. */
bool tn__eager_op_copy_tensors(tn_eager_op *op);

/* ---- plan.c ---- */

/* Frees all plans of an op. No call may use them. */
void tn__eager_plans_destroy(tn_eager_session *session, tn_eager_op *op);
void tn__eager_plan_destroy(tn_eager_session *session, tn__eager_plan *plan);
/* The plan for these types and device `asked`, 0 if that is a CPU. *mine: the plan is not kept, and the
 * caller frees it. */
tn_status tn__eager_plan_get(tn_eager_op *op, const tn_dtype *dtypes, size_t n, uint16_t asked, tn__eager_plan **out,
                             bool *mine, tn_error *err);

#endif
