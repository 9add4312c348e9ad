// Axes are transformed one after the other: the first one from the operand to the result, the others in the result, each
// in parallel over another dimension. Scaling is part of the first of them.
#include "fft.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "library_modes.h"
#include "pool.h"
#include "small_transforms.h"

#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 64

// pocketfft is included once for each instruction set, under another name.
#define pocketfft pocketfft_baseline
#include "pocketfft_hdronly.h"
#undef pocketfft
#undef POCKETFFT_HDRONLY_H
#undef POCKETFFT_NO_VECTORS
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MLIRML_VECTOR_CLONES 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define pocketfft pocketfft_avx2
#include "pocketfft_hdronly.h"
#undef pocketfft
#undef POCKETFFT_HDRONLY_H
#undef POCKETFFT_NO_VECTORS
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")
#define pocketfft pocketfft_avx512
#include "pocketfft_hdronly.h"
#undef pocketfft
#pragma GCC pop_options
#endif

namespace mlirml {
namespace {

using Sizes = std::vector<size_t>;
using Strides = std::vector<ptrdiff_t>;

// One transform of one axis of arrays of `sizes` (of the real array where there is one) with byte strides.
struct Pass {
  FourierTransform transform;
  bool forward;
  Sizes sizes;
  Strides in_strides, out_strides;
  size_t axis;
};

#define MLIRML_RUN(name, library)                                                                                   \
  template <class T>                                                                                                \
  void name(const Pass &pass, const void *in, void *out, T factor) {                                                \
    using Complex = std::complex<T>;                                                                                \
    if (pass.transform == kC2C)                                                                                     \
      library::c2c(pass.sizes, pass.in_strides, pass.out_strides, {pass.axis}, pass.forward,                        \
                   static_cast<const Complex *>(in), static_cast<Complex *>(out), factor);                          \
    else if (pass.transform == kR2C)                                                                                \
      library::r2c(pass.sizes, pass.in_strides, pass.out_strides, pass.axis, pass.forward,                          \
                   static_cast<const T *>(in), static_cast<Complex *>(out), factor);                                \
    else                                                                                                            \
      library::c2r(pass.sizes, pass.in_strides, pass.out_strides, pass.axis, pass.forward,                          \
                   static_cast<const Complex *>(in), static_cast<T *>(out), factor);                                \
  }
MLIRML_RUN(run_baseline, pocketfft_baseline)
#ifdef MLIRML_VECTOR_CLONES
MLIRML_RUN(run_avx2, pocketfft_avx2)
MLIRML_RUN(run_avx512, pocketfft_avx512)
#endif

template <class T>
void run(const Pass &pass, const void *in, void *out, T factor) try {
#ifdef MLIRML_VECTOR_CLONES
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return run_avx512<T>(pass, in, out, factor);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return run_avx2<T>(pass, in, out, factor);
#endif
  run_baseline<T>(pass, in, out, factor);
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

template <class T>
void run_parallel(const Pass &pass, const void *in, void *out, T factor);

// exp(-2 pi i r c / n) for the elements (r, c) of a matrix of n elements.
template <class T>
struct Twiddles {
  size_t rows, columns;
  std::vector<std::complex<T>> roots;

  Twiddles(size_t rows, size_t columns) : rows(rows), columns(columns), roots(rows * columns) {
    const pocketfft_baseline::detail::sincos_2pibyn<T> root(rows * columns);
    for (size_t r = 0; r < rows; r++)
      for (size_t c = 0; c < columns; c++) {
        const auto found = root[r * c];
        roots[r * columns + c] = {found.r, -found.i};
      }
  }
};

// Those of the last few sizes are kept.
template <class T>
std::shared_ptr<const Twiddles<T>> twiddles_of(size_t rows, size_t columns) {
  constexpr size_t kMost = 4;
  static std::mutex mutex;
  static std::vector<std::shared_ptr<const Twiddles<T>>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  for (const auto &one : known)
    if (one->rows == rows && one->columns == columns) return one;
  if (known.size() == kMost) known.erase(known.begin());
  known.push_back(std::make_shared<Twiddles<T>>(rows, columns));
  return known.back();
}

// x[i] times a root, or its conjugate.
template <class T>
void multiply(std::complex<T> *x, const std::complex<T> *roots, size_t n, bool conjugated) {
  T *const parts = reinterpret_cast<T *>(x);
  const T *const factors = reinterpret_cast<const T *>(roots), sign = conjugated ? T(-1) : T(1);
  for (size_t i = 0; i < n; i++) {
    const T re = parts[2 * i], im = parts[2 * i + 1], c = factors[2 * i], s = sign * factors[2 * i + 1];
    parts[2 * i] = re * c - im * s;
    parts[2 * i + 1] = re * s + im * c;
  }
}

// A pass over a few long rows, which are taken for matrices (Bailey, "FFTs in external or hierarchical memory", 1990):
// pocketfft computes as many rows at once as a vector has lanes, and a long row alone without vectors. The columns of the
// matrix are transformed, its elements multiplied by roots of one, and its rows transformed into columns of the result.
// False, and nothing is done, where the rows are short or many, so long that their roots would take too much memory, or
// of a number of points that pocketfft does not take apart into steps of whole pages, which evict each other from the
// cache: 65,536 points in f32 take a third of the time as a matrix, 20,000 1.2 times as long.
template <class T>
bool run_long(const Pass &pass, const void *in, void *out, T factor) {
  constexpr size_t kShort = sizeof(T) == 8 ? 1 << 16 : 1 << 12, kBetween = 1 << 11, kLong = 1 << 20, kNarrow = 32, kMany = 64 / sizeof(T), kComplex = 2 * sizeof(T);
  const size_t n = pass.sizes[pass.axis];
  size_t lines = 1;
  for (size_t size : pass.sizes) lines *= size;
  lines /= std::max<size_t>(n, 1);
  const bool dense = pass.in_strides[pass.axis] == kComplex && pass.out_strides[pass.axis] == kComplex;
  if (pass.transform != kC2C || n < kShort || n > kLong || n % kBetween != 0 || lines >= kMany || !dense) return false;
  size_t rows = static_cast<size_t>(std::sqrt(static_cast<double>(n)));
  while (n % rows != 0 || n / rows <= static_cast<size_t>(kLongest)) rows--;  // `run_rows` takes dense results alone
  if (rows < kNarrow) return false;
  const size_t columns = n / rows;
  const auto roots = twiddles_of<T>(rows, columns);
  const std::unique_ptr<std::complex<T>[]> matrix(new std::complex<T>[n]);
  const Sizes sizes{rows, columns};
  const Strides by_rows = strides_of(sizes, kComplex);
  const Strides by_columns{static_cast<ptrdiff_t>(kComplex), static_cast<ptrdiff_t>(rows * kComplex)};
  for (size_t line = 0; line < lines; line++) {
    ptrdiff_t from = 0, to = 0;
    for (size_t dim = pass.sizes.size(), rest = line; dim-- > 0;) {
      if (dim == pass.axis) continue;
      const auto index = static_cast<ptrdiff_t>(rest % pass.sizes[dim]);
      rest /= pass.sizes[dim];
      from += index * pass.in_strides[dim];
      to += index * pass.out_strides[dim];
    }
    run_parallel<T>({kC2C, pass.forward, sizes, by_rows, by_rows, 0}, static_cast<const char *>(in) + from,
                    matrix.get(), factor);
    multiply(matrix.get(), roots->roots.data(), n, !pass.forward);
    run_parallel<T>({kC2C, pass.forward, sizes, by_rows, by_columns, 1}, matrix.get(), static_cast<char *>(out) + to,
                    T(1));
  }
  return true;
}

// A pass over one long row of an even number of real points, as one of half as many complex ones: Z of z = x[0::2] +
// i x[1::2] has the transforms of both, and X = even + exp(-2 pi i k / n) odd. False, and nothing is done, for others, and
// in f64, where pocketfft's real transform is faster.
template <class T>
bool run_long_real(const Pass &pass, const void *in, void *out, T factor) {
  using Complex = std::complex<T>;
  const size_t n = pass.sizes[pass.axis], half = n / 2;
  size_t elements = 1;
  for (size_t size : pass.sizes) elements *= size;
  if (sizeof(T) == 8 || pass.transform != kR2C || !pass.forward || elements != n || n % 2 != 0) return false;
  Complex *const x = static_cast<Complex *>(out);
  constexpr ptrdiff_t kComplex = sizeof(Complex);
  if (!run_long<T>({kC2C, true, {half}, {kComplex}, {kComplex}, 0}, in, x, factor)) return false;
  const auto table = twiddles_of<T>(2, half);
  const Complex *const roots = table->roots.data() + half, first = x[0];  // the second row: exp(-2 pi i k / n)
  x[half] = Complex(first.real() - first.imag(), 0);
  x[0] = Complex(first.real() + first.imag(), 0);
  for (size_t k = 1; k <= half - k; k++) {
    const Complex a = x[k], b = std::conj(x[half - k]), even = (a + b) * T(0.5), apart = (a - b) * T(0.5);
    const T c = roots[k].real(), s = roots[k].imag(), re = apart.imag(), im = -apart.real();  // odd: apart / i
    const Complex odd(re * c - im * s, re * s + im * c);
    x[k] = even + odd;
    x[half - k] = std::conj(even - odd);
  }
  return true;
}

// The pass on all threads, in parts of the longest of the other dimensions.
template <class T>
void run_parallel(const Pass &pass, const void *in, void *out, T factor) {
  if (run_rows(pass, in, out, factor) || run_long(pass, in, out, factor) || run_long_real(pass, in, out, factor)) return;
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
