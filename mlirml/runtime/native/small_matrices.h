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

}  // namespace mlirml
