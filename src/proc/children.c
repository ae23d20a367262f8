/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Descendants: from the children files of every thread, which name them directly; where a kernel
 * lacks those files, from the parent numbers of every process. A process that vanishes on the way
 * is simply skipped: its children have moved to another parent and its own edge stays valid.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "procfs.h"

typedef VEC(struct spulse_process_edge) edge_vec;

struct discovery {
	edge_vec edges;
	struct u64map seen;
	bool unusable; /* children files are missing although their thread is there */
	bool no_memory;
};

static void add_edge(struct discovery *d, pid_t parent, pid_t child)
{
	struct spulse_process_edge edge = { .parent = parent, .child = child };
	bool added = false;

	if (!u64map_add(&d->seen, child, &added))
		d->no_memory = true;
	else if (added && !vec_push(&d->edges, edge))
		d->no_memory = true;
}

/* Child numbers of one thread, separated by blanks; bad tokens are skipped. */
static void read_children_text(struct discovery *d, pid_t parent, const char *text)
{
	while (*text) {
		char *end;
		long id;

		errno = 0;
		id = strtol(text, &end, 10);
		if (end == text)
			end++;
		else if (errno == 0 && id >= 1 && id <= INT_MAX && (*end == ' ' || !*end))
			add_edge(d, parent, id);
		for (text = end; *text == ' ' || *text == '\n'; text++)
			;
	}
}

static void read_children_of(struct discovery *d, pid_t pid)
{
	struct proc_tids tids = { 0 };
	struct strbuf text = { 0 };
	char path[PROC_PATH_MAX];

	if (proc_threads(pid, &tids) == -ENOMEM)
		d->no_memory = true;
	for (size_t i = 0; i < tids.tids.len && !d->unusable; i++) {
		pid_t tid = tids.tids.data[i];
		int r = proc_file_read(pid, tid, "children", 64 << 20, &text);

		proc_path(path, pid, tid, "stat");
		if (r == 0)
			read_children_text(d, pid, text.data);
		else if (r == -ENOMEM)
			d->no_memory = true;
		else if (access(path, F_OK) == 0)
			d->unusable = true;
	}
	vec_free(&tids.tids);
	strbuf_release(&text);
}

static void walk_children_files(struct discovery *d, pid_t root)
{
	read_children_of(d, root);
	/* New edges are found while this walks: a parent always comes before its children. */
	for (size_t i = 0; i < d->edges.len && !d->unusable && !d->no_memory; i++)
		read_children_of(d, d->edges.data[i].child);
}

static void walk_stats(struct discovery *d, pid_t root)
{
	struct proc_tids pids = { 0 };
	edge_vec all = { 0 };
	struct proc_stat stat;

	if (proc_list_numbers(proc_root, &pids) == -ENOMEM)
		d->no_memory = true;
	for (size_t i = 0; i < pids.tids.len; i++) {
		struct spulse_process_edge edge = { .child = pids.tids.data[i] };

		if (proc_stat_read(edge.child, 0, &stat) < 0)
			continue;
		edge.parent = stat.ppid;
		if (!vec_push(&all, edge))
			d->no_memory = true;
	}
	for (size_t i = 0; i <= d->edges.len && !d->no_memory; i++) {
		pid_t parent = i ? d->edges.data[i - 1].child : root;

		for (size_t j = 0; j < all.len; j++)
			if (all.data[j].parent == parent)
				add_edge(d, parent, all.data[j].child);
	}
	vec_free(&all);
	vec_free(&pids.tids);
}

int spulse_children_discover_edges(pid_t pid, struct spulse_process_edge **edges_out,
				   size_t *count_out, struct spulse_error **err)
{
	struct discovery d = { 0 };

	if (!spulse_pid_valid(pid))
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "%d is not a process id", pid);
	/* The root is "seen": a loop in the data cannot bring it back. */
	if (!u64map_add(&d.seen, pid, NULL))
		return err_no_memory(err);
	walk_children_files(&d, pid);
	if (d.unusable && !d.no_memory) {
		d.edges.len = 0;
		u64map_release(&d.seen);
		d.no_memory = !u64map_add(&d.seen, pid, NULL);
		walk_stats(&d, pid);
	}
	u64map_release(&d.seen);
	if (d.no_memory) {
		vec_free(&d.edges);
		return err_no_memory(err);
	}
	*edges_out = d.edges.data;
	*count_out = d.edges.len;
	return 0;
}

int spulse_children_discover(pid_t pid, pid_t **pids_out, size_t *count_out,
			     struct spulse_error **err)
{
	_cleanup_free_ struct spulse_process_edge *edges = NULL;
	pid_t *pids;
	size_t count;
	int r = spulse_children_discover_edges(pid, &edges, &count, err);

	if (r < 0)
		return r;
	pids = calloc(count ? count : 1, sizeof(*pids));
	if (!pids)
		return err_no_memory(err);
	for (size_t i = 0; i < count; i++)
		pids[i] = edges[i].child;
	*pids_out = pids;
	*count_out = count;
	return 0;
}
