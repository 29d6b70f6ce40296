/* SPDX-License-Identifier: Apache-2.0 */
/* The log of placements. The sink runs under a lock, so it gets one line at a time, and tn_set_placement_sink waits
 * until the old sink has returned. */
#include <core/session/placement/log.h>

#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/base/threads/lock.h>
#include <core/base/threads/thread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static tn__mutex mu = TN__MUTEX_INIT("placements", TN_RANK_PRINT);
static tn_placement_fn current_sink; /* guarded by mu; NULL: standard error */
static void *current_user;           /* guarded by mu */

void tn_set_placement_sink(tn_placement_fn sink, void *user)
{
  tn__mutex_lock(&mu);
  current_sink = sink;
  current_user = user;
  tn__mutex_unlock(&mu);
}

static void write_stderr(const char *line, size_t size)
{
  struct iovec v[] = { { (void *)(uintptr_t)line, size }, { (void *)(uintptr_t) "\n", 1 } };
  ssize_t ignored = writev(STDERR_FILENO, v, 2);
  (void)ignored;
}

void tn__placement_line(const char *node, const char *op, const char *device)
{
  char small[512], *line = small;
  size_t size = strlen(node) + strlen(op) + strlen(device) + strlen(": (): ") + 1;
  if (size > sizeof small) line = tn__alloc(size);
  if (line == NULL) { /* without memory the line is cut */
    line = small;
    size = sizeof small;
  }
  tn__snprintf(line, size, "%s: (%s): %s", node, op, device);
  for (char *c = line; *c != 0; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
  int state = tn__cancel_hold();
  tn__mutex_lock(&mu);
  if (current_sink != NULL) current_sink(current_user, line);
  else write_stderr(line, strlen(line));
  tn__mutex_unlock(&mu);
  tn__cancel_restore(state);
  if (line != small) tn__free(line, size);
}
