/* SPDX-License-Identifier: Apache-2.0 */
/* Measures whole processes. A child reports its own peak memory: the value of wait4 and getrusage includes its
 * parent's, as Linux keeps it across fork, vfork and exec. */
#include <bench/bench.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int bench_child_done(void)
{
  printf("%lld\n", bench_memory_kb("VmHWM"));
  return fflush(stdout) == 0 ? 0 : 1;
}

/* Starts the program with its output in a pipe, and returns the other end. */
static int start(const bench *b, const char *option, const char *value, pid_t *pid)
{
  char *argv[] = { (char *)b->self, (char *)option, (char *)value, NULL };
  int ends[2];
  if (pipe(ends) != 0) return -1;
  *pid = fork();
  if (*pid == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    execv(b->self, argv);
    _exit(127);
  }
  close(ends[1]);
  if (*pid > 0) return ends[0];
  close(ends[0]);
  return -1;
}

void bench_run_child(const bench *b, const char *option, const char *value, double *seconds, double *peak_mb)
{
  char reply[64];
  size_t size = 0;
  ssize_t n = -1;
  pid_t pid = -1;
  int status = 0;
  double t = bench_now();
  int fd = start(b, option, value, &pid);
  while (fd >= 0 && size + 1 < sizeof reply &&
         ((n = read(fd, reply + size, sizeof reply - 1 - size)) > 0 || (n < 0 && errno == EINTR)))
    if (n > 0) size += (size_t)n;
  reply[size] = 0;
  if (fd < 0 || waitpid(pid, &status, 0) < 0 || status != 0 || atoll(reply) <= 0) {
    fprintf(stderr, "bench: %s %s %s: the process failed, or did not report its peak memory\n", b->self, option, value);
    exit(1);
  }
  close(fd);
  *seconds = bench_now() - t;
  *peak_mb = (double)atoll(reply) / 1024;
}
