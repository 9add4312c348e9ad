// Fourier transforms of many short rows, as many at once as a vector has lanes.
#pragma once

#include <cstdint>

#include "library_modes.h"

namespace mlirml {

// Transforms `lanes` rows that lie one after the other, of complex numbers or of the real ones of `FourierTransform`, and
// multiplies the results by a factor.
template <class T>
using RowKernel = void (*)(const T *in, T *out, T factor);

template <class T>
struct RowTransform {
  int64_t lanes;
  int64_t in, out;  // numbers of a row, two for a complex one
  RowKernel<T> kernel;
};

// Rows of at most this many points.
constexpr int64_t kLongest = 64;

// The transform of rows of n points (of the real array where there is one); without a kernel where there is none.
template <class T>
RowTransform<T> row_transform(FourierTransform transform, int64_t n, bool forward);

}  // namespace mlirml
