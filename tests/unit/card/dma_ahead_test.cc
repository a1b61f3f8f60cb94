// Host memory that comes and goes while threads compute work-groups ahead of their model time.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <string>

#include "emulator/engines/descriptor.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint32_t kAsid = 3;
constexpr std::uint64_t kCodeVa = 0x2000'0000, kFlagVa = 0x1000'0000;
constexpr std::uint64_t kApart = 1 << 20;  // from the flag to the results
constexpr std::uint64_t kResults = kRamBase + kApart, kMore = kResults + kApart;
constexpr std::uint32_t kGroups = 4;

struct Change {
    std::string name;
    std::function<void(CardRig&)> make;
};

const std::vector<Change>& changes() {
    static const std::vector<Change> all{
        {"Map", [](CardRig& rig) { ASSERT_EQ(rig.map_ram(kMore, kApart), 0); }},
        {"Unmap", [](CardRig& rig) { rig.unmap_ram(kResults, kApart); }},
        {"BusMaster", [](CardRig& rig) { rig.device().bus_master(false); }},
        {"Atomics", [](CardRig& rig) { rig.device().atomics(false); }},
    };
    return all;
}

class DmaAhead : public testing::TestWithParam<std::size_t> {
  protected:
    static CardConfig config() {
        CardConfig config = CardRig::config();
        config.threads = 2;
        return config;
    }
    void write(std::uint32_t reg, std::uint64_t value) {
        ModelTime wait = 0;
        rig_.card().soc().write(reg, value, wait);
    }
    std::uint64_t read(std::uint32_t reg) {
        ModelTime wait = 0;
        return rig_.card().soc().read(reg, wait);
    }
    // Groups that wait for the flag, and leave it each in a page of its own.
    void start() {
        const std::uint32_t program[] = {
            0xcc0022f3,  // csrr t0, 0xcc0 (group x)
            0x00c29293,  // slli t0, t0, 12
            0x005505b3,  // add a1, a0, t0
            0x001002b7,  // lui t0, 0x100
            0x005585b3,  // add a1, a1, t0
            0x00053303,  // ld t1, (a0)
            0xfe030ee3,  // beqz t1, -4
            0x0065b023,  // sd t1, (a1)
            0x00008067,  // ret
        };
        std::memcpy(rig_.card().vram().at(0x10000, sizeof program), program, sizeof program);
        rig_.map_page(kAsid, kCodeVa, 0x10000, ORR_PTE_READ | ORR_PTE_EXEC);
        rig_.map_page(kAsid, kFlagVa, kRamBase, ORR_PTE_READ | kHostTarget);
        for (std::uint64_t at = 0; at < kGroups * ORR_PAGE_SIZE; at += ORR_PAGE_SIZE)
            rig_.map_page(kAsid, kFlagVa + kApart + at, kResults + at,
                          ORR_PTE_READ | ORR_PTE_WRITE | kHostTarget);
        for (const script_op& op : rig_.set_root(kAsid))
            write(static_cast<std::uint32_t>(op.address - ORR_SOC_BASE), op.value);
        orr_desc_kernel desc{};
        desc.op = ORR_DESC_KERNEL;
        desc.asid = kAsid;
        desc.entry = kCodeVa;
        desc.args = kFlagVa;
        desc.grid_x = kGroups;
        desc.grid_y = desc.grid_z = 1;
        desc.block_x = desc.block_y = desc.block_z = 1;
        const auto words = std::bit_cast<DescriptorWords>(desc);
        const std::uint32_t port = rig_.card().sku().copy_engines;
        for (std::uint32_t i = 0; i < words.size(); ++i)
            write(SOC_ENGINE(port) + SOC_ENGINE_DESC + 8 * i, words[i]);
        write(SOC_ENGINE(port) + SOC_ENGINE_START, 1);
    }

    CardRig rig_{config()};
};

// What was played of a group is computed once more then. It sees the flag, which came since, and must find
// its page as it was before.
TEST_P(DmaAhead, AllThatWasPlayedIsDoneBeforeTheHostsMemoryChanges) {
    rig_.unmap_ram();
    ASSERT_EQ(rig_.map_ram(kRamBase, kApart), 0);
    ASSERT_EQ(rig_.map_ram(kResults, kApart), 0);
    start();
    EventQueue& events = rig_.card().events();
    const ModelTime limit = events.now() + kPsPerSecond / 1000;
    const auto ahead = [&] { return rig_.card().counters().get(ORR_CTR_VECTOR_AHEAD); };
    // All groups are on cores, and do the same.
    while (ahead() < 10'000 && events.run_next(limit)) {
    }
    ASSERT_GE(ahead(), 10'000u);
    rig_.word(kRamBase) = 7;
    changes()[GetParam()].make(rig_);
    for (std::uint64_t group = 0; group < kGroups; ++group)
        EXPECT_EQ(rig_.word(kResults + group * ORR_PAGE_SIZE), 7u) << "group " << group;
    while (events.run_next(limit)) {
    }
    EXPECT_EQ(read(SOC_DONE_POP) & 0xffffffff, 1u);
    EXPECT_EQ(read(SOC_DONE_STATUS), ORR_DONE_OK) << read(SOC_DONE_FAULT);
}

INSTANTIATE_TEST_SUITE_P(By, DmaAhead, testing::Range(std::size_t{0}, changes().size()),
                         [](const auto& param) { return changes()[param.param].name; });

}  // namespace
}  // namespace orrery::emu
