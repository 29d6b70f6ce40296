/* SPDX-License-Identifier: Apache-2.0 */
/* System calls on files that fail, or end the process, on demand. This file replaces the C library's functions for the
 * whole program, so one file of a program includes it. Calls are counted while faults are armed. For Linux, and
 * programs that define _GNU_SOURCE. */
#ifndef TENON_TESTS_SUPPORT_SYS_FAULTS_H
#define TENON_TESTS_SUPPORT_SYS_FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
  bool armed;
  unsigned countdown; /* the call that decrements it from 1 to 0 meets the fault; 0: none does */
  bool for_good;      /* all later calls fail, too */
  int number;         /* errno of the fault; 0: the process ends instead, before the call */
  bool met;
  /* A letter for each call: open, write, fsync of a file (s) or folder (S), link, rename, unlink, close, mkdir, rmdir
   * (d). */
  char log[1000];
} sys_faults;

/* The nth call from now fails with `number`, or if that is 0 ends the process. n 0: the calls are only logged. */
static inline void sys_faults_arm(unsigned n, int number, bool for_good)
{
  memset(&sys_faults, 0, sizeof(sys_faults));
  sys_faults.countdown = n;
  sys_faults.number = number;
  sys_faults.for_good = for_good;
  sys_faults.armed = true;
}

/* Ends the faults; returns whether one was met. */
static inline bool sys_faults_end(void)
{
  sys_faults.armed = false;
  return sys_faults.met;
}

/* Logs a call. True: it fails, and errno is set. */
static inline bool sys_faults_meets(char call)
{
  if (!sys_faults.armed) return false;
  size_t n = strlen(sys_faults.log);
  if (n < sizeof(sys_faults.log) - 1) sys_faults.log[n] = call;
  bool now = sys_faults.countdown > 0 && --sys_faults.countdown == 0;
  if (!now && !(sys_faults.met && sys_faults.for_good)) return false;
  sys_faults.met = true;
  if (sys_faults.number == 0) _exit(42);
  errno = sys_faults.number;
  return true;
}

int open(const char *path, int flags, ...)
{
  mode_t mode = 0;
  va_list args;
  va_start(args, flags);
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) mode = va_arg(args, mode_t);
  va_end(args);
  return sys_faults_meets('o') ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* A write that fails may have written a part. */
ssize_t write(int fd, const void *data, size_t n)
{
  bool fails = sys_faults_meets('w');
  int number = errno;
  ssize_t put = syscall(SYS_write, fd, data, fails ? n / 2 : n);
  if (fails) errno = number;
  return fails ? -1 : put;
}

int fsync(int fd)
{
  struct stat st;
  bool folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
  if (sys_faults_meets(folder ? 'S' : 's')) return -1;
  return 0; /* the disk is not waited for: no test stops the machine */
}

int close(int fd)
{
  bool fails = sys_faults_meets('c');
  int number = errno, failed = (int)syscall(SYS_close, fd); /* a failed close has closed it */
  if (fails) errno = number;
  return fails ? -1 : failed;
}

int link(const char *from, const char *to)
{
  return sys_faults_meets('l') ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
  return sys_faults_meets('l') ? -1 : (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
}

int rename(const char *from, const char *to)
{
  return sys_faults_meets('r') ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdir(const char *path, mode_t mode)
{
  return sys_faults_meets('m') ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rmdir(const char *path)
{
  return sys_faults_meets('d') ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int unlink(const char *path) { return sys_faults_meets('u') ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0); }

#endif
