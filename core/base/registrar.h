/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin that registers ops on this thread. While a plugin's init code runs, the op families that it registers are
 * checked and collected. They enter the op table when the whole registration has succeeded: all or none. */
#ifndef TN_CORE_BASE_REGISTRAR_H
#define TN_CORE_BASE_REGISTRAR_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/status.h>

typedef struct tn__registrar tn__registrar;
struct tn__registrar {
  const char *who;         /* "plugin 'name' (/path)", for messages */
  const char *name, *file; /* of the plugin; valid until the process ends */

  /* Filled in by the op table at the first registration. */
  const void **families; /* the collected families: n of them, room for `room`; owned */
  size_t n, room;
  bool (*has)(const tn__registrar *registrar, const char *op); /* whether a collected family has the op */
  /* Enters the families into the op table if `keep`, else drops them. Frees `families` in either case. */
  tn_status (*settle)(tn__registrar *registrar, bool keep, tn_error *err);
};

/* The registrar of this thread, borrowed. NULL: the program itself registers. */
extern _Thread_local tn__registrar *tn__registrar_now;

#endif
