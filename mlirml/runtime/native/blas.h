// Products of matrices by the OpenBLAS that NumPy is linked to, for compiled code.
#pragma once

#include <cstdint>

namespace mlirml {

// Looks up OpenBLAS' functions in the shared object at `path` and in what that is linked to, after `find_lapack` has
// found LAPACK there. False, and none of them may be called, where one is missing, as in another BLAS.
bool find_blas(const char *path);
bool has_blas();

}  // namespace mlirml

extern "C" {
// c = a @ b, row after row, where a has `m` rows and `k` columns, b `k` and `n`. Rows are `lda`, `ldb` and `ldc` elements
// apart. Bits of `mode`: 1, a is stored transposed; 2, b is; 4, the product is added to c; 8, b is a transposed, and
// both have the same memory. `type` is that of the elements as in `lapack.h`. On as many threads as a loop that begins
// here may use.
void mlirml_product(const void *a, const void *b, void *c, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb,
                    int64_t ldc, int64_t mode, int64_t type);
}
