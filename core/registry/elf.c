/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the manifest's section from an ELF shared object without mapping it or running its code (P-16, P-17).
 *
 * The dynamic linker trusts the program headers: it maps and accesses the ranges they give, so a truncated file ends
 * the process with SIGBUS. Therefore every range in a header must be inside the file before the file is opened as a
 * library. All numbers come from the file and may be wrong: each is compared with the size of the file, without
 * overflow, before it is used. */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <core/registry/registry_internal.h>

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Phdr) elf_segment;
typedef ElfW(Shdr) elf_section;

#define NAME_BYTES sizeof(TN_MANIFEST_SECTION) /* with its NUL */
#define CHUNK 32                               /* headers read at once */

/* The ELF machine number of this process; 0: unknown, so it is not checked. */
#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__i386__)
#define OWN_MACHINE EM_386
#elif defined(__arm__)
#define OWN_MACHINE EM_ARM
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define OWN_MACHINE EM_PPC64
#else
#define OWN_MACHINE 0
#endif
#define OWN_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

static const char *machine_name(unsigned machine)
{
  static const struct {
    unsigned machine;
    const char *name;
  } names[] = {
    { EM_386, "x86" },         { EM_X86_64, "x86-64" }, { EM_ARM, "Arm" },
    { EM_AARCH64, "AArch64" }, { EM_RISCV, "RISC-V" },  { EM_PPC64, "POWER" },
    { EM_S390, "IBM Z" },      { EM_MIPS, "MIPS" },     { EM_SPARCV9, "SPARC" },
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (names[i].machine == machine) return names[i].name;
  return "another machine";
}

/* Whether the range is within the first `size` bytes; cannot overflow. */
static bool inside(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }

/* The caller has checked that the range is inside the file. If the file shrinks meanwhile, that is an error, too. */
static tn_status read_file(const tn__object *object, uint64_t offset, void *to, size_t bytes, tn_error *err)
{
  for (size_t done = 0; done < bytes;) {
    ssize_t n = pread(object->fd, (char *)to + done, bytes - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "byte %llu cannot be read: errno %d",
                          (unsigned long long)(offset + done), errno);
    if (n == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "the file became shorter while it was read: it ends at byte %llu",
                          (unsigned long long)(offset + done));
    done += (size_t)n;
  }
  return TN_OK;
}

/* Reads through the page in `object`, so that the many small headers of a file cost a few system calls. The caller has
 * checked that the range is inside the file. */
static tn_status read_at(tn__object *object, uint64_t offset, void *to, size_t bytes, tn_error *err)
{
  if (object->fd < 0) {
    memcpy(to, object->bytes + offset, bytes);
    return TN_OK;
  }
  if (bytes > TN_OBJECT_PAGE / 2) return read_file(object, offset, to, bytes, err);
  if (offset < object->page_at || offset - object->page_at > object->page_size ||
      bytes > object->page_size - (offset - object->page_at)) {
    /* The section tables are at the end of a file, and the bytes before them are needed, too. */
    uint64_t at = offset;
    if (object->size - at < TN_OBJECT_PAGE) at = object->size > TN_OBJECT_PAGE ? object->size - TN_OBJECT_PAGE : 0;
    uint64_t left = object->size - at;
    size_t size = left < TN_OBJECT_PAGE ? (size_t)left : TN_OBJECT_PAGE;
    object->page_size = 0;
    tn_status status = read_file(object, at, object->page, size, err);
    if (status != TN_OK) return status;
    object->page_at = at;
    object->page_size = size;
  }
  memcpy(to, object->page + (offset - object->page_at), bytes);
  return TN_OK;
}

/* Reports that the range of the i-th `what` ends after the file. */
static tn_status beyond(const tn__object *object, const char *what, size_t i, uint64_t offset, uint64_t bytes,
                        tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "cut short or damaged: %s %zu is at byte %llu with %llu bytes, but the file has %llu", what, i,
                      (unsigned long long)offset, (unsigned long long)bytes, (unsigned long long)object->size);
}

static const char *class_bits(unsigned char class)
{
  if (class == ELFCLASS32) return "32";
  return class == ELFCLASS64 ? "64" : "?-";
}

/* Checks the ELF header: whether this is a shared object for this process. A file that is too short for a header still
 * gets the most specific message that its bytes allow. */
static tn_status check_header(tn__object *object, elf_header *header, tn_error *err)
{
  unsigned char ident[EI_NIDENT] = { 0 };
  size_t have = object->size < sizeof(ident) ? (size_t)object->size : sizeof(ident);
  tn_status status = read_at(object, 0, ident, have, err);
  if (status != TN_OK) return status;
  if (have < SELFMAG || memcmp(ident, ELFMAG, SELFMAG) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "not a shared object: %s",
                        have == 0 ? "the file is empty" : "byte 0 does not begin an ELF header");
  if (have == sizeof(ident) && ident[EI_CLASS] != OWN_CLASS)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "byte 4: a %s-bit object (class %d), this process needs %d bits",
                        class_bits(ident[EI_CLASS]), ident[EI_CLASS], (int)sizeof(void *) * 8);
  if (have == sizeof(ident) && ident[EI_DATA] != ELFDATA2LSB)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "byte 5: byte order %d, this process is little-endian (%d)",
                        ident[EI_DATA], ELFDATA2LSB);
  if (object->size < sizeof(*header))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "cut short: the file has %llu bytes, an ELF header has %zu",
                        (unsigned long long)object->size, sizeof(*header));
  status = read_at(object, 0, header, sizeof(*header), err);
  if (status != TN_OK) return status;
  if (OWN_MACHINE != 0 && header->e_machine != OWN_MACHINE)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "byte 18: made for %s (machine %u), this process runs on %s (%u)",
                        machine_name(header->e_machine), header->e_machine, machine_name(OWN_MACHINE), OWN_MACHINE);
  if (header->e_type != ET_DYN)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "byte 16: ELF type %u, wanted %u (a shared object)", header->e_type,
                        ET_DYN);
  if (ident[EI_VERSION] != EV_CURRENT || header->e_version != EV_CURRENT)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "byte 20: ELF version %u, wanted %u", (unsigned)header->e_version,
                        EV_CURRENT);
  return TN_OK;
}

/* Checks the program headers, which tell the dynamic linker what to map. */
static tn_status check_segments(tn__object *object, const elf_header *header, tn_error *err)
{
  if (header->e_phentsize != sizeof(elf_segment) || header->e_phnum == 0 || header->e_phnum == PN_XNUM)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "damaged: %u program headers of %u bytes, wanted at least one of %zu bytes", header->e_phnum,
                        header->e_phentsize, sizeof(elf_segment));
  uint64_t table = (uint64_t)header->e_phnum * sizeof(elf_segment);
  if (!inside(header->e_phoff, table, object->size))
    return beyond(object, "table of program headers", 0, header->e_phoff, table, err);
  bool load = false, dynamic = false;
  for (size_t i = 0; i < header->e_phnum; i++) {
    elf_segment p;
    tn_status status = read_at(object, header->e_phoff + i * sizeof(p), &p, sizeof(p), err);
    if (status != TN_OK) return status;
    if (!inside(p.p_offset, p.p_filesz, object->size)) return beyond(object, "segment", i, p.p_offset, p.p_filesz, err);
    if (p.p_type == PT_LOAD && p.p_filesz > p.p_memsz)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "damaged: segment %zu has %llu bytes in the file but %llu in memory", i,
                          (unsigned long long)p.p_filesz, (unsigned long long)p.p_memsz);
    load = load || p.p_type == PT_LOAD;
    dynamic = dynamic || (p.p_type == PT_DYNAMIC && p.p_filesz > 0);
  }
  if (!load || !dynamic)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "not a shared object: it has no %s segment",
                        load ? "dynamic" : "loadable");
  return TN_OK;
}

typedef struct section_table {
  uint64_t offset;
  uint64_t count;
  elf_section names;
} section_table;

static tn_status not_ours(tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "not a runtime plugin (no %s)", TN_MANIFEST_SECTION);
}

/* Finds the section headers. Numbers too large for the ELF header are in the first section header. */
static tn_status find_sections(tn__object *object, const elf_header *header, section_table *out, tn_error *err)
{
  if (header->e_shoff == 0) return not_ours(err);
  if (header->e_shentsize != sizeof(elf_section))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "damaged: section headers of %u bytes, wanted %zu",
                        header->e_shentsize, sizeof(elf_section));
  elf_section first;
  if (!inside(header->e_shoff, sizeof(first), object->size))
    return beyond(object, "table of section headers", 0, header->e_shoff, sizeof(first), err);
  tn_status status = read_at(object, header->e_shoff, &first, sizeof(first), err);
  if (status != TN_OK) return status;
  out->offset = header->e_shoff;
  out->count = header->e_shnum != 0 ? header->e_shnum : first.sh_size;
  uint64_t names = header->e_shstrndx != SHN_XINDEX ? header->e_shstrndx : first.sh_link;
  if (out->count > (object->size - header->e_shoff) / sizeof(elf_section))
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "cut short or damaged: %llu section headers at byte %llu, but the file has %llu bytes",
                        (unsigned long long)out->count, (unsigned long long)header->e_shoff,
                        (unsigned long long)object->size);
  if (names >= out->count) return not_ours(err);
  status = read_at(object, out->offset + names * sizeof(out->names), &out->names, sizeof(out->names), err);
  if (status != TN_OK) return status;
  if (out->names.sh_type == SHT_NOBITS || !inside(out->names.sh_offset, out->names.sh_size, object->size))
    return beyond(object, "section", (size_t)names, out->names.sh_offset, out->names.sh_size, err);
  return TN_OK;
}

/* Compares the section's name, NUL included, with TN_MANIFEST_SECTION. */
static tn_status is_manifest(tn__object *object, const section_table *table, const elf_section *section, bool *is,
                             tn_error *err)
{
  *is = false;
  if (section->sh_name >= table->names.sh_size || table->names.sh_size - section->sh_name < NAME_BYTES) return TN_OK;
  char name[NAME_BYTES];
  tn_status status = read_at(object, table->names.sh_offset + section->sh_name, name, sizeof(name), err);
  if (status == TN_OK) *is = memcmp(name, TN_MANIFEST_SECTION, NAME_BYTES) == 0;
  return status;
}

/* Checks every section and finds the manifest's. Sections without bytes in the file have nothing to check. */
static tn_status walk_sections(tn__object *object, const section_table *table, elf_section *manifest, tn_error *err)
{
  bool found = false;
  elf_section chunk[CHUNK];
  for (uint64_t i = 0; i < table->count; i += CHUNK) {
    size_t n = table->count - i < CHUNK ? (size_t)(table->count - i) : CHUNK;
    tn_status status = read_at(object, table->offset + i * sizeof(chunk[0]), chunk, n * sizeof(chunk[0]), err);
    if (status != TN_OK) return status;
    for (size_t k = 0; k < n; k++) {
      const elf_section *s = &chunk[k];
      if (s->sh_type == SHT_NULL || s->sh_type == SHT_NOBITS) continue;
      if (!inside(s->sh_offset, s->sh_size, object->size))
        return beyond(object, "section", (size_t)i + k, s->sh_offset, s->sh_size, err);
      bool is = false;
      status = is_manifest(object, table, s, &is, err);
      if (status != TN_OK) return status;
      if (is && found) return tn_error_set(err, TN_INVALID_ARGUMENT, "two sections are named %s", TN_MANIFEST_SECTION);
      if (is) *manifest = *s;
      found = found || is;
    }
  }
  return found ? TN_OK : not_ours(err);
}

tn_status tn__elf_read_manifest(tn__object *object, tn__arena *arena, const char **section, size_t *size, tn_error *err)
{
  elf_header header;
  section_table table;
  elf_section manifest = { 0 };
  *section = NULL;
  *size = 0;
  tn_status status = check_header(object, &header, err);
  if (status == TN_OK) status = check_segments(object, &header, err);
  if (status == TN_OK) status = find_sections(object, &header, &table, err);
  if (status == TN_OK) status = walk_sections(object, &table, &manifest, err);
  if (status != TN_OK) return status;
  if (manifest.sh_size == 0 || manifest.sh_size > TN_MANIFEST_MAX_BYTES)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the section %s at byte %llu has %llu bytes, wanted 1 to %d",
                        TN_MANIFEST_SECTION, (unsigned long long)manifest.sh_offset,
                        (unsigned long long)manifest.sh_size, TN_MANIFEST_MAX_BYTES);
  size_t bytes = (size_t)manifest.sh_size;
  char *copy = tn__arena_alloc(arena, bytes);
  if (copy == NULL) return tn__no_memory(err, "a plugin's manifest", bytes);
  status = read_at(object, manifest.sh_offset, copy, bytes, err);
  if (status != TN_OK) return status;
  *section = copy;
  *size = bytes;
  return TN_OK;
}
