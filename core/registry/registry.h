/* SPDX-License-Identifier: Apache-2.0 */
/* The registry for the rooms above: core/host gives it the host table, core/session acquires factories.
 * The public functions (tn_runtime_..., tn_session_options_...) are in <tenon/session.h> and <tenon/options.h>. */
#ifndef TN_CORE_REGISTRY_H
#define TN_CORE_REGISTRY_H

#include <core/base/plugin_call.h>
#include <stdbool.h>
#include <tenon/host.h>
#include <tenon/runtime.h>

/* A session factory under its name, registered by the program or by a plugin that was loaded. */
typedef struct tn__factory tn__factory;

/* ---- choosing ---- */

/* Chooses exactly one factory by the options' target, or by rank when that is empty; loads its plugin if need be and
 * asks accepts_options. The caller holds *out (a "session" in the words of tn_runtime_unregister) and releases it.
 * Plugin code runs on this thread, outside all locks: hold none of a rank at or above TN_RANK_REGISTRY.
 * NULL options are TN_INVALID_ARGUMENT. *out is NULL on failure. The host must be installed: call tn__host_install
 * first. Codes as tn_session_create; S-OPT-03 to 12, P-54 to P-59. */
tn_status tn__registry_acquire(const tn_session_options *options, tn__factory **out, tn_error *err);
tn__factory *tn__factory_ref(tn__factory *factory);
void tn__factory_release(tn__factory *factory); /* NULL allowed */

/* Adds to the options' target the settings of the file beside the plugin that the target does not set (P-21). */
tn_status tn__factory_complete(const tn__factory *factory, tn_session_options *options, tn_error *err);

/* The factory's slots in a struct of this library's full size: slots that the plugin's struct_size does not cover are
 * NULL. Call slots as  vtable->new_session(tn__factory_self(f), ...): `self` is the plugin's own object, which may be
 * larger. */
const tn_session_factory *tn__factory_vtable(const tn__factory *factory);
const tn_session_factory *tn__factory_self(const tn__factory *factory);

/* The factory with this `self`, held for the caller; NULL if it is not registered. For tn_kit_reset. */
tn__factory *tn__factory_by_self(const tn_session_factory *self);

const char *tn__factory_name(const tn__factory *factory);
/* A record of a call into the factory; `call` is static. */
tn__plugin_call tn__factory_call(const tn__factory *factory, const char *call);
/* Fills all of *out, struct_size too; texts live as long as the caller holds the factory. */
void tn__factory_info(const tn__factory *factory, tn_runtime_info *out);

/* Normalises the status that a slot of the factory returned: a status without text gets one, a number that is no status
 * becomes TN_INTERNAL, and the text is prefixed with "runtime 'name' (file): " (P-64). TN_OK passes. `slot` names
 * the callback. Returns the code. Does not itself prefer `err` over `status`: the code is the slot's. */
tn_status tn__factory_status(const tn__factory *factory, const char *slot, tn_status status, tn_error *err);

/* One pointer for the rooms above (the containers), initially NULL. It can be set once: false if it is set already
 * (another thread was faster: use tn__factory_slot). destroy is called when the factory is unregistered. */
void *tn__factory_slot(const tn__factory *factory);
bool tn__factory_set_slot(tn__factory *factory, void *slot, void (*destroy)(void *slot));

/* Loads the kernel plugins that offer kernels for one of these ops on the device and are not loaded yet. The caller
 * holds no lock. */
void tn__registry_want_kernels(const char *const *ops, size_t n, const char *device);

/* New ops. offers: whether the manifest of a plugin that is not loaded names this op. want: loads the plugin of the
 * highest rank that does. explain: why none could be used, "; plugin ...", or "" if no plugin has the op. The caller
 * holds no lock. */
bool tn__registry_offers_op(const char *name, size_t size);
void tn__registry_want_op(const char *name, size_t size);
void tn__registry_explain_op(const char *name, char *buffer, size_t size);

/* ---- options by number ---- */

/* TN__OPTION_level, ...: the fields by number, for callers that read many of them. */
#define TN__OPTION_NUMBER(name, KIND, value, text) TN__OPTION_##name,
enum { TN_OPTION_MAP(TN__OPTION_NUMBER) TN__N_OPTIONS };

/* The value of a field of this kind: INT or BOOL, FLOAT, STRING, LIST. Texts and lists are borrowed. */
int64_t tn__option_number(const tn_session_options *options, int field);
double tn__option_real(const tn_session_options *options, int field);
const char *tn__option_string(const tn_session_options *options, int field);
size_t tn__option_n_items(const tn_session_options *options, int field);
const char *tn__option_item_at(const tn_session_options *options, int field, size_t i, int64_t *number); /* the text */

/* The kept ConfigProto, as bytes; *size is 0 for none. keep copies them. */
const char *tn__options_config(const tn_session_options *options, size_t *size);
tn_status tn__options_keep_config(tn_session_options *options, const void *bytes, size_t size, tn_error *err);
/* Exchanges all that two of them hold. */
void tn__options_swap(tn_session_options *a, tn_session_options *b);

/* ---- for core/host ---- */

/* The table that plugins are given: each gets a copy with its own `self`. It must live for ever. Before the first
 * plugin is loaded; later calls with the same table do nothing. */
void tn__registry_set_host(const tn_host *host);

/* Count and uncount a holder of the plugin whose host has this `self`: buffers of a plugin keep it registered.
 * Lock free, any thread. NULL allowed. */
void tn__registry_hold_plugin(void *self);
void tn__registry_drop_plugin(void *self);

/* The parts of tn_runtime_load, tn_runtime_load_file, tn_load_op_library, tn_probe_serve, tn_explain_selection and
 * tn_runtime_find that come after installing the host. */
tn_status tn__registry_load(const char *name, tn_runtime_info *out, tn_error *err);
tn_status tn__registry_load_file(const char *path, bool kernels, tn_runtime_info *out, tn_error *err);
/* `try_session` is called with the name of a runtime that was loaded. */
int tn__probe_serve(tn_status (*try_session)(const char *name, tn_error *err));
tn_status tn__registry_explain(const tn_session_options *options, char *buffer, size_t size, size_t *needed,
                               tn_error *err);
tn_status tn__registry_find(const tn_session_options *options, const tn_session_factory **out, tn_error *err);

#endif
