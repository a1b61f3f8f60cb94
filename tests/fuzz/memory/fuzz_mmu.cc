// Page tables made of the input, walked by the MMU: no translation may reach outside VRAM and mapped host
// memory, or give a right that the entry or the range does not have.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include <orrery/hw/link.h>
#include <memory>

#include "emulator/memory/mmu.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kVramBytes = 1 << 20;
constexpr std::uint64_t kHostAt = 0x10000;
constexpr std::uint64_t kHostBytes = 16 * 4096;

void require(bool good) {
    if (!good) std::abort();
}

class World {
  public:
    World() {
        const UniqueFd fd(memfd_create("fuzz", MFD_CLOEXEC));
        require(ftruncate(fd.get(), kHostBytes) == 0);
        require(host.insert(*HostRange::create(kHostAt, kHostBytes / 2, fd, 0, true, true)).has_value());
        require(host.insert(*HostRange::create(kHostAt + kHostBytes / 2, kHostBytes / 2, fd, kHostBytes / 2,
                                               true, false))
                    .has_value());
    }
    void check(const Translation& found, std::uint64_t wanted, Access access) const {
        require(found.bytes >= 1 && found.bytes <= wanted);
        const std::uint8_t right = access == Access::kFetch ? kPageExec
                                   : writes(access)         ? kPageWrite
                                                            : kPageRead;
        require((found.rights & right) != 0);
        switch (found.target) {
            case ORR_TARGET_VRAM:
                require(vram.contains(found.address, found.bytes));
                require(found.host == vram.data() + found.address);
                break;
            case ORR_TARGET_HOST:
                require(found.address >= kHostAt && found.bytes <= kHostBytes &&
                        found.address - kHostAt <= kHostBytes - found.bytes);
                if (writes(access)) require(found.address + found.bytes <= kHostAt + kHostBytes / 2);
                if (found.address >= kHostAt + kHostBytes / 2) require((found.rights & kPageWrite) == 0);
                break;
            case ORR_TARGET_BARRIER:
                require(found.host == nullptr && access == Access::kSignal &&
                        found.address < std::uint64_t{ORR_BARRIER_SLOTS} * ORR_PAGE_SIZE);
                break;
            default:
                require(found.target == ORR_TARGET_PEER && found.host == nullptr &&
                        (writes(access) || access == Access::kPull));
        }
        // Touch the ends, for the sanitizer.
        if (found.host != nullptr) {
            volatile std::uint8_t sink = found.host[0];
            sink = found.host[found.bytes - 1];
            (void)sink;
        }
    }

    Counters counters;
    Vram vram = *Vram::create(kVramBytes);
    HostMemory host;
    Mmu mmu{vram, host, counters};
};

struct Input {
    const std::uint8_t* data;
    std::size_t size;
    std::uint64_t take(unsigned bytes) {
        std::uint64_t value = 0;
        const std::size_t n = bytes < size ? bytes : size;
        std::memcpy(&value, data, n);
        data += n;
        size -= n;
        return value;
    }
};

// Most random entries are nonsense at once: half of them are made to look good.
std::uint64_t entry_of(std::uint64_t raw, bool leaf) {
    if ((raw >> 60 & 1) != 0) return raw;
    const std::uint64_t address = raw & 0x1ff000;
    std::uint64_t entry = address | ORR_PTE_VALID;
    if (leaf) entry |= ORR_PTE_LEAF | (raw & 0x3fc);
    return entry;
}

}  // namespace
}  // namespace orrery::emu

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace orrery::emu;
    static World world;
    Input in{data, size};
    world.vram.clear();
    world.mmu.reset();
    while (in.size > 0) {
        switch (in.take(1) % 8) {
            case 0:
                world.mmu.set_root(in.take(2), in.take(1) % 16 * 4096 + in.take(1) % 2);
                break;
            case 1:
                world.mmu.clear_root(in.take(2) % 8);
                break;
            case 2:
                world.mmu.flush_range(in.take(1) % 8, in.take(8), in.take(8));
                break;
            case 3:
                world.mmu.flush_asid(in.take(1) % 8);
                break;
            case 4:
            case 5: {
                // Tables live in the first 16 pages; low indices, so that addresses find them.
                const std::uint64_t at = in.take(1) % 16 * 4096 + in.take(1) % 8 * 8;
                const bool leaf = in.take(1) % 2 != 0;
                const std::uint64_t entry = entry_of(in.take(8), leaf);
                std::memcpy(world.vram.data() + at, &entry, sizeof entry);
                break;
            }
            default: {
                const auto asid = static_cast<std::uint32_t>(in.take(1) % 8);
                std::uint64_t va = in.take(4);
                if (in.take(1) % 4 == 0) va |= in.take(8) << 32;
                va &= in.take(1) % 2 == 0 ? 0x0000'0001'c0ff'ffffull : ~0ull;
                const std::uint64_t wanted = in.take(3) + 1;
                const auto access = static_cast<Access>(in.take(1) % 5);
                if (const auto found = world.mmu.translate(asid, va, wanted, access)) {
                    world.check(*found, wanted, access);
                }
                if (const auto page = world.mmu.translate_page(asid, va, access)) {
                    world.check(*page, ORR_PAGE_SIZE, access);
                    require(page->bytes == ORR_PAGE_SIZE);
                }
            }
        }
    }
    return 0;
}
