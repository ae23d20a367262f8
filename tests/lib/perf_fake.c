/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "perf_fake.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct perf_fake perf_fake;

enum { PAGE = 4096 };

static int fake_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
		     unsigned long flags)
{
	struct perf_fake_open open = { .pid = pid, .cpu = cpu, .flags = flags };
	int r = perf_fake.open_answer ? perf_fake.open_answer(attr, pid, cpu) : 0;

	memcpy(&open.attr, attr, MIN(attr->size, sizeof(open.attr)));
	if (group != -1)
		r = -EINVAL;
	if (r == 0) {
		r = eventfd(0, EFD_CLOEXEC);
		perf_fake.open_descriptors += r >= 0;
	}
	open.result = r;
	if (!vec_push(&perf_fake.opens, open))
		abort();
	return r;
}

static const struct perf_fake_open *open_of(int fd)
{
	for (size_t i = perf_fake.opens.len; i-- > 0;)
		if (perf_fake.opens.data[i].result == fd)
			return &perf_fake.opens.data[i];
	return NULL;
}

static int cpu_of(int fd)
{
	const struct perf_fake_open *open = open_of(fd);

	return open ? open->cpu : -1;
}

static int fake_map(int fd, size_t bytes, void **area_out)
{
	struct perf_fake_map map = { .fd = fd, .bytes = bytes };

	map.result = perf_fake.map_answer ? perf_fake.map_answer(bytes, cpu_of(fd)) : 0;
	if (map.result == 0) {
		map.page = aligned_alloc(PAGE, bytes);
		if (!map.page)
			abort();
		memset(map.page, 0, bytes);
		map.page->data_offset = PAGE;
		map.page->data_size = bytes - PAGE;
		*area_out = map.page;
	}
	if (!vec_push(&perf_fake.maps, map))
		abort();
	return map.result;
}

static void fake_unmap(void *area, size_t bytes)
{
	(void)bytes;
	for (size_t i = 0; i < perf_fake.maps.len; i++)
		if (perf_fake.maps.data[i].page == area)
			perf_fake.maps.data[i].page = NULL;
	free(area);
}

static int fake_ioctl(int fd, unsigned long request, unsigned long argument)
{
	struct perf_fake_ioctl call = { .fd = fd, .request = request, .argument = argument };

	if (!vec_push(&perf_fake.ioctls, call))
		abort();
	return perf_fake.ioctl_answer ? perf_fake.ioctl_answer(fd, request) : 0;
}

static ssize_t fake_read(int fd, void *buf, size_t len)
{
	const struct perf_fake_open *open = open_of(fd);
	uint64_t values[2] = { 0, perf_fake.lost };
	size_t n = perf_fake.read_bytes ? (size_t)perf_fake.read_bytes : sizeof(values);

	if (perf_fake.lost_answer && open)
		values[1] = perf_fake.lost_answer(open->pid, open->cpu);
	memcpy(buf, values, MIN(len, n));
	return n;
}

static void fake_close(int fd)
{
	perf_fake.open_descriptors--;
	close(fd);
}

static int fake_get_limit(int resource, struct rlimit *limit)
{
	*limit = resource == RLIMIT_NOFILE ? perf_fake.nofile :
		 resource == RLIMIT_AS ? perf_fake.address_space : perf_fake.memlock;
	return 0;
}

static int fake_set_limit(int resource, const struct rlimit *limit)
{
	if (resource == RLIMIT_NOFILE)
		perf_fake.nofile = *limit;
	return 0;
}

static bool fake_capable(int capability)
{
	return perf_fake.capabilities >> capability & 1;
}

static int fake_owners(pid_t pid, uid_t *user, uid_t *folder)
{
	(void)pid;
	*user = perf_fake.user;
	*folder = perf_fake.folder;
	return 0;
}

static int fake_number(const char *path, int64_t *value)
{
	if (strstr(path, "max_sample_rate")) {
		*value = perf_fake.rate;
		perf_fake.rate_reads++;
	} else if (strstr(path, "paranoid")) {
		*value = perf_fake.paranoid;
	} else if (strstr(path, "mlock_kb")) {
		*value = perf_fake.mlock_kb;
	} else if (strstr(path, "ptrace_scope")) {
		*value = perf_fake.ptrace_scope;
	} else if (strstr(path, "kptr_restrict")) {
		*value = perf_fake.kptr_restrict;
	} else if (strstr(path, "file-max")) {
		*value = perf_fake.file_max;
	} else {
		return -ENOENT;
	}
	return *value == -1 ? -ENOENT : 0;
}

static int fake_open_file(const char *path)
{
	(void)path;
	return perf_fake.file_answer;
}

static const struct perf_sys fake_sys = {
	.open = fake_open,
	.map = fake_map,
	.unmap = fake_unmap,
	.ioctl = fake_ioctl,
	.read = fake_read,
	.close = fake_close,
	.get_limit = fake_get_limit,
	.set_limit = fake_set_limit,
	.capable = fake_capable,
	.owners = fake_owners,
	.open_file = fake_open_file,
	.read_number = fake_number,
};

static void forget(void)
{
	vec_free(&perf_fake.opens);
	vec_free(&perf_fake.ioctls);
	vec_free(&perf_fake.maps);
	memset(&perf_fake, 0, sizeof(perf_fake));
}

void perf_fake_install(void)
{
	forget();
	perf_fake.nofile = (struct rlimit){ 1024, 4096 };
	perf_fake.memlock = (struct rlimit){ 8 << 20, 8 << 20 };
	perf_fake.paranoid = 2;
	perf_fake.mlock_kb = 516;
	perf_fake.rate = 100000;
	perf_fake.address_space = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	perf_fake.ptrace_scope = perf_fake.kptr_restrict = -1;
	perf_fake.file_max = 100000;
	perf_fake.file_answer = 0;
	perf_fake.capabilities = ~0ull;
	perf_fake.user = perf_fake.folder = geteuid();
	perf_sys = &fake_sys;
}

void perf_fake_remove(void)
{
	perf_sys = &perf_real_sys;
	forget();
}

void perf_fake_produce(struct perf_event_mmap_page *page, const void *bytes, size_t len)
{
	uint8_t *data = (uint8_t *)page + page->data_offset;

	for (size_t i = 0; i < len; i++)
		data[(page->data_head + i) & (page->data_size - 1)] = ((const uint8_t *)bytes)[i];
	__atomic_store_n(&page->data_head, page->data_head + len, __ATOMIC_RELEASE);
}
