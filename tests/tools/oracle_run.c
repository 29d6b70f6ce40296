/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_run itself: it passes correct results and detects wrong ones. Each test writes a small
 * folder of cases and runs the program on it. */
#define _GNU_SOURCE
#include "conformance/support/session_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zip.h>

/* ---- a folder of cases ---- */

static char folder[300];

static const char *in_folder(const char *name)
{
  static char paths[4][400];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
  return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
  FILE *file = fopen(in_folder(name), "wb");
  REQUIRE_PTR(file);
  REQUIRE_INT(fwrite(data, 1, size, file), size);
  REQUIRE_INT(fclose(file), 0);
}

static void write_text(const char *name, const char *text) { write_file(name, text, strlen(text)); }

/* The .npy of a float vector; returns its size. */
static size_t npy(unsigned char *out, size_t n, const float *values)
{
  char header[128];
  int length = snprintf(header, sizeof(header), "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu,), }", n);
  while ((length + 11) % 64 != 0) header[length++] = ' ';
  header[length++] = '\n';
  memcpy(out, "\x93NUMPY\x01\x00", 8);
  out[8] = (unsigned char)length;
  out[9] = 0;
  memcpy(out + 10, header, (size_t)length);
  memcpy(out + 10 + length, values, n * sizeof(*values));
  return 10 + (size_t)length + n * sizeof(*values);
}

static void add_array(zip_t *zip, const char *name, unsigned char *bytes, size_t n, const float *values)
{
  size_t size = npy(bytes, n, values);
  zip_source_t *source = zip_source_buffer(zip, bytes, size, 0);
  REQUIRE_PTR(source);
  REQUIRE(zip_file_add(zip, name, source, ZIP_FL_OVERWRITE) >= 0);
}

/* Case `name`: y = op(x) on the vector [1, 2], with the expected result. */
static void write_case(const char *name, const char *op, const float *expected)
{
  char file[100];
  unsigned char feed[256], fetch[256];
  ts_bytes def = { .size = 0 };
  ts_node(&def, "Placeholder", "x", NULL, "dtype", TN_FLOAT);
  ts_node(&def, op, "y", NAMES("x"), "T", TN_FLOAT);
  snprintf(file, sizeof(file), "%s.pb", name);
  write_file(file, def.data, def.size);

  int code = 0;
  snprintf(file, sizeof(file), "%s.npz", name);
  zip_t *zip = zip_open(in_folder(file), ZIP_CREATE | ZIP_TRUNCATE, &code);
  REQUIRE_PTR(zip);
  add_array(zip, "s0/feed/x:0.npy", feed, 2, (float[]){ 1, 2 });
  add_array(zip, "s0/fetch/y:0.npy", fetch, 2, expected);
  REQUIRE_INT(zip_close(zip), 0);
}

/* An index of one case. `error` is JSON: null or a quoted code. */
static void write_index(const char *op, const char *fetch, const char *error)
{
  char text[1000];
  snprintf(
      text, sizeof(text),
      "[{\"id\": \"f/case\", \"op\": \"%s\", \"family\": \"f\", \"note\": \"a note\", \"ops\": [\"%s\", "
      "\"Placeholder\"], \"steps\": [{\"feeds\": [\"x:0\"], \"fetches\": [\"%s\"], \"targets\": [], \"error\": %s, "
      "\"compare\": \"values\"}], \"dtypes\": {\"x:0\": \"float32\", \"%s\": \"float32\"}, \"rtol\": 1e-5, "
      "\"atol\": 1e-6}]\n",
      op, op, fetch, error, fetch);
  write_text("index.json", text);
}

static void make_folder(const char *name)
{
  snprintf(folder, sizeof(folder), "%s/%s", tap_scratch_dir(), name);
  REQUIRE_INT(mkdir(folder, 0777), 0);
  REQUIRE_INT(mkdir(in_folder("f"), 0777), 0);
  write_text("ops.txt", "# claimed\nPlaceholder Neg # and no more\n");
}

/* ---- running ---- */

static char output[20000];

/* Runs the program on the folder; its output is in `output`. Returns its exit status. */
static int run(const char *options)
{
  char command[2500];
  const char *plugins = getenv("TENON_PLUGIN_PATH"), *more = getenv("TENON_TEST_PLUGINS");
  snprintf(command, sizeof(command), "TENON_PLUGIN_PATH='%s:%s' '%s' --runtime '%s' --ops '%s' %s '%s' 2>&1",
           plugins ? plugins : "", more ? more : "", tap_build_path("tests/oracle/run/oracle_run"), ts_runtime(),
           in_folder("ops.txt"), options, folder);
  FILE *pipe = popen(command, "r");
  REQUIRE_PTR(pipe);
  size_t n = fread(output, 1, sizeof(output) - 1, pipe);
  output[n] = 0;
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void oracle_run__passes_correct_results(void)
{
  make_folder("right");
  write_case("f/case", "Neg", (float[]){ -1, -2 });
  write_index("Neg", "y:0", "null");
  for (int level = 0; level <= 1; level++) {
    CHECK_INT(run(level ? "--level 1" : "--level 0"), 0);
    CHECK_CONTAINS(output, "\n1 passed, 0 failed, 0 skipped\n");
  }
  CHECK_INT(run("--in-process --verbose"), 0);
  CHECK_CONTAINS(output, "ok   f/case");
  CHECK_CONTAINS(output, "\n1 passed, 0 failed, 0 skipped\n");
}

static void oracle_run__detects_a_wrong_value(void)
{
  make_folder("value");
  write_case("f/case", "Neg", (float[]){ -1, -2.5f });
  write_index("Neg", "y:0", "null");
  CHECK_INT(run(""), 1);
  CHECK_CONTAINS(output,
                 "FAIL f/case (a note): y:0 (float32): element 1 at [1]: got -2, expected -2.5 (1 of 2 differ)");
  CHECK_CONTAINS(output, "\n0 passed, 1 failed, 0 skipped\n");
}

static void oracle_run__detects_a_wrong_status(void)
{
  make_folder("status");
  write_case("f/case", "Neg", (float[]){ -1, -2 });
  write_index("Neg", "y:0", "\"OUT_OF_RANGE\"");
  CHECK_INT(run(""), 1);
  CHECK_CONTAINS(output, "got OK, expected OUT_OF_RANGE");
  write_index("Neg", "absent:0", "\"OUT_OF_RANGE\"");
  CHECK_INT(run(""), 1);
  CHECK_CONTAINS(output, "expected OUT_OF_RANGE, got: NOT_FOUND");
  write_index("Neg", "absent:0", "\"OUT_OF_RANGE|NOT_FOUND\"");
  CHECK_INT(run(""), 0);
  CHECK_CONTAINS(output, "\n1 passed, 0 failed, 0 skipped\n");
  write_index("Neg", "absent:0", "null");
  CHECK_INT(run(""), 1);
}

static void oracle_run__a_claimed_op_must_not_be_missing(void)
{
  make_folder("missing");
  write_case("f/case", "NoSuchOp", (float[]){ -1, -2 });
  write_index("NoSuchOp", "y:0", "null");
  CHECK_INT(run(""), 0);
  CHECK_CONTAINS(output, "SKIP f/case: op 'NoSuchOp' is not registered");
  CHECK_CONTAINS(output, "\n0 passed, 0 failed, 1 skipped\n");
  write_text("ops.txt", "Placeholder NoSuchOp");
  CHECK_INT(run(""), 1);
  CHECK_CONTAINS(output, "op 'NoSuchOp' is claimed, but is not registered");
}

static void oracle_run__detects_a_damaged_case(void)
{
  make_folder("damaged");
  write_case("f/case", "Neg", (float[]){ -1, -2 });
  write_index("Neg", "y:0", "null");
  write_text("f/case.npz", "this is not a zip file");
  CHECK_INT(run(""), 1);
  CHECK_CONTAINS(output, "f/case.npz");
  REQUIRE_INT(unlink(in_folder("f/case.npz")), 0);
  CHECK_INT(run(""), 1);
  CHECK_CONTAINS(output, "f/case.npz");
  write_text("index.json", "[{]");
  CHECK_INT(run(""), 2);
}

static void oracle_run__selects_and_writes_json(void)
{
  char options[600];
  make_folder("select");
  write_case("f/case", "Neg", (float[]){ -1, -2 });
  write_index("Neg", "y:0", "null");
  CHECK_INT(run("--only 'g/*'"), 2);
  CHECK_INT(run("--list"), 0);
  CHECK_STR(output, "f/case\n");
  snprintf(options, sizeof(options), "--only 'f/c*' --json '%s'", in_folder("out.json"));
  CHECK_INT(run(options), 0);
  FILE *file = fopen(in_folder("out.json"), "r");
  REQUIRE_PTR(file);
  size_t n = fread(output, 1, sizeof(output) - 1, file);
  output[n] = 0;
  fclose(file);
  CHECK_CONTAINS(output, "\"verdict\": \"passed\"");
  CHECK_CONTAINS(output, "\"id\": \"f/case\"");
}

/* A model: a case.json with its own .npy files; another format is skipped with a reason. */
static void oracle_run__runs_models(void)
{
  static const char *const text =
      "{\"name\": \"m\", \"format\": \"%s\", \"model\": \"f/case.pb\", \"feeds\": [{\"tensor\": \"x:0\", \"file\": "
      "\"x.npy\", "
      "\"dtype\": \"float32\", \"shape\": [2]}], \"fetches\": [{\"tensor\": \"y:0\", \"file\": \"y.npy\", \"dtype\": "
      "\"float32\", \"shape\": [2]}], \"rtol\": 1e-5, \"atol\": 1e-6%s}\n";
  unsigned char bytes[256];
  char description[1000];
  make_folder("model");
  write_case("f/case", "Neg", (float[]){ 0, 0 });
  write_file("x.npy", bytes, npy(bytes, 2, (float[]){ 1, 2 }));
  write_file("y.npy", bytes, npy(bytes, 2, (float[]){ -1, -2.5f }));
  snprintf(description, sizeof(description), text, "graphdef", "");
  write_text("case.json", description);
  CHECK_INT(run(""), 1);
  CHECK_CONTAINS(output, "FAIL models/m");
  CHECK_CONTAINS(output, "got -2, expected -2.5");
  snprintf(description, sizeof(description), text, "graphdef", ", \"compare\": \"mean_abs\", \"limit\": 0.3");
  write_text("case.json", description);
  CHECK_INT(run(""), 0);
  CHECK_CONTAINS(output, "\n1 passed, 0 failed, 0 skipped\n");
  snprintf(description, sizeof(description), text, "savedmodel", "");
  write_text("case.json", description);
  CHECK_INT(run(""), 0);
  CHECK_CONTAINS(output, "SKIP models/m: no importer for the format 'savedmodel' yet");
}

/* Cases "f/case" and "f/second" on a runtime that ends badly: each has failed, and the run is
 * completed. */
static void run_crashing(const char *options, const char *how)
{
  static const char *const entry =
      "{\"id\": \"f/%s\", \"op\": \"Neg\", \"family\": \"f\", \"note\": \"\", \"ops\": [\"Neg\"], \"steps\": "
      "[{\"feeds\": [\"x:0\"], \"fetches\": [\"y:0\"], \"targets\": [], \"error\": null}], "
      "\"dtypes\": {\"x:0\": \"float32\", \"y:0\": \"float32\"}, \"rtol\": 0, \"atol\": 0}";
  char text[1000], first[400], second[400];
  snprintf(first, sizeof(first), entry, "case");
  snprintf(second, sizeof(second), entry, "second");
  snprintf(text, sizeof(text), "[%s, %s]", first, second);
  write_text("index.json", text);
  CHECK_INT(run(options), 1);
  snprintf(text, sizeof(text), "FAIL f/case (): %s", how);
  CHECK_CONTAINS(output, text);
  snprintf(text, sizeof(text), "FAIL f/second (): %s", how);
  CHECK_CONTAINS(output, text);
  CHECK_CONTAINS(output, "\n0 passed, 2 failed, 0 skipped\n");
}

static void oracle_run__outlives_crashes_and_hangs(void)
{
  make_folder("crash");
  write_case("f/case", "Neg", (float[]){ -1, -2 });
  write_case("f/second", "Neg", (float[]){ -1, -2 });
  run_crashing("--runtime test.crashing:how=signal", "crashed: signal 6");
  run_crashing("--runtime test.crashing:how=exit", "ended the process with exit status 7");
  run_crashing("--runtime test.crashing:how=hang --timeout 1", "still running after 1 seconds");
}

/* The claims of the device's kernels, and whether a case ran them there. */
static void oracle_run__takes_a_sample(void)
{
  char options[600];
  make_folder("sample");
  write_case("f/case", "Neg", (float[]){ -1, -2 });
  write_index("Neg", "y:0", "null");
  write_text("kernels.json",
             "{ \"ops\": [ { \"name\": \"Neg\", \"kernels\": [ { \"device\": \"CPU\", \"constraints\": { \"T\": [ "
             "\"float32\", \"half\", \"int8\" ] } }, { \"device\": \"GPU\", \"constraints\": { } } ] } ] }");
  snprintf(options, sizeof(options), "--device CPU --sample '%s'", in_folder("kernels.json"));
  CHECK_INT(run(options), 0);
  CHECK_CONTAINS(output, "UNTRIED Neg T=half: no case has it run");
  CHECK_CONTAINS(output,
                 "\n1 types of ops ran on CPU, 0 ran elsewhere, 2 have no case\n1 passed, 0 failed, 0 skipped\n");
  snprintf(options, sizeof(options), "--device GPU --sample '%s'", in_folder("kernels.json"));
  CHECK_INT(run(options), 0);
  CHECK_CONTAINS(output, "ELSEWHERE Neg: ");
  CHECK_CONTAINS(output, "\n0 types of ops ran on GPU, 1 ran elsewhere, 0 have no case\n");
  snprintf(options, sizeof(options), "--device NPU --sample '%s'", in_folder("kernels.json"));
  CHECK_INT(run(options), 2);
  CHECK_CONTAINS(output, "no kernel is for a device of type 'NPU'");
}

static void oracle_run__wrong_calls(void)
{
  make_folder("calls");
  write_case("f/case", "Neg", (float[]){ -1, -2 });
  write_index("Neg", "y:0", "null");
  CHECK_INT(run("--no-such-option"), 2);
  CHECK_INT(run("--level many"), 2);
  CHECK_INT(run("/nowhere/at/all"), 2);
  CHECK_INT(run("--runtime nowhere"), 1);
  CHECK_CONTAINS(output, "nowhere");
}

TAP_MAIN(
    TAP_TEST(oracle_run__passes_correct_results),
    TAP_TEST(oracle_run__detects_a_wrong_value),
    TAP_TEST(oracle_run__detects_a_wrong_status),
    TAP_TEST(oracle_run__a_claimed_op_must_not_be_missing),
    TAP_TEST(oracle_run__detects_a_damaged_case),
    TAP_TEST(oracle_run__selects_and_writes_json),
    TAP_TEST(oracle_run__runs_models),
    TAP_TEST(oracle_run__outlives_crashes_and_hangs),
    TAP_TEST(oracle_run__takes_a_sample),
    TAP_TEST(oracle_run__wrong_calls))
