// Multicasts as processes ask the driver for them, in wrong ways, too, and what becomes of them in any order.
#include <gtest/gtest.h>
#include <orrery/hw/engine.h>
#include <sys/mman.h>

#include <bit>

#include "tests/vm/kmod/pci.h"
#include "tests/vm/kmod/place.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kBytes = 64 << 10;

int make_multicast(int fd, std::vector<drm_orr_multicast_member> members, drm_orr_multicast_create& args) {
    args.members = reinterpret_cast<std::uintptr_t>(members.data());
    args.count = static_cast<std::uint32_t>(members.size());
    return call(fd, DRM_IOCTL_ORR_MULTICAST_CREATE, &args);
}

// The writer is on card 0, each other card has a member.
class Multicasts : public ::testing::Test {
  protected:
    void SetUp() override {
        if (count_cards() < 2) GTEST_SKIP() << "needs two cards";
        for (unsigned card = 0; card < count_cards(); ++card) {
            places.push_back(std::make_unique<Place>(card));
            places.back()->make_memory(kBytes);
            memories.emplace_back();
            ASSERT_EQ(export_bo(places.back()->fd(), places.back()->memory.handle, memories.back()), 0);
        }
    }
    void TearDown() override { EXPECT_EQ(bad_keys(), 0u); }
    int fd() const { return places[0]->fd(); }
    drm_orr_multicast_member member(unsigned card, std::uint64_t offset = 0) const {
        return {.memory = memories[card].get(), .pad = 0, .offset = offset};
    }
    std::vector<drm_orr_multicast_member> all() const {
        std::vector<drm_orr_multicast_member> members;
        for (unsigned card = 1; card < memories.size(); ++card)
            members.push_back(member(card));
        return members;
    }
    int error_of(const std::vector<drm_orr_multicast_member>& members, std::uint64_t size = kBytes) const {
        drm_orr_multicast_create args{};
        args.size = size;
        return make_multicast(fd(), members, args);
    }
    std::vector<std::unique_ptr<Place>> places;
    std::vector<File> memories;
};

TEST_F(Multicasts, AreMadeOfOtherCardsMemory) {
    EXPECT_EQ(error_of({}), EINVAL);
    EXPECT_EQ(error_of(std::vector(ORR_MULTICAST_MEMBERS_MAX + 1, member(1))), EINVAL);
    EXPECT_EQ(error_of({member(1)}, 0), EINVAL);
    EXPECT_EQ(error_of({member(1)}, 4097), EINVAL);
    EXPECT_EQ(error_of({member(1)}, kBytes + 4096), EINVAL) << "longer than the member's memory";
    EXPECT_EQ(error_of({member(1, 4096)}), EINVAL);
    EXPECT_EQ(error_of({member(1, ~std::uint64_t{4095})}, 8192), EINVAL) << "beyond the end of all addresses";
    EXPECT_EQ(error_of({member(1, 16)}, 4096), EINVAL);
    EXPECT_EQ(error_of({member(0)}), EINVAL) << "its own";
    EXPECT_EQ(error_of({member(1), member(1, 4096)}, 4096), EINVAL) << "two of one card";
    EXPECT_EQ(error_of({{.memory = -1, .pad = 0, .offset = 0}}), EBADF);
    EXPECT_EQ(error_of({{.memory = fd(), .pad = 0, .offset = 0}}), EINVAL) << "no memory";
    EXPECT_EQ(error_of({{.memory = memories[1].get(), .pad = 1, .offset = 0}}), EINVAL);
    drm_orr_multicast_create args{};
    args.size = kBytes;
    args.flags = 2;
    EXPECT_EQ(make_multicast(fd(), all(), args), EINVAL);
    args.flags = 0;
    args.members = 8;
    args.count = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_MULTICAST_CREATE, &args), EFAULT);
    const int good = error_of({member(1)});
    EXPECT_TRUE(good == 0 || good == EXDEV) << good;
}

class SwitchedMulticasts : public Multicasts {
  protected:
    void SetUp() override {
        Multicasts::SetUp();
        if (IsSkipped()) return;
        args.size = kBytes;
        const int error = make_multicast(fd(), all(), args);
        if (error == EXDEV) GTEST_SKIP() << "no switch joins the cards";
        ASSERT_EQ(error, 0);
    }
    int bind(std::uint32_t flags) const {
        return map(fd(), places[0]->vm, args.handle, kPage, kBytes, flags);
    }
    void expect_written(std::uint64_t value) const {
        for (unsigned card = 1; card < places.size(); ++card) {
            const auto* words = static_cast<volatile std::uint64_t*>(places[card]->memory.words());
            // The queue is done when it is all on the link.
            EXPECT_TRUE(comes_true([&] { return words[kBytes / 8 - 1] == value; })) << card;
            EXPECT_EQ(words[0], value) << card;
            EXPECT_EQ(words[kBytes / 8 - 1], value) << card;
        }
    }
    drm_orr_multicast_create args{};
};

TEST_F(SwitchedMulticasts, AreWrittenToOnlyAndByOneCard) {
    EXPECT_NE(bind(ORR_BIND_READ | ORR_BIND_WRITE), 0);
    EXPECT_NE(bind(ORR_BIND_READ), 0);
    ASSERT_EQ(bind(ORR_BIND_WRITE), 0);
    EXPECT_EQ(places[0]->queue->run(std::vector{fill(kPage, kBytes, 7)}), 0);
    expect_written(7);
    // It is nobody's memory that could be lent on.
    File dma_buf;
    std::uint32_t handle = 0;
    if (export_bo(fd(), args.handle, dma_buf) == 0)
        EXPECT_NE(import_bo(places[1]->fd(), dma_buf.get(), handle), 0);
    void* const there = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd(), 0);
    EXPECT_EQ(there, MAP_FAILED);
}

// By reductions, of those that are made for it: members' elements in order, and the destination's first.
TEST_F(SwitchedMulticasts, AreReadCombined) {
    drm_orr_multicast_create reads{};
    reads.size = kBytes;
    reads.flags = ORR_MULTICAST_READ;
    ASSERT_EQ(make_multicast(fd(), all(), reads), 0);
    ASSERT_EQ(map(fd(), places[0]->vm, reads.handle, kPage, kBytes, ORR_BIND_READ), 0);
    std::uint32_t sum = 100;
    for (unsigned card = 1; card < places.size(); ++card) {
        const std::uint64_t word = 0x01010101u * card;
        EXPECT_EQ(places[card]->queue->run(std::vector{fill(kVa, kBytes, word << 32 | word)}), 0);
        sum += static_cast<std::uint32_t>(word);
    }
    auto* const words = static_cast<volatile std::uint32_t*>(static_cast<void*>(places[0]->memory.words()));
    for (std::size_t n = 0; n < kBytes / 4; ++n)
        words[n] = 100;
    orr_packet_reduce packet{};
    packet.header.opcode = ORR_PKT_REDUCE;
    packet.header.flags = ORR_PKT_F_ORDERED;
    packet.src = kPage;
    packet.dst = kVa;
    packet.row_bytes = kBytes;
    packet.rows = 1;
    packet.type = ORR_TYPE_U32;
    packet.function = ORR_REDUCE_ADD;
    EXPECT_EQ(places[0]->queue->run(std::vector{std::bit_cast<orr_packet>(packet)}), 0);
    EXPECT_EQ(words[0], sum);
    EXPECT_EQ(words[kBytes / 4 - 1], sum);
    // Nothing else reads, and nothing writes by that mapping.
    drm_orr_queue_wait out{};
    places[0]->queue->run(std::vector{copy(kPage, kVa, 4096)}, out);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_EQ(words[0], sum);
}

TEST_F(SwitchedMulticasts, LastAsLongAsTheyAreMapped) {
    ASSERT_EQ(bind(ORR_BIND_WRITE), 0);
    ASSERT_EQ(close_bo(fd(), args.handle), 0);
    memories.clear();
    EXPECT_EQ(places[0]->queue->run(std::vector{fill(kPage, kBytes, 8)}), 0);
    expect_written(8);
    // An owner goes; its memory is kept, and the others have theirs.
    places.back().reset();
    places.pop_back();
    EXPECT_EQ(places[0]->queue->run(std::vector{fill(kPage, kBytes, 9)}), 0);
    expect_written(9);
    ASSERT_EQ(unmap(fd(), places[0]->vm, kPage, kBytes), 0);
    drm_orr_queue_wait out{};
    places[0]->queue->run(std::vector{fill(kPage, kBytes, 10)}, out);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    expect_written(9);
}

TEST_F(SwitchedMulticasts, AUserHasTwelve) {
    drm_orr_multicast_create more{};
    more.size = kBytes;
    std::vector<std::uint32_t> handles{args.handle};
    int error = 0;
    while ((error = make_multicast(fd(), all(), more)) == 0 && handles.size() < 20)
        handles.push_back(more.handle);
    EXPECT_EQ(error, EDQUOT);
    EXPECT_EQ(handles.size(), 12u);
    for (const std::uint32_t handle : handles)
        EXPECT_EQ(close_bo(fd(), handle), 0);
    EXPECT_EQ(make_multicast(fd(), all(), more), 0);
}

// Of few numbers (nodes=) each card finds one for another life, while processes hold what is left of this
// one.
TEST_F(SwitchedMulticasts, LeaveNumbersForCards) {
    const std::string numbers = read_file("/sys/module/orrery/parameters/nodes");
    if (numbers.size() > 2) GTEST_SKIP() << "needs a driver with few numbers, not " << numbers;
    const std::vector<std::string> addresses = pci_addresses();
    ASSERT_EQ(addresses.size(), places.size());
    ASSERT_EQ(close_bo(fd(), args.handle), 0);
    unsigned refused = 0;
    for (unsigned card = 0; card < places.size(); ++card) {
        std::vector<std::uint32_t> handles;
        int error = 0;
        while (error == 0 && handles.size() < 12) {
            drm_orr_multicast_create one{};
            one.size = kBytes;
            error = make_multicast(places[card]->fd(), {member(card == 0 ? 1 : 0)}, one);
            if (error == 0) handles.push_back(one.handle);
        }
        EXPECT_TRUE(error == 0 || error == ENOSPC) << error;
        refused += error == ENOSPC ? 1 : 0;
        for (const std::uint32_t handle : handles)
            EXPECT_EQ(close_bo(places[card]->fd(), handle), 0);
    }
    EXPECT_GT(refused, 0u);
    for (const std::string& address : addresses) {
        ASSERT_TRUE(unbind_driver(address)) << address;
        EXPECT_TRUE(bind_driver(address)) << address;
        EXPECT_GE(node_of(address), 0) << address;
    }
}

}  // namespace
}  // namespace orrery::kmod_test
