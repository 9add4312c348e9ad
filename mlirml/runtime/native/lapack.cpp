// Row after row, a matrix is for LAPACK its transpose. The inverse of the transpose is the transpose of the inverse, and
// in @ x = b is x.T @ in.T = b.T, which is solved from the right: nothing is transposed in memory, and only what LAPACK
// overwrites is copied. A Cholesky factor is the exception, see there.
#include "lapack.h"

#include "library_modes.h"
#include "pool.h"
#include "small_matrices.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

namespace mlirml {
namespace {

enum Routine { kPotrf, kGetrf, kGetri, kGetrs, kTrsm, kGeqrf, kOrgqr, kGesdd, kSyevd, kGeev, kRoutines };
constexpr const char *kNames[2][kRoutines] = {
    {"potrf", "getrf", "getri", "getrs", "trsm", "geqrf", "orgqr", "gesdd", "syevd", "geev"},
    {"potrf", "getrf", "getri", "getrs", "trsm", "geqrf", "ungqr", "gesdd", "heevd", "geev"}};
constexpr char kLetters[] = "sdcz";

void *functions[4][kRoutines];
bool found = false, wide = false;  // whether they are there, and have 64-bit integers

template <class T>
constexpr int kType = std::is_same_v<T, float> ? 0 : std::is_same_v<T, double> ? 1 : sizeof(T) == 8 ? 2 : 3;

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

// A Fortran function, all of whose parameters are pointers. Lengths of its `texts` parameters of text go last.
template <int texts = 0, class... Pointers>
void call(int type, Routine name, Pointers... pointers) {
  void *function = functions[type][name];
  if constexpr (texts == 0)
    reinterpret_cast<void (*)(Pointers...)>(function)(pointers...);
  else if constexpr (texts == 1)
    reinterpret_cast<void (*)(Pointers..., size_t)>(function)(pointers..., 1);
  else if constexpr (texts == 2)
    reinterpret_cast<void (*)(Pointers..., size_t, size_t)>(function)(pointers..., 1, 1);
  else
    reinterpret_cast<void (*)(Pointers..., size_t, size_t, size_t, size_t)>(function)(pointers..., 1, 1, 1, 1);
}

// Memory for complex numbers, too, is not touched before LAPACK writes it.
struct Free {
  void operator()(void *memory) const { std::free(memory); }
};

template <class T>
std::unique_ptr<T[], Free> scratch(int64_t size) {
  void *memory = std::malloc(sizeof(T) * static_cast<size_t>(std::max<int64_t>(size, 1)));
  if (!memory) std::abort();  // there is no way out of compiled code
  return std::unique_ptr<T[], Free>(static_cast<T *>(memory));
}

template <class T>
T not_a_number() {
  if constexpr (kType<T> < 2) {
    return std::numeric_limits<T>::quiet_NaN();
  } else {
    using Real = typename T::value_type;
    return {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::quiet_NaN()};
  }
}

// Whether no element of an array is NaN or infinite: some of LAPACK's iterations do not end for one that is.
template <class T>
bool all_finite(const T *x, int64_t count) {
  T differences = 0;
  for (int64_t i = 0; i < count; i++) differences += x[i] - x[i];
  return differences == T(0);
}

// Calls body(lo, hi) for parts of a stack of matrices of `size` rows or columns, on all threads where they are small. The
// library has threads of its own for large ones.
template <class Body>
void each_part(int64_t count, int64_t size, Body body) {
  constexpr int64_t kLarge = 96, kWork = 1 << 16;
  if (count == 1 || size > kLarge) return body(0, count);
  const int64_t grain = std::max<int64_t>(kWork / (size * size * size + 64), 1);
  parallel_for([](int64_t lo, int64_t hi, void *context) { (*static_cast<Body *>(context))(lo, hi); }, 0, count, grain,
               &body);
}

// Groups of small real matrices by the kernel that `pick` selects of them, and parts(lo, hi) for all others. `in`, `right`
// and `out` have so many elements a matrix.
template <class T, class Pick, class Parts>
void each_group(Pick pick, const T *in, const T *right, T *out, int64_t count, int64_t rows, int64_t columns,
                int64_t mode, int64_t in_size, int64_t right_size, int64_t out_size, Parts parts) {
  const int64_t most = std::max(rows, columns);
  if constexpr (kType<T> < 2) {
    const SmallKernels<T> &kernels = small_kernels<T>();
    if (most <= kSmall && count >= kernels.lanes) {
      const int64_t lanes = kernels.lanes, groups = count / lanes;
      const auto run = [=, &kernels](int64_t lo, int64_t hi) {
        for (int64_t group = lo; group < hi; group++) {
          const int64_t first = group * lanes;
          if (!pick(kernels)(in + first * in_size, right ? right + first * right_size : nullptr,
                             out + first * out_size, rows, columns, mode))
            parts(first, first + lanes);
        }
      };
      each_part(groups, most, run);
      return parts(groups * lanes, count);
    }
  }
  each_part(count, most, parts);
}

template <class T, class Int>
struct Matrices {
  using Element = T;
  using Real = typename RealOf<T>::type;
  static constexpr bool kComplex = !std::is_same_v<T, Real>;
  static constexpr int kKind = kType<T>;

  // The lower triangle is transposed in memory, and the factor back: OpenBLAS takes a third longer for an upper one.
  static void cholesky(const T *in, T *out, int64_t count, int64_t n) {
    const auto parts = [=](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; i++) factor_definite(in + i * n * n, out + i * n * n, n);
    };
    constexpr int64_t kCached = 1 << 20;  // bytes of a stack that a cache of the second level may still have
    const int64_t fetch = count * n * n * static_cast<int64_t>(sizeof(T)) > kCached ? 1 : 0;
    each_group([](const auto &kernels) { return kernels.cholesky; }, in, static_cast<const T *>(nullptr), out, count, n,
               n, fetch, n * n, 0, n * n, parts);
  }

  static void factor_definite(const T *in, T *out, int64_t n) {
    each_below_diagonal(n, [&](int64_t below, int64_t above) { out[above] = in[below]; });
    for (int64_t k = 0; k < n; k++) out[k * (n + 1)] = in[k * (n + 1)];
    const Int size = static_cast<Int>(n);
    Int info = 0;
    call<1>(kKind, kPotrf, "L", &size, out, &size, &info);
    each_below_diagonal(n, [&](int64_t below, int64_t above) {
      out[below] = info == 0 ? out[above] : not_a_number<T>();
      out[above] = T(0);
    });
    for (int64_t k = 0; k < n && info != 0; k++) out[k * (n + 1)] = not_a_number<T>();
  }

  // Calls `use` with the places of the elements below the diagonal and of their mirror images, in blocks of whole lines
  // of the cache.
  template <class Use>
  static void each_below_diagonal(int64_t n, Use use) {
    constexpr int64_t block = std::max<int64_t>(64 / sizeof(T), 8);
    for (int64_t first = 0; first < n; first += block)
      for (int64_t left = 0; left <= first; left += block)
        for (int64_t row = first; row < std::min(first + block, n); row++)
          for (int64_t column = left; column < std::min(left + block, row); column++)
            use(row * n + column, column * n + row);
  }

  // out[column, row] = in[row, column]; `stride` elements lie between the starts of the rows of `in`.
  static void transpose(const T *in, T *out, int64_t rows, int64_t columns, int64_t stride) {
    constexpr int64_t block = std::max<int64_t>(64 / sizeof(T), 8);
    for (int64_t first = 0; first < rows; first += block)
      for (int64_t left = 0; left < columns; left += block)
        for (int64_t row = first; row < std::min(first + block, rows); row++)
          for (int64_t column = left; column < std::min(left + block, columns); column++)
            out[column * rows + row] = in[row * stride + column];
  }

  static void inverse(const T *in, T *out, int64_t count, int64_t n) {
    const auto parts = [=](int64_t lo, int64_t hi) {
      const Int order = static_cast<Int>(n), size = static_cast<Int>(n * kBlock);
      const auto pivots = scratch<Int>(n);
      const auto work = scratch<T>(size);
      for (int64_t i = lo; i < hi; i++) {
        T *const to = out + i * n * n;
        std::memmove(static_cast<void *>(to), in + i * n * n, sizeof(T) * static_cast<size_t>(n * n));
        Int info = factor(order, order, to, pivots.get());
        if (info == 0) call(kKind, kGetri, &order, to, &order, pivots.get(), work.get(), &size, &info);
        // A NaN of the matrix does not reach all elements by itself, as by the order of NumPy's operations.
        const bool spoilt = std::any_of(to, to + n * n, [](const T &x) { return x != x; });
        if (info != 0 || spoilt) std::fill_n(to, n * n, not_a_number<T>());
      }
    };
    each_group([](const auto &kernels) { return kernels.inverse; }, in, static_cast<const T *>(nullptr), out, count, n, n, 0, n * n, 0, n * n, parts);
  }

  static Int factor(Int rows, Int columns, T *a, Int *pivots) {
    Int info = 0;
    call(kKind, kGetrf, &rows, &columns, a, &rows, pivots, &info);
    return info;
  }

  static void lu_diagonal(const T *in, T *out, int64_t count, int64_t n) {
    const auto parts = [=](int64_t lo, int64_t hi) {
      const Int order = static_cast<Int>(n);
      const auto pivots = scratch<Int>(n);
      const auto factors = scratch<T>(n * n);
      for (int64_t i = lo; i < hi; i++) {
        T *const to = out + i * (n + 1);
        std::memcpy(static_cast<void *>(factors.get()), in + i * n * n, sizeof(T) * static_cast<size_t>(n * n));
        factor(order, order, factors.get(), pivots.get());
        T sign = 1;
        for (int64_t k = 0; k < n; k++) {
          to[k] = factors[k * n + k];
          if (pivots[k] != k + 1) sign = -sign;
        }
        to[n] = sign;
      }
    };
    each_group([](const auto &kernels) { return kernels.lu_diagonal; }, in, static_cast<const T *>(nullptr), out, count, n, n, 0, n * n, 0, n + 1, parts);
  }

  // For each matrix the factors in one matrix, the row that row k is exchanged with, and the permutation.
  static void lu(const T *in, T *out, int64_t count, int64_t rows, int64_t columns) {
    const int64_t least = std::min(rows, columns), area = rows * columns, size = area + least + rows;
    each_part(count, std::max(rows, columns), [=](int64_t lo, int64_t hi) {
      const auto pivots = scratch<Int>(least);
      const auto factors = scratch<T>(area);
      for (int64_t i = lo; i < hi; i++) {
        T *const to = out + i * size, *const changes = to + area, *const permutation = changes + least;
        transpose(in + i * area, factors.get(), rows, columns, columns);
        factor(static_cast<Int>(rows), static_cast<Int>(columns), factors.get(), pivots.get());
        transpose(factors.get(), to, columns, rows, rows);
        for (int64_t k = 0; k < rows; k++) permutation[k] = static_cast<Real>(k);
        for (int64_t k = 0; k < least; k++) {
          changes[k] = static_cast<Real>(pivots[k] - 1);
          std::swap(permutation[k], permutation[pivots[k] - 1]);
        }
      }
    });
  }

  static void solve(const T *in, const T *right, T *out, int64_t count, int64_t n, int64_t columns) {
    const auto parts = [=](int64_t lo, int64_t hi) {
      const auto pivots = scratch<Int>(n);
      const auto factors = scratch<T>(n * n);
      const auto transposed = scratch<T>(columns < kColumns ? n * columns : 0);
      for (int64_t i = lo; i < hi; i++) {
        std::memcpy(static_cast<void *>(factors.get()), in + i * n * n, sizeof(T) * static_cast<size_t>(n * n));
        solve_one(factors.get(), pivots.get(), transposed.get(), right + i * n * columns, out + i * n * columns, n,
                  columns);
      }
    };
    each_group([](const auto &kernels) { return kernels.solve; }, in, right, out, count, n, columns, 0, n * n, n * columns, n * columns, parts);
  }

  static void solve_one(T *factors, Int *pivots, T *transposed, const T *right, T *out, int64_t n, int64_t columns) {
    const Int order = static_cast<Int>(n), number = static_cast<Int>(columns);
    Int info = factor(order, order, factors, pivots);
    if (info != 0) {
      std::fill_n(out, n * columns, not_a_number<T>());
    } else if (columns < kColumns) {
      transpose(right, transposed, n, columns, columns);
      call<1>(kKind, kGetrs, "T", &order, &number, factors, &order, pivots, transposed, &order, &info);
      transpose(transposed, out, columns, n, n);
    } else if (n <= kMostRows) {
      solve_rows_of(factors, pivots, right, out, n, columns);
    } else {
      std::memmove(static_cast<void *>(out), right, sizeof(T) * static_cast<size_t>(n * columns));
      // in.T = P L U, and x.T = b.T @ inverse(U) @ inverse(L) @ P.T
      divide_right("U", "N", "N", number, order, factors, out);
      divide_right("L", "N", "U", number, order, factors, out);
      for (int64_t k = n - 1; k >= 0; k--) {
        const int64_t other = pivots[k] - 1;
        if (other != k) std::swap_ranges(out + k * columns, out + (k + 1) * columns, out + other * columns);
      }
    }
  }

  // OpenBLAS takes up to three times as long for such triangles, most of it to copy them.
  static void solve_rows_of(const T *factors, const Int *pivots, const T *right, T *out, int64_t n, int64_t columns) {
    T reciprocals[kMostRows];
    int64_t order[kMostRows];
    for (int64_t k = 0; k < n; k++) {
      reciprocals[k] = T(1) / factors[k * (n + 1)];
      order[k] = k;
    }
    for (int64_t k = n - 1; k >= 0; k--) std::swap(order[k], order[pivots[k] - 1]);
    solve_rows<Real, kComplex>()(parts_of(factors), parts_of(reciprocals), order, parts_of(right),
                                 reinterpret_cast<Real *>(out), n, columns);
  }

  static const Real *parts_of(const T *numbers) { return reinterpret_cast<const Real *>(numbers); }

  // b = b @ inverse(a) for rows x n elements of b, column after column.
  static void divide_right(const char *triangle, const char *transposed, const char *diagonal, Int rows, Int n,
                           const T *a, T *b) {
    const T one = 1;
    call<4>(kKind, kTrsm, "R", triangle, transposed, diagonal, &rows, &n, &one, a, &n, b, &rows);
  }

  static void triangular_solve(const T *in, const T *right, T *out, int64_t count, int64_t n, int64_t columns,
                               int64_t mode) {
    each_part(count, n, [=](int64_t lo, int64_t hi) {
      const char *const way = mode & kTransposed ? mode & kConjugated ? "C" : "T" : "N";
      for (int64_t i = lo; i < hi; i++) {
        T *const to = out + i * n * columns;
        std::memmove(static_cast<void *>(to), right + i * n * columns, sizeof(T) * static_cast<size_t>(n * columns));
        divide_right(mode & kLower ? "U" : "L", way, mode & kUnit ? "U" : "N", static_cast<Int>(columns),
                     static_cast<Int>(n), in + i * n * n, to);
      }
    });
  }

  static void qr(const T *in, T *out, int64_t count, int64_t m, int64_t n, int64_t mode) {
    const int64_t least = std::min(m, n), wanted = mode == kQrComplete ? m : least;
    const int64_t size = mode == kQrRaw ? m * n + least : mode == kQrR ? least * n : wanted * (m + n);
    const auto parts = [=](int64_t lo, int64_t hi) {
      const Int rows = static_cast<Int>(m), columns = static_cast<Int>(n), kept = static_cast<Int>(wanted),
                number = static_cast<Int>(least);
      const auto a = scratch<T>(m * std::max(n, wanted));
      const auto tau = scratch<T>(least);
      Int info = 0, length = -1;
      T first = 0, second = 0;
      call(kKind, kGeqrf, &rows, &columns, a.get(), &rows, tau.get(), &first, &length, &info);
      call(kKind, kOrgqr, &rows, &kept, &number, a.get(), &rows, tau.get(), &second, &length, &info);
      length = static_cast<Int>(std::max(std::real(first), std::real(second)));
      const auto work = scratch<T>(length);
      for (int64_t i = lo; i < hi; i++) {
        T *to = out + i * size;
        transpose(in + i * m * n, a.get(), m, n, n);
        call(kKind, kGeqrf, &rows, &columns, a.get(), &rows, tau.get(), work.get(), &length, &info);
        if (mode == kQrRaw) {
          to = std::copy_n(a.get(), m * n, to);
          std::copy_n(tau.get(), least, to);
          continue;
        }
        T *const upper = mode == kQrR ? to : to + m * wanted;
        transpose(a.get(), upper, n, least, m);
        for (int64_t row = 0; row < wanted; row++) std::fill_n(upper + row * n, row < least ? row : n, T(0));
        if (mode == kQrR) continue;
        call(kKind, kOrgqr, &rows, &kept, &number, a.get(), &rows, tau.get(), work.get(), &length, &info);
        transpose(a.get(), to, wanted, m, m);
      }
    };
    if (mode == kQrRaw) return each_part(count, std::max(m, n), parts);
    each_group([](const auto &kernels) { return kernels.qr; }, in, static_cast<const T *>(nullptr), out, count, m, n, mode, m * n, 0, size, parts);
  }

  // The singular values, U and Vh, and zero where the iteration converged.
  static void svd(const T *in, T *out, int64_t count, int64_t m, int64_t n, int64_t mode) {
    const int64_t least = std::min(m, n), left = mode == kSvdFull ? m : least, right = mode == kSvdFull ? n : least;
    const int64_t vectors = mode == kSvdValues ? 0 : m * left + right * n, size = least + vectors + 1;
    const auto parts = [=](int64_t lo, int64_t hi) {
      const char *const wanted = mode == kSvdValues ? "N" : mode == kSvdFull ? "A" : "S";
      const Int rows = static_cast<Int>(m), columns = static_cast<Int>(n),
                second = static_cast<Int>(std::max<int64_t>(right, 1));
      const auto a = scratch<T>(m * n), u = scratch<T>(m * left), vh = scratch<T>(right * n);
      const auto values = scratch<Real>(least);
      const int64_t more = std::max(m, n);
      const auto real_work = scratch<Real>(
          kComplex ? least * std::max(5 * least + 7, 2 * more + 2 * least + 1) : int64_t{1});
      const auto integers = scratch<Int>(8 * least);
      Int info = 0, length = -1;
      T best = 0;
      const auto run = [&](T *work) {
        if constexpr (kComplex)
          call<1>(kKind, kGesdd, wanted, &rows, &columns, a.get(), &rows, values.get(), u.get(), &rows, vh.get(),
                  &second, work, &length, real_work.get(), integers.get(), &info);
        else
          call<1>(kKind, kGesdd, wanted, &rows, &columns, a.get(), &rows, values.get(), u.get(), &rows, vh.get(),
                  &second, work, &length, integers.get(), &info);
      };
      run(&best);
      length = static_cast<Int>(std::real(best));
      const auto work = scratch<T>(length);
      for (int64_t i = lo; i < hi; i++) {
        T *to = out + i * size;
        transpose(in + i * m * n, a.get(), m, n, n);
        info = 1;
        if (all_finite(in + i * m * n, m * n)) run(work.get());
        if (info != 0) {
          std::fill_n(to, size - 1, not_a_number<T>());
        } else {
          to = std::copy_n(values.get(), least, to);
          if (vectors) transpose(u.get(), to, left, m, m), transpose(vh.get(), to + m * left, n, right, right);
        }
        out[(i + 1) * size - 1] = info != 0 ? T(1) : T(0);
      }
    };
    each_group([](const auto &kernels) { return kernels.svd; }, in, static_cast<const T *>(nullptr), out, count, m, n, mode, m * n, 0, size, parts);
  }

  // The eigenvalues, the eigenvectors as columns, and zero where the iteration converged.
  static void eigh(const T *in, T *out, int64_t count, int64_t n, int64_t mode) {
    const int64_t vectors = mode & kVectors ? n * n : 0, size = n + vectors + 1;
    const auto parts = [=](int64_t lo, int64_t hi) {
      const char *const wanted = vectors ? "V" : "N", *const triangle = mode & kUpper ? "U" : "L";
      const Int order = static_cast<Int>(n);
      const auto a = scratch<T>(n * n);
      const auto values = scratch<Real>(n);
      Int info = 0, length = -1, reals = -1, integers = -1, best_integers = 0;
      T best = 0;
      Real best_reals = 0;
      const auto run = [&](T *work, Real *real_work, Int *integer_work) {
        if constexpr (kComplex)
          call<2>(kKind, kSyevd, wanted, triangle, &order, a.get(), &order, values.get(), work, &length, real_work,
                  &reals, integer_work, &integers, &info);
        else
          call<2>(kKind, kSyevd, wanted, triangle, &order, a.get(), &order, values.get(), work, &length, integer_work,
                  &integers, &info);
      };
      run(&best, &best_reals, &best_integers);
      length = static_cast<Int>(std::real(best)), reals = static_cast<Int>(best_reals), integers = best_integers;
      const auto work = scratch<T>(length);
      const auto real_work = scratch<Real>(reals);
      const auto integer_work = scratch<Int>(integers);
      for (int64_t i = lo; i < hi; i++) {
        T *const to = out + i * size;
        const T *const from = in + i * n * n;
        transpose(from, a.get(), n, n, n);
        bool finite = true;  // in the triangle that is read
        for (int64_t k = 0; k < n; k++)
          finite &= mode & kUpper ? all_finite(from + k * (n + 1), n - k) : all_finite(from + k * n, k + 1);
        info = 1;
        if (finite) run(work.get(), real_work.get(), integer_work.get());
        if (info != 0) {
          std::fill_n(to, size - 1, not_a_number<T>());
        } else {
          std::copy_n(values.get(), n, to);
          if (vectors) transpose(a.get(), to + n, n, n, n);
        }
        to[size - 1] = info != 0 ? T(1) : T(0);
      }
    };
    each_group([](const auto &kernels) { return kernels.eigh; }, in, static_cast<const T *>(nullptr), out, count, n, n, mode, n * n, 0, size, parts);
  }

  // The same for matrices without symmetry: complex numbers for real matrices, too.
  static void eig(const T *in, std::complex<Real> *out, int64_t count, int64_t n, int64_t mode) {
    using Complex = std::complex<Real>;
    const int64_t vectors = mode & kVectors ? n * n : 0, size = n + vectors + 1;
    const auto parts = [=](int64_t lo, int64_t hi) {
      const char *const wanted = vectors ? "V" : "N";
      const Int order = static_cast<Int>(n);
      const auto a = scratch<T>(n * n), right = scratch<T>(vectors), values = scratch<T>(n);
      const auto others = scratch<Real>(kComplex ? 2 * n : n);  // imaginary parts, or memory to work in
      Int info = 0, length = -1;
      T best = 0, none = 0;
      const auto run = [&](T *work) {
        if constexpr (kComplex)
          call<2>(kKind, kGeev, "N", wanted, &order, a.get(), &order, values.get(), &none, &order, right.get(), &order,
                  work, &length, others.get(), &info);
        else
          call<2>(kKind, kGeev, "N", wanted, &order, a.get(), &order, values.get(), others.get(), &none, &order,
                  right.get(), &order, work, &length, &info);
      };
      run(&best);
      length = static_cast<Int>(std::real(best));
      const auto work = scratch<T>(length);
      for (int64_t i = lo; i < hi; i++) {
        Complex *const to = out + i * size;
        transpose(in + i * n * n, a.get(), n, n, n);
        info = 1;
        if (all_finite(in + i * n * n, n * n)) run(work.get());
        to[size - 1] = info != 0 ? Real(1) : Real(0);
        if (info != 0) {
          std::fill_n(to, size - 1, not_a_number<Complex>());
          continue;
        }
        // Of a pair of conjugate eigenvectors of a real matrix, the first column has the real parts, the second one the
        // imaginary parts.
        for (int64_t k = 0; k < n; k++) {
          Real imaginary = 0;
          if constexpr (!kComplex) imaginary = others[k];
          to[k] = Complex(std::real(values[k]), kComplex ? std::imag(values[k]) : imaginary);
          if (!vectors) continue;
          const T *const column = right.get() + (imaginary < 0 ? k - 1 : k) * n;
          for (int64_t row = 0; row < n; row++) {
            Complex &element = to[n + row * n + k];
            if constexpr (kComplex)
              element = column[row];
            else
              element = imaginary == 0 ? Complex(column[row]) : Complex(column[row], std::copysign(Real(1), imaginary) *
                                                                                         column[n + row]);
          }
        }
      }
    };
    if constexpr (kComplex)
      each_part(count, n, parts);
    else
      each_group([](const auto &kernels) { return kernels.eig; }, in, static_cast<const T *>(nullptr), reinterpret_cast<T *>(out), count, n, n, mode, n * n, 0, 2 * size, parts);
  }

  static constexpr int64_t kBlock = 64;   // columns that LAPACK's inverse works on at once
  static constexpr int64_t kColumns = 8;  // fewer take OpenBLAS up to 1.4 times as long from the right
};

// Calls `use` with the `Matrices` of a kind.
template <class Use>
void with_matrices(int64_t kind, Use use) {
  const auto of = [&](auto element) {
    using T = decltype(element);
    if (wide)
      use(Matrices<T, int64_t>());
    else
      use(Matrices<T, int32_t>());
  };
  switch (kind) {
    case 'f' | 4 << 8: return of(float());
    case 'f' | 8 << 8: return of(double());
    case 'c' | 8 << 8: return of(std::complex<float>());
    case 'c' | 16 << 8: return of(std::complex<double>());
    default: std::abort();  // the compiler writes no other
  }
}

bool find_functions(void *library, const std::string &before, const std::string &after) {
  for (int type = 0; type < 4; type++)
    for (int name = 0; name < kRoutines; name++) {
      const std::string symbol = before + kLetters[type] + kNames[type / 2][name] + after;
      functions[type][name] = dlsym(library, symbol.c_str());
      if (!functions[type][name]) return false;
    }
  return true;
}

// Whether a function stores 64 bits where it says that all went well.
bool stores_wide_integers() {
  const int64_t n = 0, leading = 1;
  int64_t info = -1;
  double element = 0;
  call<1>(1, kPotrf, "U", &n, &element, &leading, &info);
  return info == 0;
}

}  // namespace

bool find_lapack(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // never closed
  found = false;
  if (!library) return false;
  for (const char *before : {"scipy_", ""})
    for (const char *after : {"_64_", "_"})
      if (!found) found = find_functions(library, before, after);
  if (found) wide = stores_wide_integers();
  return found;
}

bool has_lapack() { return found; }
bool lapack_is_wide() { return wide; }

}  // namespace mlirml

#define MLIRML_ONE_INPUT(name, ...)                                                                              \
  extern "C" void mlirml_##name(const void *in, void *out, int64_t count, int64_t rows, int64_t columns,          \
                                int64_t mode, int64_t kind) {                                                     \
    mlirml::with_matrices(kind, [&](auto matrices) {                                                              \
      using T = typename decltype(matrices)::Element;                                                             \
      matrices.name(static_cast<const T *>(in), static_cast<T *>(out), __VA_ARGS__);                              \
    });                                                                                                           \
    static_cast<void>(columns), static_cast<void>(mode);                                                          \
  }
MLIRML_ONE_INPUT(cholesky, count, rows)
MLIRML_ONE_INPUT(inverse, count, rows)
MLIRML_ONE_INPUT(lu_diagonal, count, rows)
MLIRML_ONE_INPUT(lu, count, rows, columns)
MLIRML_ONE_INPUT(qr, count, rows, columns, mode)
MLIRML_ONE_INPUT(svd, count, rows, columns, mode)
MLIRML_ONE_INPUT(eigh, count, rows, mode)

extern "C" void mlirml_eig(const void *in, void *out, int64_t count, int64_t rows, int64_t, int64_t mode,
                           int64_t kind) {
  mlirml::with_matrices(kind, [&](auto matrices) {
    using Found = decltype(matrices);
    matrices.eig(static_cast<const typename Found::Element *>(in),
                 static_cast<std::complex<typename Found::Real> *>(out), count, rows, mode);
  });
}

extern "C" void mlirml_solve(const void *in, const void *right, void *out, int64_t count, int64_t n, int64_t columns,
                             int64_t, int64_t kind) {
  mlirml::with_matrices(kind, [&](auto matrices) {
    using T = typename decltype(matrices)::Element;
    matrices.solve(static_cast<const T *>(in), static_cast<const T *>(right), static_cast<T *>(out), count, n,
                   columns);
  });
}

extern "C" void mlirml_triangular_solve(const void *in, const void *right, void *out, int64_t count, int64_t n,
                                        int64_t columns, int64_t mode, int64_t kind) {
  mlirml::with_matrices(kind, [&](auto matrices) {
    using T = typename decltype(matrices)::Element;
    matrices.triangular_solve(static_cast<const T *>(in), static_cast<const T *>(right), static_cast<T *>(out), count,
                              n, columns, mode);
  });
}
