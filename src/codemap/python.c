/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "codemap.h"

#include <strings.h>

/* Length of the version at p: one digit, or dotted numbers without an empty part; 0: none. */
static size_t version_length(const char *p, size_t len)
{
	size_t at = 0, digits = 0, dots = 0;

	for (; at < len; at++) {
		if (p[at] >= '0' && p[at] <= '9') {
			digits++;
		} else if (p[at] == '.' && digits && at + 1 < len && p[at + 1] >= '0' &&
			   p[at + 1] <= '9') {
			dots++;
			digits = 0;
		} else {
			break;
		}
	}
	return dots || at == 1 ? at : 0;
}

/* Removes a prefix in any case. */
static bool skip_prefix(const char **p, size_t *len, const char *prefix)
{
	size_t n = strlen(prefix);

	if (*len < n || strncasecmp(*p, prefix, n) != 0)
		return false;
	*p += n;
	*len -= n;
	return true;
}

/* Removes a version and the ABI letters behind it. */
static bool skip_version(const char **p, size_t *len)
{
	size_t n = version_length(*p, *len);

	if (n == 0)
		return false;
	while (n < *len && ((*p)[n] == 't' || (*p)[n] == 'd'))
		n++;
	*p += n;
	*len -= n;
	return true;
}

static bool is_library_suffix(const char *p, size_t len)
{
	static const char so[] = ".so", dylib[] = ".dylib";
	size_t n = strlen(so);

	if (len == strlen(dylib) && memcmp(p, dylib, len) == 0)
		return true;
	return len >= n && memcmp(p, so, n) == 0 && (len == n || p[n] == '.');
}

bool codemap_is_python_basename(const char *name, size_t len)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(deleted);

	if (len >= n && memcmp(name + len - n, deleted, n) == 0)
		len -= n;
	if (skip_prefix(&name, &len, "lib"))
		return skip_prefix(&name, &len, "python") && skip_version(&name, &len) &&
		       is_library_suffix(name, len);
	return skip_prefix(&name, &len, "python") &&
	       (len == 0 || (skip_version(&name, &len) && len == 0));
}

bool codemap_is_perfmap_path(const char *path, size_t len)
{
	static const char *const whole[] = {"//anon", "[anon]", "[heap]"};
	static const char *const prefixes[] = {"[anon:", "[stack", "/dev/zero", "/anon_hugepage",
					       "/SYSV"};

	for (size_t i = 0; i < ARRAY_LEN(whole); i++)
		if (len == strlen(whole[i]) && memcmp(path, whole[i], len) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (len >= n && memcmp(path, prefixes[i], n) == 0)
			return true;
	}
	return false;
}

/* The next NUL-terminated string of a block; false at its end. */
static bool next_string(const char **p, const char *end, const char **string, size_t *len)
{
	const char *nul;

	if (*p >= end)
		return false;
	nul = memchr(*p, '\0', end - *p);
	*string = *p;
	*len = (nul ? nul : end) - *p;
	*p += *len + 1;
	return true;
}

static bool equals(const char *string, size_t len, const char *wanted)
{
	return len == strlen(wanted) && memcmp(string, wanted, len) == 0;
}

bool codemap_python_perf_enabled(const char *environ_bytes, size_t environ_len,
				 const char *cmdline, size_t cmdline_len)
{
	const char *end = environ_bytes + environ_len, *string;
	bool option = false;
	size_t len;

	while (next_string(&environ_bytes, end, &string, &len))
		if (equals(string, len, "PYTHONPERFSUPPORT=1"))
			return true;
	end = cmdline + cmdline_len;
	while (next_string(&cmdline, end, &string, &len)) {
		if (equals(string, len, "-Xperf") ||
		    (option && (equals(string, len, "perf") ||
				(len >= 5 && memcmp(string, "perf,", 5) == 0))))
			return true;
		option = equals(string, len, "-X");
	}
	return false;
}
