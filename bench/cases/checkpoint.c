/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of 1 GB, against what the system can do: reading beside reading the file to nowhere, as cat does (warm),
 * writing beside writing the same bytes to a new file, syncing it and giving it the place of the old one, as dd and mv
 * do. Reading includes checksums and fresh memory for the tensors. */
#include <bench/bench.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TENSORS = 16, ELEMENTS = 1 << 24, PIECE = 1 << 17 };

typedef struct job {
  char prefix[600], data[700], plain[700];
  const char *keys[TENSORS];
  tn_tensor *tensors[TENSORS];
} job;

static void make_tensors(job *j)
{
  static char names[TENSORS][16];
  const int64_t n = ELEMENTS;
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < TENSORS; i++) {
    snprintf(names[i], sizeof names[i], "w%02d", i);
    j->keys[i] = names[i];
    bench_check(tn_tensor_create(TN_FLOAT, &n, 1, &j->tensors[i], &err), &err, "tensor");
    float *to = tn_tensor_data(j->tensors[i]);
    for (int64_t k = 0; k < n; k++) to[k] = (float)(k * (i + 1));
  }
}

static void save(void *user)
{
  job *j = user;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_checkpoint_save(j->prefix, j->keys, j->tensors, TENSORS, NULL, &err), &err, j->prefix);
}

static void load(void *user)
{
  job *j = user;
  tn_error err = TN_ERROR_INIT;
  tn_checkpoint *c;
  tn_tensor *tensors[TENSORS];
  bench_check(tn_checkpoint_open(j->prefix, &c, &err), &err, j->prefix);
  bench_check(tn_checkpoint_read_many(c, j->keys, TENSORS, tensors, &err), &err, j->prefix);
  for (int i = 0; i < TENSORS; i++) tn_tensor_unref(tensors[i]);
  tn_checkpoint_close(c);
}

static void failed(const char *path)
{
  fprintf(stderr, "bench: %s: %s\n", path, strerror(errno));
  exit(1);
}

static void read_to_nowhere(void *user)
{
  static char piece[PIECE];
  job *j = user;
  int fd = open(j->data, O_RDONLY);
  if (fd < 0) failed(j->data);
  for (ssize_t n = 1; n > 0;)
    if ((n = read(fd, piece, sizeof piece)) < 0) failed(j->data);
  close(fd);
}

static void write_plainly(void *user)
{
  job *j = user;
  char new[720];
  snprintf(new, sizeof new, "%s.new", j->plain);
  int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0) failed(new);
  for (int i = 0; i < TENSORS; i++) {
    const char *at = tn_tensor_data(j->tensors[i]), *end = at + tn_tensor_bytes(j->tensors[i]);
    for (ssize_t n; at < end; at += n)
      if ((n = write(fd, at, end - at < 1 << 20 ? (size_t)(end - at) : 1 << 20)) <= 0) failed(j->plain);
  }
  if (fsync(fd) != 0 || rename(new, j->plain) != 0) failed(j->plain);
  close(fd);
}

/* Measures both ways in turns, so that noise hits them alike, and reports the rates and their ratio. */
static void compare(bench *b, job *j, const char *what, void (*ours)(void *), void (*plain)(void *))
{
  enum { MOST = 64 };
  double a[MOST], p[MOST], gigabytes = (double)TENSORS * ELEMENTS * sizeof(float) / 1e9, end = bench_now() + b->seconds;
  size_t n = 0;
  while (n < 3 || (n < MOST && bench_now() < end)) {
    double start = bench_now();
    plain(j);
    p[n] = bench_now() - start;
    start = bench_now();
    ours(j);
    a[n++] = bench_now() - start;
  }
  char name[64];
  double median_a, median_p, unused;
  bench_stats(a, n, &median_a, &unused);
  bench_stats(p, n, &median_p, &unused);
  snprintf(name, sizeof name, "checkpoint_%s", what);
  bench_report(b, name, gigabytes / median_a, -1, "GB/s", "");
  snprintf(name, sizeof name, "checkpoint_%s_plain", what);
  bench_report(b, name, gigabytes / median_p, -1, "GB/s", "");
  snprintf(name, sizeof name, "checkpoint_%s_ratio", what);
  bench_report(b, name, median_p / median_a, -1, "x", ">= 0.8");
}

void bench_checkpoints(bench *b)
{
  if (!bench_wants("checkpoint_read") && !bench_wants("checkpoint_write") && !bench_wants("checkpoint_read_ratio") &&
      !bench_wants("checkpoint_write_ratio"))
    return;
  char folder[] = "/tmp/tenon-bench-XXXXXX", command[800];
  job *j = bench_alloc(sizeof *j);
  if (mkdtemp(folder) == NULL) failed(folder);
  snprintf(j->prefix, sizeof j->prefix, "%s/model", folder);
  snprintf(j->data, sizeof j->data, "%s/model.data-00000-of-00001", folder);
  snprintf(j->plain, sizeof j->plain, "%s/plain", folder);
  make_tensors(j);
  save(j);
  compare(b, j, "read", load, read_to_nowhere);
  compare(b, j, "write", save, write_plainly);
  for (int i = 0; i < TENSORS; i++) tn_tensor_unref(j->tensors[i]);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0) failed(folder);
  free(j);
}
