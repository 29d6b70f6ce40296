/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of resources, and their generations.
 *
 * A set has the containers of one factory, or of one isolated session. A reset replaces a container of the set by a new
 * generation. A view is one session's access to a set: it sees the generation of each container that was current when
 * the session was made, whatever a reset does later. A generation is emptied when neither its set nor any view uses it.
 * A reference alone (of a handle in a tensor) does not prevent that. */
#ifndef TN_CORE_RESOURCE_CONTAINER_H
#define TN_CORE_RESOURCE_CONTAINER_H

#include <core/base/map.h>
#include <core/base/threads/lock.h>
#include <stdatomic.h>
#include <tenon/resource.h>

typedef struct tn__container tn__container;
typedef struct tn__containers tn__containers;
typedef struct tn__container_view tn__container_view;

/* ---- sets ---- */

/* NULL: out of memory. */
tn__containers *tn__containers_create(void);
tn__containers *tn__containers_ref(tn__containers *set);
void tn__containers_unref(tn__containers *set);

/* Begins new generations of the named containers; of the default one if n is 0 (S-RST-08, 09). Unknown names are no
 * error (S-RST-11). Does not block. *old gets the list of the old generations, which the caller passes to
 * tn__containers_leave_all when it holds no lock. TN_RESOURCE_EXHAUSTED: some are detached, some not. */
tn_status tn__containers_detach(tn__containers *set, const char *const *names, size_t n, tn__container **old,
                                tn_error *err);
/* Like tn__containers_detach, for every container that the set has or had. */
void tn__containers_detach_all(tn__containers *set, tn__container **old);
void tn__containers_leave_all(tn__container *list);
/* Whether the set has a container of this name; the default one always exists. */
bool tn__containers_has(tn__containers *set, const char *name);
/* Calls fn, under the set's lock, for each current container with the number of its resources. The name is valid during
 * the call. */
void tn__containers_list(tn__containers *set, void (*fn)(void *user, const char *name, size_t n_resources), void *user);

/* ---- views ---- */

/* TN_RESOURCE_EXHAUSTED. */
tn_status tn__container_view_create(tn__containers *set, tn__container_view **out, tn_error *err);
/* Call it when no step uses the view any more; NULL allowed. */
void tn__container_view_destroy(tn__container_view *view);
/* The folders whose files the session's kernels may use: kept here, because every step has the view, so that a step
 * takes no longer. Borrowed; NULL: none. set is called before the session runs a step. */
struct tn__folders;
const struct tn__folders *tn__container_view_folders(const tn__container_view *view);
void tn__container_view_set_folders(tn__container_view *view, const struct tn__folders *folders);
/* Returns the container of this name (NULL or "": the default one), made if necessary. Borrowed from the view. */
tn_status tn__container_view_get(tn__container_view *view, const char *name, tn__container **out, tn_error *err);

/* ---- one container ---- */

/* Makes a container outside any set, such as that of a step. The caller is its only user. */
tn_status tn__container_create(const char *name, tn__container **out, tn_error *err);
/* A list of detached containers; link returns the new head. */
tn__container *tn__container_link(tn__container *container, tn__container *next);
tn__container *tn__container_next(const tn__container *container);
tn__container *tn__container_use(tn__container *container); /* adds a user; returns its argument */
/* Removes a user. The last one empties the container, which destroys objects: hold no lock then, unless the container
 * is known to be empty. NULL allowed. */
void tn__container_leave(tn__container *container);
/* References keep the struct, but not its content. */
tn__container *tn__container_ref(tn__container *container);
void tn__container_unref(tn__container *container);
const char *tn__container_name(const tn__container *container);

/* lookup and obtain return a reference. TN_INVALID_ARGUMENT: the resource of this name has another class (S-RST-21);
 * TN_FAILED_PRECONDITION: the container was emptied. */
/* TN_NOT_FOUND: there is none. cls NULL: of any class. */
tn_status tn__container_lookup(tn__container *container, const tn_resource_class *cls, const char *name,
                               tn_resource **out, tn_error *err);
/* Returns the existing resource, or a new one with the object that `make` returns. `make` is called without a lock: if
 * two threads make the same resource, one of them destroys its object again. */
typedef tn_status (*tn__resource_make_fn)(void *user, void **object, tn_error *err);
tn_status tn__container_obtain(tn__container *container, const tn_resource_class *cls, const char *name,
                               tn__resource_make_fn make, void *user, tn_resource **out, tn_error *err);
/* TN_NOT_FOUND: it is not in a container. Threads with a reference may still use it. */
tn_status tn__container_remove(tn_resource *resource, tn_error *err);
size_t tn__container_count(tn__container *container);

/* ---- weak references ---- */

/* Takes a weak reference: class, name and tn_resource_is_alive stay valid, the object does not. The caller has a
 * reference. Returns its argument. */
tn_resource *tn__resource_remember(tn_resource *resource);
void tn__resource_forget(tn_resource *resource); /* releases a weak reference; NULL allowed */
/* Takes a reference through a weak one. False: the object is destroyed already. */
bool tn__resource_hold_again(tn_resource *resource);

#endif
