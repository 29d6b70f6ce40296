/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by measurement whether steps of a kind are faster with helpers or alone. The gain from a
 * helper depends on more than the work: on how quickly this machine wakes a thread, on its other
 * load, on which CPU's cache holds the weights. So from time to time there is a trial: a few steps
 * run in the way that is not in use. Then the medians of the latest times of both ways decide,
 * until the next trial. A trial comes at once when steps with help have become slower than they
 * were alone.
 *
 * A profile belongs to a crew, and only the crew's owner uses it. */
#include <core/pool/pool_internal.h>

/* The first steps of a trial with help are not measured: wake-ups get faster as CPUs leave deep
 * sleep states. */
#define WARM 8
/* The pause between two trials, in steps. It doubles as long as trials confirm the way in use. */
#define FIRST_PAUSE 16   /* before the first trial */
#define SHORT_PAUSE 8    /* minimum and maximum where much would be lost if the last trial was wrong */
#define SHORT_MOST 128
#define PAUSE 512        /* minimum and maximum otherwise */
#define LONG_PAUSE 2048
#define MUCH 10          /* much: the loops take this many times the work that is worth a wake-up, and run alone */
#define BETTER 1.00      /* help is used if it takes at most this part of the time alone */
#define SLOW 20          /* steps with help that are too slow, nearly consecutive ones, that cause a trial */

enum { HELPED, ALONE }; /* the two ways, also indices of tn__profile.times */

/* The profile of this kind. Kinds are hashed to places; a kind replaces another one in its place. */
static tn__profile *profile_find(tn__crew *crew, const void *kind)
{
  tn__profile *h = &crew->profiles[(uint32_t)((uintptr_t)kind >> 5) * 0x9e3779b1u >> 24 & (TN__PROFILES - 1)];
  if (h->kind != kind) *h = (tn__profile){ .kind = kind, .way = HELPED, .pause = FIRST_PAUSE };
  return h;
}

/* The way of this step. *place: where its time goes in tn__profile.times; below 0: it is not
 * measured. After the pause a trial of the other way begins, with WARM steps that are not measured
 * (1 when alone). */
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
  tn__profile *h = profile_find(crew, kind);
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

/* The end of a trial: chooses the way, and the pause until the next trial. worth: work in ns that
 * is worth a wake-up. */
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

/* After a step in the chosen way: starts a trial if help has become too slow. One fast step makes
 * up for half of the slow ones. */
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
