/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the registry.
 *
 * One mutex (rank TN_RANK_REGISTRY) guards the lists of plugins and factories, and all counters and states in them.
 * In addition there is the loader token. Only the thread that holds it scans folders, calls libltdl, or runs a
 * plugin's entry, init and shutdown. The token is taken and given back under the mutex, but held without it. So
 * look-ups of loaded plugins never wait for a library that takes long to open, and no plugin code runs under a lock
 * of the library.
 *
 * Objects are reference-counted (`refs`, guarded by the mutex). A list holds one reference, and each thread that
 * uses an object without the mutex holds another. */
#ifndef TN_CORE_REGISTRY_INTERNAL_H
#define TN_CORE_REGISTRY_INTERNAL_H

#include <limits.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include <core/base/arena.h>
#include <core/base/text.h>
#include <core/base/threads/lock.h>
#include <core/registry/registry.h>

#define TN_NAME_BYTES 64 /* longest name of a runtime */

/* [a-z][a-z0-9_.]{0,63}, P-52, P-79 */
bool tn__runtime_name_ok(const char *name, size_t size);

/* Whether the name belongs to one of the library's own plugins. A third party's plugin of that name could be mistaken
 * for it (P-52). */
bool tn__name_is_reserved(const char *name);
#define TN_OWN_VENDOR "Tenon"

/* Whether the path has no control characters: paths are shown in messages, lists and terminals. */
bool tn__path_is_plain(const char *path, size_t size);

/* ---- manifest.c ---- */

typedef struct tn__manifest_pair {
  const char *key, *value;
} tn__manifest_pair;

/* Texts belong to the arena that was given to the parser; none is NULL after success. `types`, `flags` and `ops` are
 * lists separated by commas; `kernels` is "Op@DEVICE:types;Op@DEVICE:types". */
typedef struct tn__manifest {
  const char *name, *kind, *types, *version, *vendor, *entry, *flags, *kernels, *ops;
  int32_t abi_major, abi_minor, min_host_minor, rank;
  bool is_kernels;
  const tn__manifest_pair *pairs; /* all keys, unknown ones too, in the order of the file */
  size_t n_pairs;
} tn__manifest;

#define TN_MANIFEST_SECTION ".tenon.manifest"
#define TN_MANIFEST_MAX_BYTES 16384
#define TN_MANIFEST_MAX_KEYS 64
#define TN_MANIFEST_MAX_VALUE 1024
#define TN_MANIFEST_MAX_KERNELS 14336 /* of `ops`, too */

/* Parses the bytes of the section. Offsets in messages count from its start. P-15, P-18 */
tn_status tn__manifest_parse(const char *bytes, size_t size, tn__arena *arena, tn__manifest *out, tn_error *err);

/* May a plugin of this ABI run in this library (P-28)? The message names the older side and the remedy (P-30). */
tn_status tn__abi_check(int32_t plugin_major, int32_t plugin_minor, int32_t min_host_minor, int32_t host_major,
                        int32_t host_minor, tn_error *err);

/* ---- elf.c ---- */

#define TN_OBJECT_PAGE 8192

/* An object in an open file, or in memory if fd is -1. The caller sets fd, bytes and size, and zeroes the rest. */
typedef struct tn__object {
  int fd;
  const unsigned char *bytes;
  uint64_t size;
  uint64_t page_at; /* offset of the page read last: headers are small and close together */
  size_t page_size;
  unsigned char page[TN_OBJECT_PAGE];
} tn__object;

/* Checks that the object is a shared object for this process and that everything its tables refer to lies within it,
 * so that mapping it cannot touch bytes beyond its end (P-17). Then copies the manifest's section: *section is borrowed
 * from the arena. TN_INVALID_ARGUMENT with the offset; "no .tenon.manifest" if it has no manifest (P-20). */
tn_status tn__elf_read_manifest(tn__object *object, tn__arena *arena, const char **section, size_t *size,
                                tn_error *err);

/* ---- security.c ---- */

/* Whether this process has elevated privileges, that is, more than its caller: then tn__getenv returns nothing (P-77)
 * and files are checked more strictly. */
bool tn__elevated(void);

typedef struct tn__file_id {
  dev_t dev;
  ino_t ino;
  off_t size;
  struct timespec mtime;
} tn__file_id;
bool tn__same_file(const tn__file_id *a, const tn__file_id *b); /* device and inode */

/* Walks an absolute path from the root, through symbolic links, and refuses it if another user could change the loaded
 * file (P-78). *id is the file's. TN_PERMISSION_DENIED names the component and its mode; TN_NOT_FOUND,
 * TN_INVALID_ARGUMENT (not a regular file, too many links). *foreign (may be NULL): a component is owned by neither
 * root nor this user. */
tn_status tn__path_check(const char *path, bool elevated, tn__file_id *id, bool *foreign, tn_error *err);
/* The same for a folder. */
bool tn__folder_is_safe(const char *path, bool elevated, bool *foreign);
/* The same for a file in a folder that has just been checked: only the last component is checked. */
tn_status tn__path_check_last(const char *path, bool elevated, tn__file_id *id, bool *foreign, tn_error *err);

/* ---- uninstalled.c ---- */

/* The plugin folder and the probe program of the build tree that contains this library. False if the library was
 * installed or the process has elevated privileges; path is undefined then. */
bool tn__uninstalled_plugins(char path[PATH_MAX]);
bool tn__uninstalled_probe(char path[PATH_MAX]);

/* ---- plugins and factories ----
 *
 * A scan makes a plugin REFUSED or FOUND. A load turns FOUND into LOADED; into UNAVAILABLE if init returned
 * TN_UNAVAILABLE; into FAILED on any other error, but for a lack of memory before init, which leaves FOUND. When the
 * last factory is unregistered, LOADED becomes GONE, and then FOUND again if the plugin is unloadable. A rescan
 * replaces REFUSED and FAILED plugins by what it finds; those whose init was called, or that are LOADED, UNAVAILABLE
 * or GONE, stay for the life of the process.
 *
 * Texts in a plugin's arena are never changed or freed before the plugin, so a thread with a reference may read them
 * without the mutex. */

typedef enum tn__plugin_state {
  TN__PLUGIN_REFUSED,     /* the file cannot be loaded: `error` */
  TN__PLUGIN_FOUND,       /* can be loaded */
  TN__PLUGIN_LOADED,      /* its factories are registered */
  TN__PLUGIN_UNAVAILABLE, /* its init declined: the name stays registered as unusable, `error` */
  TN__PLUGIN_FAILED,      /* was opened, and failed: `error` */
  TN__PLUGIN_GONE         /* was unregistered, stays mapped */
} tn__plugin_state;

typedef struct tn__plugin tn__plugin;
struct tn__plugin {
  tn__plugin *next; /* in order of names, files without a name last, then in order of search */
  tn__arena arena;  /* every text of the plugin */
  const char *path; /* of a linked module: "preloaded " and its name */
  const char *module; /* "direct.a"; NULL: a file */
  const char *linked; /* the manifest of a linked module */
  size_t linked_size;
  tn__file_id id;
  size_t order; /* position in the search */
  tn__manifest manifest;
  bool named;  /* manifest is set */
  bool claims; /* named, and trusted enough to hide later files of its name */
  bool foreign;
  bool disabled; /* refused, because it was switched off */
  int32_t rank;  /* the manifest's, or that of the file beside it */
  const char *settings; /* "key=value,...": defaults for targets that do not set them; NULL: none */
  bool initialised; /* init was called: it is not called again, and only an unloadable plugin is ever unmapped */

  /* guarded by the registry's mutex */
  uint32_t refs;
  tn__plugin_state state;
  tn_error error;
  const char *reason;  /* `error` with its causes, one line; in the arena */
  size_t n_registered; /* factories in the registry */

  /* set while loading, by the holder of the token */
  void *handle; /* lt_dlhandle */
  tn_host host;
  const tn_plugin *described;
  tn__factory *made; /* chain through `sibling` */
  tn__plugin_call loading;

  _Atomic size_t buffers;
};

/* `self` is the struct of the plugin or program. `table` is a copy of the slots that it covers, padded with NULL to
 * this library's size (P-26); its name is `name`. */
struct tn__factory {
  tn__factory *next; /* in order of names */
  tn__factory *sibling;
  char *name;
  tn__plugin *plugin; /* NULL: the program's; referenced */
  const tn_session_factory *self;
  tn_session_factory table;
  int32_t rank; /* of the manifest */

  /* guarded by the registry's mutex */
  uint32_t refs;   /* memory */
  size_t sessions; /* acquired */
  size_t calls;    /* callbacks that run now */
  bool listed;     /* in the registry's list: the name is taken */
  bool usable;     /* may be chosen: its plugin's init is over, and it is not being unregistered */

  _Atomic(void *) slot;
  void (*slot_destroy)(void *slot);
};

typedef struct tn__rank_override {
  char *name;
  int32_t rank;
} tn__rank_override;

/* A folder of the search list, as the last scan found it. */
typedef struct tn__searched {
  char *path;
  const char *fault; /* static; "" when it was read */
} tn__searched;

/* `scanned`, `files`, `frozen` and `orphaned` are guarded by mu, as are the lists. */
typedef struct tn__registry {
  tn__mutex mu;
  tn__cond cond; /* the token was given back */
  bool token;
  bool scanned;
  bool frozen;     /* tn_freeze: no plugin is loaded any more */
  bool files;      /* tn_runtime_allow_files: loading by path is allowed */
  bool orphaned;   /* this process was forked while another thread had the token */
  tn__plugin *plugins;
  tn__factory *factories;

  /* Search list of the program, front first. Guarded by mu; each is from tn__strdup. */
  char **directories;
  size_t n_directories, directories_capacity;

  /* From TENON_RANK at the last scan; guarded by mu. */
  tn__rank_override *ranks;
  size_t n_ranks, ranks_capacity;
  tn__searched *searched; /* guarded by mu */
  size_t n_searched, searched_capacity;
  tn__text notes; /* remarks of the last scan, a line each; guarded by mu */

  const tn_host *host;
  bool ltdl_ready; /* lt_dlinit was called; under the token */
} tn__registry;

extern tn__registry tn__reg;

/* ---- token.c ---- */

void tn__reg_lock(void);
void tn__reg_unlock(void);

/* Takes the token; blocks while another thread has it. The caller does not hold the mutex. TN_FAILED_PRECONDITION in a
 * thread that holds the token already, which is a plugin's constructor, entry or init that requests another plugin
 * (P-53, P-70). `what` is for that message. */
tn_status tn__token_take(const char *what, tn_error *err);
void tn__token_give(void);
bool tn__token_mine_locked(void); /* this thread has it */

/* ---- plugin.c ---- */

tn_status tn__plugin_create(const char *path, tn__plugin **out, tn_error *err);
void tn__plugin_destroy(tn__plugin *plugin); /* NULL allowed */
/* Stores why a plugin is refused or has failed. False if memory ran out; a general text is stored then. */
bool tn__plugin_blame(tn__plugin *plugin, const tn_error *error);
void tn__plugin_ref_locked(tn__plugin *plugin);
void tn__plugin_unref(tn__plugin *plugin); /* without the mutex; NULL allowed */
void tn__plugin_insert_locked(tn__plugin *plugin);
int tn__plugin_compare(const tn__plugin *a, const tn__plugin *b); /* the order of the list */
/* Replaces control characters by blanks, from `begin` on. */
void tn__text_make_plain(tn__text *text, size_t begin);

/* ---- factory.c ---- */

/* Makes a factory object for the plugin's or program's own struct: checks P-37 and the name. Does not add it to the
 * registry. `name` NULL: the struct's own name. The caller gets the only reference. */
tn_status tn__factory_create(const char *name, const tn_session_factory *self, tn__plugin *plugin, tn__factory **out,
                           tn_error *err);
/* Takes the name: TN_ALREADY_EXISTS with both origins. The list holds a reference from then on. */
tn_status tn__factory_insert_locked(tn__factory *factory, tn_error *err);
void tn__factory_remove_locked(tn__factory *factory); /* the list's reference becomes the caller's */
tn__factory *tn__factory_find_locked(const char *name);
/* Drops a reference; the last one frees the factory. Without the mutex. */
void tn__factory_unref(tn__factory *factory);
/* Normalises a status that plugin code returned; `what` names the callback. See tn__factory_status. */
tn_status tn__sane_status(tn_status status, const char *what, tn_error *err);

/* ---- registry.c ---- */

/* The static rank: TENON_RANK, else that of the plugin. */
int32_t tn__rank_of_locked(const char *name, int32_t rank);

/* Whether another plugin of the same name and kind takes precedence over it. */
bool tn__plugin_shadowed_locked(const tn__plugin *plugin);
/* The file that takes precedence (P-13); "" if that is a runtime without a file, NULL if there is none. */
const char *tn__plugin_shadow_locked(const tn__plugin *plugin);

/* The plugin of kind "runtime" that would be loaded for this name; if there is none, a plugin of the name, whose error
 * explains why; else NULL. */
tn__plugin *tn__plugin_by_name_locked(const char *name);

/* ---- listing.c ---- */

/* For messages about a name that no runtime has: " (it is a kernel plugin)", " (did you mean 'direct'?)" or nothing. */
void tn__hint_locked(const char *name, tn__text *text);
/* For messages: "name (origin), ..." for every runtime and plugin, with its fault if it has one. */
void tn__describe_known_locked(tn__text *text);
/* Fills a caller's info by the runtime's name; all texts are empty if no runtime has it. */
tn_status tn__give_info(const char *name, tn_runtime_info *out, tn_error *err);
/* The same for a plugin to which the caller holds a reference. */
void tn__give_plugin_info(const tn__plugin *plugin, tn_runtime_info *out);

/* ---- discovery.c ---- */

/* Scans unless a scan has already succeeded. Without the mutex. */
tn_status tn__scan_once(tn_error *err);
/* Scans again. The caller holds the token. On failure the registry is unchanged. */
tn_status tn__scan(tn_error *err);

/* ---- examine.c ---- */

/* Opens, checks and reads one file, or a linked module: fills id, manifest, state and error of a plugin whose path is
 * set. Fails only if memory ran out. */
tn_status tn__plugin_examine(tn__plugin *plugin, tn_error *err);
/* The same for a file in a folder for which tn__folder_is_safe has just returned true. */
tn_status tn__plugin_examine_in(tn__plugin *plugin, bool folder_foreign, tn_error *err);

/* ---- sidecar.c ---- */

/* The content of a NAME.conf. The caller sets path, rank and settings before parsing. */
typedef struct tn__sidecar {
  const char *path; /* for messages */
  size_t line;      /* the last line that was read */
  bool off, says_enabled;
  int64_t rank;      /* -1: not given */
  tn__text settings; /* "KEY=VALUE,...", as in a target */
} tn__sidecar;

/* Reads the lines of such a file. */
tn_status tn__sidecar_parse(tn__sidecar *c, const char *bytes, size_t size, tn_error *err);

/* Reads NAME.conf beside NAME.so, if the folder has such files, and refuses the plugin if that file or the environment
 * disables it, or if the file is invalid (P-21, P-22). Fails only if memory ran out. */
tn_status tn__plugin_configure(tn__plugin *plugin, bool has_files, tn_error *err);

/* ---- debug.c ---- */

/* A line for TENON_DEBUG=load: once in a process for each path, verdict and reason (P-65). `begin` is tn__now_ns. */
void tn__debug_load(const char *path, const char *verdict, const char *reason, int64_t begin);

/* ---- mapped.c ---- */

/* False if the code at `address` is certainly not that of the open file (P-80); true if it is or may be. */
bool tn__mapped_from(int fd, const void *address);

/* ---- preloaded.c ---- */

/* The table of the plugins linked into libtenon, of libltdl's type; NULL: none (preloaded_own.c, preloaded_none.c). */
extern const void *const tn__own_modules;

/* Starts libltdl, once. The caller holds the token. */
tn_status tn__ltdl_start(tn_error *err);
/* Adds a table made by libtool, after the library's own. *before: the number of tables before the call, for
 * tn__preloaded_forget. The caller holds the token, as for the next two. */
tn_status tn__preloaded_add(const void *symbols, size_t *before, tn_error *err);
size_t tn__preloaded_tables(void);
/* Drops all but the first `before` tables: scans no longer search them. libltdl keeps them. */
void tn__preloaded_forget(size_t before);
/* Examines each plugin that is linked into the program and passes it to `take`, which owns it from then on, also if it
 * fails. The caller holds the token. */
tn_status tn__each_preloaded(tn_status (*take)(void *user, tn__plugin *plugin, tn_error *err), void *user,
                             tn_error *err);
/* Opens a linked plugin: sets `handle`. The caller holds the token. */
tn_status tn__open_preloaded(tn__plugin *plugin, tn_error *err);

/* ---- loader.c ---- */

/* Loads a plugin that a scan found, and registers its factories or kernels. Returns TN_OK at once if it is already
 * loaded. The caller holds a reference and neither mutex nor token. */
tn_status tn__plugin_load(tn__plugin *plugin, tn_error *err);
/* Whether its manifest allows unmapping it (P-74). It is unmapped after its shutdown, once its last factory is gone. */
bool tn__plugin_unloadable(const tn__plugin *plugin);
/* Unmaps it, which restores the state before its load. The caller holds the token, not the mutex. */
void tn__plugin_unload(tn__plugin *plugin);
/* Calls shutdown, if there is one. The caller holds the token, not the mutex. */
tn_status tn__plugin_shutdown(tn__plugin *plugin, tn_error *err);
/* Called around calls of a factory's slots: a load from inside such a call is refused (P-70). Per thread; may nest. */
void tn__callback_enter(void);
void tn__callback_leave(void);

#endif
