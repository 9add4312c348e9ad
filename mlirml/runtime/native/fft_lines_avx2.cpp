// Transforms with the vectors of AVX2.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MLIRML_AVX2
#define DUCC0_NAMESPACE ducc0_avx2
#define MLIRML_TRANSFORM_LINES transform_lines_avx2
#include "fft_lines.inc"
#endif
