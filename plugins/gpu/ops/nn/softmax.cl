/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of rows, and losses of it. T, C, LOAD, STORE: elements; I: places; GROUP: work items of a group;
 * LOGARITHM: of LogSoftmax. Rows are those of a whole group, or of one work item where they are short. */

#define MORE(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))

/* The sum, or with `most` the largest, of what the group's work items have. */
static C over_group(__local C *part, C mine, int most)
{
  const int lane = get_local_id(0);
  part[lane] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_of = GROUP / 2; half_of > 0; half_of /= 2) {
    if (lane < half_of) part[lane] = most ? MORE(part[lane], part[lane + half_of]) : part[lane] + part[lane + half_of];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  C all = part[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return all;
}

#ifdef LOGARITHM
#define RESULT(x) ((x) - most - log(total))
#else
#define RESULT(x) (exp((x) - most) * scale)
#endif

__kernel void softmax_rows(IN(x), OUT(y), const I columns)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  __local C part[GROUP];
  const int lane = get_local_id(0);
  const I at = (I)get_group_id(0) * columns;
  C most = -INFINITY, total = 0;
  for (I j = lane; j < columns; j += GROUP) most = MORE(most, LOAD(x, at + j));
  most = over_group(part, most, 1);
  for (I j = lane; j < columns; j += GROUP) total += exp(LOAD(x, at + j) - most);
  total = over_group(part, total, 0);
  const C scale = 1 / total;
  for (I j = lane; j < columns; j += GROUP) STORE(y, at + j, RESULT(LOAD(x, at + j)));
}

__kernel void softmax_short(IN(x), OUT(y), const I columns, const I rows)
{
  GET_IN(T, x);
  GET_OUT(T, y);
  const I row = (I)get_global_id(0), at = row * columns;
  if (row >= rows) return;
  C most = -INFINITY, total = 0;
  for (I j = 0; j < columns; j++) most = MORE(most, LOAD(x, at + j));
  for (I j = 0; j < columns; j++) total += exp(LOAD(x, at + j) - most);
  const C scale = 1 / total;
  for (I j = 0; j < columns; j++) STORE(y, at + j, RESULT(LOAD(x, at + j)));
}

/* Cross entropy of a row of features and one of weights; both may broadcast, so they have steps. */
__kernel void entropy(IN(x), IN(labels), OUT(loss), OUT(gradient), const I columns, const I x_row, const I x_step,
                      const I label_row, const I label_step)
{
  GET_IN(T, x);
  GET_IN(T, labels);
  GET_OUT(T, loss);
  GET_OUT(T, gradient);
  __local C part[GROUP];
  const int lane = get_local_id(0);
  const I row = (I)get_group_id(0), at = row * x_row, label_at = row * label_row, to = row * columns;
  C most = -INFINITY, total = 0, sum = 0;
  for (I j = lane; j < columns; j += GROUP) most = LOAD(x, at + j * x_step) > most ? LOAD(x, at + j * x_step) : most;
  most = over_group(part, most, 1);
  for (I j = lane; j < columns; j += GROUP) total += exp(LOAD(x, at + j * x_step) - most);
  total = over_group(part, total, 0);
  const C scale = 1 / total, shift = log(total);
  for (I j = lane; j < columns; j += GROUP) {
    const C d = LOAD(x, at + j * x_step) - most, label = LOAD(labels, label_at + j * label_step);
    STORE(gradient, to + j, exp(d) * scale - label);
    sum += label * (shift - d);
  }
  sum = over_group(part, sum, 0);
  if (lane == 0) STORE(loss, row, sum);
}

/* The same where one class has all of the weight: CLASS is the type of its number; CHECKED: it may be none. */
#ifdef CLASS
#ifdef CHECKED
#define MAY_FAULT , FAULT
#else
#define MAY_FAULT
#endif
__kernel void class_entropy(IN(x), IN(classes), OUT(loss), OUT(gradient), const I columns MAY_FAULT)
{
  GET_IN(T, x);
  GET_IN(CLASS, classes);
  GET_OUT(T, loss);
  GET_OUT(T, gradient);
  __local C part[GROUP];
  const int lane = get_local_id(0);
  const I row = (I)get_group_id(0), at = row * columns;
  I class_of = (I)classes[row];
#ifdef CHECKED
  if (classes[row] < 0 || classes[row] >= columns) {
    if (lane == 0) FAULT_AT(row, classes[row]);
    class_of = 0;
  }
#endif
  C most = -INFINITY, total = 0;
  for (I j = lane; j < columns; j += GROUP) most = LOAD(x, at + j) > most ? LOAD(x, at + j) : most;
  most = over_group(part, most, 1);
  for (I j = lane; j < columns; j += GROUP) total += exp(LOAD(x, at + j) - most);
  total = over_group(part, total, 0);
  const C scale = 1 / total;
  for (I j = lane; j < columns; j += GROUP)
    STORE(gradient, at + j, exp(LOAD(x, at + j) - most) * scale - (j == class_of ? (C)1 : (C)0));
  if (lane == 0) STORE(loss, row, log(total) - (LOAD(x, at + class_of) - most));
}
#endif
