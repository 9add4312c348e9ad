// Transforms with the vectors that every processor of the architecture has.
#define DUCC0_NAMESPACE ducc0_baseline
#define MLIRML_TRANSFORM_LINES transform_lines_baseline
#include "fft_lines.inc"

namespace mlirml {

template <class T>
TransformLines<T> transform_lines() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return transform_lines_avx2<T>;
#endif
  return transform_lines_baseline<T>;
}

template TransformLines<float> transform_lines<float>();
template TransformLines<double> transform_lines<double>();

}  // namespace mlirml
