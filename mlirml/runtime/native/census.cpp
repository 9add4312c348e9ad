// Python takes a microsecond and more for each operation that it looks at; the passes of a pipeline ask some sixty times
// which operations there are.
#include "census.h"

#include <unordered_map>
#include <unordered_set>

namespace mlirml {
namespace {

// The handles of the C API: each is one pointer, passed by value.
struct Handle {
  const void *pointer;
};
struct Text {
  const char *data;
  size_t length;
};
struct NamedAttribute {
  Handle name, attribute;
};

struct Api {
  Handle (*operation_name)(Handle);
  Text (*identifier)(Handle);
  Handle (*first_region)(Handle);
  Handle (*next_region)(Handle);
  Handle (*first_block)(Handle);
  Handle (*next_block)(Handle);
  Handle (*first_operation)(Handle);
  Handle (*next_operation)(Handle);
  intptr_t (*attribute_count)(Handle);
  NamedAttribute (*attribute)(Handle, intptr_t);
  Handle (*named_attribute)(Handle, Text);
  bool (*is_array)(Handle);
  intptr_t (*array_length)(Handle);
  Handle (*array_element)(Handle, intptr_t);
  Handle (*map_of)(Handle);
  intptr_t (*result_count)(Handle);
  Handle (*result)(Handle, intptr_t);
  bool (*is_sum)(Handle);
  intptr_t (*value_count)(Handle);
  Handle (*value)(Handle, intptr_t);
  intptr_t (*argument_count)(Handle);
  Handle (*argument)(Handle, intptr_t);
  Handle (*type_of)(Handle);
  bool (*is_memref)(Handle);
  bool (*is_tensor)(Handle);
  int64_t (*rank)(Handle);
  Handle (*element_type)(Handle);
  bool (*is_integer)(Handle);
  unsigned (*width)(Handle);
  intptr_t (*operand_count)(Handle);
  Handle (*operand)(Handle, intptr_t);
  bool (*is_result)(Handle);
  Handle (*owner)(Handle);
};

Api connected;

using Counts = std::unordered_map<const void *, int64_t>;

constexpr std::string_view kGeneric = "linalg.generic", kMaps = "indexing_maps", kWindow = "linalg.window",
                           kBools = "!memref<i1>", kScalar = "!tensor<0d>",
                           kConstant = "arith.constant";

std::string_view view(Text text) { return {text.data, text.length}; }

bool has_sum(const Api &api, Handle operation) {
  const Handle maps = api.named_attribute(operation, {kMaps.data(), kMaps.size()});
  if (!maps.pointer || !api.is_array(maps)) return false;
  for (intptr_t i = 0, count = api.array_length(maps); i < count; ++i) {
    const Handle map = api.map_of(api.array_element(maps, i));
    for (intptr_t j = 0, results = api.result_count(map); j < results; ++j) {
      if (api.is_sum(api.result(map, j))) return true;
    }
  }
  return false;
}

struct Census {
  const Api &api;
  Counts names, attributes, types;
  int64_t windows = 0;

  void add_type(Handle value) { ++types[api.type_of(value).pointer]; }

  // The number of values of types that have a name here: each type is looked at once.
  int64_t values_of(std::string_view name) const {
    int64_t found = 0;
    for (const auto &[pointer, count] : types) {
      const Handle type{pointer};
      const bool fits = name == kScalar ? api.is_tensor(type) && api.rank(type) == 0
                                        : api.is_memref(type) && is_bool(api.element_type(type));
      if (fits) found += count;
    }
    return found;
  }

  bool is_bool(Handle type) const { return api.is_integer(type) && api.width(type) == 1; }

  void add(Handle operation) {
    const Handle name = api.operation_name(operation);
    ++names[name.pointer];
    for (intptr_t i = 0, count = api.attribute_count(operation); i < count; ++i) {
      ++attributes[api.attribute(operation, i).name.pointer];
    }
    for (intptr_t i = 0, count = api.value_count(operation); i < count; ++i) add_type(api.value(operation, i));
    const Handle region = api.first_region(operation);
    if (!region.pointer) return;
    if (view(api.identifier(name)) == kGeneric && has_sum(api, operation)) ++windows;
    for (Handle each = region; each.pointer; each = api.next_region(each)) {
      for (Handle block = api.first_block(each); block.pointer; block = api.next_block(block)) {
        for (intptr_t i = 0, count = api.argument_count(block); i < count; ++i) add_type(api.argument(block, i));
        for (Handle inner = api.first_operation(block); inner.pointer; inner = api.next_operation(inner)) add(inner);
      }
    }
  }
};

template <typename Function>
void set(Function &function, uintptr_t address) {
  function = reinterpret_cast<Function>(address);
}

// The values that the operations in the regions of one use, and those that are defined there.
struct Uses {
  const Api &api;
  std::unordered_set<const void *> own;
  std::vector<const void *> used;

  void enter(Handle operation) {
    for (Handle region = api.first_region(operation); region.pointer; region = api.next_region(region)) {
      for (Handle block = api.first_block(region); block.pointer; block = api.next_block(block)) {
        for (intptr_t i = 0, count = api.argument_count(block); i < count; ++i) {
          own.insert(api.argument(block, i).pointer);
        }
        for (Handle inner = api.first_operation(block); inner.pointer; inner = api.next_operation(inner)) add(inner);
      }
    }
  }

  void add(Handle operation) {
    for (intptr_t i = 0, count = api.value_count(operation); i < count; ++i) {
      own.insert(api.value(operation, i).pointer);
    }
    for (intptr_t i = 0, count = api.operand_count(operation); i < count; ++i) {
      used.push_back(api.operand(operation, i).pointer);
    }
    enter(operation);
  }
};

}  // namespace

const std::vector<const char *> kMlirFunctions = {
    "mlirOperationGetName",
    "mlirIdentifierStr",
    "mlirOperationGetFirstRegion",
    "mlirRegionGetNextInOperation",
    "mlirRegionGetFirstBlock",
    "mlirBlockGetNextInRegion",
    "mlirBlockGetFirstOperation",
    "mlirOperationGetNextInBlock",
    "mlirOperationGetNumDiscardableAttributes",
    "mlirOperationGetDiscardableAttribute",
    "mlirOperationGetAttributeByName",
    "mlirAttributeIsAArray",
    "mlirArrayAttrGetNumElements",
    "mlirArrayAttrGetElement",
    "mlirAffineMapAttrGetValue",
    "mlirAffineMapGetNumResults",
    "mlirAffineMapGetResult",
    "mlirAffineExprIsAAdd",
    "mlirOperationGetNumResults",
    "mlirOperationGetResult",
    "mlirBlockGetNumArguments",
    "mlirBlockGetArgument",
    "mlirValueGetType",
    "mlirTypeIsAMemRef",
    "mlirTypeIsARankedTensor",
    "mlirShapedTypeGetRank",
    "mlirShapedTypeGetElementType",
    "mlirTypeIsAInteger",
    "mlirIntegerTypeGetWidth",
    "mlirOperationGetNumOperands",
    "mlirOperationGetOperand",
    "mlirValueIsAOpResult",
    "mlirOpResultGetOwner",
};

void connect_mlir(const std::vector<uintptr_t> &functions) {
  Api &api = connected;
  const uintptr_t *next = functions.data();
  set(api.operation_name, *next++);
  set(api.identifier, *next++);
  set(api.first_region, *next++);
  set(api.next_region, *next++);
  set(api.first_block, *next++);
  set(api.next_block, *next++);
  set(api.first_operation, *next++);
  set(api.next_operation, *next++);
  set(api.attribute_count, *next++);
  set(api.attribute, *next++);
  set(api.named_attribute, *next++);
  set(api.is_array, *next++);
  set(api.array_length, *next++);
  set(api.array_element, *next++);
  set(api.map_of, *next++);
  set(api.result_count, *next++);
  set(api.result, *next++);
  set(api.is_sum, *next++);
  set(api.value_count, *next++);
  set(api.value, *next++);
  set(api.argument_count, *next++);
  set(api.argument, *next++);
  set(api.type_of, *next++);
  set(api.is_memref, *next++);
  set(api.is_tensor, *next++);
  set(api.rank, *next++);
  set(api.element_type, *next++);
  set(api.is_integer, *next++);
  set(api.width, *next++);
  set(api.operand_count, *next++);
  set(api.operand, *next++);
  set(api.is_result, *next++);
  set(api.owner, *next++);
}

std::vector<std::pair<std::string_view, int64_t>> take_census(const void *operation,
                                                              std::vector<std::string_view> &attributes) {
  Census census{connected};
  census.add({operation});
  std::vector<std::pair<std::string_view, int64_t>> found;
  for (const auto &[name, count] : census.names) found.emplace_back(view(connected.identifier({name})), count);
  if (census.windows) found.emplace_back(kWindow, census.windows);
  for (std::string_view name : {kBools, kScalar}) {
    if (const int64_t count = census.values_of(name)) found.emplace_back(name, count);
  }
  for (const auto &entry : census.attributes) attributes.push_back(view(connected.identifier({entry.first})));
  return found;
}

namespace {

bool is_constant(Handle value) {
  const Api &api = connected;
  return api.is_result(value) && view(api.identifier(api.operation_name(api.owner(value)))) == kConstant;
}

}  // namespace

bool has_captures(const void *operation) {
  Uses uses{connected, {}, {}};
  uses.enter({operation});
  for (const void *value : uses.used) {
    if (!uses.own.count(value) && !is_constant({value})) return true;
  }
  return false;
}

}  // namespace mlirml
