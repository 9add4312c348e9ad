#include "small_transforms.h"

#include <cstddef>
#include <utility>

#define MLIRML_UNROLL _Pragma("GCC unroll 4")
#define MLIRML_INLINE inline __attribute__((always_inline))
#define MLIRML_OUTLINE __attribute__((noinline))

namespace mlirml {
namespace {

constexpr int64_t kSmall = 16;

namespace baseline {
constexpr int64_t kBytes = 16;
#include "small_lanes.inc"
#include "small_transforms.inc"
}  // namespace baseline

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MLIRML_VECTOR_CLONES 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int64_t kBytes = 32;
#include "small_lanes.inc"
#include "small_transforms.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")
namespace avx512 {
constexpr int64_t kBytes = 64;
#include "small_lanes.inc"
#include "small_transforms.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

}  // namespace

#define MLIRML_CHOOSE(isa) \
  (forward ? isa::Transforms<T>::template with_size<true>(transform, n) : isa::Transforms<T>::template with_size<false>(transform, n))

template <class T>
RowTransform<T> row_transform(FourierTransform transform, int64_t n, bool forward) {
#ifdef MLIRML_VECTOR_CLONES
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return MLIRML_CHOOSE(avx512);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return MLIRML_CHOOSE(avx2);
#endif
  return MLIRML_CHOOSE(baseline);
}

template RowTransform<float> row_transform<float>(FourierTransform, int64_t, bool);
template RowTransform<double> row_transform<double>(FourierTransform, int64_t, bool);

}  // namespace mlirml
