/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the runtime gpu: checks for a device, and scenes in processes of their own. */
#ifndef TENON_TESTS_SUPPORT_GPU_KIT_H
#define TENON_TESTS_SUPPORT_GPU_KIT_H

#include <stdbool.h>
#include <stddef.h>

/* Skips the test with the reason if the runtime gpu has no device, or fails it if the
 * environment has TENON_TEST_GPU=required. Loads OpenCL into this process. */
#define GPU_NEEDS_DEVICE() \
  do {                     \
    if (!gpu_kit_has_device()) return; \
  } while (0)
bool gpu_kit_has_device(void);

/* A part of a test run in a separate process: returns 0 on success. Its output is passed to the
 * caller. */
typedef struct gpu_scene {
  const char *name;
  int (*fn)(void);
} gpu_scene;

/* For the setup of a test program: its scenes, and the test that begins with gpu_kit_begin. */
void gpu_kit_scenes(const char *test, const gpu_scene *scenes, size_t n);
/* In a process started by gpu_kit_run this runs the scene and ends the process. Scenes run
 * inside a test, so that REQUIRE and the like work in them. */
void gpu_kit_begin(void);

/* Starts this program again for a scene, with additional "NAME=VALUE" strings in its
 * environment, terminated by NULL (environment may be NULL). Returns its exit status, or 256
 * plus the signal that ended it. *text is its output, valid until the next call. The limit is
 * two minutes. */
int gpu_kit_run(const char *scene, const char *const *environment, const char **text);

/* Like gpu_kit_run, but the scene must succeed: otherwise the test shows its output. */
void gpu_kit_play(const char *scene, const char *const *environment);

/* "NAME=VALUE", in one of four static buffers. */
const char *gpu_kit_setting(const char *name, const char *value);

/* In a scene: unless the condition holds, prints a message and returns 1 from the scene. */
#define SCENE_CHECK(condition, ...)                                          \
  do {                                                                       \
    if (!(condition)) {                                                      \
      printf("%s:%d: %s: ", __FILE__, __LINE__, #condition), printf(" " __VA_ARGS__), printf("\n"); \
      return 1;                                                              \
    }                                                                        \
  } while (0)

#endif
