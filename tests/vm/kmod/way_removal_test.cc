// Cards of a way over two links that go while somebody writes: for a VM of three cards in a chain. Takes
// cards away: run it alone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/vm/kmod/pci.h"
#include "tests/vm/kmod/place.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class WayRemoval : public ::testing::Test {
  protected:
    void SetUp() override {
        cards_ = pci_addresses();
        if (cards_.size() < 3) GTEST_SKIP() << "needs three cards in a chain";
    }
    unsigned node(std::size_t card) const { return static_cast<unsigned>(node_of(cards_[card])); }
    // What was written from one end is at the other.
    void expect_crosses(std::size_t from, std::size_t to, std::uint64_t pattern) const {
        Place owner(node(to)), writer(node(from));
        owner.make_memory(kMiB);
        writer.share(owner, ORR_BIND_WRITE);
        EXPECT_EQ(writer.queue->run(std::vector{fill(kVa, kMiB, pattern)}), 0);
        EXPECT_EQ(unmap(writer.fd(), writer.vm, kVa, kMiB), 0);
        EXPECT_EQ(owner.memory.words()[0], pattern);
        EXPECT_EQ(owner.memory.words()[kMiB / 8 - 1], pattern);
    }
    void begin_anew(std::size_t card) const {
        if (node_of(cards_[card]) >= 0) EXPECT_TRUE(unbind_driver(cards_[card]));
        EXPECT_TRUE(bind_driver(cards_[card]));
    }
    // Writes until that fails; the queue's error.
    static std::uint32_t write_until_told(Place& writer) {
        drm_orr_queue_wait out{};
        for (int tries = 0; tries < 20'000 && out.error == 0; ++tries)
            if (writer.queue->run(std::vector{fill(kVa, 4096, 5)}, out) != 0) break;
        return out.error;
    }
    std::vector<std::string> cards_;
};

// The card at the other end is lost, and no link of ours goes down. Whoever writes there is told, from either
// end.
TEST_F(WayRemoval, TheOwnerIsLost) {
    const std::size_t ends[][2] = {{0, 2}, {2, 0}};
    for (const auto& [from, to] : ends) {
        Place owner(node(to)), writer(node(from));
        owner.make_memory(kMiB);
        writer.share(owner, ORR_BIND_WRITE);
        ASSERT_EQ(writer.queue->run(std::vector{fill(kVa, kMiB, 5)}), 0);
        drm_orr_query_way way{};
        way.peer_uid = uid_of(owner.fd());
        ASSERT_TRUE(write_file("/sys/bus/pci/devices/" + cards_[to] + "/reset", "1"));
        EXPECT_EQ(write_until_told(writer), ORR_QERR_FAULT) << "from " << from;
        ASSERT_EQ(call(writer.fd(), DRM_IOCTL_ORR_QUERY_WAY, &way), 0);
        EXPECT_EQ(way.links, 0u) << "from " << from;
        EXPECT_EQ(way.lost_uid, 0u) << "from " << from << ": no link went down before the card";
        begin_anew(to);
        expect_crosses(from, to, 6);
    }
}

// No link of the others goes down. The card between is no member; the neighbour's own link stays up, too, and
// a card in lockstep says nothing itself as it is reset.
TEST_F(WayRemoval, ABarrierEndsWithACard) {
    for (const std::size_t gone : {2u, 1u}) {
        for (const bool unbind : {true, false}) {
            Place owner(node(0)), there(node(gone));
            owner.make_memory();
            there.make_memory();
            const File other = barrier_with(owner, there.fd(), there.memory.handle);
            owner.queue->submit(std::vector{signal(kPage, 1), wait_for(kVa, 1)});
            drm_orr_query_device card{};
            ASSERT_EQ(call(there.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &card), 0);
            if (unbind)
                EXPECT_TRUE(unbind_driver(cards_[gone]));
            else
                EXPECT_TRUE(write_file("/sys/bus/pci/devices/" + cards_[gone] + "/reset", "1"));
            owner.expect_poisoned(ORR_QERR_PEER_LOST);
            EXPECT_EQ(ORR_FAILURE_NODE(owner.outcome().error_detail), card.uid & 0xff)
                << gone << (unbind ? " unbound" : " lost");
            begin_anew(gone);
        }
    }
}

// The card in the middle is a member, and its loss is the cause for those at both ends: what it leaves
// without a way goes after it.
TEST_F(WayRemoval, ABarrierBlamesTheCardThatIsLost) {
    std::vector<std::unique_ptr<Place>> places;
    std::vector<File> memories(3), pages;
    std::vector<drm_orr_barrier_member> members;
    // It comes last in the table.
    for (const std::size_t card : {0u, 2u, 1u}) {
        places.push_back(std::make_unique<Place>(node(card)));
        places.back()->make_memory();
        File& memory = memories[places.size() - 1];
        ASSERT_EQ(export_bo(places.back()->fd(), places.back()->memory.handle, memory), 0);
        members.push_back({.memory = memory.get(), .page = 0, .offset = 0});
    }
    ASSERT_EQ(make_barrier(places[0]->fd(), members), 0);
    for (const drm_orr_barrier_member& member : members)
        pages.emplace_back(member.page);
    for (const unsigned end : {0u, 1u}) {
        map_page(*places[end], pages[end]);
        places[end]->queue->submit(std::vector{signal(kPage, 1), wait_for(kVa, 1)});
    }
    drm_orr_query_device card{};
    ASSERT_EQ(call(places[2]->fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &card), 0);
    ASSERT_TRUE(write_file("/sys/bus/pci/devices/" + cards_[1] + "/reset", "1"));
    for (const unsigned end : {0u, 1u}) {
        places[end]->expect_poisoned(ORR_QERR_PEER_LOST);
        EXPECT_EQ(ORR_FAILURE_NODE(places[end]->outcome().error_detail), card.uid & 0xff) << end;
    }
    begin_anew(1);
}

// Under a copy the driver leaves the card in the middle, or that is lost.
TEST_F(WayRemoval, TheCardInTheMiddleGoes) {
    for (const bool unbind : {true, false}) {
        Place owner(node(2)), writer(node(0));
        owner.make_memory(kMiB);
        writer.share(owner, ORR_BIND_WRITE);
        ASSERT_EQ(writer.queue->run(std::vector{fill(kVa, kMiB, 5)}), 0);
        std::thread goes([&] {
            if (unbind)
                EXPECT_TRUE(unbind_driver(cards_[1]));
            else
                EXPECT_TRUE(write_file("/sys/bus/pci/devices/" + cards_[1] + "/reset", "1"));
        });
        EXPECT_EQ(write_until_told(writer), ORR_QERR_FAULT) << (unbind ? "unbound" : "lost");
        goes.join();
        // The other links are up; one that is unbound is no card of this driver's any more.
        EXPECT_TRUE(route_of(cards_[0], cards_[2]).ends_with(" apart")) << route_of(cards_[0], cards_[2]);
        EXPECT_EQ(route_of(cards_[0], cards_[1]).empty(), unbind);
        if (!unbind) EXPECT_TRUE(route_of(cards_[0], cards_[1]).ends_with(" lost"));
        // Nobody waits for it: a mapping can go, and both cards go on.
        EXPECT_EQ(unmap(writer.fd(), writer.vm, kVa, kMiB), 0);
        for (const Place* place : {&owner, &writer}) {
            Queue still(place->fd(), place->vm, kRingVa + (1 << 20));
            EXPECT_EQ(still.run(std::vector{nop()}), 0);
        }
        std::uint32_t handle = 0;
        File dma_buf;
        ASSERT_EQ(export_bo(owner.fd(), owner.memory.handle, dma_buf), 0);
        const Place late(node(0));
        EXPECT_EQ(import_bo(late.fd(), dma_buf.get(), handle), EXDEV);
        begin_anew(1);
        expect_crosses(0, 2, 7);
        expect_crosses(2, 0, 8);
    }
}

}  // namespace
}  // namespace orrery::kmod_test
