// Row after row, a matrix is for BLAS its transpose, and c.T = b.T @ a.T: nothing is transposed in memory.
#include "blas.h"

#include "lapack.h"
#include "pool.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>

namespace mlirml {
namespace {

enum Mode { kTransposedA = 1, kTransposedB = 2, kAdds = 4, kSame = 8 };
enum Routine { kGemm, kGemv, kSyrk, kRoutines };
constexpr const char *kNames[kRoutines] = {"gemm", "gemv", "syrk"};
constexpr char kLetters[] = "sd";

void *functions[2][kRoutines];
int (*get_library_threads)() = nullptr;
void (*set_library_threads)(int) = nullptr;
bool found = false;

bool find_functions(void *library, const std::string &before, const std::string &after, const std::string &suffix) {
  for (int type = 0; type < 2; type++)
    for (int name = 0; name < kRoutines; name++) {
      const std::string symbol = before + kLetters[type] + kNames[name] + after;
      functions[type][name] = dlsym(library, symbol.c_str());
      if (!functions[type][name]) return false;
    }
  const auto other = [&](const char *name) { return dlsym(library, (before + name + suffix).c_str()); };
  get_library_threads = reinterpret_cast<int (*)()>(other("openblas_get_num_threads"));
  set_library_threads = reinterpret_cast<void (*)(int)>(other("openblas_set_num_threads"));
  return get_library_threads && set_library_threads;
}

// The library's number of threads is one for the process: while it is another one, no other product begins.
class Threads {
 public:
  Threads() {
    const int wanted = static_cast<int>(mlirml_threads());
    if (get_library_threads() == wanted) return;
    lock_ = std::unique_lock<std::mutex>(mutex_);
    before_ = get_library_threads();
    set_library_threads(wanted);
  }
  ~Threads() {
    if (before_) set_library_threads(before_);
  }
  Threads(const Threads &) = delete;
  Threads &operator=(const Threads &) = delete;

 private:
  static std::mutex mutex_;
  std::unique_lock<std::mutex> lock_;
  int before_ = 0;
};
std::mutex Threads::mutex_;

template <class T, class Int>
struct Product {
  static constexpr int kType = sizeof(T) == 8;

  template <size_t texts, class... Pointers>
  static void call(Routine name, Pointers... pointers) {
    if constexpr (texts == 1)
      reinterpret_cast<void (*)(Pointers..., size_t)>(functions[kType][name])(pointers..., 1);
    else
      reinterpret_cast<void (*)(Pointers..., size_t, size_t)>(functions[kType][name])(pointers..., 1, 1);
  }

  static void run(const T *a, const T *b, T *c, Int m, Int n, Int k, Int lda, Int ldb, Int ldc, int64_t mode) {
    const T one = 1, more = mode & kAdds ? 1 : 0;
    const char *for_a = mode & kTransposedA ? "T" : "N", *for_b = mode & kTransposedB ? "T" : "N";
    const Int next = 1;
    if (mode & kSame && !(mode & kAdds)) {
      call<2>(kSyrk, "U", mode & kTransposedA ? "N" : "T", &m, &k, &one, a, &lda, &more, c, &ldc);
      mirror(c, m, ldc);
    } else if (n == 1) {  // the transpose of a times a vector
      const Int step = mode & kTransposedB ? 1 : ldb;
      if (mode & kTransposedA)
        call<1>(kGemv, "N", &m, &k, &one, a, &lda, b, &step, &more, c, &ldc);
      else
        call<1>(kGemv, "T", &k, &m, &one, a, &lda, b, &step, &more, c, &ldc);
    } else if (m == 1) {
      const Int step = mode & kTransposedA ? lda : 1;
      if (mode & kTransposedB)
        call<1>(kGemv, "T", &k, &n, &one, b, &ldb, a, &step, &more, c, &next);
      else
        call<1>(kGemv, "N", &n, &k, &one, b, &ldb, a, &step, &more, c, &next);
    } else {
      call<2>(kGemm, for_b, for_a, &n, &m, &k, &one, b, &ldb, a, &lda, &more, c, &ldc);
    }
  }

  // The upper triangle of columns one after the other is the lower one of rows: it is copied to the other one by blocks.
  static void mirror(T *c, Int n, Int ldc) {
    constexpr Int kBlock = 32;
    for (Int row = 0; row < n; row += kBlock)
      for (Int column = 0; column <= row; column += kBlock)
        for (Int i = row; i < std::min<Int>(row + kBlock, n); i++)
          for (Int j = column; j < std::min<Int>(column + kBlock, i); j++) c[j * ldc + i] = c[i * ldc + j];
  }
};

template <class T>
void product(const void *a, const void *b, void *c, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb,
             int64_t ldc, int64_t mode) {
  const auto run = [&](auto integer) {
    using Int = decltype(integer);
    const auto narrow = [](int64_t number) { return static_cast<Int>(number); };
    Product<T, Int>::run(static_cast<const T *>(a), static_cast<const T *>(b), static_cast<T *>(c), narrow(m), narrow(n),
                         narrow(k), narrow(lda), narrow(ldb), narrow(ldc), mode);
  };
  const Threads threads;
  lapack_is_wide() ? run(int64_t()) : run(int32_t());
}

}  // namespace

bool find_blas(const char *path) {
  found = false;
  void *library = has_lapack() ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;  // never closed
  if (!library) return false;
  for (const char *before : {"scipy_", ""})
    for (const char *after : {"_64_", "_"}) {
      const std::string suffix = after[1] ? "64_" : "";
      if (!found) found = find_functions(library, before, after, suffix);
    }
  return found;
}

bool has_blas() { return found; }

}  // namespace mlirml

extern "C" void mlirml_product(const void *a, const void *b, void *c, int64_t m, int64_t n, int64_t k, int64_t lda,
                               int64_t ldb, int64_t ldc, int64_t mode, int64_t type) {
  switch (type) {
    case 'f' | 4 << 8: return mlirml::product<float>(a, b, c, m, n, k, lda, ldb, ldc, mode);
    case 'f' | 8 << 8: return mlirml::product<double>(a, b, c, m, n, k, lda, ldb, ldc, mode);
    default: std::abort();  // the compiler writes no other
  }
}
