/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of the worker pool: a pool with one client, and work that takes time. */
#ifndef TN_TESTS_POOL_KIT_H
#define TN_TESTS_POOL_KIT_H

#include <core/base/threads/lock.h>
#include <core/pool/pool.h>

#include "conformance/support/tap.h"

typedef struct fixture {
  tn__pool *pool;
  tn__pool_client *client;
} fixture;

static inline TN_UNUSED fixture open_client(uint32_t workers, uint32_t intra)
{
  fixture f;
  tn_error err = TN_ERROR_INIT;
  tn__client_config config = { .workers = workers, .intra = intra, .spin_us = TN__SPIN_US };
  REQUIRE_OK(tn__pool_private(workers, false, &f.pool, &err), &err);
  REQUIRE_OK(tn__client_create(f.pool, &config, &f.client, &err), &err);
  return f;
}

static inline TN_UNUSED void close_client(fixture f)
{
  tn__client_destroy(f.client);
  tn__pool_unref(f.pool);
}

static inline TN_UNUSED void busy(int64_t ns)
{
  int64_t until = tn__now_ns() + ns;
  while (tn__now_ns() < until) continue;
}

#endif
