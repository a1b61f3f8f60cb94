// Kernel descriptors, code and page tables that are anything: no crash, and abort always ends them.
#include <cstdlib>

#include <orrery/hw/kernel_abi.h>

#include "tests/fuzz/engines/small_rig.h"

namespace {

using namespace orrery::emu;
using namespace orrery::emu::test;

constexpr std::uint64_t kBase = 0x40'0000'0000;
constexpr std::uint64_t kCode = 0x80'0000'0000;

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    Rig rig(1 << 20, 64 << 10, 64 << 10);
    rig.map(kCode, 2 * ORR_PAGE_SIZE, ORR_TARGET_VRAM, 0, ORR_PTE_READ | ORR_PTE_WRITE | ORR_PTE_EXEC);
    VectorConfig config;
    config.cores = 2;
    config.ports = 2;
    config.quantum = 500;
    VectorUnit unit(config, rig.context);
    fuzz_tables(rig, input, kBase);
    for (unsigned jobs = 0; jobs < 3 && !input.empty(); ++jobs) {
        const auto keep = input.take<std::uint8_t>();
        auto desc = input.take<orr_desc_kernel>();
        if ((keep & 1) == 0) {
            desc.op = ORR_DESC_KERNEL;
            desc.flags = desc.reserved1 = 0;
            desc.reserved2[0] = desc.reserved2[1] = 0;
            desc.asid = 1;
        }
        if ((keep & 2) == 0) desc.entry = kCode + desc.entry % 64 * 2;
        if ((keep & 4) == 0) desc.args = kBase + desc.args % 0x11000;
        if ((keep & 8) == 0) {
            desc.grid_x = 1 + desc.grid_x % 4;
            desc.grid_y = desc.grid_z = 1;
            desc.block_x = static_cast<std::uint16_t>(1 + desc.block_x % 8);
            desc.block_y = desc.block_z = 1;
            desc.local_bytes %= ORR_LOCAL_BYTES + 1;
        }
        for (unsigned i = 0; i < 48; ++i) {
            const auto word = input.take<std::uint32_t>();
            std::memcpy(rig.vram.data() + i * 4, &word, 4);
        }
        rig.done.clear();
        if (!unit.port(jobs % 2).start(Rig::words_of(desc), jobs)) std::abort();
        rig.run(50);
        if (rig.done.empty()) unit.port(jobs % 2).abort();
        rig.run();
        if (unit.port(jobs % 2).busy() || rig.done.size() != 1) std::abort();
    }
    return 0;
}
