/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the threads of the test process. */
#ifndef TENON_CONFORMANCE_SUPPORT_THREADS_H
#define TENON_CONFORMANCE_SUPPORT_THREADS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline int threads_now(void)
{
  char line[256];
  int n = -1;
  FILE *file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, "Threads:", 8) == 0) n = (int)strtol(line + 8, NULL, 10);
  if (file != NULL) fclose(file);
  return n;
}

static inline void *end_at_once(void *arg) { return arg; }

/* A sanitizer starts an additional thread. */
static inline void have_had_a_thread(void)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, end_at_once, NULL) == 0) pthread_join(thread, NULL);
}

/* The number of threads; -1 if unknown. The system still counts a joined thread for a moment, so this returns the
 * minimum within 30 ms. */
static inline int threads_of_process(void)
{
  have_had_a_thread();
  int n = threads_now();
  for (int i = 0; i < 15 && n > 1; i++) {
    const struct timespec pause = { .tv_nsec = 2000000 };
    nanosleep(&pause, NULL);
    int now = threads_now();
    if (now < n) n = now;
  }
  return n;
}

#endif
