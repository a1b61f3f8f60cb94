#include "tests/unit/riscv/user_program.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

namespace orrery::riscv::test {
namespace {

constexpr std::uint64_t kPage = 0x1000;
constexpr std::uint64_t kStack = 0x7fff0000, kStackBytes = 0x10000;
constexpr std::uint64_t kMost = 64 << 20;
enum Register : unsigned { kSp = 2, kA0 = 10, kA1 = 11, kA2 = 12, kA7 = 17 };
enum Call : std::uint64_t { kRead = 63, kWrite = 64, kExit = 93, kMmap = 222 };

class Memory : public emu::Bus {
  public:
    emu::PageRef translate(std::uint64_t va, emu::Access) override {
        const auto found = pages_.find(va & ~(kPage - 1));
        if (found == pages_.end()) return emu::PageRef::fault();
        return emu::PageRef::memory(found->second.bytes.data(),
                                    emu::kPageRead | emu::kPageWrite | emu::kPageExec);
    }
    bool load(std::uint64_t, unsigned, std::uint64_t&) override { return false; }
    bool store(std::uint64_t, unsigned, std::uint64_t) override { return false; }

    bool map(std::uint64_t from, std::uint64_t bytes) {
        if (bytes > kMost) return false;
        for (std::uint64_t page = from & ~(kPage - 1); page < from + bytes; page += kPage)
            pages_[page];
        return true;
    }
    // false: not all of it is there.
    bool copy_in(std::uint64_t to, const char* from, std::uint64_t bytes) {
        return each(to, bytes, [&](std::uint8_t* here, std::uint64_t size) {
            std::memcpy(here, from, size);
            from += size;
        });
    }
    bool copy_out(std::uint64_t from, std::uint64_t bytes, std::string& out) {
        return each(from, bytes, [&](const std::uint8_t* here, std::uint64_t size) {
            out.append(reinterpret_cast<const char*>(here), size);
        });
    }

  private:
    struct Page {
        alignas(8) std::array<std::uint8_t, kPage> bytes{};
    };
    template <class F>
    bool each(std::uint64_t at, std::uint64_t bytes, F what) {
        while (bytes > 0) {
            const auto found = pages_.find(at & ~(kPage - 1));
            if (found == pages_.end()) return false;
            const std::uint64_t offset = at % kPage, size = std::min(bytes, kPage - offset);
            what(found->second.bytes.data() + offset, size);
            at += size;
            bytes -= size;
        }
        return true;
    }
    std::map<std::uint64_t, Page> pages_;
};

bool load_elf(const std::string& elf, Memory& memory, std::uint64_t& entry) {
    Elf64_Ehdr header;
    if (elf.size() < sizeof header) return false;
    std::memcpy(&header, elf.data(), sizeof header);
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        const std::uint64_t at = header.e_phoff + i * sizeof segment;
        if (at + sizeof segment > elf.size()) return false;
        std::memcpy(&segment, elf.data() + at, sizeof segment);
        if (segment.p_type != PT_LOAD) continue;
        if (segment.p_offset + segment.p_filesz > elf.size() ||
            !memory.map(segment.p_vaddr, segment.p_memsz) ||
            !memory.copy_in(segment.p_vaddr, elf.data() + segment.p_offset, segment.p_filesz))
            return false;
    }
    entry = header.e_entry;
    return true;
}

}  // namespace

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string run_user_program(const std::string& elf, const std::string& input, emu::Config config,
                             std::string& error) {
    std::string out;
    Memory memory;
    std::uint64_t entry = 0;
    if (!load_elf(elf, memory, entry) || !memory.map(kStack, kStackBytes)) {
        error = "this is no program";
        return out;
    }
    config.trap_to_host = true;
    emu::Hart hart(config, memory);
    hart.set_pc(entry);
    hart.set_x(kSp, kStack + kStackBytes - 64);
    std::size_t consumed = 0;
    for (;;) {
        const emu::StopReason reason = hart.run(1'000'000);
        if (reason == emu::StopReason::kBudget) continue;
        if (reason != emu::StopReason::kTrap || hart.trap().cause != emu::Cause::kEcall) {
            error = fmt::format("{}: {} at {:#x}, {:#x}", to_string(reason), to_string(hart.trap().cause),
                                hart.pc(), hart.trap().tval);
            return out;
        }
        const std::uint64_t call = hart.x(kA7), first = hart.x(kA0), second = hart.x(kA1);
        std::uint64_t result = hart.x(kA2);
        bool good = true;
        switch (call) {
            case kRead:
                result = std::min<std::uint64_t>(result, input.size() - consumed);
                good = memory.copy_in(second, input.data() + consumed, result);
                consumed += result;
                break;
            case kWrite:
                good = memory.copy_out(second, result, out);
                break;
            case kMmap:
                good = memory.map(first, second);
                result = first;
                break;
            case kExit:
                return out;
            default:
                good = false;
        }
        if (!good) {
            error = fmt::format("system call {} of {:#x}, {:#x}, {:#x}", call, first, second, hart.x(kA2));
            return out;
        }
        hart.set_x(kA0, result);
        hart.set_pc(hart.pc() + 4);
    }
}

}  // namespace orrery::riscv::test
