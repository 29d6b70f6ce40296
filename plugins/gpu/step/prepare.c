/* SPDX-License-Identifier: Apache-2.0 */
/* Executables: which plans the device can run, and their steps, segment by segment. */
#include "step/prepare.h"

#include "device/base.h"
#include "schedule/lookup.h"
#include "step/part.h"
#include "step/run.h"

/* ---- executables ---- */

static void free_values(gpu_values *v)
{
  tn_free(v->tensors);
  tn_free(v->feeds);
  tn_free(v->views);
  tn_free(v->used);
  tn_free(v->key);
  tn_free(v);
}

static void destroy(tn_executable *e)
{
  for (gpu_values *v = e->idle, *next; v != NULL; v = next) {
    next = v->next;
    free_values(v);
  }
  tn_kit_release(e->kit);
  gpu_executable_fini(e);
  tn_free(e);
}

static uint32_t most_threads(const tn_runtime_session *session)
{
  uint32_t threads = 1;
  for (size_t i = 0; i < session->n_pools; i++) {
    uint32_t n = tn_kit_workers_threads(session->pools[i]);
    if (n > threads) threads = n;
  }
  return threads;
}

/* Plans that are not straight are the kit's, and parts of them are this plugin's. */
static tn_status prepare_kit(tn_executable *e, tn_error *err)
{
  uint32_t flags = TN_KIT_POOL | TN_KIT_THREADS(most_threads(e->session));
  if (e->straight || e->session->settings.n_devices == 0) return tn_kit_prepare(e->plan, flags, &e->kit, err);
  const tn_kit_offload parts = gpu_parts_of(e);
  return tn_kit_prepare_offloaded(e->plan, flags, &parts, &e->kit, err);
}

tn_status gpu_prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                      tn_executable **out, tn_error *err)
{
  (void)self;
  tn_executable *e = gpu_new(1, sizeof *e);
  tn_error why = TN_ERROR_INIT;
  if (e == NULL) return gpu_no_memory(err, "a plan");
  e->plan = plan;
  e->session = session;
  e->instances_free = gpu_instances_destroy;
  e->straight = session->settings.n_devices > 0;
  if (e->straight && tn_plan_check_straight(plan, &why) != TN_OK) {
    tn_log(TN_LOG_INFO, "gpu: a plan runs in parts: %s", tn_error_message(&why));
    e->straight = false;
  }
  tn_error_clear(&why);
  tn_status st = prepare_kit(e, err);
  if (st == TN_OK && e->straight) st = gpu_executable_read(e, err);
  if (st != TN_OK) {
    destroy(e);
    return st;
  }
  pthread_mutex_init(&e->mu, NULL);
  pthread_cond_init(&e->made, NULL);
  *out = e;
  return TN_OK;
}

void gpu_release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *e)
{
  (void)self, (void)session;
  gpu_schedules_destroy(e);
  pthread_cond_destroy(&e->made);
  pthread_mutex_destroy(&e->mu);
  destroy(e);
}

/* ---- values of a step ---- */

/* Keeps them for the next step. */
static void give_back_values(tn_executable *e, gpu_values *v)
{
  for (uint32_t i = 0; i < e->n_values; i++) {
    tn_tensor_unref(v->tensors[i]);
    v->tensors[i] = NULL;
  }
  for (size_t i = 0; i < v->n_feeds; i++) {
    tn_tensor_unref(v->feeds[i]);
    v->feeds[i] = NULL;
  }
  if (v->views != NULL) memset(v->views, 0, e->n_values * sizeof *v->views);
  for (uint32_t k = 0; k < e->n_segments; k++) {
    if (v->used[k] != NULL) gpu_schedule_leave(v->used[k]);
    v->used[k] = NULL;
  }
  pthread_mutex_lock(&e->mu);
  v->next = e->idle;
  e->idle = v;
  pthread_mutex_unlock(&e->mu);
}

/* Collects the feeds as schedules need them: on a device, or in host memory if shapes are read from them. */
static tn_status get_feeds(const tn_executable *e, tn_step *step, gpu_values *v, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < v->n_feeds; i++) {
    tn_tensor *t = tn_step_input(step, i);
    uint32_t value = e->feeds[i];
    bool away = tn_tensor_data(t) == NULL && tn_tensor_bytes(t) > 0 &&
                ((value != GPU_NONE && e->gives_shapes[value]) || gpu_feed_site(e->session, t) == GPU_NONE);
    if (away) st = tn_tensor_copy(t, &v->feeds[i], err);
    else v->feeds[i] = tn_tensor_ref(t);
    if (value != GPU_NONE) v->tensors[value] = tn_tensor_ref(v->feeds[i]);
  }
  return st;
}

static gpu_values *make_values(const tn_executable *e)
{
  gpu_values *v = gpu_new(1, sizeof *v);
  if (v == NULL) return NULL;
  v->n_feeds = tn_plan_n_inputs(e->plan);
  v->tensors = gpu_new(e->n_values + 1, sizeof *v->tensors);
  v->feeds = gpu_new(v->n_feeds + 1, sizeof *v->feeds);
  v->used = gpu_new(e->n_segments, sizeof(gpu_schedule *));
  v->views = e->n_segments > 1 ? gpu_new(e->n_values + 1, sizeof *v->views) : NULL;
  if (v->tensors != NULL && v->feeds != NULL && v->used != NULL && (e->n_segments == 1 || v->views != NULL)) return v;
  free_values(v);
  return NULL;
}

static tn_status take_values(tn_executable *e, gpu_values **out, tn_error *err)
{
  pthread_mutex_lock(&e->mu);
  gpu_values *v = e->idle;
  if (v != NULL) e->idle = v->next;
  pthread_mutex_unlock(&e->mu);
  *out = v != NULL ? v : make_values(e);
  return *out != NULL ? TN_OK : gpu_no_memory(err, "a step");
}

/* ---- steps ---- */

/* Adds the values of the step to the error: those of earlier segments and of this one (in NULL: it has none
 * yet). S-CAN-13 */
static void explain_memory(const tn_executable *e, tn_step *step, const gpu_values *values, const gpu_instance *in,
                           tn_error *err)
{
  tn_tensor **there =
      err == NULL || tn_error_code(err) != TN_RESOURCE_EXHAUSTED ? NULL : gpu_new(e->n_values + 1, sizeof *there);
  const gpu_schedule *s = in == NULL ? NULL : in->schedule;
  if (there == NULL) return;
  for (uint32_t v = 0; v < e->n_values; v++)
    there[v] = in == NULL || in->tensors[v] == NULL ? values->tensors[v] : in->tensors[v];
  for (uint32_t o = 0; s != NULL && o < s->io.n_outs; o++)
    if (in->outputs[o] != NULL) there[s->io.outs[o].value] = in->outputs[o];
  tn_step_explain_memory(step, e->plan, there, e->n_values, s == NULL ? 0 : s->memory.host_bytes, err);
  tn_free(there);
}

static tn_status run_scheduled(gpu_schedule *s, tn_step *step, gpu_values *values, tn_error *err)
{
  gpu_instance *in;
  tn_runtime_session *session = s->executable->session;
  if (s->counts.n_host > 0)
    tn_kit_step_workers(step, s->executable->plan, gpu_workers(NULL, session, tn_step_pool(step)));
  tn_status st = gpu_instance_take(s, &in, err);
  if (st != TN_OK) return st;
  gpu_run run = { .in = in,
                  .schedule = s,
                  .step = step,
                  .values = values,
                  .policy = &gpu_step_outputs,
                  .tensors = in->tensors,
                  .outputs = in->outputs,
                  .blocks = in->blocks,
                  .made = in->made };
  st = gpu_run_step(&run, err);
  if (st != TN_OK) explain_memory(s->executable, step, values, in, err);
  gpu_instance_leave(in, st == TN_OK || run.unharmed);
  return st;
}

static tn_status run_segments(tn_executable *e, tn_step *step, gpu_values *values, bool *by_cpu, tn_error *err)
{
  tn_status st = TN_OK;
  bool possible = false;
  for (uint32_t k = 0; st == TN_OK && k < e->n_segments; k++) {
    gpu_schedule *s;
    st = gpu_schedule_take(e, k, step, values, &s, err);
    if (st != TN_OK) {
      explain_memory(e, step, values, NULL, err);
      break;
    }
    values->used[k] = s;
    possible |= s->possible;
    if (e->n_segments == 1 && s->counts.n_device == 0 && !e->placed) *by_cpu = true;
    else st = run_scheduled(s, step, values, err);
  }
  if (st == TN_OK && !possible && !e->placed && !atomic_exchange(&e->hopeless, true))
    tn_log(TN_LOG_INFO, "gpu: a plan runs on the CPU: the device can run none of its nodes");
  return st;
}

static tn_status by_kit(const tn_session_factory *self, tn_runtime_session *session, tn_executable *e, tn_step *step,
                        tn_error *err)
{
  return tn_kit_step_with(e->kit, step, gpu_workers(self, session, tn_step_pool(step)), err);
}

tn_status gpu_step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *e, tn_step *step,
                   tn_error *err)
{
  if (!e->straight || atomic_load(&e->hopeless)) return by_kit(self, session, e, step, err);
  bool by_cpu = false;
  gpu_values *values;
  tn_status st = gpu_devices_check(session, err);
  if (st == TN_OK) st = take_values(e, &values, err);
  if (st != TN_OK) return st;
  st = get_feeds(e, step, values, err);
  if (st == TN_OK) st = run_segments(e, step, values, &by_cpu, err);
  give_back_values(e, values);
  return st == TN_OK && by_cpu ? by_kit(self, session, e, step, err) : st;
}
