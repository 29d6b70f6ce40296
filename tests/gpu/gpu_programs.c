/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the runtime gpu: compiled once, shared, cached on disk, and errors of compilation. */
#define _GNU_SOURCE
#ifndef TEST_GPU
#include <conformance/support/tap.h>
static void gpu_programs__need_opencl(void) { TAP_SKIP("built without OpenCL"); }
TAP_MAIN(TAP_TEST(gpu_programs__need_opencl))
#else
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tests/support/gpu_parts.h>
#include <conformance/support/oom.h>

static const char twice[] = "__kernel void twice(IN(x), OUT(y), const int n) {\n"
                            "  GET_IN(float, x); GET_OUT(float, y);\n"
                            "  int i = get_global_id(0);\n"
                            "  if (i < n) y[i] = x[i] * FACTOR;\n"
                            "}\n";

/* ---- the log ---- */

static char last_line[400]; /* the last line about programs, logged when a context is freed */
static void keep_line(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  const char *at = strstr(line, "gpu: programs of");
  if (at != NULL) snprintf(last_line, sizeof last_line, "%s", at);
}

static void setup(void)
{
  tn_set_log_sink(keep_line, NULL);
  tn_set_log_level(TN_LOG_INFO);
  setenv("TENON_CACHE_DIR", "relative: not used", 1);
}
static void teardown(void) { tn_set_log_sink(NULL, NULL); }

/* The number before a word in the last line. */
static int counted(const char *word)
{
  const char *at = strstr(last_line, word);
  if (at == NULL) return -1;
  while (at > last_line && at[-1] >= '0' && at[-1] <= '9') at--;
  return atoi(at);
}

/* A folder for binaries in the scratch folder; NULL disables the cache. */
static const char *cache_in(const char *name)
{
  static char path[600];
  unsetenv("TENON_GPU_CACHE_BYTES");
  if (name == NULL) {
    setenv("TENON_GPU_CACHE_BYTES", "0", 1);
    return NULL;
  }
  snprintf(path, sizeof path, "%s/%s", tap_scratch_dir(), name);
  setenv("TENON_CACHE_DIR", path, 1);
  return path;
}

static tn_status get_one(gpu_device *d, const char *text, const char *options, cl_program *out, tn_error *err)
{
  gpu_program_request r = { .text = text, .options = options, .label = "twice" };
  tn_status st = gpu_programs_get(d->programs, &r, 1, err);
  if (out != NULL) *out = r.program;
  return st;
}

/* Gets programs [first, end) with a new context, as a new process would. */
static void get_these(int first, int end)
{
  tn_error err = TN_ERROR_INIT;
  gpu_device *d = gpu_parts_use(&err);
  REQUIRE_PTR(d);
  REQUIRE_INT(d->n_users, 1);
  for (int i = first; i < end; i++) {
    char options[40];
    snprintf(options, sizeof options, "-DFACTOR=%d", i + 2);
    REQUIRE_OK(get_one(d, twice, options, NULL, &err), &err);
  }
  gpu_device_leave(d);
}

static void get_in_new_context(int n) { get_these(0, n); }

/* ---- compiling ---- */

static void run_twice(gpu_device *d, cl_program program, float factor)
{
  cl_int code;
  float in[5] = { 1, 2, 3, 4, 5 }, out[5] = { 0 };
  cl_ulong zero = 0;
  cl_int n = 5;
  size_t global = 8;
  cl_kernel k = cl.CreateKernel(program, "twice", &code);
  REQUIRE_INT(code, CL_SUCCESS);
  cl_mem x = cl.CreateBuffer(d->context, CL_MEM_COPY_HOST_PTR, sizeof in, in, &code);
  cl_mem y = cl.CreateBuffer(d->context, CL_MEM_READ_WRITE, sizeof out, NULL, &code);
  cl_command_queue q = gpu_parts_queue(d);
  CHECK_INT(cl.SetKernelArg(k, 0, sizeof x, &x), CL_SUCCESS);
  CHECK_INT(cl.SetKernelArg(k, 1, sizeof zero, &zero), CL_SUCCESS);
  CHECK_INT(cl.SetKernelArg(k, 2, sizeof y, &y), CL_SUCCESS);
  CHECK_INT(cl.SetKernelArg(k, 3, sizeof zero, &zero), CL_SUCCESS);
  CHECK_INT(cl.SetKernelArg(k, 4, sizeof n, &n), CL_SUCCESS);
  CHECK_INT(cl.EnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL), CL_SUCCESS);
  CHECK_INT(cl.EnqueueReadBuffer(q, y, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL), CL_SUCCESS);
  for (int i = 0; i < 5; i++) CHECK_DOUBLE(out[i], in[i] * factor, 0);
  cl.ReleaseMemObject(x);
  cl.ReleaseMemObject(y);
  cl.ReleaseKernel(k);
  cl.ReleaseCommandQueue(q);
}

static void gpu_programs__equal_requests_give_one_program(void)
{
  cache_in(NULL);
  tn_error err = TN_ERROR_INIT;
  GPU_PARTS_DEVICE(d);
  gpu_program_request r[4] = { { .text = twice, .options = "-DFACTOR=2", .label = "a" },
                               { .text = twice, .options = "-DFACTOR=3", .label = "b" },
                               { .text = twice, .options = "-DFACTOR=2", .label = "c" },
                               { .text = twice, .options = "-DFACTOR=4", .label = "d" } };
  REQUIRE_OK(gpu_programs_get(d->programs, r, 4, &err), &err);
  CHECK(r[0].program == r[2].program);
  CHECK(r[0].program != r[1].program);
  CHECK(r[1].program != r[3].program);
  cl_program again;
  REQUIRE_OK(get_one(d, twice, "-DFACTOR=3", &again, &err), &err);
  CHECK(again == r[1].program);
  run_twice(d, r[0].program, 2);
  run_twice(d, r[1].program, 3);
  gpu_device_leave(d);
  CHECK_INT(counted(" compiled"), 3);
  CHECK_INT(counted(" read"), 0);
}

typedef struct asker {
  gpu_device *device;
  cl_program programs[3];
  tn_status status;
} asker;
static void *ask_for_three(void *user)
{
  asker *a = user;
  gpu_program_request r[3] = { { .text = twice, .options = "-DFACTOR=5", .label = "a" },
                               { .text = twice, .options = "-DFACTOR=6", .label = "b" },
                               { .text = twice, .options = "-DFACTOR=7", .label = "c" } };
  a->status = gpu_programs_get(a->device->programs, r, 3, NULL);
  for (int i = 0; i < 3; i++) a->programs[i] = r[i].program;
  return NULL;
}

static void gpu_programs__threads_share_equal_programs(void)
{
  cache_in(NULL);
  GPU_PARTS_DEVICE(d);
  asker a[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    a[i] = (asker){ .device = d };
    REQUIRE(pthread_create(&threads[i], NULL, ask_for_three, &a[i]) == 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) {
    CHECK_INT(a[i].status, TN_OK);
    for (int k = 0; k < 3; k++) CHECK(a[i].programs[k] != NULL && a[i].programs[k] == a[0].programs[k]);
  }
  gpu_device_leave(d);
  CHECK_INT(counted(" compiled"), 3);
}

static void gpu_programs__errors_of_compilation_show_the_line(void)
{
  cache_in(NULL);
  tn_error err = TN_ERROR_INIT;
  GPU_PARTS_DEVICE(d);
  cl_program program;
  CHECK_STATUS(
      get_one(d, "__kernel void f(__global float *x) {\n  x[0] = 1;\n  x[1] = nowhere;\n}\n", "-DN=1", &program, &err),
      TN_INTERNAL, &err);
  CHECK_NULL(program);
  const char *text = tn_error_message(&err);
  CHECK_CONTAINS(text, "program 'twice' (-DN=1) does not compile");
  CHECK(strstr(text, ", line ") == NULL || strstr(text, "line 3, 'x[1] = nowhere;'") != NULL);
  CHECK_MSG(strstr(text, "nowhere") != NULL || strstr(text, "the compiler says no more") != NULL, "%s", text);
  /* It is compiled again, and other programs are not affected. */
  CHECK_STATUS(
      get_one(d, "__kernel void f(__global float *x) {\n  x[0] = 1;\n  x[1] = nowhere;\n}\n", "-DN=1", &program, &err),
      TN_INTERNAL, &err);
  CHECK_OK(get_one(d, twice, "-DFACTOR=2", &program, &err), &err);
  tn_error_clear(&err);
  gpu_device_leave(d);
}

/* The compiler's log returned by the next builds. */
static const char *log_text;
static cl_int tell_log(cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *to,
                       size_t *needed)
{
  (void)program, (void)device, (void)what;
  if (needed != NULL) *needed = strlen(log_text) + 1;
  if (to != NULL) snprintf(to, size, "%s", log_text);
  return CL_SUCCESS;
}

static void gpu_programs__the_line_is_found_in_logs_of_all_compilers(void)
{
  static const struct {
    const char *log, *said;
  } cases[] = {
    { "error: /tmp/tempfile.cl:3:10: use of undeclared identifier 'nowhere'\n",
      "line 3, 'x[1] = nowhere;': error: /tmp" },
    { "warning: 1:1: odd\n<kernel>:3:10: error: use of undeclared identifier 'nowhere'\n x[1] = nowhere;\n ^\n",
      "line 3, 'x[1] = nowhere;': warning" },
    { "1:3:10: error: undeclared\n", "line 3, 'x[1] = nowhere;'" },
    { "/tmp/comgr-1/CompileSource:3:10: error: undeclared\n1 error generated.\n", "line 3, 'x[1] = nowhere;'" },
    { "input.cl:900:1: error: beyond the end\n", "CL_BUILD_PROGRAM_FAILURE" },
    { "ptxas fatal: unresolved 'nowhere'\n", "CL_BUILD_PROGRAM_FAILURE: ptxas fatal: unresolved 'nowhere'" },
    { "", "CL_BUILD_PROGRAM_FAILURE" },
  };
  cache_in(NULL);
  tn_error err = TN_ERROR_INIT;
  GPU_PARTS_DEVICE(d);
  __typeof__(cl.GetProgramBuildInfo) true_info = cl.GetProgramBuildInfo;
  cl.GetProgramBuildInfo = tell_log;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cl_program program;
    log_text = cases[i].log;
    CHECK_STATUS(get_one(d, "__kernel void f(__global float *x) {\n  x[0] = 1;\n  x[1] = nowhere;\n}\n", "-DN=1",
                         &program, &err),
                 TN_INTERNAL, &err);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].said);
  }
  cl.GetProgramBuildInfo = true_info;
  tn_error_clear(&err);
  gpu_device_leave(d);
}

static void gpu_programs__a_failure_frees_all_programs_of_the_call(void)
{
  cache_in(NULL);
  tn_error err = TN_ERROR_INIT;
  GPU_PARTS_DEVICE(d);
  gpu_program_request r[2] = { { .text = twice, .options = "-DFACTOR=8", .label = "good" },
                               { .text = "nonsense", .options = "", .label = "bad" } };
  CHECK_STATUS(gpu_programs_get(d->programs, r, 2, &err), TN_INTERNAL, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'bad'");
  CHECK_NULL(r[0].program);
  CHECK_NULL(r[1].program);
  tn_error_clear(&err);
  gpu_device_leave(d);
}

static tn_status get_with_little_memory(void *user)
{
  gpu_device *d = user;
  gpu_programs *programs = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_status st = gpu_programs_create(d, &programs, &err);
  gpu_program_request r = { .text = twice, .options = "-DFACTOR=9", .label = "twice" };
  if (st == TN_OK) st = gpu_programs_get(programs, &r, 1, &err);
  gpu_programs_destroy(programs);
  tn_error_clear(&err);
  return st;
}

static void gpu_programs__missing_memory_leaks_nothing(void)
{
  GPU_PARTS_DEVICE(d);
  cache_in("sweep");
  tn_test_oom_sweep(get_with_little_memory, d);
  gpu_device_leave(d);
}

/* ---- on disk ---- */

/* Calls fn with each file of a cache; returns their number. */
static int each_file(const char *cache, void (*fn)(const char *path))
{
  char folder[700], path[1000];
  snprintf(folder, sizeof folder, "%s/gpu-programs", cache);
  DIR *dir = opendir(folder);
  int n = 0;
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    n++;
    if (fn != NULL) fn(path);
  }
  if (dir != NULL) closedir(dir);
  return n;
}

static void gpu_programs__are_read_from_disk_next_time(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_device_leave(d);
  const char *cache = cache_in("second");
  get_in_new_context(3);
  CHECK_INT(counted(" compiled"), 3);
  CHECK_INT(each_file(cache, NULL), 3); /* there are no temporary files */
  get_in_new_context(3);
  CHECK_INT(counted(" compiled"), 0);
  CHECK_INT(counted(" read"), 3);
  d = gpu_parts_use(NULL);
  REQUIRE_PTR(d);
  cl_program program;
  REQUIRE_OK(get_one(d, twice, "-DFACTOR=3", &program, NULL), NULL);
  run_twice(d, program, 3);
  gpu_device_leave(d);
  CHECK_INT(counted(" read"), 1);
}

/* Runs in a child that has not used OpenCL yet. */
static void gpu_programs__another_process_reads_them(void)
{
  const char *path = tap_build_path("tests/gpu/gpu_programs");
  GPU_PARTS_DEVICE(d);
  gpu_device_leave(d);
  char cache[600], command[2000], line[300] = "";
  snprintf(cache, sizeof cache, "%s", cache_in("processes"));
  for (int i = 0; i < 2; i++) {
    snprintf(command, sizeof command, "GPU_TEST_CACHE='%s' '%s' gpu_programs__child 2>&1", cache, path);
    FILE *child = popen(command, "r");
    REQUIRE_PTR(child);
    bool said = false;
    while (fgets(line, sizeof line, child) != NULL)
      if (strstr(line, i == 0 ? "2 compiled, 0 read" : "0 compiled, 2 read") != NULL) said = true;
    CHECK_INT(pclose(child), 0);
    CHECK_MSG(said, "process %d: what it compiled and read", i);
  }
}

static void gpu_programs__child(void)
{
  if (getenv("GPU_TEST_CACHE") == NULL) TAP_SKIP("runs only as a child of gpu_programs__another_process_reads_them");
  unsetenv("TENON_GPU_CACHE_BYTES");
  setenv("TENON_CACHE_DIR", getenv("GPU_TEST_CACHE"), 1);
  get_in_new_context(2);
  tap_note("%s", last_line);
}

static void overwrite(const char *path, long at, int whence, const char *bytes, size_t n)
{
  FILE *f = fopen(path, "r+b");
  REQUIRE_PTR(f);
  fseek(f, at, whence);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  fclose(f);
}
static void garble_header(const char *path) { overwrite(path, 0, SEEK_SET, "ELF", 3); }
static void garble_format(const char *path) { overwrite(path, 8, SEEK_SET, "\377", 1); }
static void garble_size(const char *path) { overwrite(path, 16, SEEK_SET, "\377\377\377\377\377\377\377\377", 8); }
static void garble_key(const char *path) { overwrite(path, 45, SEEK_SET, "~", 1); }
static void garble_binary(const char *path) { overwrite(path, -7, SEEK_END, "\1\2\3", 3); }
static void cut_short(const char *path) { CHECK_INT(truncate(path, 1000), 0); }
static void cut_to_nothing(const char *path) { CHECK_INT(truncate(path, 0), 0); }
static void make_anybodys(const char *path) { CHECK_INT(chmod(path, 0666), 0); }
static void make_folder(const char *path)
{
  CHECK_INT(unlink(path), 0);
  CHECK_INT(mkdir(path, 0700), 0);
}
static void make_link(const char *path)
{
  char elsewhere[1100];
  snprintf(elsewhere, sizeof elsewhere, "%s.elsewhere", path);
  CHECK_INT(rename(path, elsewhere), 0);
  CHECK_INT(symlink(elsewhere, path), 0);
}

/* If a file differs from what was written, the program is compiled, and the file is written
 * again. */
static void gpu_programs__damaged_files_are_written_again(void)
{
  static const struct {
    const char *what;
    void (*fn)(const char *path);
  } cases[] = { { "header", garble_header }, { "format", garble_format },   { "size", garble_size },
                { "key", garble_key },       { "binary", garble_binary },   { "short", cut_short },
                { "empty", cut_to_nothing }, { "anybody's", make_anybodys } };
  GPU_PARTS_DEVICE(d);
  gpu_device_leave(d);
  const char *cache = cache_in("garbled");
  get_in_new_context(1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK_INT(each_file(cache, cases[i].fn), 1);
    get_in_new_context(1);
    CHECK_MSG(counted(" compiled") == 1, "%s: compiled again", cases[i].what);
    get_in_new_context(1);
    CHECK_MSG(counted(" compiled") == 0 && counted(" read") == 1, "%s: there again", cases[i].what);
  }
}

static void gpu_programs__only_regular_files_are_read(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_device_leave(d);
  const char *cache = cache_in("folder");
  get_in_new_context(1);
  each_file(cache, make_folder);
  get_in_new_context(1);
  CHECK_INT(counted(" compiled"), 1);
  get_in_new_context(1); /* a file does not replace a folder */
  CHECK_INT(counted(" compiled"), 1);
  cache = cache_in("link");
  get_in_new_context(1);
  each_file(cache, make_link);
  get_in_new_context(1); /* the link is not followed, but replaced */
  CHECK_INT(counted(" compiled"), 1);
  get_in_new_context(1);
  CHECK_INT(counted(" read"), 1);
}

/* Makes a file that looks valid but is not for this driver. */
static void make_foreign(const char *path)
{
  char bytes[1 << 16];
  FILE *f = fopen(path, "rb");
  REQUIRE_PTR(f);
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  uint64_t key_size, hash = 0;
  memcpy(&key_size, bytes + 16, 8);
  REQUIRE(n > 40 + key_size + 100);
  memset(bytes + 40 + key_size, 'x', 100);
  for (size_t i = 40; i < n; i++) {
    hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
  }
  memcpy(bytes + 32, &hash, 8);
  f = fopen(path, "wb");
  REQUIRE_PTR(f);
  CHECK_INT(fwrite(bytes, 1, n, f), n);
  fclose(f);
}

static void gpu_programs__binaries_refused_by_the_driver_are_compiled_again(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_device_leave(d);
  const char *cache = cache_in("foreign");
  get_in_new_context(1);
  CHECK_INT(each_file(cache, make_foreign), 1);
  get_in_new_context(1);
  CHECK_INT(counted(" compiled"), 1);
  get_in_new_context(1);
  CHECK_INT(counted(" read"), 1);
}

static void gpu_programs__work_without_a_writable_folder(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_device_leave(d);
  char path[700];
  const char *cache = cache_in("file");
  snprintf(path, sizeof path, "%s", cache);
  int fd = open(path, O_CREAT | O_WRONLY, 0600); /* not a folder, so not even root can write below it */
  REQUIRE(fd >= 0);
  close(fd);
  for (int i = 0; i < 2; i++) {
    get_in_new_context(2);
    CHECK_INT(counted(" compiled"), 2);
  }
  cache_in(NULL); /* disables the cache */
  get_in_new_context(1);
  CHECK_INT(counted(" compiled"), 1);
}

static int64_t bytes_there;
static void add_size(const char *path)
{
  struct stat st;
  if (stat(path, &st) == 0) bytes_there += st.st_size;
}

static void gpu_programs__the_most_recently_used_stay_below_the_limit(void)
{
  GPU_PARTS_DEVICE(d);
  gpu_device_leave(d);
  char text[40];
  const char *cache = cache_in("limit");
  get_in_new_context(4);
  bytes_there = 0;
  CHECK_INT(each_file(cache, add_size), 4);
  int64_t most = bytes_there + bytes_there / 16;
  snprintf(text, sizeof text, "%lld", (long long)most);
  setenv("TENON_GPU_CACHE_BYTES", text, 1);
  usleep(20000); /* the age of files is measured in ticks */
  get_these(0, 1); /* the first one becomes the most recently used */
  CHECK_INT(counted(" read"), 1);
  get_these(4, 5);
  bytes_there = 0;
  int n = each_file(cache, add_size);
  CHECK_MSG(n >= 2 && n < 5 && bytes_there <= most, "%d files of %lld bytes, at most %lld", n, (long long)bytes_there,
            (long long)most);
  get_these(0, 1);
  CHECK_INT(counted(" read"), 1);
  get_these(1, 2);
  CHECK_INT(counted(" compiled"), 1);
}

TAP_MAIN_WITH(setup, teardown, TAP_TEST(gpu_programs__equal_requests_give_one_program),
              TAP_TEST(gpu_programs__threads_share_equal_programs),
              TAP_TEST(gpu_programs__errors_of_compilation_show_the_line),
              TAP_TEST(gpu_programs__the_line_is_found_in_logs_of_all_compilers),
              TAP_TEST(gpu_programs__a_failure_frees_all_programs_of_the_call),
              TAP_TEST(gpu_programs__missing_memory_leaks_nothing),
              TAP_TEST(gpu_programs__are_read_from_disk_next_time),
              TAP_TEST(gpu_programs__another_process_reads_them), TAP_TEST(gpu_programs__child),
              TAP_TEST(gpu_programs__damaged_files_are_written_again),
              TAP_TEST(gpu_programs__only_regular_files_are_read),
              TAP_TEST(gpu_programs__binaries_refused_by_the_driver_are_compiled_again),
              TAP_TEST(gpu_programs__work_without_a_writable_folder),
              TAP_TEST(gpu_programs__the_most_recently_used_stay_below_the_limit))
#endif
