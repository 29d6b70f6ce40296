/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a session that has a limit. What a thread makes while it runs a step of such a session is charged to the
 * session's account, and credited when it is freed, by whom and whenever that may be. */
#ifndef TN_CORE_TENSOR_ACCOUNT_H
#define TN_CORE_TENSOR_ACCOUNT_H

#include <core/base/alloc.h>
#include <core/base/thread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct tn__account {
  _Atomic uint32_t refs;
  _Atomic int64_t used; /* bytes */
  int64_t limit;
} tn__account;

/* Of the step that this thread runs; NULL: nobody counts. */
extern _Thread_local tn__account *tn__account_now TN__THREAD_WORD;

tn__account *tn__account_create(int64_t limit); /* NULL without memory */
tn__account *tn__account_ref(tn__account *account); /* NULL allowed, as below */
void tn__account_unref(tn__account *account);

/* Takes bytes for something that lives on; false: that would be above the limit, and nothing was taken. NULL: true. */
bool tn__account_charge(tn__account *account, size_t bytes);
void tn__account_credit(tn__account *account, size_t bytes);
/* What one object has of an account: that of the step in which it was made or first grew. All zero: nothing. */
typedef struct tn__charge {
  tn__account *account;
  size_t bytes;
} tn__charge;
/* The object takes `bytes` from now on. TN_RESOURCE_EXHAUSTED: that would be above the limit, and nothing changed. */
tn_status tn__charge_set(tn__charge *charge, const char *what, size_t bytes, tn_error *err);
/* The same for bytes that it has already, a few more than it was allowed. */
void tn__charge_settle(tn__charge *charge, size_t bytes);
void tn__charge_end(tn__charge *charge);

/* TN_RESOURCE_EXHAUSTED, with what was asked for and what is in use. */
tn_status tn__account_refuse(const tn__account *account, const char *what, size_t bytes, tn_error *err);

#endif
