/* SPDX-License-Identifier: Apache-2.0 */
/* The sink of the ops that print. It runs under a lock, so it gets one text at a time, and tn_set_print_sink returns
 * only after the old sink has returned from its last text. */
#include <core/base/print.h>

#include <core/base/threads/lock.h>
#include <core/base/threads/thread.h>
#include <stdio.h>

static tn__mutex mu = TN__MUTEX_INIT("print", TN_RANK_PRINT);
static tn_print_fn current_sink; /* guarded by mu; NULL: the process's own streams */
static void *current_user;       /* guarded by mu */

void tn_set_print_sink(tn_print_fn sink, void *user)
{
  tn__mutex_lock(&mu);
  current_sink = sink;
  current_user = user;
  tn__mutex_unlock(&mu);
}

/* Through stdio, so that the order with the program's own output is kept. */
static void write_stream(FILE *stream, const char *text, size_t length)
{
  size_t ignored = fwrite(text, 1, length, stream);
  (void)ignored;
  fflush(stream);
}

void tn__print(int32_t stream, const char *text, size_t length)
{
  int state = tn__cancel_hold();
  tn__mutex_lock(&mu);
  if (current_sink != NULL)
    current_sink(current_user, stream, text, length);
  else
    write_stream(stream == TN_PRINT_STDOUT ? stdout : stderr, text, length);
  tn__mutex_unlock(&mu);
  tn__cancel_restore(state);
}
