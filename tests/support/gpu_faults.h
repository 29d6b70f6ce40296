/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes with tests/plugins/opencl_faults.c in place of the loader of OpenCL, and its counters.
 * For programs that define _GNU_SOURCE. */
#ifndef TENON_TESTS_SUPPORT_GPU_FAULTS_H
#define TENON_TESTS_SUPPORT_GPU_FAULTS_H

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "tests/support/gpu_kit.h"
#include "tests/support/plugin_files.h"
#include "conformance/support/tap.h"

static TN_UNUSED struct {
  void (*set)(const char *function, long nth, int for_good, int code);
  int (*met)(void);
  const char *(*function)(int i);
  long (*calls)(int i);
  void (*alive)(char *text, size_t size);
} cl;

enum { MOST_FUNCTIONS = 64, OUT_OF_RESOURCES = -5, DEVICE_NOT_AVAILABLE = -2, NO_MEMORY = -4 };

static inline bool attach(void)
{
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return false;
  tn_set_log_level(TN_LOG_ERROR);
  *(void **)&cl.set = dlsym(library, "opencl_faults_set");
  *(void **)&cl.met = dlsym(library, "opencl_faults_met");
  *(void **)&cl.function = dlsym(library, "opencl_faults_function");
  *(void **)&cl.calls = dlsym(library, "opencl_faults_calls");
  *(void **)&cl.alive = dlsym(library, "opencl_faults_alive");
  return cl.set != NULL && cl.met != NULL && cl.function != NULL && cl.calls != NULL && cl.alive != NULL;
}

static inline const char *alive(void)
{
  static char text[200];
  cl.alive(text, sizeof text);
  return text;
}

static TN_UNUSED const char nothing[] = "contexts 0, queues 0, buffers 0, programs 0, kernels 0, events 0";

/* The path of the real loader, or NULL. */
static inline const char *real_loader(void)
{
  static char path[4096];
  struct link_map *map;
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return NULL;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return NULL;
  return realpath(map->l_name, path);
}

/* The environment of a scene with it; types: NULL, or the device types to claim. */
static inline const char *const *with_faults(const char *types, const char *fail)
{
  static const char *environment[6];
  static char folder[4096];
  size_t n = 0;
  const char *loader = real_loader();
  REQUIRE(loader != NULL);
  if (folder[0] == '\0') {
    snprintf(folder, sizeof folder, "%s", plugin_folder());
    REQUIRE_INT(symlink(plugin_source("opencl_faults"), plugin_path(folder, "libOpenCL.so.1")), 0);
  }
  environment[n++] = gpu_kit_setting("LD_LIBRARY_PATH", folder);
  environment[n++] = gpu_kit_setting("TENON_TEST_OPENCL", loader);
  environment[n++] = gpu_kit_setting("TENON_CACHE_DIR", folder);
  if (types != NULL) environment[n++] = gpu_kit_setting("TENON_TEST_OPENCL_TYPES", types);
  else if (fail != NULL) environment[n++] = gpu_kit_setting("TENON_TEST_OPENCL_FAIL", fail);
  environment[n] = NULL;
  return environment;
}

/* Number of calls of a function so far. */
static inline long calls_of(const char *function)
{
  for (int i = 0; cl.function(i) != NULL; i++)
    if (strcmp(cl.function(i), function) == 0) return cl.calls(i);
  return 0;
}

#endif
