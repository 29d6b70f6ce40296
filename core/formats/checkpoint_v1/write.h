/* SPDX-License-Identifier: Apache-2.0 */
/* Writing checkpoints of version 1: one table of SavedTensorSlices messages. Only the ops Save and SaveSlices do it. */
#ifndef TN_CORE_FORMATS_CHECKPOINT_V1_WRITE_H
#define TN_CORE_FORMATS_CHECKPOINT_V1_WRITE_H

#include <core/formats/checkpoint/slices.h>

/* A slice of a tensor to be written. Everything is borrowed. */
typedef struct tn__v1_part {
  tn__slice name; /* of the tensor */
  tn_dtype dtype;
  const int64_t *dims; /* of the whole tensor */
  tn__region region;   /* of the slice; -1 is a whole dimension */
  const void *data;    /* the elements in C order */
  int64_t count;
} tn__v1_part;

/* Writes a checkpoint of n slices. An existing file of this name is whole until the new one is complete on disk.
 * TN_INVALID_ARGUMENT (a slice twice, slices of one tensor with different shapes or dtypes, a slice of 2 GiB or more),
 * TN_UNIMPLEMENTED (a dtype that version 1 does not have), and errors of files. */
tn_status tn__v1_write(const char *path, const tn__v1_part *parts, size_t n, tn_error *err);

#endif
