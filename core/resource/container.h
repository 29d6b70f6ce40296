/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of resources, and their generations.
 *
 * A set has the containers of one factory, or of one isolated session. A view is what one session sees of a set: the
 * generation of each container that was the set's when the session was made, whatever a reset does afterwards. A
 * generation is emptied when neither its set nor a view has it any more; who only holds a reference (a handle in some
 * tensor) finds it empty then. */
#ifndef TN_CORE_RESOURCE_CONTAINER_H
#define TN_CORE_RESOURCE_CONTAINER_H

#include <core/base/lock.h>
#include <core/base/map.h>
#include <stdatomic.h>
#include <tenon/resource.h>

typedef struct tn__container tn__container;
typedef struct tn__containers tn__containers;
typedef struct tn__container_view tn__container_view;

/* ---- sets ---- */

/* NULL without memory. */
tn__containers *tn__containers_create(void);
tn__containers *tn__containers_ref(tn__containers *set);
void tn__containers_unref(tn__containers *set);

/* New generations of the named containers; none named: of the default one (S-RST-08, 09). Unknown names are no error
 * (S-RST-11). Waits for nobody. *old gets the generations that the set gave up, for tn__containers_leave_all when the
 * caller holds no lock. TN_RESOURCE_EXHAUSTED: some are detached, some not. */
tn_status tn__containers_detach(tn__containers *set, const char *const *names, size_t n, tn__container **old,
                                tn_error *err);
/* As above, of every container that the set has or had. */
void tn__containers_detach_all(tn__containers *set, tn__container **old);
void tn__containers_leave_all(tn__container *list);
/* Whether there is a container of this name; the default one always is. */
bool tn__containers_has(tn__containers *set, const char *name);
/* Calls fn for each container that the set has now, with how many resources are in it; the names live as long as the
 * call. */
void tn__containers_list(tn__containers *set, void (*fn)(void *user, const char *name, size_t n_resources), void *user);

/* ---- views ---- */

/* TN_RESOURCE_EXHAUSTED. */
tn_status tn__container_view_create(tn__containers *set, tn__container_view **out, tn_error *err);
/* When nothing runs any more that uses it; NULL allowed. */
void tn__container_view_destroy(tn__container_view *view);
/* The container of this name (NULL or "": the default one), made when there is none; borrowed, lives as long as the
 * view. */
tn_status tn__container_view_get(tn__container_view *view, const char *name, tn__container **out, tn_error *err);

/* ---- one container ---- */

/* One that no set has: of a step. It has one user, the caller. */
tn_status tn__container_create(const char *name, tn__container **out, tn_error *err);
/* For a list that the one user without a set builds. */
tn__container *tn__container_link(tn__container *container, tn__container *next);
tn__container *tn__container_next(const tn__container *container);
tn__container *tn__container_use(tn__container *container); /* one more user */
/* Ends the caller's use: the last one empties it. NULL allowed. */
void tn__container_leave(tn__container *container);
/* References keep the object, not what is in it. */
tn__container *tn__container_ref(tn__container *container);
void tn__container_unref(tn__container *container);
const char *tn__container_name(const tn__container *container);

/* Each gives a reference. TN_INVALID_ARGUMENT: there is one of this name and another class (S-RST-21);
 * TN_FAILED_PRECONDITION: the generation is gone. */
/* TN_NOT_FOUND: there is none. */
tn_status tn__container_lookup(tn__container *container, const tn_resource_class *cls, const char *name,
                               tn_resource **out, tn_error *err);
/* The one that is there, or a new one of the object that `make` gives. It is called without a lock: of two threads that
 * make the same, one destroys its object again. */
typedef tn_status (*tn__resource_make_fn)(void *user, void **object, tn_error *err);
tn_status tn__container_obtain(tn__container *container, const tn_resource_class *cls, const char *name,
                               tn__resource_make_fn make, void *user, tn_resource **out, tn_error *err);
/* TN_NOT_FOUND: it is in none. Who holds it may use it on. */
tn_status tn__container_remove(tn_resource *resource, tn_error *err);
size_t tn__container_count(tn__container *container);

/* ---- remembering ---- */

/* Keeps the class, the name and whether it is alive, but not what is in it. Gives its argument, whose object the caller
 * holds. */
tn_resource *tn__resource_remember(tn_resource *resource);
void tn__resource_forget(tn_resource *resource); /* NULL allowed */
/* A reference to one that is remembered; false: nobody held it any more. */
bool tn__resource_hold_again(tn_resource *resource);

#endif
