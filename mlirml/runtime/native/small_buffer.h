// A growable array of plain values that lives on the stack while it is small.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>

namespace mlirml {

template <class T, size_t N>
class SmallBuffer {
  static_assert(std::is_trivially_copyable<T>::value, "elements are moved by memcpy");

 public:
  SmallBuffer() = default;
  SmallBuffer(const SmallBuffer &) = delete;
  SmallBuffer &operator=(const SmallBuffer &) = delete;
  ~SmallBuffer() {
    if (data_ != inline_) std::free(data_);
  }

  void push(T value) {
    if (size_ == capacity_) reserve(2 * capacity_);
    data_[size_++] = value;
  }

  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    T *grown = static_cast<T *>(std::malloc(capacity * sizeof(T)));
    if (!grown) throw std::bad_alloc();
    std::memcpy(static_cast<void *>(grown), data_, size_ * sizeof(T));
    if (data_ != inline_) std::free(data_);
    data_ = grown;
    capacity_ = capacity;
  }

  size_t size() const { return size_; }
  T *data() { return data_; }
  const T *data() const { return data_; }
  T &operator[](size_t i) { return data_[i]; }
  const T &operator[](size_t i) const { return data_[i]; }
  T *begin() { return data_; }
  T *end() { return data_ + size_; }
  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }

 private:
  T inline_[N];
  T *data_ = inline_;
  size_t size_ = 0, capacity_ = N;
};

}  // namespace mlirml
