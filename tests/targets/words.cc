/* SPDX-FileCopyrightText: StackPulse contributors */
/* SPDX-License-Identifier: MIT */
/*
 * Counts the words of its arguments: a program full of inlined library code, lambdas and templates,
 * for its debug information. With -DWITH_REGEX there is five times as much of it.
 */
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>
#ifdef WITH_REGEX
#include <regex>
#include <sstream>
#endif

struct node {
	std::map<std::string, std::shared_ptr<node>> kids;
	int value = 0;
};

static std::vector<std::string> words(const std::string &text)
{
#ifdef WITH_REGEX
	static const std::regex word("[a-z]+(-[a-z]+)*", std::regex::icase);

	return { std::sregex_token_iterator(text.begin(), text.end(), word), {} };
#else
	std::vector<std::string> list;

	for (size_t from = 0, to; from < text.size(); from = to + 1) {
		to = std::min(text.find(' ', from), text.size());
		list.push_back(text.substr(from, to - from));
	}
	return list;
#endif
}

static int insert(node &root, const std::vector<std::string> &path)
{
	node *at = &root;

	for (auto &step : path) {
		auto &kid = at->kids[step];

		if (!kid)
			kid = std::make_shared<node>();
		at = kid.get();
	}
	return ++at->value;
}

static inline __attribute__((always_inline)) size_t count(const std::string &text, char wanted)
{
	size_t n = 0;

	for (char c : text)
		n += c == wanted;
	return n;
}

/* The function of the lambda has code of its own, inside of one that has none. */
template <typename T> static inline __attribute__((always_inline)) auto chooser(T limit)
{
	return [limit](const std::string &text) __attribute__((noinline)) {
		return count(text, 'x') > limit;
	};
}

int main(int argc, char **argv)
{
	std::map<std::string, int> counts;
	node root;

	for (int i = 1; i < argc; i++) {
		auto list = words(argv[i]);

		if (chooser(list.size())(argv[i]))
			continue;

		std::sort(list.begin(), list.end(), [](auto &a, auto &b) {
			return a.size() != b.size() ? a.size() < b.size() : a < b;
		});
		insert(root, list);
		for (auto &word : list)
			counts[word]++;
	}
#ifdef WITH_REGEX
	std::ostringstream out;

	for (auto &[word, count] : counts)
		out << word << ' ' << count << '\n';
	fputs(out.str().c_str(), stdout);
#else
	for (auto &[word, count] : counts)
		printf("%s %d\n", word.c_str(), count);
#endif
}
