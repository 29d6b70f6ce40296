/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing a format from the table. */
#include <core/formats/format.h>

#include <string.h>

/* Whether the path has one of the format's endings, after at least one other character. */
static bool ends_in(const char *path, const tn__format *f)
{
  size_t n = strlen(path);
  for (size_t i = 0; i < sizeof f->endings / sizeof *f->endings && f->endings[i] != NULL; i++) {
    size_t m = strlen(f->endings[i]);
    if (n > m && memcmp(path + n - m, f->endings[i], m) == 0) return true;
  }
  return false;
}

/* An ending counts only for formats with a probe: the last resort needs no reason. */
const tn__format *tn__format_to_read(tn__slice bytes, const char *path, uint32_t flags)
{
  const tn__format *const *f, *other = NULL;
  for (f = tn__formats; *f != NULL; f++)
    if (((*f)->import_flag & flags) != 0) return *f;
  for (f = tn__formats; path != NULL && *f != NULL; f++)
    if ((*f)->probe != NULL && ends_in(path, *f)) return *f;
  for (f = tn__formats; *f != NULL; f++) {
    if ((*f)->probe == NULL) other = *f;
    else if ((*f)->probe(bytes)) return *f;
  }
  return other;
}

const tn__format *tn__format_to_write(const char *path, uint32_t flags)
{
  const tn__format *const *f, *other = NULL;
  for (f = tn__formats; *f != NULL; f++)
    if (((*f)->export_flag & flags) != 0) return *f;
  for (f = tn__formats; *f != NULL; f++) {
    if (path != NULL && ends_in(path, *f)) return *f;
    if ((*f)->probe == NULL) other = *f;
  }
  return other;
}

const char *tn__format_endings(char *buffer, size_t size)
{
  size_t used = 0;
  buffer[0] = 0;
  for (const tn__format *const *f = tn__formats; *f != NULL; f++)
    for (size_t i = 0; i < sizeof (*f)->endings / sizeof *(*f)->endings && (*f)->endings[i] != NULL && used < size; i++)
      used += (size_t)tn__snprintf(buffer + used, size - used, "%s%s", used > 0 ? ", " : "", (*f)->endings[i]);
  return buffer;
}
