/* SPDX-License-Identifier: Apache-2.0 */
/* Handles a process exit before the command is done. Unfinished files are removed. If a plugin's code ended the
 * process, by exit or by a fault, the message names the plugin and the callback. A plugin's exit status is ignored: the
 * command exits with 1. A signal's status is kept. _exit cannot be caught. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/plugins.h>

#include <tools/tool.h>

static volatile sig_atomic_t done; /* the command has finished with an exit status */
static volatile sig_atomic_t child;

void tool_ending_child(int pid) { child = pid; }

static void clean_up(void)
{
  tn_files_abandon();
  if (child > 0) kill((pid_t)child, SIGTERM);
}

int tool_end_by_signal(int number)
{
  clean_up();
  signal(number, SIG_DFL);
  raise(number);
  return 128 + number;
}

/* ---- formatting without stdio, safe in a signal handler ---- */

typedef struct line {
  char text[1024];
  size_t length;
} line;

static void add(line *l, const char *text)
{
  for (; text != NULL && *text != '\0' && l->length < sizeof(l->text) - 1; text++) l->text[l->length++] = *text;
}

static void add_number(line *l, int number)
{
  char digits[12];
  size_t at = sizeof(digits) - 1;
  digits[at] = '\0';
  do digits[--at] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  add(l, digits + at);
}

/* Formats "plugin 'acme.fast' (/path/fast.so) ended the process in its step"; false if this thread is not in a
 * plugin. */
static bool add_plugin(line *l)
{
  tn_plugin_call call = { .struct_size = sizeof(call) };
  if (!tn_plugin_call_now(&call)) return false;
  add(l, "tenon: ABORTED: plugin '");
  add(l, call.plugin);
  add(l, "' (");
  add(l, call.file != NULL && call.file[0] != '\0' ? call.file : "of the program");
  add(l, ") ended the process in ");
  add(l, call.call);
  if (call.kernel != NULL) {
    add(l, ", '");
    add(l, call.kernel);
    add(l, "'");
  }
  if (call.node != NULL) {
    add(l, " of node '");
    add(l, call.node);
    add(l, "'");
  }
  return true;
}

static void say(line *l)
{
  l->text[l->length++] = '\n';
  for (size_t at = 0; at < l->length;) {
    ssize_t n = write(STDERR_FILENO, l->text + at, l->length - at);
    if (n <= 0) return;
    at += (size_t)n;
  }
}

/* ---- exit ---- */

/* exit handler: if the command has not finished, other code called exit. */
static void on_exit_call(void)
{
  line l = { .length = 0 };
  if (done) return;
  if (add_plugin(&l))
    add(&l, ": it called exit");
  else
    add(&l, "tenon: ABORTED: exit was called before the command finished, outside any plugin call: possibly by a "
            "thread of a plugin");
  fflush(stdout);
  say(&l);
  clean_up();
  _exit(TOOL_FAILED);
}

void tool_exit(int status)
{
  done = 1;
  exit(status);
}

int tool_ending_done(int status)
{
  done = 1;
  return status;
}

/* ---- signals ---- */

static const char *signal_name(int number)
{
  switch (number) {
  case SIGABRT: return " (SIGABRT)";
  case SIGBUS: return " (SIGBUS)";
  case SIGFPE: return " (SIGFPE)";
  case SIGILL: return " (SIGILL)";
  case SIGSEGV: return " (SIGSEGV)";
  case SIGSYS: return " (SIGSYS)";
  case SIGTRAP: return " (SIGTRAP)";
  default: return "";
  }
}

static bool is_fault(int number) { return signal_name(number)[0] != '\0'; }

/* The previous signal handlers, such as a sanitizer's. */
static struct sigaction before[NSIG];

static void on_fault(int number, siginfo_t *info, void *context)
{
  line l = { .length = 0 };
  const struct sigaction *old = &before[number];
  if (add_plugin(&l)) {
    add(&l, ": signal ");
    add_number(&l, number);
    add(&l, signal_name(number));
    say(&l);
  }
  clean_up();
  if (old->sa_flags & SA_SIGINFO) {
    old->sa_sigaction(number, info, context);
  } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
    old->sa_handler(number);
  } else {
    signal(number, SIG_DFL); /* on return a fault recurs; a signal that was sent is raised again */
    if (info->si_code <= 0 || number == SIGABRT) raise(number);
  }
}

static void on_end(int number) { tool_end_by_signal(number); }

/* Signals that are ignored, or stop and continue the process. SIGPIPE and SIGXFSZ become write errors (main.c). */
static bool is_harmless(int number)
{
  static const int harmless[] = { SIGCHLD, SIGCONT, SIGURG,  SIGWINCH, SIGSTOP, SIGTSTP,
                                  SIGTTIN, SIGTTOU, SIGKILL, SIGPIPE,  SIGXFSZ };
  for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
    if (harmless[i] == number) return true;
  return false;
}

/* After a stack overflow the handler needs its own stack. */
static void give_stack(void)
{
  static char room[65536];
  stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };
  stack_t now;
  if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE)) sigaltstack(&stack, NULL);
}

void tool_ending_watch(void)
{
  struct sigaction end, fault;
  memset(&end, 0, sizeof(end));
  sigfillset(&end.sa_mask);
  end.sa_flags = SA_RESTART | SA_ONSTACK;
  fault = end;
  end.sa_handler = on_end;
  fault.sa_sigaction = on_fault;
  fault.sa_flags |= SA_SIGINFO;
  give_stack();
  for (int i = 1; i < NSIG; i++) {
    if (is_harmless(i) || sigaction(i, NULL, &before[i]) != 0) continue;
    bool usual = !(before[i].sa_flags & SA_SIGINFO) && before[i].sa_handler == SIG_DFL;
    if (is_fault(i)) sigaction(i, &fault, NULL);
    else if (usual) sigaction(i, &end, NULL);
  }
  atexit(on_exit_call);
  at_quick_exit(on_exit_call);
}
