/* SPDX-License-Identifier: Apache-2.0 */
/* The functions with which an op's plan function builds a node's launches. */
#include "node/node.h"

#include "node/built.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SCRATCH_ALIGN 256

/* ---- errors: the first one stays ---- */

static bool going(const gpu_node *n) { return n->built->status == TN_OK; }

static void fail(gpu_node *n, tn_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void fail(gpu_node *n, tn_status code, const char *format, ...)
{
  if (!going(n)) return;
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  n->built->status = tn_error_set(&n->built->error, code, "%s", text);
}

static void *need(gpu_node *n, size_t bytes)
{
  void *p = tn_alloc(bytes == 0 ? 1 : bytes);
  if (p == NULL) fail(n, TN_RESOURCE_EXHAUSTED, "no memory for a launch: %zu bytes", bytes);
  return p;
}

/* Makes room for `more` elements after the `used` ones; false, with the error stored. */
static bool grow(gpu_node *n, void **items, size_t *room, size_t used, size_t more, size_t item)
{
  if (used + more <= *room) return true;
  size_t wanted = *room * 2 > used + more ? *room * 2 : used + more;
  if (wanted < 8) wanted = 8;
  void *p = need(n, wanted * item);
  if (p == NULL) return false;
  if (used > 0) memcpy(p, *items, used * item);
  tn_free(*items);
  *items = p;
  *room = wanted;
  return true;
}

static char *copy_text(gpu_node *n, const char *text)
{
  size_t size = strlen(text) + 1;
  char *copy = need(n, size);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

/* ---- launches ---- */

static gpu_launch *add_launch(gpu_node *n)
{
  gpu_built *b = n->built;
  gpu_launch *l = going(n) ? need(n, sizeof *l) : NULL;
  if (l == NULL) return NULL;
  *l = (gpu_launch){ .node = n };
  if (b->last_launch != NULL) b->last_launch->next = l;
  else b->launches = l;
  b->last_launch = l;
  return l;
}

gpu_launch *gpu_launch_file(gpu_node *n, const char *file, const char *kernel)
{
  gpu_launch *l = add_launch(n);
  if (l == NULL) return NULL;
  l->file = file;
  l->kernel = copy_text(n, kernel);
  return l->kernel == NULL ? NULL : l;
}

gpu_launch *gpu_launch_text(gpu_node *n, const char *text, const char *kernel)
{
  gpu_launch *l = add_launch(n);
  if (l == NULL) return NULL;
  l->text = copy_text(n, text);
  l->kernel = copy_text(n, kernel);
  return l->text == NULL || l->kernel == NULL ? NULL : l;
}

gpu_launch *gpu_launch_library(gpu_node *n, const char *name, gpu_library enqueue, const void *user, size_t size)
{
  gpu_launch *l = add_launch(n);
  if (l == NULL) return NULL;
  l->library = enqueue;
  l->kernel = copy_text(n, name);
  l->values = need(n, size);
  if (l->kernel == NULL || l->values == NULL) return NULL;
  memcpy(l->values, user, size);
  l->n_values = size;
  return l;
}

/* Whether the builders are to do what they are called for. */
static bool on(const gpu_launch *l) { return l != NULL && going(l->node); }

/* A value that the compiler would not read as one word. */
static bool is_plain(const char *value)
{
  for (; *value != 0; value++)
    if (*value <= ' ' || *value == '"' || *value == '\'' || *value == '\\' || *value > '~') return false;
  return true;
}

void gpu_define(gpu_launch *l, const char *name, const char *format, ...)
{
  if (!on(l)) return;
  char value[256];
  va_list list;
  va_start(list, format);
  int size = vsnprintf(value, sizeof value, format, list);
  va_end(list);
  gpu_node *n = l->node;
  if (size < 0 || (size_t)size >= sizeof value || !is_plain(value))
    fail(n, TN_INTERNAL, "gpu: -D%s of kernel '%s' has a value that is too long or no word", name, l->kernel);
  else if (strcmp(value, "(null)") == 0) /* of gpu_type */
    fail(n, TN_UNIMPLEMENTED, "a type that OpenCL C has not");
  else if (strcmp(value, "half") == 0 && !n->device->has_half)
    fail(n, TN_UNIMPLEMENTED, "the device has no half precision");
  else if (strcmp(value, "double") == 0 && !n->device->has_double)
    fail(n, TN_UNIMPLEMENTED, "the device has no double precision");
  if (!on(l)) return;
  size_t before = l->options == NULL ? 0 : strlen(l->options) + 1, more = strlen(name) + (size_t)size + sizeof "-D=";
  char *options = need(n, before + more);
  if (options == NULL) return;
  snprintf(options, before + more, "%s%s-D%s=%s", before == 0 ? "" : l->options, before == 0 ? "" : " ", name, value);
  tn_free(l->options);
  l->options = options;
}

/* ---- arguments ---- */

static void add_arg(gpu_launch *l, gpu_arg arg)
{
  if (!grow(l->node, (void **)&l->args, &l->args_room, l->n_args, 1, sizeof *l->args)) return;
  l->args[l->n_args++] = arg;
}

void gpu_arg_input(gpu_launch *l, uint32_t i)
{
  if (!on(l)) return;
  if (i >= l->node->n_inputs)
    fail(l->node, TN_INTERNAL, "gpu: kernel '%s' wants input %u of %u", l->kernel, i, l->node->n_inputs);
  else add_arg(l, (gpu_arg){ .kind = GPU_ARG_INPUT, .index = i });
}

void gpu_arg_output(gpu_launch *l, uint32_t i)
{
  if (!on(l)) return;
  if (i >= l->node->n_outputs)
    fail(l->node, TN_INTERNAL, "gpu: kernel '%s' wants output %u of %u", l->kernel, i, l->node->n_outputs);
  else
    add_arg(l, (gpu_arg){ .kind = GPU_ARG_OUTPUT, .index = i });
}

void gpu_arg_scratch(gpu_launch *l, size_t at)
{
  if (!on(l)) return;
  if (at > l->node->built->scratch_bytes)
    fail(l->node, TN_INTERNAL, "gpu: kernel '%s' wants scratch memory at %zu of %zu", l->kernel, at,
         l->node->built->scratch_bytes);
  else
    add_arg(l, (gpu_arg){ .kind = GPU_ARG_SCRATCH, .at = at });
}

void gpu_arg_packed(gpu_launch *l, uint32_t id)
{
  if (!on(l)) return;
  if (id >= l->node->built->n_packs)
    fail(l->node, TN_INTERNAL, "gpu: kernel '%s' wants packed form %u of %u", l->kernel, id, l->node->built->n_packs);
  else
    add_arg(l, (gpu_arg){ .kind = GPU_ARG_PACKED, .index = id });
}

void gpu_arg_fault(gpu_launch *l, gpu_explain explain, int64_t limit)
{
  if (!on(l)) return;
  add_arg(l, (gpu_arg){ .kind = GPU_ARG_FAULT });
  l->explain = explain;
  l->limit = limit;
}

void gpu_arg_bytes(gpu_launch *l, const void *bytes, size_t size)
{
  if (!on(l) || !grow(l->node, (void **)&l->values, &l->values_room, l->n_values, size, 1)) return;
  memcpy(l->values + l->n_values, bytes, size);
  add_arg(l, (gpu_arg){ .kind = GPU_ARG_VALUE, .at = l->n_values, .size = size });
  l->n_values += size;
}

void gpu_arg_int(gpu_launch *l, int64_t value)
{
  cl_int v = (cl_int)value;
  if (!on(l)) return;
  if (v != value) fail(l->node, TN_UNIMPLEMENTED, "%lld is too large for kernel '%s'", (long long)value, l->kernel);
  else gpu_arg_bytes(l, &v, sizeof v);
}

void gpu_arg_long(gpu_launch *l, int64_t value)
{
  cl_long v = value;
  gpu_arg_bytes(l, &v, sizeof v);
}

void gpu_arg_float(gpu_launch *l, float value) { gpu_arg_bytes(l, &value, sizeof value); }

void gpu_arg_local(gpu_launch *l, size_t bytes)
{
  if (!on(l)) return;
  size_t sum = bytes;
  for (size_t i = 0; i < l->n_args; i++)
    if (l->args[i].kind == GPU_ARG_LOCAL) sum += l->args[i].size;
  if (sum > l->node->device->local_bytes)
    fail(l->node, TN_UNIMPLEMENTED, "kernel '%s' wants %zu bytes of local memory, the device has %llu", l->kernel, sum,
         (unsigned long long)l->node->device->local_bytes);
  else
    add_arg(l, (gpu_arg){ .kind = GPU_ARG_LOCAL, .size = bytes });
}

/* ---- ranges ---- */

static void set_range(gpu_launch *l, cl_uint n, const int64_t *global, const int64_t *local)
{
  if (!on(l)) return;
  size_t group = 1;
  for (cl_uint i = 0; i < n; i++) {
    int64_t of = local[i] > 0 ? local[i] : 1;
    if (global[i] < 0 || global[i] > INT64_MAX - of || local[i] < 0 || (local[i] == 0) != (local[0] == 0)) {
      fail(l->node, TN_INTERNAL, "gpu: kernel '%s' has a range of %lld in groups of %lld", l->kernel,
           (long long)global[i], (long long)local[i]);
      return;
    }
    l->global[i] = (size_t)((global[i] + of - 1) / of * of);
    l->local[i] = (size_t)local[i];
    group *= (size_t)of;
  }
  l->n_dims = n;
  if (group > l->node->device->max_group)
    fail(l->node, TN_UNIMPLEMENTED, "kernel '%s' wants groups of %zu, the device has at most %zu", l->kernel, group,
         l->node->device->max_group);
}

void gpu_range_1d(gpu_launch *l, int64_t global, int64_t local) { set_range(l, 1, &global, &local); }
void gpu_range_2d(gpu_launch *l, const int64_t global[2], const int64_t local[2]) { set_range(l, 2, global, local); }
void gpu_range_3d(gpu_launch *l, const int64_t global[3], const int64_t local[3]) { set_range(l, 3, global, local); }

/* ---- memory ---- */

size_t gpu_scratch(gpu_node *n, size_t bytes)
{
  size_t at = n->built->scratch_bytes;
  if (!going(n)) return 0;
  if (bytes > (size_t)PTRDIFF_MAX - SCRATCH_ALIGN - at) {
    fail(n, TN_UNIMPLEMENTED, "%zu bytes of scratch memory", bytes);
    return 0;
  }
  n->built->scratch_bytes = at + (bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
  return at;
}

static uint32_t add_pack(gpu_node *n, gpu_pack pack)
{
  gpu_pack *p = need(n, sizeof *p), **at = &n->built->packs;
  if (p == NULL) return 0;
  while (*at != NULL) at = &(*at)->next;
  *p = pack;
  *at = p;
  return n->built->n_packs++;
}

uint32_t gpu_packed(gpu_node *n, uint32_t i, uint64_t key, size_t bytes,
                    tn_status (*pack)(const void *user, const gpu_value *from, void *to, tn_error *err),
                    const void *user, size_t user_bytes)
{
  if (!going(n)) return 0;
  if (i >= n->n_inputs || !n->inputs[i].constant || n->inputs[i].host == NULL) {
    fail(n, TN_INTERNAL, "gpu: a packed form of input %u, which is no constant", i);
    return 0;
  }
  void *own = user_bytes == 0 ? NULL : need(n, user_bytes);
  if (own != NULL) memcpy(own, user, user_bytes);
  uint32_t id = add_pack(n, (gpu_pack){ .input = i, .key = key, .bytes = bytes, .pack = pack, .user = own });
  if (!going(n)) tn_free(own);
  return id;
}

uint32_t gpu_table(gpu_node *n, const void *bytes, size_t size)
{
  if (!going(n)) return 0;
  void *data = need(n, size);
  if (data == NULL) return 0;
  if (size > 0) memcpy(data, bytes, size);
  uint32_t id = add_pack(n, (gpu_pack){ .input = UINT32_MAX, .bytes = size, .data = data });
  if (!going(n)) tn_free(data);
  return id;
}

void gpu_copy(gpu_node *n, uint32_t i, uint32_t j)
{
  if (!going(n)) return;
  if (i >= n->n_outputs || j >= n->n_inputs || n->outputs[i].bytes != n->inputs[j].bytes) {
    fail(n, TN_INTERNAL, "gpu: a copy of input %u to output %u, which differ in size", j, i);
    return;
  }
  gpu_launch *l = n->outputs[i].bytes == 0 ? NULL : add_launch(n);
  if (l == NULL) return;
  l->copies = true;
  l->copy_to = i;
  l->copy_from = j;
}
