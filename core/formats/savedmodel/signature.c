/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the map of signatures: names, endpoints sorted by key, and defaults of inputs. The signatures that name the
 * init op and the training op are instructions to the loader and become fields of the MetaGraph. */
#include <core/formats/graphdef/graphdef.h>
#include <core/formats/savedmodel/reader.h>
#include <core/graph/graph_structs.h>

#include <stdlib.h>
#include <string.h>

/* SignatureDef */
enum { S_INPUT = 1, S_OUTPUT = 2, S_METHOD = 3, S_DEFAULT = 4 };
/* TensorInfo */
enum { T_NAME = 1, T_DTYPE = 2, T_SHAPE = 3, T_COO = 4, T_COMPOSITE = 5 };
/* TensorInfo.CooSparse and TensorInfo.CompositeTensor */
enum { C_VALUES = 1, C_INDICES = 2, C_DENSE_SHAPE = 3, M_COMPONENT = 2 };

/* ---- TensorInfo ---- */

/* Where a TensorInfo is, for messages. */
typedef struct place {
  tn__sm_reader *r;
  const char *signature, *kind, *key; /* kind: "input" */
} place;

typedef struct info {
  uint32_t encoding; /* T_NAME, T_COO, T_COMPOSITE; 0: none */
  tn__slice body;    /* of the encoding */
  tn__slice shape;   /* no data: none */
  uint64_t dtype;
} info;

static tn_status wrong(const place *at, const char *what)
{
  return tn_error_set(at->r->err, TN_DATA_LOSS, "%s: signature '%.200s': %s '%.200s': %s", at->r->model->name,
                      at->signature, at->kind, at->key, what);
}

/* Of the encodings, which are a oneof, the last one counts. */
static tn_status read_info(const tn__sm_reader *r, tn__slice proto, info *out)
{
  *out = (info){ .body = { proto.data, 0 } };
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, T_DTYPE, TN__WIRE_VARINT)) out->dtype = w.value;
    if (w.type != TN__WIRE_BYTES) continue;
    if (w.field == T_SHAPE) out->shape = w.bytes;
    if (w.field != T_NAME && w.field != T_COO && w.field != T_COMPOSITE) continue;
    out->encoding = w.field;
    out->body = w.bytes;
  }
  return tn__sm_after(r, &w);
}

tn_status tn__sm_read_tensor_name(const tn__sm_reader *r, tn__slice proto, const char *what, const char **out)
{
  info in;
  *out = "";
  tn_status st = read_info(r, proto, &in);
  return st == TN_OK && in.encoding == T_NAME ? tn__sm_text(r, in.body, what, out) : st;
}

tn_status tn__sm_complete_name(const tn__sm_reader *r, const char **name)
{
  size_t n = strlen(*name);
  if (n == 0 || strchr(*name, ':') != NULL) return TN_OK;
  char *text = tn__arena_alloc(&r->model->arena, n + 3);
  if (text == NULL) return tn__sm_no_memory(r);
  memcpy(text, *name, n);
  memcpy(text + n, ":0", 3);
  *name = text;
  return TN_OK;
}

static tn_status read_tensor(const place *at, tn__slice name, const char **out)
{
  if (name.size == 0) return wrong(at, "it names no tensor");
  tn_status st = tn__sm_text(at->r, name, "the name of a tensor", out);
  return st == TN_OK ? tn__sm_complete_name(at->r, out) : st;
}

/* A reference has the type that it refers to. */
static tn_status read_dtype(const place *at, uint64_t number, tn_dtype *out)
{
  uint64_t base = number > TN_DTYPE_REF && number < 2 * TN_DTYPE_REF ? number - TN_DTYPE_REF : number;
  *out = TN_DTYPE_INVALID;
  if (base != 0 && (base > INT32_MAX || !tn__dtype_valid((tn_dtype)base))) {
    char text[80];
    tn__snprintf(text, sizeof text, "no type has the number %llu", (unsigned long long)number);
    return wrong(at, text);
  }
  *out = (tn_dtype)base;
  return TN_OK;
}

static tn_status read_shape(const place *at, tn__slice proto, tn__endpoint *out)
{
  tn__shape shape;
  tn__fault fault;
  out->rank = -1;
  if (proto.data == NULL) return TN_OK;
  if (!tn__shapeproto_check(proto, &fault)) return tn__sm_malformed(at->r, fault.at, fault.what);
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn__shapeproto_decode(proto, &at->r->model->arena, &shape, &err);
  if (st == TN_INVALID_ARGUMENT) st = wrong(at, tn_error_message(&err));
  else if (st != TN_OK) st = tn__sm_no_memory(at->r);
  tn_error_clear(&err);
  if (st != TN_OK) return st;
  out->rank = shape.rank;
  out->dims = shape.dims;
  return TN_OK;
}

/* An endpoint of one tensor. */
static tn_status read_plain(const place *at, const info *in, tn__endpoint *out)
{
  out->key = at->key;
  tn_status st = read_tensor(at, in->encoding == T_NAME ? in->body : (tn__slice){ NULL, 0 }, &out->tensor);
  if (st == TN_OK) st = read_dtype(at, in->dtype, &out->dtype);
  return st == TN_OK ? read_shape(at, in->shape, out) : st;
}

/* ---- composite ones ---- */

static tn_status component_key(const place *at, const char *component, const char **out)
{
  size_t n = strlen(at->key), m = strlen(component);
  char *text = tn__arena_alloc(&at->r->model->arena, n + m + 2);
  if (text == NULL) return tn__sm_no_memory(at->r);
  memcpy(text, at->key, n);
  text[n] = '/';
  memcpy(text + n + 1, component, m + 1);
  *out = text;
  return TN_OK;
}

/* A component of a sparse tensor: [N, rank] indices, [N] values, [rank] dense_shape. */
static tn_status read_coo_part(const place *at, const char *component, tn__slice tensor, tn_dtype dtype,
                               const int64_t *dims, int32_t rank, tn__endpoint *out)
{
  int64_t *copy;
  tn_status st = component_key(at, component, &out->key);
  if (st == TN_OK) st = tn__sm_array(at->r, (size_t)rank, sizeof *copy, &copy);
  if (st != TN_OK) return st;
  memcpy(copy, dims, (size_t)rank * sizeof *copy);
  out->dtype = dtype;
  out->rank = rank;
  out->dims = copy;
  return read_tensor(at, tensor, &out->tensor);
}

/* The TensorInfo has the type of the values and the shape of the dense tensor. */
static tn_status read_coo(const place *at, const info *in, tn__endpoint *out)
{
  tn__slice values = { NULL, 0 }, indices = values, dense_shape = values;
  tn__endpoint dense = { 0 };
  tn_dtype dtype;
  tn__wire w = tn__wire_read(in->body);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, C_VALUES, TN__WIRE_BYTES)) values = w.bytes;
    if (tn__wire_is(&w, C_INDICES, TN__WIRE_BYTES)) indices = w.bytes;
    if (tn__wire_is(&w, C_DENSE_SHAPE, TN__WIRE_BYTES)) dense_shape = w.bytes;
  }
  tn_status st = tn__sm_after(at->r, &w);
  if (st == TN_OK) st = read_dtype(at, in->dtype, &dtype);
  if (st == TN_OK) st = read_shape(at, in->shape, &dense);
  if (st != TN_OK) return st;
  const int64_t rank = dense.rank, one[] = { -1 }, two[] = { -1, rank };
  st = read_coo_part(at, "values", values, dtype, one, 1, &out[0]);
  if (st == TN_OK) st = read_coo_part(at, "indices", indices, TN_INT64, two, 2, &out[1]);
  return st == TN_OK ? read_coo_part(at, "dense_shape", dense_shape, TN_INT64, &rank, 1, &out[2]) : st;
}

/* TensorFlow flattens components, so none of them is composite itself. */
static tn_status read_composite(const place *at, const info *in, tn__endpoint *out)
{
  size_t i = 0;
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(in->body);
  while (st == TN_OK && tn__wire_next(&w)) {
    info component;
    char number[32];
    place part = *at;
    if (!tn__wire_is(&w, M_COMPONENT, TN__WIRE_BYTES)) continue;
    tn__snprintf(number, sizeof number, "%zu", i);
    st = read_info(at->r, w.bytes, &component);
    if (st == TN_OK) st = component_key(at, number, &part.key);
    if (st == TN_OK) st = read_plain(&part, &component, &out[i++]);
  }
  return st;
}

/* ---- inputs and outputs ---- */

/* The number of endpoints of an entry of a map of TensorInfos. */
static tn_status count_endpoints(const tn__sm_reader *r, tn__slice entry, size_t *n)
{
  tn__slice key, value;
  info in;
  tn_status st = tn__sm_entry(r, entry, &key, &value);
  if (st == TN_OK) st = read_info(r, value, &in);
  if (st != TN_OK) return st;
  *n = in.encoding == T_COO ? 3 : 1;
  return in.encoding == T_COMPOSITE ? tn__sm_count(r, in.body, M_COMPONENT, n) : TN_OK;
}

static tn_status count_all(const tn__sm_reader *r, tn__slice signature, uint32_t field, size_t *total)
{
  *total = 0;
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(signature);
  while (st == TN_OK && tn__wire_next(&w)) {
    size_t n;
    if (!tn__wire_is(&w, field, TN__WIRE_BYTES)) continue;
    st = count_endpoints(r, w.bytes, &n);
    if (st == TN_OK) *total += n; /* each has a byte of the file */
  }
  return st == TN_OK ? tn__sm_after(r, &w) : st;
}

/* Reads an entry of the map; *i advances over its endpoints. */
static tn_status read_entry(place *at, tn__slice entry, tn__endpoint *endpoints, size_t *i)
{
  tn__slice key, value;
  info in;
  tn_status st = tn__sm_entry(at->r, entry, &key, &value);
  if (st == TN_OK) st = tn__sm_text(at->r, key, "the key of a signature", &at->key);
  if (st == TN_OK) st = read_info(at->r, value, &in);
  if (st != TN_OK) return st;
  size_t n = in.encoding == T_COO ? 3 : 1;
  if (in.encoding == T_COMPOSITE) n = tn__field_count(in.body, M_COMPONENT);
  tn__endpoint *out = &endpoints[*i];
  *i += n;
  if (in.encoding == T_COO) return read_coo(at, &in, out);
  return in.encoding == T_COMPOSITE ? read_composite(at, &in, out) : read_plain(at, &in, out);
}

static int compare_endpoints(const void *a, const void *b)
{
  return strcmp(((const tn__endpoint *)a)->key, ((const tn__endpoint *)b)->key);
}

/* Reads all inputs or outputs. */
static tn_status read_endpoints(place *at, tn__slice signature, uint32_t field, tn__endpoint **out, size_t *n)
{
  size_t i = 0;
  tn_status st = count_all(at->r, signature, field, n);
  if (st == TN_OK) st = tn__sm_array(at->r, *n, sizeof **out, out);
  tn__wire w = tn__wire_read(signature);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, field, TN__WIRE_BYTES)) st = read_entry(at, w.bytes, *out, &i);
  if (st != TN_OK || *n < 2) return st;
  qsort(*out, *n, sizeof **out, compare_endpoints);
  for (i = 1; i < *n; i++) {
    at->key = (*out)[i].key;
    if (strcmp((*out)[i - 1].key, at->key) == 0) return wrong(at, "the key is there twice");
  }
  return TN_OK;
}

/* Reads a default; one for a key that is no input is ignored. */
static tn_status read_default(const tn__sm_reader *r, tn__slice entry, const tn__signature_def *s)
{
  tn__slice key, value;
  tn__fault fault;
  tn__endpoint wanted = { 0 };
  tn_status st = tn__sm_entry(r, entry, &key, &value);
  if (st == TN_OK && !tn__tensorproto_check(value, &fault)) st = tn__sm_malformed(r, fault.at, fault.what);
  if (st == TN_OK) st = tn__sm_text(r, key, "the key of a signature", &wanted.key);
  if (st != TN_OK || s->n_inputs == 0) return st;
  tn__endpoint *e = bsearch(&wanted, s->inputs, s->n_inputs, sizeof wanted, compare_endpoints);
  if (e != NULL) e->value = value;
  return TN_OK;
}

static tn_status read_signature(tn__sm_reader *r, tn__signature_def *s)
{
  tn__slice method = { s->bytes.data, 0 };
  place in = { r, s->name, "input", "" }, out = { r, s->name, "output", "" };
  tn_status st = read_endpoints(&in, s->bytes, S_INPUT, &s->inputs, &s->n_inputs);
  if (st == TN_OK) st = read_endpoints(&out, s->bytes, S_OUTPUT, &s->outputs, &s->n_outputs);
  tn__wire w = tn__wire_read(s->bytes);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (tn__wire_is(&w, S_METHOD, TN__WIRE_BYTES)) method = w.bytes;
    if (tn__wire_is(&w, S_DEFAULT, TN__WIRE_BYTES)) st = read_default(r, w.bytes, s);
  }
  return st == TN_OK ? tn__sm_text(r, method, "the method_name of a signature", &s->method_name) : st;
}

/* ---- the map ---- */

/* Reads the op that a signature of the loader names by the output with this key: "NoOp" or "NoOp:0". */
static tn_status read_op(tn__sm_reader *r, tn__slice signature, const char *key, const char **out)
{
  tn__slice found, value, info_of = { NULL, 0 };
  tn_status st = TN_OK;
  tn__wire w = tn__wire_read(signature);
  while (st == TN_OK && tn__wire_next(&w)) {
    if (!tn__wire_is(&w, S_OUTPUT, TN__WIRE_BYTES)) continue;
    st = tn__sm_entry(r, w.bytes, &found, &value);
    if (tn__slice_is(found, key)) info_of = value;
  }
  if (st == TN_OK) st = tn__sm_after(r, &w);
  if (st == TN_OK) st = tn__sm_read_tensor_name(r, info_of, "the name of an op", out);
  if (st != TN_OK) return st;
  const char *colon = strchr(*out, ':');
  if (colon != NULL) *out = tn__arena_string(&r->model->arena, *out, (size_t)(colon - *out));
  if (*out == NULL) return tn__sm_no_memory(r);
  if (**out == 0) *out = NULL;
  return TN_OK;
}

static int compare_signatures(const void *a, const void *b)
{
  return strcmp(((const tn__signature_def *)a)->name, ((const tn__signature_def *)b)->name);
}

static tn_status sort_signatures(const tn__sm_reader *r, const tn__metagraph *m)
{
  if (m->n_signatures < 2) return TN_OK;
  qsort(m->signatures, m->n_signatures, sizeof *m->signatures, compare_signatures);
  for (size_t i = 1; i < m->n_signatures; i++)
    if (strcmp(m->signatures[i - 1].name, m->signatures[i].name) == 0)
      return tn_error_set(r->err, TN_DATA_LOSS, "%s: the signature '%.200s' is there twice", r->model->name,
                          m->signatures[i].name);
  return TN_OK;
}

static tn_status read_named(tn__sm_reader *r, tn__slice entry, tn__metagraph *m)
{
  tn__slice name, value;
  tn__signature_def *s = &m->signatures[m->n_signatures];
  tn_status st = tn__sm_entry(r, entry, &name, &value);
  if (st != TN_OK) return st;
  if (tn__slice_is(name, TN__SM_INIT_OP)) return read_op(r, value, TN__SM_INIT_OP, &m->init_op);
  if (tn__slice_is(name, TN__SM_TRAIN_OP)) return read_op(r, value, TN__SM_TRAIN_OP, &m->train_op);
  s->bytes = value;
  m->n_signatures++;
  st = tn__sm_text(r, name, "the name of a signature", &s->name);
  return st == TN_OK ? read_signature(r, s) : st;
}

tn_status tn__sm_read_signatures(tn__sm_reader *r, tn__metagraph *m)
{
  size_t n;
  tn_status st = tn__sm_count(r, m->bytes, TN__MG_SIGNATURE, &n);
  if (st == TN_OK) st = tn__sm_array(r, n, sizeof *m->signatures, &m->signatures);
  tn__wire w = tn__wire_read(m->bytes);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, TN__MG_SIGNATURE, TN__WIRE_BYTES)) st = read_named(r, w.bytes, m);
  return st == TN_OK ? sort_signatures(r, m) : st;
}
