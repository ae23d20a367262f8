/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
#include "demangle.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "../../base/base.h"

/* Names longer than this are hostile or of no use to anyone. */
enum { MANGLED_MAX = 64 << 10 };

/*
 * Words that compilers put behind a dot when they split or copy a function. In a plain name only
 * the first ones count: Go's "main.hot" and "main.exit" are whole names.
 */
enum { PLAIN_WORDS = 7 };
static const char *const clone_words[] = {
	"cold",	    "part",  "isra",  "constprop", "lto_priv", "llvm",	"localalias",
	"clone",    "hot",   "warm",  "unlikely",  "resume",   "destroy", "cleanup",
	"actor",    "split", "specialized", "content", "uniq", "startup", "exit",
	"resolver", "ifunc", "default", "avx2", "arch_x86_64_v3", "simdclone", "eh",
};

static bool is_clone_word(const char *word, size_t len, bool plain)
{
	for (size_t i = 0; i < (plain ? PLAIN_WORDS : ARRAY_LEN(clone_words)); i++)
		if (strlen(clone_words[i]) == len && !memcmp(clone_words[i], word, len))
			return true;
	return false;
}

static bool is_number(const char *word, size_t len, bool hex)
{
	for (size_t i = 0; i < len; i++)
		if (hex ? !isxdigit((unsigned char)word[i]) : !isdigit((unsigned char)word[i]))
			return false;
	return len;
}

/* Whether all of ".word.word..." is made of clone words and their numbers. */
static bool is_clone_suffix(const char *suffix, bool plain)
{
	bool after_word = false;

	while (*suffix == '.') {
		size_t len = strcspn(++suffix, ".");

		if (is_clone_word(suffix, len, plain))
			after_word = true;
		else if (!after_word || !is_number(suffix, len, true))
			return false;
		suffix += len;
	}
	return !*suffix;
}

size_t clone_suffix_start(const char *name)
{
	bool plain = name[0] != '_' || !name[1] || !strchr("DRZ", name[1]);

	for (const char *dot = name; *dot && (dot = strchr(dot + 1, '.'));)
		if (is_clone_suffix(dot, plain))
			return dot - name;
	return strlen(name);
}

/* A legacy Rust name is a valid C++ one too, so Rust goes first. */
static char *demangle_base(const char *name)
{
	char *text = NULL;

	if (name[0] != '_' && name[0] != '?')
		return NULL;
	if (has_prefix(name, "_R") || (has_prefix(name, "_ZN") && strstr(name, "17h")))
		text = rust_demangle(name, DMGL_PARAMS);
	if (!text && (has_prefix(name, "_Z") || has_prefix(name, "___Z") ||
		      has_prefix(name, "__Z") || has_prefix(name, "____Z") ||
		      has_prefix(name, "_GLOBAL_")))
		text = cplus_demangle_v3(name + strspn(name, "_") - (name[0] == '_'),
					 DMGL_PARAMS | DMGL_ANSI);
	if (!text && has_prefix(name, "_D") && name[2] >= '0' && name[2] <= '9')
		text = dlang_demangle(name, DMGL_PARAMS | DMGL_ANSI);
	return text;
}

struct demangled demangle(const char *mangled)
{
	struct demangled out = { .suffix = "" };
	size_t len = strnlen(mangled, MANGLED_MAX);
	char *base;

	if (len == MANGLED_MAX) {
		out.name = strndup(mangled, len);
		return out;
	}
	len = clone_suffix_start(mangled);
	base = strndup(mangled, len);
	if (!base)
		return out;
	out.suffix = mangled + len;
	out.name = demangle_base(base);
	if (out.name)
		free(base);
	else
		out.name = base;
	return out;
}
