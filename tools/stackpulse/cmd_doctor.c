/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <stackpulse/doctor.h>

#include "cli.h"
#include "json.h"
#include "tool.h"

static void print_json(struct out *out, const struct spulse_doctor_report *report, pid_t pid)
{
	const struct spulse_doctor_check *checks;
	struct json json;
	size_t count;

	checks = spulse_doctor_report_checks(report, &count);
	json_init(&json, out);
	json_begin_object(&json);
	if (pid)
		json_field_int(&json, "pid", pid);
	json_field_text(&json, "verdict",
			spulse_verdict_name(spulse_doctor_report_verdict(report)));
	json_key(&json, "checks");
	json_begin_array(&json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&json);
		json_field_text(&json, "name", checks[i].name);
		json_field_text(&json, "value", checks[i].value);
		json_field_text(&json, "verdict", spulse_verdict_name(checks[i].verdict));
		json_field_text(&json, "advice", checks[i].advice);
		json_end_object(&json);
	}
	json_end_array(&json);
	json_end_object(&json);
	json_end_line(&json);
}

static const char *style_of(uint32_t verdict)
{
	switch (verdict) {
	case SPULSE_VERDICT_OK:
		return "32";
	case SPULSE_VERDICT_REFUSED:
		return "1;31";
	default:
		return "33";
	}
}

static void print_text(struct out *out, const struct spulse_doctor_report *report)
{
	const struct spulse_doctor_check *checks;
	size_t count;

	checks = spulse_doctor_report_checks(report, &count);
	for (size_t i = 0; i < count; i++) {
		out_style(out, style_of(checks[i].verdict));
		out_printf(out, "%-8s", spulse_verdict_name(checks[i].verdict));
		out_style(out, NULL);
		out_printf(out, " %-27s ", checks[i].name);
		out_line(out, checks[i].value, strlen(checks[i].value));
		out_puts(out, "\n");
		if (!*checks[i].advice)
			continue;
		out_puts(out, "         -> ");
		cli_wrap(out, checks[i].advice, 12, 12);
	}
}

int cmd_doctor(int argc, char **argv)
{
	SPULSE_CLEANUP(doctor_report) report = NULL;
	struct spulse_error *err = NULL;
	struct cli_pids pids = {.count = 0};
	bool as_json = false;
	const struct cli_option options[] = {
		{0, "json", CLI_FLAG, &as_json, NULL, .help = "One JSON object."},
	};
	const struct cli_group groups[] = {CLI_GROUP("Options", options)};
	const struct cli_spec spec = {
		.command = "doctor",
		.usage = "[--json] [PID]",
		.about = "Checks what this machine permits a recording, and whether process PID "
			 "can "
			 "be recorded, and says what to change. Nothing is changed by it. The exit "
			 "status is 1 when something refuses a recording.",
		.groups = groups,
		.group_count = 1,
		.maximum_arguments = 1,
	};
	struct out *out;
	const char *wrong;
	pid_t pid = 0;
	int status = cli_parse(&spec, &argc, &argv);

	if (status != CLI_GO_ON)
		return status;
	if (argc) {
		wrong = cli_parse_pids(&pids, argv[0]);
		if (wrong || pids.count != 1)
			return cli_usage_error(&spec, "PID %s",
					       wrong ? wrong : "must be one number");
		pid = pids.pids[0];
	}
	if (spulse_doctor(pid, &report, &err) < 0)
		return tool_fail(err);
	out = out_stdout();
	if (as_json)
		print_json(out, report, pid);
	else
		print_text(out, report);
	return out_close(out, spulse_doctor_report_verdict(report) == SPULSE_VERDICT_REFUSED ?
			 TOOL_FAILED : TOOL_DONE);
}
