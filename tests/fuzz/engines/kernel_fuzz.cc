// Kernel descriptors, code, page tables and save areas that are anything, with preemption, resume and shares
// in any order: no crash, one completion for each start and resume, and abort always ends them.
#include <array>
#include <cstdlib>

#include <orrery/hw/kernel_abi.h>

#include "emulator/api/checks.h"
#include "emulator/engines/checked_spaces.h"
#include "emulator/engines/save_area.h"
#include "tests/fuzz/engines/small_rig.h"

namespace {

using namespace orrery::emu;
using namespace orrery::emu::test;

constexpr std::uint64_t kBase = 0x40'0000'0000;
constexpr std::uint64_t kCode = 0x80'0000'0000;
constexpr std::uint64_t kArea = 512 << 10;
constexpr std::uint32_t kPorts = 2;
#ifdef ORRERY_CHECKED
constexpr unsigned kCheck = kCheckRace | kCheckMemory;
#else
constexpr unsigned kCheck = 0;
#endif

orr_desc_kernel descriptor(Input& input) {
    const auto keep = input.take<std::uint8_t>();
    auto desc = input.take<orr_desc_kernel>();
    if ((keep & 1) == 0) {
        desc.op = ORR_DESC_KERNEL;
        desc.flags &= ORR_DESC_F_RESIDENT;
        desc.reserved = 0;
        desc.item_stack_pages &= 3;
        desc.item_stacks = desc.item_stack_pages == 0 ? 0 : kBase + (desc.item_stacks & 0xf000);
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
    return desc;
}

// What a guest may do to an area at any time.
void scribble(Rig& rig, Input& input) {
    std::uint8_t* const area = rig.vram.data() + kArea;
    const auto where = input.take<std::uint16_t>();
    const auto value = input.take<std::uint64_t>();
    switch (where & 3) {
        case 0:
            std::memcpy(area + (where >> 2) % 96, &value, sizeof value);
            break;
        case 1:
            std::memcpy(area + kSavePage + (where >> 2) % (sizeof(orr_save_group) - 8), &value, sizeof value);
            break;
        case 2:
            std::memcpy(area + kSavePage + save_record_bytes(0) + (where >> 2) % (sizeof(orr_save_group) - 8),
                        &value, sizeof value);
            break;
        default: {
            // A whole header, so that the fuzzer need not guess the magic.
            orr_save_header header{};
            header.magic = ORR_SAVE_MAGIC;
            header.version = ORR_SAVE_VERSION;
            header.kind = ORR_ENGINE_VECTOR;
            header.cores = 2;
            header.group_bytes = sizeof(orr_save_group);
            header.groups = static_cast<std::uint32_t>(value % 4);
            header.next_group = value >> 8 & 0xf;
            const orr_desc_kernel desc = descriptor(input);
            std::memcpy(header.descriptor, &desc, sizeof desc);
            std::memcpy(area, &header, sizeof header);
            break;
        }
    }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    Rig rig(1 << 20, 64 << 10, 64 << 10);
    rig.map(kCode, 2 * ORR_PAGE_SIZE, ORR_TARGET_VRAM, 0, ORR_PTE_READ | ORR_PTE_WRITE | ORR_PTE_EXEC);
    VectorConfig config;
    config.cores = 2;
    config.ports = kPorts;
    config.quantum = 500;
    config.check = kCheck;
    CheckedMemory checked(checked_spaces(rig.mmu), 1 << 20);
    if (kCheck != 0) rig.context.checked = &checked;
    VectorUnit unit(config, rig.context);
    // Where arguments may be, too.
    rig.map(kBase + 0x10000, ORR_PAGE_SIZE, ORR_TARGET_PEER, 0x8000, Rig::kRights, Rig::kPeerNode);
    fuzz_tables(rig, input, kBase);
    for (unsigned i = 0; i < 48; ++i) {
        const auto word = input.take<std::uint32_t>();
        std::memcpy(rig.vram.data() + i * 4, &word, 4);
    }
    std::size_t begun = 0;
    for (unsigned steps = 0; steps < 40 && !input.empty(); ++steps) {
        const auto what = input.take<std::uint8_t>();
        EnginePort& port = unit.port(what % kPorts);
        const bool busy = port.busy();
        switch (what / kPorts % 8) {
            case 0:
            case 1:
                if (port.start(Rig::words_of(descriptor(input)), steps) == busy) std::abort();
                begun += busy ? 0 : 1;
                break;
            case 2:
                if (port.resume((what & 0x40) != 0 ? input.take<std::uint64_t>() : kArea, steps) == busy)
                    std::abort();
                begun += busy ? 0 : 1;
                break;
            case 3:
                (void)port.preempt((what & 0x80) != 0 ? Preempt::kGroup : Preempt::kNow,
                                   (what & 0x40) != 0 ? input.take<std::uint64_t>() : kArea);
                break;
            case 4:
                port.abort();
                break;
            case 5:
                port.set_priority(input.take<std::uint8_t>() % 4u);
                port.set_weight(1 + input.take<std::uint16_t>() % 65535u);
                rig.host.set_atomics((what & 0x40) == 0);
                rig.mmu.flush_host();
                break;
            default:
                scribble(rig, input);
                break;
        }
        rig.run(input.take<std::uint8_t>() % 32);
        if (!rig.peer.asked.empty() && (what & 0x20) == 0)
            rig.peer.give((what & 0x50) == 0x50 ? ORR_FAULT_PEER_DENIED : ORR_FAULT_NONE);
        std::uint64_t active = 0;
        for (std::uint32_t i = 0; i < kPorts; ++i) {
            active += unit.port(i).active();
            (void)unit.port(i).used();
        }
        if (active > config.cores) std::abort();
    }
    for (std::uint32_t i = 0; i < kPorts; ++i)
        unit.port(i).abort();
    rig.run();
    for (std::uint32_t i = 0; i < kPorts; ++i) {
        if (unit.port(i).busy() || unit.port(i).active() != 0) std::abort();
    }
    if (rig.done.size() != begun) std::abort();
    return 0;
}
