/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting queue operations: the order in which they are served, and the state left by cancelled
 * ones. */
#include <ops/state/queue/queue.h>

#include "conformance/support/op_kit.h"

#define LIST(key, values) "attr { key: '" key "' value { list { " values " } } }"
#define INT32 LIST("component_types", "type: DT_INT32")

static tn__queue *make(const char *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  tn_graph *graph;
  tn__queue_spec *spec;
  tn__queue *q;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  REQUIRE_OK(tn_graph_import(graph, text, strlen(text), &options, &err), &err);
  REQUIRE_OK(tn__queue_spec_read(tn_graph_find(graph, "q"), TN__QUEUE_FIFO, NULL, 0, &spec, &err), &err);
  REQUIRE_OK(tn__queue_create(spec, "q", &q, &err), &err);
  tn__queue_spec_unref(spec);
  tn_graph_unref(graph);
  return q;
}

static void enter(tn__queue_attempt *a, tn__queue *q, tn__queue_action action, int64_t n, int32_t first)
{
  tn__queue_attempt_init(a, q, NULL, action);
  if (action == TN__QUEUE_TAKE) a->asked = n;
  for (int64_t i = 0; action == TN__QUEUE_PUT && i < n; i++) {
    tn__queue_element *e = tn__queue_element_create(1);
    e->priority = first + i;
    tn__queue_list_add(&a->list, e);
  }
  tn__waitable_lock(&q->place);
  tn__queue_enter(&a->base);
  tn__waitable_unlock(&q->place);
}

/* Its elements are those from `first` on. */
static void check_got(const tn__queue_attempt *a, int64_t n, int64_t first)
{
  CHECK(a->base.served);
  CHECK_INT(a->base.status, TN_OK);
  CHECK_INT(a->list.n, n);
  for (const tn__queue_element *e = a->list.first; e != NULL; e = e->next) CHECK_INT(e->priority, first++);
}

static void queue_attempts__are_served_in_order(void)
{
  tn__queue *q = make(NODE("q", "FIFOQueueV2", "", INT32 INT("capacity", 2)));
  tn__queue_attempt a[6], at_once;
  enter(&a[0], q, TN__QUEUE_TAKE, 3, 0);
  enter(&a[1], q, TN__QUEUE_TAKE, 1, 0);
  enter(&a[2], q, TN__QUEUE_PUT, 2, 0);
  CHECK(a[2].base.served && !a[0].base.served && !a[1].base.served);
  enter(&a[3], q, TN__QUEUE_PUT, 5, 2); /* one for each taker, two are stored, one waits */
  check_got(&a[0], 3, 0);
  check_got(&a[1], 1, 3);
  CHECK(!a[3].base.served);
  CHECK_INT(tn__queue_size(q), 2);
  enter(&a[4], q, TN__QUEUE_CLOSE, 0, 0); /* queued after a[3] */
  tn__queue_attempt_init(&at_once, q, NULL, TN__QUEUE_CLOSE);
  CHECK(!tn__queue_attempt_now(&at_once.base));
  CHECK(!a[4].base.served && !tn__queue_is_closed(q));
  enter(&a[5], q, TN__QUEUE_TAKE, 1, 0);
  check_got(&a[5], 1, 4);
  CHECK(a[3].base.served && a[4].base.served && tn__queue_is_closed(q));
  for (int i = 0; i < 6; i++) tn__queue_attempt_fini(&a[i].base);
  tn__queue_destroy(q);
}

static void queue_attempts__return_their_elements_if_cancelled(void) /* S-CAN-12 */
{
  tn__queue *q = make(NODE("q", "FIFOQueueV2", "", INT32 INT("capacity", 2)));
  tn__queue_attempt a[6];
  enter(&a[0], q, TN__QUEUE_PUT, 2, 0);
  enter(&a[1], q, TN__QUEUE_TAKE, 4, 0); /* holds two */
  enter(&a[2], q, TN__QUEUE_TAKE, 1, 0); /* queued after a[1] */
  CHECK_INT(tn__queue_size(q), 0);
  tn__attempt_cancel(&a[1].base);
  CHECK_INT(a[1].base.status, TN_CANCELLED);
  check_got(&a[2], 1, 0);
  enter(&a[3], q, TN__QUEUE_PUT, 4, 10); /* one is stored */
  enter(&a[4], q, TN__QUEUE_PUT, 1, 2);  /* queued after a[3] */
  CHECK_INT(tn__queue_size(q), 2);
  CHECK(!a[4].base.served);
  tn__attempt_cancel(&a[3].base);
  tn__attempt_cancel(&a[3].base); /* already served: no effect */
  CHECK(a[3].base.served && a[4].base.served);
  CHECK_INT(a[3].list.n, 4);
  enter(&a[5], q, TN__QUEUE_TAKE, 2, 0);
  check_got(&a[5], 2, 1);
  tn__queue_give_back(&a[5]);
  CHECK_INT(tn__queue_size(q), 2);
  for (int i = 0; i < 6; i++) tn__queue_attempt_fini(&a[i].base);
  tn__queue_destroy(q);
}

TAP_MAIN(TAP_TEST(queue_attempts__are_served_in_order),
         TAP_TEST(queue_attempts__return_their_elements_if_cancelled))
