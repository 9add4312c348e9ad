// Transforms along one axis by ducc0, for each of the instruction sets.
#pragma once

#include <cstddef>
#include <vector>

#include "library_modes.h"

namespace mlirml {

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

// The pass, with results multiplied by a factor, on the thread that calls it. Of complex numbers the arrays may be one and
// the same. Throws std::bad_alloc.
template <class T>
using TransformLines = void (*)(const Pass &pass, const void *in, void *out, T factor);

// Those of the widest instruction set that this processor has.
template <class T>
TransformLines<T> transform_lines();

template <class T>
void transform_lines_baseline(const Pass &pass, const void *in, void *out, T factor);
template <class T>
void transform_lines_avx2(const Pass &pass, const void *in, void *out, T factor);

}  // namespace mlirml
