// One mapping holds everything: text and call stubs (read, execute), constants and the address table (read), data.
// The object comes from a cache on disk, so that every offset, size and index in it is checked before it is used.
#include "loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "blas.h"
#include "checks.h"
#include "clock.h"
#include "compact.h"
#include "device.h"
#include "host.h"
#include "interrupts.h"
#include "fft.h"
#include "lapack.h"
#include "pool.h"
#include "sort.h"

namespace mlirml {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMaxImage = uint64_t{1} << 30;  // every part stays in reach of a 32-bit displacement
constexpr uint64_t kStubSize = 8;
constexpr uint32_t kRexCode4GotPcRelX = 43;
constexpr uint64_t kNotPlaced = ~uint64_t{0};

[[noreturn]] void fail(const std::string &what) { throw BadObject("malformed object: " + what); }

uint64_t align_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

enum Part { kText, kConstant, kData, kParts };

// Bounds-checked reads from the object.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::string_view slice(uint64_t offset, uint64_t size, const char *what) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) fail(std::string(what) + " reaches past the end");
    return bytes_.substr(offset, size);
  }

  template <class T>
  std::vector<T> table(uint64_t offset, uint64_t count, const char *what) const {
    if (count > bytes_.size() / sizeof(T)) fail(std::string(what) + " reaches past the end");
    std::string_view raw = slice(offset, count * sizeof(T), what);
    std::vector<T> result(count);
    if (count) std::memcpy(result.data(), raw.data(), raw.size());  // the file aligns nothing
    return result;
  }

 private:
  std::string_view bytes_;
};

std::string name_at(std::string_view strings, uint64_t offset, const char *what) {
  if (offset >= strings.size()) fail(std::string(what) + " has no name in the string table");
  std::string_view rest = strings.substr(offset);
  size_t end = rest.find('\0');
  if (end == std::string_view::npos) fail(std::string(what) + " has a name without an end");
  return std::string(rest.substr(0, end));
}

struct Section {
  Elf64_Shdr header;
  std::string name;
  Part part = kData;
  bool placed = false;
  uint64_t offset = 0;  // from the image's start
};

struct Symbol {
  std::string name;
  Elf64_Sym raw;
  uint64_t offset = kNotPlaced;  // from the image's start, for symbols in sections
  uint64_t value = 0;            // the address, when resolved
  bool resolved = false;
  int64_t slot = -1;  // in the address table
  int64_t stub = -1;
};

struct Relocation {
  size_t section;
  uint64_t offset;
  uint32_t type, symbol;
  int64_t addend;
};

class Loader {
 public:
  explicit Loader(std::string_view bytes) : reader_(bytes) {}
  ~Loader() {
    if (base_) munmap(base_, size_);
  }

  void load() {
    read_sections();
    read_symbols();
    read_relocations();
    resolve_outside_symbols();
    lay_out();
    map();
    place();
    relocate();
    protect();
  }

  bool refers_to(std::string_view name) const {
    return std::any_of(used_.begin(), used_.end(), [&](uint32_t index) {
      return symbols_[index].raw.st_shndx == SHN_UNDEF && symbols_[index].name == name;
    });
  }

  void hand_over(std::unordered_map<std::string, uintptr_t> &symbols, void *&base, size_t &size) {
    for (const Symbol &symbol : symbols_)
      if (symbol.offset != kNotPlaced && !symbol.name.empty() && ELF64_ST_BIND(symbol.raw.st_info) != STB_LOCAL)
        symbols.emplace(symbol.name, address(symbol.offset));
    base = std::exchange(base_, nullptr);
    size = size_;
  }

 private:
  uint64_t address(uint64_t offset) const { return reinterpret_cast<uint64_t>(base_) + offset; }

  void read_sections() {
    auto header = reader_.table<Elf64_Ehdr>(0, 1, "the file header")[0];
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail("no ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_REL ||
        header.e_machine != EM_X86_64)
      fail("no x86-64 relocatable file");
    if (header.e_shentsize != sizeof(Elf64_Shdr)) fail("odd section header size");
    uint64_t count = header.e_shnum;
    uint64_t names = header.e_shstrndx;
    if (count == 0 && header.e_shoff != 0) count = reader_.table<Elf64_Shdr>(header.e_shoff, 1, "section 0")[0].sh_size;
    auto raw = reader_.table<Elf64_Shdr>(header.e_shoff, count, "the section table");
    if (names == SHN_XINDEX && count) names = raw[0].sh_link;
    if (names >= count) fail("no section names");
    std::string_view strings = contents(raw[names]);
    for (const Elf64_Shdr &section : raw) {
      sections_.push_back({section, name_at(strings, section.sh_name, "a section")});
      classify(sections_.back());
    }
  }

  std::string_view contents(const Elf64_Shdr &section) const {
    return section.sh_type == SHT_NOBITS ? std::string_view()
                                         : reader_.slice(section.sh_offset, section.sh_size, "a section");
  }

  static bool runs_at_load(const Section &section) {
    const uint32_t type = section.header.sh_type;
    return type == SHT_INIT_ARRAY || type == SHT_FINI_ARRAY || type == SHT_PREINIT_ARRAY ||
           section.name.rfind(".ctors", 0) == 0 || section.name.rfind(".dtors", 0) == 0;
  }

  static void classify(Section &section) {
    const Elf64_Shdr &header = section.header;
    // Unwinding tables are left out: nothing is thrown through compiled code.
    if (!(header.sh_flags & SHF_ALLOC) || header.sh_type == SHT_X86_64_UNWIND || section.name == ".eh_frame") return;
    if (header.sh_flags & SHF_TLS) fail("section " + section.name + " is thread-local, which is not supported");
    if (header.sh_flags & SHF_COMPRESSED) fail("section " + section.name + " is compressed");
    if (header.sh_size && runs_at_load(section))
      fail("section " + section.name + ": static constructors are not supported");
    if (header.sh_addralign > kPage || (header.sh_addralign & (header.sh_addralign - 1)))
      fail("section " + section.name + " has a bad alignment");
    section.placed = true;
    section.part = header.sh_flags & SHF_EXECINSTR ? kText : header.sh_flags & SHF_WRITE ? kData : kConstant;
  }

  void read_symbols() {
    for (const Section &section : sections_) {
      if (section.header.sh_type != SHT_SYMTAB) continue;
      if (!symbols_.empty()) fail("two symbol tables");
      if (section.header.sh_entsize != sizeof(Elf64_Sym)) fail("odd symbol size");
      if (section.header.sh_link >= sections_.size()) fail("the symbol table has no names");
      std::string_view strings = contents(sections_[section.header.sh_link].header);
      for (const Elf64_Sym &raw : reader_.table<Elf64_Sym>(
               section.header.sh_offset, section.header.sh_size / sizeof(Elf64_Sym), "the symbol table"))
        symbols_.push_back({raw.st_name ? name_at(strings, raw.st_name, "a symbol") : std::string(), raw});
    }
    for (Symbol &symbol : symbols_) check_symbol(symbol);
  }

  void check_symbol(const Symbol &symbol) const {
    const uint16_t index = symbol.raw.st_shndx;
    const int type = ELF64_ST_TYPE(symbol.raw.st_info);
    if (type == STT_GNU_IFUNC || type == STT_TLS) fail("symbol " + symbol.name + " has an unsupported type");
    if (index == SHN_UNDEF || index == SHN_ABS) return;
    if (index == SHN_COMMON) {
      const uint64_t alignment = symbol.raw.st_value;
      if (alignment > kPage || (alignment & (alignment - 1))) fail("symbol " + symbol.name + " has a bad alignment");
      return;
    }
    if (index >= sections_.size()) fail("symbol " + symbol.name + " is in no section");
    if (symbol.raw.st_value > sections_[index].header.sh_size) fail("symbol " + symbol.name + " is outside its section");
  }

  void read_relocations() {
    for (const Section &section : sections_) {
      if (section.header.sh_type != SHT_REL && section.header.sh_type != SHT_RELA) continue;
      const uint64_t target = section.header.sh_info;
      if (target >= sections_.size()) fail("section " + section.name + " relocates no section");
      if (!sections_[target].placed) continue;
      if (section.header.sh_type == SHT_REL) fail("section " + section.name + " has relocations without addends");
      if (section.header.sh_entsize != sizeof(Elf64_Rela)) fail("odd relocation size");
      for (const Elf64_Rela &raw : reader_.table<Elf64_Rela>(
               section.header.sh_offset, section.header.sh_size / sizeof(Elf64_Rela), "a relocation table"))
        add_relocation(target, raw);
    }
  }

  void add_relocation(size_t target, const Elf64_Rela &raw) {
    Relocation relocation = {target, raw.r_offset, static_cast<uint32_t>(ELF64_R_TYPE(raw.r_info)),
                             static_cast<uint32_t>(ELF64_R_SYM(raw.r_info)), raw.r_addend};
    if (relocation.type == R_X86_64_NONE) return;
    const Elf64_Shdr &header = sections_[target].header;
    const uint64_t width = relocation_width(relocation.type);
    if (header.sh_type == SHT_NOBITS || raw.r_offset > header.sh_size || header.sh_size - raw.r_offset < width)
      fail("a relocation is outside section " + sections_[target].name);
    if (relocation.symbol >= symbols_.size()) fail("a relocation names no symbol");
    Symbol &symbol = symbols_[relocation.symbol];
    if (needs_slot(relocation.type) && symbol.slot < 0) symbol.slot = slots_++;
    if (relocation.type == R_X86_64_PLT32 || relocation.type == R_X86_64_PLTOFF64) wants_stub_.insert(relocation.symbol);
    used_.insert(relocation.symbol);
    relocations_.push_back(relocation);
  }

  static uint64_t relocation_width(uint32_t type) {
    switch (type) {
      case R_X86_64_64:
      case R_X86_64_PC64:
      case R_X86_64_GOTOFF64:
      case R_X86_64_GOT64:
      case R_X86_64_GOTPCREL64:
      case R_X86_64_GOTPC64:
      case R_X86_64_PLTOFF64:
        return 8;
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
      case kRexCode4GotPcRelX:
      case R_X86_64_GOTPC32:
      case R_X86_64_32:
      case R_X86_64_32S:
        return 4;
      default:
        fail("relocation type " + std::to_string(type) + " is not supported");
    }
  }

  static bool needs_slot(uint32_t type) {
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX ||
           type == kRexCode4GotPcRelX || type == R_X86_64_GOT64 || type == R_X86_64_GOTPCREL64;
  }

  bool is_table_symbol(const Symbol &symbol) const {
    return symbol.raw.st_shndx == SHN_UNDEF && symbol.name == "_GLOBAL_OFFSET_TABLE_";
  }

  void resolve_outside_symbols() {
    for (uint32_t index : used_) {
      Symbol &symbol = symbols_[index];
      if (symbol.raw.st_shndx == SHN_ABS) {
        symbol.value = symbol.raw.st_value;
        symbol.resolved = true;
      }
      if (symbol.raw.st_shndx != SHN_UNDEF || is_table_symbol(symbol)) continue;
      if (symbol.name.empty()) fail("a relocation names the empty symbol");
      symbol.value = find_process_symbol(symbol.name.c_str());
      if (symbol.value == 0) throw MissingSymbol("unresolved symbol: " + symbol.name);
      symbol.resolved = true;
      if (wants_stub_.count(index)) {
        symbol.stub = stubs_++;
        if (symbol.slot < 0) symbol.slot = slots_++;
      }
    }
  }

  void lay_out() {
    uint64_t at = 0;
    for (int part = 0; part < kParts; part++) {
      part_begin_[part] = at = align_up(at, kPage);
      for (Section &section : sections_) {
        if (!section.placed || section.part != part) continue;
        section.offset = at = align_up(at, section.header.sh_addralign ? section.header.sh_addralign : 1);
        at = advance(at, section.header.sh_size);
      }
      if (part == kText) {
        stubs_offset_ = align_up(at, kStubSize);
        at = advance(stubs_offset_, static_cast<uint64_t>(stubs_) * kStubSize);
      }
      if (part == kConstant) {
        table_offset_ = align_up(at, 8);
        at = advance(table_offset_, static_cast<uint64_t>(slots_) * 8);
      }
      if (part == kData) at = lay_out_common(at);
    }
    size_ = std::max(align_up(at, kPage), kPage);
  }

  static uint64_t advance(uint64_t at, uint64_t size) {
    if (size > kMaxImage || at + size > kMaxImage) fail("its sections do not fit into memory");
    return at + size;
  }

  uint64_t lay_out_common(uint64_t at) {
    for (Symbol &symbol : symbols_) {
      if (symbol.raw.st_shndx != SHN_COMMON) continue;
      symbol.offset = at = align_up(at, symbol.raw.st_value ? symbol.raw.st_value : 1);
      at = advance(at, symbol.raw.st_size);
    }
    return at;
  }

  void map() {
    void *base = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<char *>(base);
  }

  void place() {
    for (const Section &section : sections_) {
      if (!section.placed) continue;
      std::string_view bytes = contents(section.header);
      if (!bytes.empty()) std::memcpy(base_ + section.offset, bytes.data(), bytes.size());
    }
    for (Symbol &symbol : symbols_) {
      const uint16_t index = symbol.raw.st_shndx;
      if (index != SHN_UNDEF && index < SHN_LORESERVE && sections_[index].placed)
        symbol.offset = sections_[index].offset + symbol.raw.st_value;
      if (is_table_symbol(symbol)) symbol.offset = table_offset_;
      if (symbol.offset == kNotPlaced) continue;
      symbol.value = address(symbol.offset);
      symbol.resolved = true;
    }
    for (uint32_t index : used_)
      if (!symbols_[index].resolved) fail("symbol " + symbols_[index].name + " is in a section that is not loaded");
    for (const Symbol &symbol : symbols_) {
      if (symbol.slot >= 0) std::memcpy(base_ + slot_offset(symbol), &symbol.value, 8);
      if (symbol.stub >= 0) write_stub(symbol);
    }
  }

  uint64_t slot_offset(const Symbol &symbol) const { return table_offset_ + static_cast<uint64_t>(symbol.slot) * 8; }
  uint64_t stub_offset(const Symbol &symbol) const {
    return stubs_offset_ + static_cast<uint64_t>(symbol.stub) * kStubSize;
  }

  // jmp *slot(%rip); int3; int3
  void write_stub(const Symbol &symbol) {
    const auto displacement = static_cast<uint32_t>(slot_offset(symbol) - (stub_offset(symbol) + 6));
    unsigned char code[kStubSize] = {0xFF, 0x25, 0, 0, 0, 0, 0xCC, 0xCC};
    std::memcpy(code + 2, &displacement, 4);
    std::memcpy(base_ + stub_offset(symbol), code, kStubSize);
  }

  void relocate() {
    for (const Relocation &relocation : relocations_) {
      const Symbol &symbol = symbols_[relocation.symbol];
      const uint64_t place = sections_[relocation.section].offset + relocation.offset;
      const uint64_t value = relocated_value(relocation, symbol, address(place));
      const uint64_t width = relocation_width(relocation.type);
      if (width == 4 && !fits(relocation.type, value))
        fail("relocation type " + std::to_string(relocation.type) + " against " +
             (symbol.name.empty() ? "a section" : symbol.name) + " is out of reach");
      std::memcpy(base_ + place, &value, width);
    }
  }

  static bool fits(uint32_t type, uint64_t value) {
    if (type == R_X86_64_32) return value <= UINT32_MAX;
    return static_cast<int64_t>(value) == static_cast<int32_t>(value);
  }

  // The formulas of the System V ABI, AMD64 supplement, table 4.9.
  uint64_t relocated_value(const Relocation &relocation, const Symbol &symbol, uint64_t place) const {
    const uint64_t addend = static_cast<uint64_t>(relocation.addend);
    const uint64_t target = symbol.value + addend;
    const uint64_t table = address(table_offset_);
    switch (relocation.type) {
      case R_X86_64_PC32:
      case R_X86_64_PC64:
        return target - place;
      case R_X86_64_PLT32:
        // Outside functions go through their stub even when near: the result then does not depend on chance.
        return symbol.stub >= 0 ? address(stub_offset(symbol)) + addend - place : target - place;
      case R_X86_64_PLTOFF64:
        return (symbol.stub >= 0 ? address(stub_offset(symbol)) + addend : target) - table;
      case R_X86_64_GOTOFF64:
        return target - table;
      case R_X86_64_GOTPC32:
      case R_X86_64_GOTPC64:
        return table + addend - place;
      case R_X86_64_GOT64:
        return slot_offset(symbol) - table_offset_ + addend;
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
      case kRexCode4GotPcRelX:
      case R_X86_64_GOTPCREL64:
        return address(slot_offset(symbol)) + addend - place;
      default:
        return target;
    }
  }

  void protect() {
    const int access[kParts] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
    for (int part = 0; part < kParts; part++) {
      const uint64_t end = part + 1 < kParts ? part_begin_[part + 1] : size_;
      if (end > part_begin_[part] && mprotect(base_ + part_begin_[part], end - part_begin_[part], access[part]) != 0)
        throw std::runtime_error("the system refuses executable memory");
    }
  }

  Reader reader_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::vector<Relocation> relocations_;
  std::set<uint32_t> used_, wants_stub_;
  int64_t slots_ = 0, stubs_ = 0;
  uint64_t part_begin_[kParts] = {};
  uint64_t stubs_offset_ = 0, table_offset_ = 0;
  char *base_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace

Code::Code(std::string_view object) {
  Loader loader(object);
  loader.load();
  loader.hand_over(symbols_, base_, size_);
  polls_ = loader.refers_to("mlirml_poll") || loader.refers_to("mlirml_host_call");
}

Code::~Code() { munmap(base_, size_); }

uintptr_t Code::address(const std::string &symbol) const {
  auto found = symbols_.find(symbol);
  if (found == symbols_.end()) throw MissingSymbol("the object does not define " + symbol);
  return found->second;
}

uintptr_t find_process_symbol(const char *name) {
  if (std::strcmp(name, "mlirml_parallel_for") == 0) return reinterpret_cast<uintptr_t>(&mlirml_parallel_for);
  if (std::strcmp(name, "mlirml_parallel_for_long") == 0) return reinterpret_cast<uintptr_t>(&mlirml_parallel_for_long);
  if (std::strcmp(name, "mlirml_check_failed") == 0) return reinterpret_cast<uintptr_t>(&mlirml_check_failed);
  if (std::strcmp(name, "mlirml_poll") == 0) return reinterpret_cast<uintptr_t>(&mlirml_poll);
  if (std::strcmp(name, "mlirml_kernel_begins") == 0) return reinterpret_cast<uintptr_t>(&mlirml_kernel_begins);
  if (std::strcmp(name, "mlirml_kernel_ends") == 0) return reinterpret_cast<uintptr_t>(&mlirml_kernel_ends);
  if (std::strcmp(name, "mlirml_threads") == 0) return reinterpret_cast<uintptr_t>(&mlirml_threads);
  if (std::strcmp(name, "mlirml_host_word") == 0) return reinterpret_cast<uintptr_t>(&mlirml_host_word);
  if (std::strcmp(name, "mlirml_host_bytes") == 0) return reinterpret_cast<uintptr_t>(&mlirml_host_bytes);
  if (std::strcmp(name, "mlirml_host_call") == 0) return reinterpret_cast<uintptr_t>(&mlirml_host_call);
  if (std::strcmp(name, "mlirml_sort") == 0) return reinterpret_cast<uintptr_t>(&mlirml_sort);
  if (std::strcmp(name, "mlirml_argsort") == 0) return reinterpret_cast<uintptr_t>(&mlirml_argsort);
  if (std::strcmp(name, "mlirml_mask_counts") == 0) return reinterpret_cast<uintptr_t>(&mlirml_mask_counts);
  if (std::strcmp(name, "mlirml_positions") == 0) return reinterpret_cast<uintptr_t>(&mlirml_positions);
  if (std::strcmp(name, "mlirml_compress") == 0) return reinterpret_cast<uintptr_t>(&mlirml_compress);
  if (std::strcmp(name, "mlirml_fft") == 0) return reinterpret_cast<uintptr_t>(&mlirml_fft);
  if (has_blas() && std::strcmp(name, "mlirml_product") == 0) return reinterpret_cast<uintptr_t>(&mlirml_product);
  if (has_lapack()) {
    if (std::strcmp(name, "mlirml_cholesky") == 0) return reinterpret_cast<uintptr_t>(&mlirml_cholesky);
    if (std::strcmp(name, "mlirml_inverse") == 0) return reinterpret_cast<uintptr_t>(&mlirml_inverse);
    if (std::strcmp(name, "mlirml_lu_diagonal") == 0) return reinterpret_cast<uintptr_t>(&mlirml_lu_diagonal);
    if (std::strcmp(name, "mlirml_lu") == 0) return reinterpret_cast<uintptr_t>(&mlirml_lu);
    if (std::strcmp(name, "mlirml_qr") == 0) return reinterpret_cast<uintptr_t>(&mlirml_qr);
    if (std::strcmp(name, "mlirml_svd") == 0) return reinterpret_cast<uintptr_t>(&mlirml_svd);
    if (std::strcmp(name, "mlirml_eigh") == 0) return reinterpret_cast<uintptr_t>(&mlirml_eigh);
    if (std::strcmp(name, "mlirml_eig") == 0) return reinterpret_cast<uintptr_t>(&mlirml_eig);
    if (std::strcmp(name, "mlirml_solve") == 0) return reinterpret_cast<uintptr_t>(&mlirml_solve);
    if (std::strcmp(name, "mlirml_triangular_solve") == 0) return reinterpret_cast<uintptr_t>(&mlirml_triangular_solve);
  }
  if (std::strcmp(name, "mgpuLaunchKernel") == 0) return reinterpret_cast<uintptr_t>(&mgpuLaunchKernel);
  if (std::strcmp(name, "mgpuMemcpy") == 0) return reinterpret_cast<uintptr_t>(&mgpuMemcpy);
  if (void *found = dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<uintptr_t>(found);
  for (const char *library : {"libm.so.6", "libmvec.so.1"}) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);  // never closed: code may keep addresses
    void *found = handle ? dlsym(handle, name) : nullptr;
    if (found) return reinterpret_cast<uintptr_t>(found);
  }
  return 0;
}

}  // namespace mlirml
