/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Names the frames of a spool from a table instead of ELF files:
 *	native_backend SPOOL TABLE
 * Each line of the table is "MODULE START END FUNCTION FILE LINE", with the file name of a module
 * and addresses as the ELF file states them, in hexadecimal. What the table does not know is left
 * to the built-in backend. Prints every stack, innermost frame first.
 */
#include <stackpulse/stackpulse.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
	char module[64], function[128], file[256];
	unsigned long long start, end;
	unsigned int line;
};

struct table {
	struct row *rows;
	size_t count;
};

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->module, y->module);

	if (order)
		return order;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int read_table(struct table *table, const char *path, struct spulse_error **err)
{
	FILE *file = fopen(path, "re");
	struct row row, *grown;
	char line[1024];

	if (!file) {
		*err = spulse_error_new(SPULSE_ERROR_IO, 0, path, "table", 0, "cannot open %s",
					path);
		return -SPULSE_ERROR_IO;
	}
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %llx %llx %127s %255s %u", row.module, &row.start, &row.end,
			   row.function, row.file, &row.line) != 6)
			continue;
		grown = realloc(table->rows, (table->count + 1) * sizeof(row));
		if (!grown)
			break;
		table->rows = grown;
		table->rows[table->count++] = row;
	}
	fclose(file);
	if (table->count)
		qsort(table->rows, table->count, sizeof(row), compare_rows);
	return 0;
}

/* The last row of the module that starts at or below the address, if it reaches that far. */
static const struct row *find_row(const struct table *table, const char *module,
				  unsigned long long address)
{
	const struct row *found = NULL;

	for (size_t low = 0, high = table->count; low < high;) {
		const struct row *row = &table->rows[low + (high - low) / 2];
		int order = strcmp(row->module, module);

		if (order < 0 || (!order && row->start <= address)) {
			found = order ? found : row;
			low = row - table->rows + 1;
		} else {
			high = row - table->rows;
		}
	}
	return found && address < found->end ? found : NULL;
}

/* ---- the backend ---- */

/* State of one process: the table is the same for all, the built-in backend has its own. */
struct state {
	const struct table *table;
	const struct spulse_native_backend *inner; /* NULL: not in this build */
	void *inner_state;
};

static int open_state(void *data, pid_t pid, void **state_out, struct spulse_error **err)
{
	struct state *state = calloc(1, sizeof(*state));
	int r = 0;

	if (!state) {
		*err = spulse_error_new(SPULSE_ERROR_NO_MEMORY, 0, NULL, "table", 0,
					"out of memory");
		return -SPULSE_ERROR_NO_MEMORY;
	}
	state->table = data;
	state->inner = spulse_native_default();
	if (state->inner)
		r = state->inner->open(NULL, pid, &state->inner_state, err);
	if (r < 0)
		free(state);
	else
		*state_out = state;
	return r;
}

static void close_state(void *data)
{
	struct state *state = data;

	if (state->inner)
		state->inner->close(state->inner_state);
	free(state);
}

static int add_row(struct spulse_native_results *results, size_t index, const struct row *row,
		   unsigned long long address, struct spulse_error **err)
{
	const struct spulse_native_symbol symbol = {
		.size = sizeof(symbol),
		.name = row->function,
		.file = row->file,
		.line = row->line,
		.offset = address - row->start,
	};

	return spulse_native_results_add(results, index, &symbol, err);
}

/* Asks the built-in backend and passes all levels of its answer on. */
static int ask_inner(struct state *state, const struct spulse_native_lookup *lookup, size_t index,
		     struct spulse_native_results *results, struct spulse_error **err)
{
	SPULSE_CLEANUP(native_results) inner = NULL;
	int r;

	if (!state->inner)
		return 0;
	r = spulse_native_results_new(1, &inner, err);
	if (!r)
		r = state->inner->symbolize(state->inner_state, &lookup, 1, inner, err);
	for (size_t i = 0; !r && i < spulse_native_results_count(inner, 0); i++)
		r = spulse_native_results_add(results, index,
					      spulse_native_results_at(inner, 0, i), err);
	return r;
}

static int symbolize(void *data, const struct spulse_native_lookup *const *lookups, size_t count,
		     struct spulse_native_results *results, struct spulse_error **err)
{
	struct state *state = data;
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		unsigned long long address = spulse_native_lookup_image_address(lookups[i]);
		const struct spulse_native_module *module = spulse_native_lookup_module(lookups[i]);
		const struct row *row = find_row(state->table, spulse_native_module_name(module),
						 address);

		r = row ? add_row(results, i, row, address, err) :
			  ask_inner(state, lookups[i], i, results, err);
	}
	return r;
}

static const struct spulse_native_backend table_backend = {
	.size = sizeof(table_backend),
	.name = "table",
	.open = open_state,
	.symbolize = symbolize,
	.close = close_state,
};

/* ---- the program ---- */

static void print_stack(const struct spulse_resolved *frames)
{
	char name[512];

	for (size_t i = 0; i < spulse_resolved_count(frames); i++) {
		const struct spulse_resolved_frame *frame = spulse_resolved_at(frames, i);
		const char *file = spulse_resolved_frame_file(frame);

		spulse_resolved_frame_display_name(frame, name, sizeof(name));
		if (file)
			printf("%s %s:%lld\n", name, file,
			       (long long)spulse_resolved_frame_line(frame));
		else
			printf("%s\n", name);
	}
	putchar('\n');
}

static int run(const char *spool, struct table *table, struct spulse_error **err)
{
	SPULSE_CLEANUP(snapshot) snapshot = NULL;
	SPULSE_CLEANUP(symbolizer) symbolizer = NULL;
	SPULSE_CLEANUP(stacks) stacks = NULL;
	const struct spulse_resolved *frames;
	const struct spulse_stack *stack;
	int r = spulse_snapshot_open(spool, &snapshot, err);

	if (!r)
		r = spulse_symbolizer_new(spulse_snapshot_source(snapshot),
					  SPULSE_OPTS(symbolizer_options, .native = &table_backend,
						      .native_data = table),
					  &symbolizer, err);
	if (!r)
		r = spulse_snapshot_stacks(snapshot, &stacks, err);
	while (!r && (r = spulse_stacks_next(stacks, &stack, err)) > 0) {
		r = spulse_symbolizer_resolve(symbolizer, stack, &frames, err);
		if (!r)
			print_stack(frames);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct spulse_error *err = NULL;
	struct table table = { 0 };
	int r;

	if (argc != 3) {
		fprintf(stderr, "usage: %s SPOOL TABLE\n", argv[0]);
		return 2;
	}
	r = read_table(&table, argv[2], &err);
	if (!r)
		r = run(argv[1], &table, &err);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[0], spulse_error_message(err));
	spulse_error_free(err);
	free(table.rows);
	return r < 0;
}
