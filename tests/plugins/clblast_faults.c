/* SPDX-License-Identifier: Apache-2.0 */
/* A replacement of CLBlast for the runtime gpu that multiplies nothing and fails on demand, controlled by the
 * environment:
 *
 *   TENON_TEST_CLBLAST       "2:-4": the second product returns -4, all others succeed
 *   TENON_TEST_CLBLAST_TEMP  bytes of temporary memory requested for products of 32 rows and more; default 0 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static atomic_int n_products;

static int product(void)
{
  const char *text = getenv("TENON_TEST_CLBLAST");
  int nth = 0, code = 0;
  if (text == NULL || sscanf(text, "%d:%d", &nth, &code) != 2) return 0;
  return atomic_fetch_add(&n_products, 1) + 1 == nth ? code : 0;
}

/* The arguments are not used, so the function is declared without any. */
EXPORT int CLBlastSgemmWithTempBuffer(void);
EXPORT int CLBlastSgemmWithTempBuffer(void) { return product(); }
EXPORT int CLBlastDgemmWithTempBuffer(void);
EXPORT int CLBlastDgemmWithTempBuffer(void) { return product(); }
EXPORT int CLBlastSgemmStridedBatched(void);
EXPORT int CLBlastSgemmStridedBatched(void) { return product(); }
EXPORT int CLBlastDgemmStridedBatched(void);
EXPORT int CLBlastDgemmStridedBatched(void) { return product(); }
EXPORT int CLBlastClearCache(void);
EXPORT int CLBlastClearCache(void) { return puts("cleared") < 0; }

#define TEMP_BYTES(name)                                                                                              \
  EXPORT int name(int layout, int a, int b, size_t m, size_t n, size_t k, size_t a_at, size_t a_row, size_t b_at,     \
                  size_t b_row, size_t out_at, size_t out_row, void *queue, size_t *bytes);                           \
  EXPORT int name(int layout, int a, int b, size_t m, size_t n, size_t k, size_t a_at, size_t a_row, size_t b_at,     \
                  size_t b_row, size_t out_at, size_t out_row, void *queue, size_t *bytes)                            \
  {                                                                                                                   \
    const char *text = getenv("TENON_TEST_CLBLAST_TEMP");                                                             \
    (void)layout, (void)a, (void)b, (void)n, (void)k, (void)a_at, (void)a_row, (void)b_at, (void)b_row, (void)out_at; \
    (void)out_row, (void)queue;                                                                                       \
    *bytes = text != NULL && m >= 32 ? strtoul(text, NULL, 10) : 0;                                                   \
    return 0;                                                                                                         \
  }
TEMP_BYTES(CLBlastSGemmTempBufferSize)
TEMP_BYTES(CLBlastDGemmTempBufferSize)
