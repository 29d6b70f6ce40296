/* SPDX-License-Identifier: Apache-2.0 */
/* Memory accounts. The counts need no order with other memory, so they are relaxed; only the last unref orders. */
#include <core/tensor/account.h>

_Thread_local tn__account *tn__account_now TN__THREAD_WORD;

tn__account *tn__account_create(int64_t limit)
{
  tn__account *a = tn__zalloc(sizeof *a);
  if (a == NULL) return NULL;
  atomic_init(&a->refs, 1);
  a->limit = limit;
  return a;
}

tn__account *tn__account_ref(tn__account *a)
{
  if (a != NULL) atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
  return a;
}

void tn__account_unref(tn__account *a)
{
  if (a != NULL && atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) == 1) tn__free(a, sizeof *a);
}

bool tn__account_charge(tn__account *a, size_t bytes)
{
  if (a == NULL) return true;
  int64_t n = bytes > (size_t)INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)bytes; /* larger than any limit in use */
  int64_t used = atomic_load_explicit(&a->used, memory_order_relaxed);
  do {
    if (n > a->limit - used) return false;
  } while (
      !atomic_compare_exchange_weak_explicit(&a->used, &used, used + n, memory_order_relaxed, memory_order_relaxed));
  return true;
}

void tn__account_credit(tn__account *a, size_t bytes)
{
  if (a != NULL) atomic_fetch_sub_explicit(&a->used, (int64_t)bytes, memory_order_relaxed);
}

tn_status tn__account_refuse(const tn__account *a, const char *what, size_t bytes, tn_error *err)
{
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                      "%s of %zu bytes: the session may have %lld bytes (memory_limit_bytes) and "
                      "has %lld",
                      what, bytes, (long long)a->limit,
                      (long long)atomic_load_explicit(&a->used, memory_order_relaxed));
}

/* ---- charges ---- */

/* The first call binds the charge to the account of the step that this thread runs. */
tn_status tn__charge_set(tn__charge *c, const char *what, size_t bytes, tn_error *err)
{
  if (c->account == NULL) {
    c->account = tn__account_ref(tn__account_now);
    c->bytes = 0;
  }
  if (c->account == NULL) return TN_OK;
  if (bytes > c->bytes && !tn__account_charge(c->account, bytes - c->bytes))
    return tn__account_refuse(c->account, what, bytes - c->bytes, err);
  if (bytes < c->bytes) tn__account_credit(c->account, c->bytes - bytes);
  c->bytes = bytes;
  return TN_OK;
}

void tn__charge_settle(tn__charge *c, size_t bytes)
{
  if (c->account == NULL) return;
  atomic_fetch_add_explicit(&c->account->used, (int64_t)bytes - (int64_t)c->bytes, memory_order_relaxed);
  c->bytes = bytes;
}

void tn__charge_end(tn__charge *c)
{
  tn__charge_settle(c, 0);
  tn__account_unref(c->account);
  *c = (tn__charge){ .account = NULL };
}
