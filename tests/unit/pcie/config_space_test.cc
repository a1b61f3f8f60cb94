#include "emulator/pcie/config_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "tests/unit/pcie/test_card.h"

namespace orrery::emu {
namespace {

class ConfigSpaceTest : public testing::Test {
  protected:
    PciDescription describe(InterruptMode mode = InterruptMode::kMsix) { return card_.description(mode); }

    template <typename T>
    static T get(const ConfigSpace& space, size_t at) {
        T value;
        space.read(at, std::as_writable_bytes(std::span(&value, 1)));
        return value;
    }
    template <typename T>
    static ConfigSpace::Effects put(ConfigSpace& space, size_t at, T value) {
        return space.write(at, std::as_bytes(std::span(&value, 1)));
    }
    // Capability id to offset, found as a driver finds it.
    static std::map<unsigned, unsigned> capabilities(const ConfigSpace& space) {
        std::map<unsigned, unsigned> found;
        unsigned at = get<uint8_t>(space, 0x34);
        for (int i = 0; at != 0 && i < 48; i++) {
            found[get<uint8_t>(space, at)] = at;
            at = get<uint8_t>(space, at + 1);
        }
        return found;
    }

    Interrupts interrupts_;
    test::TestCard card_{interrupts_};
};

TEST_F(ConfigSpaceTest, SaysWhoItIs) {
    PciDescription d = describe();
    d.revision = 7;
    d.subsystem_device = 0x4242;
    const ConfigSpace space(d);
    EXPECT_EQ(get<uint16_t>(space, 0x00), 0x1af4);
    EXPECT_EQ(get<uint16_t>(space, 0x02), 0x10f0);
    EXPECT_EQ(get<uint32_t>(space, 0x08), 0x12000007u);
    EXPECT_EQ(get<uint16_t>(space, 0x2c), 0x1af4);
    EXPECT_EQ(get<uint16_t>(space, 0x2e), 0x4242);
    EXPECT_EQ(get<uint8_t>(space, 0x0e), 0) << "type 0 header, one function";
    EXPECT_EQ(get<uint8_t>(space, 0x3d), 0) << "no INTx pin";
}

TEST_F(ConfigSpaceTest, ListsCapabilitiesByMode) {
    const auto msix = capabilities(ConfigSpace(describe(InterruptMode::kMsix)));
    EXPECT_THAT(msix, testing::ElementsAre(testing::Pair(0x01, kCapPm), testing::Pair(0x05, kCapMsi),
                                           testing::Pair(0x10, kCapPcie), testing::Pair(0x11, kCapMsix)));
    for (const auto mode : {InterruptMode::kMsi, InterruptMode::kSingle}) {
        const ConfigSpace space(describe(mode));
        EXPECT_THAT(capabilities(space),
                    testing::ElementsAre(testing::Pair(0x01, kCapPm), testing::Pair(0x05, kCapMsi),
                                         testing::Pair(0x10, kCapPcie)));
        EXPECT_EQ(get<uint16_t>(space, kCapMsi + 2), mode == InterruptMode::kMsi ? 0x0086 : 0x0080)
            << "64-bit; asks for 8 vectors, or one";
    }
}

TEST_F(ConfigSpaceTest, HasExtendedCapabilities) {
    PciDescription d = describe();
    d.serial = 0x1122334455667788;
    const ConfigSpace space(d);
    const auto aer = get<uint32_t>(space, kExtCapAer);
    EXPECT_EQ(aer & 0xffff, 0x0001u);
    EXPECT_EQ(aer >> 20, kExtCapSerial);
    const auto serial = get<uint32_t>(space, kExtCapSerial);
    EXPECT_EQ(serial & 0xffff, 0x0003u);
    EXPECT_EQ(serial >> 20, 0u) << "the last one";
    EXPECT_EQ(get<uint32_t>(space, kExtCapSerial + 4), 0x55667788u);
    EXPECT_EQ(get<uint32_t>(space, kExtCapSerial + 8), 0x11223344u);
}

TEST_F(ConfigSpaceTest, ReportsTheLink) {
    PciDescription d = describe();
    const ConfigSpace gen4(d);
    EXPECT_EQ(get<uint32_t>(gen4, kCapPcie + 0x0c) & 0x3ff, 16u << 4 | 4);
    EXPECT_EQ(get<uint16_t>(gen4, kCapPcie + 0x12) & 0x3ff, 16u << 4 | 4);
    EXPECT_EQ(get<uint32_t>(gen4, kCapPcie + 0x2c), 0x1eu) << "2.5, 5, 8 and 16 GT/s";
    EXPECT_NE(get<uint32_t>(gen4, kCapPcie + 0x04) & (1u << 28), 0u) << "FLR";
    d.link_speed = 5;
    d.link_width = 8;
    const ConfigSpace gen5(d);
    EXPECT_EQ(get<uint16_t>(gen5, kCapPcie + 0x12) & 0x3ff, 8u << 4 | 5);
}

TEST_F(ConfigSpaceTest, SizesBars) {
    ConfigSpace space(describe());
    for (unsigned i = 0; i < 6; i++)
        put<uint32_t>(space, 0x10 + 4 * i, 0xffffffff);
    put<uint32_t>(space, 0x30, 0xffffffff);
    EXPECT_EQ(get<uint32_t>(space, 0x10), 0xfff00000u) << "BAR 0: 1 MiB, 32 bits";
    EXPECT_EQ(get<uint32_t>(space, 0x14), 0u) << "BAR 1 is absent";
    EXPECT_EQ(get<uint32_t>(space, 0x18), 0xff00000cu) << "BAR 2: 16 MiB, 64 bits, prefetchable";
    EXPECT_EQ(get<uint32_t>(space, 0x1c), 0xffffffffu);
    EXPECT_EQ(get<uint32_t>(space, 0x20), 0xffc0000cu) << "BAR 4: 4 MiB";
    EXPECT_EQ(get<uint32_t>(space, 0x24), 0xffffffffu);
    EXPECT_EQ(get<uint32_t>(space, 0x30), 0u) << "no ROM";
}

TEST_F(ConfigSpaceTest, SizesBarsBeyond4GiB) {
    PciDescription d = describe();
    d.bars[2].size = uint64_t{64} << 30;
    ConfigSpace space(d);
    put<uint64_t>(space, 0x18, ~uint64_t{0});
    EXPECT_EQ(get<uint64_t>(space, 0x18), 0xfffffff00000000cu);
}

TEST_F(ConfigSpaceTest, KeepsReadOnlyBits) {
    ConfigSpace space(describe());
    std::vector<std::byte> before(kConfigSize), after(kConfigSize);
    space.read(0, before);
    space.write(0, std::vector<std::byte>(kConfigSize, std::byte{0xff}));
    space.reset();
    space.read(0, after);
    EXPECT_EQ(before, after) << "reset restores everything";

    space.write(0, std::vector<std::byte>(kConfigSize, std::byte{0xff}));
    EXPECT_EQ(get<uint32_t>(space, 0x00), 0x10f01af4u);
    EXPECT_EQ(get<uint16_t>(space, 0x04), 0x0546) << "command";
    EXPECT_EQ(get<uint16_t>(space, 0x06), 0x0010) << "status: writing ones sets nothing";
    EXPECT_EQ(get<uint8_t>(space, 0x34), kCapPm);
    EXPECT_EQ(get<uint16_t>(space, kCapMsix), 0x0011);
    EXPECT_EQ(get<uint16_t>(space, kCapMsix + 2), 0xc007);
    EXPECT_EQ(get<uint32_t>(space, kCapMsix + 4), 0x000f0000u);
    EXPECT_EQ(get<uint32_t>(space, kCapMsix + 8), 0x000f8000u);
    EXPECT_EQ(get<uint16_t>(space, kCapPcie + 8) & 0x8000, 0) << "FLR reads as zero";
    EXPECT_EQ(get<uint32_t>(space, kExtCapSerial + 4), 0x89abcdefu);
    EXPECT_EQ(get<uint32_t>(space, 0x200), 0u) << "nothing behind the capabilities";
}

TEST_F(ConfigSpaceTest, TellsOfBusMastering) {
    ConfigSpace space(describe());
    EXPECT_FALSE(space.bus_master());
    EXPECT_FALSE(put<uint16_t>(space, 0x04, 0x0002).bus_master_changed);
    EXPECT_TRUE(put<uint16_t>(space, 0x04, 0x0006).bus_master_changed);
    EXPECT_TRUE(space.bus_master());
    EXPECT_FALSE(put<uint8_t>(space, 0x05, 0x04).bus_master_changed) << "the other byte of the register";
    EXPECT_TRUE(put<uint16_t>(space, 0x04, 0).bus_master_changed);
}

TEST_F(ConfigSpaceTest, TellsOfAtomics) {
    constexpr size_t kCap2 = kCapPcie + 0x24, kControl2 = kCapPcie + 0x28;
    ConfigSpace space(describe());
    EXPECT_EQ(get<uint32_t>(space, kCap2) & 0x3c0, 0u) << "routes and completes none";
    EXPECT_EQ(get<uint16_t>(space, kControl2) & 0x40, 0);
    EXPECT_FALSE(space.atomics());
    EXPECT_FALSE(put<uint16_t>(space, kControl2, 0x10).atomics_changed);
    EXPECT_TRUE(put<uint16_t>(space, kControl2, 0xffff).atomics_changed);
    EXPECT_TRUE(space.atomics());
    EXPECT_EQ(get<uint16_t>(space, kControl2), 0x50) << "and nothing blocks or routes them";
    EXPECT_FALSE(put<uint16_t>(space, kControl2, 0x40).atomics_changed);
    EXPECT_FALSE(put<uint8_t>(space, kControl2 + 1, 0).atomics_changed) << "the other byte of the register";
    EXPECT_TRUE(put<uint32_t>(space, kControl2, 0).atomics_changed);
    put<uint16_t>(space, kControl2, 0x40);
    space.reset();
    EXPECT_FALSE(space.atomics());
}

TEST_F(ConfigSpaceTest, StartsFunctionLevelReset) {
    ConfigSpace space(describe());
    EXPECT_FALSE(put<uint16_t>(space, kCapPcie + 8, 0x2910).function_reset);
    EXPECT_TRUE(put<uint16_t>(space, kCapPcie + 8, 0xa910).function_reset);
    EXPECT_TRUE(put<uint8_t>(space, kCapPcie + 9, 0x80).function_reset);
    EXPECT_FALSE(put<uint8_t>(space, kCapPcie + 8, 0x80).function_reset) << "that is another bit";
}

TEST_F(ConfigSpaceTest, KnowsD0AndD3) {
    ConfigSpace space(describe());
    const size_t state = kCapPm + 4;
    EXPECT_NE(get<uint16_t>(space, state) & 0x8, 0) << "no soft reset";
    put<uint16_t>(space, state, 3);
    EXPECT_EQ(get<uint16_t>(space, state) & 3, 3);
    put<uint16_t>(space, state, 1);
    EXPECT_EQ(get<uint16_t>(space, state) & 3, 3) << "D1 does not exist";
    put<uint16_t>(space, state, 0);
    EXPECT_EQ(get<uint16_t>(space, state) & 3, 0);
}

TEST_F(ConfigSpaceTest, RejectsImpossibleDescriptions) {
    const auto why = [](const PciDescription& d) {
        const auto good = validate(d);
        return good ? std::string() : good.error();
    };
    EXPECT_EQ(why(describe()), "");
    using testing::HasSubstr;
    PciDescription d = describe();
    d.bars[2].size = 3 << 20;
    EXPECT_THAT(why(d), HasSubstr("power of two"));
    d = describe();
    d.bars[3].size = 4096;
    EXPECT_THAT(why(d), HasSubstr("64-bit"));
    d = describe();
    d.bars[5] = {
        .size = 4096, .is_64bit = true, .prefetchable = false, .fd = -1, .fd_offset = 0, .mapped = {}};
    EXPECT_THAT(why(d), HasSubstr("BAR 4")) << "it is covered by the 64-bit BAR 4";
    d = describe();
    d.bars[2].fd = -1;
    EXPECT_THAT(why(d), HasSubstr("file descriptor"));
    d = describe();
    d.bars[4].mapped = {{0, 8192}, {4096, 8192}};
    EXPECT_THAT(why(d), HasSubstr("disjoint"));
    d = describe();
    d.bars[4].mapped = {{0, test::kDoorbellSize + 4096}};
    EXPECT_THAT(why(d), HasSubstr("inside"));
    d = describe();
    d.bars[4].mapped = {{100, 4096}};
    EXPECT_THAT(why(d), HasSubstr("4096"));
    d = describe();
    d.bars[0].size = 0x80000;
    EXPECT_THAT(why(d), HasSubstr("MSI-X"));
    d.interrupts = InterruptMode::kMsi;
    EXPECT_EQ(why(d), "");
    d = describe();
    d.link_speed = 6;
    EXPECT_THAT(why(d), HasSubstr("speed"));
    d = describe();
    d.link_width = 3;
    EXPECT_THAT(why(d), HasSubstr("width"));
}

}  // namespace
}  // namespace orrery::emu
