/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for a device; scenes in processes of their own. */
#define _GNU_SOURCE
#include "tests/support/gpu_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "tests/support/plugin_files.h"
#include "conformance/support/tap.h"

#define SCENE "TENON_TEST_SCENE"
#define WELL 42 /* exit status of success: a program whose test failed ends with 0, too */

bool gpu_kit_has_device(void)
{
  const char *wish = getenv("TENON_TEST_GPU");
  tn_error err = TN_ERROR_INIT;
  tn_session *session = NULL;
  tn_status st = plugin_open_session("gpu", &session, &err);
  tn_session_destroy(session);
  char reason[500];
  snprintf(reason, sizeof reason, "%s", tn_error_message(&err));
  tn_error_clear(&err);
  if (st == TN_OK) return true;
  REQUIRE_MSG(wish == NULL || strcmp(wish, "required") != 0, "TENON_TEST_GPU=required, but there is no device: %s",
              reason);
  tap_skip("no device for the runtime gpu: %s", reason);
  return false;
}

static const char *first_test;
static const gpu_scene *scenes;
static size_t n_scenes;

void gpu_kit_scenes(const char *test, const gpu_scene *list, size_t n)
{
  first_test = test;
  scenes = list;
  n_scenes = n;
}

void gpu_kit_begin(void)
{
  const char *wanted = getenv(SCENE);
  if (wanted == NULL) return;
  for (size_t i = 0; i < n_scenes; i++) {
    if (strcmp(scenes[i].name, wanted) != 0) continue;
    int status = scenes[i].fn();
    fflush(stdout);
    _exit(status == 0 ? WELL : status);
  }
  printf("there is no scene '%s'\n", wanted);
  fflush(stdout);
  _exit(99);
}

static char printed[1 << 16];

static void read_all(int fd)
{
  size_t size = 0;
  for (;;) {
    char rest[256];
    bool full = size + 1 == sizeof printed;
    ssize_t n = read(fd, full ? rest : printed + size, full ? sizeof rest : sizeof printed - 1 - size);
    if (n <= 0) break;
    if (!full) size += (size_t)n;
  }
  printed[size] = '\0';
}

static void become(const char *scene, const char *const *environment, int out)
{
  char name[] = "scene", test[200], *argv[] = { name, test, NULL };
  snprintf(test, sizeof test, "%s", first_test);
  dup2(out, 1);
  dup2(out, 2);
  setenv(SCENE, scene, 1);
  for (; environment != NULL && *environment != NULL; environment++) putenv((char *)*environment);
  alarm(120);
  execv("/proc/self/exe", argv);
  _exit(98);
}

int gpu_kit_run(const char *scene, const char *const *environment, const char **text)
{
  int ends[2], status = 0;
  fflush(stdout);
  REQUIRE_INT(pipe2(ends, O_CLOEXEC), 0);
  pid_t child = fork();
  if (child == 0) become(scene, environment, ends[1]);
  close(ends[1]);
  if (child > 0) read_all(ends[0]);
  close(ends[0]);
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  if (text != NULL) *text = printed;
  if (!WIFEXITED(status)) return 256 + WTERMSIG(status);
  if (WEXITSTATUS(status) == WELL) return 0;
  return WEXITSTATUS(status) == 0 ? 97 : WEXITSTATUS(status);
}

void gpu_kit_play(const char *scene, const char *const *environment)
{
  const char *text;
  int status = gpu_kit_run(scene, environment, &text);
  CHECK_MSG(status == 0, "scene '%s' ended with %d: %s", scene, status, text);
}

const char *gpu_kit_setting(const char *name, const char *value)
{
  static char texts[4][4096];
  static int next;
  char *text = texts[next++ % 4];
  snprintf(text, sizeof texts[0], "%s=%s", name, value);
  return text;
}
