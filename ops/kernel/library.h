/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries for formats, each loaded when a step first meets its format: few programs use one. configure finds the
 * names (TN_LIBPNG, TN_LIBJPEG, TN_LIBGIF, TN_LIBWEBP, TN_LIBZ); a build without a library reports what to install.
 *
 * Each caller has its own table of functions, so nothing is shared or locked. The libraries are never unloaded. */
#ifndef TN_OPS_KERNEL_LIBRARY_H
#define TN_OPS_KERNEL_LIBRARY_H

#include <stddef.h>
#include <tenon/status.h>

/* Fills in a table of n pointers to functions with these names. what: "PNG images need libpng". library: NULL if the
 * build lacks it. TN_UNAVAILABLE: it is not installed. TN_UNIMPLEMENTED: a build without it, or a static one. */
tn_status tn__library_load(const char *library, const char *what, const char *const *names, void *table, size_t n,
                         tn_error *err);

/* The parts of a table: F(function) for each name that the list macro MAP(F) has. */
#define TN__LIBRARY_MEMBER(function) __typeof__(function) *function;
#define TN__LIBRARY_NAME(function) #function,

#endif
