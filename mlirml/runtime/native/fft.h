// Discrete Fourier transforms by ducc0, for compiled code.
#pragma once

#include <cstdint>

extern "C" {
// The transform of an array of the sizes d0 to d7 (those that an array of fewer dimensions lacks are one), which lies in
// C order. `mode` selects the transform, the axes and the factor, as `mlirml/ir/library_calls.py` has it, and `kind` is
// the element type of `in` as in `lapack.h`. No axis has a size of zero. The arrays do not overlap.
void mlirml_fft(const void *in, void *out, int64_t d0, int64_t d1, int64_t d2, int64_t d3, int64_t d4, int64_t d5,
                int64_t d6, int64_t d7, int64_t mode, int64_t kind);
}
