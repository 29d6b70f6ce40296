/* SPDX-License-Identifier: Apache-2.0 */
/* A table of formats, each with a function that recognises it. The first one that fits is the answer, so formats with a
 * signature precede formats known by their structure, and text is last. */
#include <core/formats/sniff.h>

#include <dirent.h>
#include <string.h>

#include <core/formats/wire.h>
#include <core/graph/graph_structs.h>

#define HEAD 4096 /* bytes that are examined to decide whether a file is text */

/* ---- signatures ---- */

static bool has_at(tn__slice b, size_t at, const char *signature, size_t n)
{
  return b.size >= n && at <= b.size - n && memcmp(b.data + at, signature, n) == 0;
}
#define HAS(b, at, signature) has_at(b, at, signature, sizeof(signature) - 1)

static bool is_npy(tn__slice b) { return HAS(b, 0, "\x93NUMPY"); }
static bool is_elf(tn__slice b) { return HAS(b, 0, "\x7f" "ELF"); }
static bool is_hdf5(tn__slice b) { return HAS(b, 0, "\x89HDF\r\n\x1a\n"); }
static bool is_tflite(tn__slice b) { return HAS(b, 4, "TFL3"); }
static bool is_gzip(tn__slice b) { return HAS(b, 0, "\x1f\x8b"); }
static bool is_packed(tn__slice b)
{
  return HAS(b, 0, "\xfd" "7zXZ\0") || HAS(b, 0, "\x28\xb5\x2f\xfd") || HAS(b, 0, "BZh") || HAS(b, 257, "ustar");
}
static bool is_picture(tn__slice b) { return HAS(b, 0, "\x89PNG") || HAS(b, 0, "\xff\xd8\xff") || HAS(b, 0, "GIF8"); }
static bool is_zip(tn__slice b) { return HAS(b, 0, "PK\3\4") || HAS(b, 0, "PK\5\6"); }

/* The name of a ZIP archive's first entry, from its local header; empty if there is none. */
static tn__slice first_entry(tn__slice b)
{
  const uint8_t *p = (const uint8_t *)b.data;
  if (!HAS(b, 0, "PK\3\4") || b.size < 30) return (tn__slice){ "", 0 };
  size_t n = p[26] | (size_t)p[27] << 8;
  return (tn__slice){ b.data + 30, n < b.size - 30 ? n : b.size - 30 };
}

static bool ends_in(tn__slice name, const char *end)
{
  size_t n = strlen(end);
  return name.size >= n && memcmp(name.data + name.size - n, end, n) == 0;
}

static bool is_npz(tn__slice b) { return ends_in(first_entry(b), ".npy"); }
static bool is_keras(tn__slice b)
{
  tn__slice name = first_entry(b);
  return tn__slice_is(name, "metadata.json") || tn__slice_is(name, "config.json") ||
         tn__slice_is(name, "model.weights.h5");
}
static bool is_pytorch(tn__slice b)
{
  return ends_in(first_entry(b), "/data.pkl") ||
         (b.size > 2 && b.data[0] == '\x80' && b.data[1] >= 2 && b.data[1] <= 5 && b.data[b.size - 1] == '.');
}

/* A checkpoint's index is a LevelDB table, which ends in a magic number. */
static bool is_index(tn__slice b) { return b.size >= 48 && HAS(b, b.size - 8, "\x57\xfb\x80\x8b\x24\x75\x47\xdb"); }

/* ---- structures ---- */

/* The fields that occur in a message, as bits; bit 63 stands for all from 63 on. 0: the message is empty or
 * malformed. */
typedef struct fields {
  uint64_t numbers, texts; /* all fields; those of wire type bytes */
} fields;

/* Walks the whole message, so that only well-formed bytes are recognised by their structure. */
static fields fields_of(tn__slice message)
{
  fields f = { 0, 0 };
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w)) {
    uint64_t bit = UINT64_C(1) << (w.field < 63 ? w.field : 63);
    f.numbers |= bit;
    if (w.type == TN__WIRE_BYTES) f.texts |= bit;
  }
  return w.error == NULL ? f : (fields){ 0, 0 };
}

/* The first field of this number with wire type bytes; no data if there is none. */
static tn__slice field_of(tn__slice message, uint32_t number)
{
  tn__wire w = tn__wire_read(message);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, number, TN__WIRE_BYTES)) return w.bytes;
  return (tn__slice){ NULL, 0 };
}

#define BIT(field) (UINT64_C(1) << (field))

/* Exactly a schema version (a number) and graphs. */
static bool is_saved_model(tn__slice b)
{
  fields f = fields_of(b);
  return f.numbers == (BIT(1) | BIT(2)) && f.texts == BIT(2);
}

/* Field 2 of a MetaGraph is a GraphDef; field 2 of a GraphDef is its library. In both, field 1 of that is a message,
 * but field 1 of a node is its name where a function has its signature. */
static bool is_meta_graph(tn__slice b)
{
  fields f = fields_of(b);
  if (f.numbers != f.texts || (f.numbers & BIT(2)) == 0 || f.numbers >= BIT(8)) return false;
  tn__slice node = field_of(field_of(b, 2), 1), name = field_of(node, 1), op = field_of(node, 2);
  return name.data != NULL && op.data != NULL && tn__name_is_valid(name.data, name.size) &&
         tn__op_type_is_valid(op.data, op.size);
}

/* A format version (a number) and a graph in field 7, and otherwise only fields of a ModelProto. */
static bool is_onnx(tn__slice b)
{
  fields f = fields_of(b);
  uint64_t known = BIT(9) - BIT(1) + BIT(14) + BIT(20) + BIT(25);
  return (f.numbers & ~known) == 0 && (f.numbers & BIT(1)) != 0 && (f.texts & BIT(1)) == 0 && (f.texts & BIT(7)) != 0;
}

/* ---- text ---- */

/* The length of a UTF-8 sequence of several bytes by its first byte; 0: not such a byte. */
static size_t sequence_length(uint8_t first)
{
  if (first < 0xc2 || first >= 0xf8) return 0;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

/* The length of the non-ASCII UTF-8 character at p. 0: it is malformed, SIZE_MAX: it is cut off. */
static size_t character(const uint8_t *p, size_t left)
{
  size_t n = sequence_length(*p);
  for (size_t i = 1; i < n; i++) {
    if (i == left) return SIZE_MAX;
    if ((p[i] & 0xc0) != 0x80) return 0;
  }
  return n;
}

/* Text is UTF-8 without control characters other than blanks. A character may be cut off at the end of HEAD. */
static bool is_text(tn__slice b)
{
  const uint8_t *p = (const uint8_t *)b.data;
  size_t n = b.size < HEAD ? b.size : HEAD;
  bool blank = true;
  for (size_t i = 0; i < n;) {
    size_t length = 1;
    if (p[i] >= 0x80) length = character(p + i, n - i);
    else if (p[i] == 0x7f || (p[i] < 0x20 && (p[i] < '\t' || p[i] > '\r'))) return false;
    if (length == 0) return false;
    if (length == SIZE_MAX) break;
    if (p[i] > ' ') blank = false;
    i += length;
  }
  return !blank;
}

/* Whether the bytes are text that begins like this, after a byte order mark and blanks. */
static bool text_begins(tn__slice b, const char *with)
{
  if (!is_text(b)) return false;
  if (HAS(b, 0, "\xef\xbb\xbf")) b = (tn__slice){ b.data + 3, b.size - 3 };
  while (b.size > 0 && (*b.data == ' ' || (*b.data >= '\t' && *b.data <= '\r')))
    b = (tn__slice){ b.data + 1, b.size - 1 };
  return has_at(b, 0, with, strlen(with));
}

static bool is_json(tn__slice b) { return text_begins(b, "{") || text_begins(b, "["); }
static bool is_page(tn__slice b) { return text_begins(b, "<"); }
static bool is_pointer(tn__slice b) { return text_begins(b, "version https://git-lfs"); }
static bool is_checkpoint_text(tn__slice b) { return text_begins(b, "model_checkpoint_path:"); }
static bool is_meta_text(tn__slice b) { return text_begins(b, "meta_info_def") || text_begins(b, "graph_def"); }
static bool is_saved_text(tn__slice b)
{
  return text_begins(b, "saved_model_schema_version:") || text_begins(b, "meta_graphs");
}

/* ---- the table ---- */

#define KERAS "export it as a SavedModel (model.export), or freeze it to a GraphDef"
#define SOURCE "the SavedModel or GraphDef that it was made from can be read"
#define SAVED "open it with tn_model_open, or with 'tenon run FOLDER'"
#define META "open it with tn_model_open, or with 'tenon run X.meta --checkpoint PREFIX'"
#define CHECKPOINT \
  "it has no graph: open its MetaGraph with tn_model_open or 'tenon run X.meta --checkpoint PREFIX'; " \
  "'tenon checkpoint' lists its tensors"

static const struct {
  bool (*fits)(tn__slice bytes);
  tn__kind kind;
} formats[] = {
  { is_npy, { "a NumPy array (.npy)", "it can be fed to a model" } },
  { is_npz, { "an archive of NumPy arrays (.npz)", "they can be fed to a model" } },
  { is_keras, { "a Keras model (.keras)", KERAS } },
  { is_pytorch, { "a PyTorch model", NULL } },
  { is_zip, { "a ZIP archive", "unpack it first" } },
  { is_gzip, { "a gzip-compressed file", "unpack it first" } },
  { is_packed, { "a compressed file or archive", "unpack it first" } },
  { is_elf, { "a program or shared object (ELF)", NULL } },
  { is_hdf5, { "an HDF5 file, as written by Keras (.h5)", KERAS } },
  { is_tflite, { "a TensorFlow Lite model (.tflite)", SOURCE } },
  { is_picture, { "a picture", NULL } },
  { is_index, { "the index of a checkpoint (.index), or a checkpoint of version 1", CHECKPOINT } },
  { is_saved_model, { "a SavedModel (saved_model.pb)", SAVED } },
  { is_meta_graph, { "a MetaGraph of a checkpoint (.meta)", META } },
  { is_onnx, { "an ONNX model", NULL } },
  { is_checkpoint_text, { "the list of the checkpoints in a folder", CHECKPOINT } },
  { is_saved_text, { "a SavedModel as text (saved_model.pbtxt)", SAVED } },
  { is_meta_text, { "a MetaGraph as text", META } },
  { is_pointer, { "a Git LFS pointer instead of the file", "fetch the file with 'git lfs pull'" } },
  { is_json, { "JSON", NULL } },
  { is_page, { "an HTML page or XML", NULL } },
};

static const tn__kind weights = { "a file with the values of a checkpoint (.data)", CHECKPOINT };
static const tn__kind saved_model_folder = { "the folder of a SavedModel", SAVED };
static const tn__kind checkpoint_folder = { "a folder of checkpoints", CHECKPOINT };
static const tn__kind some_text = {
  "text", "a GraphDef in text form begins with a field such as 'node {', or its file name ends in .pbtxt"
};

/* Whether it is a name like "model.ckpt.data-00000-of-00001". */
static bool is_weights(const char *path)
{
  const char *at = strstr(path, ".data-");
  return at != NULL && strspn(at + 6, "0123456789") == 5 && strncmp(at + 11, "-of-", 4) == 0;
}

const tn__kind *tn__sniff(tn__slice bytes, const char *path, bool as_text)
{
  if (bytes.size == 0) return NULL;
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (formats[i].fits(bytes)) return &formats[i].kind;
  if (path != NULL && is_weights(path)) return &weights;
  return !as_text && is_text(bytes) ? &some_text : NULL;
}

/* ---- folders ---- */

/* Looks only at names; no file in the directory is opened. */
const tn__kind *tn__sniff_folder(const char *path)
{
  bool saved = false, index = false;
  DIR *folder = opendir(path);
  if (folder == NULL) return NULL;
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    tn__slice name = tn__slice_of(e->d_name);
    saved = saved || tn__slice_is(name, "saved_model.pb") || tn__slice_is(name, "saved_model.pbtxt");
    index = index || ends_in(name, ".index") || tn__slice_is(name, "checkpoint");
  }
  closedir(folder);
  if (saved) return &saved_model_folder;
  return index ? &checkpoint_folder : NULL;
}
