/* SPDX-License-Identifier: Apache-2.0 */
/* Side effects of a test plugin's callback, selected by TENON_TEST_FAULT as "WHERE__WHAT":
 * "init__handler" sets a handler for SIGTERM in init. Each is forbidden by P-101. */
#ifndef TENON_TESTS_PLUGINS_EFFECTS_H
#define TENON_TESTS_PLUGINS_EFFECTS_H

#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#endif

static inline void on_signal_of_the_program(int number) { (void)number; }

static inline void effect_signals(const char *what)
{
  static char stack[65536];
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  if (strcmp(what, "handler") == 0) signal(SIGTERM, on_signal_of_the_program);
  if (strcmp(what, "ignores") == 0) signal(SIGUSR1, SIG_IGN);
  if (strcmp(what, "blocks") == 0) pthread_sigmask(SIG_BLOCK, &set, NULL);
  if (strcmp(what, "stack") == 0) sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof stack }, NULL);
}

static inline void effect_process(const char *what)
{
  struct rlimit limit;
  if (strcmp(what, "locale") == 0) setlocale(LC_ALL, "C.UTF-8");
  if (strcmp(what, "folder") == 0 && chdir("/") != 0) abort();
  if (strcmp(what, "umask") == 0) umask(0);
  if (strcmp(what, "adds") == 0) setenv("ACME_WAS_HERE", "1", 1);
  if (strcmp(what, "removes") == 0) unsetenv("TENON_TEST_FAULT");
  if (strcmp(what, "limit") == 0 && getrlimit(RLIMIT_CORE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_cur == 0 ? limit.rlim_max : 0;
    if (limit.rlim_max == 0) getrlimit(RLIMIT_NOFILE, &limit), limit.rlim_cur--, setrlimit(RLIMIT_NOFILE, &limit);
    else setrlimit(RLIMIT_CORE, &limit);
  }
  if (strcmp(what, "timer") == 0) alarm(0);
  if (strcmp(what, "nice") == 0 && nice(1) == -1) abort();
  if (strcmp(what, "child") == 0 && fork() == 0) execl("/bin/sleep", "sleep", "60", (char *)NULL), _exit(0);
}

static inline void effect_thread(const char *what)
{
  if (strcmp(what, "rounds") == 0) fesetround(FE_UPWARD);
#if defined(__x86_64__)
  if (strcmp(what, "denormals") == 0) _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
#ifdef __linux__
  if (strcmp(what, "pins") == 0) {
    unsigned long first = 1;
    syscall(SYS_sched_setaffinity, 0, sizeof first, &first);
  }
#endif
}

static inline void effect_streams(const char *what)
{
  if (strcmp(what, "prints") == 0) puts("Acme 1.0 greets you");
  if (strcmp(what, "complains") == 0) fputs("Acme 1.0 has no licence\n", stderr);
  if (strcmp(what, "closes") == 0) close(STDIN_FILENO);
}

/* where: the callback. */
static inline void effects_of(const char *fault, const char *where)
{
  size_t n = strlen(where);
  if (fault == NULL || strncmp(fault, where, n) != 0 || strncmp(fault + n, "__", 2) != 0) return;
  effect_signals(fault + n + 2);
  effect_process(fault + n + 2);
  effect_thread(fault + n + 2);
  effect_streams(fault + n + 2);
}

#endif
