// Axes are transformed one after the other: the first one from the operand to the result, the others in the result, each
// in parallel over another dimension. Scaling is part of the first of them.
#include "fft.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "fft_lines.h"
#include "pool.h"
#include "small_transforms.h"

namespace mlirml {
namespace {

template <class T>
void run(const Pass &pass, const void *in, void *out, T factor) try {
  static const TransformLines<T> lines = transform_lines<T>();
  lines(pass, in, out, factor);
} catch (...) {
  std::abort();  // memory is exhausted, and there is no way out of compiled code
}

Strides strides_of(const Sizes &sizes, size_t element) {
  Strides strides(sizes.size());
  size_t step = element;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i]) strides[i] = static_cast<ptrdiff_t>(step);
  return strides;
}

template <class Body>
void in_parallel(int64_t count, int64_t grain, const Body &body) {
  parallel_for([](int64_t lo, int64_t hi, void *context) { (*static_cast<const Body *>(context))(lo, hi); }, 0, count,
               grain, const_cast<void *>(static_cast<const void *>(&body)));
}

// A pass over many short rows that lie one after the other, on all threads; false, and nothing is done, for any other.
template <class T>
bool run_rows(const Pass &pass, const void *in, void *out, T factor) {
  const auto n = static_cast<int64_t>(pass.sizes[pass.axis]);
  int64_t rows = 1;
  for (size_t i = 0; i < pass.axis; i++) rows *= static_cast<int64_t>(pass.sizes[i]);
  for (size_t i = pass.axis + 1; i < pass.sizes.size(); i++)
    if (pass.sizes[i] != 1) return false;
  const RowTransform<T> row = row_transform<T>(pass.transform, n, pass.forward);
  if (!row.kernel || rows < row.lanes) return false;
  constexpr int64_t kWork = 1 << 12;  // numbers that are worth a thread
  in_parallel((rows + row.lanes - 1) / row.lanes, std::max<int64_t>(1, kWork / (n * row.lanes)), [&](int64_t lo, int64_t hi) {
    for (int64_t group = lo; group < hi; group++) {
      const T *from = static_cast<const T *>(in) + group * row.lanes * row.in;
      T *to = static_cast<T *>(out) + group * row.lanes * row.out;
      const int64_t count = std::min(row.lanes, rows - group * row.lanes);
      if (count == row.lanes) {
        row.kernel(from, to, factor);
        continue;
      }
      constexpr int64_t kMost = 64 / sizeof(T) * (2 * kLongest);
      alignas(64) T first[kMost] = {}, last[kMost];
      std::copy_n(from, count * row.in, first);
      row.kernel(first, last, factor);
      std::copy_n(last, count * row.out, to);
    }
  });
  return true;
}

// The pass on all threads, in parts of the longest of the other dimensions.
template <class T>
void run_parallel(const Pass &pass, const void *in, void *out, T factor) {
  if (run_rows(pass, in, out, factor)) return;
  constexpr int64_t kWork = 1 << 14;  // elements that are worth a thread
  size_t split = pass.axis, elements = 1;
  for (size_t i = 0; i < pass.sizes.size(); i++) {
    elements *= pass.sizes[i];
    if (i != pass.axis && (split == pass.axis || pass.sizes[i] > pass.sizes[split])) split = i;
  }
  if (split == pass.axis || static_cast<int64_t>(elements) < 2 * kWork) return run(pass, in, out, factor);
  const int64_t count = static_cast<int64_t>(pass.sizes[split]);
  const int64_t grain = std::max<int64_t>(1, kWork * count / static_cast<int64_t>(elements));
  const auto body = [&](int64_t lo, int64_t hi) {
    Pass part = pass;
    part.sizes[split] = static_cast<size_t>(hi - lo);
    run(part, static_cast<const char *>(in) + lo * pass.in_strides[split],
        static_cast<char *>(out) + lo * pass.out_strides[split], factor);
  };
  in_parallel(count, grain, body);
}

template <class T>
void transform(const void *in, void *out, Sizes sizes, int64_t mode) {
  constexpr size_t kReal = sizeof(T), kComplex = 2 * sizeof(T);
  const auto kind = static_cast<FourierTransform>(mode & kTransform);
  const bool forward = !(mode & kBackward);
  Sizes axes;
  for (size_t i = 0; i < sizes.size(); i++)
    if (mode >> kAxesShift & int64_t(1) << i) axes.push_back(i);
  const size_t last = axes.back();
  Sizes real_sizes = sizes;
  if (kind == kC2R) real_sizes[last] = 2 * (sizes[last] - 1) + (mode & kOdd ? 1 : 0);
  Sizes complex_sizes = kind == kR2C ? real_sizes : sizes;
  if (kind == kR2C) complex_sizes[last] = sizes[last] / 2 + 1;
  double count = 1;
  for (size_t axis : axes) count *= static_cast<double>(real_sizes[axis]);
  T factor = static_cast<T>(mode & kByCount ? 1 / count : mode & kByRoot ? 1 / std::sqrt(count) : 1);

  const Strides complex_strides = strides_of(complex_sizes, kComplex);
  if (kind == kR2C) {
    run_parallel<T>({kR2C, forward, real_sizes, strides_of(real_sizes, kReal), complex_strides, last}, in, out, factor);
    axes.pop_back();
    in = out, factor = 1;
  }
  std::unique_ptr<char[]> kept;
  void *to = out;
  if (kind == kC2R) {
    axes.pop_back();
    if (!axes.empty()) {  // the other axes of the spectrum, apart from the operand
      size_t size = kComplex;
      for (size_t n : complex_sizes) size *= n;
      kept.reset(new char[size]);
      to = kept.get();
    }
  }
  // The last axis first: its numbers lie beside each other.
  for (size_t i = axes.size(); i-- > 0; in = to, factor = 1)
    run_parallel<T>({kC2C, forward, complex_sizes, complex_strides, complex_strides, axes[i]}, in, to, factor);
  if (kind == kC2R)
    run_parallel<T>({kC2R, forward, real_sizes, complex_strides, strides_of(real_sizes, kReal), last}, in, out, factor);
}

}  // namespace
}  // namespace mlirml

extern "C" void mlirml_fft(const void *in, void *out, int64_t d0, int64_t d1, int64_t d2, int64_t d3, int64_t d4,
                           int64_t d5, int64_t d6, int64_t d7, int64_t mode, int64_t kind) try {
  mlirml::Sizes sizes;
  for (int64_t size : {d0, d1, d2, d3, d4, d5, d6, d7}) sizes.push_back(static_cast<size_t>(size));
  switch (kind) {
    case 'f' | 4 << 8:
    case 'c' | 8 << 8: return mlirml::transform<float>(in, out, std::move(sizes), mode);
    case 'f' | 8 << 8:
    case 'c' | 16 << 8: return mlirml::transform<double>(in, out, std::move(sizes), mode);
    default: std::abort();  // the compiler writes no other
  }
} catch (const std::bad_alloc &) {
  std::abort();
}
