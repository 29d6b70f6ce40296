/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin file's tables and its manifest. The first byte chooses whether the bytes are a manifest, an ELF object,
 * or changes (two bytes of offset, one of value) to a valid object. The result must be OK or a status with a
 * message. */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <core/registry/registry_internal.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char good_manifest[] =
    "format=1\0kind=runtime\0name=acme.fast\0types=CPU\0rank=7\0version=1\0vendor=Acme\0flags=\0kernels=\0abi=0.1\0"
    "min_host=0.1\0entry=fast_LTX_tn_plugin_query";
static const char good_names[] = "\0" TN_MANIFEST_SECTION "\0.shstrtab";

typedef struct good_object {
  ElfW(Ehdr) header;
  ElfW(Phdr) segments[2];
  char manifest[sizeof(good_manifest)];
  char names[sizeof(good_names)];
  ElfW(Shdr) sections[3];
} good_object;

static void make_object(good_object *o)
{
  memset(o, 0, sizeof(*o));
  memcpy(o->header.e_ident, ELFMAG, SELFMAG);
  o->header.e_ident[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
  o->header.e_ident[EI_DATA] = ELFDATA2LSB;
  o->header.e_ident[EI_VERSION] = EV_CURRENT;
  o->header.e_type = ET_DYN;
#if defined(__x86_64__)
  o->header.e_machine = EM_X86_64;
#elif defined(__aarch64__)
  o->header.e_machine = EM_AARCH64;
#endif
  o->header.e_version = EV_CURRENT;
  o->header.e_phoff = offsetof(good_object, segments);
  o->header.e_phentsize = sizeof(o->segments[0]);
  o->header.e_phnum = 2;
  o->header.e_shoff = offsetof(good_object, sections);
  o->header.e_shentsize = sizeof(o->sections[0]);
  o->header.e_shnum = 3;
  o->header.e_shstrndx = 2;
  o->segments[0].p_type = PT_LOAD;
  o->segments[0].p_filesz = o->segments[0].p_memsz = sizeof(*o);
  o->segments[1].p_type = PT_DYNAMIC;
  o->segments[1].p_filesz = 16;
  memcpy(o->manifest, good_manifest, sizeof(good_manifest));
  memcpy(o->names, good_names, sizeof(good_names));
  o->sections[1].sh_type = o->sections[2].sh_type = SHT_PROGBITS;
  o->sections[1].sh_name = 1;
  o->sections[1].sh_offset = offsetof(good_object, manifest);
  o->sections[1].sh_size = sizeof(good_manifest);
  o->sections[2].sh_offset = offsetof(good_object, names);
  o->sections[2].sh_size = sizeof(good_names);
}

/* A failed status has a message; OK has none. */
static void check(tn_status status, const tn_error *err)
{
  if ((status == TN_OK) != (tn_error_code(err) == TN_OK)) abort();
  if (status != TN_OK && tn_error_message(err)[0] == 0) abort();
}

static void parse(const char *bytes, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn__manifest m;
  tn__arena arena;
  tn__arena_init(&arena, 0);
  tn_status status = tn__manifest_parse(bytes, size, &arena, &m, &err);
  check(status, &err);
  if (status == TN_OK && (!tn__runtime_name_ok(m.name, strlen(m.name)) || m.rank < 0 || m.rank > 1000)) abort();
  tn_error_clear(&err);
  tn__arena_fini(&arena);
}

static void read_object(const uint8_t *bytes, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn__arena arena;
  tn__object object = { .fd = -1, .bytes = bytes, .size = size };
  const char *section = NULL;
  size_t n = 0;
  tn__arena_init(&arena, 0);
  tn_status status = tn__elf_read_manifest(&object, &arena, &section, &n, &err);
  check(status, &err);
  if (status == TN_OK) parse(section, n);
  tn_error_clear(&err);
  tn__arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size == 0) return 0;
  uint8_t *copy = malloc(size); /* of the exact size, so that a read beyond it is detected */
  if (copy == NULL) return 0;
  memcpy(copy, data + 1, size - 1);
  if (data[0] % 3 == 0) {
    parse((const char *)copy, size - 1);
  } else if (data[0] % 3 == 1) {
    read_object(copy, size - 1);
  } else {
    good_object o;
    make_object(&o);
    for (size_t i = 0; i + 3 <= size - 1; i += 3)
      ((uint8_t *)&o)[(copy[i] | copy[i + 1] << 8) % sizeof(o)] = copy[i + 2];
    read_object((const uint8_t *)&o, sizeof(o));
  }
  free(copy);
  return 0;
}
