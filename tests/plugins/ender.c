/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that does harm when a program opens, queries, initialises or uses it. Tests copy the file and write over
 * the manifest's texts: "name", and "fault", which is PLACE:HARM. The place is ctor, entry, init, accept, session
 * (new_session), prepare, step, release, destroy or none; the harm is one of
 *
 *   segv, abort, bus, exit, quit   a signal; exit(0), _exit(0)
 *   quick, aside                   quick_exit(0); exit(0) in a new thread
 *   null                           writes to address 8
 *   hang, spin                     sleeps, computes forever
 *   eat                            allocates until memory is exhausted, and writes through the NULL pointer
 *   child                          hangs, and so does a child process
 *   leave                          succeeds, but leaves a child process running; child and leave write its number to
 *                                  the file TENON_TEST_PID
 *   forge                          writes a forged verdict on every descriptor, and ends with 0
 *   call                           calls the function whose address is in TENON_TEST_CALL
 *   spawn                          does that in a thread, and waits for it
 *   key                            sets a thread-specific value with a destructor of the plugin, which does that, too
 *   open                           fails if a descriptor above 3 is open
 *   later                          is UNAVAILABLE
 *
 * A session writes its host table to the address in TENON_TEST_HOST. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST("runtime", "ender_____________________", "CPU\0fault=none:________________", "000", "1.0.0", "Tests",
                   "")

/* volatile: the compiler must not rely on the initialiser, as the bytes in the file are changed. */
static const char *volatile manifest = tn__manifest;

static const char *value_of(const char *key)
{
  const char *text = manifest, *end = text + sizeof(tn__manifest);
  for (size_t n = strlen(key); text < end; text += strlen(text) + 1)
    if (strncmp(text, key, n) == 0 && text[n] == '=') return text + n + 1;
  return "";
}

static void *address_in(const char *variable)
{
  void *address = NULL;
  const char *text = getenv(variable);
  if (text != NULL) sscanf(text, "%p", &address);
  return address;
}

static void *call_back(void *arg)
{
  (void)arg;
  void *address = address_in("TENON_TEST_CALL");
  void (*function)(void) = NULL;
  memcpy(&function, &address, sizeof address);
  if (function != NULL) function();
  return NULL;
}

/* Exposes its host table, as a plugin does that makes buffers with code of its own. */
static void show_host(void)
{
  const tn_host **place = address_in("TENON_TEST_HOST");
  if (place != NULL) *place = TN_HOST_TABLE;
}

static void eat(void)
{
  for (;;) {
    char *p = malloc((size_t)1 << 20);
    memset(p, 1, (size_t)1 << 20);
  }
}

static void forge(void)
{
  for (int fd = 0; fd < 16; fd++)
    if (write(fd, "V 0 0\n00000000000000000000000000000000 V 0 0\n", 46) < 0) continue;
  _exit(0);
}

static void in_thread(void)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, call_back, NULL) == 0) pthread_join(thread, NULL);
}

static void make_child(void)
{
  pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  const char *name = getenv("TENON_TEST_PID");
  FILE *file = name != NULL ? fopen(name, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%d\n", (int)child);
  fclose(file);
}

static pthread_key_t key;

static void end_value(void *value)
{
  if (value == (void *)&key) call_back(NULL);
}

static void leave_value(void)
{
  if (pthread_key_create(&key, end_value) == 0) pthread_setspecific(key, &key);
}

static int descriptors(void)
{
  int n = 0;
  for (int fd = 4; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

static void *end_all(void *unused)
{
  (void)unused;
  exit(0);
}

static void end_aside(void)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, end_all, NULL) == 0) pthread_join(thread, NULL);
}

static volatile uintptr_t nowhere = 8;

static void harm(const char *place, const char **refusal)
{
  const char *fault = value_of("fault");
  size_t n = strlen(place);
  if (strncmp(fault, place, n) != 0 || fault[n] != ':') return;
  const char *how = fault + n + 1;
  if (strcmp(how, "segv") == 0) raise(SIGSEGV);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "bus") == 0) raise(SIGBUS);
  if (strcmp(how, "exit") == 0) exit(0);
  if (strcmp(how, "quit") == 0) _exit(0);
  if (strcmp(how, "quick") == 0) quick_exit(0);
  if (strcmp(how, "aside") == 0) end_aside();
  if (strcmp(how, "null") == 0) *(volatile int *)nowhere = 1;
  if (strcmp(how, "eat") == 0) eat();
  if (strcmp(how, "forge") == 0) forge();
  if (strcmp(how, "call") == 0) call_back(NULL);
  if (strcmp(how, "spawn") == 0) in_thread();
  if (strcmp(how, "key") == 0) leave_value();
  if (strcmp(how, "child") == 0 || strcmp(how, "leave") == 0) make_child();
  while (strcmp(how, "hang") == 0 || strcmp(how, "child") == 0) sleep(1);
  for (volatile int i = 0; strcmp(how, "spin") == 0; i++) {}
  if (strcmp(how, "open") == 0 && descriptors() > 0) *refusal = "a descriptor is open that should not be";
  if (strcmp(how, "later") == 0) *refusal = "no such device here";
}

__attribute__((constructor)) static void opened(void)
{
  const char *refusal = NULL;
  harm("ctor", &refusal);
}

static struct tn_runtime_session {
  char unused;
} session;

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  const char *refusal = NULL;
  (void)self, (void)options;
  show_host();
  harm("session", &refusal);
  *out = &session;
  return refusal != NULL ? tn_error_set(err, TN_UNAVAILABLE, "%s", refusal) : TN_OK;
}

/* The setting "call=yes" makes this function call back. */
static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  const char *refusal = NULL;
  (void)self;
  harm("accept", &refusal);
  if (tn_session_options_setting(options, "call") != NULL) call_back(NULL);
  return 1;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *unused)
{
  const char *refusal = NULL;
  (void)self, (void)unused;
  harm("destroy", &refusal);
}

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *unused, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  const char *refusal = NULL;
  (void)self, (void)unused;
  harm("prepare", &refusal);
  return refusal != NULL ? tn_error_set(err, TN_UNAVAILABLE, "%s", refusal)
                         : tn_kit_prepare(plan, TN_KIT_INLINE, out, err);
}

static void release(const tn_session_factory *self, tn_runtime_session *unused, tn_executable *executable)
{
  const char *refusal = NULL;
  (void)self, (void)unused;
  harm("release", &refusal);
  tn_kit_release(executable);
}

static tn_status step(const tn_session_factory *self, tn_runtime_session *unused, tn_executable *executable,
                      tn_step *step, tn_error *err)
{
  const char *refusal = NULL;
  (void)self, (void)unused;
  harm("step", &refusal);
  return refusal != NULL ? tn_error_set(err, TN_UNAVAILABLE, "%s", refusal) : tn_kit_step(executable, step, err);
}

static tn_session_factory factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .new_session = new_session,
  .accepts_options = accepts_options,
  .destroy_session = destroy_session,
  .prepare = prepare,
  .release = release,
  .step = step,
};
static const tn_session_factory *const factories[] = { &factory };

static tn_status init(tn_error *err)
{
  const char *refusal = NULL;
  harm("init", &refusal);
  return refusal != NULL ? tn_error_set(err, TN_UNAVAILABLE, "%s", refusal) : TN_OK;
}

static tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_RUNTIME,
  .version = "1.0.0",
  .types = "CPU",
  .factories = factories,
  .n_factories = 1,
  .init = init,
};

/* Defined by hand, as the name comes from the manifest. */
__attribute__((visibility("hidden"))) const tn_host *TN_HOST_TABLE = NULL;
TN_EXPORT const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err);
const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err)
{
  const char *refusal = NULL;
  (void)err;
  TN_HOST_TABLE = host;
  harm("entry", &refusal);
  plugin.name = factory.name = value_of("name");
  return &plugin;
}
