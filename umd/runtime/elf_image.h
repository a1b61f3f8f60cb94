// A kernel module as orrery-cc makes it: a position-independent RISC-V ELF64 with PT_LOAD segments, relative
// relocations and a dynamic symbol table. Nothing of the file is trusted: every offset, size and count is
// checked before it is used, and what is not understood is refused.
#pragma once

#include <orrery/hw/kernel_abi.h>
#include <orrery/hw/mmu.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "umd/runtime/isa.h"
#include "umd/runtime/line_table.h"
#include "umd/winsys/error.h"

namespace orrery::umd {

class ElfImage {
  public:
    static constexpr std::uint64_t kMaxMemory = 64 << 20;  // bytes of all segments
    static constexpr std::uint64_t kMaxFile = 256 << 20;
    static constexpr std::uint32_t kMaxSegments = 16;
    static constexpr std::uint32_t kMaxSymbols = 1 << 16;
    static constexpr std::uint64_t kMaxName = 4096;       // of one symbol
    static constexpr std::uint64_t kMaxNames = 16 << 20;  // of all: they may share a file's bytes
    static constexpr std::uint32_t kMaxItemStack = ORR_ITEM_STACK_MAX_PAGES * ORR_PAGE_SIZE;

    struct Segment {
        std::uint64_t start = 0;  // whole pages, relative to the load address
        std::uint64_t size = 0;
        std::uint32_t bind = 0;  // ORR_BIND_*; never both WRITE and EXEC
    };

    // A variable that others may ask for by name: inside one segment.
    struct Variable {
        std::uint64_t offset = 0;  // from the load address
        std::uint64_t bytes = 0;
        bool constant = false;  // nothing can write it
    };

    // Parses and checks everything; `file` is not needed afterwards.
    static Result<ElfImage> parse(std::span<const std::byte> file);

    // Bytes from the load address that the segments span, whole pages.
    std::uint64_t size() const { return memory_.size(); }
    const std::vector<Segment>& segments() const { return segments_; }
    // The contents for loading at `base`: segments with relocations applied.
    std::vector<std::byte> relocated(std::uint64_t base) const;
    // Exported functions and their entries, relative to the load address.
    const std::map<std::string, std::uint64_t, std::less<>>& functions() const { return functions_; }
    // Exported variables. Two of them are of the same bytes, or of none in common.
    const std::map<std::string, Variable, std::less<>>& variables() const { return variables_; }
    // Of machine code, as the file says; inside a segment.
    std::uint64_t code_bytes(std::string_view function) const;
    // Some of its code waits at barriers.
    bool barriers() const { return barriers_; }
    // Bytes of stack for each item of this function that waits at a barrier; 0: the module has no barrier.
    std::uint32_t item_stack_bytes(std::string_view function) const;
    // Where the module wants the address of the ring for what its kernels print; nothing: they print nothing.
    std::optional<std::uint64_t> output_pointer() const { return output_pointer_; }
    // What its code uses of a vector core. A file that does not say is taken for one from before there was a
    // choice.
    const Isa& needs() const { return needs_; }
    // For error texts; empty without -g.
    const LineTables& lines() const { return lines_; }

  private:
    friend class ElfParser;
    struct Relocation {
        std::uint64_t offset;
        std::uint64_t addend;
    };
    std::vector<std::byte> memory_;
    std::vector<Segment> segments_;
    std::vector<Relocation> relocations_;
    std::map<std::string, std::uint64_t, std::less<>> functions_;
    std::map<std::string, std::uint64_t, std::less<>> code_bytes_;  // by function
    std::map<std::string, Variable, std::less<>> variables_;
    std::map<std::string, std::uint32_t, std::less<>> item_stacks_;  // by function, of those that say
    bool barriers_ = false;
    std::optional<std::uint64_t> output_pointer_;
    Isa needs_ = Isa::first();
    LineTables lines_;
};

}  // namespace orrery::umd
