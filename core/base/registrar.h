/* SPDX-License-Identifier: Apache-2.0 */
/* Who registers ops on this thread. While the code of a plugin does, its families are checked and put down; they are
 * entered when all went well, all or none. */
#ifndef TN_CORE_BASE_REGISTRAR_H
#define TN_CORE_BASE_REGISTRAR_H

#include <stdbool.h>
#include <stddef.h>
#include <tenon/status.h>

typedef struct tn__registrar tn__registrar;
struct tn__registrar {
  const char *who; /* "plugin 'name' (/path)", for messages */
  const char *name, *file; /* of the plugin; they live as long as the process */

  /* of the op table, set when something was registered */
  const void **families;
  size_t n, room;
  bool (*has)(const tn__registrar *registrar, const char *op);
  /* Enters the families, or forgets them. In any case what it holds is freed. */
  tn_status (*settle)(tn__registrar *registrar, bool keep, tn_error *err);
};

/* NULL: the program registers. Borrowed. */
extern _Thread_local tn__registrar *tn__registrar_now;

#endif
