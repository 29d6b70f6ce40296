/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of containers, and the views that sessions have of them.
 *
 * Each reset of a name increments the set's epoch and records it with the name; a reset of all names records it with
 * the set. A view has the epoch of its creation and does not see younger generations. If it requests a name for the
 * first time after a reset of that name, it gets a new container that only it uses, in place of the old generation.
 *
 * Locks: a view's is taken before the set's. */
#include <core/resource/container.h>

#include <string.h>

typedef struct entry {
  char *name;
  tn__container *container; /* the entry is a user of it; NULL: the generation has not been requested yet */
  uint64_t born;            /* epoch in which the generation began */
} entry;

struct tn__containers {
  _Atomic uint32_t refs;
  tn__mutex mu;
  tn__map entries;   /* by name; guarded by mu, as are all below */
  uint64_t epoch;    /* number of resets so far */
  uint64_t all_born; /* epoch of the last reset of all: no generation of any name is older */
  size_t n_views;
};

struct tn__container_view {
  tn__containers *set; /* a reference */
  uint64_t epoch;      /* of the set when the view was made */
  const struct tn__folders *folders; /* borrowed; NULL: none; set before the session runs steps */
  tn__mutex mu;
  tn__map seen; /* containers by name; the view is a user of each. Guarded by mu */
};

static const char *name_of(const char *name) { return name == NULL || name[0] == 0 ? TN_DEFAULT_CONTAINER : name; }

/* ---- sets ---- */

tn__containers *tn__containers_create(void)
{
  tn__containers *set = tn__zalloc(sizeof *set);
  if (set == NULL) return NULL;
  atomic_init(&set->refs, 1);
  tn__mutex_init(&set->mu, "containers", TN_RANK_CONTAINERS);
  tn__map_init(&set->entries);
  return set;
}

tn__containers *tn__containers_ref(tn__containers *set)
{
  if (set != NULL) atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
  return set;
}

static void free_entry(entry *e)
{
  tn__container_leave(e->container);
  tn__strfree(e->name);
  tn__free(e, sizeof *e);
}

void tn__containers_unref(tn__containers *set)
{
  if (set == NULL || atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) != 1) return;
  size_t place = 0;
  for (tn__map_entry *e; (e = tn__map_next(&set->entries, &place)) != NULL;) free_entry(e->value);
  tn__map_fini(&set->entries);
  tn__mutex_fini(&set->mu);
  tn__free(set, sizeof *set);
}

/* Returns the entry of this name, made if necessary; NULL: out of memory. */
static entry *need_entry(tn__containers *set, const char *name)
{
  tn__assert_held(&set->mu);
  entry *e = tn__map_get(&set->entries, name, strlen(name));
  if (e != NULL) return e;
  e = tn__zalloc(sizeof *e);
  char *copy = tn__strdup(name);
  if (e != NULL && copy != NULL) {
    *e = (entry){ .name = copy };
    if (tn__map_put(&set->entries, copy, strlen(copy), e, NULL)) return e;
  }
  tn__strfree(copy);
  tn__free(e, sizeof *e);
  return NULL;
}

/* Removes entries without a container. They only record resets for older views, and there are no views. */
static void drop_empty_entries(tn__containers *set)
{
  tn__assert_held(&set->mu);
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&set->entries, &place)) != NULL;) {
    entry *e = m->value;
    if (e->container != NULL) continue;
    tn__map_remove(&set->entries, e->name, strlen(e->name));
    free_entry(e);
    place = 0; /* removal may have moved other entries */
  }
}

static tn_status detach_one(tn__containers *set, const char *name, tn__container **list, tn_error *err)
{
  tn__mutex_lock(&set->mu);
  entry *e = tn__map_get(&set->entries, name, strlen(name));
  if (e == NULL && set->n_views > 0) e = need_entry(set, name); /* an older view may request the name later */
  tn__container *old = NULL;
  bool lost = e == NULL && set->n_views > 0;
  if (e != NULL) {
    old = e->container;
    e->container = NULL;
    e->born = ++set->epoch;
    if (set->n_views == 0) drop_empty_entries(set);
  }
  tn__mutex_unlock(&set->mu);
  if (old != NULL) *list = tn__container_link(old, *list);
  return lost ? tn__no_memory(err, "container", sizeof(entry)) : TN_OK;
}

tn_status tn__containers_detach(tn__containers *set, const char *const *names, size_t n, tn__container **old,
                                tn_error *err)
{
  *old = NULL;
  static const char *const usual[] = { TN_DEFAULT_CONTAINER };
  tn_status st = TN_OK;
  for (size_t i = 0; i < (n == 0 ? 1 : n); i++) {
    tn_status one = detach_one(set, name_of((n == 0 ? usual : names)[i]), old, err);
    if (st == TN_OK) st = one;
  }
  return st;
}

void tn__containers_detach_all(tn__containers *set, tn__container **old)
{
  *old = NULL;
  tn__mutex_lock(&set->mu);
  set->all_born = ++set->epoch;
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&set->entries, &place)) != NULL;) {
    entry *e = m->value;
    if (e->container != NULL) *old = tn__container_link(e->container, *old);
    e->container = NULL;
    free_entry(e); /* all_born replaces its epoch */
  }
  tn__map_fini(&set->entries);
  tn__map_init(&set->entries);
  tn__mutex_unlock(&set->mu);
}

bool tn__containers_has(tn__containers *set, const char *name)
{
  name = name_of(name);
  if (strcmp(name, TN_DEFAULT_CONTAINER) == 0) return true;
  if (set == NULL) return false;
  tn__mutex_lock(&set->mu);
  const entry *e = tn__map_get(&set->entries, name, strlen(name));
  bool has = e != NULL && e->container != NULL;
  tn__mutex_unlock(&set->mu);
  return has;
}

void tn__containers_leave_all(tn__container *list)
{
  while (list != NULL) {
    tn__container *next = tn__container_next(list);
    tn__container_leave(list);
    list = next;
  }
}

void tn__containers_list(tn__containers *set, void (*fn)(void *user, const char *name, size_t n_resources), void *user)
{
  tn__mutex_lock(&set->mu);
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&set->entries, &place)) != NULL;) {
    const entry *e = m->value;
    if (e->container != NULL) fn(user, e->name, tn__container_count(e->container));
  }
  tn__mutex_unlock(&set->mu);
}

/* ---- views ---- */

const struct tn__folders *tn__container_view_folders(const tn__container_view *view)
{
  return view == NULL ? NULL : view->folders;
}

void tn__container_view_set_folders(tn__container_view *view, const struct tn__folders *folders)
{
  view->folders = folders;
}

tn_status tn__container_view_create(tn__containers *set, tn__container_view **out, tn_error *err)
{
  tn__container_view *view = tn__zalloc(sizeof *view);
  *out = view;
  if (view == NULL) return tn__no_memory(err, "view of containers", sizeof *view);
  view->set = tn__containers_ref(set);
  tn__mutex_init(&view->mu, "containers of a session", TN_RANK_CONTAINER_VIEW);
  tn__map_init(&view->seen);
  tn__mutex_lock(&set->mu);
  view->epoch = set->epoch;
  set->n_views++;
  tn__mutex_unlock(&set->mu);
  return TN_OK;
}

void tn__container_view_destroy(tn__container_view *view)
{
  if (view == NULL) return;
  size_t place = 0;
  for (tn__map_entry *m; (m = tn__map_next(&view->seen, &place)) != NULL;) tn__container_leave(m->value);
  tn__map_fini(&view->seen);
  tn__mutex_fini(&view->mu);
  tn__mutex_lock(&view->set->mu);
  if (--view->set->n_views == 0) drop_empty_entries(view->set);
  tn__mutex_unlock(&view->set->mu);
  tn__containers_unref(view->set);
  tn__free(view, sizeof *view);
}

/* Returns the set's container if its generation is not younger than the view, else a new one for this view alone. The
 * caller becomes a user of it. */
static tn_status find_or_make(tn__container_view *view, const char *name, tn__container **out, tn_error *err)
{
  tn__containers *set = view->set;
  tn_status st = TN_OK;
  *out = NULL;
  if (strcmp(name, TN_SESSION_CONTAINER) == 0)
    return tn__container_create(name, out, err); /* private: the view is its only user */
  tn__mutex_lock(&set->mu);
  entry *e = need_entry(set, name);
  if (e == NULL) st = tn__no_memory(err, "container", sizeof *e);
  if (st == TN_OK && (e->born > view->epoch || set->all_born > view->epoch)) {
    st = tn__container_create(name, out, err);
  } else if (st == TN_OK) {
    if (e->container == NULL) st = tn__container_create(name, &e->container, err);
    if (st == TN_OK) *out = tn__container_use(e->container);
  }
  tn__mutex_unlock(&set->mu);
  return st;
}

tn_status tn__container_view_get(tn__container_view *view, const char *name, tn__container **out, tn_error *err)
{
  name = name_of(name);
  tn__mutex_lock(&view->mu);
  tn__container *c = tn__map_get(&view->seen, name, strlen(name));
  tn_status st = TN_OK;
  if (c == NULL) {
    st = find_or_make(view, name, &c, err);
    if (st == TN_OK && !tn__map_put(&view->seen, tn__container_name(c), strlen(name), c, NULL)) {
      tn__container_leave(c);
      c = NULL;
      st = tn__no_memory(err, "container", 0);
    }
  }
  tn__mutex_unlock(&view->mu);
  *out = c;
  return st;
}
