/* SPDX-License-Identifier: Apache-2.0 */
/* Matches by following all possible paths through the code at once, character by character. A thread is a path that
 * waits for the next character. Threads are kept in the order in which they are preferred, at most one for each
 * instruction, so a step costs no more than the code is long. */
#include <ops/string/regex/regex.h>

#include <ops/string/unicode/string_case.h>
#include <string.h>

#define NO_CHAR UINT32_MAX /* the end of the text, or an invalid byte */

#define THREAD_NS 8 /* approximate cost of an instruction that is reached */

/* Instructions that were reached, in order of preference. `places` needs no clearing: an entry counts if it names a
 * member that names it. */
typedef struct list {
  uint32_t *places, *members;
  size_t *slots; /* of each member that is a thread */
  size_t n;
} list;

/* Work that remains while the instructions that need no character are followed. */
typedef struct todo {
  int32_t slot; /* to be restored to `value`; -1: go to instruction `value` */
  size_t value;
} todo;

struct tn__re_run {
  const tn__regex *re;
  tn__poll *poll;
  size_t n_slots;
  list now, next;
  todo *stack;
  size_t slots[TN__RE_SLOTS]; /* of the path that is followed */
  tn__slice text;
};

/* ---- memory ---- */

static bool list_init(list *l, const tn__regex *re, size_t n_slots)
{
  l->places = tn__alloc_array(re->n, sizeof *l->places);
  l->members = tn__alloc_array(re->n, sizeof *l->members);
  if (n_slots > 0) l->slots = tn__alloc_array(re->n, n_slots * sizeof *l->slots);
  return l->places != NULL && l->members != NULL && (n_slots == 0 || l->slots != NULL);
}

static void list_fini(list *l, const tn__regex *re, size_t n_slots)
{
  tn__free(l->places, re->n * sizeof *l->places);
  tn__free(l->members, re->n * sizeof *l->members);
  tn__free(l->slots, re->n * n_slots * sizeof *l->slots);
}

/* Each instruction is reached once and leaves at most two entries. */
static size_t stack_room(const tn__regex *re) { return 2 * re->n + 1; }

tn_status tn__re_run_create(const tn__regex *re, int32_t slots, tn__poll *poll, tn__re_run **out, tn_error *err)
{
  tn__re_run *run = *out = tn__zalloc(sizeof *run);
  if (run == NULL) return tn__no_memory(err, "match of an expression", sizeof *run);
  run->re = re;
  run->poll = poll;
  run->n_slots = (size_t)slots;
  run->stack = tn__alloc_array(stack_room(re), sizeof *run->stack);
  if (run->stack != NULL && list_init(&run->now, re, run->n_slots) && list_init(&run->next, re, run->n_slots))
    return TN_OK;
  tn__re_run_destroy(run);
  *out = NULL;
  return tn__no_memory(err, "match of an expression", re->n * sizeof *run->stack);
}

void tn__re_run_destroy(tn__re_run *run)
{
  if (run == NULL) return;
  list_fini(&run->now, run->re, run->n_slots);
  list_fini(&run->next, run->re, run->n_slots);
  tn__free(run->stack, stack_room(run->re) * sizeof *run->stack);
  tn__free(run, sizeof *run);
}

/* ---- threads ---- */

static bool is_word(tn__slice text, size_t at)
{
  if (at >= text.size) return false;
  unsigned char c = (unsigned char)text.data[at];
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool holds(tn__slice text, int32_t condition, size_t at)
{
  bool edge = (at > 0 && is_word(text, at - 1)) != is_word(text, at);
  switch (condition) {
  case TN__RE_BEGIN_TEXT: return at == 0;
  case TN__RE_END_TEXT: return at == text.size;
  case TN__RE_BEGIN_LINE: return at == 0 || text.data[at - 1] == '\n';
  case TN__RE_END_LINE: return at == text.size || text.data[at] == '\n';
  case TN__RE_WORD: return edge;
  default: return !edge;
  }
}

/* Notes that an instruction was reached; false: it was before. */
static bool reach(list *l, size_t at)
{
  size_t place = l->places[at];
  if (place < l->n && l->members[place] == at) return false;
  l->places[at] = (uint32_t)l->n;
  l->members[l->n++] = (uint32_t)at;
  return true;
}

/* Follows one instruction; returns the number of entries on the stack. */
static size_t follow(tn__re_run *run, list *to, size_t at, size_t position, size_t n)
{
  const tn__re_code *code = &run->re->code[at];
  todo *stack = run->stack;
  switch (code->op) {
  case TN__RE_JUMP: stack[n++] = (todo){ -1, at + (size_t)(int64_t)code->x }; break;
  case TN__RE_SPLIT:
    stack[n++] = (todo){ -1, at + (size_t)(int64_t)code->y };
    stack[n++] = (todo){ -1, at + (size_t)(int64_t)code->x };
    break;
  case TN__RE_SAVE:
    if ((size_t)code->x < run->n_slots) {
      stack[n++] = (todo){ code->x, run->slots[code->x] };
      run->slots[code->x] = position;
    }
    stack[n++] = (todo){ -1, at + 1 };
    break;
  case TN__RE_ASSERT:
    if (holds(run->text, code->x, position)) stack[n++] = (todo){ -1, at + 1 };
    break;
  default:
    if (run->n_slots > 0)
      memcpy(to->slots + (to->n - 1) * run->n_slots, run->slots, run->n_slots * sizeof *run->slots);
  }
  return n;
}

/* Adds the threads that begin at an instruction, with run->slots. */
static void add(tn__re_run *run, list *to, size_t at, size_t position)
{
  size_t n = 0;
  run->stack[n++] = (todo){ -1, at };
  while (n > 0) {
    todo t = run->stack[--n];
    if (t.slot >= 0) run->slots[t.slot] = t.value;
    else if (reach(to, t.value)) n = follow(run, to, t.value, position, n);
  }
}

/* Advances the threads past a character, to byte `position`. True: a thread has matched at this byte, and no later
 * thread of the list is preferred; its slots are copied. whole: only the end of the text counts. */
static bool step(tn__re_run *run, uint32_t c, size_t at, size_t position, bool whole, size_t *slots)
{
  const list *now = &run->now;
  size_t bytes = run->n_slots * sizeof *slots;
  run->next.n = 0;
  for (size_t i = 0; i < now->n; i++) {
    const tn__re_code *code = &run->re->code[now->members[i]];
    const size_t *own = bytes > 0 ? now->slots + i * run->n_slots : NULL;
    bool passes = code->op == TN__RE_CHAR ? (uint32_t)code->x == c
                                          : code->op == TN__RE_SET && tn__char_set_has(&run->re->sets[code->x], c);
    if (passes && c != NO_CHAR) {
      if (bytes > 0) memcpy(run->slots, own, bytes);
      add(run, &run->next, now->members[i] + 1, position);
    } else if (code->op == TN__RE_MATCH && (!whole || at == run->text.size)) {
      if (bytes > 0) memcpy(slots, own, bytes);
      return true;
    }
  }
  return false;
}

/* ---- texts ---- */

/* The character at a byte; *next is the byte after it. */
static uint32_t char_at(tn__slice text, size_t at, size_t *next)
{
  bool bad;
  *next = at;
  if (at >= text.size) return NO_CHAR;
  uint32_t c = tn__utf8_next(text.data, text.size, next, &bad);
  if (!bad) return c;
  *next = at + 1;
  return NO_CHAR;
}

/* The next place at which a match can begin; text.size: there may be none. */
static size_t skip(const tn__regex *re, tn__slice text, size_t at)
{
  if (!re->begins) return at;
  while (at < text.size && !re->first[(unsigned char)text.data[at]]) at++;
  return at;
}

/* Whether there is an empty match between the bytes of a character, where RE2 looks, too. */
static bool matches_inside(tn__re_run *run, size_t begin, size_t end, size_t *slots)
{
  for (size_t at = begin + 1; at < end && !run->re->begins; at++) {
    run->next.n = 0;
    for (size_t i = 0; i < run->n_slots; i++) run->slots[i] = TN__RE_NOWHERE;
    add(run, &run->next, 0, at);
    for (size_t i = 0; i < run->next.n; i++) {
      if (run->re->code[run->next.members[i]].op != TN__RE_MATCH) continue;
      memcpy(slots, run->next.slots + i * run->n_slots, run->n_slots * sizeof *slots);
      return true;
    }
  }
  return false;
}

static bool search(tn__re_run *run, tn__slice text, size_t from, bool whole, size_t *slots)
{
  bool matched = false;
  run->text = text;
  run->now.n = 0;
  for (size_t at = from, next;; at = next) {
    if (run->now.n == 0 && (matched || (whole && at > from))) break;
    if (run->now.n == 0 && !whole) at = skip(run->re, text, at);
    if (!matched && (!whole || at == from)) {
      for (size_t i = 0; i < run->n_slots; i++) run->slots[i] = TN__RE_NOWHERE;
      add(run, &run->now, 0, at);
    }
    if (tn__poll_over(run->poll, THREAD_NS * (int64_t)(run->now.n + 1))) return false;
    uint32_t c = char_at(text, at, &next);
    if (step(run, c, at, next, whole, slots)) matched = true;
    list swap = run->now;
    run->now = run->next;
    run->next = swap;
    if (at >= text.size) break;
    /* The threads that remain began before it, so they are preferred. */
    if (!matched && !whole && next - at > 1) matched = matches_inside(run, at, next, slots);
  }
  return matched;
}

bool tn__regex_matches(tn__re_run *run, tn__slice text)
{
  size_t slots[TN__RE_SLOTS];
  return search(run, text, 0, true, slots);
}

bool tn__regex_find(tn__re_run *run, tn__slice text, size_t from, size_t *slots)
{
  return search(run, text, from, false, slots);
}
