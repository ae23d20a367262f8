// SPDX-FileCopyrightText: StackPulse contributors
// SPDX-License-Identifier: MIT
// C++ with templates, inlining, exceptions, std::sort, std::map, std::function, virtual calls.
// Built -O2 -g.  usage: tmpl [rounds]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
struct Shape { virtual ~Shape() = default; virtual double area(int depth) const = 0; };
template <int N> struct Poly : Shape {
  double s; explicit Poly(double x) : s(x) {}
  double area(int depth) const override { if (depth <= 0) { if (s > 0.999) throw std::runtime_error("big"); double a = 0; for (int i = 0; i < N * 40; i++) a += s / (i + 1.0 + a); return a; }
    return Poly<(N * 7 + 3) % 5 + 3>(s * 0.99 + 0.001).area(depth - 1) + N; }
};
template <class It, class Cmp> __attribute__((noinline)) void sorted(It a, It b, Cmp c) { std::sort(a, b, c); }
template <class T> T fold(const std::vector<T> &v, std::function<T(T, T)> f) { T r{}; for (auto &x : v) r = f(r, x); return r; }
static unsigned rs = 7; static unsigned rnd() { rs = rs * 1664525u + 1013904223u; return rs >> 8; }
__attribute__((noinline)) static double shapes(int n) { double t = 0; for (int i = 0; i < n; i++) { std::unique_ptr<Shape> p; double x = (rnd() % 1000) / 1000.0; switch (i % 3) { case 0: p = std::make_unique<Poly<3>>(x); break; case 1: p = std::make_unique<Poly<4>>(x); break; default: p = std::make_unique<Poly<6>>(x); }
    try { t += p->area(12 + i % 20); } catch (const std::runtime_error &e) { t += e.what()[0]; } } return t; }
__attribute__((noinline)) static size_t words(int n) { std::map<std::string, int> m; std::unordered_map<int, std::string> h; for (int i = 0; i < n; i++) { std::string k = "key" + std::to_string(rnd() % 997); m[k]++; h[(int)(rnd() % 313)] += k; if (h.size() > 300) h.clear(); } size_t r = 0; for (auto &kv : m) r += kv.first.size() * (size_t)kv.second; return r; }
__attribute__((noinline)) static int thrower(int d) { if (d == 0) throw d; std::string s(20, 'x'); int r = thrower(d - 1); return r + (int)s.size(); }
int main(int c, char **v) {
  int rounds = c > 1 ? atoi(v[1]) : 200; double t = 0; auto t0 = std::chrono::steady_clock::now();
  for (int r = 0; r < rounds; r++) {
    std::vector<double> d(20000); std::generate(d.begin(), d.end(), [] { return (double)rnd(); });
    sorted(d.begin(), d.end(), [](double a, double b) { return a < b; }); std::stable_sort(d.begin(), d.end(), std::greater<double>());
    t += fold<double>(d, [](double a, double b) { return a * 0.5 + b; }) + shapes(800) + (double)words(3000);
    for (int i = 0; i < 40; i++) try { t += thrower(20); } catch (int e) { t += e; }
  }
  printf("%.4f %g\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count(), t);
}
