/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "procfs.h"

/* Above any CPU number that the kernel can be built for; a bound on what a bad list may ask. */
enum { CPU_MAX = 65536 };

static bool parse_cpu(const char **at, uint32_t *cpu)
{
	uint32_t v = 0;

	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); (*at)++) {
		v = v * 10 + (**at - '0');
		if (v >= CPU_MAX)
			return false;
	}
	*cpu = v;
	return true;
}

static int compare_cpus(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void sort_unique(struct proc_cpus *cpus)
{
	size_t kept = 0;

	if (cpus->cpus.len)
		qsort(cpus->cpus.data, cpus->cpus.len, sizeof(uint32_t), compare_cpus);
	for (size_t i = 0; i < cpus->cpus.len; i++)
		if (kept == 0 || cpus->cpus.data[kept - 1] != cpus->cpus.data[i])
			cpus->cpus.data[kept++] = cpus->cpus.data[i];
	cpus->cpus.len = kept;
}

bool proc_parse_cpu_list(const char *text, struct proc_cpus *cpus)
{
	uint32_t first, last;

	cpus->cpus.len = 0;
	for (;;) {
		if (!parse_cpu(&text, &first))
			return false;
		last = first;
		if (*text == '-' && (text++, !parse_cpu(&text, &last) || last < first))
			return false;
		/* A hostile list may repeat ranges: never keep more than there can be CPUs. */
		for (uint32_t cpu = first; cpu <= last; cpu++)
			if (cpus->cpus.len >= CPU_MAX || !vec_push(&cpus->cpus, cpu))
				return false;
		if (*text != ',')
			break;
		text++;
	}
	while (isspace((unsigned char)*text))
		text++;
	sort_unique(cpus);
	return *text == '\0';
}

static const char *next_line(const char *line)
{
	line = strchr(line, '\n');
	return line ? line + 1 : NULL;
}

bool proc_parse_stat_cpus(const char *text, struct proc_cpus *cpus)
{
	cpus->cpus.len = 0;
	for (const char *line = text; line; line = next_line(line)) {
		const char *at = line + 3;
		uint32_t cpu;

		if (has_prefix(line, "cpu") && parse_cpu(&at, &cpu) && *at == ' ' &&
		    (cpus->cpus.len >= CPU_MAX || !vec_push(&cpus->cpus, cpu)))
			return false;
	}
	sort_unique(cpus);
	return cpus->cpus.len > 0;
}

int proc_online_cpus(struct proc_cpus *cpus, struct spulse_error **err)
{
	static const char list[] = "/sys/devices/system/cpu/online";
	struct strbuf text = { 0 };
	char path[PROC_PATH_MAX];
	bool found;

	found = read_file(list, 1 << 20, &text) == 0 && proc_parse_cpu_list(text.data, cpus);
	if (!found) {
		snprintf(path, sizeof(path), "%s/stat", proc_root);
		found = read_file(path, 16 << 20, &text) == 0 &&
			proc_parse_stat_cpus(text.data, cpus);
	}
	strbuf_release(&text);
	if (found)
		return 0;
	return err_file(err, SPULSE_ERROR_IO, EBADMSG, list,
			"neither this list nor /proc/stat names an online CPU");
}
