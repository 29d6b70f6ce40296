/* SPDX-License-Identifier: Apache-2.0 */
/* tenon checkpoint: shows and compares checkpoints, and exchanges them with NumPy. */
#include <fnmatch.h>
#include <getopt.h>
#include <string.h>

#include <tools/checkpoint/checkpoint.h>

static const char help[] =
    "Usage: tenon checkpoint list PREFIX [PATTERN...] [--paths] [--json]\n"
    "       tenon checkpoint show PREFIX KEY... [--no-histogram] [--json]\n"
    "       tenon checkpoint diff A B [PATTERN...] [--rtol R] [--atol A] [--json]\n"
    "       tenon checkpoint export PREFIX OUT.npz [PATTERN...] [--compress] [--skip]\n"
    "       tenon checkpoint import IN.npz PREFIX [--dtype KEY=TYPE]... [--shards N]\n"
    "\n"
    "Shows what a checkpoint contains, compares two of them, and exchanges their tensors with NumPy. PREFIX is the\n"
    "common part of the files' names, such as variables/variables for variables.index, or a folder: then its\n"
    "newest checkpoint. Checkpoints of version 1 can be read, too. PATTERN is a key or a shell pattern.\n"
    "\n"
    "  list        list the tensors with size, type and shape, sorted by key\n"
    "  show        print tensors as NumPy does, with statistics and a histogram; KEY may be a path through the\n"
    "              objects of a Keras model or tf.train.Checkpoint, such as model/layer-1/kernel\n"
    "  diff        compare two checkpoints; exits with status 1 if they differ, with 2 on trouble\n"
    "  export      write the tensors to an .npz file, each under its key\n"
    "  import      write the arrays of an .npz file as a checkpoint\n"
    "\n"
    "  --paths               also list the object paths that lead to each tensor\n"
    "  --no-histogram        print values and statistics only\n"
    "  --rtol R, --atol A    numbers are equal if they differ by at most A + R times the one in B; default: 0\n"
    "  --compress            compress the .npz file\n"
    "  --skip                leave out tensors that NumPy cannot represent\n"
    "  --dtype KEY=TYPE      the type of an array that NumPy does not have, such as bfloat16; KEY may be a pattern\n"
    "  --shards N            distribute the tensors over N data files\n"
    "  --json                print JSON\n"
    "  -h, --help            show this help\n"
    "\n"
    "Files are written completely or not at all, also after Ctrl-C. bfloat16 is exported as its bits, in two bytes.\n"
    "\n"
    "Examples:\n"
    "  tenon checkpoint list half_plus_two/variables/variables\n"
    "  tenon checkpoint show ckpt model/dense/kernel\n"
    "  tenon checkpoint diff ckpt-100 ckpt-200 'model/*' --atol 1e-6\n"
    "  tenon checkpoint export ckpt-200 weights.npz && tenon checkpoint import weights.npz other/ckpt\n";

const char checkpoint_object_graph[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

int checkpoint_arguments(int argc, char **argv, int wanted, const char *names)
{
  if (argc - optind >= wanted) return TOOL_OK;
  return tool_usage("checkpoint", "'checkpoint %s' expects %s", argv[0], names);
}

tn_checkpoint_entry checkpoint_entry_at(const tn_checkpoint *checkpoint, size_t i)
{
  tn_checkpoint_entry entry;
  memset(&entry, 0, sizeof(entry));
  entry.struct_size = sizeof(entry);
  tn_checkpoint_at(checkpoint, i, &entry, NULL);
  return entry;
}

bool checkpoint_matches(char *const *patterns, int n, const char *key)
{
  for (int i = 0; i < n; i++)
    if (strcmp(patterns[i], key) == 0 || fnmatch(patterns[i], key, 0) == 0) return true;
  return n == 0;
}

bool checkpoint_is_npz(const char *file)
{
  size_t length = strlen(file);
  return length > 4 && strcmp(file + length - 4, ".npz") == 0;
}

void checkpoint_text_type(tool_text *text, const tn_checkpoint_entry *entry)
{
  tool_text_printf(text, "%s ", tn_dtype_name(entry->dtype));
  tool_text_shape(text, entry->dims, entry->rank);
}

json_t *checkpoint_json_entry(const tn_checkpoint_entry *entry)
{
  json_t *object = json_object();
  tool_json_set(object, "key", tool_json_text(entry->key));
  tool_json_set(object, "dtype", tool_json_text(tn_dtype_name(entry->dtype)));
  tool_json_set(object, "shape", tool_json_shape(entry->dims, entry->rank));
  tool_json_set(object, "bytes", json_integer((json_int_t)entry->bytes));
  tool_json_set(object, "slices", json_integer((json_int_t)entry->n_slices));
  return object;
}

static int run(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
  } commands[] = {
    { "list", checkpoint_list },     { "show", checkpoint_show },     { "diff", checkpoint_diff },
    { "export", checkpoint_export }, { "import", checkpoint_import },
  };
  const size_t n = sizeof(commands) / sizeof(commands[0]);
  if (argc < 2) return tool_usage("checkpoint", "expected one of the commands list, show, diff, export and import");
  for (size_t i = 0; i < n; i++)
    if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
  if (argv[1][0] == '-') return tool_usage("checkpoint", "expected a command before '%s'", argv[1]);
  tool_near near;
  tool_text text = { 0 };
  tool_near_init(&near, argv[1]);
  for (size_t i = 0; i < n; i++) tool_near_offer(&near, commands[i].name);
  tool_near_text(&near, &text);
  int status =
      tool_usage("checkpoint", "unknown command 'checkpoint %s'%s", argv[1], text.data != NULL ? text.data : "");
  tool_text_fini(&text);
  return status;
}

const tool_command tool_cmd_checkpoint = { "checkpoint", "list, show, compare, export and import checkpoints", help,
                                           run };
