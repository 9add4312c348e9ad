// Transforms of one axis of random arrays by the vectors of AVX2 and by the processor's baseline, at most how far they
// are apart: two numbers, of f64 and of f32, relative to the largest result.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "fft_lines.h"

using namespace mlirml;

template <class T>
double apart(FourierTransform transform, bool forward, size_t before, size_t n, size_t after) {
  const size_t bins = n / 2 + 1, points_in = transform == kC2R ? bins : n, points_out = transform == kR2C ? bins : n;
  const ptrdiff_t in = (transform == kR2C ? 1 : 2) * sizeof(T), out = (transform == kC2R ? 1 : 2) * sizeof(T);
  const auto strides = [&](size_t points, ptrdiff_t bytes) {
    const auto line = static_cast<ptrdiff_t>(after) * bytes;
    return Strides{static_cast<ptrdiff_t>(points) * line, line, bytes};
  };
  const Pass pass{transform, forward, {before, n, after}, strides(points_in, in), strides(points_out, out), 1};
  std::vector<T> x(before * points_in * after * in / sizeof(T)), first(before * points_out * after * out / sizeof(T), 7);
  std::vector<T> second(first.size(), 8);
  std::mt19937 generator(static_cast<unsigned>(n));
  std::normal_distribution<double> normal;
  for (T &number : x) number = static_cast<T>(normal(generator));
  transform_lines_avx2<T>(pass, x.data(), first.data(), T(0.5));
  transform_lines_baseline<T>(pass, x.data(), second.data(), T(0.5));
  double difference = 0, largest = 0;
  for (size_t i = 0; i < first.size(); i++) {
    difference = std::max(difference, std::abs(double(first[i]) - double(second[i])));
    largest = std::max(largest, std::abs(double(first[i])));
  }
  return difference / largest;
}

int main() {
  double doubles = 0, floats = 0;
  for (size_t n : {1, 2, 3, 4, 5, 8, 17, 64, 100, 256, 1009, 8200})
    for (size_t before : {1, 2, 5, 9})
      for (size_t after : {1, 2, 5, 8, 33})
        for (FourierTransform transform : {kC2C, kR2C, kC2R})
          for (bool forward : {true, false}) {
            if (n * before * after > 20000) continue;
            doubles = std::max(doubles, apart<double>(transform, forward, before, n, after));
            floats = std::max(floats, apart<float>(transform, forward, before, n, after));
          }
  std::printf("%g %g\n", doubles, floats);
}
