// The handshake with the driver.
#include "firmware/version.h"
#include "tests/unit/firmware/bench.h"

namespace orrery::fw::test {
namespace {

TEST(Boot, AnswersAndIsReady) {
    Bench bench;
    ASSERT_TRUE(bench.boot());
    EXPECT_EQ(bench.soc.progress, ORR_PROGRESS_READY | ORR_BB_STEP_RINGS);
    EXPECT_EQ(bench.soc.host(kBlock + offsetof(orr_boot_block, fw_magic)), ORR_BB_FW_MAGIC);
    EXPECT_EQ(bench.soc.host(kBlock + offsetof(orr_boot_block, fw_abi)), ORR_FW_ABI);
    EXPECT_EQ(bench.soc.host(kBlock + offsetof(orr_boot_block, fw_version)),
              kFirmwareVersion | std::uint64_t{ORR_FW_QUEUES} << 32);
    EXPECT_EQ(bench.soc.host(kBlock + offsetof(orr_boot_block, max_contexts)),
              ORR_FW_CONTEXTS | std::uint64_t{ORR_RING_MAX_ENTRIES} << 32);
    const std::uint64_t id = bench.soc.host(kBlock + offsetof(orr_boot_block, build_id));
    EXPECT_EQ(std::memcmp(&id, "1.2.3+te", 8), 0);
    EXPECT_NE(bench.soc.irq_enable, 0u);
    EXPECT_FALSE(bench.firmware->pass());
    EXPECT_TRUE(bench.soc.violations().empty());
}

struct Refusal {
    const char* name;
    std::size_t field;
    std::uint64_t value;
    std::uint64_t code;
};

class BootRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(BootRefusal, SaysWhy) {
    Bench bench;
    bench.soc.set_host(kBlock + GetParam().field, GetParam().value);
    EXPECT_FALSE(bench.boot());
    EXPECT_EQ(bench.soc.progress, ORR_PROGRESS_FAILED | GetParam().code);
    EXPECT_EQ(bench.soc.halt, kEmpty);
}

constexpr std::uint64_t kNowhere = kHostBase + kHostSize;

INSTANTIATE_TEST_SUITE_P(
    All, BootRefusal,
    testing::Values(
        Refusal{"magic", offsetof(orr_boot_block, host_magic), 1, ORR_BB_FAIL_MAGIC},
        Refusal{"major", offsetof(orr_boot_block, host_abi), (ORR_FW_ABI_MAJOR + 1) << 16, ORR_BB_FAIL_ABI},
        Refusal{"command_ring_zero", offsetof(orr_boot_block, command_ring), 0, ORR_BB_FAIL_RINGS},
        Refusal{"command_ring_nowhere", offsetof(orr_boot_block, command_ring), kNowhere, ORR_BB_FAIL_RINGS},
        Refusal{"message_ring_misaligned", offsetof(orr_boot_block, message_ring), kMessages + 8,
                ORR_BB_FAIL_RINGS},
        Refusal{"message_ring_half", offsetof(orr_boot_block, message_ring), kNowhere - 4096,
                ORR_BB_FAIL_RINGS},
        Refusal{"status_nowhere", offsetof(orr_boot_block, queue_status), ~std::uint64_t{63},
                ORR_BB_FAIL_RINGS},
        Refusal{"status_half", offsetof(orr_boot_block, queue_status), kNowhere - 4096, ORR_BB_FAIL_RINGS},
        Refusal{"usage_misaligned", offsetof(orr_boot_block, queue_usage), kStatus + 8, ORR_BB_FAIL_RINGS},
        Refusal{"usage_half", offsetof(orr_boot_block, queue_usage), kNowhere - 4096, ORR_BB_FAIL_RINGS}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Boot, OtherMajorLearnsOurs) {
    Bench bench;
    bench.soc.set_host(kBlock + offsetof(orr_boot_block, host_abi), (ORR_FW_ABI_MAJOR + 1) << 16);
    EXPECT_FALSE(bench.boot());
    EXPECT_EQ(bench.soc.host(kBlock + offsetof(orr_boot_block, fw_abi)), ORR_FW_ABI);
}

TEST(Boot, NewerMinorIsFine) {
    Bench bench;
    bench.soc.set_host(kBlock + offsetof(orr_boot_block, host_abi), ORR_FW_ABI + 7);
    EXPECT_TRUE(bench.boot());
}

TEST(Boot, UnreachableBlock) {
    for (const std::uint64_t where : {std::uint64_t{0}, kNowhere, kBlock + 64, ~std::uint64_t{4095}}) {
        Bench bench;
        bench.soc.boot_arg = where;
        EXPECT_FALSE(bench.boot());
        EXPECT_EQ(bench.soc.progress, ORR_PROGRESS_FAILED | ORR_BB_FAIL_READ) << where;
    }
}

TEST(Boot, StrangePageIsNotWritten) {
    Bench bench;
    bench.soc.set_host(kBlock, 0x1234);
    EXPECT_FALSE(bench.boot());
    EXPECT_EQ(bench.soc.host(kBlock + offsetof(orr_boot_block, fw_magic)), 0u);
}

}  // namespace
}  // namespace orrery::fw::test
