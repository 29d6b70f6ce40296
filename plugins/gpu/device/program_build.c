/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's compiler: programs of source or of a kept binary, and what it says when it cannot. */
#include "device/program_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LOG 3000 /* bytes of a compiler's log in a message */

/* ---- when it does not compile ---- */

/* LINE of the first ":LINE:COLUMN:" at or after `at` in its line. */
static long line_in(const char *at)
{
  for (; *at != 0 && *at != '\n'; at++) {
    if (*at != ':' || !isdigit((unsigned char)at[1])) continue;
    char *end;
    long line = strtol(at + 1, &end, 10);
    if (*end == ':' && isdigit((unsigned char)end[1])) return line;
  }
  return 0;
}

/* The line that the first error is about: compilers say "FILE:LINE:COLUMN: error: ..." or "error:
 * FILE:LINE:COLUMN: ...". 0 when none is named. */
static long error_line(const char *log)
{
  for (const char *at = log; (at = strstr(at, "error:")) != NULL; at++) {
    const char *begin = at;
    while (begin > log && begin[-1] != '\n') begin--;
    long line = line_in(begin);
    if (line > 0) return line;
  }
  return 0;
}

static const char *find_line(const char *text, long line, int *length)
{
  for (; line > 1 && text != NULL; line--) {
    text = strchr(text, '\n');
    if (text != NULL) text++;
  }
  *length = 0;
  if (text == NULL) return "";
  text += strspn(text, " \t");
  size_t n = strcspn(text, "\n");
  *length = n > 200 ? 200 : (int)n;
  return text;
}

static char *read_log(const gpu_source *source, cl_program program)
{
  size_t size = 0;
  if (cl.GetProgramBuildInfo(program, source->device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) != CL_SUCCESS)
    return NULL;
  char *log = size > (1u << 26) ? NULL : tn_alloc(size + 1);
  if (log == NULL) return NULL;
  memset(log, 0, size + 1);
  if (cl.GetProgramBuildInfo(program, source->device->id, CL_PROGRAM_BUILD_LOG, size, log, NULL) == CL_SUCCESS)
    return log;
  tn_free(log);
  return NULL;
}

static tn_status build_error(const gpu_source *source, cl_program program, cl_int code, tn_error *err)
{
  if (code == CL_OUT_OF_HOST_MEMORY || code == CL_OUT_OF_RESOURCES)
    return gpu_cl_error(err, code, "clBuildProgram", source->device->name);
  char *log = read_log(source, program);
  long line = log != NULL ? error_line(log) : 0;
  int length = 0;
  const char *text = line > 0 ? find_line(source->text, line, &length) : "";
  if (length > 0)
    tn_error_set(err, TN_INTERNAL, "gpu: program '%s' (%s) does not compile on '%s', line %ld, '%.*s': %.*s",
                 source->label, source->options, source->device->name, line, length, text, MOST_LOG, log);
  else
    tn_error_set(err, TN_INTERNAL, "gpu: program '%s' (%s) does not compile on '%s', %s: %.*s", source->label,
                 source->options, source->device->name, gpu_cl_name(code), MOST_LOG,
                 log != NULL ? log : "the compiler says no more");
  tn_free(log);
  return TN_INTERNAL;
}

/* ---- from source ---- */

static cl_int build(const gpu_source *source, cl_program program)
{
  size_t size = sizeof GPU_PROGRAM_OPTIONS + 1 + strlen(source->options);
  char *options = tn_alloc(size);
  if (options == NULL) return CL_OUT_OF_HOST_MEMORY;
  snprintf(options, size, "%s %s", GPU_PROGRAM_OPTIONS, source->options);
  cl_int code = cl.BuildProgram(program, 1, &source->device->id, options, NULL, NULL);
  tn_free(options);
  return code;
}

static tn_status compile(const gpu_source *source, cl_program *out, tn_error *err)
{
  /* Lines of the compiler's log are those of the text. */
  const char *parts[] = { source->prelude, "\n#line 1\n", source->text };
  cl_int code;
  cl_program program = cl.CreateProgramWithSource(source->device->context, 3, parts, NULL, &code);
  if (program == NULL) return gpu_cl_error(err, code, "clCreateProgramWithSource", source->device->name);
  code = build(source, program);
  if (code == CL_SUCCESS) {
    *out = program;
    return TN_OK;
  }
  tn_status st = build_error(source, program, code, err);
  cl.ReleaseProgram(program);
  return st;
}

/* ---- binaries ---- */

static void keep(const gpu_source *source, cl_program program)
{
  size_t size = 0;
  if (cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS || size == 0) return;
  unsigned char *bytes = tn_alloc(size);
  if (bytes == NULL) return;
  if (cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL) == CL_SUCCESS)
    gpu_cache_write(source, bytes, size);
  tn_free(bytes);
}

/* NULL if there is none, or the driver rejects it. */
static cl_program read_kept(const gpu_source *source)
{
  unsigned char *bytes;
  size_t size;
  if (!gpu_cache_read(source, &bytes, &size)) return NULL;
  const unsigned char *binary = bytes;
  cl_int status = CL_SUCCESS, code;
  cl_program program =
      cl.CreateProgramWithBinary(source->device->context, 1, &source->device->id, &size, &binary, &status, &code);
  tn_free(bytes);
  if (code == CL_SUCCESS) code = status;
  if (code == CL_SUCCESS) code = build(source, program);
  if (code == CL_SUCCESS) return program;
  tn_log(TN_LOG_INFO, "gpu: the kept binary of program '%s' is of no use: %s", source->label, gpu_cl_name(code));
  if (program != NULL) cl.ReleaseProgram(program);
  return NULL;
}

tn_status gpu_program_build(const gpu_source *source, cl_program *out, bool *compiled, tn_error *err)
{
  *compiled = false;
  *out = read_kept(source);
  if (*out != NULL) return TN_OK;
  *compiled = true;
  tn_status st = compile(source, out, err);
  if (st == TN_OK) keep(source, *out);
  return st;
}
