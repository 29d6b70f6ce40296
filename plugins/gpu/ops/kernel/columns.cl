/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over everything but the channels. Element [n][c][inner] of a tensor counts for channel c; a group has CHANNELS
 * channels and some of the terms, and its items share these; columns_sum adds what the groups have. Sums are of type
 * C.
 *
 * SQUARES: of squares of what `mean` leaves. WITH: times what `mean` leaves of a second tensor. */
#ifndef CHANNELS
#define CHANNELS 16
#endif
#define SHARES (256 / CHANNELS)

#ifdef SUMS
/* Channels are last where they are neighbours: then so are items. */
#ifdef INNER
#define CHANNEL (item / SHARES)
#define SHARE (item % SHARES)
#else
#define CHANNEL (item % CHANNELS)
#define SHARE (item / CHANNELS)
#endif
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void columns(IN(x), IN(y), IN(mean), OUT(out), const long channels, const long inner, const long terms, const long each)
{
  __local C parts[256];
  GET_IN(T, x);
  GET_IN(T, y);
  GET_IN(C, mean);
  GET_OUT(C, out);
  const int item = get_local_id(0);
  const long blocks = (channels + CHANNELS - 1) / CHANNELS, group = get_group_id(0), part = group / blocks;
  const long channel = (group - part * blocks) * CHANNELS + CHANNEL, end = min(terms, (part + 1) * each);
  C sum = 0;
  if (channel < channels) {
#if defined(SQUARES) || defined(WITH)
    const C middle = mean[channel];
#endif
    for (long i = part * each + SHARE; i < end; i += SHARES) {
#ifdef INNER
      const long at = i / inner * inner * channels + channel * inner + i % inner;
#else
      const long at = i * channels + channel;
#endif
#ifdef WITH
      sum += LOAD(x, at) * (LOAD(y, at) - middle);
#elif defined(SQUARES)
      const C v = LOAD(x, at) - middle;
      sum += v * v;
#else
      sum += LOAD(x, at);
#endif
    }
  }
  const int to = CHANNEL * SHARES + SHARE;
  parts[to] = sum;
  for (int step = SHARES / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (SHARE < step) parts[to] += parts[to + step];
  }
  if (SHARE == 0 && channel < channels) out[part * channels + channel] = parts[to];
}
#endif

#ifdef FINISH
/* out[c] = the sum of all parts, times `by` where BY is defined. */
__kernel void columns_sum(IN(parts), OUT(out), const long channels, const long n, const float by)
{
  const long c = get_global_id(0);
  if (c >= channels) return;
  GET_IN(C, parts);
  GET_OUT(T2, out);
  C sum = 0;
  for (long i = 0; i < n; i++) sum += parts[i * channels + c];
#ifdef BY
  sum *= by;
#endif
  STORE2(out, c, sum);
}
#endif
