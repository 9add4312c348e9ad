// The operations of an MLIR module by name, by functions of MLIR's C API whose addresses Python finds.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mlirml {

// The names of the functions of the C API, in the order in which `take_census` takes their addresses.
extern const std::vector<const char *> kCensusFunctions;

// How often each name of an operation occurs in the operation at an address and in its regions. Further names are
// `linalg.window`, for generic operations with a sum of two loops as an index; `!memref<i1>` for values that are arrays of
// bools in memory, and `!tensor<0d>` for tensors of rank 0. `attributes` gets the names of discardable attributes.
// The texts live as long as the context of the operation.
std::vector<std::pair<std::string_view, int64_t>> take_census(
    const void *operation, const std::vector<uintptr_t> &functions, std::vector<std::string_view> &attributes);

}  // namespace mlirml
