#include "small_matrices.h"

#include "library_modes.h"

#include <cstddef>
#include <utility>

// Loops whose bounds are constants up to 4 become straight code, which keeps such small matrices in registers.
#define MLIRML_UNROLL _Pragma("GCC unroll 4")
#define MLIRML_INLINE inline __attribute__((always_inline))
#define MLIRML_OUTLINE __attribute__((noinline))

namespace mlirml {
namespace {

namespace baseline {
constexpr int64_t kBytes = 16;
#include "small_lanes.inc"
#include "small_factors.inc"
#include "small_spectra.inc"
#include "small_eig.inc"
}  // namespace baseline

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MLIRML_VECTOR_CLONES 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int64_t kBytes = 32;
#include "small_lanes.inc"
#include "small_factors.inc"
#include "small_spectra.inc"
#include "small_eig.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")
namespace avx512 {
constexpr int64_t kBytes = 64;
#include "small_lanes.inc"
#include "small_factors.inc"
#include "small_spectra.inc"
#include "small_eig.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

}  // namespace

template <class T>
const SmallKernels<T> &small_kernels() {
#ifdef MLIRML_VECTOR_CLONES
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return avx512::Eig<T>::kKernels;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::Eig<T>::kKernels;
#endif
  return baseline::Eig<T>::kKernels;
}

template const SmallKernels<float> &small_kernels<float>();
template const SmallKernels<double> &small_kernels<double>();

}  // namespace mlirml
