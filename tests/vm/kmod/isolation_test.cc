// One process and the things of another; two cards and the memory of each other.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "tests/vm/kmod/device.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kRingVa = 0x10000000;
constexpr std::uint64_t kVa = 0x40000000;

// An open file with an address space, a buffer with known contents, and a queue.
struct Owner {
    Owner() : file(open_card()) {
        EXPECT_EQ(create_vm(fd(), vm), 0);
        EXPECT_EQ(make_buffer(fd(), vm, kVa, kMiB, ORR_BO_VRAM, buffer), 0);
        std::fill_n(buffer.words(), kMiB / 8, 0x5ec3e7);
        queue = std::make_unique<Queue>(fd(), vm, kRingVa);
        EXPECT_EQ(queue->error(), 0);
    }
    int fd() const { return file.get(); }
    bool intact() const {
        return std::all_of(buffer.words(), buffer.words() + kMiB / 8, [](auto w) { return w == 0x5ec3e7; });
    }
    File file;
    std::uint32_t vm = 0;
    Buffer buffer;
    std::unique_ptr<Queue> queue;
};

TEST(Isolation, NumbersOfAnotherFileMeanNothing) {
    Owner owner;
    // More of everything, so that a number of the owner's is not by chance one of ours.
    std::uint32_t vm = 0;
    for (int i = 0; i < 5; i++)
        ASSERT_EQ(create_vm(owner.fd(), vm), 0);
    Queue more(owner.fd(), vm, kRingVa);
    ASSERT_EQ(more.error(), 0);
    drm_orr_bo_create bo{};
    ASSERT_EQ(create_bo(owner.fd(), 4096, ORR_BO_VRAM, bo), 0);

    File thief = open_card();
    std::uint32_t mine = 0;
    ASSERT_EQ(create_vm(thief.get(), mine), 0);
    EXPECT_EQ(destroy_vm(thief.get(), vm), ENOENT);
    EXPECT_EQ(destroy_queue(thief.get(), more.number()), ENOENT);
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(thief.get(), more.number(), 0, 0, out), ENOENT);
    EXPECT_EQ(map(thief.get(), mine, bo.handle, kVa, 4096), ENOENT);
    EXPECT_EQ(map(thief.get(), vm, bo.handle, kVa, 4096), ENOENT);
    EXPECT_EQ(unmap(thief.get(), vm, kRingVa, 4096), ENOENT);
    drm_orr_bo_info info{};
    info.handle = bo.handle;
    EXPECT_EQ(call(thief.get(), DRM_IOCTL_ORR_BO_INFO, &info), ENOENT);
    EXPECT_NE(close_bo(thief.get(), bo.handle), 0);
    // An offset of the node, known or guessed.
    EXPECT_EQ(Mapping(thief.get(), owner.buffer.offset, 4096, PROT_READ, MAP_SHARED).error(), EACCES);
    EXPECT_EQ(owner.queue->run(std::vector{nop()}), 0);
    EXPECT_EQ(more.run(std::vector{nop()}), 0);
}

TEST(Isolation, DoorbellPagesAreDifferent) {
    Owner owner;
    Owner thief;
    // The same offset leads each to its own page.
    EXPECT_EQ(owner.queue->args().doorbell_offset, thief.queue->args().doorbell_offset);
    volatile orr_doorbell_page& a = owner.queue->page();
    volatile orr_doorbell_page& b = thief.queue->page();
    a.doorbell[400] = 123456;
    EXPECT_EQ(b.doorbell[400], 0u);
    // The owner has a packet ready and has not rung. The thief rings and kicks all that it can.
    const std::uint64_t index = owner.queue->write(std::vector{nop()});
    for (unsigned slot = 0; slot < ORR_DB_SLOTS; slot++) {
        b.doorbell[slot] = ORR_DB_VALUE(owner.queue->args().generation, index);
        static_cast<volatile std::uint64_t*>(thief.queue->kick_page().words())[slot] = 1;
    }
    b.summary = 12345;
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(owner.fd(), owner.queue->number(), index, 0.2, out), ETIME);
    owner.queue->ring_doorbell();
    EXPECT_EQ(wait(owner.fd(), owner.queue->number(), index, kLong, out), 0);
    EXPECT_EQ(thief.queue->run(std::vector{nop()}), 0);
}

TEST(Isolation, AddressSpacesAreDifferent) {
    Owner owner;
    File thief = open_card();
    std::uint32_t vm = 0;
    ASSERT_EQ(create_vm(thief.get(), vm), 0);
    {
        Queue queue(thief.get(), vm, kRingVa);
        ASSERT_EQ(queue.error(), 0);
        drm_orr_queue_wait out{};
        ASSERT_EQ(queue.run(std::vector{fill(kVa, kMiB, 0)}, out), 0);
        EXPECT_EQ(out.error, ORR_QERR_FAULT);
    }
    // A second address space of the same file does not see the first one's mappings either.
    std::uint32_t second = 0;
    ASSERT_EQ(create_vm(owner.fd(), second), 0);
    Queue queue(owner.fd(), second, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    drm_orr_queue_wait out{};
    ASSERT_EQ(queue.run(std::vector{fill(kVa, kMiB, 0)}, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_TRUE(owner.intact());
}

TEST(Isolation, MemoryOfTheDeadIsZeroed) {
    drm_orr_query_device q{};
    {
        Owner owner;
        ASSERT_EQ(call(owner.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &q), 0);
        EXPECT_TRUE(owner.intact());
    }
    File file = open_card();
    drm_orr_bo_create bo{};
    std::uint64_t seen = 0;
    while (create_bo(file.get(), kMiB, ORR_BO_VRAM, bo) == 0 && seen < 64) {
        Mapping memory(file.get(), bo.mmap_offset, bo.size, PROT_READ, MAP_SHARED);
        ASSERT_EQ(memory.error(), 0);
        EXPECT_TRUE(std::all_of(memory.words(), memory.words() + kMiB / 8, [](auto w) { return w == 0; }));
        seen++;
    }
    EXPECT_EQ(seen, 64u);
}

TEST(Isolation, AChildHasNoDoorbells) {
    Owner owner;
    volatile std::uint64_t* summary = &owner.queue->page().summary;
    const pid_t pid = ::fork();
    if (pid == 0) {
        *summary = 1;  // not mapped here
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    EXPECT_EQ(owner.queue->run(std::vector{nop()}), 0);
}

TEST(Isolation, SharingByDmaBuf) {
    Owner owner;
    File dma_buf;
    ASSERT_EQ(export_bo(owner.fd(), owner.buffer.handle, dma_buf), 0);
    File friend_file = open_card();
    std::uint32_t handle = 0;
    ASSERT_EQ(import_bo(friend_file.get(), dma_buf.get(), handle), 0);
    drm_orr_bo_info info{};
    info.handle = handle;
    ASSERT_EQ(call(friend_file.get(), DRM_IOCTL_ORR_BO_INFO, &info), 0);
    EXPECT_EQ(info.flags, ORR_BO_VRAM);
    Mapping memory(friend_file.get(), info.mmap_offset, info.size, PROT_READ | PROT_WRITE, MAP_SHARED);
    ASSERT_EQ(memory.error(), 0);
    memory.words()[5] = 99;
    EXPECT_EQ(owner.buffer.words()[5], 99u);
    // Not through the dma-buf itself: those pages could not be taken away.
    EXPECT_EQ(Mapping(dma_buf.get(), 0, 4096, PROT_READ, MAP_SHARED).error(), EOPNOTSUPP);
}

// --- two cards ---

class TwoCards : public ::testing::Test {
  protected:
    void SetUp() override {
        if (count_cards() < 2) GTEST_SKIP() << "needs two cards";
        for (unsigned i = 0; i < 2; i++) {
            files_[i] = open_card(i);
            ASSERT_TRUE(files_[i]);
            ASSERT_EQ(create_vm(fd(i), vm_[i]), 0);
        }
    }
    int fd(unsigned i) const { return files_[i].get(); }
    File files_[2];
    std::uint32_t vm_[2] = {};
};

TEST_F(TwoCards, AreDifferentAndLinked) {
    EXPECT_NE(uid_of(fd(0)), uid_of(fd(1)));
    drm_orr_query_device q{};
    ASSERT_EQ(call(fd(0), DRM_IOCTL_ORR_QUERY_DEVICE, &q), 0);
    bool linked = false;
    for (std::uint32_t port = 0; port < q.link_ports; port++) {
        drm_orr_query_link link{};
        link.port = port;
        ASSERT_EQ(call(fd(0), DRM_IOCTL_ORR_QUERY_LINK, &link), 0);
        if (link.state == ORR_LINK_UP && link.peer_uid == uid_of(fd(1))) {
            linked = true;
            EXPECT_GT(link.lanes, 0u);
            EXPECT_GT(link.gbps, 0u);
        }
    }
    EXPECT_TRUE(linked);
}

TEST_F(TwoCards, WriteAndSignalIntoThePeersMemory) {
    Buffer theirs;
    ASSERT_EQ(make_buffer(fd(1), vm_[1], kVa, kMiB, ORR_BO_VRAM, theirs), 0);
    File dma_buf;
    ASSERT_EQ(export_bo(fd(1), theirs.handle, dma_buf), 0);
    std::uint32_t handle = 0;
    ASSERT_EQ(import_bo(fd(0), dma_buf.get(), handle), 0);
    drm_orr_bo_info info{};
    info.handle = handle;
    ASSERT_EQ(call(fd(0), DRM_IOCTL_ORR_BO_INFO, &info), 0);
    EXPECT_EQ(info.peer_uid, uid_of(fd(1)));
    EXPECT_EQ(info.flags, 0u);
    EXPECT_EQ(info.mmap_offset, 0u);
    EXPECT_EQ(info.size, kMiB);

    Buffer mine;
    ASSERT_EQ(make_buffer(fd(0), vm_[0], kVa, kMiB, ORR_BO_VRAM, mine), 0);
    std::iota(mine.words(), mine.words() + kMiB / 8, 1000);
    const std::uint64_t peer = 0x80000000;
    ASSERT_EQ(map(fd(0), vm_[0], handle, peer, kMiB, ORR_BIND_WRITE), 0);

    // Card 1 waits for card 0's signal, then copies what card 0 wrote. No host in between.
    Buffer result;
    ASSERT_EQ(make_buffer(fd(1), vm_[1], kVa + 0x10000000, kMiB, ORR_BO_SYSTEM, result), 0);
    Queue sender(fd(0), vm_[0], kRingVa);
    Queue receiver(fd(1), vm_[1], kRingVa);
    ASSERT_EQ(sender.error(), 0);
    ASSERT_EQ(receiver.error(), 0);
    const std::uint64_t last = kMiB - 64;  // the semaphore
    receiver.submit(std::vector{wait_for(kVa + last, 7), copy(kVa, result.va, last)});
    ASSERT_EQ(sender.run(std::vector{copy(mine.va, peer, last), signal(peer + last, 7)}), 0);
    drm_orr_queue_wait out{};
    ASSERT_EQ(wait(fd(1), receiver.number(), 2, kLong, out), 0);
    EXPECT_EQ(out.error, 0u);
    EXPECT_EQ(std::memcmp(result.words(), mine.words(), last), 0);

    // Reading a peer is not possible; and after the unmap nothing is.
    Queue reader(fd(0), vm_[0], kRingVa + kMiB);
    ASSERT_EQ(reader.error(), 0);
    ASSERT_EQ(reader.run(std::vector{copy(peer, mine.va, 4096)}, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    ASSERT_EQ(unmap(fd(0), vm_[0], peer, kMiB), 0);
    ASSERT_EQ(sender.run(std::vector{fill(peer, 4096, 0)}, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_EQ(theirs.words()[0], 1000u);
}

TEST_F(TwoCards, PartsOfAPeersMemory) {
    Buffer theirs;
    ASSERT_EQ(make_buffer(fd(1), vm_[1], kVa, 4 * kMiB, ORR_BO_VRAM, theirs), 0);
    File dma_buf;
    ASSERT_EQ(export_bo(fd(1), theirs.handle, dma_buf), 0);
    std::uint32_t handle = 0;
    ASSERT_EQ(import_bo(fd(0), dma_buf.get(), handle), 0);
    const std::uint64_t peer = 0x80000000;
    ASSERT_EQ(map(fd(0), vm_[0], handle, peer, 4 * kMiB, ORR_BIND_WRITE), 0);
    ASSERT_EQ(unmap(fd(0), vm_[0], peer + kMiB, kMiB), 0);
    Queue sender(fd(0), vm_[0], kRingVa);
    ASSERT_EQ(sender.error(), 0);
    EXPECT_EQ(sender.run(std::vector{fill(peer, 4096, 1), fill(peer + 3 * kMiB, 4096, 2)}), 0);
    ASSERT_EQ(unmap(fd(0), vm_[0], peer, kMiB), 0);
    EXPECT_EQ(sender.run(std::vector{fill(peer + 2 * kMiB, 4096, 3)}), 0);
    // What has left card 0 in order is there when a later message is. What is on its way when the last
    // mapping goes is denied by the owner, so that has to wait.
    const auto* const last = reinterpret_cast<volatile std::uint64_t*>(theirs.words()) + 2 * kMiB / 8;
    for (unsigned tries = 0; tries < 60'000 && *last != 3; ++tries)
        ::usleep(1000);
    EXPECT_EQ(*last, 3u);
    EXPECT_EQ(theirs.words()[0], 1u);
    EXPECT_EQ(theirs.words()[3 * kMiB / 8], 2u);
    EXPECT_EQ(unmap(fd(0), vm_[0], peer, 4 * kMiB), 0);
}

TEST_F(TwoCards, PeerMemoryOutlivesItsHandleAndFile) {
    const std::uint64_t before = vram_used(fd(1));
    std::uint32_t handle = 0;
    {
        File owner = open_card(1);
        drm_orr_bo_create bo{};
        ASSERT_EQ(create_bo(owner.get(), kMiB, ORR_BO_VRAM, bo), 0);
        File dma_buf;
        ASSERT_EQ(export_bo(owner.get(), bo.handle, dma_buf), 0);
        ASSERT_EQ(import_bo(fd(0), dma_buf.get(), handle), 0);
    }
    EXPECT_EQ(vram_used(fd(1)), before + kMiB);
    ASSERT_EQ(map(fd(0), vm_[0], handle, kVa, kMiB, ORR_BIND_WRITE), 0);
    {
        Queue sender(fd(0), vm_[0], kRingVa);
        ASSERT_EQ(sender.error(), 0);
        EXPECT_EQ(sender.run(std::vector{fill(kVa, kMiB, 1)}), 0);
    }
    ASSERT_EQ(close_bo(fd(0), handle), 0);
    EXPECT_EQ(vram_used(fd(1)), before + kMiB);
    ASSERT_EQ(unmap(fd(0), vm_[0], kVa, kMiB), 0);
    EXPECT_EQ(vram_used(fd(1)), before);
}

TEST_F(TwoCards, SystemMemoryIsSharedByBoth) {
    Buffer first;
    ASSERT_EQ(make_buffer(fd(0), vm_[0], kVa, kMiB, ORR_BO_SYSTEM, first), 0);
    File dma_buf;
    ASSERT_EQ(export_bo(fd(0), first.handle, dma_buf), 0);
    std::uint32_t handle = 0;
    ASSERT_EQ(import_bo(fd(1), dma_buf.get(), handle), 0);
    ASSERT_EQ(map(fd(1), vm_[1], handle, kVa, kMiB), 0);
    Queue queue(fd(1), vm_[1], kRingVa);
    ASSERT_EQ(queue.error(), 0);
    EXPECT_EQ(queue.run(std::vector{fill(kVa, kMiB, 0xabc)}), 0);
    EXPECT_TRUE(std::all_of(first.words(), first.words() + kMiB / 8, [](auto w) { return w == 0xabc; }));
    // Through the dma-buf too.
    Mapping direct(dma_buf.get(), 0, kMiB, PROT_READ, MAP_SHARED);
    ASSERT_EQ(direct.error(), 0);
    EXPECT_EQ(direct.words()[77], 0xabcu);
}

}  // namespace
}  // namespace orrery::kmod_test
