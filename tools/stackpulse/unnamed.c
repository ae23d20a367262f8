/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "unnamed.h"

/* Modules that are told of. */
enum { MODULES = 6 };
/* Percent of the samples from where on a module is told of. */
static const double WORTH_TELLING = 1;

/* Kinds of code that get their names in different ways. */
enum need { NEED_DEBUG_FILE = 1, NEED_FILE = 2, NEED_PERF_MAP = 4, NEED_KALLSYMS = 8 };

static enum need need_of(const struct calltree *tree, const struct calltree_unnamed *unnamed)
{
	const struct calltree_function *function = &tree->functions[unnamed->function];

	if (function->kind == SPULSE_FRAME_KIND_KERNEL)
		return NEED_KALLSYMS;
	if (function->generated)
		return NEED_PERF_MAP;
	/* The symbolizer could read the file, or says why not. */
	if (unnamed->why && strncmp(unnamed->why, "file ", 5) != 0)
		return NEED_FILE;
	return NEED_DEBUG_FILE;
}

static void print_module(struct out *out, const struct calltree *tree,
			 const struct calltree_unnamed *unnamed)
{
	const struct calltree_function *function = &tree->functions[unnamed->function];

	out_printf(out, "%6.2f %%  ", calltree_share(tree, unnamed->total));
	switch (need_of(tree, unnamed)) {
	case NEED_KALLSYMS:
		out_puts(out, "the kernel: its symbols cannot be read");
		break;
	case NEED_PERF_MAP:
		out_line(out, function->name, function->name_len);
		out_puts(out, ": made while the program ran; no perf map names it");
		break;
	case NEED_FILE:
		out_line(out, function->path, strlen(function->path));
		out_puts(out, ": ");
		out_line(out, unnamed->why, strcspn(unnamed->why, "\n"));
		break;
	case NEED_DEBUG_FILE:
		out_line(out, function->path, strlen(function->path));
		out_puts(out, ": symbols are missing, and no debug file was found");
		break;
	}
	out_puts(out, "\n");
}

static void print_hints(struct out *out, unsigned int needs)
{
	if (needs & NEED_DEBUG_FILE) {
		out_puts(out, "Debug files come in packages of their own (on Debian and Ubuntu, "
			      "find-dbgsym-packages FILE\nfrom debian-goodies says which) or "
			      "stand in a folder for --debug-dir");
		if (spulse_features() & SPULSE_FEATURE_DEBUGINFOD)
			out_puts(out, "; with DEBUGINFOD_URLS set they\nare fetched from servers");
		out_puts(out, ". \"stackpulse info --symbols\" shows what was tried.\n");
	}
	if (needs & NEED_FILE)
		out_puts(out, "Files of another machine or that moved: --sysroot DIR.\n");
	if (needs & NEED_PERF_MAP)
		out_puts(out, "Runtimes write perf maps when asked: node --perf-basic-prof, "
			      "python3 -X perf,\ndotnet with DOTNET_PerfMapEnabled=1, "
			      "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit.\n");
	if (needs & NEED_KALLSYMS)
		out_puts(out, "Kernel names need root or sysctl kernel.kptr_restrict=0 (and "
			      "perf_event_paranoid <= 1),\nor --kallsyms FILE.\n");
}

/* Only where no Python function has a name: with -X perf this is how a program starts. */
static void tell_interpreter(struct out *out, const struct calltree *tree)
{
	if (calltree_share(tree, tree->interpreter_samples) < WORTH_TELLING)
		return;
	for (size_t i = 0; i < tree->function_count; i++)
		if (tree->functions[i].kind == SPULSE_FRAME_KIND_PYTHON)
			return;
	out_printf(out,
		   "\n%.2f %% of the samples are in a Python interpreter, without names of Python "
		   "functions:\npython3 -X perf gives them (Python 3.12 or later).\n",
		   calltree_share(tree, tree->interpreter_samples));
}

static int by_total(const void *a, const void *b)
{
	const struct calltree_unnamed *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x->function < y->function ? -1 : x->function > y->function;
}

void unnamed_tell(struct out *out, const struct calltree *tree)
{
	struct calltree_unnamed *order = mem_alloc(tree->unnamed_count * sizeof(*order));
	unsigned int needs = 0;
	size_t told = 0;

	if (tree->unnamed_count)
		memcpy(order, tree->unnamed, tree->unnamed_count * sizeof(*order));
	qsort(order, tree->unnamed_count, sizeof(*order), by_total);
	for (size_t i = 0; i < tree->unnamed_count && told < MODULES; i++) {
		if (calltree_share(tree, order[i].total) < WORTH_TELLING)
			break;
		if (!told++) {
			out_style(out, "1");
			out_puts(out, "\nCode without names");
			out_style(out, NULL);
			out_puts(out, ", by function as MODULE+0xSTART (--addresses shows each "
				      "address)\n");
		}
		print_module(out, tree, &order[i]);
		needs |= need_of(tree, &order[i]);
	}
	print_hints(out, needs);
	tell_interpreter(out, tree);
	free(order);
}
