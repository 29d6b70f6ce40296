/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime with a heap of its own that tracks each block: memory that is freed by the wrong
 * side or twice ends the process, and memory that is never freed is reported by shutdown. It
 * keeps the setting "note" of each session, and reports it as the memory of its device. */
#include <stdlib.h>
#include <string.h>

#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST("runtime", "test.own_heap", "CPU", "0", "1.0.0", "Tests", "")

#define BLOCKS 4096
#define MAGIC 0x746e6f68656170u

/* Blocks of one size; a freed block is filled and not reused. */
static struct block {
  unsigned long long magic;
  char bytes[64];
} heap[BLOCKS];
static int used, live;

static void *own_alloc(void)
{
  int i = __atomic_fetch_add(&used, 1, __ATOMIC_SEQ_CST);
  if (i >= BLOCKS) return NULL;
  __atomic_fetch_add(&live, 1, __ATOMIC_SEQ_CST);
  heap[i].magic = MAGIC;
  return heap[i].bytes;
}

static void own_free(void *memory)
{
  struct block *b = (struct block *)(void *)((char *)memory - offsetof(struct block, bytes));
  if (b < heap || b >= heap + BLOCKS || b->magic != MAGIC) abort();
  memset(b, 0xdd, sizeof(*b));
  __atomic_fetch_sub(&live, 1, __ATOMIC_SEQ_CST);
}

struct tn_runtime_session {
  char *note;
  void *of_host; /* allocated by tn_alloc */
};

static const char *const settings[] = { "note" };

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  const char *note = tn_session_options_setting(options, "note");
  tn_runtime_session *s = own_alloc();
  char *copy = own_alloc();
  void *of_host = tn_alloc(100);
  if (s == NULL || copy == NULL || of_host == NULL) {
    if (s != NULL) own_free(s);
    if (copy != NULL) own_free(copy);
    tn_free(of_host);
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
  }
  strncpy(copy, note != NULL ? note : "0", 63);
  memset(of_host, 1, 100);
  *s = (tn_runtime_session){ copy, of_host };
  *out = s;
  return TN_OK;
}

static void explain_options(const tn_session_factory *self, const tn_session_options *options, tn_error *err)
{
  (void)self;
  tn_session_options_check_settings(options, settings, 1, err);
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return tn_session_options_check_settings(options, settings, 1, NULL) == TN_OK;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *s)
{
  (void)self;
  tn_free(s->of_host);
  own_free(s->note);
  own_free(s);
}

static char *device_name; /* allocated in the heap, until shutdown */

static tn_status list_devices(const tn_session_factory *self, tn_runtime_session *s, size_t i, tn_device_info *out,
                              tn_error *err)
{
  (void)self;
  if (i > 0) return tn_error_set(err, TN_OUT_OF_RANGE, "one device");
  out->name = device_name;
  out->type = "CPU";
  out->memory_bytes = atoi(s->note);
  return TN_OK;
}

static const tn_session_factory factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "test.own_heap",
  .new_session = new_session,
  .accepts_options = accepts_options,
  .destroy_session = destroy_session,
  .list_devices = list_devices,
  .explain_options = explain_options,
};
static const tn_session_factory *const factories[] = { &factory };

static tn_status init(tn_error *err)
{
  device_name = own_alloc();
  strcpy(device_name, "/job:localhost/replica:0/task:0/device:CPU:0");
  return TN_OK;
}

static tn_status shutdown(tn_error *err)
{
  own_free(device_name);
  return live == 0 ? TN_OK : tn_error_set(err, TN_INTERNAL, "%d blocks of its own heap were not given back", live);
}

static const tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_RUNTIME,
  .name = "test.own_heap",
  .version = "1.0.0",
  .types = "CPU",
  .factories = factories,
  .n_factories = 1,
  .init = init,
  .shutdown = shutdown,
};

TN_PLUGIN_DEFINE(plugin)
