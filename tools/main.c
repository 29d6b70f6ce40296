/* SPDX-License-Identifier: Apache-2.0 */
/* The tenon command: finds the subcommand in the table that the build makes from tools/tools.mk. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/plugins.h>

#include <tools/tool.h>

static const tool_command *find_command(const char *name)
{
  for (size_t i = 0; i < n_tool_commands; i++)
    if (strcmp(tool_commands[i]->name, name) == 0) return tool_commands[i];
  return NULL;
}

static void print_help(FILE *out)
{
  fputs("Usage: tenon COMMAND [ARGUMENT...]\n"
        "\n"
        "Runs TensorFlow graphs on runtimes provided by plugins.\n"
        "\n"
        "Commands:\n",
        out);
  for (size_t i = 0; i < n_tool_commands; i++)
    fprintf(out, "  %-10s  %s\n", tool_commands[i]->name, tool_commands[i]->summary);
  fputs("  help        show help for a command\n"
        "\n"
        "Options:\n"
        "  --op-library FILE  load a plugin that provides ops before running the command; plugins in the\n"
        "                     plugin folders are loaded when a model uses one of their ops\n"
        "  -h, --help         show this help\n"
        "  -V, --version      show the version\n"
        "\n"
        "Environment:\n"
        "  TENON_PLUGIN_PATH  folders searched for runtimes before the installation's folder\n"
        "  TENON_RANK         ranks that override the runtimes' own, such as direct=500,other=600\n"
        "  TENON_PROBE        1: probe each plugin in a separate process before loading it\n"
        "  TENON_LOG          log level: error, warning (the default), info or debug\n"
        "\n"
        "For details see 'tenon COMMAND --help' and 'man tenon'.\n",
        out);
}

static void print_version(void)
{
  printf("tenon %s\n", tn_version());
  if (strcmp(tn_version(), TN_VERSION_STRING) != 0) printf("built with the headers of %s\n", TN_VERSION_STRING);
  printf("plugin ABI %d.%d\n", TN_ABI_MAJOR, TN_ABI_MINOR);
}

static int unknown_command(const char *name)
{
  tool_near near;
  tool_text text = { 0 };
  if (name[0] == '-') return tool_usage(NULL, "unknown option '%s'", name);
  tool_near_init(&near, name);
  for (size_t i = 0; i < n_tool_commands; i++) tool_near_offer(&near, tool_commands[i]->name);
  tool_near_offer(&near, "help");
  tool_text_printf(&text, "unknown command '%s'", name);
  tool_near_text(&near, &text);
  int status = tool_usage(NULL, "%s", text.data);
  tool_text_fini(&text);
  return status;
}

static int help(int argc, char **argv)
{
  if (argc < 2) {
    print_help(stdout);
    return TOOL_OK;
  }
  if (argc > 2) return tool_usage(NULL, "'help' takes one command name");
  const tool_command *command = find_command(argv[1]);
  if (command == NULL) return unknown_command(argv[1]);
  fputs(command->help, stdout);
  return TOOL_OK;
}

/* True if --help occurs anywhere before "--": `tenon COMMAND ... --help` always shows the help. */
static bool wants_help(int argc, char **argv)
{
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
  return false;
}

static int load_op_library(const char *file)
{
  tn_error err = TN_ERROR_INIT;
  char *path;
  tn_status status = tool_plugin_path("--op-library", file, &path, &err);
  if (status == TN_OK) status = tn_load_op_library(path, NULL, &err);
  tool_hint(&err, "provides a runtime", "--runtime", file);
  free(path);
  return status == TN_OK ? TOOL_OK : tool_fail(&err);
}

/* Handles the options before the command; sets *n to the number of arguments consumed. */
static int run_options(int argc, char **argv, int *n)
{
  static const char name[] = "--op-library";
  const size_t size = sizeof(name) - 1;
  int status = TOOL_OK;
  for (*n = 0; status == TOOL_OK && *n < argc && strncmp(argv[*n], name, size) == 0; (*n)++) {
    const char *file = argv[*n][size] == '=' ? argv[*n] + size + 1 : NULL;
    if (file == NULL && argv[*n][size] != '\0') break;
    if (file == NULL && ++*n < argc) file = argv[*n];
    status = file != NULL ? load_op_library(file) : tool_usage(NULL, "option '%s' requires a file", name);
  }
  if (status == TOOL_OK && *n >= argc) status = tool_usage(NULL, "no command was given");
  return status;
}

static int run_command(int argc, char **argv)
{
  const char *name = argv[0];
  if (strcmp(name, "help") == 0) return help(argc, argv);
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return help(1, argv);
  if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
    print_version();
    return TOOL_OK;
  }
  const tool_command *command = find_command(name);
  if (command == NULL) return unknown_command(name);
  if (wants_help(argc, argv)) {
    fputs(command->help, stdout);
    return TOOL_OK;
  }
  return command->run(argc, argv);
}

/* A closed pipe and a file size limit are reported as write errors; they do not end the process. */
static void keep_signals(void)
{
  struct sigaction action, before;
  memset(&action, 0, sizeof(action));
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, NULL);
  if (sigaction(SIGPIPE, NULL, &before) == 0 && before.sa_handler != SIG_IGN) tool_pipe_was_default = true;
  sigaction(SIGPIPE, &action, NULL);
}

int main(int argc, char **argv)
{
  keep_signals();
  tool_ending_watch();
  if (argc < 2) {
    print_help(stderr);
    return tool_ending_done(TOOL_USAGE);
  }
  int n, status = run_options(argc - 1, argv + 1, &n);
  if (status == TOOL_OK) status = run_command(argc - 1 - n, argv + 1 + n);
  return tool_ending_done(tool_finish(status));
}
