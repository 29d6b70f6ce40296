/* SPDX-License-Identifier: Apache-2.0 */
/* Continuing with another vocabulary: GenerateVocabRemapping, which finds the old numbers of new words, and
 * LoadAndRemapMatrix, which reads a matrix of a checkpoint with its rows and columns in the new order. */
#include <ops/checkpoint/prefix.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/state/table/table_file.h>
#include <ops/string/string_path.h>

#define FILE_NS 100000

/* ---- GenerateVocabRemapping ---- */

typedef struct vocabulary {
  int64_t offset, n; /* lines of the new file */
  int64_t old_lines;
} vocabulary;

static void vocabulary_destroy(void *state) { tn__free(state, sizeof(vocabulary)); }

static tn_status vocabulary_create(const tn_operation *op, void **state, tn_error *err)
{
  vocabulary v = { tn__attr_int(op, "new_vocab_offset", 0), tn__attr_int(op, "num_new_vocab", 0),
                   tn__attr_int(op, "old_vocab_size", TN__ALL_LINES) };
  return tn__keep_state(&v, sizeof v, "kernel", state, err);
}

static tn_status vocabulary_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const vocabulary *v = ctx->state;
  ctx->cost_ns = FILE_NS;
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 0, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, &v->n, 1, err);
  return st == TN_OK ? tn_prepare_output(ctx, 1, NULL, 0, err) : st;
}

/* The lines of the file that input i names. The caller frees *rows, also on failure. */
static tn_status read_lines(const tn_kernel_ctx *ctx, uint32_t i, const tn__table_file *how, tn__rows *rows)
{
  char *path;
  tn_status st = tn__file_name(ctx, ctx->inputs[i], TN__TO_READ, &path);
  if (st == TN_OK && path[0] == 0) st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the name of a file is empty");
  if (st == TN_OK) st = tn__table_file_read(how, path, rows, ctx->err);
  tn__strfree(path);
  return st;
}

static tn_status check_lines(const tn_kernel_ctx *ctx, const vocabulary *v, const tn__rows *lines)
{
  int64_t end;
  if (!__builtin_add_overflow(v->offset, v->n, &end) && end <= (int64_t)lines->n) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the new vocabulary has %zu lines, wanted %lld from line %lld on",
                      lines->n, (long long)v->n, (long long)v->offset);
}

/* words: by line number. numbers: by word. */
static tn_status remap_words(tn_kernel_ctx *ctx, tn__rows *words, tn__rows *numbers)
{
  const vocabulary *v = ctx->state;
  int64_t *out = ctx->outputs[0]->data;
  int32_t found = 0;
  tn__table_file by_number = { .key = TN__LINE_NUMBER, .value = TN__WHOLE_LINE, .lines = TN__ALL_LINES };
  tn__table_file by_word = { .key = TN__WHOLE_LINE, .value = TN__LINE_NUMBER, .lines = v->old_lines };
  tn_status st = read_lines(ctx, 1, &by_word, numbers);
  if (st == TN_OK) st = read_lines(ctx, 0, &by_number, words);
  if (st == TN_OK) st = check_lines(ctx, v, words);
  for (int64_t i = 0; st == TN_OK && i < v->n; i++) {
    const int64_t *number = tn__rows_find(numbers, tn__rows_value(words, (size_t)(v->offset + i)));
    out[i] = number == NULL ? -1 : *number;
    found += number != NULL;
  }
  *(int32_t *)ctx->outputs[1]->data = found;
  return st;
}

static tn_status vocabulary_compute(tn_kernel_ctx *ctx)
{
  tn__rows words, numbers;
  tn_status st = tn__rows_init(&words, TN_INT64, 1, TN_STRING, 1, ctx->err);
  if (st != TN_OK) return st;
  st = tn__rows_init(&numbers, TN_STRING, 1, TN_INT64, 1, ctx->err);
  if (st == TN_OK) {
    st = remap_words(ctx, &words, &numbers);
    tn__rows_fini(&numbers);
  }
  tn__rows_fini(&words);
  return st;
}

static tn_status infer_vocabulary(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t n = tn__attr_int(tn_infer_operation(ctx), "num_new_vocab", 0);
  tn_status st = tn_infer_output(ctx, 0, &n, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, NULL, 0, err) : st;
}

/* ---- LoadAndRemapMatrix ---- */

typedef struct shape {
  int64_t rows, columns;
  int64_t most; /* rows to be read at once; not positive: all */
} shape;

static void shape_destroy(void *state) { tn__free(state, sizeof(shape)); }

static tn_status shape_create(const tn_operation *op, void **state, tn_error *err)
{
  shape s = { tn__attr_int(op, "num_rows", 0), tn__attr_int(op, "num_cols", 0),
              tn__attr_int(op, "max_rows_in_memory", -1) };
  return tn__keep_state(&s, sizeof s, "kernel", state, err);
}

static tn_status want_numbers(const tn_prepare_ctx *ctx, uint32_t i, int64_t n, const char *what, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, i, 1, err);
  if (st != TN_OK || ctx->inputs[i].count == n) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has %lld elements for a matrix of %lld %s",
                      tn_operation_type(ctx->op), (unsigned)i, (long long)ctx->inputs[i].count, (long long)n, what);
}

static tn_status matrix_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const shape *s = ctx->state;
  ctx->cost_ns = FILE_NS;
  tn_status st = tn__want_one(ctx, 0, err);
  if (st == TN_OK) st = tn__want_one(ctx, 1, err);
  if (st == TN_OK) st = want_numbers(ctx, 2, s->rows, "rows", err);
  if (st == TN_OK) st = want_numbers(ctx, 3, ctx->inputs[3].count == 0 ? 0 : s->columns, "columns", err);
  return st == TN_OK ? tn_prepare_output(ctx, 0, (const int64_t[]){ s->rows, s->columns }, 2, err) : st;
}

/* Where the rows or columns of the new matrix are in the old one. */
typedef struct order {
  const int64_t *old; /* n old numbers, negative: there is none; NULL: both are equal */
  int64_t n;
  int64_t *new; /* of each old number in [first, first + n_new): the new one, -1: none; owned, NULL if `old` is */
  int64_t first, n_new;
} order;

static void order_fini(order *o) { tn__free(o->new, (size_t)o->n_new * sizeof *o->new); }

static tn_status fill_order(order *o, const char *what, tn_error *err)
{
  for (int64_t i = 0; i < o->n; i++) {
    if (o->old[i] < 0) continue;
    int64_t *to = &o->new[o->old[i] - o->first];
    if (*to >= 0)
      return tn_error_set(err, TN_UNIMPLEMENTED, "old %s %lld is wanted as new %ss %lld and %lld", what,
                          (long long)o->old[i], what, (long long)*to, (long long)i);
    *to = i;
  }
  return TN_OK;
}

/* there: the rows or columns of the old matrix. */
static tn_status order_init(order *o, const int64_t *old, int64_t n, int64_t there, const char *what, tn_error *err)
{
  int64_t last = -1;
  *o = (order){ .old = old, .n = n, .first = INT64_MAX };
  if (old == NULL) return TN_OK;
  for (int64_t i = 0; i < n; i++) {
    if (old[i] < 0) continue;
    if (old[i] >= there)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "old %s %lld is wanted, but the matrix has %lld", what,
                          (long long)old[i], (long long)there);
    if (old[i] < o->first) o->first = old[i];
    if (old[i] > last) last = old[i];
  }
  if (last < 0) return TN_OK;
  o->n_new = last - o->first + 1;
  o->new = tn__alloc_array((size_t)o->n_new, sizeof *o->new);
  if (o->new == NULL) return tn__no_memory(err, "order of a matrix", (size_t)o->n_new * sizeof *o->new);
  for (int64_t i = 0; i < o->n_new; i++) o->new[i] = -1;
  return fill_order(o, what, err);
}

typedef struct matrix {
  tn_kernel_ctx *ctx;
  tn__store *store;
  const tn__stored *entry;
  order rows, columns;
} matrix;

static tn_status find_matrix(matrix *m)
{
  const shape *s = m->ctx->state;
  char text[200];
  tn_status st = tn__store_get(m->store, tn__text_input(m->ctx, 1, 0), &m->entry, m->ctx->err);
  if (st != TN_OK) return st;
  if (m->entry->dtype == TN_FLOAT && m->entry->rank == 2 &&
      (m->ctx->inputs[3]->count > 0 || m->entry->dims[1] == s->columns))
    return TN_OK;
  return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT,
                      "tensor '%.200s' of checkpoint '%s' is %s of shape %s, wanted a float32 matrix%s", m->entry->key,
                      m->store->prefix, tn_dtype_name(m->entry->dtype),
                      tn__format_shape(text, sizeof text, m->entry->dims, m->entry->rank),
                      m->ctx->inputs[3]->count > 0 ? "" : " with as many columns as num_cols");
}

/* Copies a row of the old matrix to its place in the new one. */
static void place_row(const matrix *m, const float *from, int64_t row)
{
  const shape *s = m->ctx->state;
  float *to = (float *)m->ctx->outputs[0]->data + row * s->columns;
  for (int64_t c = 0; c < s->columns; c++) {
    int64_t old = m->columns.old == NULL ? c : m->columns.old[c];
    if (old >= 0) to[c] = from[old];
  }
}

static tn_status read_rows(const matrix *m, int64_t first, int64_t n)
{
  int64_t starts[2] = { first, 0 }, lengths[2] = { n, m->entry->dims[1] };
  tn__region region = { 2, starts, lengths };
  tn_tensor *read;
  tn_status st = tn__store_read_region(m->store, m->entry, &region, &read, m->ctx->err);
  for (int64_t i = 0; st == TN_OK && i < n; i++) {
    int64_t row = m->rows.new[first - m->rows.first + i];
    if (row >= 0) place_row(m, (const float *)tn_tensor_data(read) + i * lengths[1], row);
  }
  tn_tensor_unref(read);
  return st;
}

static tn_status read_matrix(const matrix *m)
{
  const shape *s = m->ctx->state;
  int64_t most = s->most > 0 ? s->most : INT64_MAX;
  tn_status st = TN_OK;
  for (int64_t done = 0, n; st == TN_OK && done < m->rows.n_new; done += n) {
    n = m->rows.n_new - done < most ? m->rows.n_new - done : most;
    st = read_rows(m, m->rows.first + done, n);
  }
  return st;
}

/* Elements that the old matrix lacks are taken from input 4, in order. */
static tn_status fill_missing(const matrix *m)
{
  const shape *s = m->ctx->state;
  const tn_view *values = m->ctx->inputs[4];
  float *to = m->ctx->outputs[0]->data;
  int64_t used = 0;
  for (int64_t r = 0; r < s->rows; r++)
    for (int64_t c = 0; c < s->columns; c++, to++) {
      if (m->rows.old[r] >= 0 && (m->columns.old == NULL || m->columns.old[c] >= 0)) continue;
      if (used < values->count) *to = ((const float *)values->data)[used];
      used++;
    }
  if (used == values->count) return TN_OK;
  return tn_error_set(m->ctx->err, TN_INVALID_ARGUMENT, "%lld elements are missing, but there are %lld values for them",
                      (long long)used, (long long)values->count);
}

static tn_status remap(matrix *m)
{
  const shape *s = m->ctx->state;
  const tn_view *columns = m->ctx->inputs[3];
  tn_error *err = m->ctx->err;
  tn_status st = find_matrix(m);
  if (st != TN_OK) return st;
  const int64_t *dims = m->entry->dims;
  st = order_init(&m->rows, m->ctx->inputs[2]->data, s->rows, dims[0], "row", err);
  if (st == TN_OK)
    st = order_init(&m->columns, columns->count == 0 ? NULL : columns->data, s->columns, dims[1], "column", err);
  if (st == TN_OK) st = fill_missing(m);
  if (st == TN_OK) st = read_matrix(m);
  order_fini(&m->rows);
  order_fini(&m->columns);
  return st;
}

static tn_status matrix_compute(tn_kernel_ctx *ctx)
{
  matrix m = { .ctx = ctx };
  tn_status st = tn__prefix_open(ctx, 0, &m.store);
  if (st == TN_OK) st = remap(&m);
  tn__store_close(m.store);
  return st;
}

static tn_status infer_matrix(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  int64_t dims[2] = { tn__attr_int(op, "num_rows", 0), tn__attr_int(op, "num_cols", 0) };
  return tn_infer_output(ctx, 0, dims, 2, err);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "GenerateVocabRemapping",
    .inputs = "new_vocab_file: string, old_vocab_file: string", .outputs = "remapping: int64, num_present: int32",
    .attrs = "new_vocab_offset: int >= 0; num_new_vocab: int >= 0; old_vocab_size: int >= -1 = -1",
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS, .infer = infer_vocabulary,
    .summary = "the old numbers of the words of a new vocabulary" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "LoadAndRemapMatrix",
    .inputs = "ckpt_path: string, old_tensor_name: string, row_remapping: int64, col_remapping: int64, "
              "initializing_values: float",
    .outputs = "output_matrix: float",
    .attrs = "num_rows: int >= 0; num_cols: int >= 1; max_rows_in_memory: int = -1",
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS, .infer = infer_matrix,
    .summary = "a matrix of a checkpoint, its rows and columns in another order" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("GenerateVocabRemapping", "generate_vocab_remapping_cpu", vocabulary_create, vocabulary_destroy,
             vocabulary_prepare, vocabulary_compute),
  TN__KERNEL("LoadAndRemapMatrix", "load_and_remap_matrix_cpu", shape_create, shape_destroy, matrix_prepare,
             matrix_compute),
};

TN_OP_FAMILY(checkpoint_remap)
