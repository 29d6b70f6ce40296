/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the verdicts of probes. For any content, a complete verdict or none is read, a written verdict is
 * read back, and the verdicts on other plugins are kept. A '@' at the start of an input line stands for the plugin's
 * key. */
#include <fuzz/bytes.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/registry/probe/probe.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[200], file[300], key_text[300];
static const tn__probe_key key = { .path = "/plugins/fast one.so", .id = { 1, 2, 3, { 4, 5 } }, .build_id = "0abc" };

static void remove_all(void)
{
  unlink(file);
  rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  size_t n = 0;
  snprintf(folder, sizeof folder, "%s/tenon-fuzz-XXXXXX", memory);
  if (mkdtemp(folder) == NULL || setenv("TENON_CACHE_DIR", folder, 1) != 0) abort();
  if (tn_runtime_cache_path(file, sizeof file, &n, NULL) != TN_OK) abort();
  snprintf(key_text, sizeof key_text, "/plugins/fast%%20one.so 1 2 3 4 5 0abc %d.%d %s ", TN_ABI_MAJOR, TN_ABI_MINOR,
           TN_VERSION_STRING);
  atexit(remove_all);
  return 0;
}

/* Writes the input, with each '@' at the start of a line replaced by the key. */
static void write_file(const uint8_t *data, size_t size)
{
  FILE *out = fopen(file, "wb");
  if (out == NULL || chmod(file, 0600) != 0) abort();
  for (size_t i = 0; i < size; i++) {
    bool begins = i == 0 || data[i - 1] == '\n';
    if (begins && data[i] == '@') fputs(key_text, out);
    else fputc(data[i], out);
  }
  if (fclose(out) != 0) abort();
}

static bool get(tn_probe_report *report, tn_error *why)
{
  *report = (tn_probe_report){ .struct_size = sizeof *report };
  if (!tn__probe_cache_get(&key, report, why)) return false;
  if (report->verdict < TN_PROBE_WELL || report->verdict > TN_PROBE_MEMORY || report->step == NULL || !report->cached)
    abort();
  if (report->verdict != TN_PROBE_WELL && (tn_error_code(why) == TN_OK || tn_error_message(why)[0] == 0)) abort();
  return true;
}

static void put_and_get(const tn_probe_report *put, const tn_error *words)
{
  tn_probe_report got;
  tn_error why = TN_ERROR_INIT;
  tn__probe_cache_put(&key, put, words);
  if (!get(&got, &why)) abort();
  if (got.verdict != put->verdict || got.signal != put->signal || got.exit_status != put->exit_status ||
      got.status != put->status || got.duration_us != put->duration_us || got.peak_bytes != put->peak_bytes ||
      strcmp(got.step, put->step) != 0)
    abort();
  if (put->verdict != TN_PROBE_WELL && strcmp(tn_error_message(&why), tn_error_message(words)) != 0) abort();
  tn_error_clear(&why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_probe_report report;
  tn_error why = TN_ERROR_INIT;
  size_t n = 0;
  if (size > 1 << 16) return 0;
  write_file(data, size);
  if (get(&report, &why)) {
    put_and_get(&report, &why);
  } else {
    report =
        (tn_probe_report){ .struct_size = sizeof report, .verdict = TN_PROBE_SIGNAL, .signal = 11, .step = "its init" };
    tn_error_set(&why, TN_ABORTED, "%% of \n'%s'", size > 20 ? "a long file" : "-");
    put_and_get(&report, &why);
  }
  tn_error_clear(&why);
  if (tn_runtime_clear_cache(&n, &why) != TN_OK || n == 0 || get(&report, &why)) abort();
  tn_error_clear(&why);
  return 0;
}
