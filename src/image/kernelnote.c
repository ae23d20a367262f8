/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Which build of the kernel runs: it shows the notes of its image. */
#include <elf.h>

#include "image.h"

enum { NOTES_MAX = 65536 };

static bool note_build_id(const char *bytes, size_t len, struct strbuf *hex)
{
	for (size_t at = 0; len - at >= sizeof(Elf64_Nhdr);) {
		const uint8_t *note = (const uint8_t *)bytes + at;
		uint32_t name = load_u32(note), size = load_u32(note + 4);
		uint32_t type = load_u32(note + 8);
		uint64_t start = sizeof(Elf64_Nhdr) + ((uint64_t)name + 3) / 4 * 4;
		uint64_t end = start + ((uint64_t)size + 3) / 4 * 4;

		if (start > len - at || size > len - at - start)
			return false;
		if (type == NT_GNU_BUILD_ID && name == 4 && !memcmp(note + 12, "GNU", 4)) {
			for (uint32_t i = 0; i < size; i++)
				strbuf_printf(hex, "%02x", note[start + i]);
			return size > 0 && !hex->failed;
		}
		at += MIN(end, len - at);
	}
	return false;
}

bool image_running_kernel_id(struct strbuf *hex)
{
	struct strbuf notes = {0};
	bool found = read_file("/sys/kernel/notes", NOTES_MAX, &notes) >= 0 &&
		     note_build_id(notes.data ? notes.data : "", notes.len, hex);

	strbuf_release(&notes);
	return found;
}
