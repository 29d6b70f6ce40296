/* SPDX-License-Identifier: Apache-2.0 */
/* Whether steps of a kind are faster with help. What a worker brings depends on more than the work: how soon this
 * machine wakes one, what else it does, whose cache holds the weights. So now and then a few steps go the other way,
 * and the medians of the last times of both ways decide until the next time. That comes at once when steps with help
 * have become slower than they were alone. */
#include <core/pool/pool_internal.h>

#define WARM 8 /* first steps with help, which do not count: a CPU that sleeps shortly wakes sooner by and by */
#define FIRST_PAUSE 16   /* steps from one trial to the next: in the beginning, */
#define SHORT_PAUSE 8    /* where much is missed if the last one was wrong, */
#define SHORT_MOST 128   /* twice as many each time, up to this; */
#define PAUSE 512        /* else, */
#define LONG_PAUSE 2048  /* up to this */
#define MUCH 10          /* times of what a wake-up is worth */
#define BETTER 1.00      /* of the time alone is what help has to take at most */
#define SLOW 20           /* steps with help that are too slow, nearly one after the other */

enum { HELPED, ALONE };

static tn__profile *find(tn__crew *crew, const void *kind)
{
  tn__profile *h = &crew->profiles[(uint32_t)((uintptr_t)kind >> 5) * 0x9e3779b1u >> 24 & (TN__PROFILES - 1)];
  if (h->kind != kind) *h = (tn__profile){ .kind = kind, .way = HELPED, .pause = FIRST_PAUSE };
  return h;
}

/* The way of this step, and the place of its time among those that count; -1 = it does not. */
static int way_of(const tn__profile *h, int *place)
{
  int way = h->way, other = way == HELPED ? ALONE : HELPED;
  if (h->turn < h->pause) {
    *place = (int)(h->turn % TN__PROFILE_TIMES);
    return way;
  }
  *place = (int)(h->turn - h->pause) - (other == HELPED ? WARM : 1);
  return other;
}

void tn__profile_begin(tn__crew *crew, const void *kind)
{
  tn__profile *h = find(crew, kind);
  int place, way = way_of(h, &place);
  crew->profile = h;
  crew->alone = way == ALONE;
  crew->sure = way == HELPED;
  crew->loops_ns = 0;
  crew->begun_ns = place >= 0 ? tn__now_ns() : 0;
}

static float median(const float *times)
{
  float s[TN__PROFILE_TIMES];
  for (int i = 0; i < TN__PROFILE_TIMES; i++) {
    int k = i;
    for (; k > 0 && s[k - 1] > times[i]; k--) s[k] = s[k - 1];
    s[k] = times[i];
  }
  return s[TN__PROFILE_TIMES / 2];
}

static void decide(tn__profile *h, double worth)
{
  h->alone_ns = median(h->times[ALONE]);
  int way = (double)median(h->times[HELPED]) <= BETTER * (double)h->alone_ns ? HELPED : ALONE;
  bool much = way == ALONE && h->loops_ns > MUCH * worth;
  uint32_t least = much ? SHORT_PAUSE : PAUSE, most = much ? SHORT_MOST : LONG_PAUSE;
  h->pause = way == h->way && h->pause >= least ? 2 * h->pause : least;
  if (h->pause > most) h->pause = most;
  h->way = way;
  h->turn = h->slow = 0;
}

/* Of a step in the way that was decided on. */
static void watch(tn__profile *h, float ns)
{
  if (h->way != HELPED || h->alone_ns <= 0) return;
  h->slow = ns > h->alone_ns ? h->slow + 1 : h->slow / 2;
  if (h->slow >= SLOW && h->turn >= TN__PROFILE_TIMES) h->pause = h->turn; /* a trial comes next */
}

void tn__profile_end(tn__crew *crew)
{
  tn__profile *h = crew->profile;
  int place, way = way_of(h, &place);
  bool trial = h->turn >= h->pause;
  h->loops_ns = crew->loops_ns;
  h->turn++;
  if (place >= 0) {
    float ns = (float)(tn__now_ns() - crew->begun_ns);
    h->times[way][place] = ns;
    if (!trial) watch(h, ns);
    else if (place == TN__PROFILE_TIMES - 1) decide(h, tn__crew_worth(crew));
  }
  crew->profile = NULL;
  crew->alone = crew->sure = false;
}
