/* SPDX-License-Identifier: Apache-2.0 */
/* Real special functions that the C library lacks, in double. `enough` is the relative error at which series may end:
 * DBL_EPSILON, or more for results that are rounded to float. Accuracy is about 12 digits, less where the result is
 * small compared with its terms. NaN, and arguments outside a function's domain, give NaN. */
#ifndef TN_OPS_MATH_SPECIAL_FUNCTIONS_H
#define TN_OPS_MATH_SPECIAL_FUNCTIONS_H

double tn__log_gamma(double x); /* log |gamma(x)|; lgamma_r where available, as lgamma writes a global variable */
double tn__zeta(double x, double q, double enough); /* sum of 1 / (q + k)^x for k = 0, 1, ... */
double tn__polygamma(double n, double x, double enough);
double tn__igamma(double a, double x, double enough); /* regularized, lower */
double tn__igammac(double a, double x, double enough); /* regularized, upper */
double tn__igamma_grad_a(double a, double x, double enough); /* derivative of the lower function with respect to a */
double tn__betainc(double a, double b, double x, double enough); /* regularized */

#endif
