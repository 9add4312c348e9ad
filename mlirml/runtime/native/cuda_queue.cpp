#include "cuda_queue.h"

#include <algorithm>
#include <cstring>

#include "cuda_device.h"

namespace mlirml {
namespace {

constexpr size_t kMostCommands = 512;  // of a graph, and among which dependences are looked for
constexpr size_t kMostGraphs = 32;     // of a program
constexpr size_t kAlike = 2;           // graphs that differ in their arguments only
constexpr uint32_t kRunsToLearn = 2;   // before a program is known
constexpr uint64_t kManyChanges = 2048;  // of nodes, after which it is asked whether graphs are a gain

}  // namespace

bool Command::operator==(const Command &other) const {
  return kernel == other.kernel && count == other.count && !std::memcmp(&launch, &other.launch, sizeof(launch));
}

CudaGraph::~CudaGraph() {
  if (executable) functions.GraphExecDestroy(executable);  // what runs of it ends first
  if (graph) functions.GraphDestroy(graph);
}

CudaQueue::CudaQueue(CudaDevice &device, CudaHabits &habits, const RunOptions &options)
    : device_(device),
      f_(device.f_),
      habits_(habits),
      outer_(device.queue_),
      waits_(options.waits),
      streams_(std::min(options.streams, kMostStreams)),
      tracks_(!waits_ && streams_ > 1 && (habits.side_by_side || habits.runs < kRunsToLearn)),
      forks_(tracks_ && habits.side_by_side),
      defers_(!waits_ && options.graphs && habits.many && !habits.refused && habits.runs >= kRunsToLearn) {
  device_.queue_ = this;
  habits_.runs = std::min(habits_.runs + 1, kRunsToLearn);
}

CudaQueue::~CudaQueue() {
  device_.queue_ = outer_;
  try {
    join();  // where an error has kept the end of the program from it
  } catch (const std::exception &) {
    // The device is lost.
  }
}

void CudaQueue::launch(const CudaKernel &kernel, const Launch &launch, void *const *arguments) {
  const size_t first = commands_.words.size();
  for (size_t i = 0; i < kernel.sizes.size(); i++) {
    uint64_t word = 0;
    std::memcpy(&word, arguments[i], kernel.sizes[i] ? kernel.sizes[i] : sizeof(word));
    commands_.words.push_back(word);
  }
  commands_.each.push_back({&kernel, launch, first, kernel.sizes.size()});
  accept();
}

void CudaQueue::copy(uint64_t target, uint64_t source, size_t size) {
  if (!size || target == source) return;
  const size_t first = commands_.words.size();
  commands_.words.insert(commands_.words.end(), {target, source, size});
  commands_.each.push_back({nullptr, {}, first, 3});
  accept();
}

void CudaQueue::accept() {
  if (++in_a_row_ >= device_.graph_commands) habits_.many = true;
  if (!defers_ || commands_.each.size() == kMostCommands) give_all();
}

void CudaQueue::give_all() {
  if (commands_.each.empty()) return;
  struct Clear {  // after an error too: the rest is not done
    Commands &commands;
    ~Clear() { commands.each.clear(), commands.words.clear(); }
  } clear{commands_};
  const bool is_graph = defers_ && commands_.each.size() >= device_.graph_commands && launch_graph();
  for (size_t i = 0; !is_graph && i < commands_.each.size(); i++) issue(commands_.each[i]);
}

void CudaQueue::settle() {
  give_all();
  join();
  in_a_row_ = 0;
}

void CudaQueue::issue(const Command &command) {
  const uint32_t lane = tracks_ ? lane_for(command) : 0;
  give(command, device_.streams_[lane]);
}

void **CudaQueue::arguments_of(const Command &command) {
  arguments_.clear();
  for (size_t i = 0; i < command.count; i++) arguments_.push_back(&commands_.words[command.first + i]);
  return arguments_.data();
}

void CudaQueue::give(const Command &command, cuda::Handle stream) {
  device_.pending_ = true;
  if (!command.kernel) {
    const uint64_t *words = &commands_.words[command.first];
    device_.need(f_.MemcpyDtoDAsync(words[0], words[1], words[2], stream), "copying");
    return;
  }
  const auto &[grid, block, shared_bytes] = command.launch;
  const std::string &name = command.kernel->name;
  device_.need(f_.LaunchKernel(command.kernel->function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                               shared_bytes, stream, arguments_of(command), nullptr),
               ("launching " + name).c_str());
  device_.launches++;
  if (waits_) device_.need(f_.StreamSynchronize(stream), ("running " + name).c_str());
}

// Fills in the accesses of a command; the sum of their bytes.
uint64_t CudaQueue::accesses_of(const Command &command) {
  const uint64_t *words = commands_.words.data() + command.first;
  accesses_.clear();
  if (!command.kernel) {
    accesses_.push_back({words[1], words[1] + words[2], false});
    accesses_.push_back({words[0], words[0] + words[2], true});
    return 2 * words[2];
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < command.count; i++) {
    if (command.kernel->sizes[i]) continue;  // a number
    const int64_t known = i < command.kernel->accesses.size() ? command.kernel->accesses[i] : -1;
    if (known < 0) {
      accesses_.push_back(kAnything);
    } else if (const uint64_t bytes = static_cast<uint64_t>(known) / 4; known % 4) {
      accesses_.push_back({words[i], words[i] + bytes, (known & 2) != 0});
      sum += bytes;
    }
  }
  return sum;
}

uint32_t CudaQueue::lane_for(const Command &command) {
  if (order_.size() == kMostCommands) join();
  const uint64_t bytes = accesses_of(command);
  const auto &grid = command.launch.grid;
  const uint64_t blocks = command.kernel ? uint64_t{grid[0]} * grid[1] * grid[2] : 1;
  const std::vector<uint32_t> &waits = order_.add(accesses_);
  const uint32_t lane = choose(waits, bytes, blocks);
  begin(lane);
  wait(lane, waits);
  lane_of_.push_back(lane);
  lanes_[lane].last = static_cast<int64_t>(lane_of_.size()) - 1;
  lanes_[lane].bytes = bytes;
  lanes_[lane].blocks = blocks;
  return lane;
}

// True if work runs beside the last of some lane for a while: both take longer than events do, and one of them leaves
// processors idle.
bool CudaQueue::is_worth(uint64_t bytes, uint64_t blocks) const {
  const uint64_t least = device_.side_bytes, processors = device_.processors_;
  return bytes >= least && std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane &lane) {
    return lane.last >= 0 && lane.bytes >= least && std::min(blocks, lane.blocks) < processors;
  });
}

uint32_t CudaQueue::choose(const std::vector<uint32_t> &waits, uint64_t bytes, uint64_t blocks) {
  auto last_is_waited_for = [&](const Lane &lane) {
    return lane.last >= 0 && std::find(waits.begin(), waits.end(), static_cast<uint32_t>(lane.last)) != waits.end();
  };
  auto number = [&](const Lane *lane) { return static_cast<uint32_t>(lane - lanes_.data()); };
  if (!forks_) {
    if (lanes_[0].last >= 0 && !last_is_waited_for(lanes_[0]) && is_worth(bytes, blocks)) habits_.side_by_side = true;
    return 0;
  }
  for (uint32_t piece : waits)  // the latest first: work continues where that was
    if (lanes_[lane_of_[piece]].last == piece) return lane_of_[piece];
  if (!is_worth(bytes, blocks)) return waits.empty() ? 0 : lane_of_[waits[0]];
  const auto end = lanes_.begin() + streams_;
  // The one without work has the smallest number of its last piece.
  return number(&*std::min_element(lanes_.begin(), end, [](const Lane &a, const Lane &b) { return a.last < b.last; }));
}

// Lets the first work of a lane wait for what was there before all lanes.
void CudaQueue::begin(uint32_t lane) {
  if (forks_ && !began_) {
    device_.need(f_.EventRecord(device_.fork_, device_.streams_[0]), "recording an event");
    began_ = true;
  }
  if (lane && lanes_[lane].last < 0)
    device_.need(f_.StreamWaitEvent(device_.streams_[lane], device_.fork_, 0), "waiting for an event");
}

void CudaQueue::wait(uint32_t lane, const std::vector<uint32_t> &waits) {
  Lane &own = lanes_[lane];
  for (uint32_t piece : waits) {
    const uint32_t other = lane_of_[piece];
    if (other == lane || own.seen[other] >= piece) continue;
    device_.order(device_.streams_[other], device_.streams_[lane]);
    for (uint32_t i = 0; i < kMostStreams; i++) own.seen[i] = std::max(own.seen[i], lanes_[other].seen[i]);
    own.seen[other] = lanes_[other].last;
  }
}

void CudaQueue::join() {
  for (uint32_t lane = 1; lane < streams_; lane++)
    if (lanes_[lane].last > lanes_[0].seen[lane]) device_.order(device_.streams_[lane], device_.streams_[0]);
  order_.clear();
  lane_of_.clear();
  lanes_ = {};
  began_ = false;
}

cuda::KernelNode CudaQueue::kernel_node(const Command &command) {
  cuda::KernelNode node = {};
  node.function = command.kernel->function;
  std::copy_n(command.launch.grid, 3, node.grid);
  std::copy_n(command.launch.block, 3, node.block);
  node.shared_bytes = command.launch.shared_bytes;
  node.arguments = arguments_of(command);
  return node;
}

cuda::CopyNode CudaQueue::copy_node(const Command &command) const {
  const uint64_t *words = &commands_.words[command.first];
  cuda::CopyNode node = {};
  node.source.memory_type = node.target.memory_type = cuda::kDeviceMemory;
  node.target.device = words[0];
  node.source.device = words[1];
  node.width = words[2];
  node.height = node.depth = 1;
  return node;
}

std::vector<uint32_t> CudaQueue::edges_of_commands() {
  WorkOrder order;
  std::vector<uint32_t> edges;
  for (const Command &command : commands_.each) {
    accesses_of(command);
    const std::vector<uint32_t> &waits = order.add(accesses_);
    edges.push_back(static_cast<uint32_t>(waits.size()));
    edges.insert(edges.end(), waits.begin(), waits.end());
  }
  return edges;
}

cuda::Result CudaQueue::make(CudaGraph &graph) {
  if (const cuda::Result result = f_.GraphCreate(&graph.graph, 0)) return result;
  const uint32_t *edge = graph.edges.data();
  std::vector<cuda::Handle> before;
  for (const Command &command : commands_.each) {
    before.clear();
    for (uint32_t left = *edge++; left; left--) before.push_back(graph.nodes[*edge++]);
    cuda::Handle node = nullptr;
    cuda::Result result;
    if (command.kernel) {
      const cuda::KernelNode made = kernel_node(command);
      result = f_.GraphAddKernelNode(&node, graph.graph, before.data(), before.size(), &made);
    } else {
      const cuda::CopyNode made = copy_node(command);
      result = f_.GraphAddMemcpyNode(&node, graph.graph, before.data(), before.size(), &made, device_.context_);
    }
    if (result) return result;
    graph.nodes.push_back(node);
  }
  return f_.GraphInstantiate(&graph.executable, graph.graph, 0);
}

// Gives the nodes of a graph the arguments of the commands; work that it was launched for before keeps its own.
cuda::Result CudaQueue::change(CudaGraph &graph) {
  for (size_t i = 0; i < commands_.each.size(); i++) {
    const Command &command = commands_.each[i];
    const auto words = commands_.words.begin() + command.first;
    if (std::equal(words, words + command.count, graph.made_of.words.begin() + command.first)) continue;
    habits_.changed++;
    cuda::Result result;
    if (command.kernel) {
      const cuda::KernelNode node = kernel_node(command);
      result = f_.GraphExecKernelNodeSetParams(graph.executable, graph.nodes[i], &node);
    } else {
      const cuda::CopyNode node = copy_node(command);
      result = f_.GraphExecMemcpyNodeSetParams(graph.executable, graph.nodes[i], &node, device_.context_);
    }
    if (result) return result;
  }
  return cuda::kSuccess;
}

// True if the driver has done it; false where it refuses, so that commands are given one by one from now on.
bool CudaQueue::accepted(cuda::Result result, const char *doing) {
  if (result == cuda::kSuccess) return true;
  if (!cuda::is_refusal(result)) device_.need(result, doing);
  habits_.refused = true;
  device_.warning_ = "the device " + device_.name + " refuses " + doing + " of " + std::to_string(commands_.each.size()) +
                     " launches and copies, which are made one by one: " + device_.library_->words(result) +
                     "; `mlirml.config.graphs = False` makes no graphs";
  return false;
}

// The graph of the commands: one of before, one whose arguments are changed, or a new one; null where the driver refuses.
CudaGraph *CudaQueue::find_graph() {
  auto &graphs = habits_.graphs;
  // To change a node takes the driver about as long as to launch a kernel.
  if (habits_.changed > kManyChanges && 2 * habits_.changed > habits_.given) {
    habits_.refused = true;
    graphs.clear();
    return nullptr;
  }
  habits_.given += commands_.each.size();
  for (const auto &graph : graphs)
    if (graph->made_of == commands_) return graph.get();
  std::vector<uint32_t> edges = edges_of_commands();
  auto older = [](const auto &a, const auto &b) { return a->used < b->used; };
  auto is_alike = [&](const auto &graph) { return graph->made_of.each == commands_.each && graph->edges == edges; };
  const auto alike = std::stable_partition(graphs.begin(), graphs.end(), [&](const auto &graph) { return !is_alike(graph); });
  if (static_cast<size_t>(graphs.end() - alike) >= kAlike) {
    const auto oldest = std::min_element(alike, graphs.end(), older);
    if (accepted(change(**oldest), "to change a graph")) {
      (*oldest)->made_of = commands_;
      return oldest->get();
    }
    graphs.erase(oldest);  // some of its nodes may be changed
    return nullptr;
  }
  auto graph = std::make_unique<CudaGraph>(f_);
  graph->edges = std::move(edges);
  if (!accepted(make(*graph), "to make a graph")) return nullptr;
  habits_.changed += commands_.each.size();
  graph->made_of = commands_;
  if (graphs.size() == kMostGraphs) graphs.erase(std::min_element(graphs.begin(), graphs.end(), older));
  graphs.push_back(std::move(graph));
  return graphs.back().get();
}

bool CudaQueue::launch_graph() {
  CudaGraph *graph = habits_.refused ? nullptr : find_graph();
  if (!graph) return false;
  join();
  graph->used = ++habits_.uses;
  if (!accepted(f_.GraphLaunch(graph->executable, device_.streams_[0]), "to launch a graph")) return false;
  device_.pending_ = true;
  device_.graphs++;
  for (const Command &command : commands_.each) device_.launches += command.kernel != nullptr;
  return true;
}

}  // namespace mlirml
