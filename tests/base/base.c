/* SPDX-License-Identifier: Apache-2.0 */
/* The process's allocator, arenas, locks, libltdl's lock, files. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/base/arena.h>
#include <core/base/file.h>
#include <core/base/text.h>
#include <core/base/threads/lock.h>
#include <tenon/process.h>

#include "conformance/support/oom.h"

static tn_error err;

/* ---- allocator ---- */

static void allocator__can_be_set_only_while_nothing_is_alive(void)
{
  tn_allocator half = { sizeof(half), NULL, NULL, NULL };
  void *memory = tn_alloc(10);
  REQUIRE_PTR(memory);
  CHECK_STATUS(tn_set_allocator(NULL, &err), TN_FAILED_PRECONDITION, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "1 allocations are alive");
  tn_free(memory);
  CHECK_STATUS(tn_set_allocator(&half, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "alloc is missing");
  half.struct_size = 8;
  CHECK_STATUS(tn_set_allocator(&half, &err), TN_INVALID_ARGUMENT, NULL);

  /* The C library's allocator; the test's allocator counts none of these. */
  CHECK_OK(tn_set_allocator(NULL, &err), &err);
  uint64_t before = tn_test_allocations();
  for (size_t bytes = 1; bytes < 100000; bytes = bytes * 3 + 1) {
    unsigned char *p = tn_alloc(bytes);
    REQUIRE_PTR(p);
    CHECK_INT((uintptr_t)p % 64, 0);
    memset(p, 0xff, bytes);
    tn_free(p);
    for (size_t align = 16; align <= 4096; align *= 2) {
      p = tn__alloc_aligned(bytes, align);
      REQUIRE_PTR(p);
      CHECK_INT((uintptr_t)p % align, 0);
      memset(p, 0xff, bytes);
      tn__free_aligned(p, bytes, align);
    }
    p = tn__zalloc(bytes);
    REQUIRE_PTR(p);
    for (size_t i = 0; i < bytes; i++) REQUIRE(p[i] == 0);
    tn__free(p, bytes);
  }
  CHECK_INT(tn_test_allocations() - before, 0);
  tn_test_alloc_install();
}

static void allocator__rejects_impossible_sizes(void)
{
  CHECK_NULL(tn_alloc(0));
  CHECK_NULL(tn_alloc(SIZE_MAX));
  CHECK_NULL(tn_alloc(SIZE_MAX - 64));
  CHECK_NULL(tn__alloc((size_t)PTRDIFF_MAX + 1));
  CHECK_NULL(tn__alloc_array(SIZE_MAX / 2, 3));
  CHECK_NULL(tn__zalloc(0));
  tn_free(NULL);
  tn__free(NULL, 5);
}

static void allocator__grown_arrays_keep_their_content(void)
{
  int *array = NULL;
  size_t capacity = 0;
  for (int i = 0; i < 1000; i++) {
    REQUIRE(tn__grow((void **)&array, &capacity, (size_t)i + 1, sizeof(*array)));
    array[i] = i;
  }
  for (int i = 0; i < 1000; i++) REQUIRE(array[i] == i);
  CHECK(capacity < 3000);
  int *before = array;
  size_t capacity_before = capacity;
  CHECK(!tn__grow((void **)&array, &capacity, SIZE_MAX / 2, sizeof(*array)));
  tn_test_fail_allocation(1, 1);
  CHECK(!tn__grow((void **)&array, &capacity, capacity + 1, sizeof(*array)));
  tn_test_fail_allocation(0, 0);
  CHECK(array == before);
  CHECK_INT(capacity, capacity_before);
  tn__free(array, capacity * sizeof(*array));
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void *allocate_a_lot(void *arg)
{
  (void)arg;
  for (int i = 0; i < 2000; i++) tn_free(tn_alloc(100));
  return NULL;
}

/* A block that is allocated by one thread and freed by another is counted correctly. */
static void allocator__counts_across_threads(void)
{
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, allocate_a_lot, NULL), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  CHECK_OK(tn_set_allocator(NULL, &err), &err);
  tn_test_alloc_install();
}

/* ---- arena ---- */

static void arena__returns_aligned_memory_of_any_size(void)
{
  tn__arena arena;
  char *pieces[400];
  tn__arena_init(&arena, 100);
  REQUIRE_PTR(tn__arena_alloc(&arena, 0));
  for (size_t i = 0; i < 400; i++) {
    size_t size = i * i % 3001, align = (size_t)1 << (i % 8);
    pieces[i] = i % 2 ? tn__arena_aligned(&arena, size, align) : tn__arena_zalloc(&arena, size);
    REQUIRE_PTR(pieces[i]);
    CHECK_INT((uintptr_t)pieces[i] % (i % 2 ? align : 8), 0);
    for (size_t k = 0; i % 2 == 0 && k < size; k++) REQUIRE(pieces[i][k] == 0);
    memset(pieces[i], (int)i, size);
  }
  for (size_t i = 0; i < 400; i++)
    for (size_t k = 0; k < i * i % 3001; k++) REQUIRE(pieces[i][k] == (char)i);
  CHECK_STR(tn__arena_string(&arena, "hello", 4), "hell");
  CHECK_STR(tn__arena_string(&arena, NULL, 0), "");
  CHECK_NULL(tn__arena_array(&arena, SIZE_MAX, 2));
  CHECK_NULL(tn__arena_alloc(&arena, SIZE_MAX));
  CHECK_NULL(tn__arena_string(&arena, "", SIZE_MAX));
  tn__arena_fini(&arena);
  CHECK_INT(arena.bytes, 0);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void arena__rewinds_to_a_mark(void)
{
  tn__arena arena;
  tn__arena_init(&arena, 1000);
  tn__arena_mark empty = tn__arena_get_mark(&arena);
  char *kept = tn__arena_string(&arena, "kept", 4);
  size_t bytes = arena.bytes;
  tn__arena_mark mark = tn__arena_get_mark(&arena);
  for (int i = 0; i < 100; i++) REQUIRE_PTR(tn__arena_alloc(&arena, i % 7 == 0 ? 5000 : 100));
  CHECK(arena.bytes > bytes);
  tn__arena_rewind(&arena, mark);
  CHECK_INT(arena.bytes, bytes);
  CHECK_STR(kept, "kept");
  char *next = tn__arena_string(&arena, "next", 4);
  CHECK(next == kept + 5);
  tn__arena_rewind(&arena, empty);
  CHECK_INT(arena.bytes, 0);
  CHECK_INT(tn_test_live_blocks(), 0);
  REQUIRE_PTR(tn__arena_alloc(&arena, 10));
  tn__arena_fini(&arena);
}

/* Large allocations get blocks of their own; the rest of the current block is not wasted. */
static void arena__large_pieces_waste_nothing(void)
{
  tn__arena arena;
  tn__arena_init(&arena, 4096);
  for (int i = 0; i < 100; i++) {
    REQUIRE_PTR(tn__arena_alloc(&arena, 16));
    REQUIRE_PTR(tn__arena_alloc(&arena, 100000));
  }
  CHECK(arena.bytes < 100 * 100100 + 3 * 4096);
  tn__arena_fini(&arena);
}

static tn_status use_arena(void *arg)
{
  tn__arena arena;
  tn_status s = TN_OK;
  (void)arg;
  tn__arena_init(&arena, 64);
  for (size_t i = 1; i < 40 && s == TN_OK; i++)
    if (tn__arena_array(&arena, i, 40) == NULL) s = TN_RESOURCE_EXHAUSTED;
  tn__arena_fini(&arena);
  return s;
}

static void arena__fails_cleanly_without_memory(void) { tn_test_oom_sweep(use_arena, NULL); }

/* ---- locks ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(TN_DEBUG_LOCKS)
#define LOCKS_ARE_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LOCKS_ARE_CHECKED 1
#endif
#endif

static tn__mutex low = TN__MUTEX_INIT("low", TN_RANK_GRAPH), high = TN__MUTEX_INIT("high", TN_RANK_PLAN);

static void lock__rising_ranks_are_right(void)
{
  tn__rwlock rw;
  tn__rwlock_init(&rw, "rw", TN_RANK_REGISTRY);
  tn__mutex_lock(&low);
  tn__rwlock_read(&rw);
  tn__mutex_lock(&high);
  tn__assert_held(&high);
  tn__mutex_unlock(&low); /* in any order */
  tn__mutex_unlock(&high);
  tn__rwlock_unlock(&rw);
  tn__rwlock_write(&rw);
  tn__rwlock_unlock(&rw);
  tn__mutex_lock(&low);
  tn__mutex_unlock(&low);
  tn__rwlock_fini(&rw);
}

static void take_in_wrong_order(void)
{
  tn__mutex_lock(&high);
  tn__mutex_lock(&low);
}

static void take_twice(void)
{
  tn__mutex_lock(&low);
  tn__mutex_lock(&low);
}

static void assert_what_is_not_held(void) { tn__assert_held(&low); }

/* Whether fn aborts, run in a child process. */
static bool child_aborts(void (*fn)(void))
{
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    struct rlimit none = { 0, 0 };
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    dup2(null, STDOUT_FILENO);
    signal(SIGABRT, SIG_DFL);
    setrlimit(RLIMIT_CORE, &none);
    fn();
    _exit(0);
  }
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void lock__debug_builds_detect_mistakes(void)
{
#ifdef LOCKS_ARE_CHECKED
  CHECK(child_aborts(take_in_wrong_order));
  CHECK(child_aborts(take_twice));
  CHECK(child_aborts(assert_what_is_not_held));
#else
  (void)take_in_wrong_order;
  (void)take_twice;
  (void)assert_what_is_not_held;
  (void)child_aborts;
  TAP_SKIP("locks are checked in builds with sanitizers or -DTN_DEBUG_LOCKS only");
#endif
}

static struct {
  tn__mutex mu;
  tn__cond changed;
  int turn; /* guarded by mu */
} game;

static void *play(void *arg)
{
  int me = *(int *)arg;
  for (int i = 0; i < 500; i++) {
    tn__mutex_lock(&game.mu);
    while (game.turn % 2 != me) tn__cond_wait(&game.changed, &game.mu);
    game.turn++;
    tn__cond_broadcast(&game.changed);
    tn__mutex_unlock(&game.mu);
  }
  return NULL;
}

static void cond__threads_take_turns(void)
{
  pthread_t threads[2];
  int ids[2] = { 0, 1 };
  tn__mutex_init(&game.mu, "game", TN_RANK_STEP);
  tn__cond_init(&game.changed);
  game.turn = 0;
  for (int i = 0; i < 2; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, play, &ids[i]), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  CHECK_INT(game.turn, 1000);
  tn__cond_fini(&game.changed);
  tn__mutex_fini(&game.mu);
}

static void cond__a_wait_ends_at_its_deadline(void)
{
  tn__mutex mu;
  tn__cond never;
  tn__mutex_init(&mu, "mu", TN_RANK_STEP);
  tn__cond_init(&never);
  tn__mutex_lock(&mu);
  int64_t begin = tn__now_ns(), deadline = begin + 20000000;
  while (tn__cond_wait_until(&never, &mu, deadline)) {}
  CHECK(tn__now_ns() >= deadline);
  CHECK(!tn__cond_wait_until(&never, &mu, -5)); /* a deadline in the past */
  tn__assert_held(&mu);
  tn__mutex_unlock(&mu);
  tn__cond_fini(&never);
  tn__mutex_fini(&mu);
}

/* ---- process ---- */

static int depth, deepest;

static void take_ltdl(void *user) { deepest = ++depth > deepest ? depth : deepest, *(int *)user += 1; }
static void give_ltdl(void *user) { (void)user, depth--; }

/* P-68 */
static void ltdl_lock__is_taken_around_calls_and_frozen_by_the_first(void)
{
  int calls = 0;
  CHECK_STATUS(tn_set_ltdl_lock(take_ltdl, NULL, &calls, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_set_ltdl_lock(NULL, give_ltdl, &calls, &err), TN_INVALID_ARGUMENT, NULL);
  REQUIRE_OK(tn_set_ltdl_lock(take_ltdl, give_ltdl, &calls, &err), &err);
  tn__ltdl_enter();
  CHECK_INT(depth, 1);
  tn__ltdl_leave();
  CHECK_INT(depth, 0);
  CHECK_INT(deepest, 1);
  CHECK_INT(calls, 1);
  CHECK_STATUS(tn_set_ltdl_lock(take_ltdl, give_ltdl, &calls, &err), TN_FAILED_PRECONDITION, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "plugins are in use");
}

static void version__is_that_of_the_headers(void) { CHECK_STR(tn_version(), TN_VERSION_STRING); }

/* ---- files ---- */

static const char *scratch(const char *name)
{
  static char paths[4][300];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof(paths[0]), "%s/%s", tap_scratch_dir(), name);
  return path;
}

static tn_status write_file(const char *path, const char *text)
{
  tn__writer w;
  tn_error_clear(&err);
  tn_status s = tn__writer_open(&w, path, &err);
  if (s != TN_OK) return s;
  s = tn__writer_write(&w, text, strlen(text), &err);
  if (s == TN_OK) return tn__writer_commit(&w, &err);
  tn__writer_abandon(&w);
  return s;
}

static bool file_is(const char *path, const char *wanted)
{
  char text[100] = "";
  tn__file f;
  tn_error_clear(&err);
  if (tn__file_open(path, &f, &err) != TN_OK) return false;
  bool ok = f.size == strlen(wanted) && tn__file_read(&f, 0, text, (size_t)f.size, &err) == TN_OK;
  tn__file_close(&f);
  return ok && strcmp(text, wanted) == 0;
}

static void file__is_replaced_as_a_whole(void)
{
  struct stat st;
  const char *path = scratch("whole.txt"), *link = scratch("link.txt");
  REQUIRE_OK(write_file(path, "one"), &err);
  CHECK(file_is(path, "one"));
  chmod(path, 0640);
  REQUIRE_INT(symlink("whole.txt", link), 0);
  REQUIRE_OK(write_file(link, "two, through a link"), &err);
  CHECK(file_is(path, "two, through a link"));
  REQUIRE_INT(lstat(link, &st), 0);
  CHECK(S_ISLNK(st.st_mode));
  REQUIRE_INT(stat(path, &st), 0);
  CHECK_INT(st.st_mode & 0777, 0640);

  tn__writer w;
  tn_error_clear(&err);
  REQUIRE_OK(tn__writer_open(&w, path, &err), &err);
  CHECK_OK(tn__writer_write(&w, "half", 4, &err), &err);
  tn__writer_abandon(&w);
  tn__writer_abandon(&w);
  CHECK(file_is(path, "two, through a link"));
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void file__errors_name_paths_that_are_not_regular_files(void)
{
  tn__file f;
  const char *fifo = scratch("fifo");
  REQUIRE_INT(mkfifo(fifo, 0600), 0);
  tn_error_clear(&err);
  CHECK_STATUS(tn__file_open(fifo, &f, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "is a FIFO, wanted a regular file");
  CHECK_INT(f.fd, -1);
  tn_error_clear(&err);
  CHECK_STATUS(tn__file_open(tap_scratch_dir(), &f, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "is a directory");
  tn_error_clear(&err);
  CHECK_STATUS(tn__file_open("/dev/null", &f, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "is a device");
  tn_error_clear(&err);
  CHECK_STATUS(tn__file_open(scratch("missing"), &f, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "No such file or directory");
  CHECK_STATUS(write_file(tap_scratch_dir(), "x"), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "is a directory");
  CHECK_STATUS(write_file(scratch("no/such/folder"), "x"), TN_NOT_FOUND, NULL);
  CHECK_STATUS(write_file(fifo, "x"), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "without a reader");
  tn_error_clear(&err);
}

static void file__reading_past_the_end_names_the_position(void)
{
  tn__file f;
  char text[10];
  const char *path = scratch("short.txt");
  REQUIRE_OK(write_file(path, "12345"), &err);
  tn_error_clear(&err);
  REQUIRE_OK(tn__file_open(path, &f, &err), &err);
  CHECK_OK(tn__file_read(&f, 2, text, 3, &err), &err);
  CHECK_BYTES(text, "345", 3);
  CHECK_STATUS(tn__file_read(&f, 2, text, 4, &err), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "ends at byte 5, wanted 4 bytes from byte 2");
  tn__file_close(&f);
  tn_error_clear(&err);
}

/* The number of names in the scratch folder that begin with `start`. */
static int count_names(const char *start)
{
  int n = 0;
  DIR *dir = opendir(tap_scratch_dir());
  for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
    n += strncmp(entry->d_name, start, strlen(start)) == 0;
  if (dir != NULL) closedir(dir);
  return n;
}

static void file__is_complete_or_absent_with_and_without_a_name(void)
{
  for (int named = 0; named < 2; named++) {
    tn__writer w;
    struct stat st;
    const char *path = scratch(named ? "named.txt" : "unnamed.txt");
    tn__writer_always_names = named;
    mode_t mask = umask(027);
    REQUIRE_OK(tn__writer_open(&w, path, &err), &err);
    umask(mask);
    CHECK_OK(tn__writer_write(&w, "first", 5, &err), &err);
    CHECK_INT(access(path, F_OK), -1);
    CHECK_OK(tn__writer_commit(&w, &err), &err);
    REQUIRE_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0640);
    REQUIRE_OK(tn__writer_open(&w, path, &err), &err);
    CHECK_OK(tn__writer_write(&w, "second", 6, &err), &err);
    CHECK(file_is(path, "first"));
    CHECK_OK(tn__writer_commit(&w, &err), &err);
    CHECK(file_is(path, "second"));
    CHECK_OK(tn_file_save(path, NULL, 0, &err), &err);
    CHECK(file_is(path, ""));
    CHECK_INT(count_names(".tenon-"), 0);
    CHECK_INT(tn_test_live_blocks(), 0);
  }
  tn__writer_always_names = false;
  CHECK_STATUS(tn_file_save(NULL, "x", 1, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_file_save("", "x", 1, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_file_save(scratch("none.txt"), NULL, 1, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_INT(access(scratch("none.txt"), F_OK), -1);
}

static void end_process(int number)
{
  tn_files_abandon();
  signal(number, SIG_DFL);
  raise(number);
}

/* Runs in a child: the signal arrives in the middle of a save. */
static void write_and_end(const char *path, int number)
{
  tn__writer w;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = end_process;
  if (tn__writer_open(&w, path, NULL) != TN_OK || tn__writer_write(&w, "half", 4, NULL) != TN_OK) _exit(90);
  if (sigaction(number, &action, NULL) != 0) _exit(91);
  raise(number);
  _exit(92);
}

static void file__nothing_is_left_after_a_handler_abandons_it(void)
{
  static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGALRM, SIGXCPU, SIGSEGV, SIGABRT };
  for (int named = 0; named < 2; named++)
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
      const char *path = scratch("abandoned.txt");
      int status = 0;
      tn__writer_always_names = false;
      REQUIRE_OK(write_file(path, "old"), &err);
      tn__writer_always_names = named;
      fflush(stdout);
      pid_t child = fork();
      if (child == 0) {
        alarm(60);
        write_and_end(path, signals[i]);
      }
      REQUIRE(child > 0);
      REQUIRE_INT(waitpid(child, &status, 0), child);
      CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signals[i]);
      CHECK(file_is(path, "old"));
      CHECK_INT(count_names(".tenon-"), 0);
    }
  tn__writer_always_names = false;
}

/* Runs in a child. */
static int save_after_abandoning(const char *path)
{
  tn__writer w;
  tn__writer_always_names = true;
  if (tn__writer_open(&w, path, NULL) != TN_OK) return 1;
  tn_files_abandon();
  if (count_names(".tenon-") != 0) return 2;
  if (tn__writer_commit(&w, NULL) != TN_CANCELLED) return 3;
  if (tn_file_save(path, "x", 1, NULL) != TN_CANCELLED) return 4;
  tn__writer_always_names = false;
  return tn_file_save(path, "x", 1, NULL) == TN_CANCELLED ? 0 : 5;
}

static void file__saves_fail_after_files_were_abandoned(void)
{
  const char *path = scratch("late.txt");
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(save_after_abandoning(path));
  REQUIRE(child > 0);
  REQUIRE_INT(waitpid(child, &status, 0), child);
  CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  CHECK_INT(access(path, F_OK), -1);
  CHECK_INT(count_names(".tenon-"), 0);
}

static void file__a_forked_child_abandons_only_its_own(void)
{
  tn__writer w;
  const char *path = scratch("parent.txt");
  int status = 0;
  tn__writer_always_names = true;
  REQUIRE_OK(tn__writer_open(&w, path, &err), &err);
  tn__writer_always_names = false;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    tn_files_abandon();
    _exit(0);
  }
  REQUIRE(child > 0);
  REQUIRE_INT(waitpid(child, &status, 0), child);
  CHECK_INT(count_names(".tenon-"), 1);
  CHECK_OK(tn__writer_write(&w, "mine", 4, &err), &err);
  CHECK_OK(tn__writer_commit(&w, &err), &err);
  CHECK(file_is(path, "mine"));
}

static tn_status save_something(void *arg) { return write_file(arg, "text"); }

static void file__nothing_leaks_without_memory(void)
{
  static char path[300];
  snprintf(path, sizeof(path), "%s", scratch("sweep.txt"));
  tn_test_oom_sweep(save_something, path);
  tn__writer_always_names = true;
  tn_test_oom_sweep(save_something, path);
  tn__writer_always_names = false;
  CHECK_INT(count_names(".tenon-"), 0);
  tn_error_clear(&err);
}

TAP_MAIN(
  TAP_TEST(allocator__can_be_set_only_while_nothing_is_alive),
  TAP_TEST(allocator__rejects_impossible_sizes),
  TAP_TEST(allocator__grown_arrays_keep_their_content),
  TAP_TEST(allocator__counts_across_threads),
  TAP_TEST(arena__returns_aligned_memory_of_any_size),
  TAP_TEST(arena__rewinds_to_a_mark),
  TAP_TEST(arena__large_pieces_waste_nothing),
  TAP_TEST(arena__fails_cleanly_without_memory),
  TAP_TEST(lock__rising_ranks_are_right),
  TAP_TEST(lock__debug_builds_detect_mistakes),
  TAP_TEST(cond__threads_take_turns),
  TAP_TEST(cond__a_wait_ends_at_its_deadline),
  TAP_TEST(ltdl_lock__is_taken_around_calls_and_frozen_by_the_first),
  TAP_TEST(version__is_that_of_the_headers),
  TAP_TEST(file__is_replaced_as_a_whole),
  TAP_TEST(file__errors_name_paths_that_are_not_regular_files),
  TAP_TEST(file__reading_past_the_end_names_the_position),
  TAP_TEST(file__is_complete_or_absent_with_and_without_a_name),
  TAP_TEST(file__nothing_is_left_after_a_handler_abandons_it),
  TAP_TEST(file__saves_fail_after_files_were_abandoned),
  TAP_TEST(file__a_forked_child_abandons_only_its_own),
  TAP_TEST(file__nothing_leaks_without_memory))
