/* SPDX-License-Identifier: Apache-2.0 */
/* Assets: files of a model whose paths are fed while it is initialised. TensorFlow 2 lists them in asset_file_def,
 * TensorFlow 1 in a collection. */
#include <core/formats/savedmodel/reader.h>

#include <core/base/file.h>
#include <core/base/map.h>
#include <core/base/path.h>

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* AssetFileDef; CollectionDef and its AnyList; Any */
enum { A_TENSOR = 1, A_FILENAME = 2, C_ANY_LIST = 5, L_VALUE = 1, Y_URL = 1, Y_VALUE = 2 };

/* ---- the list ---- */

typedef struct lister {
  tn__sm_reader *r;
  tn__metagraph *m;
  tn__map by_tensor; /* tn__asset_def */
} lister;

/* Adds an asset. TensorFlow's loader in Python accepts an asset that is listed twice, but a tensor is fed only once. */
static tn_status add(lister *l, tn__asset_def asset)
{
  tn__sm_reader *r = l->r;
  if (asset.tensor[0] == 0 || asset.filename[0] == 0)
    return tn_error_set(r->err, TN_DATA_LOSS, "%s: an asset has no %s", r->model->name,
                        asset.tensor[0] == 0 ? "tensor" : "file name");
  tn__asset_def *to = &l->m->assets[l->m->n_assets];
  const tn__asset_def *other = tn__map_get(&l->by_tensor, asset.tensor, strlen(asset.tensor));
  if (other != NULL && strcmp(other->filename, asset.filename) == 0) return TN_OK;
  if (other != NULL)
    return tn_error_set(r->err, TN_DATA_LOSS, "%s: the assets '%.200s' and '%.200s' have the same tensor '%.200s'",
                        r->model->name, other->filename, asset.filename, asset.tensor);
  *to = asset;
  if (!tn__arena_charge(&r->model->arena, 3 * sizeof(tn__map_entry)) ||
      !tn__map_put(&l->by_tensor, to->tensor, strlen(to->tensor), to, NULL))
    return tn__sm_no_memory(r);
  l->m->n_assets++;
  return TN_OK;
}

/* Reads an AssetFileDef. */
static tn_status read_asset(lister *l, tn__slice proto)
{
  tn__slice info = { proto.data, 0 }, filename = info;
  tn__asset_def asset;
  tn__wire w = tn__wire_read(proto);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, A_TENSOR, TN__WIRE_BYTES)) info = w.bytes;
    if (tn__wire_is(&w, A_FILENAME, TN__WIRE_BYTES)) filename = w.bytes;
  }
  tn_status st = tn__sm_after(l->r, &w);
  if (st == TN_OK) st = tn__sm_read_tensor_name(l->r, info, "the tensor of an asset", &asset.tensor);
  if (st == TN_OK) st = tn__sm_complete_name(l->r, &asset.tensor);
  if (st == TN_OK) st = tn__sm_text(l->r, filename, "the file name of an asset", &asset.filename);
  return st == TN_OK ? add(l, asset) : st;
}

/* Reads an Any with an AssetFileDef; of another type, it is ignored. */
static tn_status read_any(lister *l, tn__slice any)
{
  static const char type[] = "/tensorflow.AssetFileDef";
  tn__slice url = { any.data, 0 }, value = url;
  tn__wire w = tn__wire_read(any);
  while (tn__wire_next(&w)) {
    if (tn__wire_is(&w, Y_URL, TN__WIRE_BYTES)) url = w.bytes;
    if (tn__wire_is(&w, Y_VALUE, TN__WIRE_BYTES)) value = w.bytes;
  }
  tn_status st = tn__sm_after(l->r, &w);
  size_t n = sizeof type - 1;
  if (st != TN_OK || url.size < n || memcmp(url.data + url.size - n, type, n) != 0) return st;
  return read_asset(l, value);
}

/* Reads all fields of this number, one item each. */
static tn_status read_fields(lister *l, tn__slice message, uint32_t field, tn_status (*item)(lister *, tn__slice))
{
  size_t n;
  tn_status st = tn__sm_count(l->r, message, field, &n);
  if (st == TN_OK) st = tn__sm_array(l->r, n, sizeof *l->m->assets, &l->m->assets);
  tn__wire w = tn__wire_read(message);
  while (st == TN_OK && tn__wire_next(&w))
    if (tn__wire_is(&w, field, TN__WIRE_BYTES)) st = item(l, w.bytes);
  return st;
}

static tn_status read_collection(lister *l, tn__slice collection)
{
  tn__slice list = { collection.data, 0 };
  tn__wire w = tn__wire_read(collection);
  while (tn__wire_next(&w))
    if (tn__wire_is(&w, C_ANY_LIST, TN__WIRE_BYTES)) list = w.bytes;
  tn_status st = tn__sm_after(l->r, &w);
  return st == TN_OK ? read_fields(l, list, L_VALUE, read_any) : st;
}

tn_status tn__sm_read_assets(tn__sm_reader *r, tn__metagraph *m, tn__slice collection)
{
  lister l = { .r = r, .m = m };
  tn__map_init(&l.by_tensor);
  tn_status st = read_fields(&l, m->bytes, TN__MG_ASSET, read_asset);
  if (st == TN_OK && m->n_assets == 0) st = read_collection(&l, collection);
  tn__map_fini(&l.by_tensor);
  return st;
}

/* ---- files ---- */

static tn_status outside(const char *folder, const char *filename, const char *why, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "the asset '%.500s' is not in the folder of the model '%.500s': %s",
                      filename, folder, why);
}

/* Whether a part of the name is "..". */
static bool climbs(const char *name)
{
  for (const char *p = name; p != NULL; p = strchr(p, '/')) {
    p += *p == '/';
    size_t n = strcspn(p, "/");
    if (n == 2 && memcmp(p, "..", 2) == 0) return true;
  }
  return false;
}

/* Checks that the file is regular and is inside the folder. Both are results of tn__path_follow. */
static tn_status check_file(const char *folder, const char *filename, const char *file, tn_error *err)
{
  struct stat st;
  if (!tn__path_is_within(file, folder)) return outside(folder, filename, "a symbolic link leads out of it", err);
  if (stat(file, &st) != 0) return tn__system_error(err, errno, "the asset '%.500s'", file);
  if (S_ISREG(st.st_mode)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "the asset '%.500s' is not a regular file", file);
}

/* The path with symbolic links resolved is what counts: a folder that is a link itself is as good as its target, and
 * links in it may lead to any place in it. The result has no link, so it is not redirected after the check. */
tn_status tn__asset_path(const char *folder, const char *filename, char **path, tn_error *err)
{
  char joined[PATH_MAX], *root = NULL, *file = NULL;
  *path = NULL;
  if (filename[0] == '/') return outside(folder, filename, "the name is absolute", err);
  if (climbs(filename)) return outside(folder, filename, "the name contains '..'", err);
  int n = tn__snprintf(joined, sizeof joined, "%s/assets/%s", folder, filename);
  if (n < 0 || (size_t)n >= sizeof joined)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the path of the asset '%.500s' is too long", filename);
  tn_status st = tn__path_follow(folder, &root, err);
  if (st == TN_OK) st = tn__path_follow(joined, &file, err);
  if (st == TN_OK) st = check_file(root, filename, file, err);
  tn__strfree(root);
  if (st == TN_OK)
    *path = file;
  else
    tn__strfree(file);
  return st;
}
