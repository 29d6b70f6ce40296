/* SPDX-License-Identifier: Apache-2.0 */
/* The table of devices in a Run's metadata: nodes refer to a device by its number there. */
#include <core/session/metadata/metadata.h>

uint32_t tn__metadata_device(tn_run_metadata *m, tn_session *session, const tn_operation *op)
{
  tn_placement placement = { .struct_size = sizeof placement };
  tn_device_info first = { .struct_size = sizeof first };
  if (m->one_device && m->summary.devices > 0) return 0;
  const char *made = strstr(op->name, TN__MADE_NAME), *name = NULL;
  char *node = made == NULL ? NULL : tn__arena_string(&m->arena, op->name, (size_t)(made - op->name));
  if (made != NULL && node == NULL) return TN__NONE;
  if (tn_session_device_of(session, made != NULL ? node : op->name, &placement, NULL) == TN_OK) name = placement.device;
  else if (tn_session_device(session, 0, &first, NULL) == TN_OK) name = first.name; /* of a function's body */
  return tn__metadata_device_named(m, name != NULL ? name
                                                   : "/job:localhost/replica:0/task:0/device:" TN__HOST_DEVICE ":0");
}

uint32_t tn__metadata_device_named(tn_run_metadata *m, const char *name)
{
  for (uint32_t d = 0; d < m->summary.devices; d++)
    if (strcmp(m->devices[d], name) == 0) return d;
  const char **more = tn__arena_array(&m->arena, m->summary.devices + 1, sizeof *more);
  const char *kept = more == NULL ? NULL : tn__arena_string(&m->arena, name, strlen(name));
  if (kept == NULL) return TN__NONE;
  for (uint32_t d = 0; d < m->summary.devices; d++) more[d] = m->devices[d];
  more[m->summary.devices] = kept;
  m->devices = more;
  return (uint32_t)m->summary.devices++;
}
