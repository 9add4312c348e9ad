// Row after row, a matrix is for LAPACK its transpose. The inverse of the transpose is the transpose of the inverse, and
// in @ x = b is x.T @ in.T = b.T, which is solved from the right: nothing is transposed in memory, and only what LAPACK
// overwrites is copied. A Cholesky factor is the exception, see there.
#include "lapack.h"

#include <dlfcn.h>

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

namespace mlirml {
namespace {

enum Routine { kPotrf, kGetrf, kGetri, kGetrs, kTrsm, kRoutines };
constexpr const char *kNames[kRoutines] = {"potrf", "getrf", "getri", "getrs", "trsm"};
constexpr char kLetters[] = "sdcz";

void *functions[4][kRoutines];
bool found = false, wide = false;  // whether they are there, and have 64-bit integers

template <class T>
constexpr int kType = std::is_same_v<T, float> ? 0 : std::is_same_v<T, double> ? 1 : sizeof(T) == 8 ? 2 : 3;

template <class Function>
Function *routine(int type, Routine name) {
  return reinterpret_cast<Function *>(functions[type][name]);
}

// LAPACK's functions by value, for elements T and integers Int. Lengths of Fortran's texts go last. `Int info` is zero
// where all went well.
template <class T, class Int>
struct Lapack {
  static Int potrf(char triangle, Int n, T *a) {
    Int info = 0;
    routine<void(const char *, const Int *, T *, const Int *, Int *, size_t)>(kType<T>, kPotrf)(&triangle, &n, a, &n,
                                                                                                &info, 1);
    return info;
  }

  static Int getrf(Int n, T *a, Int *pivots) {
    Int info = 0;
    routine<void(const Int *, const Int *, T *, const Int *, Int *, Int *)>(kType<T>, kGetrf)(&n, &n, a, &n, pivots,
                                                                                              &info);
    return info;
  }

  static Int getri(Int n, T *a, const Int *pivots, T *work, Int size) {
    Int info = 0;
    routine<void(const Int *, T *, const Int *, const Int *, T *, const Int *, Int *)>(kType<T>, kGetri)(
        &n, a, &n, pivots, work, &size, &info);
    return info;
  }

  static void getrs(char transposed, Int n, Int columns, const T *a, const Int *pivots, T *b) {
    Int info = 0;
    routine<void(const char *, const Int *, const Int *, const T *, const Int *, const Int *, T *, const Int *, Int *,
                 size_t)>(kType<T>, kGetrs)(&transposed, &n, &columns, a, &n, pivots, b, &n, &info, 1);
  }

  // b = b @ inverse(a) for rows x n elements of b, column after column.
  static void trsm_right(char triangle, char diagonal, Int rows, Int n, const T *a, T *b) {
    const char side = 'R', transposed = 'N';
    const T one = 1;
    routine<void(const char *, const char *, const char *, const char *, const Int *, const Int *, const T *, const T *,
                 const Int *, T *, const Int *, size_t, size_t, size_t, size_t)>(kType<T>, kTrsm)(
        &side, &triangle, &transposed, &diagonal, &rows, &n, &one, a, &n, b, &rows, 1, 1, 1, 1);
  }
};

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

template <class T, class Int>
struct Matrices {
  using Element = T;
  using Library = Lapack<T, Int>;

  // The lower triangle is transposed in memory, and the factor back: OpenBLAS takes a third longer for an upper one.
  static void cholesky(const T *in, T *out, int64_t count, int64_t n) {
    for (int64_t i = 0; i < count; i++, in += n * n, out += n * n) {
      each_below_diagonal(n, [&](int64_t below, int64_t above) { out[above] = in[below]; });
      for (int64_t k = 0; k < n; k++) out[k * (n + 1)] = in[k * (n + 1)];
      const bool done = Library::potrf('L', static_cast<Int>(n), out) == 0;
      each_below_diagonal(n, [&](int64_t below, int64_t above) {
        out[below] = done ? out[above] : not_a_number<T>();
        out[above] = T(0);
      });
      for (int64_t k = 0; k < n && !done; k++) out[k * (n + 1)] = not_a_number<T>();
    }
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

  static void inverse(const T *in, T *out, int64_t count, int64_t n) {
    const int64_t size = n * kBlock;
    const auto pivots = scratch<Int>(n);
    const auto work = scratch<T>(size);
    for (int64_t i = 0; i < count; i++, in += n * n, out += n * n) {
      std::memmove(out, in, sizeof(T) * static_cast<size_t>(n * n));
      if (Library::getrf(static_cast<Int>(n), out, pivots.get()) != 0 ||
          Library::getri(static_cast<Int>(n), out, pivots.get(), work.get(), static_cast<Int>(size)) != 0)
        std::fill_n(out, n * n, not_a_number<T>());
    }
  }

  static void lu_diagonal(const T *in, T *out, int64_t count, int64_t n) {
    const auto pivots = scratch<Int>(n);
    const auto factors = scratch<T>(n * n);
    for (int64_t i = 0; i < count; i++, in += n * n, out += n + 1) {
      std::memcpy(static_cast<void *>(factors.get()), in, sizeof(T) * static_cast<size_t>(n * n));
      Library::getrf(static_cast<Int>(n), factors.get(), pivots.get());
      T sign = 1;
      for (int64_t k = 0; k < n; k++) {
        out[k] = factors[k * n + k];
        if (pivots[k] != k + 1) sign = -sign;
      }
      out[n] = sign;
    }
  }

  static void solve(const T *in, const T *right, T *out, int64_t count, int64_t n, int64_t columns) {
    const auto pivots = scratch<Int>(n);
    const auto factors = scratch<T>(n * n);
    const auto transposed = scratch<T>(columns < kColumns ? n * columns : 0);
    const Int order = static_cast<Int>(n);
    for (int64_t i = 0; i < count; i++, in += n * n, right += n * columns, out += n * columns) {
      std::memcpy(static_cast<void *>(factors.get()), in, sizeof(T) * static_cast<size_t>(n * n));
      if (Library::getrf(order, factors.get(), pivots.get()) != 0) {
        std::fill_n(out, n * columns, not_a_number<T>());
      } else if (columns < kColumns) {
        for (int64_t row = 0; row < n; row++)
          for (int64_t k = 0; k < columns; k++) transposed[k * n + row] = right[row * columns + k];
        Library::getrs('T', order, static_cast<Int>(columns), factors.get(), pivots.get(), transposed.get());
        for (int64_t row = 0; row < n; row++)
          for (int64_t k = 0; k < columns; k++) out[row * columns + k] = transposed[k * n + row];
      } else {
        std::memmove(out, right, sizeof(T) * static_cast<size_t>(n * columns));
        // in.T = P L U, and x.T = b.T @ inverse(U) @ inverse(L) @ P.T
        Library::trsm_right('U', 'N', static_cast<Int>(columns), order, factors.get(), out);
        Library::trsm_right('L', 'U', static_cast<Int>(columns), order, factors.get(), out);
        for (int64_t k = n - 1; k >= 0; k--) {
          const int64_t other = pivots[k] - 1;
          if (other != k) std::swap_ranges(out + k * columns, out + (k + 1) * columns, out + other * columns);
        }
      }
    }
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
      const std::string symbol = before + kLetters[type] + kNames[name] + after;
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
  routine<void(const char *, const int64_t *, double *, const int64_t *, int64_t *, size_t)>(1, kPotrf)(
      "U", &n, &element, &leading, &info, 1);
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

}  // namespace mlirml

extern "C" void mlirml_cholesky(const void *in, void *out, int64_t count, int64_t n, int64_t kind) {
  mlirml::with_matrices(kind, [&](auto matrices) {
    using T = typename decltype(matrices)::Element;
    matrices.cholesky(static_cast<const T *>(in), static_cast<T *>(out), count, n);
  });
}

extern "C" void mlirml_inverse(const void *in, void *out, int64_t count, int64_t n, int64_t kind) {
  mlirml::with_matrices(kind, [&](auto matrices) {
    using T = typename decltype(matrices)::Element;
    matrices.inverse(static_cast<const T *>(in), static_cast<T *>(out), count, n);
  });
}

extern "C" void mlirml_lu_diagonal(const void *in, void *out, int64_t count, int64_t n, int64_t kind) {
  mlirml::with_matrices(kind, [&](auto matrices) {
    using T = typename decltype(matrices)::Element;
    matrices.lu_diagonal(static_cast<const T *>(in), static_cast<T *>(out), count, n);
  });
}

extern "C" void mlirml_solve(const void *in, const void *right, void *out, int64_t count, int64_t n, int64_t columns,
                             int64_t kind) {
  mlirml::with_matrices(kind, [&](auto matrices) {
    using T = typename decltype(matrices)::Element;
    matrices.solve(static_cast<const T *>(in), static_cast<const T *>(right), static_cast<T *>(out), count, n,
                   columns);
  });
}
