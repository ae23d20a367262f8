/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "recorder.h"

struct text {
	const char *name, *description;
};

static const struct text sample_errors[SPULSE_SAMPLE_ERROR_COUNT] = {
	{ "native-register-capture", "The registers were incomplete." },
	{ "native-stack-read", "No stack bytes were captured." },
	{ "native-stack-truncated", "The walk left the captured stack bytes." },
	{ "native-did-not-advance", "A step led to where it came from." },
	{ "native-return-address-null", "A return address was null." },
	{ "native-moved-backwards", "A step would have moved the stack pointer down." },
	{ "native-integer-overflow", "Address arithmetic overflowed." },
	{ "native-user-registers-missing", "A user-mode sample came without registers." },
};

static const struct text fallbacks[SPULSE_UNWIND_FALLBACK_COUNT] = {
	{ "no-module", "The address is in no module with unwind tables." },
	{ "no-module-unwind-data", "The module has no unwind tables." },
	{ "eh-frame-hdr-lookup", "The module's search table does not cover the address." },
	{ "dwarf-cfi-index-lookup", "The module's unwind tables do not cover the address." },
	{ "dwarf-fde-read", "The unwind table's entry is unreadable." },
	{ "dwarf-unwind-info", "The unwind table's rules cannot be used at the address." },
	{ "dwarf-stack-pointer-moved-backwards", "The rules move the stack pointer down." },
	{ "dwarf-did-not-advance", "The rules lead to where they came from." },
	{ "dwarf-could-not-recover-cfa", "The frame's address cannot be computed." },
	{ "dwarf-could-not-recover-return-address", "The return address cannot be found." },
	{ "dwarf-could-not-recover-frame-pointer", "The frame pointer cannot be found." },
	{ "other-unwind-format", "The unwind tables have another format." },
};

static const struct text unknown = { "unknown", "Unknown." };

static const struct text *text_of(const struct text *table, size_t count, unsigned int i)
{
	return i < count ? &table[i] : &unknown;
}

const char *spulse_sample_error_name(enum spulse_sample_error error)
{
	return text_of(sample_errors, ARRAY_LEN(sample_errors), error)->name;
}

const char *spulse_sample_error_description(enum spulse_sample_error error)
{
	return text_of(sample_errors, ARRAY_LEN(sample_errors), error)->description;
}

const char *spulse_unwind_fallback_name(enum spulse_unwind_fallback fallback)
{
	return text_of(fallbacks, ARRAY_LEN(fallbacks), fallback)->name;
}

const char *spulse_unwind_fallback_description(enum spulse_unwind_fallback fallback)
{
	return text_of(fallbacks, ARRAY_LEN(fallbacks), fallback)->description;
}

static uint64_t sum(const uint64_t *values, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += values[i];
	return total;
}

uint64_t spulse_summary_sample_errors(const struct spulse_recording_summary *summary)
{
	return sum(summary->sample_errors, SPULSE_SAMPLE_ERROR_COUNT);
}

uint64_t spulse_summary_unwind_fallbacks(const struct spulse_recording_summary *summary)
{
	return sum(summary->unwind_fallbacks, SPULSE_UNWIND_FALLBACK_COUNT);
}
