/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions with the syntax and the meaning of RE2: no back references and no look-around, so the time of a
 * match is at most proportional to text and expression. Of several matches that begin at one place, the one is taken
 * that comes first in the order of alternatives and of greedy repetitions.
 *
 * Texts are UTF-8; only \C, which matches single bytes, and classes of Unicode (\pL) are missing. Invalid bytes match
 * nothing. */
#ifndef TN_OPS_STRING_REGEX_REGEX_H
#define TN_OPS_STRING_REGEX_REGEX_H

#include <core/base/text.h>
#include <ops/kernel/poll.h>

/* ---- sets of characters (regex_set.c) ---- */

typedef struct tn__char_range {
  uint32_t first, last;
} tn__char_range;

typedef struct tn__char_set {
  tn__char_range *ranges; /* owned; sorted and apart once the set is closed */
  size_t n, room;
  uint64_t ascii[2]; /* the same for the first 128 characters */
} tn__char_set;

#define TN__LAST_CHAR 0x10ffffu

/* Each false: out of memory. Ranges are added in any order, then the set is closed. */
bool tn__char_set_add(tn__char_set *set, uint32_t first, uint32_t last);
bool tn__char_set_add_all(tn__char_set *set, const tn__char_set *other);
/* Adds the other cases of all letters. The set must be closed, and is closed again. */
bool tn__char_set_fold(tn__char_set *set);
bool tn__char_set_negate(tn__char_set *set);
void tn__char_set_close(tn__char_set *set);
void tn__char_set_fini(tn__char_set *set);
bool tn__char_set_has_slow(const tn__char_set *set, uint32_t c);
static inline bool tn__char_set_has(const tn__char_set *set, uint32_t c)
{
  return c < 128 ? set->ascii[c >> 6] >> (c & 63) & 1 : tn__char_set_has_slow(set, c);
}

/* ---- compiled expressions (regex.c) ---- */

/* Instructions. Distances are relative to the instruction, so code can be moved and copied. */
enum {
  TN__RE_CHAR,  /* a character: x */
  TN__RE_SET,   /* a character of set x */
  TN__RE_JUMP,  /* to x */
  TN__RE_SPLIT, /* to x, or if that does not match, to y */
  TN__RE_SAVE,  /* notes the position in slot x */
  TN__RE_ASSERT, /* x is one of the conditions below */
  TN__RE_MATCH
};
enum { TN__RE_BEGIN_TEXT, TN__RE_END_TEXT, TN__RE_BEGIN_LINE, TN__RE_END_LINE, TN__RE_WORD, TN__RE_NO_WORD };

typedef struct tn__re_code {
  int32_t op, x, y;
} tn__re_code;

typedef struct tn__regex {
  tn__re_code *code; /* owned, as are the sets */
  size_t n, room;
  tn__char_set *sets;
  size_t n_sets, room_sets;
  int32_t groups;      /* that capture, without the whole match */
  bool begins;         /* a match begins with one of these bytes, so it is not empty */
  uint8_t first[256];
} tn__regex;

/* TN_INVALID_ARGUMENT names the byte and the fault; TN_UNIMPLEMENTED. The expression does not refer to the pattern. */
tn_status tn__regex_compile(tn__slice pattern, tn__regex **out, tn_error *err);
void tn__regex_destroy(tn__regex *re); /* NULL allowed */

/* ---- matching (regex_match.c) ---- */

#define TN__RE_SLOTS 20 /* begin and end of the match and of nine groups */
#define TN__RE_NOWHERE SIZE_MAX

/* Working memory for matches of one expression, for one thread. slots: an even number, at most TN__RE_SLOTS. poll is
 * borrowed: when it says that the step is over, matches end and are false. */
typedef struct tn__re_run tn__re_run;
tn_status tn__re_run_create(const tn__regex *re, int32_t slots, tn__poll *poll, tn__re_run **out, tn_error *err);
void tn__re_run_destroy(tn__re_run *run); /* NULL allowed */

/* Whether the whole text matches. */
bool tn__regex_matches(tn__re_run *run, tn__slice text);
/* Finds the first match that begins at byte `from` or later. slots[2 i] and slots[2 i + 1] are begin and end of group
 * i, TN__RE_NOWHERE if it took no part; group 0 is the match. */
bool tn__regex_find(tn__re_run *run, tn__slice text, size_t from, size_t *slots);

#endif
