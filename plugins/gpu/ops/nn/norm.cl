/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of channels. Images are of type T and computed as C; values for each channel are of type N. */

#define CHANNEL(i) ((int)((i) / inner % channels))

#ifdef NORM
/* y = (x - mean) scale / sqrt(variance + epsilon) + offset. Without SCALE the scale is 1. */
__kernel void batch_norm(IN(x), IN(scale), IN(offset), IN(mean), IN(variance), OUT(y), const float epsilon,
                         const int channels, const I inner, const I count)
{
  const I i = get_global_id(0);
  if (i >= count) return;
  GET_IN(T, x);
  GET_IN(N, scale);
  GET_IN(N, offset);
  GET_IN(N, mean);
  GET_IN(N, variance);
  GET_OUT(T, y);
  const int c = CHANNEL(i);
#ifdef SCALE
  const C by = LOADN(scale, c) / sqrt(LOADN(variance, c) + (C)epsilon);
#else
  const C by = 1 / sqrt(LOADN(variance, c) + (C)epsilon);
#endif
  STORE(y, i, (LOAD(x, i) - LOADN(mean, c)) * by + LOADN(offset, c));
}
#endif

#ifdef GIVEN
/* Copies the given statistics to the outputs. */
__kernel void given(IN(mean), IN(variance), OUT(mean1), OUT(variance1), OUT(mean2), OUT(variance2), const int channels)
{
  const int c = get_global_id(0);
  if (c >= channels) return;
  GET_IN(float, mean);
  GET_IN(float, variance);
  GET_OUT(float, mean1);
  GET_OUT(float, variance1);
  GET_OUT(float, mean2);
  GET_OUT(float, variance2);
  mean1[c] = mean2[c] = mean[c];
  variance1[c] = variance2[c] = variance[c];
}
#endif

#ifdef KEPT
/* The statistics that a training loop keeps: the batch's, or with FACTOR mixed with the old ones. */
__kernel void kept(IN(old_mean), IN(old_variance), IN(mean), IN(variance), OUT(to_mean), OUT(to_variance),
                   const float unbias, const float factor, const int channels)
{
  const int c = get_global_id(0);
  if (c >= channels) return;
  GET_IN(float, old_mean);
  GET_IN(float, old_variance);
  GET_IN(float, mean);
  GET_IN(float, variance);
  GET_OUT(float, to_mean);
  GET_OUT(float, to_variance);
#ifdef FACTOR
  to_mean[c] = (1 - factor) * old_mean[c] + factor * mean[c];
  to_variance[c] = (1 - factor) * old_variance[c] + factor * (variance[c] * unbias);
#else
  to_mean[c] = mean[c];
  to_variance[c] = variance[c] * unbias;
#endif
}
#endif

#ifdef GRAD
/* With d = x - mean and k = scale / sqrt(variance + epsilon):
 *   training   k (dy - sum(dy) / n - d sum(d dy) / n / (variance + epsilon))
 *   otherwise  k dy */
__kernel void batch_norm_grad(IN(dy), IN(x), IN(scale), IN(mean), IN(variance), IN(sum), IN(sum_d), OUT(dx),
                              const float epsilon, const float by, const int channels, const I inner, const I count)
{
  const I i = get_global_id(0);
  if (i >= count) return;
  GET_IN(T, dy);
  GET_IN(T, x);
  GET_IN(float, scale);
  GET_IN(float, mean);
  GET_IN(float, variance);
  GET_IN(float, sum);
  GET_IN(float, sum_d);
  GET_OUT(T, dx);
  const int c = CHANNEL(i);
  const float spread = variance[c] + epsilon;
  float v = LOAD(dy, i);
#ifdef TRAINING
  v -= sum[c] * by + (LOAD(x, i) - mean[c]) * (sum_d[c] * by / spread);
#endif
  STORE(dx, i, v * (scale[c] / sqrt(spread)));
}

/* The gradient of the scale. */
__kernel void scale_grad(IN(variance), IN(sum_d), OUT(out), const float epsilon, const int channels)
{
  const int c = get_global_id(0);
  if (c >= channels) return;
  GET_IN(float, variance);
  GET_IN(float, sum_d);
  GET_OUT(float, out);
  out[c] = sum_d[c] / sqrt(variance[c] + epsilon);
}
#endif

#ifdef ZERO
__kernel void zero(OUT(out), const int count)
{
  const int i = get_global_id(0);
  GET_OUT(float, out);
  if (i < count) out[i] = 0;
}
#endif

#ifdef LRN
/* y[c] = x[c] / size^beta, size = bias + alpha * sum of x[k]^2, |k - c| <= radius. */
__kernel void lrn(IN(x), OUT(y), const float bias, const float alpha, const float beta, const int radius,
                  const int channels, const I count)
{
  const I i = get_global_id(0);
  if (i >= count) return;
  GET_IN(T, x);
  GET_OUT(T, y);
  const int c = (int)(i % channels), first = c > radius ? c - radius : 0;
  const int last = channels - 1 - c > radius ? c + radius : channels - 1;
  C sum = 0;
  for (int k = first; k <= last; k++) {
    const C v = LOAD(x, i - c + k);
    sum += v * v;
  }
  STORE(y, i, LOAD(x, i) / pow(bias + alpha * sum, beta));
}
#endif
