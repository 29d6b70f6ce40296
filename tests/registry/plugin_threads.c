/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins as files, with many threads and with other users of libltdl or of the files (P-53,
 * P-67, P-68, P-73, P-80). */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ltdl.h>

#include <core/registry/registry_internal.h>
#include <tenon/tenon.h>

#include "tests/support/loader_kit.h"
#include "conformance/support/oom.h"

/* ---- locks around libltdl: first, since they must be set before the first plugin ---- */

static pthread_mutex_t ltdl_mu = PTHREAD_MUTEX_INITIALIZER;
static atomic_int lock_depth, locks_taken;

static void take_lock(void *user)
{
  (void)user;
  pthread_mutex_lock(&ltdl_mu);
  atomic_fetch_add(&lock_depth, 1);
  atomic_fetch_add(&locks_taken, 1);
}

static void give_lock(void *user)
{
  (void)user;
  atomic_fetch_sub(&lock_depth, 1);
  pthread_mutex_unlock(&ltdl_mu);
}

/* P-68 */
static void loader__a_program_may_set_its_ltdl_lock(void)
{
  const char *folder = plugin_folder();
  CHECK_STATUS(tn_set_ltdl_lock(take_lock, NULL, NULL, &err), TN_INVALID_ARGUMENT, &err);
  REQUIRE_OK(tn_set_ltdl_lock(take_lock, give_lock, NULL, &err), &err);
  plugin_chameleon(folder, "a.so", "t.locked", 0, "none");
  plugin_search(folder);
  CHECK_INT(atomic_load(&locks_taken), 0);
  CHECK_OK(load("t.locked"), &err);
  CHECK(atomic_load(&locks_taken) > 0);
  CHECK_INT(atomic_load(&lock_depth), 0);
  CHECK_STATUS(tn_set_ltdl_lock(take_lock, give_lock, NULL, &err), TN_FAILED_PRECONDITION, &err);
}

/* ---- threads ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LOADS = 500 }; /* the records kept of each mapped object add up */
#else
enum { LOADS = 5000 };
#endif

typedef struct stress {
  atomic_int errors;
  pthread_barrier_t start;
} stress;

/* P-67: real opens and closes, as a plugin that declines in its entry is closed again; and many
 * threads that want the same plugin at once while others list and rescan. */
static void *hammer(void *arg)
{
  stress *s = arg;
  tn_error own = TN_ERROR_INIT;
  tn_runtime_info one = { .struct_size = sizeof(one) };
  pthread_barrier_wait(&s->start);
  for (int i = 0; i < LOADS; i++) {
    tn_status status = tn_runtime_load("t.p_good", &one, &own);
    if (status != TN_OK) atomic_fetch_add(&s->errors, 1);
    status = tn_runtime_load("t.p_declines", &one, &own);
    if (status != TN_UNIMPLEMENTED || strstr(tn_error_message(&own), "it does not feel like it") == NULL)
      atomic_fetch_add(&s->errors, 1);
    status = tn_runtime_load("test.undefined", &one, &own);
    if (status != TN_INVALID_ARGUMENT || strstr(tn_error_cause(&own, 0), "tenon_test_missing_function") == NULL)
      atomic_fetch_add(&s->errors, 1);
    if (i % 50 == 0 && tn_runtime_rescan(&own) != TN_OK) atomic_fetch_add(&s->errors, 1);
  }
  tn_error_clear(&own);
  return NULL;
}

static void loader__threads_load_concurrently(void)
{
  const char *folder = plugin_folder();
  stress s = { .errors = 0 };
  pthread_t threads[8];
  plugin_chameleon(folder, "a.so", "t.p_good", 0, "init_slow");
  plugin_chameleon(folder, "b.so", "t.p_declines", 0, "query_null");
  plugin_copy("undefined", folder, "undefined.so");
  plugin_search(folder);
  forget_log();
  pthread_barrier_init(&s.start, NULL, 8);
  for (int i = 0; i < 8; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, hammer, &s), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&s.start);
  CHECK_INT(atomic_load(&s.errors), 0);
  CHECK_INT(count_logged("chameleon t.p_good: init"), 1);
  CHECK_INT(atomic_load(&lock_depth), 0);
}

/* ---- the program's own use of libltdl ---- */

static atomic_int go_on;

typedef struct other_user {
  const char *good, *bad;
  int opened, wrong;
} other_user;

/* Opens and closes modules as a program does, and checks the error texts. */
static void *use_ltdl(void *arg)
{
  other_user *u = arg;
  while (atomic_load(&go_on)) {
    take_lock(NULL);
    lt_dlhandle good = lt_dlopen(u->good);
    u->wrong += good == NULL || lt_dlsym(good, "a_name_that_is_not_there") != NULL || lt_dlerror() == NULL;
    u->wrong += good == NULL || lt_dlclose(good) != 0;
    u->wrong += lt_dlopen(u->bad) != NULL || lt_dlerror() == NULL;
    give_lock(NULL);
    u->opened++;
  }
  return NULL;
}

/* P-68: both use one lock. */
static void loader__shares_its_lock_with_the_program(void)
{
  const char *folder = plugin_folder(), *other = plugin_folder();
  char good[700], bad[700];
  pthread_t threads[2], loaders[2];
  stress s = { .errors = 0 };
  plugin_copy("minimal", other, "own.so");
  snprintf(good, sizeof(good), "%s", plugin_path(other, "own.so"));
  snprintf(bad, sizeof(bad), "%s", plugin_path(other, "nothing.so"));
  plugin_chameleon(folder, "a.so", "t.p_good", 0, "none");
  plugin_chameleon(folder, "b.so", "t.p_declines", 0, "query_null");
  plugin_copy("undefined", folder, "undefined.so");
  plugin_search(folder);
  other_user users[2] = { { good, bad, 0, 0 }, { good, bad, 0, 0 } };
  take_lock(NULL);
  REQUIRE_INT(lt_dlinit(), 0);
  give_lock(NULL);
  atomic_store(&go_on, 1);
  pthread_barrier_init(&s.start, NULL, 2);
  for (int i = 0; i < 2; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, use_ltdl, &users[i]), 0);
  for (int i = 0; i < 2; i++) REQUIRE_INT(pthread_create(&loaders[i], NULL, hammer, &s), 0);
  for (int i = 0; i < 2; i++) pthread_join(loaders[i], NULL);
  atomic_store(&go_on, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&s.start);
  CHECK_INT(atomic_load(&s.errors), 0);
  for (int i = 0; i < 2; i++)
    CHECK_MSG(users[i].opened > 0 && users[i].wrong == 0, "%d of %d", users[i].wrong, users[i].opened);
  CHECK_INT(atomic_load(&lock_depth), 0);
}

/* ---- threads that outlive a plugin's registration ---- */

static atomic_int values_ended;
static pthread_barrier_t step;

static void note_end(void) { atomic_fetch_add(&values_ended, 1); }

static void *load_and_stay(void *name)
{
  tn_runtime_info one = { .struct_size = sizeof(one) };
  tn_status st = tn_runtime_load(name, &one, NULL);
  pthread_barrier_wait(&step); /* it is loaded */
  pthread_barrier_wait(&step); /* it was unregistered */
  return (void *)(intptr_t)st;
}

/* P-73: the plugin's code left a key with a destructor in this thread, which ends after the
 * plugin was unregistered. */
static void unregister__pending_key_destructors_find_their_code(void)
{
  static char name[] = "t.x_key";
  const char *folder = plugin_folder();
  char address[40];
  pthread_t thread;
  void *status;
  plugin_ender(folder, "a.so", name, "init:key");
  plugin_search(folder);
  snprintf(address, sizeof(address), "%p", (void *)(uintptr_t)note_end);
  setenv("TENON_TEST_CALL", address, 1);
  pthread_barrier_init(&step, NULL, 2);
  REQUIRE_INT(pthread_create(&thread, NULL, load_and_stay, name), 0);
  pthread_barrier_wait(&step);
  CHECK_OK(tn_runtime_unregister(name, &err), &err);
  REQUIRE_INT(unlink(plugin_path(folder, "a.so")), 0);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_INT(atomic_load(&values_ended), 0);
  pthread_barrier_wait(&step);
  pthread_join(thread, &status);
  unsetenv("TENON_TEST_CALL");
  CHECK_INT((int)(intptr_t)status, TN_OK);
  CHECK_INT(atomic_load(&values_ended), 1);
  CHECK_INT(plugin_count_mapped(folder), 1);
}

/* ---- another process that changes files ---- */

/* Replaces a.so by one file and the other in turns, until it is killed. */
static int swap_for_ever(void *arg)
{
  char copies[2][700], place[700], fresh[700];
  snprintf(place, sizeof(place), "%s/a.so", (const char *)arg);
  snprintf(fresh, sizeof(fresh), "%s/fresh", (const char *)arg);
  for (int i = 0; i < 2; i++) snprintf(copies[i], sizeof(copies[i]), "%s/copy_%d", (const char *)arg, i);
  alarm(60);
  for (unsigned i = 0;; i++)
    if (link(copies[i % 2], fresh) != 0 || rename(fresh, place) != 0) return 1;
}

/* P-80: whichever file exists at a moment, it is used completely or rejected with an error. */
static void loader__files_swapped_by_a_process_are_complete_or_rejected(void)
{
  const char *folder = plugin_folder();
  int declined = 0, replaced = 0, other = 0;
  plugin_chameleon(folder, "copy_0", "t.w_race", 0, "query_null");
  plugin_chameleon(folder, "copy_1", "t.w_race", 0, "query_null");
  plugin_chameleon(folder, "a.so", "t.w_race", 0, "query_null");
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(swap_for_ever((void *)folder));
  REQUIRE_MSG(child > 0, "no child: %s", strerror(errno));
  for (int i = 0; i < 300; i++) {
    plugin_search(folder);
    tn_status st = load("t.w_race");
    const char *text = tn_error_message(&err);
    bool is_declined = st == TN_UNIMPLEMENTED && strstr(text, "it does not feel like it") != NULL;
    bool is_replaced =
        st == TN_FAILED_PRECONDITION && (strstr(text, "replaced") != NULL || strstr(text, "changed") != NULL);
    declined += is_declined;
    replaced += is_replaced;
    /* If it happens during the scan, the listing has the reason. */
    other += !is_declined && !is_replaced && !(st == TN_NOT_FOUND && strstr(text, "replaced") != NULL);
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  tap_note("%d loads declined, %d found another file", declined, replaced);
  CHECK_INT(other, 0);
  CHECK_INT(plugin_count_mapped(folder), 0);
}

/* ---- registering while folders are read ---- */

static tn_status no_session(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                            tn_error *e)
{
  (void)self, (void)options;
  *out = NULL;
  return tn_error_set(e, TN_UNAVAILABLE, "none here");
}
static tn_bool accept_all(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}
static void end_session(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }

static void *scan_again(void *arg)
{
  int *wrong = arg;
  while (atomic_load(&go_on)) *wrong += tn_runtime_rescan(NULL) != TN_OK;
  return NULL;
}

/* P-53, P-67: runtimes that are added and removed meanwhile are found while they exist. */
static void registry__changes_while_folders_are_read(void)
{
  static const tn_session_factory factory = { .struct_size = TN_SESSION_FACTORY_SIZE, .name = "t.y_comes",
                                              .new_session = no_session, .accepts_options = accept_all,
                                              .destroy_session = end_session };
  const char *folder = plugin_folder();
  char file[20], name[20];
  int scans_wrong = 0;
  pthread_t thread;
  for (int i = 0; i < 40; i++) {
    snprintf(file, sizeof(file), "p%02d.so", i);
    snprintf(name, sizeof(name), "t.y_%02d", i);
    plugin_chameleon(folder, file, name, 0, "none");
  }
  plugin_search(folder);
  atomic_store(&go_on, 1);
  REQUIRE_INT(pthread_create(&thread, NULL, scan_again, &scans_wrong), 0);
  for (int i = 0; i < 400; i++) {
    CHECK_OK(tn_runtime_register("t.y_comes", &factory, &err), &err);
    CHECK_STATUS(tn_runtime_register("t.y_comes", &factory, &err), TN_ALREADY_EXISTS, &err);
    CHECK_STR(chosen("t.y_comes"), "t.y_comes");
    if (i % 10 == 0) {
      snprintf(name, sizeof(name), "t.y_%02d", i / 10);
      CHECK_OK(load(name), &err);
    }
    CHECK_OK(tn_runtime_unregister("t.y_comes", &err), &err);
    CHECK_STATUS(load("t.y_comes"), TN_NOT_FOUND, &err);
  }
  atomic_store(&go_on, 0);
  pthread_join(thread, NULL);
  CHECK_INT(scans_wrong, 0);
  CHECK_INT(plugin_count_mapped(folder), 40);
}

/* The lock must be set before the first plugin is loaded. */
TAP_MAIN_WITH(loader_setup, loader_teardown,
  TAP_TEST(loader__a_program_may_set_its_ltdl_lock),
  TAP_TEST(loader__files_swapped_by_a_process_are_complete_or_rejected),
  TAP_TEST(unregister__pending_key_destructors_find_their_code),
  TAP_TEST(registry__changes_while_folders_are_read),
  TAP_TEST(loader__threads_load_concurrently),
  TAP_TEST(loader__shares_its_lock_with_the_program))
