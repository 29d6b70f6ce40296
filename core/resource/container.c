/* SPDX-License-Identifier: Apache-2.0 */
/* One container: resources by name. Objects are destroyed without the lock, because they may have references to other
 * resources.
 *
 * A resource has two counts. `refs` keep the object; when it is 0 the object is destroyed. `memories` keep the
 * struct, so that tn__resource_remember can tell later whether the object still exists. All refs together count as
 * one memory. */
#include <core/resource/container.h>

#include <string.h>

struct tn_resource {
  tn_handle handle; /* first member: elements of tensors point to it */
  _Atomic uint32_t refs;     /* to the object */
  _Atomic uint32_t memories; /* to this struct: one for all refs, one for each tn__resource_remember */
  tn__container *home;       /* the container that it is or was in, a reference; NULL = none */
  _Atomic bool removed;      /* from its container */
  const tn_resource_class *cls; /* static */
  void *object;                 /* owned; cls->destroy frees it */
  char *name;
};

/* refs keep the struct, users keep the content: when users is 0 the container is emptied for good. */
struct tn__container {
  _Atomic uint32_t refs;
  _Atomic uint32_t users; /* each has a reference, too */
  char *name;
  tn__mutex mu;
  tn__map resources;   /* tn_resource references by name; guarded by mu */
  bool gone;           /* emptied: nothing may be added; guarded by mu */
  tn__container *next; /* in a list of containers detached from their set; guarded by its only user */
};

/* ---- resources ---- */

static void ref_handle(tn_handle *h) { tn_resource_ref((tn_resource *)h); }
static void unref_handle(tn_handle *h) { tn_resource_unref((tn_resource *)h); }

static const tn_handle_class handle_class = { .struct_size = sizeof handle_class, .type_name = "resource",
                                              .ref = ref_handle, .unref = unref_handle };

tn_handle *tn_resource_handle(tn_resource *r) { return r == NULL ? NULL : &r->handle; }

tn_resource *tn_handle_resource(tn_handle *h)
{
  return h != NULL && h->cls == &handle_class ? (tn_resource *)h : NULL;
}

tn_bool tn_resource_is_alive(const tn_resource *r)
{
  return r != NULL && !atomic_load_explicit(&r->removed, memory_order_acquire);
}

tn_resource *tn_resource_ref(tn_resource *r)
{
  if (r != NULL) atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
  return r;
}

tn_resource *tn__resource_remember(tn_resource *r)
{
  atomic_fetch_add_explicit(&r->memories, 1, memory_order_relaxed);
  return r;
}

void tn__resource_forget(tn_resource *r)
{
  if (r == NULL || atomic_fetch_sub_explicit(&r->memories, 1, memory_order_acq_rel) != 1) return;
  tn__strfree(r->name);
  tn__free(r, sizeof *r);
}

/* Increments refs unless it is 0: then the object is destroyed, or about to be. */
bool tn__resource_hold_again(tn_resource *r)
{
  uint32_t refs = atomic_load_explicit(&r->refs, memory_order_relaxed);
  while (refs != 0)
    if (atomic_compare_exchange_weak_explicit(&r->refs, &refs, refs + 1, memory_order_acquire, memory_order_relaxed))
      return true;
  return false;
}

void tn_resource_unref(tn_resource *r)
{
  if (r == NULL || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
  if (r->object != NULL && r->cls->destroy != NULL) r->cls->destroy(r->object);
  tn__container_unref(r->home);
  tn__resource_forget(r);
}

void *tn_resource_object(const tn_resource *r) { return r == NULL ? NULL : r->object; }
const char *tn_resource_name(const tn_resource *r) { return r == NULL ? NULL : r->name; }
const tn_resource_class *tn_resource_class_of(const tn_resource *r) { return r == NULL ? NULL : r->cls; }

tn_status tn_resource_create(const tn_resource_class *cls, const char *name, void *object, tn_resource **out,
                             tn_error *err)
{
  tn_resource *r = tn__zalloc(sizeof *r);
  char *copy = tn__strdup(name);
  *out = NULL;
  if (r == NULL || copy == NULL) {
    tn__strfree(copy);
    tn__free(r, sizeof *r);
    if (object != NULL && cls->destroy != NULL) cls->destroy(object);
    return tn__no_memory(err, "resource", sizeof *r);
  }
  r->handle.cls = &handle_class;
  atomic_init(&r->refs, 1);
  atomic_init(&r->memories, 1);
  r->cls = cls;
  r->object = object;
  r->name = copy;
  *out = r;
  return TN_OK;
}

/* ---- the container ---- */

tn_status tn__container_create(const char *name, tn__container **out, tn_error *err)
{
  tn__container *c = tn__zalloc(sizeof *c);
  char *copy = tn__strdup(name);
  *out = NULL;
  if (c == NULL || copy == NULL) {
    tn__strfree(copy);
    tn__free(c, sizeof *c);
    return tn__no_memory(err, "container", sizeof *c);
  }
  atomic_init(&c->refs, 1);
  atomic_init(&c->users, 1);
  c->name = copy;
  tn__mutex_init(&c->mu, "container", TN_RANK_CONTAINER);
  tn__map_init(&c->resources);
  *out = c;
  return TN_OK;
}

tn__container *tn__container_ref(tn__container *c)
{
  if (c != NULL) atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
  return c;
}

void tn__container_unref(tn__container *c)
{
  if (c == NULL || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
  tn__mutex_fini(&c->mu);
  tn__map_fini(&c->resources);
  tn__strfree(c->name);
  tn__free(c, sizeof *c);
}

tn__container *tn__container_use(tn__container *c)
{
  atomic_fetch_add_explicit(&c->users, 1, memory_order_relaxed);
  return tn__container_ref(c);
}

/* Releases all resources, after the last user has left. */
static void empty(tn__container *c)
{
  tn__mutex_lock(&c->mu);
  tn__map left = c->resources;
  tn__map_init(&c->resources);
  c->gone = true;
  tn__mutex_unlock(&c->mu);
  size_t place = 0;
  for (tn__map_entry *e; (e = tn__map_next(&left, &place)) != NULL;) {
    tn_resource *r = e->value;
    atomic_store_explicit(&r->removed, true, memory_order_release);
    tn_resource_unref(r);
  }
  tn__map_fini(&left);
}

void tn__container_leave(tn__container *c)
{
  if (c == NULL) return;
  if (atomic_fetch_sub_explicit(&c->users, 1, memory_order_acq_rel) == 1) empty(c);
  tn__container_unref(c);
}

tn__container *tn__container_link(tn__container *c, tn__container *next)
{
  c->next = next;
  return c;
}

tn__container *tn__container_next(const tn__container *c) { return c->next; }

const char *tn__container_name(const tn__container *c) { return c->name; }

size_t tn__container_count(tn__container *c)
{
  tn__mutex_lock(&c->mu);
  size_t n = c->resources.count;
  tn__mutex_unlock(&c->mu);
  return n;
}

/* ---- the content ---- */

/* Stores a reference to the resource of this name in *out, NULL if there is none. */
static tn_status find_locked(tn__container *c, const tn_resource_class *cls, const char *name, tn_resource **out,
                             tn_error *err)
{
  tn__assert_held(&c->mu);
  *out = NULL;
  if (c->gone)
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "%s '%s': its container '%s' was reset, and no session from before the reset is left",
                        cls == NULL ? "resource" : cls->name, name, c->name);
  tn_resource *r = tn__map_get(&c->resources, name, strlen(name));
  if (r != NULL && cls != NULL && r->cls != cls)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' in container '%s' is of type %s, wanted %s", name, c->name,
                        r->cls->name, cls->name);
  *out = tn_resource_ref(r);
  return TN_OK;
}

tn_status tn__container_lookup(tn__container *c, const tn_resource_class *cls, const char *name, tn_resource **out,
                               tn_error *err)
{
  tn__mutex_lock(&c->mu);
  tn_status st = find_locked(c, cls, name, out, err);
  tn__mutex_unlock(&c->mu);
  if (st != TN_OK || *out != NULL) return st;
  return tn_error_set(err, TN_NOT_FOUND, "container '%s' has no %s '%s'", c->name, cls == NULL ? "resource" : cls->name,
                      name);
}

tn_status tn__container_obtain(tn__container *c, const tn_resource_class *cls, const char *name,
                               tn__resource_make_fn make, void *user, tn_resource **out, tn_error *err)
{
  tn__mutex_lock(&c->mu);
  tn_status st = find_locked(c, cls, name, out, err);
  tn__mutex_unlock(&c->mu);
  if (st != TN_OK || *out != NULL) return st;
  void *object = NULL;
  tn_resource *made;
  st = make(user, &object, err);
  if (st == TN_OK) st = tn_resource_create(cls, name, object, &made, err);
  if (st != TN_OK) return st;
  made->home = tn__container_ref(c);
  tn__mutex_lock(&c->mu);
  st = find_locked(c, cls, name, out, err);
  if (st == TN_OK && *out == NULL) {
    if (tn__map_put(&c->resources, made->name, strlen(name), made, NULL)) *out = tn_resource_ref(made);
    else st = tn__no_memory(err, "container", 0);
  }
  if (*out == made) made = NULL; /* this reference is the container's now */
  tn__mutex_unlock(&c->mu);
  tn_resource_unref(made);
  return st;
}

tn_status tn__container_remove(tn_resource *r, tn_error *err)
{
  tn__container *c = r->home;
  bool found = false;
  if (c != NULL) {
    tn__mutex_lock(&c->mu);
    found = tn__map_get(&c->resources, r->name, strlen(r->name)) == r;
    if (found) {
      tn__map_remove(&c->resources, r->name, strlen(r->name));
      atomic_store_explicit(&r->removed, true, memory_order_release);
    }
    tn__mutex_unlock(&c->mu);
  }
  if (!found) return tn_error_set(err, TN_NOT_FOUND, "%s '%s' is not in a container", r->cls->name, r->name);
  tn_resource_unref(r); /* the container's reference */
  return TN_OK;
}
