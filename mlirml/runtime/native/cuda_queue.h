// The launches and copies of one run of a program, as they are given to an NVIDIA GPU: one after another, side by side on
// several streams, or many at once as a graph. What waits for what is found by the bytes that they read and write.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cuda_abi.h"
#include "device.h"
#include "work_order.h"

namespace mlirml {

class CudaDevice;
struct CudaKernel;

constexpr uint32_t kMostStreams = 4;

// A launch, or a copy on the device where there is no kernel.
struct Command {
  const CudaKernel *kernel;
  Launch launch;
  size_t first, count;  // of the words: the arguments of the kernel, or target, source and bytes
  bool operator==(const Command &other) const;
};

struct Commands {
  std::vector<Command> each;
  std::vector<uint64_t> words;
  bool operator==(const Commands &other) const { return words == other.words && each == other.each; }
};

// Commands that the driver has as one object. Its nodes are changed by what they belong to, so that it lives as long.
struct CudaGraph {
  CudaGraph(const cuda::Functions &functions) : functions(functions) {}
  CudaGraph(const CudaGraph &) = delete;
  CudaGraph &operator=(const CudaGraph &) = delete;
  ~CudaGraph();
  const cuda::Functions &functions;
  Commands made_of;
  std::vector<uint32_t> edges;  // for each command the number of those before it, and their numbers
  std::vector<cuda::Handle> nodes;
  cuda::Handle graph = nullptr, executable = nullptr;
  uint64_t used = 0;  // a larger number is later
};

// What earlier runs of a program have shown.
struct CudaHabits {
  uint32_t runs = 0;
  bool side_by_side = false;  // some launches need not wait for the ones before them
  bool many = false;          // enough of them follow each other for a graph
  bool refused = false;       // the driver makes no graph of them, or graphs are no gain
  uint64_t given = 0, changed = 0;  // commands in graphs, and those whose nodes were made or changed for that
  std::vector<std::unique_ptr<CudaGraph>> graphs;
  uint64_t uses = 0;
};

class CudaQueue {
 public:
  CudaQueue(CudaDevice &device, CudaHabits &habits, const RunOptions &options);
  ~CudaQueue();
  CudaQueue(const CudaQueue &) = delete;
  CudaQueue &operator=(const CudaQueue &) = delete;

  void launch(const CudaKernel &kernel, const Launch &launch, void *const *arguments);
  void copy(uint64_t target, uint64_t source, size_t size);
  // Gives the device what it does not have yet; work that comes later on its stream waits for all of it.
  void settle();

 private:
  struct Lane {
    int64_t last = -1;  // its last piece of work
    uint64_t bytes = 0, blocks = 0;
    std::array<int64_t, kMostStreams> seen = {-1, -1, -1, -1};  // up to which piece of each other lane it waits
  };

  void accept();
  void give_all();
  void issue(const Command &command);
  void give(const Command &command, cuda::Handle stream);
  uint32_t lane_for(const Command &command);
  uint32_t choose(const std::vector<uint32_t> &waits, uint64_t bytes, uint64_t blocks);
  bool is_worth(uint64_t bytes, uint64_t blocks) const;
  void begin(uint32_t lane);
  void wait(uint32_t lane, const std::vector<uint32_t> &waits);
  void join();
  uint64_t accesses_of(const Command &command);
  void **arguments_of(const Command &command);
  cuda::KernelNode kernel_node(const Command &command);
  cuda::CopyNode copy_node(const Command &command) const;
  bool launch_graph();
  CudaGraph *find_graph();
  std::vector<uint32_t> edges_of_commands();
  cuda::Result make(CudaGraph &graph);
  cuda::Result change(CudaGraph &graph);
  bool accepted(cuda::Result result, const char *doing);

  CudaDevice &device_;
  const cuda::Functions &f_;
  CudaHabits &habits_;
  CudaQueue *const outer_;  // of the program whose host code has called this one
  const bool waits_;
  const uint32_t streams_;
  const bool tracks_, forks_, defers_;
  Commands commands_;      // that the device does not have yet
  uint32_t in_a_row_ = 0;  // commands since the last settlement
  WorkOrder order_;
  std::vector<uint32_t> lane_of_;  // by piece of work
  std::array<Lane, kMostStreams> lanes_;
  bool began_ = false;  // the event that other lanes begin with is recorded
  std::vector<Access> accesses_;
  std::vector<void *> arguments_;
};

}  // namespace mlirml
