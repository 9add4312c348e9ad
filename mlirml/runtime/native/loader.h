// Loads ELF64 x86-64 relocatable objects into this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

namespace mlirml {

// The bytes are no object that this loader can place.
struct BadObject : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The object refers to, or the caller asks for, a symbol that does not exist.
struct MissingSymbol : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Machine code in memory, unmapped with the object.
class Code {
 public:
  // Throws BadObject or MissingSymbol. Whatever the bytes are, reads stay inside them.
  explicit Code(std::string_view object);
  ~Code();
  Code(const Code &) = delete;
  Code &operator=(const Code &) = delete;

  // The address of a symbol that the object defines; throws MissingSymbol.
  uintptr_t address(const std::string &symbol) const;
  size_t size() const { return size_; }

  // True if the code calls `mlirml_poll`.
  bool polls() const { return polls_; }

 private:
  std::unordered_map<std::string, uintptr_t> symbols_;
  void *base_ = nullptr;
  size_t size_ = 0;
  bool polls_ = false;
};

// The address of an outside symbol: the runtime's own, then those of the process, libm and libmvec. 0 if there is none.
uintptr_t find_process_symbol(const char *name);

}  // namespace mlirml
