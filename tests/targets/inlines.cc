// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// Templates and inlined calls: outer < middle<N> < innermost, only the first of them a real call.
// usage: inlines SECONDS
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace shape {

template <class T, int N> struct Mixer {
	std::vector<T> table;

	__attribute__((always_inline)) inline T innermost(T x, int i) const
	{
		T y = x ^ table[(x + i) % table.size()];
		return y * 31 + (y >> 5);
	}

	__attribute__((always_inline)) inline T middle(T x) const
	{
		for (int i = 0; i < N; i++)
			x += innermost(x, i);
		return x;
	}
};

template <class T> __attribute__((noinline)) T outer(const Mixer<T, 64> &mixer, T x)
{
	for (int round = 0; round < 20000; round++)
		x ^= mixer.middle(x + round);
	return x;
}

} // namespace shape

int main(int argc, char **argv)
{
	using clock = std::chrono::steady_clock;
	auto end = clock::now() + std::chrono::duration<double>(argc > 1 ? atof(argv[1]) : 2.0);
	// Each has code of its own: one loop has few instructions at which a timer finds it.
	shape::Mixer<uint32_t, 64> mixer{std::vector<uint32_t>(1021, 7)};
	shape::Mixer<uint64_t, 64> wide{std::vector<uint64_t>(1021, 7)};
	shape::Mixer<uint16_t, 64> narrow{std::vector<uint16_t>(1021, 7)};
	uint32_t x = argc;

	while (clock::now() < end) {
		x += shape::outer<uint32_t>(mixer, x);
		x += shape::outer<uint64_t>(wide, x);
		x += shape::outer<uint16_t>(narrow, x);
	}
	printf("%x\n", x);
	return 0;
}
