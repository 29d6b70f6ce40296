/* SPDX-License-Identifier: Apache-2.0 */
/* Fed tensors compared with what the graph declares: their types and shapes. */
#include <core/base/text.h>
#include <core/graph/graph_structs.h>
#include <core/session/feeds.h>

/* Whether a tensor contradicts a shape. Rank -1 and dimensions below 0 are not known, and match
 * everything. */
static bool contradicts(const int64_t *dims, int64_t rank, const tn_tensor *t)
{
  if (rank < 0) return false;
  if (rank != t->rank) return true;
  for (int32_t d = 0; d < t->rank; d++)
    if (dims[d] >= 0 && dims[d] != t->dims[d]) return true;
  return false;
}

/* The shape that the graph knows for an output, or NULL if it knows none. */
static tn_status known_shape(tn_output o, const tn__shape **out, tn_error *err)
{
  const tn__op_shapes *shapes = NULL;
  *out = NULL;
  if ((size_t)o.index >= tn_operation_n_outputs(o.op)) return TN_OK; /* the op is not registered */
  tn_status st = tn__op_shapes_get(o.op, &shapes, err);
  if (shapes != NULL) *out = &shapes->outputs[o.index];
  return st;
}

tn_status tn__feed_check_shape(tn_output o, const tn_tensor *t, tn_error *err)
{
  const tn__shape *shape;
  tn_status st = known_shape(o, &shape, err);
  if (st != TN_OK || shape == NULL || !contradicts(shape->dims, shape->rank, t)) return st;
  char want[128], have[128];
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "feed '%s:%d' has shape %s, its declared shape is %s: the option strict_shapes refuses it",
                      tn_operation_name(o.op), (int)o.index, tn__format_shape(have, sizeof have, t->dims, t->rank),
                      tn__format_shape(want, sizeof want, shape->dims, (int32_t)shape->rank));
}

void tn__feed_explain(tn_output o, const tn_tensor *t, tn_error *err)
{
  const tn__shape *shape;
  char want[128], have[128];
  if (known_shape(o, &shape, NULL) != TN_OK || shape == NULL || !contradicts(shape->dims, shape->rank, t)) return;
  tn__error_add_cause(err, "feed '%s:%d' has shape %s, its declared shape is %s", tn_operation_name(o.op), (int)o.index,
                      tn__format_shape(have, sizeof have, t->dims, t->rank),
                      tn__format_shape(want, sizeof want, shape->dims, (int32_t)shape->rank));
}

bool tn__feeds_contradict(const tn__signature *s, tn_tensor *const *feeds)
{
  for (size_t i = 0; i < s->n_feeds; i++) {
    const tn__shape_assumption *a = &s->assumed[i];
    if (contradicts(a->dims, a->rank, feeds[i])) return true;
  }
  return false;
}

static tn_status wrong_type(const char *name, tn_dtype wanted, tn_dtype found, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "feed '%s' has type %s, the graph wants %s", name, tn_dtype_name(found),
                      tn_dtype_name(wanted));
}

tn_status tn__feeds_check_declared(const tn__entry_point *e, const tn__names *names, tn_tensor *const *feeds,
                                   tn_error *err)
{
  for (size_t i = 0; feeds != NULL && i < e->n_feeds; i++) {
    tn_output o = e->feeds[i];
    if ((size_t)o.index >= tn_operation_n_outputs(o.op)) continue;
    tn_dtype wanted = tn__dtype_base(tn_operation_output_dtype(o.op, (size_t)o.index));
    if (wanted != TN_DTYPE_INVALID && wanted != feeds[i]->dtype)
      return wrong_type(names->feeds[i], wanted, feeds[i]->dtype, err);
  }
  return TN_OK;
}

tn_status tn__feed_check(const tn__signature *s, uint32_t feed, tn_output output, const char *name, const tn_tensor *t,
                         tn_error *err)
{
  tn_dtype wanted = s->feed_dtypes[feed];
  if (wanted != t->dtype && wanted != TN_DTYPE_INVALID) return wrong_type(name, wanted, t->dtype, err);
  /* If the plan assumes shapes, the step compares them anyway and refuses the feed then. */
  return s->session->strict_shapes && s->assumed == NULL ? tn__feed_check_shape(output, t, err) : TN_OK;
}

tn_status tn__feeds_check(const tn__entry_point *e, const char *const *names, tn_tensor *const *feeds, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < e->n_feeds; i++) {
    const char *name = names != NULL ? names[i] : tn_operation_name(e->feeds[i].op);
    st = tn__feed_check(e->signature, e->feed_map[i], e->feeds[i], name, feeds[i], err);
  }
  return st;
}
