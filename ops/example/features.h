/* SPDX-License-Identifier: Apache-2.0 */
/* The features that a kernel extracts from messages, as its node's attributes and inputs describe them, and an index
 * of their keys. */
#ifndef TN_OPS_EXAMPLE_FEATURES_H
#define TN_OPS_EXAMPLE_FEATURES_H

#include <core/base/text.h>
#include <ops/kernel/shapes.h>

typedef enum tn__feature_kind {
  TN__FEATURE_DENSE,    /* a fixed number of values */
  TN__FEATURE_VARIABLE, /* dense with a first dimension of any size */
  TN__FEATURE_SPARSE,
  TN__FEATURE_RAGGED
} tn__feature_kind;

/* Where the keys of a group are. */
typedef enum tn__feature_keys {
  TN__KEYS_ATTR,  /* a list of strings */
  TN__KEYS_LIST,  /* an input for each */
  TN__KEYS_VECTOR /* an input for all */
} tn__feature_keys;

/* A group of features of an op: names of its attributes, inputs and outputs. Those of `outputs` are
 *   dense   values, and for lists lengths
 *   sparse  indices, values, shape
 *   ragged  values, row splits, and for lists inner row splits */
typedef struct tn__feature_group {
  tn__feature_kind kind; /* never TN__FEATURE_VARIABLE */
  bool list;             /* of a FeatureList, not of a Feature */
  bool variable;         /* the first dimension of a dense feature may be unknown */
  tn__feature_keys how;
  const char *keys, *types, *shapes, *splits, *defaults, *outputs[3];
} tn__feature_group;

typedef struct tn__feature {
  tn__feature_kind kind;
  bool list;
  tn_dtype dtype, splits;  /* of values, of row splits */
  const int64_t *dims;     /* of dense values, borrowed from the node */
  int32_t rank;
  int64_t row;             /* elements of dense values, without a variable dimension */
  tn__feature_keys how;
  tn__slice key;           /* TN__KEYS_ATTR */
  uint32_t key_input, key_at; /* input with the key, and its element there */
  uint32_t fallback;       /* input with the default, UINT32_MAX = none */
  bool may_miss;           /* for the op's own use: a list that may be missing */
  uint32_t outputs[3];
} tn__feature;

typedef struct tn__features {
  const tn__feature_group *groups;
  size_t n_groups;
  uint32_t n;
  tn__feature items[];
} tn__features;

/* For `create`; `groups` is static. TN_INVALID_ARGUMENT if numbers of attributes differ, or a shape is not known. */
tn_status tn__features_create(const tn_operation *op, const tn__feature_group *groups, size_t n_groups,
                              tn__features **out, tn_error *err);
void tn__features_destroy(tn__features *features);

/* For `prepare`: checks that there is a key for each feature. */
tn_status tn__features_check_keys(const tn_prepare_ctx *ctx, const tn__features *features, tn_error *err);
/* Checks the shape of the default of a dense feature: none, one element for a variable dimension, or the shape. */
tn_status tn__features_check_default(const tn_prepare_ctx *ctx, const tn__feature *f, tn_error *err);

/* For `infer`: sets the shapes of all outputs of a group. `batch` is the shape of the messages' tensor. */
tn_status tn__features_infer(tn_infer_ctx *ctx, const tn__feature_group *group, const tn__shape *batch, tn_error *err);

/* ---- keys ---- */

#define TN__NO_KEY UINT32_MAX

/* A hash table of keys, in memory of the caller. */
typedef struct tn__key_index {
  const tn__slice *keys; /* by feature */
  uint32_t *first;       /* by feature: the first feature of the same key, both of lists or both not */
  uint32_t *slots;
  uint64_t mask;
  const tn__features *features;
} tn__key_index;

/* Bytes of memory for n keys; they fit a size_t. */
size_t tn__key_index_bytes(uint32_t n);
/* Reads all keys of a step and indexes them. */
void tn__key_index_init(tn__key_index *index, void *memory, const tn__features *features, tn_view *const *inputs);
/* The first feature with this key, TN__NO_KEY if there is none. */
uint32_t tn__key_index_find(const tn__key_index *index, tn__slice key, bool list);

#endif
