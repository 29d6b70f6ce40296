/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a plugin: the manifest, the entry point, the session factory.
 *
 * A plugin is a shared object compiled with -DTN_PLUGIN=<module> that needs no symbol of the
 * library. Exactly one of its source files contains:
 *
 *   TN_PLUGIN_MANIFEST("runtime", "acme.fast", "CPU", "0", "1.0.0", "Acme", "")
 *   static const tn_session_factory factory = { .struct_size = TN_SESSION_FACTORY_SIZE, .name = "acme.fast", ... };
 *   static const tn_session_factory *const factories[] = { &factory };
 *   static const tn_plugin plugin = { .struct_size = TN_PLUGIN_SIZE, ..., .factories = factories, .n_factories = 1 };
 *   TN_PLUGIN_DEFINE(plugin)
 *
 * Rules P-15, P-23 to P-38. Since 0.1 */
#ifndef TENON_RUNTIME_H
#define TENON_RUNTIME_H

#include <tenon/kit.h>
#include <tenon/options.h>
#include <tenon/process.h>
#include <tenon/session.h>

TN_BEGIN_DECLS

#define TN__CAT2(a, b) a##b
#define TN__CAT(a, b) TN__CAT2(a, b)
#define TN__STR2(a) #a
#define TN__STR(a) TN__STR2(a)

enum {
  TN_PLUGIN_RUNTIME = 1, /* provides session factories */
  TN_PLUGIN_KERNELS = 2  /* provides ops or kernels */
};

/* Description of a plugin. Static data, valid until shutdown.
 * init              called once in a process, before any other callback; may be NULL.
 *                   TN_UNAVAILABLE with a reason keeps the name registered as unusable; any other
 *                   error undoes the load. Calls are serialised.
 * shutdown          called when the last of its factories is unregistered, not when the process
 *                   ends; joins the threads that the plugin made. May be NULL. If it returns an
 *                   error, the plugin stays loaded.
 * register_kernels  required for kind TN_PLUGIN_KERNELS: calls tn_register_ops. */
struct tn_plugin {
  size_t struct_size;
  int32_t abi_major;
  int32_t abi_minor;
  int32_t kind; /* TN_PLUGIN_RUNTIME or TN_PLUGIN_KERNELS */
  int32_t reserved;
  const char *name;
  const char *version;
  const char *types;    /* device types, separated by commas, as in the manifest */
  const char *manifest; /* set by TN_PLUGIN_DEFINE */
  const tn_session_factory *const *factories;
  size_t n_factories;
  tn_status (*init)(tn_error *err);
  tn_status (*shutdown)(tn_error *err);
  tn_status (*register_kernels)(tn_error *err);
};
#define TN_PLUGIN_SIZE TN_SIZE_TO(tn_plugin, register_kernels)

/* A session factory: makes the sessions of one runtime. `self` is the factory itself.
 *
 * Required (rule P-37): name, new_session, accepts_options, destroy_session. NULL in any other slot
 * selects the default that its comment names. All callbacks may be called from several threads at
 * once. Options and strings passed in are valid only during the call. */
struct tn_session_factory {
  size_t struct_size;
  const char *name;
  void *user; /* the plugin's own data */

  /* Makes the plugin's data for one session (its own struct, cast to tn_runtime_session). TN_OK
   * with *out NULL breaks the contract. */
  tn_status (*new_session)(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                           tn_error *err);
  /* True if the runtime accepts the options. Pure, below a millisecond, accesses no hardware,
   * stores nothing. */
  tn_bool (*accepts_options)(const tn_session_factory *self, const tn_session_options *options);
  /* Frees a session, also one whose opening failed after new_session. All its executables are
   * released before, and no step runs. */
  void (*destroy_session)(const tn_session_factory *self, tn_runtime_session *session);

  /* Turns a plan into an executable of the runtime. The plan lives as long as the executable.
   * Default: tn_kit_prepare. The defaults of release and step only accept executables of
   * tn_kit_prepare: a plugin with executables of its own sets all three. */
  tn_status (*prepare)(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                       tn_executable **out, tn_error *err);
  /* Frees an executable; no step of it runs. Default: tn_kit_release. */
  void (*release)(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable);
  /* Runs one step to its end, on the caller's thread or another. Reads inputs and sets outputs
   * through tn_step_... Several steps of one executable may run at once. Default: tn_kit_step on
   * the caller's thread. */
  tn_status (*step)(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                    tn_step *step, tn_error *err);
  /* Notifies the runtime that a step in flight was cancelled or its session closed. Called once,
   * from any thread, outside all locks; must not block. It may be called before `step` begins;
   * `step` does not return until this callback has. It is not called when a time limit passes: call
   * tn_step_cancelled for that. Default: none; the kit's steps check all of these conditions
   * themselves. */
  void (*cancel)(const tn_session_factory *self, tn_runtime_session *session, tn_step *step);

  /* Device i of the session; TN_OUT_OF_RANGE past the end, where no error text is needed. At least
   * one must be of type CPU. Strings live as long as the session. Default: as many CPUs as the
   * option device_count says. */
  tn_status (*list_devices)(const tn_session_factory *self, tn_runtime_session *session, size_t i, tn_device_info *out,
                            tn_error *err);
  /* Detaches the named containers (n = 0: the default one; flags TN_RESET_ALL: all) and closes the
   * factory's sessions without waiting. A name that was never used is not an error.
   * Default: TN_UNIMPLEMENTED. tn_kit_reset can be used here. */
  tn_status (*reset)(const tn_session_factory *self, const tn_session_options *options, const char *const *containers,
                     size_t n, uint32_t flags, tn_error *err);
  /* Explains in one text in `err` why options are rejected; called after accepts_options returned
   * false. Default: a general message. */
  void (*explain_options)(const tn_session_factory *self, const tn_session_options *options, tn_error *err);
  /* The rank for these options, at most `rank`; 0 = not selected. Only used for empty targets.
   * Default: `rank`. */
  int32_t (*rank_for_options)(const tn_session_factory *self, const tn_session_options *options, int32_t rank);
  /* TN_OK, or why the runtime cannot be used now. Called before each accepts_options. Default:
   * TN_OK. */
  tn_status (*health)(const tn_session_factory *self, tn_error *err);
  /* Whether the session supports partial runs. The kit runs these on the calling threads with the
   * help of `workers`; prepare and step are not called. A runtime that executes plans entirely by
   * itself does not support them and returns TN_UNIMPLEMENTED with the reason. Default: TN_OK.
   * Since 0.1, S-PR-33 */
  tn_status (*partial_runs)(const tn_session_factory *self, tn_runtime_session *session, tn_error *err);
  /* The workers of a pool of the session, by the index that a call gives
   * (tn_run_options.inter_op_pool, never negative). They help with steps that the kit runs for the
   * session by itself, that is, partial runs. Borrowed, valid as long as the session. NULL: only
   * the calling threads work. Default: NULL. Since 0.1 */
  tn_kit_workers *(*workers)(const tn_session_factory *self, tn_runtime_session *session, int32_t pool);
  /* Further interfaces of the runtime, by name and version. Returns NULL for a name that is unknown
   * or NULL. "tn_eager" in version 1 is a tn_eager_runtime. The result is the same each time and
   * valid until the plugin's shutdown. Default: none. Since 0.1, P-34 */
  const void *(*get_extension)(const tn_session_factory *self, const char *name, uint32_t version);
  /* The device of a node that names none, for the placement log and tn_session_device_of: the name
   * of a device of list_devices, or NULL for the first CPU. *reason is "" and may be set to an
   * explanation. Strings stay valid as long as the session. It may be called before and after the
   * node was prepared, and the result may differ. It must not call the session. Default: NULL.
   * Since 0.1, S-CFG-07, S-CFG-09 */
  const char *(*node_device)(const tn_session_factory *self, tn_runtime_session *session, const tn_operation *op,
                             const char **reason);
};
#define TN_SESSION_FACTORY_SIZE TN_SIZE_TO(tn_session_factory, node_device)
#define TN_SESSION_FACTORY_MIN_SIZE TN_SIZE_TO(tn_session_factory, destroy_session)

/* Extension "tn_eager", version 1: the runtime runs single operations for eager sessions. As for
 * any other session, new_session makes the session, and prepare turns a plan of one operation into
 * an executable; several threads may run one executable at once.
 * execute     runs it, usually many times with little work each, under the rules of the factory's
 *             step; the factory's cancel applies to it too. NULL: step.
 * A runtime whose non-CPU devices run operations has the next two. If they are NULL or not covered
 * by the struct, its eager sessions only have its devices of type CPU.
 * prepare_on  like prepare, for a plan that runs on device i of list_devices, which its node names.
 *             Outputs stay in memory of that device, except those that kernels read on the host
 *             anyway. Release and execute as for any other executable. TN_UNIMPLEMENTED, with the
 *             reason: the device has no kernel for it. The session then runs it on a CPU, or
 *             reports the error.
 * copy        makes a tensor with the elements of another one in memory of device i.
 *             TN_UNIMPLEMENTED, with the reason: the device cannot hold these elements. Several
 *             threads at once.
 * With prepare_on and copy, inputs of all executables may be in memory of any of the devices.
 * Since 0.1, S-EAG */
typedef struct tn_eager_runtime {
  size_t struct_size;
  tn_status (*execute)(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                       tn_step *step, tn_error *err);
  tn_status (*prepare_on)(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, size_t i,
                          tn_executable **out, tn_error *err);
  tn_status (*copy)(const tn_session_factory *self, tn_runtime_session *session, const tn_tensor *tensor, size_t i,
                    tn_tensor **out, tn_error *err);
} tn_eager_runtime;
#define TN_EAGER_RUNTIME_SIZE TN_SIZE_TO(tn_eager_runtime, copy)
#define TN_EAGER_RUNTIME_MIN_SIZE TN_SIZE_TO(tn_eager_runtime, execute)
#define TN_EAGER_EXTENSION "tn_eager"

/* Type of the entry point that the host looks up by the manifest's `entry`. `host` stays valid
 * until shutdown has returned. NULL: the plugin refuses to load, with the reason in err. */
typedef const tn_plugin *(*tn_plugin_query_fn)(const tn_host *host, tn_error *err);

#ifdef TN_PLUGIN
#define TN__ENTRY TN__CAT(TN_PLUGIN, _LTX_tn_plugin_query)
/* The symbol of the manifest contains the module's name, by which a program with the plugin linked
 * in finds it (rule P-89). A shared object does not export it. */
#define tn__manifest TN__CAT(TN_PLUGIN, _LTX_tn_plugin_manifest)

#ifdef __cplusplus
#define TN__C_LINKAGE extern "C"
#define TN__C_EXTERN extern "C"
#else
#define TN__C_LINKAGE
#define TN__C_EXTERN extern
#endif

/* The manifest, read from the file without running its code: key=value texts, each NUL-terminated
 * (rule P-15).
 * kind     "runtime" or "kernels"
 * types    "CPU,GPU"
 * rank     "0" to "1000", 0 = by name only
 * flags    "" or "unloadable"
 * kernels  of TN_PLUGIN_MANIFEST_KERNELS: the ops that it has kernels for, for example
 *          "MatMul@CPU:float|bfloat16;Conv2D@CPU:float"
 * ops      of TN_PLUGIN_MANIFEST_OPS, for a plugin that provides ops of its own: their names, for
 *          example "AcmeScale,AcmeClip". The plugin is loaded when a graph names one of them, and
 *          its register_kernels must register them all. */
#define TN_PLUGIN_MANIFEST(kind, name, types, rank, version, vendor, flags) \
  TN_PLUGIN_MANIFEST_KERNELS(kind, name, types, rank, version, vendor, flags, "")
#ifndef TN_PLUGIN_MIN_HOST
#define TN_PLUGIN_MIN_HOST TN_ABI_MINOR
#endif
#define TN_PLUGIN_MANIFEST_KERNELS(kind, name, types, rank, version, vendor, flags, kernels) \
  TN__PLUGIN_MANIFEST(kind, name, types, rank, version, vendor, flags, kernels, "")
#define TN_PLUGIN_MANIFEST_OPS(name, types, rank, version, vendor, ops, kernels) \
  TN__PLUGIN_MANIFEST("kernels", name, types, rank, version, vendor, "", kernels, "\0ops=" ops)
#define TN__PLUGIN_MANIFEST(kind, name, types, rank, version, vendor, flags, kernels, more)                        \
  TN__C_EXTERN __attribute__((visibility("hidden"))) const char                                                    \
      tn__manifest[sizeof(TN__MANIFEST_TEXT(kind, name, types, rank, version, vendor, flags, kernels, more))];     \
  const char tn__manifest[] __attribute__((section(".tenon.manifest"), used)) =                                    \
      TN__MANIFEST_TEXT(kind, name, types, rank, version, vendor, flags, kernels, more);
/* Ends in an empty text, which marks the end if the plugin is linked into a program. */
#define TN__MANIFEST_TEXT(kind, name, types, rank, version, vendor, flags, kernels, more)                            \
  "format=1\0kind=" kind "\0name=" name "\0types=" types "\0rank=" rank "\0version=" version "\0vendor=" vendor      \
  "\0flags=" flags "\0kernels=" kernels more "\0abi=" TN__STR(TN_ABI_MAJOR) "." TN__STR(TN_ABI_MINOR)                \
  "\0min_host=" TN__STR(TN_ABI_MAJOR) "." TN__STR(TN_PLUGIN_MIN_HOST) "\0entry=" TN__STR(TN__ENTRY) "\0"

/* Defines the host pointer and the entry point; `plugin` is a static const tn_plugin. */
#define TN_PLUGIN_DEFINE(plugin)                                                          \
  __attribute__((visibility("hidden"))) const tn_host *TN_HOST_TABLE = NULL;              \
  TN__C_LINKAGE TN_EXPORT const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err); \
  const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err)                          \
  {                                                                                       \
    static tn_plugin described;                                                           \
    (void)err;                                                                            \
    TN_HOST_TABLE = host;                                                                 \
    described = (plugin);                                                                 \
    described.manifest = tn__manifest;                                                    \
    return &described;                                                                    \
  }
#endif

TN_END_DECLS

#ifdef TN_PLUGIN
#include <tenon/host.h>
#endif
#endif
