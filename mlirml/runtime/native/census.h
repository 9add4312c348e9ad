// The operations of an MLIR module by name, and what they use, by functions of MLIR's C API whose addresses Python finds.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mlirml {

// The names of the functions of the C API, in the order in which `connect_mlir` takes their addresses.
extern const std::vector<const char *> kMlirFunctions;

// Has the other functions use those at the addresses.
void connect_mlir(const std::vector<uintptr_t> &functions);

// How often each name of an operation occurs in the operation at an address and in its regions. Further names are
// `linalg.window`, for generic operations with a sum of two loops as an index; `!memref<i1>` for values that are arrays of
// bools in memory, and `!tensor<0d>` for tensors of rank 0. `attributes` gets the names of discardable attributes.
// The texts live as long as the context of the operation.
std::vector<std::pair<std::string_view, int64_t>> take_census(const void *operation,
                                                              std::vector<std::string_view> &attributes);

// Whether the regions of the operation at an address use values from outside that are no constants.
bool has_captures(const void *operation);

}  // namespace mlirml
