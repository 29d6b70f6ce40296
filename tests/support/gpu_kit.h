/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the runtime gpu: whether there is a device, and scenes in processes of their own. */
#ifndef TENON_TESTS_SUPPORT_GPU_KIT_H
#define TENON_TESTS_SUPPORT_GPU_KIT_H

#include <stdbool.h>
#include <stddef.h>

/* Ends the test as skipped, with the reason, where the runtime gpu has no device; as failed where the environment says
 * TENON_TEST_GPU=required. Loads OpenCL into this process. */
#define GPU_NEEDS_DEVICE() \
  do {                     \
    if (!gpu_kit_has_device()) return; \
  } while (0)
bool gpu_kit_has_device(void);

/* What a test does in a process of its own: 0 when all is well. What it prints is for who asked. */
typedef struct gpu_scene {
  const char *name;
  int (*fn)(void);
} gpu_scene;

/* For the setup of a test program: its scenes, and the test that begins with gpu_kit_begin. */
void gpu_kit_scenes(const char *test, const gpu_scene *scenes, size_t n);
/* In a process that gpu_kit_run started this plays the scene and ends the process: scenes are played inside of a test,
 * so that REQUIRE and the like work in them. */
void gpu_kit_begin(void);

/* Starts this program anew for a scene, with "NAME=VALUE" more in its environment, up to a NULL (environment may be
 * NULL). Returns its exit status, 256 and the signal's number when one ended it. *text is what it printed, good until
 * the next call. It has two minutes. */
int gpu_kit_run(const char *scene, const char *const *environment, const char **text);

/* As gpu_kit_run, and the scene must end well: the test shows what it printed otherwise. */
void gpu_kit_play(const char *scene, const char *const *environment);

/* "NAME=VALUE", in one of four static buffers. */
const char *gpu_kit_setting(const char *name, const char *value);

/* In a scene: prints what is wrong and returns 1 from the scene unless it holds. */
#define SCENE_CHECK(condition, ...)                                          \
  do {                                                                       \
    if (!(condition)) {                                                      \
      printf("%s:%d: %s: ", __FILE__, __LINE__, #condition), printf(" " __VA_ARGS__), printf("\n"); \
      return 1;                                                              \
    }                                                                        \
  } while (0)

#endif
