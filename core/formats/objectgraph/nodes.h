/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a parsed object graph, for the files of this folder. Texts are parts of the message. */
#ifndef TN_CORE_FORMATS_OBJECTGRAPH_NODES_H
#define TN_CORE_FORMATS_OBJECTGRAPH_NODES_H

#include <core/base/map.h>
#include <core/formats/objectgraph/objectgraph.h>

#define TN__VARIABLE_VALUE "VARIABLE_VALUE"

/* An edge to another object. Within a node sorted by name; of equal names the first one of the message counts. */
typedef struct tn__child {
  const char *name;
  uint32_t size; /* of the name */
  uint32_t node;
} tn__child;

/* A stored value of an object. In the order of the message. */
typedef struct tn__attribute {
  const char *name, *full_name, *key;
  uint32_t size, full_size, key_size;
  uint32_t same; /* number of the first attribute of the graph with this key */
} tn__attribute;

/* A slot variable of an optimizer. Within a node sorted by variable, then by name. */
typedef struct tn__slot {
  const char *name;
  uint32_t size;
  uint32_t variable, node; /* the node that the slot belongs to, and the node of the slot variable */
} tn__slot;

/* The numbers of its first child, attribute and slot; those of the next node are the ends. */
typedef struct tn__node {
  uint32_t child, attribute, slot;
  uint32_t value; /* number of the attribute VARIABLE_VALUE; TN__NO_VALUE: the object is no variable */
} tn__node;

#define TN__NO_VALUE UINT32_MAX

struct tn__object_graph {
  tn__arena arena;
  const char *file;
  tn__slice proto;
  tn__node *nodes; /* n_nodes + 1; the last one has only ends */
  tn__child *children;
  tn__attribute *attributes;
  tn__slot *slots;
  uint32_t n_nodes, n_children, n_attributes, n_slots;
  tn__map by_key;        /* checkpoint_key -> the first tn__attribute with it */
  tn__map by_name;       /* full_name -> the first VARIABLE_VALUE attribute with it, or &several */
  tn__attribute several; /* the value of by_name for a name that has several keys */
};

static inline bool tn__attribute_is_value(const tn__attribute *a)
{
  return a->size == sizeof TN__VARIABLE_VALUE - 1 && __builtin_memcmp(a->name, TN__VARIABLE_VALUE, a->size) == 0;
}

/* Compares two texts: by bytes, a beginning first. */
int tn__compare_texts(const char *a, size_t n, const char *b, size_t m);

#endif
