/* SPDX-License-Identifier: Apache-2.0 */
/* Options that are lists: set item by item, or from one text of a command line.
 *
 * An item is a text, a number or both, by the field: device_count "TYPE=N", session_inter_op_pools "THREADS[@NAME]",
 * otherwise a text. In the text of a command line a backslash before a comma or a backslash makes that an ordinary
 * character. */
#include <core/registry/options_internal.h>

#include <string.h>

void tn__option_list_destroy(tn__option_list *list)
{
  if (list == NULL) return;
  for (size_t i = 0; i < list->n; i++) tn__strfree(list->items[i].text);
  tn__free(list->items, list->room * sizeof *list->items);
  tn__free(list, sizeof *list);
}

static tn_status no_memory(size_t bytes, tn_error *err) { return tn__no_memory(err, "list of options", bytes); }

/* Adds an item. The list is created with the first one; NULL is the empty list. */
static tn_status add(tn__option_list **list, const char *text, size_t size, int64_t number, tn_error *err)
{
  tn__option_list *l = *list != NULL ? *list : tn__zalloc(sizeof *l);
  char *copy = size > 0 ? tn__strndup(text, size) : NULL;
  bool ok =
      l != NULL && (size == 0 || copy != NULL) && tn__grow((void **)&l->items, &l->room, l->n + 1, sizeof *l->items);
  if (!ok) {
    tn__strfree(copy);
    if (l != *list) tn__option_list_destroy(l);
    return no_memory(size, err);
  }
  l->items[l->n++] = (tn__option_item){ copy, number };
  *list = l;
  return TN_OK;
}

tn_status tn__option_list_copy(const tn__option_list *from, tn__option_list **out, tn_error *err)
{
  *out = NULL;
  for (size_t i = 0; from != NULL && i < from->n; i++) {
    const char *text = from->items[i].text;
    tn_status st = add(out, text, text == NULL ? 0 : strlen(text), from->items[i].number, err);
    if (st != TN_OK) {
      tn__option_list_destroy(*out);
      *out = NULL;
      return st;
    }
  }
  return TN_OK;
}

/* ---- items ---- */

static tn_status check_number(int field, int64_t number, tn_error *err)
{
  if (number >= INT32_MIN && number <= INT32_MAX) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s': %lld does not fit in 32 bits",
                      tn__option_defs[field].name, (long long)number);
}

/* Replaces the number of the item with this text, or adds an item. */
static tn_status put(tn__option_list **list, const char *text, size_t size, int64_t number, tn_error *err)
{
  for (size_t i = 0; *list != NULL && i < (*list)->n; i++) {
    tn__option_item *item = &(*list)->items[i];
    if (item->text == NULL || strlen(item->text) != size || memcmp(item->text, text, size) != 0) continue;
    item->number = number;
    return TN_OK;
  }
  return add(list, text, size, number, err);
}

/* Also checks that there are options. */
static tn_status check_text(const tn_session_options *options, int field, const char *text, tn_error *err)
{
  const char *name = tn__option_defs[field].name;
  if (options == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s': the options are NULL", name);
  if (text == NULL || *text == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s': the text is %s", name, text == NULL ? "NULL" : "empty");
  return TN_OK;
}

tn_status tn_session_options_set_device_count(tn_session_options *options, const char *type, int64_t n, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_text(options, TN__OPTION_device_count, type, err);
  if (st == TN_OK) st = check_number(TN__OPTION_device_count, n, err);
  return st == TN_OK ? put(&options->values[TN__OPTION_device_count].list, type, strlen(type), n, err) : st;
}

tn_status tn_session_options_add_device_filter(tn_session_options *options, const char *filter, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_text(options, TN__OPTION_device_filters, filter == NULL ? NULL : "-", err); /* "" matches all */
  return st == TN_OK ? add(&options->values[TN__OPTION_device_filters].list, filter, strlen(filter), 0, err) : st;
}

tn_status tn_session_options_add_inter_op_pool(tn_session_options *options, int64_t threads, const char *global_name,
                                               tn_error *err)
{
  tn__error_reset(err);
  if (global_name == NULL) global_name = "";
  tn_status st = check_text(options, TN__OPTION_session_inter_op_pools, "-", err);
  if (st == TN_OK) st = check_number(TN__OPTION_session_inter_op_pools, threads, err);
  if (st != TN_OK) return st;
  return add(&options->values[TN__OPTION_session_inter_op_pools].list, global_name, strlen(global_name), threads, err);
}

/* A folder that is listed already is not added again. */
static tn_status add_folder(tn_session_options *options, int field, const char *folder, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_text(options, field, folder, err);
  return st == TN_OK ? put(&options->values[field].list, folder, strlen(folder), 0, err) : st;
}

tn_status tn_session_options_add_read_folder(tn_session_options *options, const char *folder, tn_error *err)
{
  return add_folder(options, TN__OPTION_read_folders, folder, err);
}

tn_status tn_session_options_add_write_folder(tn_session_options *options, const char *folder, tn_error *err)
{
  return add_folder(options, TN__OPTION_write_folders, folder, err);
}

size_t tn__option_n_items(const tn_session_options *options, int field)
{
  const tn__option_list *list = options->values[field].list;
  return list == NULL ? 0 : list->n;
}

const char *tn__option_item_at(const tn_session_options *options, int field, size_t i, int64_t *number)
{
  const tn__option_item *item = &options->values[field].list->items[i];
  *number = item->number;
  return item->text == NULL ? "" : item->text;
}

tn_status tn_session_options_get_item(const tn_session_options *options, const char *field, size_t i, const char **text,
                                      int64_t *number, tn_error *err)
{
  tn__error_reset(err);
  if (text != NULL) *text = NULL;
  if (number != NULL) *number = 0;
  size_t f = 0;
  tn_status st = tn__option_find(options, field, TN_OPTION_LIST, &f, err);
  if (st != TN_OK) return st;
  if (i >= tn__option_n_items(options, (int)f)) return TN_OUT_OF_RANGE;
  int64_t value;
  const char *found = tn__option_item_at(options, (int)f, i, &value);
  if (text != NULL) *text = found;
  if (number != NULL) *number = value;
  return TN_OK;
}

/* ---- as one text ---- */

/* The item being parsed, without its backslashes, and its offset in the text. */
typedef struct piece {
  char *data;
  size_t size, at;
  size_t mark; /* offset in `data` of the first character that separates text and number; size: there is none */
  size_t last; /* the last one */
} piece;

/* Reads the next item; false at the end. `cut` is the character that separates text and number; NUL: none. */
static bool next_piece(const char *text, size_t *at, char cut, piece *p)
{
  size_t i = *at;
  bool found = false;
  if (text[i] == 0) return false;
  p->at = i;
  p->size = 0;
  for (; text[i] != 0 && text[i] != ','; i++) {
    bool escaped = text[i] == '\\' && (text[i + 1] == ',' || text[i + 1] == '\\');
    if (escaped) i++;
    if (!escaped && text[i] == cut) {
      if (!found) p->mark = p->size;
      p->last = p->size;
      found = true;
    }
    p->data[p->size++] = text[i];
  }
  if (!found) p->mark = p->last = p->size;
  /* A comma at the end stays, so that the caller can refuse the empty item after it. */
  *at = text[i] == ',' && text[i + 1] != 0 ? i + 1 : i;
  return true;
}

static tn_status bad_item(size_t field, const piece *p, const char *wanted, tn_error *err)
{
  char cut[100];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "option '%s': '%s' at byte %zu, wanted %s", tn__option_defs[field].name,
                      tn__option_shown(p->data, p->size, cut, sizeof cut), p->at, wanted);
}

/* Adds the item to the list. A device type may contain '=', so the last one separates; in a pool's name, which may
 * contain '@', it is the first one. */
static tn_status take_piece(size_t field, const piece *p, tn__option_list **list, tn_error *err)
{
  int64_t number = 0;
  tn__slice before = { p->data, p->mark }, after = { p->data + p->last + 1, 0 };
  if (p->last < p->size) after.size = p->size - p->last - 1;
  switch (field) {
  case TN__OPTION_device_count:
    if (p->last == 0 || p->last == p->size || !tn__parse_int(after, &number))
      return bad_item(field, p, "TYPE=N", err);
    if (check_number((int)field, number, err) != TN_OK) return TN_INVALID_ARGUMENT;
    return put(list, p->data, p->last, number, err);
  case TN__OPTION_session_inter_op_pools:
    after = (tn__slice){ p->data + p->mark + 1, p->mark < p->size ? p->size - p->mark - 1 : 0 };
    if (!tn__parse_int(before, &number)) return bad_item(field, p, "THREADS or THREADS@NAME", err);
    if (check_number((int)field, number, err) != TN_OK) return TN_INVALID_ARGUMENT;
    return add(list, after.data, after.size, number, err);
  case TN__OPTION_read_folders:
  case TN__OPTION_write_folders:
    if (p->size == 0) return bad_item(field, p, "a folder", err);
    return put(list, p->data, p->size, 0, err);
  default:
    if (p->size == 0) return bad_item(field, p, "a device", err);
    return add(list, p->data, p->size, 0, err);
  }
}

static char separator_of(size_t field)
{
  if (field == TN__OPTION_device_count) return '=';
  return field == TN__OPTION_session_inter_op_pools ? '@' : '\0';
}

tn_status tn__option_list_parse(tn_session_options *options, size_t field, const char *text, tn_error *err)
{
  size_t at = 0, size = strlen(text);
  tn__option_list *list = NULL;
  piece p = { .data = tn__alloc(size + 1) };
  if (p.data == NULL) return no_memory(size, err);
  char cut = separator_of(field);
  tn_status st = TN_OK;
  while (st == TN_OK && next_piece(text, &at, cut, &p)) {
    st = take_piece(field, &p, &list, err);
    if (st == TN_OK && text[at] == ',' && text[at + 1] == 0) { /* the comma at the end */
      p.at = at + 1;
      p.size = 0;
      st = bad_item(field, &p, "an item after the last comma", err);
    }
  }
  tn__free(p.data, size + 1);
  if (st != TN_OK) {
    tn__option_list_destroy(list);
    return st;
  }
  tn__option_list_destroy(options->values[field].list);
  options->values[field].list = list;
  return TN_OK;
}
