/* SPDX-License-Identifier: Apache-2.0 */
/* The options object: shared by the files of core/registry that implement it. */
#ifndef TN_CORE_REGISTRY_OPTIONS_INTERNAL_H
#define TN_CORE_REGISTRY_OPTIONS_INTERNAL_H

#include <core/registry/registry_internal.h>

typedef struct tn__option_def {
  const char *name;
  int32_t kind;
  const char *text;
  int64_t number;     /* default of an INT or BOOL */
  double real;        /* of a FLOAT */
  const char *string; /* of a STRING */
} tn__option_def;
extern const tn__option_def tn__option_defs[TN__N_OPTIONS];

typedef struct tn__option_setting {
  const char *key, *value; /* in `parts` */
} tn__option_setting;

typedef struct tn__option_item {
  char *text; /* NULL = "" */
  int64_t number;
} tn__option_item;

typedef struct tn__option_list {
  tn__option_item *items;
  size_t n, room;
} tn__option_list;

struct tn_session_options {
  char *target; /* NULL = "" */
  char *parts;  /* the target again, cut by NULs: name, key, value, key, value ... */
  size_t parts_size;
  tn__option_setting *settings;
  size_t n_settings;
  union tn__option_value {
    int64_t number;
    double real;
    char *string;          /* NULL = the default */
    tn__option_list *list; /* NULL = empty */
  } values[TN__N_OPTIONS];
  char *config; /* the ConfigProto that was read; NULL = none */
  size_t config_size;
};

/* Finds a field by its name. kind 0: of any kind; otherwise a field of another kind is TN_INVALID_ARGUMENT. */
tn_status tn__option_find(const tn_session_options *options, const char *name, int32_t kind, size_t *index,
                          tn_error *err);

/* Prepares text from outside for a message: replaces control characters by '?' and cuts long text to room - 4 bytes and
 * "...". room >= 4. Returns buffer. */
const char *tn__option_shown(const char *text, size_t size, char *buffer, size_t room);

void tn__option_list_destroy(tn__option_list *list); /* NULL allowed */
tn_status tn__option_list_copy(const tn__option_list *from, tn__option_list **out, tn_error *err);
/* Replaces the list by the items in the text, "ITEM,ITEM". On failure the list is unchanged. */
tn_status tn__option_list_parse(tn_session_options *options, size_t field, const char *text, tn_error *err);

#endif
