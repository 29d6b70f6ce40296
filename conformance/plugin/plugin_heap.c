/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: an allocator that counts and guards blocks, and the resources held by the process. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <conformance/plugin/plugin.h>
#include <conformance/support/threads.h>

#define MAGIC UINT64_C(0x6b69746865617021)
#define FREED UINT64_C(0x6672656564667265)
#define GUARDED ((size_t)256 << 20) /* address space, not memory */

typedef struct head { /* stored directly before the bytes */
  uint64_t magic;
  size_t size;
  void *block;
  void *unused;
} head;

static atomic_int_fast64_t live;
static char *guarded; /* pages, each used only once */
static atomic_size_t guarded_used;
static size_t page_bytes;
static _Thread_local int guarding;
static _Thread_local long countdown;
static _Thread_local bool failed;

static void *guarded_alloc(size_t size)
{
  size_t room = (size + page_bytes - 1) / page_bytes * page_bytes;
  if (guarded == NULL || room > GUARDED / 16) return NULL;
  size_t at = atomic_fetch_add(&guarded_used, room);
  if (at + room > GUARDED || mprotect(guarded + at, room, PROT_READ | PROT_WRITE) != 0) return NULL;
  return guarded + at;
}

static bool is_guarded(const void *p) { return (const char *)p >= guarded && (const char *)p < guarded + GUARDED; }

static void *counted_alloc(void *user, size_t size, size_t align)
{
  (void)user;
  if (countdown > 0 && --countdown == 0) {
    failed = true;
    return NULL;
  }
  void *bytes = guarding > 0 && align <= page_bytes ? guarded_alloc(size) : NULL;
  if (bytes == NULL) {
    if (size > SIZE_MAX / 2) return NULL;
    char *block = malloc(size + align + sizeof(head));
    if (block == NULL) return NULL;
    uintptr_t place = ((uintptr_t)block + sizeof(head) + align - 1) & ~(uintptr_t)(align - 1);
    bytes = block + (place - (uintptr_t)block);
    const head h = { MAGIC, size, block, NULL };
    memcpy((char *)bytes - sizeof(h), &h, sizeof(h));
    memset(bytes, 0xa5, size);
  }
  atomic_fetch_add(&live, 1);
  return bytes;
}

static void counted_free(void *user, void *ptr, size_t size, size_t align)
{
  (void)user, (void)align;
  head h;
  atomic_fetch_sub(&live, 1);
  if (is_guarded(ptr)) {
    mprotect(ptr, (size + page_bytes - 1) / page_bytes * page_bytes, PROT_NONE);
    return;
  }
  memcpy(&h, (char *)ptr - sizeof(h), sizeof(h));
  if (h.magic != MAGIC || h.size != size) {
    printf("# memory was freed %s\n", h.magic == FREED ? "twice" : "that was not allocated with this size");
    fflush(stdout);
    abort();
  }
  h.magic = FREED;
  memcpy((char *)ptr - sizeof(h), &h, sizeof(h));
  memset(ptr, 0xdd, size);
  free(h.block);
}

void pg_heap_install(void)
{
  const tn_allocator allocator = { sizeof(allocator), NULL, counted_alloc, counted_free, NULL };
  page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  void *pages = mmap(NULL, GUARDED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  guarded = pages == MAP_FAILED ? NULL : pages;
  tn_set_allocator(&allocator, NULL);
}

void pg_guard_begin(void) { guarding++; }
void pg_guard_end(void) { guarding--; }

void pg_fail_allocation(long n)
{
  countdown = n;
  failed = false;
}

bool pg_failed(void) { return failed; }

/* ---- held resources ---- */

/* From the sanitizer, if there is one. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static bool is_sanitized(void) { return __sanitizer_get_current_allocated_bytes != NULL; }

static int64_t heap_bytes(void)
{
  if (is_sanitized()) return (int64_t)__sanitizer_get_current_allocated_bytes();
#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 33))
  struct mallinfo2 info = mallinfo2();
  return (int64_t)(info.uordblks + info.hblkhd);
#else
  return -1;
#endif
}

static int64_t resident_pages(void)
{
  char line[200];
  FILE *file = fopen("/proc/self/statm", "r");
  const char *second = file != NULL && fgets(line, sizeof(line), file) != NULL ? strchr(line, ' ') : NULL;
  if (file != NULL) fclose(file);
  return second != NULL ? strtol(second, NULL, 10) : -1;
}

static int open_files(void)
{
  int n = 0;
  DIR *folder = opendir("/proc/self/fd");
  if (folder == NULL) return errno == EMFILE ? INT_MAX : -1; /* the limit is reached */
  while (readdir(folder) != NULL) n++;
  closedir(folder);
  return n;
}

pg_held pg_measure(void)
{
  pg_held held = { .fds = open_files(), .threads = threads_of_process(), .pages = resident_pages() };
  held.blocks = atomic_load(&live);
  held.heap = heap_bytes();
  return held;
}

void pg_check_held(const pg_held *before, const char *what, int64_t slack)
{
  pg_held now = pg_measure();
  int64_t page = (int64_t)page_bytes, more = (now.pages - before->pages) * page;
  CHECK_MSG(now.blocks <= before->blocks, "%s: %lld blocks from tn_alloc were not freed", what,
            (long long)(now.blocks - before->blocks));
  CHECK_MSG(now.heap <= before->heap + slack, "%s: %lld bytes of its own memory were not freed", what,
            (long long)(now.heap - before->heap));
  CHECK_MSG(before->pages < 0 || is_sanitized() || more <= slack + ((int64_t)16 << 20),
            "%s: the process has grown by %lld kB", what, (long long)(more >> 10));
  CHECK_MSG(now.fds <= before->fds, "%s: files were not closed: %d are open, %d were before", what, now.fds,
            before->fds);
}
