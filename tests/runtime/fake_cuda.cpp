// A library with the functions of libcuda that mlirml calls, and a device in host memory. Tests ask it to fail, or to
// leave work undone, and ask what it was told.
//
// As on a GPU, the host cannot read the device's memory: its addresses lie where no process has memory, and only this
// library knows which memory they mean. Who reads one on the host is killed, a copy to what is no such address fails.
//
// Work is done at once, or, where a test wants to know what waits for what, as late as it may be, or in any order that
// streams and events allow. The nodes of a graph run in the opposite order of their making as far as they may, or in any.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidImage = 200, kNoBinary = 209, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700;

int failure = 0;       // what the next launch, allocation or copy gives
int later = 0;         // what is found out when the next kernel runs
int busy = 0;          // whether events are reached
int devices = 2, version = 12040;
#ifndef FAKE_MEMORY
#define FAKE_MEMORY (size_t{1} << 20)
#endif
size_t in_use = 0, most = FAKE_MEMORY;
constexpr uint64_t kFar = uint64_t{1} << 62;  // between an address on the device and its memory
struct Block {
  std::unique_ptr<unsigned char[]> bytes;
  size_t size;
};
std::map<uint64_t, Block> blocks;  // by address on the device

// The memory of an address on the device; null where it has not so many bytes.
unsigned char *memory(uint64_t address, size_t size) {
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return nullptr;
  const auto &[start, block] = *--next;
  const bool inside = address - start <= block.size && size <= block.size - (address - start);
  return inside ? block.bytes.get() + (address - start) : nullptr;
}
thread_local int contexts = 0;  // pushed and not popped
int orders = 0;         // how often a stream was made to wait
uint64_t first_of = 0, second_of = 0;  // the streams of the last such order
struct {
  unsigned grid[3], block[3], shared;
} last;

struct Stream {
  struct Task {
    std::function<void()> work;  // none where the stream waits for so many tasks of another one
    void *other = nullptr;
    uint64_t count = 0;
  };
  std::deque<Task> tasks;
  uint64_t given = 0, done = 0;
};

struct Event {
  void *stream = nullptr;  // the tasks that were given to it before the event
  uint64_t count = 0;
};

std::map<void *, Stream> streams;
std::recursive_mutex doing;  // threads may wait for events while others give work
int kernels = 0, uploads = 0;  // that have run
using Hook = int (*)(intptr_t function, const unsigned *sizes, void **arguments);
Hook hook = nullptr;     // runs kernels, where a test does so
intptr_t functions = 0;  // that were asked for; each is its number
std::map<intptr_t, std::vector<unsigned>> parameters;  // the bytes of the arguments of each, 0 for eight
int refuses_cubins = 0;
int graphs_fail = 0;  // what the making of a graph gives
int graph_calls[3] = {};  // graphs that were made, nodes that were changed, graphs that were launched
int late = 0;  // 0: work is done at once; 1: when it is waited for; more: in an order drawn from this number
uint32_t drawn = 0;

// A launch with its arguments, which are copied.
struct Launched {
  intptr_t function = 0;
  unsigned sizes[7] = {};
  std::vector<uint64_t> values;
};

Launched launched(void *function, const unsigned *sizes, void **arguments) {
  Launched made;
  made.function = reinterpret_cast<intptr_t>(function);
  std::memcpy(made.sizes, sizes, sizeof(made.sizes));
  const std::vector<unsigned> fixed = {8, 8, 4};  // of the one kernel without a hook
  for (unsigned size : hook ? parameters[made.function] : fixed) {
    made.values.push_back(0);
    std::memcpy(&made.values.back(), arguments[made.values.size() - 1], size ? size : 8);
  }
  return made;
}

// The one kernel without a hook: out[i] = factor * in[i] for each thread i.
int run_kernel(Launched kernel) {
  kernels++;
  std::vector<void *> arguments;
  for (uint64_t &value : kernel.values) arguments.push_back(&value);
  if (hook) return hook(kernel.function, kernel.sizes, arguments.data());
  unsigned count = 1;
  for (int i = 0; i < 6; i++) count *= kernel.sizes[i];
  auto *in = reinterpret_cast<float *>(memory(kernel.values[0], count * sizeof(float)));
  auto *out = reinterpret_cast<float *>(memory(kernel.values[1], count * sizeof(float)));
  if (!in || !out) return kIllegalAddress;
  float factor;
  std::memcpy(&factor, &kernel.values[2], sizeof(factor));
  for (unsigned i = 0; i < count; i++) out[i] = factor * in[i];
  return 0;
}

struct Copied {
  uint64_t to = 0, from = 0;
  size_t size = 0;
};

struct Node {
  Launched kernel;
  Copied copy;
  std::vector<size_t> before;
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  std::set<Graph *> executables;  // made of it
  const Graph *origin = nullptr;  // of an executable
};

std::set<Graph *> graphs;  // executables too
size_t number_of(const Graph &graph, const void *node) {
  size_t number = 0;
  while (number < graph.nodes.size() && graph.nodes[number].get() != node) number++;
  return number;
}

// Runs nodes, the last made first, or in an order that is drawn, each behind those it depends on.
void run_graph(const std::vector<Node> &nodes) {
  std::vector<bool> done(nodes.size());
  for (size_t left = nodes.size(); left; left--) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < nodes.size(); i++) {
      bool waits = done[i];
      for (size_t before : nodes[i].before) waits = waits || !done[before];
      if (!waits) ready.push_back(i);
    }
    drawn = drawn * 1664525 + 1013904223;
    const size_t next = late < 2 ? ready.back() : ready[(drawn >> 16) % ready.size()];
    done[next] = true;
    const Node &node = nodes[next];
    if (node.kernel.function) {
      if (const int wrong = run_kernel(node.kernel)) failure = wrong;
    } else {
      std::memcpy(memory(node.copy.to, node.copy.size), memory(node.copy.from, node.copy.size), node.copy.size);
    }
  }
}

bool step(Stream &stream) {
  if (stream.tasks.empty()) return false;
  Stream::Task &first = stream.tasks.front();
  if (first.other && streams[first.other].done < first.count) return false;
  const std::function<void()> work = std::move(first.work);
  stream.tasks.pop_front();
  stream.done++;
  if (work) work();
  return true;
}

void finish(void *handle, uint64_t count) {
  std::lock_guard<std::recursive_mutex> lock(doing);
  Stream &stream = streams[handle];
  while (stream.done < count) {
    const Stream::Task &first = stream.tasks.front();
    if (first.other) finish(first.other, first.count);
    step(stream);
  }
}

void finish_all() {
  for (auto &[handle, stream] : streams) finish(handle, stream.given);
}

// Does some of what can be done, where work is done in any order.
void happen() {
  if (late < 2) return;
  std::lock_guard<std::recursive_mutex> lock(doing);
  for (int i = 0; i < 3; i++)
    for (auto &[handle, stream] : streams) {
      drawn = drawn * 1664525 + 1013904223;
      if (drawn >> 30 == 0) step(stream);
    }
}

void give(void *handle, Stream::Task task) {
  std::lock_guard<std::recursive_mutex> lock(doing);
  Stream &stream = streams[handle];
  stream.tasks.push_back(std::move(task));
  stream.given++;
  if (!late) finish(handle, stream.given);
  happen();
}

bool reached(const Event &event) { return !event.stream || streams[event.stream].done >= event.count; }

int done() {
  const int now = failure;
  if (now != kIllegalAddress) failure = 0;  // an illegal address is for ever
  return contexts >= 1 ? now : 201;         // CUDA_ERROR_INVALID_CONTEXT
}

}  // namespace

extern "C" {

void fake_hook(Hook function) { hook = function; }
intptr_t fake_functions() { return functions; }
void fake_parameters(intptr_t function, size_t count, const unsigned *bytes) { parameters[function] = {bytes, bytes + count}; }
void fake_refuse_cubins(int on) { refuses_cubins = on; }
void fake_fail_graphs(int code) { graphs_fail = code; }
// Graphs that were made, nodes that were changed, graphs that were launched, and those that are not destroyed.
void fake_graphs(int *counts) { std::memcpy(counts, graph_calls, sizeof(graph_calls)), counts[3] = static_cast<int>(graphs.size()); }
// The allocations: for each its address on the device, where its bytes are, and its size.
size_t fake_allocations(uint64_t *out, size_t most) {
  size_t count = 0;
  for (const auto &[address, block] : blocks) {
    if (count < most)
      out[3 * count] = address, out[3 * count + 1] = reinterpret_cast<uint64_t>(block.bytes.get()), out[3 * count + 2] = block.size;
    count++;
  }
  return count;
}
void fake_fail(int code) { failure = code, later = 0; }
void fake_fail_later(int code) { later = code; }
void fake_hold(int on) { busy = on; }
void fake_run(int *counts) { counts[0] = kernels, counts[1] = uploads; }
// Does all that need not wait for a stream.
void fake_run_without(uint64_t held) {
  for (bool more = true; more;) {
    more = false;
    for (auto &[handle, stream] : streams)
      if (reinterpret_cast<uint64_t>(handle) != held) more = step(stream) || more;
  }
}
void fake_late(int how) { finish_all(), late = how, drawn = how; }
void fake_devices(int count, int driver) { devices = count, version = driver; }
void fake_memory(size_t size) { most = size; }
int fake_contexts() { return contexts; }
size_t fake_in_use() { return in_use; }
int fake_orders(uint64_t *streams) { return streams[0] = first_of, streams[1] = second_of, orders; }
void fake_last(unsigned *values) { std::memcpy(values, &last, sizeof(last)); }

int cuInit(unsigned) { return devices ? 0 : kNoDevice; }
int cuDriverGetVersion(int *out) { return *out = version, 0; }
int cuGetErrorName(int code, const char **out) {
  *out = code == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == kInvalidImage ? "CUDA_ERROR_INVALID_IMAGE" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int, const char **out) { return *out = "as the test wanted", 0; }
int cuDeviceGetCount(int *out) { return *out = devices, 0; }
int cuDeviceGet(int *out, int index) { return *out = 40 + index, 0; }
int cuDeviceGetName(char *out, int size, int device) {
  std::strncpy(out, device == 40 ? "First GPU" : "Second GPU", size);
  return 0;
}
int cuDeviceTotalMem_v2(size_t *out, int) { return *out = most, 0; }
int cuDeviceGetAttribute(int *out, int what, int) {
  *out = what == 75 ? 9 : what == 76 ? 0 : what == 97 ? 232448 : what == 8 ? 49152 : what == 10 ? 32 : 132;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **out, int device) { return *out = reinterpret_cast<void *>(intptr_t{device}), 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxPushCurrent_v2(void *) { return contexts++, 0; }
int cuCtxPopCurrent_v2(void **) { return contexts--, 0; }
int cuStreamCreate(void **out, unsigned) { return *out = std::malloc(1), 0; }
int cuStreamDestroy_v2(void *stream) { return std::free(stream), 0; }
int cuStreamWaitEvent(void *stream, void *event, unsigned) {
  const Event before = *static_cast<Event *>(event);
  orders++;
  first_of = reinterpret_cast<uint64_t>(before.stream), second_of = reinterpret_cast<uint64_t>(stream);
  if (late) give(stream, {nullptr, before.stream, before.count});
  return contexts >= 1 ? failure : 201;
}
int cuStreamSynchronize(void *stream) { return finish(stream, streams[stream].given), failure; }
int cuEventCreate(void **out, unsigned) { return *out = new Event, 0; }
int cuEventRecord(void *event, void *stream) { return *static_cast<Event *>(event) = {stream, streams[stream].given}, 0; }
int cuEventQuery(void *event) {
  happen();
  const bool waits = busy || !reached(*static_cast<Event *>(event));
  return failure == kIllegalAddress ? failure : waits ? kNotReady : 0;
}
int cuEventSynchronize(void *event) {
  const Event *known = static_cast<Event *>(event);
  if (known->stream) finish(known->stream, known->count);
  return failure == kIllegalAddress ? failure : 0;
}
int cuEventDestroy_v2(void *event) { return delete static_cast<Event *>(event), 0; }
int cuMemAlloc_v2(uint64_t *out, size_t size) {
  if (in_use + size > most) return kOutOfMemory;
  in_use += size;
  Block block = {std::unique_ptr<unsigned char[]>(new unsigned char[size]), size};
  *out = reinterpret_cast<uint64_t>(block.bytes.get()) | kFar;
  blocks[*out] = std::move(block);
  return done();
}
int cuMemFree_v2(uint64_t address) {
  finish_all();
  const auto found = blocks.find(address);
  if (found == blocks.end()) return kInvalidValue;
  in_use -= found->second.size;
  return blocks.erase(found), 0;
}
int cuMemAllocAsync(uint64_t *out, size_t size, void *) { return cuMemAlloc_v2(out, size); }
int cuMemFreeAsync(uint64_t address, void *) { return cuMemFree_v2(address); }
int cuDeviceGetDefaultMemPool(void **out, int device) { return *out = reinterpret_cast<void *>(intptr_t{device}), 0; }
int cuMemPoolSetAttribute(void *pool, int attribute, uint64_t *value) { return pool && attribute == 4 && *value ? 0 : kInvalidValue; }
int cuMemHostAlloc(void **out, size_t size, unsigned) { return *out = std::malloc(size), 0; }
int cuMemFreeHost(void *memory) { return std::free(memory), 0; }
int copy(void *to, const void *from, size_t size, void *stream, int upload = 0) {
  if (!to || !from) return kInvalidValue;
  const int result = done();
  if (!result) give(stream, {[=] { std::memcpy(to, from, size), uploads += upload; }});
  return result;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
  return copy(memory(to, size), from, size, stream, 1);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
  return copy(to, memory(from, size), size, stream);
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
  return copy(memory(to, size), memory(from, size), size, stream);
}
int cuModuleLoadDataEx(void **out, const void *image, unsigned count, int *options, void **values) {
  if (refuses_cubins && !std::memcmp(image, "\x7f" "ELF", 4)) return kNoBinary;
  if (!std::strncmp(static_cast<const char *>(image), "bad", 3)) {
    if (count == 2 && options[0] == 5) std::strcpy(static_cast<char *>(values[0]), "line 1: bad");
    return kInvalidImage;
  }
  return *out = const_cast<void *>(image), 0;
}
int cuModuleUnload(void *) { return 0; }
int cuModuleGetFunction(void **out, void *, const char *name) {
  if (hook) return *out = reinterpret_cast<void *>(++functions), 0;
  return *out = const_cast<char *>(name), std::strcmp(name, "scale") ? kNotFound : 0;
}
int cuFuncGetAttribute(int *out, int, void *) { return *out = 1024, 0; }
int cuFuncSetAttribute(void *, int what, int value) { return what == 8 && value <= 232448 - 1024 ? 0 : 1; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **) {
  last = {{gx, gy, gz}, {bx, by, bz}, shared};
  const int result = done();
  if (result) return result;
  const unsigned sizes[] = {gx, gy, gz, bx, by, bz, shared};
  failure = later;
  const Launched kernel = launched(function, sizes, arguments);
  give(stream, {[=] {
    if (const int wrong = run_kernel(kernel)) failure = wrong;
  }});
  // An address that is not the device's is found out at once where there are no other kernels than the one.
  return failure == kIllegalAddress && !later ? failure : 0;
}

struct KernelParams {  // CUDA_KERNEL_NODE_PARAMS_v2
  void *function;
  unsigned sizes[7];
  void **arguments, **extra;
  void *kernel, *context;
};
struct CopySide {
  size_t x, y, z, level;
  int type;
  void *host;
  uint64_t device;
  void *array, *reserved;
  size_t pitch, height;
};
struct CopyParams {  // CUDA_MEMCPY3D_v2
  CopySide source, target;
  size_t width, height, depth;
};
bool is_plain(const CopyParams &copy) {
  auto plain = [](const CopySide &side) { return !side.x && !side.y && !side.z && !side.level && side.type == 2 && !side.array; };
  return plain(copy.source) && plain(copy.target) && copy.width && copy.height == 1 && copy.depth == 1 &&
         memory(copy.source.device, copy.width) && memory(copy.target.device, copy.width);
}

int cuGraphCreate(void **out, unsigned flags) {
  if (flags) return kInvalidValue;
  auto *made = new Graph;
  graphs.insert(made);
  return *out = made, done();
}
// A graph without which an executable's nodes cannot be named is not destroyed before it.
int cuGraphDestroy(void *graph) {
  auto *known = static_cast<Graph *>(graph);
  if (!graphs.erase(known) || !known->executables.empty()) return kInvalidValue;
  return delete known, 0;
}
int add_node(void **out, Graph *graph, void *const *before, size_t count, std::unique_ptr<Node> node) {
  if (!graphs.count(graph)) return kInvalidValue;
  std::set<size_t> each;
  for (size_t i = 0; i < count; i++) {
    const size_t number = number_of(*graph, before[i]);
    if (number == graph->nodes.size() || !each.insert(number).second) return kInvalidValue;  // named twice is refused, too
    node->before.push_back(number);
  }
  *out = node.get();
  graph->nodes.push_back(std::move(node));
  return done();
}
int cuGraphAddKernelNode_v2(void **out, void *graph, void *const *before, size_t count, const KernelParams *given) {
  auto node = std::make_unique<Node>();
  if (!given->function || given->kernel || given->extra) return kInvalidValue;
  node->kernel = launched(given->function, given->sizes, given->arguments);
  return add_node(out, static_cast<Graph *>(graph), before, count, std::move(node));
}
int cuGraphAddMemcpyNode(void **out, void *graph, void *const *before, size_t count, const CopyParams *given, void *context) {
  if (!is_plain(*given) || !context) return kInvalidValue;
  auto node = std::make_unique<Node>();
  node->copy = {given->target.device, given->source.device, given->width};
  return add_node(out, static_cast<Graph *>(graph), before, count, std::move(node));
}
int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags) {
  auto *known = static_cast<Graph *>(graph);
  if (flags || !graphs.count(known)) return kInvalidValue;
  if (graphs_fail) return graphs_fail;
  auto made = std::make_unique<Graph>();
  for (const auto &node : known->nodes) made->nodes.push_back(std::make_unique<Node>(*node));
  made->origin = known;
  known->executables.insert(made.get());
  graphs.insert(made.get());
  graph_calls[0]++;
  return *out = made.release(), done();
}
int cuGraphExecDestroy(void *executable) {
  auto *known = static_cast<Graph *>(executable);
  if (!graphs.erase(known) || !known->origin) return kInvalidValue;
  const_cast<Graph *>(known->origin)->executables.erase(known);
  return delete known, 0;
}
// The node of an executable by that of its graph; null for any other.
Node *node_of(void *executable, void *node) {
  auto *known = static_cast<Graph *>(executable);
  if (!graphs.count(known) || !known->origin) return nullptr;
  const size_t number = number_of(*known->origin, node);
  return number < known->nodes.size() ? known->nodes[number].get() : nullptr;
}
int cuGraphExecKernelNodeSetParams_v2(void *executable, void *node, const KernelParams *given) {
  Node *known = node_of(executable, node);
  if (!known || !known->kernel.function || !given->function) return kInvalidValue;
  if (graphs_fail) return graphs_fail;
  known->kernel = launched(given->function, given->sizes, given->arguments);
  graph_calls[1]++;
  return done();
}
int cuGraphExecMemcpyNodeSetParams(void *executable, void *node, const CopyParams *given, void *context) {
  Node *known = node_of(executable, node);
  if (!known || known->kernel.function || !is_plain(*given) || !context) return kInvalidValue;
  if (graphs_fail) return graphs_fail;
  known->copy = {given->target.device, given->source.device, given->width};
  graph_calls[1]++;
  return done();
}
int cuGraphLaunch(void *executable, void *stream) {
  auto *known = static_cast<Graph *>(executable);
  if (!graphs.count(known) || !known->origin) return kInvalidValue;
  const int result = done();
  if (result) return result;
  failure = later;
  std::vector<Node> nodes;  // later changes are not for this launch
  for (const auto &node : known->nodes) nodes.push_back(*node);
  graph_calls[2]++;
  give(stream, {[=] { run_graph(nodes); }});
  return 0;
}
}
