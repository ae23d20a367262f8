/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Facts that the format has no record for travel as modules that hold no address: start = end = 0
 * and the path "//stackpulse/KEY=VALUE", VALUE percent-encoded. "KEY+=MORE" goes on with the
 * value of the record before it. Every reader of the format accepts them, none binds to them.
 */
#include "source.h"

#include "writer.h"

/* Longest encoded piece of a value: a path as long as this surprises nobody. */
enum { PIECE_MAX = 3800 };

static const char prefix[] = ANNOTATION_PREFIX;
static const char digits[] = "0123456789abcdef";

bool annotation_shaped(uint64_t start, uint64_t end, uint64_t file_offset, uint64_t inode,
		       const void *path, size_t path_len)
{
	const size_t skip = sizeof(prefix) - 1;
	const char *equals;

	if (start || end || file_offset || inode || path_len <= skip || memcmp(path, prefix, skip))
		return false;
	equals = memchr((const char *)path + skip, '=', path_len - skip);
	return equals && equals > (const char *)path + skip;
}

static int hex_digit(char c)
{
	const char *found = c ? strchr(digits, c | 0x20) : NULL;

	return found ? found - digits : -1;
}

/* Decodes %XX in place of a copy at `out`; returns the length. */
static size_t percent_decode(char *out, const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int high = text[i] == '%' && i + 2 < len ? hex_digit(text[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

		if (low < 0) {
			out[n++] = text[i];
			continue;
		}
		out[n++] = high << 4 | low;
		i += 2;
	}
	return n;
}

/* Adds the decoded bytes to a value; they are never longer than the text. */
static bool append_value(struct spulse_annotation *annotation, struct annotation_text *text,
			 const char *more, size_t len)
{
	size_t len_now = annotation->value_len;

	if (text->cap - len_now < len + 1 &&
	    !vec_grow((void **)&text->value, &text->cap, len_now, len + 1, 1))
		return false;
	len_now += percent_decode(text->value + len_now, more, len);
	text->value[len_now] = '\0';
	annotation->value = text->value;
	annotation->value_len = len_now;
	return true;
}

/* Whether a record goes on with the value of the last one. */
static bool continues(const struct spulse_source *source, pid_t pid, const char *key)
{
	const struct spulse_annotation *last;

	if (!source->annotations.len)
		return false;
	last = &vec_last(&source->annotations);
	return last->pid == pid && strcmp(last->key, key) == 0;
}

bool annotation_add(struct spulse_source *source, const struct spulse_module *module)
{
	const char *text = module->path + sizeof(prefix) - 1;
	const char *end = module->path + module->path_len;
	const char *equals = memchr(text, '=', end - text);
	size_t key_len = equals - text;
	bool more = key_len > 1 && text[key_len - 1] == '+';
	char *key = arena_strndup(&source->arena, text, key_len);
	struct spulse_annotation fresh = { .pid = module->pid, .id = module->id };

	if (!key)
		return false;
	key[percent_decode(key, text, key_len - more)] = '\0';
	if (!more || !continues(source, module->pid, key)) {
		fresh.key = key;
		if (!vec_reserve(&source->annotation_texts, 1) ||
		    !vec_push(&source->annotations, fresh))
			return false;
		source->annotation_texts.data[source->annotation_texts.len++] =
			(struct annotation_text){ 0 };
	}
	return append_value(&vec_last(&source->annotations), &vec_last(&source->annotation_texts),
			    equals + 1, end - equals - 1);
}

void annotations_release(struct spulse_source *source)
{
	for (size_t i = 0; i < source->annotation_texts.len; i++)
		free(source->annotation_texts.data[i].value);
	vec_free(&source->annotation_texts);
	vec_free(&source->annotations);
}

static bool needs_no_escape(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-./:,@ ()[]<>~", c));
}

/* Encodes up to PIECE_MAX bytes of text; returns how many bytes of the value went in. `_` is
 * escaped too: a reader may take kernel paths with it for names of kernel modules. */
static size_t percent_encode(struct strbuf *out, const char *value, size_t len, size_t max)
{
	size_t i, limit = out->len + max;

	for (i = 0; i < len && out->len + 3 <= limit; i++) {
		unsigned char c = value[i];

		if (needs_no_escape(c))
			strbuf_putc(out, c);
		else
			strbuf_printf(out, "%%%c%c", digits[c >> 4], digits[c & 15]);
	}
	return i;
}

static int write_piece(struct spulse_spool_writer *writer, pid_t pid, const struct strbuf *path,
		       struct spulse_error **err)
{
	struct spulse_module_fields fields = {
		.size = sizeof(fields),
		.pid = pid,
		.is_kernel = pid == -1,
		.path = path->data,
		.path_len = path->len,
	};
	uint32_t id;

	if (path->failed)
		return err_no_memory(err);
	return spulse_spool_writer_module(writer, &fields, &id, err);
}

int spool_writer_annotate(struct spulse_spool_writer *writer, pid_t pid, const char *key,
			  const char *value, size_t value_len, struct spulse_error **err)
{
	struct strbuf path = { 0 };
	size_t done = 0;
	bool more = false;
	int r;

	if (!*key)
		return err_set(err, SPULSE_ERROR_INVALID_INPUT, "an annotation needs a key");
	do {
		strbuf_reset(&path);
		strbuf_puts(&path, prefix);
		percent_encode(&path, key, strlen(key), SIZE_MAX / 2);
		strbuf_puts(&path, more ? "+=" : "=");
		done += percent_encode(&path, value + done, value_len - done, PIECE_MAX);
		r = write_piece(writer, pid, &path, err);
		more = true;
	} while (r == 0 && done < value_len);
	strbuf_release(&path);
	return r;
}
