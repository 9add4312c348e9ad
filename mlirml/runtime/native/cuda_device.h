// An NVIDIA GPU through libcuda.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "cuda_abi.h"
#include "cuda_queue.h"
#include "device.h"

namespace mlirml {

// The driver's library, opened once by its name.
class CudaLibrary {
 public:
  explicit CudaLibrary(const std::string &path);  // throws NoDevice
  int count() const { return count_; }
  int version() const { return version_; }  // of CUDA, 13000 for 13.0
  bool has_graphs() const { return has_graphs_; }
  const cuda::Functions &functions() const { return functions_; }
  std::string words(cuda::Result result) const;
  const unsigned opened = forks;

 private:
  cuda::Functions functions_;
  int count_ = 0, version_ = 0;
  bool has_graphs_ = true;
};

class CudaDevice;

struct CudaKernel : Kernel {
  std::string name;
  cuda::Handle function = nullptr;
  std::vector<uint32_t> sizes;    // of the arguments in bytes, 0 for buffers
  std::vector<int64_t> accesses;  // as in KernelEntry
};

// Code that is loaded; its kernels live as long as this.
struct CudaModule {
  CudaModule() = default;
  CudaModule(const CudaModule &) = delete;
  CudaModule &operator=(const CudaModule &) = delete;
  std::shared_ptr<CudaDevice> device;
  std::map<std::string, cuda::Handle> modules;  // by image
  std::vector<std::unique_ptr<CudaKernel>> kernels;
  CudaHabits habits;
  ~CudaModule();
};

class CudaDevice : public Device {
 public:
  CudaDevice(std::shared_ptr<CudaLibrary> library, int index);  // throws NoDevice
  ~CudaDevice() override;

  uint64_t alloc(uint64_t size);  // throws std::bad_alloc, DeviceError
  void free(uint64_t address);
  // Copies between host and device wait for the work up to a mark, all so far where there is none, and for no other.
  void copy_in(uint64_t address, const void *source, size_t size, std::optional<uint64_t> after);
  void copy_out(void *target, uint64_t address, size_t size, std::optional<uint64_t> after);
  void copy(uint64_t target, uint64_t source, size_t size);
  uint64_t mark();
  bool wait(uint64_t mark, double seconds);  // without end where negative
  // The code in the form of the target; `cubin` is the same for one processor, and may be empty, or for another one.
  void load(std::string_view code, std::string_view cubin, const std::vector<KernelEntry> &entries, CudaModule &module);
  void run(void (*entry)(void **), std::vector<void *> &pointers, CudaModule *module, const RunOptions &options);
  std::string take_warning();  // about what could be done in another way only; empty if there is none

  void launch(Kernel *kernel, const Launch &launch, void *const *arguments, size_t count) noexcept override;
  void copy_any(uint64_t target, uint64_t source, size_t size) noexcept override;

  int attribute(int number) const;
  int index() const { return index_; }

  // For work of other libraries, on streams given as they give them.
  uint64_t stream() const { return reinterpret_cast<uint64_t>(stream_); }
  void make_wait(uint64_t stream);  // for the work so far
  void wait_for(uint64_t stream) noexcept;  // what comes later waits
  void follow();  // copies wait for what `stream()` waits for now: work of others on memory that they give
  void finish() noexcept;
  // Memory of others is known to be on the device from `take` until `give_back`.
  void take(uint64_t address, uint64_t size);
  void give_back(uint64_t address, uint64_t size) noexcept;

  std::string name;
  size_t memory = 0;
  uint64_t launches = 0, graphs = 0, cubins = 0, bytes_in = 0, bytes_out = 0;
  uint64_t side_bytes = uint64_t{1} << 20;  // kernels that move less are not launched side by side
  uint64_t graph_commands = 8;              // fewer launches and copies in a row are no graph

 private:
  struct Active;  // makes the context the thread's own while it lives
  struct Event {
    uint64_t number;
    cuda::Handle event;
  };
  struct Stage {
    void *memory = nullptr;
    cuda::Handle event = nullptr;  // recorded behind the last copy that uses the memory
    bool used = false;
  };
  struct Piece {  // of the pinned memory for uploads, until its copy is done
    size_t begin, end;
    cuda::Handle event;
  };

  void need(cuda::Result result, const char *doing);
  cuda::Result load_image(const std::string &image, CudaModule &module, std::string &log);
  cuda::Handle image_of(const std::string &image, CudaModule &module);
  cuda::Handle common_of(const std::string &code, const std::string &cubin, CudaModule &module);
  void write(uint64_t address, const void *source, size_t size, cuda::Handle stream);
  void read(void *target, uint64_t address, size_t size, cuda::Handle stream);
  void await(Stage &stage);
  size_t pinned(size_t size);
  cuda::Handle event();
  uint64_t resolved(std::optional<uint64_t> after);
  cuda::Handle event_of(uint64_t mark);
  void join_uploads();
  void settle();
  void order(cuda::Handle first, cuda::Handle second);
  void forget_done();
  bool is_on_device(uint64_t address) const;

  friend struct CudaModule;
  friend class CudaQueue;

  std::shared_ptr<CudaLibrary> library_;
  const cuda::Functions &f_;
  int device_ = 0, index_ = 0;
  cuda::Handle context_ = nullptr, order_ = nullptr;
  cuda::Handle stream_ = nullptr;  // kernels, and copies of programs
  std::array<cuda::Handle, kMostStreams> streams_ = {};  // that one, and those that kernels run on beside it
  cuda::Handle fork_ = nullptr;  // the event that their work waits for first
  uint64_t processors_ = 1;
  CudaQueue *queue_ = nullptr;   // of the program that is running
  cuda::Handle uploads_ = nullptr, downloads_ = nullptr;
  std::array<Stage, 2> stages_;  // of downloads
  unsigned char *ring_ = nullptr;
  size_t ring_head_ = 0;
  std::deque<Piece> pieces_;
  std::deque<Event> events_;  // of marks that may not be reached yet
  std::vector<cuda::Handle> unused_events_;
  std::map<uint64_t, uint64_t> blocks_;         // sizes by address
  std::multimap<uint64_t, uint64_t> borrowed_;  // the same of memory that others own; parts of it may overlap
  uint64_t marks_ = 0, done_ = 0;
  uint64_t shared_ = 0;      // the mark behind what other libraries have last done to memory of this device
  bool pending_ = false;     // work behind the last mark
  bool uploading_ = false;   // copies that the stream of kernels does not wait for yet
  bool lost_ = false;
  std::string error_;  // of work by host code, which cannot raise
  std::string warning_;
  DeviceMutex mutex_{name};
};

}  // namespace mlirml
