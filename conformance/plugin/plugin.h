/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the plugin_*.c suites: the file on disk, the plugin opened by the kit's own host, and counted and guarded
 * memory.
 *
 * The kit's host provides the library's functions and wraps a few of them, so a suite can call callbacks one by one and
 * check the effects of each. Suites that need the registry load the plugin as programs do (cf_runtime_enter). */
#ifndef TENON_CONFORMANCE_PLUGIN_PLUGIN_H
#define TENON_CONFORMANCE_PLUGIN_PLUGIN_H

#include <stdarg.h>

#include <conformance/conformance.h>

#include <tenon/host.h>
#include <tenon/kit.h>
#include <tenon/resource.h>
#include <tenon/runtime.h>
#include <tenon/tenon.h>

/* ---- the file (plugin_elf.c) ---- */

enum { PG_MOST_KEYS = 64 };

typedef struct pg_file {
  const unsigned char *bytes;
  size_t size;
  char fault[200];         /* why it is not a readable shared object for this machine, or "" */
  const char *manifest;    /* the section's bytes, or NULL */
  size_t manifest_size;
  const char *keys[PG_MOST_KEYS]; /* "key=value" entries that are NUL-terminated */
  size_t n_keys;
  const char **exported;   /* symbols that it exports */
  size_t n_exported;
  const char **needed;     /* libraries that it needs */
  size_t n_needed;
} pg_file;

/* The file under test, read once per process; records a failure. Never NULL. */
const pg_file *pg_the_file(void);
/* Value of a key in the manifest, or NULL. */
const char *pg_value(const pg_file *file, const char *key);

/* ---- memory (plugin_heap.c) ---- */

/* Installs an allocator that counts blocks, and guards them on demand. */
void pg_heap_install(void);
/* From now on, each block that this thread allocates from the library's allocator has its own pages, which become
 * inaccessible when it is freed. */
void pg_guard_begin(void);
void pg_guard_end(void);
/* Makes only allocation n of this thread fail; 0: none. pg_failed tells whether that allocation was reached. */
void pg_fail_allocation(long n);
bool pg_failed(void);

/* Resources held by the process. -1: unknown on this system. */
typedef struct pg_held {
  int64_t blocks;  /* blocks of the library's allocator */
  int64_t heap;    /* bytes of the C library's heap */
  int64_t pages;   /* resident */
  int fds;
  int threads;
} pg_held;
pg_held pg_measure(void);
/* Records a failure if more is held than before; slack is in bytes of the C library's heap. */
void pg_check_held(const pg_held *before, const char *what, int64_t slack);

/* ---- the plugin (plugin_host.c) ---- */

typedef struct pg {
  void *handle;
  tn_plugin_query_fn entry;
  const tn_plugin *plugin;
  const tn_session_factory *factory; /* the factory named in its manifest */
  tn_session_factory slots;          /* its callbacks covered by its struct_size; the others are NULL */
  tn_error err;
} pg;

extern pg pg_it;

/* Each performs one more step after all earlier ones; false: a failure was recorded, or the text is in pg_it.err. */
bool pg_open(void);   /* dlopen and the entry's address */
bool pg_query(void);  /* the entry; only fields covered by struct_size may be read afterwards */
bool pg_choose(void); /* the factory */
tn_status pg_init(void);
/* All steps; ends the test if one fails. */
void pg_start(void);

/* Replace library functions for the plugin: they record registrations and the factory being reset. */
extern const tn_op_family **pg_families;
extern size_t pg_n_families;
extern const tn_session_factory *pg_stands_for; /* a program's factory that wraps the plugin's, or NULL */

/* Options with the target under test; settings replace the given ones (NULL: keep them). Ends the test without
 * memory. */
tn_session_options *pg_options(const char *settings);

/* Opens a session: returns its status, and the session in *out. Checks that an error has a text and OK a session. */
tn_status pg_new_session(const tn_session_options *options, tn_runtime_session **out, tn_error *err);
void pg_destroy_session(tn_runtime_session *session);

/* The result of its get_extension, called with a name that is unreadable afterwards. Also NULL if it has none. */
const void *pg_extension(const char *name, uint32_t version);
/* Its "tn_eager", up to its struct_size. NULL: it does not run single operations. */
const tn_eager_runtime *pg_eager(void);

/* Whether an error is usable by a caller: it has a known code and a text. */
bool pg_check_refusal(tn_status status, const tn_error *err, const char *who);

/* A program's factory that wraps the plugin's, so that the registry runs its sessions:
 * "conformance.front". The options and names passed to the plugin are freed and become unreadable
 * when a callback has returned. Makes ts_runtime() name the factory. */
void pg_front_register(void);

/* Now, in seconds. */
double pg_now(void);
/* Runs fn(user, i) for each i in [0, n) on a separate thread. */
void pg_threads(int n, void (*fn)(void *user, int i), void *user);

#endif
