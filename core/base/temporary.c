/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/temporary.h>

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include <core/base/text.h>
#include <core/base/threads/lock.h>
#include <core/base/threads/thread.h>
#include <tenon/process.h>

#define MOST_WAIT_MS 2000 /* limit for another thread's section, because its file system may hang */

static tn__mutex mu = TN__MUTEX_INIT("temporary files", TN_RANK_TEMPORARY);
static _Atomic(tn__temporary *) first; /* written under mu, read by tn_files_abandon without it */
static atomic_bool abandoned;
static _Atomic uint32_t inside; /* number of the thread that is in a section, 0: none */

bool tn__temporaries_enter(void)
{
  uint32_t self = tn__thread_number();
  tn__mutex_lock(&mu);
  atomic_store(&inside, self);
  if (!atomic_load(&abandoned)) return true;
  tn__temporaries_leave();
  return false;
}

void tn__temporaries_leave(void)
{
  atomic_store(&inside, 0);
  tn__mutex_unlock(&mu);
}

tn__temporary *tn__temporary_add(char *path)
{
  tn__assert_held(&mu);
  tn__temporary *t = tn__zalloc(sizeof *t);
  if (t == NULL) {
    tn__strfree(path);
    return NULL;
  }
  t->path = path;
  t->process = (long)getpid();
  atomic_store(&t->next, atomic_load(&first));
  atomic_store(&first, t);
  return t;
}

void tn__temporary_drop(tn__temporary *t)
{
  tn__assert_held(&mu);
  _Atomic(tn__temporary *) *link = &first;
  while (atomic_load(link) != t) link = &atomic_load(link)->next;
  atomic_store(link, atomic_load(&t->next));
  tn__strfree(t->path);
  tn__free(t, sizeof *t);
}

/* Async-signal-safe, and so is everything called here. Sets `abandoned` before it waits for `inside`; a thread that
 * enters a section stores `inside` before it tests `abandoned`. So one of the two sees the other. */
void tn_files_abandon(void)
{
  int code = errno;
  long process = (long)getpid();
  uint32_t self = tn__thread_number_or_0, other;
  atomic_store(&abandoned, true);
  for (int ms = 0; (other = atomic_load(&inside)) != 0 && other != self && ms < MOST_WAIT_MS; ms++) {
    struct timespec pause = { 0, 1000000 };
    nanosleep(&pause, NULL);
  }
  for (tn__temporary *t = atomic_load(&first); t != NULL; t = atomic_load(&t->next))
    if (t->process == process) unlink(t->path);
  errno = code;
}
