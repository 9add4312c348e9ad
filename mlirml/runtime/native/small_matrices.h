// Factorizations of many small matrices, as many at once as a vector has lanes.
#pragma once

#include <cstdint>

namespace mlirml {

// Computes one group of `lanes` matrices of rows x columns elements that lie one after the other. False, and nothing is
// stored that counts, where one of them has to be left to LAPACK: numbers that are not finite, a rank that is lower, an
// iteration that does not converge. Results have the form of `mlirml/ir/library_calls.py`; singular vectors and
// eigenvectors may have other signs than LAPACK's, and eigenvalues of matrices without symmetry another order.
template <class T>
using SmallKernel = bool (*)(const T *in, const T *right, T *out, int64_t rows, int64_t columns, int64_t mode);

template <class T>
struct SmallKernels {
  int64_t lanes;
  SmallKernel<T> cholesky, inverse, lu_diagonal, solve, qr, eigh, svd, eig;
};

// Kernels for matrices of up to this many rows and columns.
constexpr int64_t kSmall = 16;

// Those of the best instruction set that this processor has.
template <class T>
const SmallKernels<T> &small_kernels();

// The rows of x in `matrix` @ x = right, rows of n x columns numbers: `factors` are those of LAPACK's `getrf` for the
// transposed matrix, with the reciprocals of their diagonal; row i of `out` is row order[i] of the solution. The parts
// of complex numbers are of type R.
template <class R>
using SolveRows = void (*)(const R *factors, const R *reciprocals, const int64_t *order, const R *right, R *out,
                           int64_t n, int64_t columns);

// Equations of up to this many rows.
constexpr int64_t kMostRows = 192;

// That of the best instruction set that this processor has.
template <class R, bool kComplex>
SolveRows<R> solve_rows();

}  // namespace mlirml
