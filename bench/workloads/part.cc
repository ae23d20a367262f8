// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// One part of a program with much debug information: bench/symbolize links hundreds of copies,
// each with names of its own. Templates of the standard library, built -O2 -g.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace part {
template <int N> struct Record {
  std::string name;
  std::vector<double> values;
  std::variant<int, double, std::string> extra;
  bool operator<(const Record &other) const { return name < other.name; }
};

template <int N> __attribute__((noinline)) size_t index_words(unsigned seed) {
  std::map<std::string, Record<N>> by_name;
  std::unordered_map<std::string, std::vector<int>> places;
  for (int i = 0; i < 40; i++) {
    seed = seed * 1664525u + 1013904223u;
    std::string key = "k" + std::to_string((seed >> 8) % (17 + N));
    Record<N> &record = by_name[key];
    record.name = key;
    record.values.push_back(seed);
    record.extra = i % 2 ? std::variant<int, double, std::string>(i) : key;
    places[key].push_back(i);
  }
  std::vector<Record<N>> sorted;
  for (auto &entry : by_name)
    sorted.push_back(entry.second);
  std::stable_sort(sorted.begin(), sorted.end());
  return std::accumulate(sorted.begin(), sorted.end(), size_t(0), [&](size_t sum, const Record<N> &r) {
    return sum + r.values.size() + places[r.name].size();
  });
}

__attribute__((noinline)) size_t match(unsigned seed) {
  static const std::regex pattern("([a-z]+)-([0-9]+)");
  std::ostringstream text;
  for (int i = 0; i < 4; i++)
    text << "item-" << seed % 1000 + i << ' ';
  std::string all = text.str();
  size_t n = 0;
  for (std::sregex_iterator at(all.begin(), all.end(), pattern), end; at != end; ++at)
    n += at->str(2).size();
  return n;
}

__attribute__((noinline)) size_t queue(unsigned seed) {
  std::deque<std::shared_ptr<std::function<size_t(size_t)>>> work;
  std::set<size_t> seen;
  for (int i = 0; i < 20; i++)
    work.push_back(std::make_shared<std::function<size_t(size_t)>>([seed, i](size_t x) { return x * 31 + seed + i; }));
  size_t value = seed;
  while (!work.empty()) {
    value = (*work.front())(value) % 1009;
    seen.insert(value);
    work.pop_front();
  }
  return seen.size() + value;
}
}  // namespace part

extern "C" size_t part_run(unsigned seed) {
  return part::index_words<1>(seed) + part::index_words<2>(seed) + part::index_words<3>(seed) + part::match(seed) +
         part::queue(seed);
}
