// What a client that keeps the protocol gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "emulator/pcie/config_space.h"
#include "tests/unit/pcie/server_fixture.h"

namespace orrery::test {
namespace {

using emu::Interrupts;
using testing::ElementsAre;

class Protocol : public ServerFixture {};

constexpr uint32_t kSetEventfds = wire::kIrqDataEventfd | wire::kIrqActionTrigger;
constexpr uint32_t kDisable = wire::kIrqDataNone | wire::kIrqActionTrigger;

TEST_F(Protocol, NegotiatesWhatQemuProposes) {
    start();
    auto client = Client::connect(path_);
    ASSERT_TRUE(client);
    const auto reply = client->call(wire::kVersion, qemu_version());
    ASSERT_TRUE(reply && reply->ok());
    EXPECT_EQ(reply->as<wire::Version>().major, 0);
    EXPECT_EQ(reply->as<wire::Version>().minor, 0);
    EXPECT_LE(reply->payload.size(), qemu_version().size()) << "QEMU has no room for more than it sent";
    ASSERT_EQ(reply->payload.back(), std::byte{0});
    const auto* text = reinterpret_cast<const char*>(reply->payload.data()) + sizeof(wire::Version);
    const auto caps = nlohmann::json::parse(text)["capabilities"];
    EXPECT_EQ(caps["max_msg_fds"], 16);
    EXPECT_EQ(caps["max_data_xfer_size"], 1048576);
    EXPECT_EQ(caps["pgsizes"], 4096);
    EXPECT_EQ(caps["max_dma_maps"], 65535);
    EXPECT_EQ(caps.size(), 4u) << "nothing of migration, coalesced writes or twin sockets";
}

TEST_F(Protocol, NegotiatesWithoutCapabilities) {
    start();
    auto client = Client::connect(path_);
    const auto reply = client->call(wire::kVersion, bytes_of(wire::Version{0, 7}));
    ASSERT_TRUE(reply && reply->ok());
    EXPECT_EQ(reply->as<wire::Version>().minor, 0) << "never more than both speak";
    EXPECT_EQ(client->error_of(wire::kVersion, qemu_version()), EINVAL) << "only once";
    EXPECT_EQ(client->error_of(wire::kDeviceReset, {}), 0) << "which does no harm";
}

TEST_F(Protocol, DescribesTheDevice) {
    start();
    Client client = attach();
    const auto reply = client.call(wire::kDeviceGetInfo, bytes_of(wire::DeviceInfo{16, 0, 0, 0}));
    ASSERT_TRUE(reply && reply->ok());
    const auto info = reply->as<wire::DeviceInfo>();
    EXPECT_EQ(info.argsz, 16u);
    EXPECT_EQ(info.flags, 3u) << "a PCI device that can be reset";
    EXPECT_EQ(info.num_regions, 9u);
    EXPECT_EQ(info.num_irqs, 5u);
}

TEST_F(Protocol, DescribesRegions) {
    start();
    Client client = attach();
    const auto info = [&](uint32_t index) {
        const auto reply = client.region_info(index, sizeof(wire::RegionInfo));
        EXPECT_TRUE(reply && reply->ok());
        return reply ? reply->as<wire::RegionInfo>() : wire::RegionInfo{};
    };
    EXPECT_EQ(info(0).size, ORR_BAR_REGS_SIZE);
    EXPECT_EQ(info(0).flags, 3u) << "trapped";
    for (const uint32_t absent : {1u, 3u, 5u, wire::kRegionRom, wire::kRegionVga}) {
        EXPECT_EQ(info(absent).size, 0u);
        EXPECT_EQ(info(absent).flags, 0u);
    }
    EXPECT_EQ(info(wire::kRegionConfig).size, emu::kConfigSize);
    EXPECT_EQ(info(wire::kRegionConfig).flags, 3u);
    EXPECT_EQ(client.region_info(9, 32)->error(), EINVAL);
}

TEST_F(Protocol, SharesAWholeBar) {
    start();
    Client client = attach();
    const auto reply = client.region_info(2, sizeof(wire::RegionInfo));
    ASSERT_TRUE(reply && reply->ok());
    const auto info = reply->as<wire::RegionInfo>();
    EXPECT_EQ(info.flags, 7u) << "read, write, map; no capability needed";
    EXPECT_EQ(info.size, kVramSize);
    ASSERT_EQ(reply->fds.size(), 1u);
    void* p = ::mmap(nullptr, kVramSize, PROT_READ | PROT_WRITE, MAP_SHARED, reply->fds[0].get(),
                     static_cast<off_t>(info.offset));
    ASSERT_NE(p, MAP_FAILED);
    const uint64_t word = 0x1122334455667788;
    std::memcpy(static_cast<std::byte*>(p) + 0x5000, &word, sizeof word);
    EXPECT_EQ(card_.vram_word(0x5000), word) << "the card sees it without a message";
    EXPECT_EQ(client.read<uint64_t>(2, 0x5000), word) << "and messages work all the same";
    EXPECT_EQ(client.write<uint32_t>(2, 0x5000, 0xabcd), 0);
    EXPECT_EQ(card_.vram_word(0x5000), 0x112233440000abcdu);
    EXPECT_EQ(card_.accesses(), 0u) << "mapped areas do not trouble the card";
    ::munmap(p, kVramSize);
}

TEST_F(Protocol, SharesHalfABar) {
    start();
    Client client = attach();
    const auto first = client.region_info(4, sizeof(wire::RegionInfo));
    ASSERT_TRUE(first && first->ok());
    const auto needed = first->as<wire::RegionInfo>();
    EXPECT_EQ(first->payload.size(), sizeof(wire::RegionInfo)) << "no more than was asked for";
    EXPECT_TRUE(first->fds.empty()) << "a descriptor comes with the whole answer only";
    EXPECT_EQ(needed.argsz, 64u);
    EXPECT_EQ(needed.cap_offset, 32u) << "QEMU wants a valid one even now";

    const auto second = client.region_info(4, needed.argsz);
    ASSERT_TRUE(second && second->ok());
    ASSERT_EQ(second->payload.size(), 64u);
    EXPECT_EQ(second->as<wire::RegionInfo>().flags, 15u);
    const auto sparse = second->as<wire::SparseMmap>(32);
    EXPECT_EQ(sparse.id, 1);
    EXPECT_EQ(sparse.version, 1);
    EXPECT_EQ(sparse.next, 0u);
    EXPECT_EQ(sparse.nr_areas, 1u);
    EXPECT_EQ(second->as<wire::SparseArea>(48).offset, 0u);
    EXPECT_EQ(second->as<wire::SparseArea>(48).size, kDoorbellSize / 2);
    EXPECT_EQ(second->fds.size(), 1u);

    EXPECT_EQ(client.write<uint64_t>(4, kDoorbellSize / 2 - 8, 1), 0);
    EXPECT_EQ(client.read<uint64_t>(0, kRegKicks), 0u) << "the lower half is memory";
    EXPECT_EQ(client.write<uint64_t>(4, kDoorbellSize / 2, 1), 0);
    EXPECT_EQ(client.read<uint64_t>(0, kRegKicks), 1u) << "the upper half traps";
}

TEST_F(Protocol, GivesTheCardNaturalAccesses) {
    start();
    Client client = attach();
    EXPECT_EQ(client.read<uint64_t>(0, kRegMagic), kMagic);
    EXPECT_EQ(client.read<uint32_t>(0, kRegMagic + 4), kMagic >> 32);
    EXPECT_EQ(client.read<uint8_t>(0, kRegMagic + 1), (kMagic >> 8) & 0xff);
    EXPECT_EQ(client.write<uint64_t>(0, kRegScratch, 0x0102030405060708), 0);
    EXPECT_EQ(client.read<uint64_t>(0, kRegScratch), 0x0102030405060708u);
    // 64 bytes at a crooked offset arrive in pieces that the card accepts, and read right.
    const auto reply = client.call(wire::kRegionRead, bytes_of(wire::RegionAccess{3, 0, 64}));
    ASSERT_TRUE(reply && reply->ok());
    EXPECT_EQ(reply->as<uint32_t>(16 + 1), kMagic >> 32);
    EXPECT_EQ(reply->as<uint64_t>(16 + 5), 0x0102030405060708u);
    // One access over the border of mapped and trapped.
    std::vector<std::byte> data(16, std::byte{0x11});
    const wire::RegionAccess over{kDoorbellSize / 2 - 8, 4, 16};
    EXPECT_EQ(client.error_of(wire::kRegionWrite, bytes_of(over) + data), 0);
    EXPECT_EQ(client.read<uint64_t>(4, kDoorbellSize / 2 - 8), 0x1111111111111111u);
    EXPECT_EQ(client.read<uint64_t>(0, kRegKicks), 1u);
    // As much as one message may hold.
    const auto big = client.call(wire::kRegionRead, bytes_of(wire::RegionAccess{0, 0, wire::kMaxTransfer}));
    ASSERT_TRUE(big && big->ok());
    EXPECT_EQ(big->payload.size(), 16u + wire::kMaxTransfer);
}

TEST_F(Protocol, ReachesGuestMemory) {
    start();
    Client client = attach();
    const auto fd = memory(0x20000);
    ASSERT_TRUE(client.map(0x100000, 0x10000, fd.get(), 0x8000));
    ASSERT_TRUE(client.map(0x200000, 0x1000, fd.get(), 0x18000, wire::kDmaReadable));
    ASSERT_TRUE(client.map(0xfe000000, 0x100000, -1)) << "as for other cards' BARs";
    EXPECT_EQ(client.error_of(wire::kDmaMap, bytes_of(wire::DmaMap{32, 3, 0, 0x100000, 0x1000})), EEXIST);
    EXPECT_THAT(card_.take_events(), ElementsAre("attached", "map 100000+10000 rw", "map 200000+1000 r",
                                                 "map fe000000+100000 rw nofd"));
    client.write<uint64_t>(0, kRegScratch, 0x5566778899aabbcc);
    client.write<uint64_t>(0, kRegDmaAddress, 0x100000 + 0x230);
    client.write<uint64_t>(0, kRegDmaCommand, kDmaStore);
    uint64_t word = 0;
    ASSERT_EQ(::pread(fd.get(), &word, 8, 0x8230), 8);
    EXPECT_EQ(word, 0x5566778899aabbccu);
    client.write<uint64_t>(0, kRegDmaAddress, 0xfe000000);
    client.write<uint64_t>(0, kRegDmaCommand, kDmaStore);
    EXPECT_EQ(client.read<uint64_t>(0, kRegDmaErrors), 1u) << "no descriptor, no access";

    const wire::DmaUnmap unmap{.argsz = 24, .flags = 0, .address = 0x100000, .size = 0x10000};
    const auto reply = client.call(wire::kDmaUnmap, bytes_of(unmap));
    ASSERT_TRUE(reply && reply->ok());
    EXPECT_EQ(reply->payload, bytes_of(unmap)) << "the entry comes back";
    EXPECT_EQ(client.error_of(wire::kDmaUnmap, bytes_of(unmap)), 0)
        << "never mapped: no error (QEMU does it)";
    client.write<uint64_t>(0, kRegDmaAddress, 0x100230);
    client.write<uint64_t>(0, kRegDmaCommand, kDmaStore);
    EXPECT_EQ(client.read<uint64_t>(0, kRegDmaErrors), 2u);
    EXPECT_THAT(card_.take_events(), ElementsAre("unmap 100000+10000"));
    EXPECT_EQ(client.error_of(wire::kDmaUnmap, bytes_of(wire::DmaUnmap{24, wire::kUnmapAll, 0, 0})), 0);
    EXPECT_THAT(card_.take_events(), ElementsAre("unmap 200000+1000", "unmap fe000000+100000"));
}

TEST_F(Protocol, PassesTheCardsRefusalOn) {
    start();
    Client client = attach();
    card_.refuse_maps(ENOMEM);
    const auto fd = memory(0x1000);
    const int raw = fd.get();
    const auto map = bytes_of(wire::DmaMap{32, 3, 0, 0x1000, 0x1000});
    EXPECT_EQ(client.error_of(wire::kDmaMap, map, std::span(&raw, 1)), ENOMEM);
    card_.refuse_maps(0);
    EXPECT_EQ(client.error_of(wire::kDmaMap, map, std::span(&raw, 1)), 0) << "the range is not taken";
}

TEST_F(Protocol, RefusesGuestRamThatIsNotShared) {
    start();
    Client client = attach();
    EXPECT_FALSE(client.map(0, 0x10000000, -1));
    EXPECT_EQ(client.error_of(wire::kDeviceGetInfo, bytes_of(wire::DeviceInfo{16, 0, 0, 0})), EINVAL);
    client.hang_up();
    settle();
    stop();
    EXPECT_THAT(log_, testing::Contains(testing::HasSubstr("memory-backend-memfd")));
}

TEST_F(Protocol, DeliversInterrupts) {
    for (const auto mode :
         {emu::InterruptMode::kMsix, emu::InterruptMode::kMsi, emu::InterruptMode::kSingle}) {
        start(mode);
        Client client = attach();
        const bool msix = mode == emu::InterruptMode::kMsix;
        const uint32_t index = msix ? Interrupts::kMsixIndex : Interrupts::kMsiIndex;
        const auto reply = client.call(wire::kDeviceGetIrqInfo, bytes_of(wire::IrqInfo{16, 0, index, 0}));
        ASSERT_TRUE(reply && reply->ok());
        const uint32_t count = reply->as<wire::IrqInfo>().count;
        EXPECT_EQ(count, mode == emu::InterruptMode::kSingle ? 1u : emu::kVectorCount);
        EXPECT_NE(reply->as<wire::IrqInfo>().flags & wire::kIrqFlagEventfd, 0u);

        std::vector<emu::UniqueFd> events;
        std::vector<int> fds;
        for (uint32_t i = 0; i < count; i++)
            fds.push_back(events.emplace_back(event()).get());
        ASSERT_EQ(client.set_irqs(index, 0, count, kSetEventfds, fds), 0);
        for (uint64_t v = 0; v < emu::kVectorCount; v++) {
            ASSERT_EQ(client.write<uint64_t>(0, kRegRaise, v), 0);
            EXPECT_EQ(signals(events[v % count]), 1u) << "vector " << v;
        }
        EXPECT_EQ(client.set_irqs(index, 0, 0, kDisable), 0);
        ASSERT_EQ(client.write<uint64_t>(0, kRegRaise, 0), 0);
        EXPECT_EQ(signals(events[0]), 0u);
        client.hang_up();
        stop();
    }
}

TEST_F(Protocol, GrowsVectorsAsQemuDoes) {
    start();
    Client client = attach();
    const auto a = event(), b = event();
    const std::vector<int> one{a.get()}, both{a.get(), b.get()};
    // Vector 0 first, then the type goes down and comes up with two; then one vector alone is changed.
    EXPECT_EQ(client.set_irqs(Interrupts::kMsixIndex, 0, 1, kSetEventfds, one), 0);
    EXPECT_EQ(client.set_irqs(Interrupts::kMsixIndex, 0, 0, kDisable), 0);
    EXPECT_EQ(client.set_irqs(Interrupts::kMsixIndex, 0, 2, kSetEventfds, both), 0);
    client.write<uint64_t>(0, kRegRaise, 1);
    EXPECT_EQ(signals(b), 1u);
    EXPECT_EQ(client.set_irqs(Interrupts::kMsixIndex, 1, 1, kSetEventfds), 0) << "taken away";
    client.write<uint64_t>(0, kRegRaise, 1);
    EXPECT_EQ(signals(b), 0u);
    EXPECT_EQ(signals(a), 1u) << "one message is left, and gets all";
    const auto c = event();
    const std::vector<int> other{c.get()};
    EXPECT_EQ(client.set_irqs(Interrupts::kMsixIndex, 1, 1, kSetEventfds, other), 0);
    client.write<uint64_t>(0, kRegRaise, 1);
    EXPECT_EQ(signals(c), 1u);
    // Loopback, masks, and the pending bit in BAR 0.
    EXPECT_EQ(client.set_irqs(Interrupts::kMsixIndex, 0, 2, wire::kIrqDataBool | wire::kIrqActionTrigger, {},
                              std::vector{std::byte{0}, std::byte{1}}),
              0);
    EXPECT_EQ(signals(a), 0u);
    EXPECT_EQ(signals(c), 1u);
    EXPECT_EQ(client.set_irqs(Interrupts::kMsixIndex, 1, 1, wire::kIrqDataNone | wire::kIrqActionMask), 0);
    client.write<uint64_t>(0, kRegRaise, 1);
    EXPECT_EQ(client.read<uint64_t>(0, ORR_MSIX_PBA_OFFSET), 2u);
    EXPECT_EQ(client.set_irqs(Interrupts::kMsixIndex, 1, 1, wire::kIrqDataNone | wire::kIrqActionUnmask), 0);
    EXPECT_EQ(client.read<uint64_t>(0, ORR_MSIX_PBA_OFFSET), 0u);
    EXPECT_EQ(signals(c), 1u);
}

TEST_F(Protocol, KeepsTheMsixTable) {
    start();
    Client client = attach();
    EXPECT_EQ(client.read<uint32_t>(0, ORR_MSIX_TABLE_OFFSET + 12), 1u) << "masked at first";
    EXPECT_EQ(client.write<uint64_t>(0, ORR_MSIX_TABLE_OFFSET + 16, 0xfee00003), 0);
    EXPECT_EQ(client.write<uint64_t>(0, ORR_MSIX_TABLE_OFFSET + 24, 0xfffffffe00000041), 0);
    EXPECT_EQ(client.read<uint64_t>(0, ORR_MSIX_TABLE_OFFSET + 16), 0xfee00000u);
    EXPECT_EQ(client.read<uint64_t>(0, ORR_MSIX_TABLE_OFFSET + 24), 0x41u) << "reserved bits stay zero";
    EXPECT_EQ(client.write<uint64_t>(0, ORR_MSIX_PBA_OFFSET, ~uint64_t{0}), 0);
    EXPECT_EQ(client.read<uint64_t>(0, ORR_MSIX_PBA_OFFSET), 0u) << "read-only";
    EXPECT_EQ(card_.accesses(), 0u) << "the card never sees these";
    EXPECT_EQ(client.read<uint64_t>(0, ORR_MSIX_TABLE_OFFSET + 16 * emu::kVectorCount), 0u);
    EXPECT_EQ(card_.accesses(), 1u) << "what lies behind the table is the card's";
}

TEST_F(Protocol, Resets) {
    start();
    Client client = attach();
    const auto fd = memory(0x1000);
    const auto irq = event();
    const std::vector<int> irqs{irq.get()};
    ASSERT_TRUE(client.map(0x1000, 0x1000, fd.get()));
    ASSERT_EQ(client.set_irqs(Interrupts::kMsixIndex, 0, 1, kSetEventfds, irqs), 0);
    client.write<uint16_t>(wire::kRegionConfig, 0x04, 6);
    client.write<uint32_t>(wire::kRegionConfig, 0x10, 0xfe000000);
    card_.take_events();
    client.write<uint16_t>(wire::kRegionConfig, emu::kCapPcie + 0x28, 0x40);
    EXPECT_THAT(card_.take_events(), ElementsAre("atomics on"));

    EXPECT_EQ(client.write<uint16_t>(wire::kRegionConfig, emu::kCapPcie + 8, 0x8000), 0);
    EXPECT_THAT(card_.take_events(), ElementsAre("master off", "atomics off", "reset function"));
    EXPECT_EQ(client.read<uint16_t>(wire::kRegionConfig, 0x04), 0);
    EXPECT_EQ(client.read<uint16_t>(wire::kRegionConfig, emu::kCapPcie + 0x28), 0);
    EXPECT_EQ(client.read<uint32_t>(wire::kRegionConfig, 0x10), 0u);
    client.write<uint16_t>(wire::kRegionConfig, 0x04, 6);
    EXPECT_EQ(client.error_of(wire::kDeviceReset, {}), 0);
    EXPECT_THAT(card_.take_events(), ElementsAre("master on", "master off", "reset bus"));
    client.write<uint64_t>(0, kRegRaise, 0);
    EXPECT_EQ(signals(irq), 1u) << "descriptors and maps are the client's and survive";
    EXPECT_EQ(card_.mapped_ranges(), 1u);
    EXPECT_EQ(server_->counters().resets, 2u);
}

TEST_F(Protocol, AnswersNothingWhenToldSo) {
    start();
    Client client = attach();
    const auto write = bytes_of(wire::RegionAccess{kRegScratch, 0, 8}) + bytes_of(uint64_t{42});
    for (int i = 0; i < 100; i++)
        ASSERT_TRUE(client.send(message(wire::kRegionWrite, write, 7, wire::kFlagNoReply)));
    ASSERT_TRUE(client.send(message(999, {}, 7, wire::kFlagNoReply))) << "errors are not answered either";
    EXPECT_EQ(client.read<uint64_t>(0, kRegScratch), 42u) << "the next reply belongs to this read";
}

TEST_F(Protocol, TakesPipelinedCommands) {
    start();
    Client client = attach();
    std::vector<std::byte> many;
    for (uint16_t i = 0; i < 50; i++) {
        many = many + message(wire::kRegionRead, bytes_of(wire::RegionAccess{kRegMagic, 0, 8}), i);
    }
    ASSERT_TRUE(client.send(many));
    for (uint16_t i = 0; i < 50; i++) {
        const auto reply = client.receive();
        ASSERT_TRUE(reply && reply->ok());
        EXPECT_EQ(reply->header.id, i);
        EXPECT_EQ(reply->as<uint64_t>(16), kMagic);
    }
}

TEST_F(Protocol, SaysWhatItDoesNotDo) {
    start();
    Client client = attach();
    for (const uint16_t command :
         {wire::kDeviceGetRegionIoFds, wire::kDmaRead, wire::kDmaWrite, wire::kDirtyPages,
          wire::kRegionWriteMulti, wire::kDeviceFeature, wire::kMigDataRead, wire::kMigDataWrite}) {
        EXPECT_EQ(client.error_of(command, std::vector<std::byte>(64)), ENOTSUP) << command;
    }
    EXPECT_EQ(client.error_of(0, {}), ENOSYS);
    EXPECT_EQ(client.error_of(19, {}), ENOSYS);
    EXPECT_EQ(client.error_of(0xffff, {}), ENOSYS);
    EXPECT_EQ(client.read<uint64_t>(0, kRegMagic), kMagic) << "and goes on";
}

}  // namespace
}  // namespace orrery::test
