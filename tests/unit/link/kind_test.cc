// A card runs with a link of a kind of which it knows nothing.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/card/card_rig.h"
#include "tests/unit/link/loopback_port.h"

namespace orrery::emu::test {
namespace {

constexpr unsigned kPort = 1;
constexpr std::uint64_t kLink = ORR_R_LINK(kPort);
constexpr std::uint32_t kAsid = 2;
constexpr std::uint64_t kFrom = 0x10000, kTo = 0x20000;          // virtual
constexpr std::uint64_t kSource = 0x40000, kArrives = 0x100000;  // in VRAM

CardConfig with_loopback() {
    CardConfig config = CardRig::config();
    config.links.emplace_back();
    config.links.back().kind = &kLoopback;
    config.links.back().port = kPort;
    return config;
}

class LinkKind : public ::testing::Test {
  protected:
    LinkKind() : rig_(with_loopback()) {
        rig_.steps(10);
        rig_.join(1, kPort, LoopbackPort::kPeerNode);
        rig_.boot_script();
        rig_.map_page(kAsid, kFrom, kSource, kRw);
        rig_.map_page(kAsid, kTo, kArrives, kRw | of_node(LoopbackPort::kPeerNode));
        rig_.run(rig_.set_root(kAsid));
    }

    CardRig rig_;
};

TEST_F(LinkKind, ItsStateStandsInTheRegisters) {
    EXPECT_EQ(rig_.read32(kLink), ORR_LINK_UP);
    EXPECT_EQ(rig_.read64(kLink + ORR_R_LINK_PEER_UID), LoopbackPort::kPeerUid);
    EXPECT_EQ(rig_.read32(ORR_R_LINK(0)), ORR_LINK_DOWN) << "there is none at that port";
}

TEST_F(LinkKind, EnginesWriteAndTheCoreSignals) {
    std::memset(rig_.card().vram().data() + kSource, 0x5a, ORR_PAGE_SIZE);
    orr_desc_copy copy{};
    copy.op = ORR_DESC_COPY;
    copy.asid = kAsid;
    copy.src = kFrom;
    copy.dst = kTo;
    copy.row_bytes = 2048;
    copy.rows = 1;
    rig_.run(CardRig::start_job(0, copy, 5));
    const auto done = rig_.run(
        {{OP_WAIT, 0, 1u << SOC_LINE_DONE, 0}, CardRig::read(SOC_DONE_POP), CardRig::read(SOC_DONE_STATUS)});
    EXPECT_EQ(done[1].result, 5u);
    EXPECT_EQ(done[2].result, ORR_DONE_OK);
    const std::uint8_t* const arrived = rig_.card().vram().data() + kArrives;
    EXPECT_EQ(std::memcmp(arrived, rig_.card().vram().data() + kSource, 2048), 0);
    EXPECT_EQ(arrived[2048], 0);

    EXPECT_EQ(rig_.run(CardRig::signal(kAsid, kTo + 2048, 9)).back().result, ORR_FAULT_NONE);
    const auto poked = rig_.run({{OP_WAIT, 0, 1u << SOC_LINE_POKE, 0}, CardRig::read(SOC_POKE_POP)});
    EXPECT_EQ(poked[1].result, kArrives + 2048);
}

TEST_F(LinkKind, AResetTakesItDownAndItComesBack) {
    rig_.write32(ORR_R_IRQ_STATUS, ~0u);
    rig_.write32(kLink + ORR_R_LINK_RESET, 1);
    rig_.steps(10);
    EXPECT_NE(rig_.read32(ORR_R_IRQ_STATUS) & 1u << ORR_IRQ_LINK, 0u);
    EXPECT_EQ(rig_.read32(kLink), ORR_LINK_UP);
}

}  // namespace
}  // namespace orrery::emu::test
