// A card says when a debugger holds its time, and goes on when that is gone, whatever became of it.
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

#include "emulator/base/unique_fd.h"
#include "emulator/card/card_thread.h"
#include "tests/unit/card/card_rig.h"
#include "tests/unit/gdb/loopback.h"

namespace orrery::emu {
namespace {

using test::connect_to;

class HeldCard : public testing::Test {
  protected:
    HeldCard() : rig_(config()), thread_(rig_.card()) {}
    static CardConfig config() {
        CardConfig made = CardRig::config();
        made.gdb = 0;
        made.kernel_gdb = 0;
        return made;
    }
    // The test's time limit finds one that never comes.
    void until_held(std::uint32_t by) {
        while (rig_.read32(ORR_R_HELD) != by)
            std::this_thread::yield();
    }

    CardRig rig_;
    CardThread thread_;
};

TEST_F(HeldCard, SaysWhoHoldsIt) {
    EXPECT_EQ(rig_.read32(ORR_R_HELD), 0u);
    EXPECT_NE(rig_.card().gdb_port(), rig_.card().kernel_gdb_port());
    UniqueFd kernels = connect_to(rig_.card().kernel_gdb_port());
    ASSERT_TRUE(kernels);
    until_held(ORR_HELD_KERNELS);
    UniqueFd firmware = connect_to(rig_.card().gdb_port());
    ASSERT_TRUE(firmware);
    until_held(ORR_HELD_KERNELS | ORR_HELD_FIRMWARE);
    kernels.reset();
    until_held(ORR_HELD_FIRMWARE);
    firmware.reset();
    until_held(0);
}

TEST_F(HeldCard, EndsWithItsDebuggers) {
    const UniqueFd kernels = connect_to(rig_.card().kernel_gdb_port());
    const UniqueFd firmware = connect_to(rig_.card().gdb_port());
    ASSERT_TRUE(kernels && firmware);
    until_held(ORR_HELD_KERNELS | ORR_HELD_FIRMWARE);
}

}  // namespace
}  // namespace orrery::emu
