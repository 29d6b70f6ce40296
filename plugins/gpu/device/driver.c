/* SPDX-License-Identifier: Apache-2.0 */
/* On first use a driver installs signal handlers, sets environment variables and creates threads. init saves
 * the state before, and restores it. Kernels of this runtime need no handlers: they never divide integers by
 * zero. */
#define _GNU_SOURCE
#include "device/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/runtime.h>

#ifndef NSIG
#define NSIG 65
#endif

extern char **environ;

struct gpu_process {
  sigset_t mask;
  stack_t stack;
  bool has_stack;
  struct sigaction actions[NSIG];
  bool has_action[NSIG];
  size_t n_variables;
  char *variables[]; /* copies, "NAME=value" */
};

void gpu_signals_block(sigset_t *before)
{
  sigset_t all;
  sigfillset(&all);
  /* A fault of the thread's own is its own also here. */
  static const int own[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&all, own[i]);
  pthread_sigmask(SIG_BLOCK, &all, before);
}

void gpu_signals_restore(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

/* ---- the environment ---- */

static size_t count_variables(void)
{
  size_t n = 0;
  while (environ != NULL && environ[n] != NULL) n++;
  return n;
}

static char *copy_text(const char *text)
{
  size_t n = strlen(text) + 1;
  char *copy = tn_alloc(n);
  if (copy != NULL) memcpy(copy, text, n);
  return copy;
}

static const char *kept_value(const gpu_process *p, const char *variable, size_t n)
{
  for (size_t i = 0; i < p->n_variables; i++)
    if (p->variables[i] != NULL && strncmp(p->variables[i], variable, n) == 0 && p->variables[i][n] == '=')
      return p->variables[i] + n + 1;
  return NULL;
}

/* Whether an environment variable existed before with this value. */
static bool is_as_before(const gpu_process *p, const char *variable)
{
  size_t n = strcspn(variable, "=");
  const char *value = kept_value(p, variable, n);
  return variable[n] == '\0' || (value != NULL && strcmp(value, variable + n + 1) == 0);
}

static bool put_back(const gpu_process *p, const char *variable)
{
  size_t n = strcspn(variable, "=");
  char *name = tn_alloc(n + 1);
  if (name == NULL) return false;
  memcpy(name, variable, n);
  name[n] = '\0';
  const char *value = kept_value(p, name, n);
  bool done = (value != NULL ? setenv(name, value, 1) : unsetenv(name)) == 0;
  tn_free(name);
  return done;
}

/* Restores entries that were added or changed. The list changes with each, so it is walked again. */
static void restore_variables(const gpu_process *p)
{
  for (size_t i = 0; environ != NULL && environ[i] != NULL;) {
    if (is_as_before(p, environ[i])) i++;
    else if (put_back(p, environ[i])) i = 0;
    else break;
  }
}

/* ---- the process ---- */

static void drop(gpu_process *p)
{
  for (size_t i = 0; i < p->n_variables; i++) tn_free(p->variables[i]);
  tn_free(p);
}

static uintptr_t handler_of(const struct sigaction *a)
{
  return (a->sa_flags & SA_SIGINFO) != 0 ? (uintptr_t)a->sa_sigaction : (uintptr_t)a->sa_handler;
}

gpu_process *gpu_process_keep(void)
{
  size_t n = count_variables();
  gpu_process *p = tn_alloc(sizeof *p + n * sizeof *p->variables);
  if (p == NULL) return NULL;
  memset(p, 0, sizeof *p);
  p->n_variables = n;
  bool whole = true;
  for (size_t i = 0; i < n; i++) {
    p->variables[i] = whole ? copy_text(environ[i]) : NULL;
    whole = p->variables[i] != NULL;
  }
  if (!whole) {
    drop(p);
    return NULL;
  }
  p->has_stack = sigaltstack(NULL, &p->stack) == 0;
  for (int s = 1; s < NSIG; s++) p->has_action[s] = sigaction(s, NULL, &p->actions[s]) == 0;
  gpu_signals_block(&p->mask);
  return p;
}

void gpu_process_restore(gpu_process *p)
{
  if (p == NULL) return;
  for (int s = 1; s < NSIG; s++) {
    struct sigaction now;
    if (!p->has_action[s] || sigaction(s, NULL, &now) != 0) continue;
    if (handler_of(&now) != handler_of(&p->actions[s]) || now.sa_flags != p->actions[s].sa_flags)
      sigaction(s, &p->actions[s], NULL);
  }
  if (p->has_stack) sigaltstack(&p->stack, NULL);
  restore_variables(p);
  gpu_signals_restore(&p->mask);
  drop(p);
}
