/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file under test without running it: manifest, exported symbols, needed libraries. Checks every offset. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <conformance/plugin/plugin.h>

#ifdef __ELF__
#include <elf.h>
#include <link.h>

typedef ElfW(Ehdr) ehdr;
typedef ElfW(Shdr) shdr;
typedef ElfW(Sym) sym;
typedef ElfW(Dyn) dyn;

static pg_file the_file;

__attribute__((format(printf, 1, 2))) static bool wrong(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(the_file.fault, sizeof(the_file.fault), format, args);
  va_end(args);
  return false;
}

static const void *at(uint64_t offset, uint64_t size)
{
  if (offset > the_file.size || size > the_file.size - offset) return NULL;
  return the_file.bytes + offset;
}

static bool map_file(const char *path)
{
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) != 0) {
    if (fd >= 0) close(fd);
    return wrong("it cannot be read: %s", strerror(errno));
  }
  void *bytes = st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (bytes == MAP_FAILED) return wrong("it is empty");
  the_file.bytes = bytes;
  the_file.size = (size_t)st.st_size;
  return true;
}

/* The ELF header of this program, which a plugin must match. */
static bool own_header(ehdr *out)
{
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  bool good = fd >= 0 && read(fd, out, sizeof(*out)) == (ssize_t)sizeof(*out);
  if (fd >= 0) close(fd);
  return good;
}

static const ehdr *check_header(void)
{
  const ehdr *h = at(0, sizeof(*h));
  ehdr own;
  if (h == NULL || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) {
    wrong("it is not a shared object: it has no ELF header");
    return NULL;
  }
  if (own_header(&own) && (memcmp(h->e_ident, own.e_ident, EI_VERSION) != 0 || h->e_machine != own.e_machine)) {
    wrong("it is built for a different machine: class %d, machine %d; wanted %d, %d", h->e_ident[EI_CLASS],
          (int)h->e_machine, own.e_ident[EI_CLASS], (int)own.e_machine);
    return NULL;
  }
  if (h->e_type != ET_DYN) {
    wrong("it is not a shared object: its ELF type is %d", (int)h->e_type);
    return NULL;
  }
  return h;
}

/* A string of a string table; NULL if it is not terminated within the table. */
static const char *text_of(const shdr *strings, uint64_t offset)
{
  const char *bytes = at(strings->sh_offset, strings->sh_size);
  if (bytes == NULL || offset >= strings->sh_size) return NULL;
  return memchr(bytes + offset, 0, strings->sh_size - offset) != NULL ? bytes + offset : NULL;
}

/* Symbols that the linker always exports on some systems. */
static bool of_the_linker(const char *name)
{
  static const char *const all[] = { "_init", "_fini", "__bss_start",   "_edata",      "_end",       "_etext", "edata",
                                     "end",   "etext", "__bss_start__", "__bss_end__", "_bss_end__", "__end__" };
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    if (strcmp(name, all[i]) == 0) return true;
  return false;
}

static bool read_symbols(const shdr *s, const shdr *strings)
{
  const sym *symbols = at(s->sh_offset, s->sh_size);
  size_t n = s->sh_size / sizeof(*symbols);
  if (symbols == NULL) return wrong("it is cut short: its symbols are beyond its end");
  the_file.exported = cf_alloc(n + 1, sizeof(char *));
  for (size_t i = 0; i < n; i++) {
    const char *name = text_of(strings, symbols[i].st_name);
    int bind = symbols[i].st_info >> 4, visibility = symbols[i].st_other & 3;
    if (bind == STB_LOCAL || symbols[i].st_shndx == SHN_UNDEF || visibility == STV_HIDDEN || visibility == STV_INTERNAL)
      continue;
    if (name != NULL && !of_the_linker(name)) the_file.exported[the_file.n_exported++] = name;
  }
  return true;
}

static bool read_needed(const shdr *s, const shdr *strings)
{
  const dyn *entries = at(s->sh_offset, s->sh_size);
  size_t n = s->sh_size / sizeof(*entries);
  if (entries == NULL) return wrong("it is cut short: its dynamic section is beyond its end");
  the_file.needed = cf_alloc(n + 1, sizeof(char *));
  for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL; i++) {
    const char *name = entries[i].d_tag == DT_NEEDED ? text_of(strings, entries[i].d_un.d_val) : NULL;
    if (name != NULL) the_file.needed[the_file.n_needed++] = name;
  }
  return true;
}

static bool read_sections(const ehdr *h)
{
  const shdr *sections = at(h->e_shoff, (uint64_t)h->e_shnum * sizeof(*sections));
  if (h->e_shoff == 0 || h->e_shentsize != sizeof(*sections) || sections == NULL || h->e_shstrndx >= h->e_shnum)
    return wrong("it is cut short, or it has no sections");
  for (size_t i = 0; i < h->e_shnum; i++) {
    const shdr *s = &sections[i];
    const char *name = text_of(&sections[h->e_shstrndx], s->sh_name);
    if (name != NULL && strcmp(name, ".tenon.manifest") == 0 && the_file.manifest == NULL) {
      the_file.manifest = at(s->sh_offset, s->sh_size);
      the_file.manifest_size = s->sh_size;
      if (the_file.manifest == NULL) return wrong("it is cut short: its manifest is beyond its end");
    }
    if (s->sh_link >= h->e_shnum) continue;
    if (s->sh_type == SHT_DYNSYM && !read_symbols(s, &sections[s->sh_link])) return false;
    if (s->sh_type == SHT_DYNAMIC && !read_needed(s, &sections[s->sh_link])) return false;
  }
  return true;
}

static void cut_manifest(void)
{
  for (size_t i = 0; i < the_file.manifest_size;) {
    const char *text = the_file.manifest + i, *end = memchr(text, 0, the_file.manifest_size - i);
    if (end == NULL || the_file.n_keys == PG_MOST_KEYS) return;
    if (end > text) the_file.keys[the_file.n_keys++] = text;
    i += (size_t)(end - text) + 1;
  }
}

static void read_file(const char *path)
{
  if (!map_file(path)) return;
  const ehdr *h = check_header();
  if (h != NULL && read_sections(h) && the_file.manifest != NULL) cut_manifest();
}

const pg_file *pg_the_file(void)
{
  if (the_file.bytes == NULL && the_file.fault[0] == '\0') read_file(cf_under_test->plugin);
  return &the_file;
}
#else
const pg_file *pg_the_file(void)
{
  static pg_file unknown = { .fault = "this system's shared object format is not supported" };
  return &unknown;
}
#endif

const char *pg_value(const pg_file *file, const char *key)
{
  size_t n = strlen(key);
  for (size_t i = 0; i < file->n_keys; i++)
    if (strncmp(file->keys[i], key, n) == 0 && file->keys[i][n] == '=') return file->keys[i] + n + 1;
  return NULL;
}
