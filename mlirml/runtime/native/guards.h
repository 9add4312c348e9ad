// What a program was compiled for beside its arguments: the bindings and containers that the function has read.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

namespace mlirml {

// As `Guard` in mlirml/frontend/captured.py says.
struct Guard {
  enum Kind { kCell, kKey, kClass, kSlot, kDict, kSize, kList, kItems, kArray, kFunction } kind;
  nanobind::object holder;
  nanobind::object name;
  nanobind::object value;
  size_t size = 0;

  bool holds() const;
};

// Throws nanobind::type_error for what is no guard.
std::vector<Guard> parse_guards(nanobind::handle guards);

}  // namespace mlirml
