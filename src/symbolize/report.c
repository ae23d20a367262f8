/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/* Why a module has the names it has. */
#include "symbolizer.h"

static void describe(struct spulse_symbolizer *sym, const struct spulse_module *module,
		     const struct module_state *state)
{
	struct strbuf *sb = &sym->report;

	if (spulse_module_is_kernel(module))
		strbuf_puts(sb, "kernel: names come from the kernel's symbols\n");
	else if (codemap_is_perfmap_path(spulse_module_path(module),
					 spulse_module_path_len(module)))
		strbuf_puts(sb, "no file: names can come from a perf map\n");
	else if (!sym->backend)
		strbuf_puts(sb, "there is no native backend\n");
	else if (state->native && sym->store && native_is_builtin(sym->backend))
		native_store_describe(sym->store, state->native, sb);
	else if (state->native)
		strbuf_printf(sb, "file %s, answered by backend %s\n",
			      image_path(state->native->image),
			      sym->backend->name ? sym->backend->name : "");
	else if (state->refusal)
		strbuf_printf(sb, "%s\n", spulse_error_message(state->refusal));
	else
		strbuf_puts(sb, "the mapping has no file\n");
	if (state->native && state->trusted)
		strbuf_puts(sb, "the recorder's own open image\n");
	if (state->native && state->unverified)
		strbuf_puts(sb, "not verified: the recording holds no build ID of it\n");
}

int spulse_symbolizer_module_report(struct spulse_symbolizer *sym, size_t index,
				    const char **text_out, struct spulse_error **err)
{
	const struct spulse_module *module = symbolizer_module(sym, index);
	const struct module_state *state;

	if (!module)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "there is no module %zu", index);
	symbolizer_begin(sym);
	state = module_open(sym, module);
	if (!state)
		return err_no_memory(err);
	strbuf_reset(&sym->report);
	describe(sym, module, state);
	symbolizer_end(sym);
	if (sym->report.failed)
		return err_no_memory(err);
	*text_out = sym->report.data;
	return 0;
}
