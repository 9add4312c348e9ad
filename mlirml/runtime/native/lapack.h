// Dense factorizations of matrices by the LAPACK that NumPy is linked to, for compiled code.
#pragma once

#include <cstdint>

namespace mlirml {

// Looks up LAPACK's functions in the shared object at `path` and in what that is linked to. False, and none of them may
// be called, where one is missing. Functions with 32-bit and with 64-bit integers are told apart by a call.
bool find_lapack(const char *path);
bool has_lapack();

}  // namespace mlirml

extern "C" {
// `count` matrices of n x n elements lie one after the other, row after row. `kind` is the letter of the element type
// as NumPy has it ('f'loat or 'c'omplex) in the low byte, and its size in bytes above it. A result may have the memory
// of an operand. Matrices that are singular, or for a Cholesky factor not positive definite, have a result of NaN.

// The lower triangular factors, of the lower triangles of `in`; zeros above the diagonal.
void mlirml_cholesky(const void *in, void *out, int64_t count, int64_t n, int64_t kind);

// The inverses.
void mlirml_inverse(const void *in, void *out, int64_t count, int64_t n, int64_t kind);

// For each matrix the diagonal of the upper triangular factor of its LU decomposition, and after it the sign of the
// permutation: n + 1 elements. A singular matrix has a zero there.
void mlirml_lu_diagonal(const void *in, void *out, int64_t count, int64_t n, int64_t kind);

// The solutions x of in @ x = right, of n rows with `columns` elements each.
void mlirml_solve(const void *in, const void *right, void *out, int64_t count, int64_t n, int64_t columns,
                  int64_t kind);
}
