/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <stackpulse/stackpulse.h>

#include "cli_value.h"

/* Reads digits up to the first other byte, whose place is given back. */
static bool read_digits(const char *text, uint64_t *value_out, const char **end_out)
{
	uint64_t value = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return false;
	*value_out = value;
	*end_out = at;
	return at != text;
}

bool cli_parse_number(const char *text, uint64_t *value_out)
{
	const char *end;
	uint64_t value;

	if (!read_digits(text, &value, &end) || *end)
		return false;
	*value_out = value;
	return true;
}

static bool parse_size(const char *text, uint64_t *value_out)
{
	static const char units[] = "kMG";
	const char *end, *unit;
	uint64_t value;

	if (!read_digits(text, &value, &end))
		return false;
	if (*end) {
		unit = strchr(units, *end == 'K' ? 'k' : *end);
		if (!unit || end[1])
			return false;
		for (const char *u = units; u <= unit; u++)
			if (__builtin_mul_overflow(value, 1024, &value))
				return false;
	}
	*value_out = value;
	return true;
}

/* Seconds with up to nine decimals; about 290 years at most. */
static bool parse_seconds(const char *text, int64_t *ns_out)
{
	uint64_t seconds, ns = 0, scale = 1000000000;
	const char *at;

	if (!read_digits(text, &seconds, &at) || seconds > INT64_MAX / 1000000000 - 1)
		return false;
	if (*at == '.') {
		if (!at[1])
			return false;
		for (at++; *at >= '0' && *at <= '9'; at++) {
			scale /= 10;
			ns += (uint64_t)(*at - '0') * scale;
		}
	}
	if (*at && strcmp(at, "s"))
		return false;
	*ns_out = (int64_t)(seconds * 1000000000 + ns);
	return *ns_out > 0;
}

static bool set_number(const struct cli_option *option, const char *text, char *why,
		       size_t why_size)
{
	uint64_t value = 0, maximum = option->maximum ? option->maximum : UINT64_MAX;
	bool size = option->type == CLI_SIZE;

	if (!(size ? parse_size(text, &value) : cli_parse_number(text, &value))) {
		snprintf(why, why_size, "not a whole number%s",
			 size ? " (with k, M or G for powers of 1024)" : "");
		return false;
	}
	if (value < option->minimum || value > maximum) {
		if (maximum == UINT64_MAX)
			snprintf(why, why_size, "must be at least %" PRIu64, option->minimum);
		else
			snprintf(why, why_size, "must be %" PRIu64 " to %" PRIu64, option->minimum,
				 maximum);
		return false;
	}
	*(uint64_t *)option->target = value;
	return true;
}

static bool set_choice(const struct cli_option *option, const char *text, char *why,
		       size_t why_size)
{
	size_t used = 0;

	for (int i = 0; option->choices[i]; i++)
		if (!strcmp(option->choices[i], text)) {
			*(int *)option->target = i;
			return true;
		}
	used = (size_t)snprintf(why, why_size, "must be one of");
	for (int i = 0; option->choices[i] && used < why_size; i++)
		used += (size_t)snprintf(why + used, why_size - used, "%s %s", i ? "," : "",
					 option->choices[i]);
	return false;
}

bool cli_value_set(const struct cli_option *option, const char *text, char *why, size_t why_size)
{
	const char *wrong;

	switch (option->type) {
	case CLI_FLAG:
	case CLI_FLAG_OFF:
		*(bool *)option->target = option->type == CLI_FLAG;
		return true;
	case CLI_STRING:
		*(const char **)option->target = text;
		snprintf(why, why_size, "must not be empty");
		return *text;
	case CLI_NUMBER:
	case CLI_SIZE:
		return set_number(option, text, why, why_size);
	case CLI_SECONDS:
		snprintf(why, why_size, "not a number of seconds above 0, such as 10 or 0.5");
		return parse_seconds(text, option->target);
	case CLI_CHOICE:
		return set_choice(option, text, why, why_size);
	case CLI_CUSTOM:
		wrong = option->parse(option->target, text);
		snprintf(why, why_size, "%s", wrong ? wrong : "");
		return !wrong;
	}
	return false;
}

const char *cli_parse_pids(void *target, const char *text)
{
	struct cli_pids *list = target;

	for (;;) {
		const char *end;
		uint64_t value;
		bool known = false;

		if (!read_digits(text, &value, &end) || (*end && *end != ','))
			return "must be process ids separated by commas";
		if (value > INT64_MAX || !spulse_pid_valid((int64_t)value))
			return "a process id is 1 to 2147483647";
		for (size_t i = 0; i < list->count; i++)
			known |= list->pids[i] == (pid_t)value;
		if (!known && list->count == sizeof(list->pids) / sizeof(list->pids[0]))
			return "more than 256 process ids";
		if (!known)
			list->pids[list->count++] = (pid_t)value;
		if (!*end)
			return NULL;
		text = end + 1;
	}
}
