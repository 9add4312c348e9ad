// The kernels of many small arrays at once, for each instruction set.
#include "library_modes.h"
#include "small_matrices.h"
#include "small_transforms.h"

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
#include "small_cholesky.inc"
template <class T>
using CholeskyOfIsa = CholeskyRows<T>;
#include "small_factors.inc"
#include "small_spectra.inc"
#include "small_eig.inc"
#include "small_transforms.inc"
#include "triangles.inc"
}  // namespace baseline

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MLIRML_VECTOR_CLONES 1
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
constexpr int64_t kBytes = 32;
#include "small_lanes.inc"
#include "small_cholesky.inc"
template <class T>
using CholeskyOfIsa = CholeskyRows<T>;
#include "small_factors.inc"
#include "small_spectra.inc"
#include "small_eig.inc"
#include "small_transforms.inc"
#include "triangles.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")
namespace avx512 {
constexpr int64_t kBytes = 64;
#include "small_lanes.inc"
// A group of 512 bits takes up to 1.2 times as long: its matrices, factors and results are more than the cache holds.
template <class T>
using CholeskyOfIsa = avx2::CholeskyRows<T>;
#include "small_factors.inc"
#include "small_spectra.inc"
#include "small_eig.inc"
#include "small_transforms.inc"
#include "triangles.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

}  // namespace

// use(isa) with the best instruction set that this processor has: a namespace cannot be an argument of a function.
#ifdef MLIRML_VECTOR_CLONES
#define MLIRML_BEST(use)                                                                                           \
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&                                   \
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))                                    \
    return use(avx512);                                                                                            \
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return use(avx2);                           \
  return use(baseline)
#else
#define MLIRML_BEST(use) return use(baseline)
#endif

template <class T>
const SmallKernels<T> &small_kernels() {
#define MLIRML_KERNELS(isa) isa::Eig<T>::kKernels
  MLIRML_BEST(MLIRML_KERNELS);
}

template <class T>
RowTransform<T> row_transform(FourierTransform transform, int64_t n, bool forward) {
#define MLIRML_TRANSFORM(isa)                                        \
  (forward ? isa::Transforms<T>::template with_size<true>(transform, n) \
           : isa::Transforms<T>::template with_size<false>(transform, n))
  MLIRML_BEST(MLIRML_TRANSFORM);
}

template <class R, bool kComplex>
SolveRows<R> solve_rows() {
#define MLIRML_SOLVE(isa) (&isa::Triangles<R, kComplex>::solve)
  MLIRML_BEST(MLIRML_SOLVE);
}

template SolveRows<float> solve_rows<float, false>();
template SolveRows<float> solve_rows<float, true>();
template SolveRows<double> solve_rows<double, false>();
template SolveRows<double> solve_rows<double, true>();
template const SmallKernels<float> &small_kernels<float>();
template const SmallKernels<double> &small_kernels<double>();
template RowTransform<float> row_transform<float>(FourierTransform, int64_t, bool);
template RowTransform<double> row_transform<double>(FourierTransform, int64_t, bool);

}  // namespace mlirml
