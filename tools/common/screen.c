/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of standard output: columns, Unicode characters, colours; and bars of characters. */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <tools/tool.h>

enum { NARROW = 40, WIDE = 120 };

/* The command never calls setlocale, so query the environment's locale for its charset only. */
static bool charset_is_utf8(void)
{
  locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
  if (locale == (locale_t)0) return false;
  const char *name = nl_langinfo_l(CODESET, locale);
  bool utf8 = strcmp(name, "UTF-8") == 0 || strcmp(name, "utf8") == 0;
  freelocale(locale);
  return utf8;
}

tool_screen tool_screen_look(void)
{
  tool_screen out = { 80, false, false };
  struct winsize size;
  const char *terminal = getenv("TERM"), *plain = getenv("NO_COLOR");
  if (!isatty(STDOUT_FILENO)) return out;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) out.width = size.ws_col;
  if (out.width < NARROW) out.width = NARROW;
  if (out.width > WIDE) out.width = WIDE;
  bool dumb = terminal == NULL || terminal[0] == '\0' || strcmp(terminal, "dumb") == 0;
  out.blocks = charset_is_utf8();
  out.colour = !dumb && (plain == NULL || plain[0] == '\0');
  return out;
}

void tool_text_bar(tool_text *text, const tool_screen *screen, double share, size_t width, bool some, int colour)
{
  static const char *const eighths[] = { "", "\u258F", "\u258E", "\u258D", "\u258C", "\u258B", "\u258A", "\u2589" };
  size_t parts = (size_t)(share * (double)width * 8 + 0.5), columns = parts / 8, rest = parts % 8;
  if (!screen->blocks) {
    columns = (parts + 4) / 8;
    rest = 0;
  }
  if (some && columns == 0 && rest == 0) rest = 1;
  if (screen->colour) tool_text_printf(text, "\033[%dm", colour);
  for (size_t i = 0; i < columns; i++) tool_text_printf(text, "%s", screen->blocks ? "\u2588" : "#");
  if (rest > 0) tool_text_printf(text, "%s", screen->blocks ? eighths[rest] : ".");
  if (screen->colour) tool_text_printf(text, "\033[0m");
  for (size_t i = columns + (rest > 0 ? 1 : 0); i < width; i++) tool_text_add(text, " ", 1);
}
