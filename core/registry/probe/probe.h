/* SPDX-License-Identifier: Apache-2.0 */
/* Trying a plugin in a separate process (P-83 to P-88).
 *
 * The parent starts the probe program with a request on descriptor 0 and reads reports from descriptor 3. Every line of
 * a report begins with a nonce from the request. So neither output of the plugin nor the way its process ends can look
 * like success.
 *
 *   request  "tenon-probe 1 NONCE MAJOR.MINOR MEMORY_BYTES CPU_SECONDS PATH_SIZE\n" and the path
 *   reports  "NONCE B BYTES\n" at the start: the peak memory that the process inherited from before exec;
 *            "NONCE S STEP\n" at each step; at the end "NONCE P BYTES\n", the peak since exec, if the system provides
 *            it, and "NONCE V CODE SIZE\n" and SIZE bytes of message */
#ifndef TN_CORE_REGISTRY_PROBE_PROBE_H
#define TN_CORE_REGISTRY_PROBE_PROBE_H

#include <core/registry/registry_internal.h>
#include <tenon/plugins.h>

/* Sanitizers reserve much memory for themselves, so the memory of a sanitized probe is not limited. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TN_PROBE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TN_PROBE_SANITIZED 1
#endif
#endif

#define TN_PROBE_NONCE 32 /* hexadecimal digits */
#define TN_PROBE_FD 3
#define TN_PROBE_MAX_PATH 16384
#define TN_PROBE_MAX_MESSAGE 8192

/* The steps of a load, and then of a probe's session, in order. The numbers are part of the reports. */
typedef enum tn__step {
  TN__STEP_NONE,
  TN__STEP_START,
  TN__STEP_CHECK,
  TN__STEP_OPEN,
  TN__STEP_ENTRY,
  TN__STEP_FACTORIES,
  TN__STEP_INIT,
  TN__STEP_KERNELS,
  TN__STEP_SESSION,
  TN__STEP_PREPARE,
  TN__STEP_STEP,
  TN__STEP_DESTROY,
  TN__STEP_DONE,
  TN__N_STEPS
} tn__step;
const char *tn__step_text(tn__step step);
tn__step tn__step_of_text(const char *text); /* TN__STEP_NONE for none of them */

/* ---- probe_report.c ---- */

/* The loader calls this before each step. In a probe process it reports the step to the parent; elsewhere it does
 * nothing. */
void tn__probe_reached(tn__step step);
bool tn__in_probe(void);
/* Makes this process a probe process, whose reports begin with this nonce of TN_PROBE_NONCE digits. */
void tn__probe_started(const char *nonce);
const char *tn__probe_nonce(void);
/* Writes to the parent. Errors are ignored. */
void tn__probe_write(const char *data, size_t size);

/* probe.c: runs a probe. TN_OK: *out has the verdict and *why the reason, none for TN_PROBE_WELL. Otherwise the probe
 * program cannot run: err. timeout_ms > 0. */
tn_status tn__probe_run(const char *path, int64_t timeout_ms, tn_probe_report *out, tn_error *why, tn_error *err);

/* ---- probe_cache.c ---- */

/* The file for which a verdict is valid (P-86). */
typedef struct tn__probe_key {
  const char *path;
  tn__file_id id;
  char build_id[2 * 64 + 1]; /* hexadecimal, "-" for none */
} tn__probe_key;
/* Also reads the build-id. The caller has checked the file's path. */
void tn__probe_key_init(const char *path, const tn__file_id *id, tn__probe_key *out);
/* Looks up a verdict; false if none is cached for this key. */
bool tn__probe_cache_get(const tn__probe_key *key, tn_probe_report *out, tn_error *why);
/* Caches a verdict. Failures are only logged. */
void tn__probe_cache_put(const tn__probe_key *key, const tn_probe_report *report, const tn_error *why);
/* Appends the path of the cache file; false if the environment names no folder for it. */
bool tn__probe_cache_path(tn__text *path);

/* ---- probe_load.c ---- */

/* Called before a plugin is opened. Fails if a probe is wanted and finds that the plugin would do harm, or cannot run.
 * The caller holds the token. */
tn_status tn__probe_before_load(const tn__plugin *plugin, tn_error *err);

/* ---- elf_note.c ---- */

/* The build-id of an open object, in hexadecimal; "-" if it has none. `out` has room for `room` bytes. */
void tn__elf_build_id(int fd, char *out, size_t room);

#endif
