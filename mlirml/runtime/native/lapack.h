// Dense factorizations of matrices by the LAPACK that NumPy is linked to, for compiled code.
#pragma once

#include <cstdint>

namespace mlirml {

// Looks up LAPACK's functions in the shared object at `path` and in what that is linked to. False, and none of them may
// be called, where one is missing. Functions with 32-bit and with 64-bit integers are told apart by a call.
bool find_lapack(const char *path);
bool has_lapack();
bool lapack_is_wide();  // its integers have 64 bits

}  // namespace mlirml

extern "C" {
// Stacks of `count` matrices lie one after the other, row after row. `kind` is the letter of the element type as NumPy has
// it ('f'loat or 'c'omplex) in the low byte, and its size in bytes above it. `mode` and the order of several results are
// described in `mlirml/ir/library_calls.py`. A result of the same shape as an operand may have its memory. Matrices that
// are singular, or for a Cholesky factor not positive definite, have a result of NaN.

void mlirml_cholesky(const void *in, void *out, int64_t count, int64_t rows, int64_t columns, int64_t mode,
                     int64_t kind);
void mlirml_inverse(const void *in, void *out, int64_t count, int64_t rows, int64_t columns, int64_t mode,
                    int64_t kind);
void mlirml_lu_diagonal(const void *in, void *out, int64_t count, int64_t rows, int64_t columns, int64_t mode,
                        int64_t kind);
void mlirml_lu(const void *in, void *out, int64_t count, int64_t rows, int64_t columns, int64_t mode, int64_t kind);
void mlirml_qr(const void *in, void *out, int64_t count, int64_t rows, int64_t columns, int64_t mode, int64_t kind);
void mlirml_svd(const void *in, void *out, int64_t count, int64_t rows, int64_t columns, int64_t mode, int64_t kind);
void mlirml_eigh(const void *in, void *out, int64_t count, int64_t rows, int64_t columns, int64_t mode, int64_t kind);
void mlirml_eig(const void *in, void *out, int64_t count, int64_t rows, int64_t columns, int64_t mode, int64_t kind);

// `columns` are those of `right`.
void mlirml_solve(const void *in, const void *right, void *out, int64_t count, int64_t n, int64_t columns,
                  int64_t mode, int64_t kind);
void mlirml_triangular_solve(const void *in, const void *right, void *out, int64_t count, int64_t n, int64_t columns,
                             int64_t mode, int64_t kind);
}
