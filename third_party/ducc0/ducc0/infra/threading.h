// Part of mlirml, in the place of ducc0's header: loops of the plans are executed by the thread that calls them. Lines
// are distributed over threads by mlirml/runtime/native/fft.cpp.
#ifndef DUCC0_THREADING_H
#define DUCC0_THREADING_H

#include <cstddef>
#include <mutex>
#include <utility>

#include "ducc0/infra/useful_macros.h"

namespace DUCC0_NAMESPACE {
namespace detail_threading {

using std::size_t;

struct Range {
  size_t lo = 0, hi = 0;
  operator bool() const { return hi > lo; }
};

// All of the work, once.
struct Scheduler {
  size_t count;
  Range getNext() { return {0, std::exchange(count, 0)}; }
};

template <class Body>
void execStatic(size_t count, size_t /*threads*/, size_t /*chunk*/, Body &&body) {
  Scheduler scheduler{count};
  body(scheduler);
}

template <class Body>
void execParallel(size_t count, size_t /*threads*/, Body &&body) {
  body(size_t(0), count);
}

inline size_t adjust_nthreads(size_t) { return 1; }

using Mutex = std::mutex;
using LockGuard = std::lock_guard<std::mutex>;

}  // namespace detail_threading

using detail_threading::adjust_nthreads;
using detail_threading::execParallel;
using detail_threading::execStatic;
using detail_threading::LockGuard;
using detail_threading::Mutex;

}  // namespace DUCC0_NAMESPACE

#endif
