/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Writes a spool whose frames are given addresses: of an ELF file as its own tables state them, or
 * of the kernel, or of code that no file holds. They are read from stdin, hexadecimal; so many of
 * them make one stack. The process is number 1000.
 * usage: symbols-gen ELF|kernel|jit DEPTH 3|4 OUT < ADDRESSES
 */
#include <stackpulse/stackpulse.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { SEGMENTS = 16, DEPTH_MAX = 4096, PID = 1000 };
static const uint64_t load_base = 0x7f0000000000, page = 4096;

struct segment {
	uint64_t vaddr, end, offset;
	uint32_t module;
};

struct generator {
	struct spulse_spool_writer *writer;
	struct segment segments[SEGMENTS];
	size_t segment_count;
	enum spulse_frame_mode mode; /* of frames without a file */
	struct spulse_frame frames[DEPTH_MAX];
	size_t depth, filled;
	uint64_t ns;
};

static ssize_t write_some(void *data, const void *bytes, size_t len)
{
	ssize_t n = write(*(int *)data, bytes, len);

	return n < 0 ? -errno : n;
}

static int add_module(struct generator *g, const char *path, const struct stat *st,
		      const Elf64_Phdr *ph, struct spulse_error **err)
{
	struct segment *segment = &g->segments[g->segment_count++];
	uint64_t skipped = ph->p_vaddr % page;
	struct spulse_module_fields module = {
		.size = sizeof(module), .pid = PID, .inode = st->st_ino, .path = path,
		.device_major = major(st->st_dev), .device_minor = minor(st->st_dev),
		.path_len = strlen(path)};

	*segment = (struct segment){ph->p_vaddr, ph->p_vaddr + ph->p_filesz, ph->p_offset, 0};
	module.start = load_base + ph->p_vaddr - skipped;
	module.end = (load_base + segment->end + page - 1) / page * page;
	module.file_offset = ph->p_offset - skipped;
	return spulse_spool_writer_module(g->writer, &module, &segment->module, err);
}

static int add_modules(struct generator *g, const char *path, struct spulse_error **err)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	int r = 0;

	if (!file || fstat(fileno(file), &st) < 0 || fread(&eh, sizeof(eh), 1, file) != 1 ||
	    fseek(file, (long)eh.e_phoff, SEEK_SET) < 0) {
		perror(path);
		return -1;
	}
	for (unsigned int i = 0; i < eh.e_phnum && !r; i++)
		if (fread(&ph, sizeof(ph), 1, file) == 1 && ph.p_type == PT_LOAD &&
		    (ph.p_flags & PF_X) && g->segment_count < SEGMENTS)
			r = add_module(g, path, &st, &ph, err);
	fclose(file);
	return r;
}

static bool frame_of(const struct generator *g, uint64_t address, struct spulse_frame *frame)
{
	if (!g->segment_count) {
		*frame = (struct spulse_frame){.abs_ip = address, .file_relative_ip = address,
					       .module_id = SPULSE_NO_MODULE,
					       .mode = g->mode};
		return true;
	}
	for (size_t i = 0; i < g->segment_count; i++)
		if (address >= g->segments[i].vaddr && address < g->segments[i].end) {
			*frame = (struct spulse_frame){
				.abs_ip = load_base + address,
				.file_relative_ip =
					address - g->segments[i].vaddr + g->segments[i].offset,
				.module_id = g->segments[i].module,
				.mode = SPULSE_FRAME_USER};
			return true;
		}
	return false;
}

static int flush(struct generator *g, struct spulse_error **err)
{
	struct spulse_sample sample = {g->ns += 1000000, PID, PID};
	size_t count = g->filled;

	g->filled = 0;
	return count ? spulse_spool_writer_sample(g->writer, &sample, g->frames, count, err) : 0;
}

static int generate(struct generator *g, const char *what, struct spulse_error **err)
{
	uint64_t address;
	bool kernel = !strcmp(what, "kernel"), jit = !strcmp(what, "jit");
	int r = kernel || jit ? 0 : add_modules(g, what, err);

	g->mode = kernel ? SPULSE_FRAME_KERNEL : SPULSE_FRAME_USER;
	while (!r && scanf("%" SCNx64, &address) == 1) {
		if (frame_of(g, address, &g->frames[g->filled]))
			g->filled++;
		if (g->filled == g->depth)
			r = flush(g, err);
	}
	if (!r)
		r = flush(g, err);
	return r ? r : spulse_spool_writer_finish(g->writer, err);
}

int main(int argc, char **argv)
{
	SPULSE_CLEANUP(error) err = NULL;
	const struct spulse_output output = {.size = sizeof(output), .write = write_some};
	struct spulse_spool_header header = {.size = sizeof(header), .interval = 1000000};
	static struct generator g;
	int fd, r;

	g.depth = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
	if (!g.depth || g.depth > DEPTH_MAX) {
		fprintf(stderr, "usage: symbols-gen ELF|kernel|jit DEPTH 3|4 OUT < ADDRESSES\n");
		return 2;
	}
	header.format = strtoul(argv[3], NULL, 10);
	fd = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0) {
		perror(argv[4]);
		return 1;
	}
	r = spulse_spool_writer_new(&output, &fd, &header, &g.writer, &err);
	if (!r)
		r = generate(&g, argv[1], &err);
	if (err)
		fprintf(stderr, "symbols-gen: %s\n", spulse_error_message(err));
	spulse_spool_writer_free(g.writer);
	return close(fd) < 0 || r < 0;
}
