// What cards that check kernels' use of memory know of card memory beyond what is mapped: which ranges are a
// heap and what is allocated in them, as processes tell (orr_desc_tell), and which bytes of VRAM were written
// since. What a process tells is believed of its own address space only, and takes no more of the host's
// memory than the limit.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "emulator/base/access.h"
#include "emulator/core/bus.h"

namespace orrery::emu {

// orr_desc_tell, found good.
struct Tell {
    std::uint32_t what = 0;  // ORR_TELL_*
    std::uint64_t va = 0, bytes = 0;
};

// An access of which no byte of an element was written: the first one.
struct NeverWritten {
    std::uint64_t va = 0, bytes = 0;
};
// Of a structure that is copied as it stands some bytes may be nobody's: an element counts as written if a
// byte of it is, and a single byte if one of its eight is.
template <typename Written>
std::optional<NeverWritten> never_written(const DoneAccess& access, const Written& written) {
    const std::uint64_t element = access.element != 0 ? access.element : 1, end = access.va + access.bytes;
    for (std::uint64_t va = access.va; va < end; va += element) {
        std::uint64_t from = va, to = std::min(va + element, end);
        if (element == 1) from -= from % 8, to = from + 8;
        bool any = false;
        for (std::uint64_t at = from; at < to && !any; ++at)
            any = written(at);
        if (!any) return NeverWritten{va, element};
    }
    return {};
}

class CheckedMemory {
  public:
    // What it asks the MMU.
    struct Spaces {
        // VRAM offset of a byte; nothing: it is elsewhere, or may not be accessed so.
        std::function<std::optional<std::uint64_t>(std::uint32_t asid, std::uint64_t va, Access)> vram_at;
        // Where vram_at has nothing: so many bytes further there may be something.
        std::function<std::uint64_t(std::uint32_t asid, std::uint64_t va)> reach;
        // Another number: another process's.
        std::function<std::uint64_t(std::uint32_t asid)> owner;
    };
    // `limit`: bytes of the host.
    CheckedMemory(Spaces spaces, std::uint64_t limit) : spaces_(std::move(spaces)), limit_(limit) {}

    // What the host does of a tell at once.
    struct Go {
        bool all = true;           // else call again
        std::uint64_t looked = 0;  // at pages and ranges
    };
    // Takes it in from byte `done` on.
    Go tell(std::uint32_t asid, const Tell& tell, std::uint64_t& done);
    // Somebody has written VRAM.
    void wrote(std::uint64_t offset, std::uint64_t bytes);

    struct Problem {
        bool outside = false;  // of all allocations; else nobody has written it
        std::uint64_t va = 0, bytes = 0;
    };
    // An access of a kernel; what it stores is written then.
    std::optional<Problem> access(std::uint32_t asid, const DoneAccess& access);

    std::uint64_t bytes() const { return bytes_; }
    // The limit was reached: nothing is checked until a reset.
    bool gave_up() const { return gave_up_; }
    void reset();

  private:
    using Ranges = std::map<std::uint64_t, std::uint64_t>;  // va -> bytes
    struct Space {
        std::uint64_t owner = 0;
        Ranges heaps, allocations;
    };
    using Page = std::bitset<kPageBytes>;

    Space* space_of(std::uint32_t asid);
    void forget_written(std::uint32_t asid, const Tell& tell, std::uint64_t& done, Go& go);
    void forget_written(std::uint64_t offset, std::uint64_t bytes);
    bool written(std::uint64_t offset) const;
    bool spend(std::uint64_t bytes);
    void remove(Ranges& ranges, const Tell& tell, Go& go);

    const Spaces spaces_;
    const std::uint64_t limit_;
    std::uint64_t bytes_ = 0;
    bool gave_up_ = false;
    std::map<std::uint32_t, Space> all_;
    // By number; none: nothing of it, null: all of it is written.
    std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
};

}  // namespace orrery::emu
