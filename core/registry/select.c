/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing one factory for given options (S-OPT-03 to 12, P-54 to P-59).
 *
 * A target that names a runtime selects that one only. Without a name, the candidates are asked from the highest
 * static rank down. Once one has accepted, no plugin of a lower rank is opened. The order of candidates is by rank
 * and name, so the choice depends only on the options, the environment and the installed files.
 *
 * The candidates are a snapshot, taken under the mutex, with a reference to each. Plugin code runs without the mutex. A
 * call is counted for the factory that is asked, so it cannot be unregistered meanwhile. If the chosen factory was
 * unregistered before the caller acquired it, the choice is repeated. */
#include <stdlib.h>
#include <string.h>

#include <core/base/file.h>
#include <core/registry/options_internal.h>

#define SHOWN_BYTES 256 /* of a target or an option in messages; longer ones are cut */
#define TEXT_LIMIT ((size_t)1 << 20)

typedef struct candidate {
  tn__factory *factory; /* a registered factory, or a plugin that is not loaded; the other is NULL. Referenced */
  tn__plugin *plugin;
  const char *name;
  int32_t rank;      /* static, by precedence: runtime_ranks, TENON_RANK, NAME.conf, manifest */
  int32_t effective; /* the rank with which it accepted the options; -1: it did not, or was not asked */
  size_t place;      /* among equals: the order of the lists */
  bool shadowed;
  bool unusable; /* refused, failed or gone */
} candidate;

typedef struct selection {
  const tn_session_options *options;
  candidate *list;
  size_t n, capacity;
  tn__text refusals; /* "name: reason; ..." */
  tn__text *trace;   /* NULL: not wanted */
} selection;

/* ---- texts ---- */

static const char *origin_of(const candidate *c)
{
  const tn__plugin *p = c->factory != NULL ? c->factory->plugin : c->plugin;
  return p != NULL ? p->path : "registered by the program";
}

/* The options' target for messages, cut if it is long. */
static const char *target_shown(const tn_session_options *options, char buffer[SHOWN_BYTES])
{
  const char *target = tn_session_options_target(options);
  return tn__option_shown(target, strlen(target), buffer, SHOWN_BYTES);
}

/* A line of tn_explain_selection. */
static void trace(selection *s, const candidate *c, const char *verdict, const char *reason)
{
  if (s->trace != NULL)
    tn__text_printf(s->trace, "%s (%s) rank %d: %s%s%s\n", c->name, origin_of(c), c->rank, verdict,
                    reason[0] ? ": " : "", reason);
}

/* ---- the candidates ---- */

/* Takes a reference to the candidate's object. The caller holds the mutex. */
static tn_status add_candidate(selection *s, candidate c, tn_error *err)
{
  if (!tn__grow((void **)&s->list, &s->capacity, s->n + 1, sizeof(c)))
    return tn__no_memory(err, "the list of runtimes", (s->n + 1) * sizeof(c));
  c.effective = -1;
  c.place = s->n;
  if (c.factory != NULL)
    c.factory->refs++;
  else
    tn__plugin_ref_locked(c.plugin);
  s->list[s->n++] = c;
  return TN_OK;
}

/* only NULL: the factories of all plugins and of the program. */
static tn_status add_factories_locked(selection *s, const tn__plugin *only, tn_error *err)
{
  tn_status status = TN_OK;
  for (tn__factory *f = tn__reg.factories; status == TN_OK && f != NULL; f = f->next) {
    if (only != NULL && f->plugin != only) continue;
    candidate c = { .factory = f, .name = f->name, .rank = tn__rank_of_locked(f->name, f->rank) };
    status = add_candidate(s, c, err);
  }
  return status;
}

/* From the highest rank down, equal ranks by name; candidates of one name stay in the order of the lists. */
static int compare(const void *a, const void *b)
{
  const candidate *x = a, *y = b;
  if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
  int order = strcmp(x->name, y->name);
  if (order != 0) return order;
  return x->place < y->place ? -1 : 1;
}

/* Applies the option runtime_ranks, "name=rank,name=rank", which overrides TENON_RANK and the manifests' ranks (P-58).
 * s NULL: the option is only checked. */
static tn_status option_ranks(const tn_session_options *options, selection *s, tn_error *err)
{
  const char *list;
  tn_status status = tn_session_options_get_string(options, "runtime_ranks", &list, err);
  for (const char *at = list; status == TN_OK && *at != 0;) {
    size_t size = strcspn(at, ","), name = strcspn(at, "=,");
    int64_t rank = -1;
    bool good = name < size && tn__runtime_name_ok(at, name) &&
                tn__parse_int((tn__slice){ at + name + 1, size - name - 1 }, &rank) && rank >= 0 && rank <= 1000;
    char text[SHOWN_BYTES];
    if (!good)
      status = tn_error_set(err, TN_INVALID_ARGUMENT,
                            "option runtime_ranks: '%s' is not name=rank with a rank from 0 to 1000",
                            tn__option_shown(at, size, text, sizeof(text)));
    for (size_t i = 0; good && s != NULL && i < s->n; i++)
      if (strncmp(s->list[i].name, at, name) == 0 && s->list[i].name[name] == 0) s->list[i].rank = (int32_t)rank;
    at += size + (at[size] == ',');
  }
  return status;
}

/* Takes the snapshot. A plugin whose factories are registered is represented by them. */
static tn_status collect(selection *s, tn_error *err)
{
  tn__reg_lock();
  tn_status status = add_factories_locked(s, NULL, err);
  for (tn__plugin *p = tn__reg.plugins; status == TN_OK && p != NULL; p = p->next) {
    if (!p->named || p->manifest.is_kernels || p->n_registered > 0) continue;
    candidate c = { .plugin = p,
                    .name = p->manifest.name,
                    .rank = tn__rank_of_locked(p->manifest.name, p->rank) };
    c.unusable = p->state != TN__PLUGIN_FOUND;
    c.shadowed = tn__plugin_shadowed_locked(p);
    status = add_candidate(s, c, err);
  }
  tn__reg_unlock();
  if (status == TN_OK) status = option_ranks(s->options, s, err);
  if (s->n > 1) qsort(s->list, s->n, sizeof(candidate), compare);
  return status;
}

static void selection_fini(selection *s)
{
  for (size_t i = 0; i < s->n; i++) {
    tn__factory_unref(s->list[i].factory);
    tn__plugin_unref(s->list[i].plugin);
  }
  tn__free(s->list, s->capacity * sizeof(candidate));
  tn__text_fini(&s->refusals);
}

/* ---- asking one factory ---- */

/* Counts a call for the factory. If another thread is starting or stopping it, waits for that: such a thread holds the
 * token. */
static tn_status begin_call(tn__factory *f, tn_error *err)
{
  for (bool waited = false;; waited = true) {
    tn__reg_lock();
    bool usable = f->usable;
    if (usable) f->calls++;
    tn__reg_unlock();
    if (usable) return TN_OK;
    if (waited) return tn_error_set(err, TN_NOT_FOUND, "runtime '%s' was unregistered meanwhile", f->name);
    tn_status status = tn__token_take("using a runtime that is being started", err);
    if (status != TN_OK) return status;
    tn__token_give();
  }
}

static void end_call(tn__factory *f)
{
  tn__reg_lock();
  f->calls--;
  tn__reg_unlock();
}

/* Sets the error for a refusal, with the factory's own reason if it gives one (P-44). */
static tn_status explain_refusal(tn__factory *f, const tn_session_options *options, tn_error *err)
{
  tn_error why = TN_ERROR_INIT;
  char target[SHOWN_BYTES], settings[SHOWN_BYTES];
  if (f->table.explain_options != NULL) f->table.explain_options(f->self, options, &why);
  bool said = tn_error_message(&why)[0] != 0;
  tn_error_set(err, TN_INVALID_ARGUMENT, "runtime '%s' (%s) does not accept the options with target '%s': %s", f->name,
               f->plugin != NULL ? f->plugin->path : "registered by the program", target_shown(options, target),
               said ? tn_error_message(&why) : "it gives no reason");
  if (f->plugin != NULL && f->plugin->settings != NULL)
    tn_error_prefix(err, "with '%s' from its .conf file",
                    tn__option_shown(f->plugin->settings, strlen(f->plugin->settings), settings, sizeof(settings)));
  tn_error_clear(&why);
  return TN_INVALID_ARGUMENT;
}

/* A runtime may lower its rank for the options, but not raise it. */
static int32_t lowered(int32_t wanted, int32_t rank)
{
  if (wanted < 0) return 0;
  return wanted < rank ? wanted : rank;
}

/* Asks for health, acceptance and rank, in this order. TN_OK: accepted, *effective is set. */
static tn_status ask(tn__factory *f, const tn_session_options *options, int32_t rank, int32_t *effective, tn_error *err)
{
  tn_error e = TN_ERROR_INIT;
  tn_status status = begin_call(f, err);
  if (status != TN_OK) return status;
  tn_session_options *own = NULL; /* a copy with the settings of the file beside the plugin */
  if (f->plugin != NULL && f->plugin->settings != NULL) {
    status = tn_session_options_copy(options, &own, &e);
    if (status == TN_OK) status = tn__factory_complete(f, own, &e);
    options = own;
  }
  tn__plugin_call calling = tn__factory_call(f, "its health");
  tn__callback_enter();
  tn__plugin_call_enter(&calling);
  if (status == TN_OK && f->table.health != NULL)
    status = tn__factory_status(f, "health", f->table.health(f->self, &e), &e);
  calling.call = "its accepts_options";
  if (status == TN_OK && !f->table.accepts_options(f->self, options)) status = explain_refusal(f, options, &e);
  calling.call = "its rank_for_options";
  if (status == TN_OK) {
    *effective =
        f->table.rank_for_options != NULL ? lowered(f->table.rank_for_options(f->self, options, rank), rank) : rank;
  } else {
    tn_error_copy(err, &e);
  }
  tn__plugin_call_leave(&calling);
  tn__callback_leave();
  end_call(f);
  tn_session_options_destroy(own);
  tn_error_clear(&e);
  return status;
}

/* ---- by name ---- */

/* Sets the error for a name that no runtime has. A name with a vendor's prefix is that of a third party's file (P-52),
 * which a static program cannot load (P-91). */
static tn_status not_known(const tn_session_options *options, tn_error *err)
{
  char shown[SHOWN_BYTES];
  const char *name = tn_session_options_runtime(options), *target = target_shown(options, shown);
  tn__text known, hint;
  tn__text_init(&known, TEXT_LIMIT);
  tn__text_init(&hint, TEXT_LIMIT);
  tn__reg_lock();
  tn__hint_locked(name, &hint);
  tn__describe_known_locked(&known);
  tn__reg_unlock();
  tn_status status = tn__loads_files() || strchr(name, '.') == NULL ? TN_NOT_FOUND : TN_UNIMPLEMENTED;
  if (tn__loads_files())
    tn_error_set(err, status, "target '%s': there is no runtime '%s'%s; %s", target, name, tn__text_get(&hint),
                 tn__text_get(&known));
  else
    tn_error_set(err, status,
                 "static build: this program is linked statically and cannot load files; target '%s': there is no "
                 "runtime '%s'%s; %s",
                 target, name, tn__text_get(&hint), tn__text_get(&known));
  tn__text_fini(&hint);
  tn__text_fini(&known);
  return status;
}

/* Returns the factory of that name, with a reference. Loads its plugin if necessary. TN_NOT_FOUND without a message: no
 * runtime has the name. After each load or wait the name is looked up again. */
static tn_status find_named(const char *name, tn__factory **out, tn_error *err)
{
  tn_status status = TN_OK;
  *out = NULL;
  while (status == TN_OK && *out == NULL) {
    tn__reg_lock();
    tn__factory *f = tn__factory_find_locked(name);
    tn__plugin *p = f == NULL ? tn__plugin_by_name_locked(name) : NULL;
    bool ready = f != NULL && f->usable;
    if (ready) f->refs++;
    if (p != NULL) tn__plugin_ref_locked(p);
    bool gone = p != NULL && p->state == TN__PLUGIN_LOADED; /* one of its several factories was unregistered */
    tn__reg_unlock();
    if (f != NULL && !ready) { /* another thread starts or stops it: wait, then look again */
      status = tn__token_take("using a runtime that is being started", err);
      if (status == TN_OK) tn__token_give();
      continue;
    }
    *out = f;
    if (f != NULL) return TN_OK;
    if (p == NULL) return TN_NOT_FOUND;
    status = gone ? tn_error_set(err, TN_NOT_FOUND, "runtime '%s' (%s) was unregistered", name, p->path)
                  : tn__plugin_load(p, err);
    tn__plugin_unref(p);
  }
  return status;
}

static void trace_others(selection *s, const char *name)
{
  for (size_t i = 0; s->trace != NULL && i < s->n; i++)
    if (strcmp(s->list[i].name, name) != 0) trace(s, &s->list[i], "not asked", "the target names another runtime");
}

/* Loads and asks the runtime that the target names, whatever its rank. If it refuses, no other one is tried (P-55).
 * *out is referenced. */
static tn_status select_named(selection *s, tn__factory **out, tn_error *err)
{
  const char *name = tn_session_options_runtime(s->options);
  int32_t effective = 0;
  trace_others(s, name);
  tn__factory *f = NULL;
  tn_status status = find_named(name, &f, err);
  if (status == TN_NOT_FOUND && tn_error_code(err) == TN_OK) return not_known(s->options, err);
  if (status == TN_OK) status = ask(f, s->options, 1000, &effective, err);
  if (f != NULL && s->trace != NULL) {
    tn__reg_lock();
    candidate c = { .factory = f, .name = f->name, .rank = tn__rank_of_locked(f->name, f->rank) };
    tn__reg_unlock();
    trace(s, &c, status == TN_OK ? "asked by name, accepted" : "asked by name, refused",
          status == TN_OK ? "" : tn_error_message(err));
  }
  if (status == TN_OK)
    *out = f;
  else
    tn__factory_unref(f);
  return status;
}

/* ---- by rank ---- */

/* Asks candidate i, which has a factory. */
static void ask_candidate(selection *s, size_t i)
{
  tn_error why = TN_ERROR_INIT;
  candidate *c = &s->list[i];
  tn_status status = ask(c->factory, s->options, c->rank, &c->effective, &why);
  if (status == TN_OK) {
    trace(s, c, c->effective > 0 ? "accepted" : "accepted, but lowered its rank to 0", "");
  } else {
    trace(s, c, "refused", tn_error_message(&why));
    tn__text_printf(&s->refusals, "%s%s", s->refusals.size > 0 ? "; " : "", tn_error_message(&why));
  }
  tn_error_clear(&why);
}

/* Opens candidate i, a plugin, and asks its factories. */
static tn_status open_candidate(selection *s, size_t i, tn_error *err)
{
  tn_error why = TN_ERROR_INIT;
  tn__plugin *plugin = s->list[i].plugin;
  tn_status status = tn__plugin_load(plugin, &why);
  tn__reg_lock();
  bool undecided = plugin->state == TN__PLUGIN_FOUND;
  tn__reg_unlock();
  if (status != TN_OK && undecided) { /* no memory: choosing another runtime would make the choice random */
    tn_error_copy(err, &why);
    tn_error_clear(&why);
    return status;
  }
  if (status != TN_OK) {
    bool first = !s->list[i].unusable;
    trace(s, &s->list[i], "unusable", tn_error_message(&why));
    tn__text_printf(&s->refusals, "%s%s", s->refusals.size > 0 ? "; " : "", tn_error_message(&why));
    if (first) tn_log(TN_LOG_WARNING, "%s", tn_error_message(&why));
    tn_error_clear(&why);
    return TN_OK;
  }
  size_t before = s->n;
  tn__reg_lock();
  status = add_factories_locked(s, plugin, err);
  tn__reg_unlock();
  if (status == TN_OK) status = option_ranks(s->options, s, err);
  for (size_t k = before; status == TN_OK && k < s->n; k++) {
    if (s->list[k].rank > 0) ask_candidate(s, k);
  }
  return status;
}

/* The highest rank of those that have accepted; 0: none. */
static int32_t best_rank(const selection *s)
{
  int32_t best = 0;
  for (size_t i = 0; i < s->n; i++)
    if (s->list[i].effective > best) best = s->list[i].effective;
  return best;
}

/* Lists the candidates that can only be selected by name: "direct, threaded". They may have lowered their own rank. */
static void list_unranked(const selection *s, tn__text *out)
{
  for (size_t i = 0; i < s->n; i++) {
    const candidate *c = &s->list[i];
    bool taken_by_name = c->rank == 0 || c->effective == 0;
    if (taken_by_name && !c->shadowed && !c->unusable) tn__text_printf(out, "%s%s", out->size > 0 ? ", " : "", c->name);
  }
}

static tn_status none_accepts(selection *s, tn_error *err)
{
  char shown[SHOWN_BYTES];
  const char *target = target_shown(s->options, shown);
  tn__text known, unranked;
  tn__text_init(&known, TEXT_LIMIT);
  tn__text_init(&unranked, TEXT_LIMIT);
  tn__reg_lock();
  tn__describe_known_locked(&known);
  tn__reg_unlock();
  list_unranked(s, &unranked);
  if (unranked.size > 0 && s->refusals.size == 0)
    tn_error_set(
        err, TN_NOT_FOUND,
        "target '%s' names no runtime, and all runtimes have rank 0, which means selection by name only: %s; name one, "
        "or raise its rank in TENON_RANK, the option runtime_ranks or its manifest; %s",
        target, tn__text_get(&unranked), tn__text_get(&known));
  else
    tn_error_set(err, TN_NOT_FOUND, "target '%s': no runtime accepts the options%s%s%s%s; %s", target,
                 s->refusals.size > 0 ? ": " : "", tn__text_get(&s->refusals),
                 unranked.size > 0 ? "; of rank 0, which means selection by name only: " : "", tn__text_get(&unranked),
                 tn__text_get(&known));
  tn__text_fini(&unranked);
  tn__text_fini(&known);
  return TN_NOT_FOUND;
}

/* A choice between equal ranks would be arbitrary, so it is an error (P-57). */
static tn_status several_accept(selection *s, int32_t best, tn_error *err)
{
  char shown[SHOWN_BYTES];
  tn__text list, known;
  const char *one = "";
  tn__text_init(&list, TEXT_LIMIT);
  tn__text_init(&known, TEXT_LIMIT);
  for (size_t i = 0; i < s->n; i++) {
    const candidate *c = &s->list[i];
    if (c->effective != best) continue;
    tn__text_printf(&list, "%s%s (%s) with rank %d", list.size > 0 ? ", " : "", c->name, origin_of(c), c->effective);
    one = c->name;
  }
  tn__reg_lock();
  tn__describe_known_locked(&known);
  tn__reg_unlock();
  tn_error_set(
      err, TN_FAILED_PRECONDITION,
      "target '%s': several runtimes of equal rank accept the options: %s; name one in the target, such as '%s', or "
      "give it a higher rank, such as TENON_RANK=%s=%d; %s",
      target_shown(s->options, shown), tn__text_get(&list), one, one, best < 1000 ? best + 1 : best,
      tn__text_get(&known));
  tn__text_fini(&list);
  tn__text_fini(&known);
  return TN_FAILED_PRECONDITION;
}

/* The device type that a device filter names, as in "/job:a/device:GPU:0" or "/gpu:0"; empty: any. */
static tn__slice filter_type(const char *at)
{
  for (; *at == '/'; at += strcspn(at, "/")) {
    size_t size = strcspn(++at, ":/");
    tn__slice word = { at, size };
    if (tn__slice_is(word, "job") || tn__slice_is(word, "replica") || tn__slice_is(word, "task")) continue;
    if (!tn__slice_is(word, "device") || at[size] != ':') return word;
    at += size + 1;
    return (tn__slice){ at, strcspn(at, ":/") };
  }
  return (tn__slice){ "", 0 };
}

/* Whether the list "CPU,GPU" contains the type, ignoring case. */
static bool has_type(const char *types, tn__slice type)
{
  for (const char *at = types; *at != 0;) {
    size_t size = strcspn(at, ",");
    if (size == type.size && strncasecmp(at, type.data, size) == 0) return true;
    at += size + (at[size] == ',');
  }
  return false;
}

/* Whether device_filters admit any device type that the candidate's manifest names (P-09). No plugin is opened for
 * it. */
static bool types_fit(const tn_session_options *options, const candidate *c)
{
  const tn__plugin *p = c->factory != NULL ? c->factory->plugin : c->plugin;
  size_t n = tn__option_n_items(options, TN__OPTION_device_filters);
  bool fit = n == 0 || p == NULL || p->manifest.types[0] == 0;
  for (size_t i = 0; i < n && !fit; i++) {
    int64_t unused;
    tn__slice type = filter_type(tn__option_item_at(options, TN__OPTION_device_filters, i, &unused));
    fit = type.size == 0 || has_type(p->manifest.types, type);
  }
  return fit;
}

static void leave_out(selection *s, const candidate *c)
{
  static const char why[] = "device_filters exclude all its device types";
  trace(s, c, "not asked", why);
  tn__text_printf(&s->refusals, "%sruntime '%s' (%s): %s", s->refusals.size > 0 ? "; " : "", c->name, origin_of(c),
                  why);
}

/* Asks or opens the candidates in order. */
static tn_status ask_all(selection *s, tn_error *err)
{
  tn_status status = TN_OK;
  size_t n = s->n; /* candidates appended by open_candidate have been asked there */
  for (size_t i = 0; status == TN_OK && i < n; i++) {
    const candidate *c = &s->list[i];
    if (c->shadowed)
      trace(s, c, "not asked", "another one of this name takes precedence over it");
    else if (c->rank == 0)
      trace(s, c, "not asked", "rank 0 means selection by name only");
    else if (c->rank < best_rank(s))
      trace(s, c, "not asked", "a runtime of higher rank accepted");
    else if (!types_fit(s->options, c))
      leave_out(s, c);
    else if (c->factory != NULL)
      ask_candidate(s, i);
    else
      status = open_candidate(s, i, err);
  }
  return status;
}

/* *out is referenced. */
static tn_status select_ranked(selection *s, tn__factory **out, tn_error *err)
{
  tn_status status = ask_all(s, err);
  if (status != TN_OK) return status;
  int32_t best = best_rank(s);
  if (best == 0) return none_accepts(s, err);
  tn__factory *chosen = NULL;
  for (size_t i = 0; i < s->n; i++) {
    if (s->list[i].effective != best) continue;
    if (chosen != NULL) return several_accept(s, best, err);
    chosen = s->list[i].factory;
  }
  tn__reg_lock();
  chosen->refs++;
  tn__reg_unlock();
  *out = chosen;
  return TN_OK;
}

/* ---- entry points ---- */

/* Chooses and acquires a factory: *out counts as a session. text: gets the trace; NULL: none is wanted. */
static tn_status choose(const tn_session_options *options, tn__text *text, tn__factory **out, tn_error *err)
{
  *out = NULL;
  if (options == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "the session options are NULL");
  bool named = tn_session_options_runtime(options)[0] != 0;
  tn_status status = option_ranks(options, NULL, err);
  if (status == TN_OK) status = tn__scan_once(err);
  if (status != TN_OK) return status;
  for (bool done = false; !done;) {
    selection s = { .options = options, .trace = text };
    tn__factory *f = NULL;
    tn__text_init(&s.refusals, TEXT_LIMIT);
    if (text != NULL) tn__text_fini(text);
    status = !named || text != NULL ? collect(&s, err) : TN_OK;
    if (status == TN_OK) status = named ? select_named(&s, &f, err) : select_ranked(&s, &f, err);
    selection_fini(&s);
    if (status != TN_OK) return status;
    tn__reg_lock();
    done = f->usable; /* otherwise it was unregistered since: choose again */
    if (done) f->sessions++;
    tn__reg_unlock();
    if (done)
      *out = f;
    else
      tn__factory_unref(f);
  }
  return TN_OK;
}

tn_status tn__registry_acquire(const tn_session_options *options, tn__factory **out, tn_error *err)
{
  return choose(options, NULL, out, err);
}

tn_status tn__registry_find(const tn_session_options *options, const tn_session_factory **out, tn_error *err)
{
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "find a runtime: the out pointer is NULL");
  tn__factory *f = NULL;
  *out = NULL;
  tn_status status = choose(options, NULL, &f, err);
  if (status == TN_OK) *out = f->self;
  tn__factory_release(f);
  return status;
}

tn_status tn__registry_load(const char *name, tn_runtime_info *out, tn_error *err)
{
  if (name == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "load a runtime: %s is NULL",
                        name == NULL ? "the name" : "the out pointer");
  char shown[SHOWN_BYTES];
  tn_session_options *options = NULL;
  tn__factory *f = NULL;
  tn_status status = tn__give_info("", out, err);
  if (status != TN_OK) return status;
  status = tn__scan_once(err);
  if (status == TN_OK) status = tn_session_options_create(&options, err);
  if (status == TN_OK) status = tn_session_options_set_target(options, name, err);
  if (status == TN_OK && strcmp(tn_session_options_runtime(options), name) != 0)
    status = tn_error_set(err, TN_INVALID_ARGUMENT,
                          "load a runtime: '%s' is not a name; settings belong in a session's target",
                          target_shown(options, shown));
  if (status == TN_OK && name[0] == 0)
    status = tn_error_set(err, TN_INVALID_ARGUMENT, "load a runtime: the name is empty");
  bool known = status == TN_OK;
  if (status == TN_OK) {
    status = find_named(name, &f, err);
    if (status == TN_NOT_FOUND && tn_error_code(err) == TN_OK) status = not_known(options, err);
  }
  tn_session_options_destroy(options);
  if (known) tn__give_info(name, out, NULL);
  tn__factory_unref(f);
  return status;
}

tn_status tn__registry_explain(const tn_session_options *options, char *buffer, size_t size, size_t *needed,
                               tn_error *err)
{
  tn__text text;
  tn_error e = TN_ERROR_INIT;
  tn__factory *f = NULL;
  if (buffer == NULL) size = 0;
  if (size > 0) buffer[0] = 0;
  if (needed != NULL) *needed = 0;
  tn__text_init(&text, TEXT_LIMIT);
  tn_status status = choose(options, &text, &f, &e);
  if (status == TN_OK)
    tn__text_printf(&text, "chosen: %s\n", f->name);
  else
    tn__text_printf(&text, "none: %s: %s\n", tn_status_name(status), tn_error_message(&e));
  tn__factory_release(f);
  tn__reg_lock();
  tn__text_puts(&text, tn__text_get(&tn__reg.notes));
  tn__reg_unlock();
  if (text.failed && status == TN_OK) status = tn__no_memory(&e, "the explanation of a choice", text.size);
  if (needed != NULL) *needed = text.size;
  if (size > 0) {
    size_t n = text.size < size ? text.size : size - 1;
    memcpy(buffer, tn__text_get(&text), n);
    buffer[n] = 0;
  }
  tn__text_fini(&text);
  if (status != TN_OK) tn_error_copy(err, &e);
  tn_error_clear(&e);
  return status;
}
