/* SPDX-License-Identifier: Apache-2.0 */
/* tenon graph: runs Graphviz's program `dot`, and writes files. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tools/picture/picture.h>

extern char **environ;

static tn_status status_of(int code)
{
  switch (code) {
  case ENOENT:
  case ENOTDIR: return TN_NOT_FOUND;
  case EACCES:
  case EPERM:
  case EROFS: return TN_PERMISSION_DENIED;
  case ENOMEM:
  case EFBIG:
  case ENOSPC:
  case EDQUOT:
  case EMFILE:
  case ENFILE:
  case EAGAIN: return TN_RESOURCE_EXHAUSTED;
  default: return TN_INVALID_ARGUMENT;
  }
}

static tn_status system_error(int code, const char *what, const char *name, tn_error *err)
{
  return tn_error_set(err, status_of(code), "%s '%s': %s", what, name, strerror(code));
}

/* ---- child process with pipes ---- */

/* Our ends of the three pipes, -1 once closed, and the child's ends, which become its descriptors 0, 1 and 2. */
typedef struct child {
  pid_t pid;
  int ours[3];
  int its[3];
} child;

static void close_end(int *end)
{
  if (*end >= 0) close(*end);
  *end = -1;
}

static void close_all(child *c)
{
  for (int i = 0; i < 3; i++) {
    close_end(&c->ours[i]);
    close_end(&c->its[i]);
  }
}

/* Returns a close-on-exec descriptor above 2, as the child moves it to 0, 1 or 2. */
static int move_up(int end)
{
  int moved = fcntl(end, F_DUPFD_CLOEXEC, 3);
  int code = errno;
  close(end);
  errno = code;
  return moved;
}

static bool make_pipes(child *c)
{
  for (int i = 0; i < 3; i++) c->ours[i] = c->its[i] = -1;
  for (int i = 0; i < 3; i++) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    c->its[i] = move_up(ends[i == 0 ? 0 : 1]);
    int code = errno;
    c->ours[i] = move_up(ends[i == 0 ? 1 : 0]);
    if (c->its[i] < 0) errno = code;
    if (c->its[i] < 0 || c->ours[i] < 0 || fcntl(c->ours[i], F_SETFL, O_NONBLOCK) != 0) return false;
  }
  return true;
}

/* Returns 0 or an errno value. Signals ignored by this process have their default action in the child. */
static int spawn(child *c, char *const *argv)
{
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t signals;
  int code = posix_spawn_file_actions_init(&actions);
  if (code != 0) return code;
  code = posix_spawnattr_init(&attributes);
  if (code != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return code;
  }
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  sigaddset(&signals, SIGXFSZ);
  for (int i = 0; i < 3 && code == 0; i++) code = posix_spawn_file_actions_adddup2(&actions, c->its[i], i);
  if (code == 0) code = posix_spawnattr_setsigdefault(&attributes, &signals);
  if (code == 0) code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  if (code == 0) code = posix_spawnp(&c->pid, argv[0], &actions, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

/* Reads available data; closes the pipe at its end. */
static void take(int *end, tool_text *out)
{
  char buffer[65536];
  ssize_t n = read(*end, buffer, sizeof(buffer));
  if (n > 0) tool_text_add(out, buffer, (size_t)n);
  if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) close_end(end);
}

/* Writes as much as fits. If the child stops reading, its exit status explains why. */
static void give(int *end, const tool_text *in, size_t *done)
{
  ssize_t n = write(*end, in->data + *done, in->length - *done);
  if (n > 0) *done += (size_t)n;
  if (*done == in->length || (n < 0 && errno != EINTR && errno != EAGAIN)) close_end(end);
}

/* Serves all three pipes at once, so that neither side blocks the other. */
static int exchange(child *c, const tool_text *in, tool_text *out, tool_text *messages)
{
  size_t done = 0;
  while (c->ours[1] >= 0 || c->ours[2] >= 0) {
    struct pollfd ends[3] = { { c->ours[0], POLLOUT, 0 }, { c->ours[1], POLLIN, 0 }, { c->ours[2], POLLIN, 0 } };
    if (poll(ends, 3, -1) < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (ends[0].revents != 0) give(&c->ours[0], in, &done);
    if (ends[1].revents != 0) take(&c->ours[1], out);
    if (ends[2].revents != 0) take(&c->ours[2], messages);
  }
  return 0;
}

static int wait_for(pid_t pid)
{
  int status;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return status;
}

/* Keeps the first lines of dot's messages. */
static void first_lines(tool_text *messages)
{
  size_t lines = 0;
  for (size_t i = 0; i < messages->length; i++) {
    if (messages->data[i] == '\0') messages->data[i] = ' ';
    if (messages->data[i] == '\n' && ++lines == 3) messages->length = i;
  }
  while (messages->length > 0 && messages->data[messages->length - 1] == '\n') messages->length--;
  messages->data[messages->length] = '\0';
}

static tn_status judge(int status, const tool_text *out, tool_text *messages, tn_error *err)
{
  tool_text_add(messages, "", 0);
  first_lines(messages);
  const char *colon = messages->length > 0 ? ": " : "";
  if (WIFSIGNALED(status))
    return tn_error_set(err, TN_ABORTED, "dot was ended by signal %d%s%s", WTERMSIG(status), colon, messages->data);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return tn_error_set(err, TN_INTERNAL, "dot ended with status %d%s%s", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                        colon, messages->data);
  if (out->length == 0) return tn_error_set(err, TN_INTERNAL, "dot produced no output%s%s", colon, messages->data);
  return TN_OK;
}

tn_status picture_render(const char *format, const tool_text *dot, tool_text *out, tn_error *err)
{
  char option[16];
  char *argv[] = { (char *)"dot", option, NULL };
  tool_text messages = { 0 };
  child c;
  snprintf(option, sizeof(option), "-T%s", format);
  int code = make_pipes(&c) ? spawn(&c, argv) : errno;
  if (code != 0) {
    close_all(&c);
    if (code == ENOENT)
      return tn_error_set(err, TN_NOT_FOUND,
                          "the program 'dot' is not in PATH: install the package graphviz, or write the graph as text "
                          "with -o FILE.dot");
    return system_error(code, "cannot run", "dot", err);
  }
  tool_ending_child((int)c.pid); /* dot may run for minutes */
  for (int i = 0; i < 3; i++) close_end(&c.its[i]);
  tool_progress *progress = tool_progress_start("drawing", 0);
  code = exchange(&c, dot, out, &messages);
  close_all(&c);
  int status = wait_for(c.pid);
  tool_ending_child(0);
  tool_progress_end(progress);
  tn_status result = code != 0 ? system_error(code, "cannot talk to", "dot", err) : judge(status, out, &messages, err);
  if (result == TN_OK && messages.length > 0) fprintf(stderr, "dot: %s\n", messages.data);
  if (result != TN_OK) tool_text_fini(out);
  tool_text_fini(&messages);
  return result;
}

/* ---- files ---- */

/* The folder of a file, with a trailing slash; "" for the current one. */
static void folder_of(const char *path, tool_text *out)
{
  const char *slash = strrchr(path, '/');
  tool_text_add(out, path, slash != NULL ? (size_t)(slash - path) + 1 : 0);
}

tn_status picture_check_place(const char *path, tn_error *err)
{
  struct stat about;
  tool_text folder = { 0 };
  tn_status status = TN_OK;
  if (stat(path, &about) == 0) {
    if (S_ISREG(about.st_mode)) return TN_OK;
    return tn_error_set(err, TN_INVALID_ARGUMENT, "cannot write '%s': it exists and is %s", path,
                        S_ISDIR(about.st_mode) ? "a directory" : "not a regular file");
  }
  if (errno != ENOENT) return system_error(errno, "cannot write", path, err);
  folder_of(path, &folder);
  if (access(folder.length > 0 ? folder.data : ".", W_OK | X_OK) != 0)
    status = system_error(errno, "cannot write", path, err);
  tool_text_fini(&folder);
  return status;
}

tn_status picture_save(const char *path, const char *data, size_t size, tn_error *err)
{
  tn_status status = picture_check_place(path, err);
  return status == TN_OK ? tn_file_save(path, data, size, err) : status;
}
