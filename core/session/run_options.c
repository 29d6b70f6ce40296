/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a call: checked, copied, and the limits they set on its time. */
#include <core/exec/step/cancellation.h>
#include <core/session/step.h>

tn_status tn__run_options_check(const tn_session *session, const tn_run_options *o, tn_error *err)
{
  if (o == NULL) return TN_OK;
  if (!TN_HAS_FIELD(o, tn_run_options, cancellation))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "run options: struct_size is %zu: tn_run_options_init was not called",
                        o->struct_size);
  if (o->trace_level < 0 || o->trace_level > 3) /* S-RO-11 */
    return tn_error_set(err, TN_INVALID_ARGUMENT, "run options: trace_level is %d, it must be 0 to 3", o->trace_level);
  size_t pools = session->threads.n_pools > 0 ? session->threads.n_pools : 1;
  if (o->inter_op_pool < -1 || (o->inter_op_pool >= 0 && (size_t)o->inter_op_pool >= pools)) /* S-RO-09 */
    return tn_error_set(err, TN_INVALID_ARGUMENT, "run options: inter_op_pool is %d, the session has %zu pool%s",
                        o->inter_op_pool, pools, pools == 1 ? "" : "s");
  if (o->output_partition_graphs && /* S-RO-13 */
      tn__option_number(session->on.options, TN__OPTION_disable_output_partition_graphs) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "run options: output_partition_graphs is set, which the session's option "
                        "disable_output_partition_graphs forbids");
  return TN_OK;
}

/* Fields that the caller's version of the struct lacks get their defaults. */
void tn__run_options_copy(tn_run_options *to, const tn_run_options *from)
{
  tn_run_options_init(to);
  if (from != NULL) memcpy(to, from, from->struct_size < sizeof *to ? from->struct_size : sizeof *to);
  to->struct_size = sizeof *to;
}

/* Options that were not checked may lack fields, so each use asks for the field first. */
int64_t tn__call_deadline(const tn_session *session, const tn_run_options *options)
{
  bool known = options != NULL && TN_HAS_FIELD(options, tn_run_options, cancellation);
  return tn__step_deadline(known && options->timeout_ms > 0 ? options->timeout_ms
                                                            : session->on.timeout_ms); /* S-RO-04 */
}

tn__stop tn__call_limits(const tn_session *session, const tn_run_options *options, int64_t deadline_ns)
{
  bool known = options != NULL && TN_HAS_FIELD(options, tn_run_options, cancellation) && options->cancellation != NULL;
  return (tn__stop){ &session->closed, known ? &options->cancellation->cancelled : NULL, deadline_ns };
}
