/* SPDX-License-Identifier: Apache-2.0 */
/* The build-id of a shared object: the note "GNU" of type NT_GNU_BUILD_ID. A malformed file has none. */
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/registry/probe/probe.h>

#define MAX_NOTES 16384
#define MAX_SEGMENTS 128

/* Searches the bytes of a note segment. Returns the id's size and sets *id to its bytes; 0: there is none. Sizes of a
 * note's name and id are rounded up to 4 bytes in the file. */
static size_t find_build_id(const unsigned char *notes, size_t size, const unsigned char **id)
{
  ElfW(Nhdr) note;
  for (size_t at = 0; size - at >= sizeof(note);) {
    memcpy(&note, notes + at, sizeof(note));
    at += sizeof(note);
    if (note.n_namesz > MAX_NOTES || note.n_descsz > MAX_NOTES) return 0;
    size_t name = tn__round_up(note.n_namesz, 4), bytes = tn__round_up(note.n_descsz, 4);
    if (name > size - at || bytes > size - at - name) return 0;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + at, "GNU", 4) == 0) {
      *id = notes + at + name;
      return note.n_descsz;
    }
    at += name + bytes;
  }
  return 0;
}

/* The file's headers are untrusted: sizes are limited, and short reads end the search. */
void tn__elf_build_id(int fd, char *out, size_t room)
{
  ElfW(Ehdr) header;
  unsigned char notes[MAX_NOTES];
  tn__snprintf(out, room, "-");
  if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr)) ||
      header.e_phnum > MAX_SEGMENTS)
    return;
  for (unsigned i = 0; i < header.e_phnum; i++) {
    ElfW(Phdr) p;
    const unsigned char *id = NULL;
    if (pread(fd, &p, sizeof(p), (off_t)(header.e_phoff + i * sizeof(p))) != (ssize_t)sizeof(p)) return;
    if (p.p_type != PT_NOTE || p.p_filesz > sizeof(notes)) continue;
    if (pread(fd, notes, p.p_filesz, (off_t)p.p_offset) != (ssize_t)p.p_filesz) continue;
    size_t n = find_build_id(notes, p.p_filesz, &id);
    if (n == 0 || 2 * n >= room) continue;
    for (size_t k = 0; k < n; k++) tn__snprintf(out + 2 * k, 3, "%02x", id[k]);
    return;
  }
}
