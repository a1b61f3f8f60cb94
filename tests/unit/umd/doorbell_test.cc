#include "umd/winsys/doorbell.h"

#include <gtest/gtest.h>

#include <cstring>

namespace orrery::umd {
namespace {

TEST(Doorbell, StoresValueChangesSummaryAndKicksOnlyWhenAsked) {
    alignas(4096) static orr_doorbell_page page{};
    alignas(4096) static std::byte kick[4096]{};
    const Doorbell bell(&page, kick, 479, 0x1234);
    bell.ring(0x1'0000'0000'0005);  // indices are modulo 2^48
    EXPECT_EQ(page.doorbell[479], 0x1234'0000'0000'0005u);
    EXPECT_EQ(page.summary, 1u);
    std::uint64_t kicked = 0;
    std::memcpy(&kicked, kick + 256 + 479 * 8, 8);
    EXPECT_EQ(kicked, 0u);
    page.need_wakeup = 1;
    bell.ring(6);
    EXPECT_EQ(page.summary, 2u);
    std::memcpy(&kicked, kick + 256 + 479 * 8, 8);
    EXPECT_NE(kicked, 0u);
}

}  // namespace
}  // namespace orrery::umd
