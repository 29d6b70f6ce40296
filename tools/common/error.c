/* SPDX-License-Identifier: Apache-2.0 */
/* Errors on standard error, and the final flush of standard output. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <tools/tool.h>

/* Messages may contain text from a file, so replace control characters before they reach the terminal. */
static void print_plain(const char *text, FILE *out)
{
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if ((c < 0x20 && c != '\n') || c == 0x7F)
      fprintf(out, "\\x%02x", c);
    else
      fputc(c, out);
  }
}

int tool_fail(tn_error *err)
{
  size_t length = tn_error_format(err, NULL, 0);
  char *text = tool_alloc(length + 1, 1);
  tn_error_format(err, text, length + 1);
  fflush(stdout);
  fputs("tenon: ", stderr);
  print_plain(text, stderr);
  if (length == 0 || text[length - 1] != '\n') fputc('\n', stderr);
  free(text);
  tn_error_clear(err);
  return TOOL_FAILED;
}

int tool_usage(const char *command, const char *format, ...)
{
  va_list args;
  fflush(stdout);
  fputs("tenon: INVALID_ARGUMENT: ", stderr);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "\nSee 'tenon %s%s--help'.\n", command != NULL ? command : "", command != NULL ? " " : "");
  return TOOL_USAGE;
}

static const char *help_of(const char *command)
{
  for (size_t i = 0; i < n_tool_commands; i++)
    if (strcmp(tool_commands[i]->name, command) == 0) return tool_commands[i]->help;
  return "";
}

/* The long options of a command are those in its help text. */
static int unknown_option(const char *command, const char *wrong)
{
  const char *help = help_of(command);
  size_t n = 0;
  char *names = tool_alloc(strlen(help) + 1, 1);
  tool_near near;
  tool_text hint = { 0 };
  char *bare = tool_alloc(strlen(wrong) + 1, 1);
  memcpy(bare, wrong, strcspn(wrong, "="));
  tool_near_init(&near, bare);
  for (const char *at = help; (at = strstr(at, "--")) != NULL; at += 2) {
    size_t length = strspn(at, "-abcdefghijklmnopqrstuvwxyz");
    if (length < 3) continue;
    memcpy(names + n, at, length);
    bool before = false;
    for (size_t i = 0; i < n; i += strlen(names + i) + 1) before = before || strcmp(names + i, names + n) == 0;
    if (!before) tool_near_offer(&near, names + n);
    if (before) memset(names + n, 0, length);
    else n += length + 1;
    at += length - 2;
  }
  tool_near_text(&near, &hint);
  int status = tool_usage(command, "unknown option '%s'%s", wrong, hint.data != NULL ? hint.data : "");
  tool_text_fini(&hint);
  free(bare);
  free(names);
  return status;
}

int tool_bad_option(const char *command, int c, char **argv)
{
  const char *last = argv[optind - 1];
  if (c == ':') return tool_usage(command, "option '%s' requires a value", last);
  if (optopt != 0 && strncmp(last, "--", 2) != 0) return tool_usage(command, "unknown option '-%c'", optopt);
  if (optopt != 0) return tool_usage(command, "option '%s' does not take a value", last);
  return unknown_option(command, last);
}

bool tool_pipe_was_default;

/* errno of an earlier failed write is lost; writing one more byte to the failed stream fails the same way. */
static int why_output_failed(void)
{
  clearerr(stdout);
  errno = 0;
  return fputc('\n', stdout) != EOF && fflush(stdout) == 0 ? EIO : errno;
}

int tool_finish(int status)
{
  int code = 0;
  errno = 0;
  if (fflush(stdout) != 0) code = errno;
  if (code == 0 && ferror(stdout)) code = why_output_failed();
  if (code == 0) return status;
  if (code == EPIPE && tool_pipe_was_default) {
    /* The reader has closed the pipe: end as an uncaught SIGPIPE does. */
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
  fprintf(stderr, "tenon: %s: standard output: %s\n",
          tn_status_name(code == ENOSPC ? TN_RESOURCE_EXHAUSTED : TN_UNAVAILABLE), strerror(code));
  return TOOL_FAILED;
}
