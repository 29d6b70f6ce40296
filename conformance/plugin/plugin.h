/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin_*.c suites share: the file as it lies on the disk, the plugin opened by a host of the kit's own, memory that is
 * counted and guarded.
 *
 * The kit's host gives the functions of the library, with its own in front of a few; so a suite calls one callback after the
 * other and sees what each leaves behind. Suites that need the registry load the plugin as programs do (cf_runtime_enter). */
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
  char fault[200];         /* why it cannot be read as a shared object of this machine; "" */
  const char *manifest;    /* the section's bytes; NULL: it has none */
  size_t manifest_size;
  const char *keys[PG_MOST_KEYS]; /* "key=value", as far as they are NUL-terminated */
  size_t n_keys;
  const char **exported;   /* symbols that it defines for others */
  size_t n_exported;
  const char **needed;     /* libraries that it names */
  size_t n_needed;
} pg_file;

/* The file under test, read once in a process; a failure is recorded. Never NULL. */
const pg_file *pg_the_file(void);
/* Value of a key of the manifest, NULL when it has none. */
const char *pg_value(const pg_file *file, const char *key);

/* ---- memory (plugin_heap.c) ---- */

/* Makes the process's allocator one that counts, and guards on demand. */
void pg_heap_install(void);
/* From now on what this thread gets from the library's allocator lies in pages of its own, which cannot be touched any more once
 * it was freed. */
void pg_guard_begin(void);
void pg_guard_end(void);
/* Allocation n of this thread fails, and none after it; 0: none does. True of pg_failed when it came to that. */
void pg_fail_allocation(long n);
bool pg_failed(void);

/* What a process holds. -1: not known here. */
typedef struct pg_held {
  int64_t blocks;  /* of the library's allocator */
  int64_t heap;    /* bytes of the C library's */
  int64_t pages;   /* resident */
  int fds;
  int threads;
} pg_held;
pg_held pg_measure(void);
/* Records a failure when more is held than before; slack is in bytes of the C library's heap. */
void pg_check_held(const pg_held *before, const char *what, int64_t slack);

/* ---- the plugin (plugin_host.c) ---- */

typedef struct pg {
  void *handle;
  tn_plugin_query_fn entry;
  const tn_plugin *plugin;
  const tn_session_factory *factory; /* the one that its manifest names */
  tn_session_factory slots;          /* its callbacks, as far as its struct_size covers them; the others are NULL */
  tn_error err;
} pg;

extern pg pg_it;

/* Each does one step more, with those before it; false: a failure was recorded, or the text is in pg_it.err. */
bool pg_open(void);   /* dlopen and the entry's address */
bool pg_query(void);  /* the entry; only what struct_size covers may be read afterwards */
bool pg_choose(void); /* the factory */
tn_status pg_init(void);
/* All of it; ends the test when a step fails. */
void pg_start(void);

/* In place of the library's, for the plugin: what it registered, and which factory a reset is about. */
extern const tn_op_family **pg_families;
extern size_t pg_n_families;
extern const tn_session_factory *pg_stands_for; /* a program's factory in front of the plugin's; NULL */

/* Options with the target under test; settings replace those that were given (NULL: those). Ends the test without memory. */
tn_session_options *pg_options(const char *settings);

/* One session: its status, and the session at *out; contract checked (an error has a text, OK a session). */
tn_status pg_new_session(const tn_session_options *options, tn_runtime_session **out, tn_error *err);
void pg_destroy_session(tn_runtime_session *session);

/* What its get_extension gives, asked with a name that cannot be read any more afterwards. NULL, too, where it has none. */
const void *pg_extension(const char *name, uint32_t version);
/* Its "tn_eager", as far as its struct_size covers it. NULL: it runs no single operations. */
const tn_eager_runtime *pg_eager(void);

/* Whether an error is one that a caller can do something with: a known code, a text. */
bool pg_check_refusal(tn_status status, const tn_error *err, const char *who);

/* A program's factory in front of the plugin's, so that the registry runs its sessions: "conformance.front". The options and names
 * that the plugin sees are gone, and cannot be read any more, when a callback has returned. Makes it what ts_runtime() names. */
void pg_front_register(void);

/* Now, in seconds. */
double pg_now(void);
/* Runs fn(user, i) for i of [0, n), each on a thread of its own. */
void pg_threads(int n, void (*fn)(void *user, int i), void *user);

#endif
