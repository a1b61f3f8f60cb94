// The file in which a card says of each launch how much of it ran in the order of model time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "emulator/engines/descriptor.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

constexpr std::uint32_t kAsid = 3;
constexpr std::uint64_t kCodeVa = 0x2000'0000;

class LaunchLogTest : public testing::Test {
  protected:
    ~LaunchLogTest() override { std::filesystem::remove(file_); }
    CardConfig config() const {
        CardConfig config = CardRig::config();
        config.launches = file_;
        return config;
    }
    static void launch(CardRig& rig, std::uint64_t entry, std::uint32_t groups) {
        orr_desc_kernel desc{};
        desc.op = ORR_DESC_KERNEL;
        desc.asid = kAsid;
        desc.entry = entry;
        desc.grid_x = groups;
        desc.grid_y = desc.grid_z = 1;
        desc.block_x = desc.block_y = desc.block_z = 1;
        const auto words = std::bit_cast<DescriptorWords>(desc);
        const std::uint32_t port = rig.card().sku().copy_engines;
        ModelTime wait = 0;
        for (std::uint32_t i = 0; i < words.size(); ++i)
            rig.card().soc().write(SOC_ENGINE(port) + SOC_ENGINE_DESC + 8 * i, words[i], wait);
        rig.card().soc().write(SOC_ENGINE(port) + SOC_ENGINE_START, 1, wait);
        EventQueue& events = rig.card().events();
        while (events.run_next(events.now() + kPsPerSecond / 1000)) {
        }
    }
    std::vector<std::string> lines() const {
        std::ifstream in(file_);
        std::vector<std::string> all;
        for (std::string line; std::getline(in, line);)
            all.push_back(line);
        return all;
    }

    std::filesystem::path file_ =
        std::filesystem::path(testing::TempDir()) / ("launches-" + std::to_string(::getpid()));
};

TEST_F(LaunchLogTest, HasALineForEachLaunch) {
    CardRig rig(config());
    const std::uint32_t program[] = {0x00000013, 0x00008067};  // nop, ret
    std::memcpy(rig.card().vram().at(0x10000, sizeof program), program, sizeof program);
    rig.map_page(kAsid, kCodeVa, 0x10000, ORR_PTE_READ | ORR_PTE_EXEC);
    ModelTime wait = 0;
    for (const script_op& op : rig.set_root(kAsid))
        rig.card().soc().write(static_cast<std::uint32_t>(op.address - ORR_SOC_BASE), op.value, wait);
    launch(rig, kCodeVa, 4);
    launch(rig, kCodeVa + 4, 3);
    launch(rig, 0x5000'0000, 1);
    launch(rig, kCodeVa, 0);  // no launch
    const auto all = lines();
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0], "start_ps\tend_ps\tport\tspace\tkernel\tgroups\tstatus\tinstructions\tin_order\twhy");
    // There is no module around it.
    const std::string port = "\t" + std::to_string(rig.card().sku().copy_engines) + "\t3\t";
    EXPECT_TRUE(all[1].ends_with(port + "0x20000000\t4\t0\t8\t8\tno threads")) << all[1];
    EXPECT_TRUE(all[2].ends_with(port + "0x20000004\t3\t0\t3\t3\tno threads")) << all[2];
    const std::string fault = std::to_string(ORR_DONE_FAULT);
    EXPECT_TRUE(all[3].ends_with(port + "0x50000000\t1\t" + fault + "\t0\t0\tno threads")) << all[3];
}

TEST_F(LaunchLogTest, SaysWhyALaunchRanInOrder) {
    CardRig rig;
    {
        const auto log = LaunchLog::create(file_, rig.card().mmu());
        ASSERT_TRUE(log) << log.error();
        LaunchAccount launch{.instructions = 9, .ahead = 4, .group = 5, .pc = kCodeVa + 4};
        for (const InOrder cause : {InOrder::kNoThreads, InOrder::kBefore, InOrder::kShort, InOrder::kStopped,
                                    InOrder::kMet, InOrder::kNot}) {
            launch.cause = cause;
            (*log)->note(launch);
        }
        launch.ahead = 9;
        (*log)->note(launch);
    }
    const auto all = lines();
    const char* const ends[] = {"9\t5\tno threads",
                                "9\t5\tan earlier launch did",
                                "9\t5\tgroups are short",
                                "9\t5\tgroup 5 at 0x20000004",
                                "9\t5\tgroup 5 met another",
                                "9\t5\tothers",
                                "9\t0\t-"};
    ASSERT_EQ(all.size(), 1 + std::size(ends));
    for (std::size_t i = 0; i < std::size(ends); ++i)
        EXPECT_TRUE(all[i + 1].ends_with(ends[i])) << all[i + 1];
}

TEST_F(LaunchLogTest, AFileThatCannotBeWrittenIsAnError) {
    CardConfig config = CardRig::config();
    config.launches = "/nonexistent/launches";
    const auto card = Card::create(std::move(config));
    ASSERT_FALSE(card);
    EXPECT_NE(card.error().find("/nonexistent/launches"), std::string::npos) << card.error();
}

}  // namespace
}  // namespace orrery::emu
