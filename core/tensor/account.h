/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts for sessions with a memory limit. Objects that a thread makes while it runs a step of such a session are
 * charged to the session's account. They are credited when they are freed, by any thread, even after the session has
 * ended, so each charged object has a reference to its account. */
#ifndef TN_CORE_TENSOR_ACCOUNT_H
#define TN_CORE_TENSOR_ACCOUNT_H

#include <core/base/alloc.h>
#include <core/base/threads/thread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct tn__account {
  _Atomic uint32_t refs;
  _Atomic int64_t used; /* bytes; may exceed the limit after tn__charge_settle */
  int64_t limit;        /* bytes */
} tn__account;

/* The account of the step that this thread runs, borrowed; NULL: memory is not limited. */
extern _Thread_local tn__account *tn__account_now TN__THREAD_WORD;

tn__account *tn__account_create(int64_t limit);     /* NULL: out of memory */
tn__account *tn__account_ref(tn__account *account); /* NULL allowed, as below */
void tn__account_unref(tn__account *account);

/* Charges bytes. False: the limit would be exceeded, nothing was charged. Always true if account is NULL. */
bool tn__account_charge(tn__account *account, size_t bytes);
void tn__account_credit(tn__account *account, size_t bytes);
/* The charge of one object that changes its size, to the account of the step in which it was made or first grew.
 * Initialise it to zero. The object's lock guards it. */
typedef struct tn__charge {
  tn__account *account; /* a reference; NULL: nothing charged yet */
  size_t bytes;
} tn__charge;
/* Sets the object's size. TN_RESOURCE_EXHAUSTED: the limit would be exceeded, nothing changed. */
tn_status tn__charge_set(tn__charge *charge, const char *what, size_t bytes, tn_error *err);
/* Sets the size of an object that has already grown, a little more than was charged in advance. Cannot fail. */
void tn__charge_settle(tn__charge *charge, size_t bytes);
void tn__charge_end(tn__charge *charge); /* credits everything */

/* Sets TN_RESOURCE_EXHAUSTED with the requested bytes, the limit and the bytes in use. */
tn_status tn__account_refuse(const tn__account *account, const char *what, size_t bytes, tn_error *err);

#endif
