// The driver leaves a card, or the card is reset, while processes use it. Takes the card away: run it alone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <orrery/fw/failure.h>
#include <orrery/hw/mmu.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/vm/kmod/device.h"
#include "tests/vm/kmod/pci.h"
#include "tests/vm/kmod/pmu.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kRingVa = 0x10000000;
constexpr std::uint64_t kVa = 0x40000000;

// A process in the middle of everything.
struct User {
    explicit User(unsigned node) : file(open_card(node)) {
        EXPECT_EQ(create_vm(fd(), vm), 0);
        EXPECT_EQ(make_buffer(fd(), vm, kVa, 4 * kMiB, ORR_BO_VRAM, vram), 0);
        EXPECT_EQ(make_buffer(fd(), vm, kVa + 0x10000000, kMiB, ORR_BO_SYSTEM, system), 0);
        queue = std::make_unique<Queue>(fd(), vm, kRingVa);
        EXPECT_EQ(queue->error(), 0);
        EXPECT_EQ(queue->run(std::vector{fill(kVa, 4 * kMiB, 5), fill(system.va, kMiB, 6)}), 0);
        EXPECT_EQ(vram.words()[100], 5u);
    }
    int fd() const { return file.get(); }

    // Everything that can be done with a card that is gone. Nothing here may hang, crash or succeed.
    void expect_gone() {
        drm_orr_query_device q{};
        EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &q), ENODEV);
        drm_orr_bo_create bo{};
        EXPECT_EQ(create_bo(fd(), 4096, ORR_BO_VRAM, bo), ENODEV);
        EXPECT_EQ(create_bo(fd(), 4096, ORR_BO_SYSTEM, bo), ENODEV);
        std::uint32_t other = 0;
        EXPECT_EQ(create_vm(fd(), other), ENODEV);
        EXPECT_EQ(unmap(fd(), vm, kVa, 4096), ENODEV);
        EXPECT_EQ(destroy_queue(fd(), queue->number()), ENODEV);
        drm_orr_queue_wait out{};
        EXPECT_EQ(wait(fd(), queue->number(), 1'000'000, kLong, out), ENODEV);
        // VRAM and doorbells lead nowhere, without a signal; guest RAM is still there. Waits end first, and
        // pages go right after them.
        for (int i = 0; i < 6000 && vram.words()[100] != 0; i++)
            ::usleep(10'000);
        EXPECT_EQ(vram.words()[100], 0u);
        vram.words()[100] = 1;
        EXPECT_EQ(vram.words()[100], 1u);
        EXPECT_EQ(queue->page().need_wakeup, 0u);
        queue->submit(std::vector{nop(), nop()});
        static_cast<volatile std::uint64_t*>(queue->kick_page().words())[0] = 1;
        EXPECT_EQ(system.words()[100], 6u);
    }

    File file;
    std::uint32_t vm = 0;
    Buffer vram;
    Buffer system;
    std::unique_ptr<Queue> queue;
};

class Removal : public ::testing::Test {
  protected:
    void SetUp() override {
        cards_ = pci_addresses();
        ASSERT_FALSE(cards_.empty());
        for (const std::string& card : cards_)
            ASSERT_GE(node_of(card), 0) << card;
    }
    void expect_works(const std::string& card) {
        ASSERT_GE(node_of(card), 0);
        User user(static_cast<unsigned>(node_of(card)));
    }
    std::vector<std::string> cards_;
};

TEST_F(Removal, UnbindWithOpenFilesAndMappings) {
    for (int round = 0; round < 3; round++) {
        User user(static_cast<unsigned>(node_of(cards_[0])));
        User second(static_cast<unsigned>(node_of(cards_[0])));
        // One sleeps, and one is in the middle of submitting.
        int result = -1;
        std::thread sleeper([&] {
            drm_orr_queue_wait out{};
            result = wait(user.fd(), user.queue->number(), 1000, kLong, out);
        });
        std::atomic<bool> stop = false;
        std::thread submitter([&] {
            while (!stop)
                second.queue->submit(fill(kVa, 4096, 7));
        });
        ::usleep(100'000);
        ASSERT_TRUE(unbind_driver(cards_[0]));
        sleeper.join();
        EXPECT_EQ(result, ENODEV);
        stop = true;
        submitter.join();
        user.expect_gone();
        EXPECT_LT(node_of(cards_[0]), 0);
        // A new life, while the old file is still open.
        ASSERT_TRUE(bind_driver(cards_[0]));
        expect_works(cards_[0]);
        drm_orr_query_device q{};
        EXPECT_EQ(call(user.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &q), ENODEV);
    }
}

TEST_F(Removal, FunctionResetLosesTheCard) {
    const std::string sysfs = "/sys/bus/pci/devices/" + cards_[0];
    User user(static_cast<unsigned>(node_of(cards_[0])));
    EXPECT_EQ(read_file(sysfs + "/state"), "running");
    ASSERT_TRUE(write_file(sysfs + "/reset", "1"));
    EXPECT_EQ(read_file(sysfs + "/state").substr(0, 4), "lost");
    user.expect_gone();
    EXPECT_EQ(::open(("/dev/accel/accel" + std::to_string(node_of(cards_[0]))).c_str(), O_RDWR), -1);
    ASSERT_TRUE(unbind_driver(cards_[0]));
    ASSERT_TRUE(bind_driver(cards_[0]));
    expect_works(cards_[0]);
}

TEST_F(Removal, AReplyThatNobodyAskedForLosesTheCard) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs debugfs";
    for (const std::uint32_t sequence : {1u, 63u, 64u, ~0u}) {
        User user(static_cast<unsigned>(node_of(cards_[0])));
        orr_mbox_message reply{};
        reply.sequence = sequence;
        reply.opcode = ORR_MBOX_QUEUE_DESTROY;
        ASSERT_TRUE(inject(reply, static_cast<unsigned>(node_of(cards_[0]))));
        user.expect_gone();
        EXPECT_EQ(read_file("/sys/bus/pci/devices/" + cards_[0] + "/state"),
                  "lost: the firmware breaks the mailbox protocol");
        ASSERT_TRUE(unbind_driver(cards_[0]));
        ASSERT_TRUE(bind_driver(cards_[0]));
    }
    expect_works(cards_[0]);
}

TEST_F(Removal, FencesAndDmaBufsOutliveTheDriver) {
    File dma_buf;
    File vram_buf;
    File done;
    File lost;
    {
        User user(static_cast<unsigned>(node_of(cards_[0])));
        ASSERT_EQ(export_bo(user.fd(), user.system.handle, dma_buf), 0);
        ASSERT_EQ(export_bo(user.fd(), user.vram.handle, vram_buf), 0);
        // One that is over, and one that a thread waits for.
        const std::uint32_t syncobj = make_syncobj(user.fd());
        ASSERT_EQ(put_fence(user.fd(), user.queue->number(), 1, syncobj, 0), 0);
        export_fence(user.fd(), syncobj, done);
        ASSERT_EQ(put_fence(user.fd(), user.queue->number(), 1000, syncobj, 0), 0);
        export_fence(user.fd(), syncobj, lost);
        EXPECT_EQ(sync_file_status(done.get()), 1);
        EXPECT_EQ(sync_file_status(lost.get()), 0);
        int polled = -1;
        std::thread poller([&] {
            pollfd poll{.fd = lost.get(), .events = POLLIN, .revents = 0};
            polled = ::poll(&poll, 1, 60'000);
        });
        ::usleep(50'000);
        ASSERT_TRUE(unbind_driver(cards_[0]));
        poller.join();
        EXPECT_EQ(polled, 1);
    }
    EXPECT_EQ(sync_file_status(done.get()), 1);
    EXPECT_EQ(sync_file_status(lost.get()), -ENODEV);
    Mapping memory(dma_buf.get(), 0, kMiB, PROT_READ, MAP_SHARED);
    ASSERT_EQ(memory.error(), 0);
    EXPECT_EQ(memory.words()[0], 6u);
    ASSERT_TRUE(bind_driver(cards_[0]));
    // The old life's buffer on the new life's card: another device, and no link to it.
    File file = open_card(static_cast<unsigned>(node_of(cards_[0])));
    std::uint32_t handle = 0;
    EXPECT_EQ(import_bo(file.get(), dma_buf.get(), handle), 0);
    EXPECT_EQ(import_bo(file.get(), vram_buf.get(), handle), ENODEV);
}

// The card is in the middle of writing when it is taken away and its user is killed, each in no particular
// order. The pages that this sets free go to us, and must stay as they are.
TEST_F(Removal, NothingIsWrittenToFreedMemory) {
    constexpr std::uint64_t kBytes = 32 * kMiB;
    constexpr std::uint64_t kPattern = 0xdeadca7d00000000;
    for (int round = 0; round < 6; round++) {
        const auto node = static_cast<unsigned>(node_of(cards_[0]));
        int ready[2];
        ASSERT_EQ(::pipe(ready), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            const File mine = open_card(node);
            std::uint32_t vm = 0;
            Buffer memory;
            if (create_vm(mine.get(), vm) != 0 ||
                make_buffer(mine.get(), vm, kVa, kBytes, ORR_BO_SYSTEM, memory) != 0)
                ::_exit(1);
            Queue queue(mine.get(), vm, kRingVa, 1024);
            queue.submit(std::vector<orr_packet>(1000, fill(kVa, kBytes, kPattern)));
            while (memory.words()[0] != kPattern)
                ::usleep(100);
            if (::write(ready[1], "", 1) != 1) ::_exit(1);
            // Killed by another, or the end of the process: two ways to the same.
            drm_orr_queue_wait out{};
            wait(mine.get(), queue.number(), 1'000'000, kLong, out);
            queue.forget();
            ::_exit(0);
        }
        char byte = 0;
        ASSERT_EQ(::read(ready[0], &byte, 1), 1);
        ::close(ready[0]);
        ::close(ready[1]);
        std::thread unbinder([&] { unbind_driver(cards_[0]); });
        if (round % 2 == 0) ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        std::vector<std::uint64_t> fresh(2 * kBytes / 8);
        unbinder.join();
        ::usleep(20'000);
        EXPECT_EQ(std::count(fresh.begin(), fresh.end(), kPattern), 0) << "round " << round;
        ASSERT_TRUE(bind_driver(cards_[0]));
    }
    expect_works(cards_[0]);
}

// A link trains after its driver has begun.
void wait_for_way(const User& from, const User& to) {
    ASSERT_TRUE(comes_true([&] { return way_between(from.fd(), to.fd()).links != 0; }));
}

TEST_F(Removal, EitherEndOfALinkGoes) {
    if (cards_.size() < 2) GTEST_SKIP() << "needs two cards";
    for (const std::size_t gone : {1u, 0u}) {
        const std::size_t stays = 1 - gone;
        for (const bool importer_goes : {false, true}) {
            const std::size_t importer = importer_goes ? gone : stays;
            User from(static_cast<unsigned>(node_of(cards_[importer])));
            User owner(static_cast<unsigned>(node_of(cards_[1 - importer])));
            ASSERT_NO_FATAL_FAILURE(wait_for_way(from, owner));
            File dma_buf;
            ASSERT_EQ(export_bo(owner.fd(), owner.vram.handle, dma_buf), 0);
            std::uint32_t handle = 0;
            ASSERT_EQ(import_bo(from.fd(), dma_buf.get(), handle), 0);
            const std::uint64_t peer = 0x80000000;
            ASSERT_EQ(map(from.fd(), from.vm, handle, peer, kMiB, ORR_BIND_WRITE), 0);
            ASSERT_EQ(from.queue->run(std::vector{fill(peer, kMiB, 9)}), 0);
            ASSERT_TRUE(unbind_driver(cards_[gone]));
            User& survivor = importer_goes ? owner : from;
            EXPECT_EQ(survivor.queue->run(std::vector{nop()}), 0);
            if (!importer_goes) {
                // Its grant went with the owner; the mapping can be taken away, not made again.
                EXPECT_EQ(unmap(from.fd(), from.vm, peer, kMiB), 0);
                EXPECT_EQ(map(from.fd(), from.vm, handle, peer, kMiB, ORR_BIND_WRITE), ENODEV);
            }
            ASSERT_TRUE(bind_driver(cards_[gone]));
            expect_works(cards_[gone]);
        }
    }
}

TEST_F(Removal, WhoWaitsForACardThatGoesIsTold) {
    if (cards_.size() < 2) GTEST_SKIP() << "needs two cards";
    const File one = open_card(static_cast<unsigned>(node_of(cards_[0])));
    std::uint32_t vm = 0;
    Buffer shared;
    File dma_buf;
    ASSERT_EQ(create_vm(one.get(), vm), 0);
    ASSERT_EQ(make_buffer(one.get(), vm, kVa, 4096, ORR_BO_VRAM, shared), 0);
    ASSERT_EQ(export_bo(one.get(), shared.handle, dma_buf), 0);
    Queue waiter(one.get(), vm, kRingVa);
    const File two = open_card(static_cast<unsigned>(node_of(cards_[1])));
    std::uint32_t other_vm = 0, handle = 0;
    ASSERT_EQ(create_vm(two.get(), other_vm), 0);
    ASSERT_EQ(import_bo(two.get(), dma_buf.get(), handle), 0);
    ASSERT_EQ(map(two.get(), other_vm, handle, kVa, 4096, ORR_BIND_WRITE), 0);
    Queue signaller(two.get(), other_vm, kRingVa);
    ASSERT_EQ(signaller.error(), 0);
    drm_orr_signaller args{.queue = signaller.number(), .flags = 0, .semaphore = kVa, .count = 1, .pad = 0};
    ASSERT_EQ(call(two.get(), DRM_IOCTL_ORR_SIGNALLER_ATTACH, &args), 0);
    const std::uint64_t index = waiter.submit(wait_for(kVa, 1));
    ASSERT_TRUE(unbind_driver(cards_[1]));
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(one.get(), waiter.number(), index, kLong, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_POISON);
    EXPECT_EQ(ORR_FAILURE_CODE(out.error_detail), ORR_QERR_PEER_LOST);
    ASSERT_TRUE(bind_driver(cards_[1]));
}

// Two cards, each with a queue that is attached to the same semaphore in guest RAM. The card that knew it
// first goes, with everything that kept its driver's memory; who closes the semaphore then must not look
// there. (A kernel with KASAN sees it, if he does.)
TEST_F(Removal, ASemaphoreOutlivesTheCardThatKnewItFirst) {
    if (cards_.size() < 2) GTEST_SKIP() << "needs two cards";
    const File one = open_card(static_cast<unsigned>(node_of(cards_[0])));
    std::uint32_t vm = 0;
    Buffer shared;
    File dma_buf;
    ASSERT_EQ(create_vm(one.get(), vm), 0);
    ASSERT_EQ(make_buffer(one.get(), vm, kVa, 4096, ORR_BO_SYSTEM, shared), 0);
    ASSERT_EQ(export_bo(one.get(), shared.handle, dma_buf), 0);
    Queue second(one.get(), vm, kRingVa);
    ASSERT_EQ(second.error(), 0);
    const auto attach = [](int fd, const Queue& queue) {
        drm_orr_signaller args{.queue = queue.number(), .flags = 0, .semaphore = kVa, .count = 1, .pad = 0};
        return call(fd, DRM_IOCTL_ORR_SIGNALLER_ATTACH, &args);
    };
    {
        const File two = open_card(static_cast<unsigned>(node_of(cards_[1])));
        std::uint32_t other_vm = 0, handle = 0;
        ASSERT_EQ(create_vm(two.get(), other_vm), 0);
        ASSERT_EQ(import_bo(two.get(), dma_buf.get(), handle), 0);
        ASSERT_EQ(map(two.get(), other_vm, handle, kVa, 4096), 0);
        const Queue first(two.get(), other_vm, kRingVa);
        ASSERT_EQ(first.error(), 0);
        ASSERT_EQ(attach(two.get(), first), 0);
        ASSERT_EQ(attach(one.get(), second), 0);
    }
    ASSERT_TRUE(unbind_driver(cards_[1]));
    EXPECT_EQ(destroy_queue(one.get(), second.number()), 0);
    second.forget();
    ASSERT_TRUE(bind_driver(cards_[1]));
    expect_works(cards_[1]);
}

TEST_F(Removal, AMappingOfAnEarlierLifeGetsIntoNobodysMemory) {
    if (cards_.size() < 2) GTEST_SKIP() << "needs two cards";
    const std::uint64_t peer = 0x80000000;
    User old(static_cast<unsigned>(node_of(cards_[0])));
    {
        User owner(static_cast<unsigned>(node_of(cards_[1])));
        ASSERT_NO_FATAL_FAILURE(wait_for_way(old, owner));
        File dma_buf;
        ASSERT_EQ(export_bo(owner.fd(), owner.vram.handle, dma_buf), 0);
        std::uint32_t handle = 0;
        ASSERT_EQ(import_bo(old.fd(), dma_buf.get(), handle), 0);
        ASSERT_EQ(map(old.fd(), old.vm, handle, peer, 4 * kMiB, ORR_BIND_WRITE), 0);
        ASSERT_TRUE(unbind_driver(cards_[1]));
        ASSERT_TRUE(bind_driver(cards_[1]));
    }
    // A new owner has memory at the same place, and shares it with somebody else on the first card.
    User owner(static_cast<unsigned>(node_of(cards_[1])));
    User guest(static_cast<unsigned>(node_of(cards_[0])));
    ASSERT_NO_FATAL_FAILURE(wait_for_way(guest, owner));
    File dma_buf;
    ASSERT_EQ(export_bo(owner.fd(), owner.vram.handle, dma_buf), 0);
    std::uint32_t handle = 0;
    ASSERT_EQ(import_bo(guest.fd(), dma_buf.get(), handle), 0);
    EXPECT_EQ(map(guest.fd(), guest.vm, handle, peer, 4 * kMiB, ORR_BIND_WRITE), 0);
    // The mapping of the old life names a node that no card has any more.
    drm_orr_queue_wait out{};
    old.queue->run(std::vector{fill(peer, 4 * kMiB, 0xbad)}, out);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_EQ(old.queue->ring().error_detail, ORR_FAULT_NO_ROUTE);
    for (std::uint64_t word = 0; word < 4 * kMiB / 8; word += 512)
        ASSERT_EQ(owner.vram.words()[word], 5u) << word;
    EXPECT_EQ(unmap(old.fd(), old.vm, peer, 4 * kMiB), 0);
    EXPECT_EQ(guest.queue->run(std::vector{fill(peer, 4 * kMiB, 9)}), 0);
    // The queue is done when it is all on the link.
    EXPECT_TRUE(comes_true([&] { return owner.vram.words()[100] == 9; }));
}

// A card goes while the processes of all the others have its memory mapped, and write there.
class OwnerGoes : public Removal {
  protected:
    static constexpr std::uint64_t kPeer = 0x80000000;
    static constexpr std::uint64_t kBytes = 4 * kMiB;
    // What an importer's page tables have at kPeer and after the hole: for each mapping its entry's node.
    struct Entries {
        std::vector<std::uint64_t> nodes;
        unsigned dead = 0;
    };

    void SetUp() override {
        Removal::SetUp();
        if (cards_.size() < 2) GTEST_SKIP() << "needs two cards";
        owner_ = cards_.size() - 1;
    }
    void TearDown() override { EXPECT_EQ(bad_keys(), 0u); }
    unsigned node(std::size_t card) const { return static_cast<unsigned>(node_of(cards_[card])); }
    // Two mappings, one of large pages and one that begins with small ones: the second begins behind a hole.
    void import(const User& user, int dma_buf) const {
        std::uint32_t handle = 0;
        ASSERT_EQ(import_bo(user.fd(), dma_buf, handle), 0);
        ASSERT_EQ(map(user.fd(), user.vm, handle, kPeer, kBytes, ORR_BIND_WRITE), 0);
        ASSERT_EQ(unmap(user.fd(), user.vm, kPeer + 2 * kMiB, 4096), 0);
    }
    Entries entries(std::size_t card) const {
        Entries found;
        std::ifstream in(debugfs(node(card)) + "mappings");
        std::string line;
        std::getline(in, line);  // titles
        while (std::getline(in, line)) {
            std::istringstream words(line);
            std::uint64_t context = 0, va = 0, bytes = 0, entry = 0;
            std::string state;
            words >> context >> std::hex >> va >> bytes >> entry >> state;
            EXPECT_FALSE(words.fail()) << line;
            if (va < kPeer || va >= kPeer + kBytes) {
                EXPECT_NE(state, "dead") << line;
                continue;
            }
            EXPECT_TRUE(entry & ORR_PTE_VALID) << line;
            found.nodes.push_back((entry & ORR_PTE_NODE_MASK) >> ORR_PTE_NODE_SHIFT);
            found.dead += state == "dead";
        }
        return found;
    }
    void expect_of_peer(const drm_orr_queue_wait& out, const Queue& queue) const {
        EXPECT_EQ(out.error, ORR_QERR_FAULT);
        const auto ring = queue.ring();
        EXPECT_TRUE(ring.error_detail == ORR_FAULT_NO_ROUTE || ring.error_detail == ORR_FAULT_PEER_DOWN)
            << ring.error_detail;
        EXPECT_GE(ring.error_address, kPeer);
        EXPECT_LT(ring.error_address, kPeer + kBytes);
    }
    std::size_t owner_ = 0;
};

TEST_F(OwnerGoes, AllMappingsOfItsMemoryGoAlong) {
    for (const bool unbind : {true, false}) {
        SCOPED_TRACE(unbind ? "unbound" : "reset");
        const std::string number = read_file("/sys/bus/pci/devices/" + cards_[owner_] + "/node");
        std::vector<std::unique_ptr<User>> idle, busy;
        {
            const User owner(node(owner_));
            File dma_buf;
            ASSERT_EQ(export_bo(owner.fd(), owner.vram.handle, dma_buf), 0);
            for (std::size_t card = 0; card < owner_; ++card)
                for (auto* users : {&idle, &busy}) {
                    users->push_back(std::make_unique<User>(node(card)));
                    ASSERT_NO_FATAL_FAILURE(import(*users->back(), dma_buf.get()));
                }
        }
        for (std::size_t card = 0; card < owner_; ++card)
            EXPECT_EQ(entries(card).nodes, std::vector<std::uint64_t>(4, std::stoull(number)));
        std::atomic<std::size_t> writing = 0;
        std::vector<std::thread> writers;
        for (auto& user : busy)
            writers.emplace_back([&writing, &queue = *user->queue, this] {
                drm_orr_queue_wait out{};
                EXPECT_EQ(queue.run(std::vector{fill(kPeer, 2 * kMiB, 8)}, out), 0);
                ++writing;
                while (out.error == 0 && queue.run(std::vector{fill(kPeer, 2 * kMiB, 9)}, out) == 0) {
                }
                expect_of_peer(out, queue);
            });
        while (writing < writers.size())
            ::usleep(1000);
        if (unbind)
            ASSERT_TRUE(unbind_driver(cards_[owner_]));
        else
            ASSERT_TRUE(write_file("/sys/bus/pci/devices/" + cards_[owner_] + "/reset", "1"));
        for (std::thread& writer : writers)
            writer.join();
        for (std::size_t card = 0; card < owner_; ++card) {
            // Unbinding waits for it; of another loss a work hears.
            while (!unbind && entries(card).dead < 4)
                ::usleep(1000);
            EXPECT_EQ(entries(card).dead, 4u);
            EXPECT_EQ(entries(card).nodes, std::vector<std::uint64_t>(4, 0));
        }
        if (!unbind) EXPECT_TRUE(unbind_driver(cards_[owner_]));
        ASSERT_TRUE(bind_driver(cards_[owner_]));
        EXPECT_NE(read_file("/sys/bus/pci/devices/" + cards_[owner_] + "/node"), number);

        // Who comes there is told, who does not is left alone, and with new memory all is as before.
        const User owner(node(owner_));
        File dma_buf;
        ASSERT_EQ(export_bo(owner.fd(), owner.vram.handle, dma_buf), 0);
        for (std::size_t card = 0; card < owner_; ++card) {
            const User& user = *idle[card];
            EXPECT_EQ(user.queue->run(std::vector{fill(kVa, kMiB, 7)}), 0);
            for (const std::uint64_t va : {kPeer, kPeer + 2 * kMiB + 4096}) {
                Queue queue(user.fd(), user.vm, kRingVa + (va - kPeer) + 4 * kMiB);
                drm_orr_queue_wait out{};
                EXPECT_EQ(queue.run(std::vector{fill(va, 4096, 0xbad)}, out), 0);
                EXPECT_EQ(out.error, ORR_QERR_FAULT);
                EXPECT_EQ(queue.ring().error_detail, ORR_FAULT_NO_ROUTE);
                EXPECT_EQ(queue.ring().error_address, va);
            }
            // Twice: what is not there is no error either.
            for (int i = 0; i < 2; ++i)
                EXPECT_EQ(unmap(user.fd(), user.vm, kPeer, kBytes), 0);
            ASSERT_NO_FATAL_FAILURE(import(user, dma_buf.get()));
            EXPECT_EQ(user.queue->run(std::vector{fill(kPeer, 4096, 0x100 + card)}), 0);
            // With the mapping goes what is on the way.
            EXPECT_EQ(unmap(user.fd(), user.vm, kPeer, kBytes), 0);
            EXPECT_EQ(owner.vram.words()[0], 0x100 + card);
            EXPECT_EQ(owner.vram.words()[512], 5u);
        }
    }
}

TEST_F(Removal, SysfsWhileTheDriverComesAndGoes) {
    const std::string sysfs = "/sys/bus/pci/devices/" + cards_[0];
    std::atomic<bool> stop = false;
    std::thread reader([&] {
        while (!stop) {
            for (const char* file :
                 {"/state", "/vram_used", "/counters/doorbells", "/links/0/state", "/links/0/peer"})
                read_file(sysfs + file);
        }
    });
    for (int round = 0; round < 5; round++) {
        EXPECT_TRUE(unbind_driver(cards_[0]));
        EXPECT_TRUE(bind_driver(cards_[0]));
    }
    stop = true;
    reader.join();
    EXPECT_EQ(read_file(sysfs + "/state"), "running");
    EXPECT_NE(read_file(sysfs + "/uid"), "");
    EXPECT_NE(read_file(sysfs + "/firmware_version"), "");
}

// perf's events stand still without their card, and go on with the next that comes.
TEST_F(Removal, EventsOutliveTheirCard) {
    const int node = node_of(cards_[0]);
    const perf_event_attr attributes = pmu_attributes(node, "copy_bytes");
    const PmuEvent bytes(attributes);
    ASSERT_EQ(bytes.error, 0);
    std::uint64_t before = bytes.count();
    EXPECT_EQ(before, 0u);
    {
        const User user(static_cast<unsigned>(node));
        before = bytes.count();
        EXPECT_EQ(before, 5 * kMiB);
    }
    ASSERT_TRUE(unbind_driver(cards_[0]));
    EXPECT_EQ(bytes.count(), before);
    EXPECT_EQ(PmuEvent(attributes).error, ENODEV);
    ASSERT_TRUE(bind_driver(cards_[0]));
    bytes.count();  // from here on
    {
        const User user(static_cast<unsigned>(node));
        EXPECT_EQ(bytes.count(), before + 5 * kMiB);
    }
    EXPECT_EQ(PmuEvent(attributes).error, 0);
}

// For card_death.sh, which kills the first card's process when /share/ready appears.
TEST_F(Removal, DISABLED_TheCardDies) {
    const std::string sysfs = "/sys/bus/pci/devices/" + cards_[0];
    User user(static_cast<unsigned>(node_of(cards_[0])));
    int result = -1;
    std::thread sleeper([&] {
        drm_orr_queue_wait out{};
        result = wait(user.fd(), user.queue->number(), 1000, kLong, out);
    });
    ASSERT_TRUE(write_file("/share/ready", "now"));
    // A dead card reads as all-ones: that is no counter, and no state of a link.
    int error = 0;
    while (error == 0) {
        std::uint64_t counter = 0;
        drm_orr_query_counters counters{};
        counters.values = reinterpret_cast<std::uint64_t>(&counter);
        counters.count = 1;
        error = call(user.fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters);
        drm_orr_query_link link{};
        const int link_error = call(user.fd(), DRM_IOCTL_ORR_QUERY_LINK, &link);
        if (error == 0) ASSERT_NE(counter, ~0ull);
        if (link_error == 0) ASSERT_LE(link.state, ORR_LINK_DEGRADED);
    }
    EXPECT_EQ(error, ENODEV);
    sleeper.join();
    EXPECT_EQ(result, ENODEV);
    user.expect_gone();
    EXPECT_EQ(read_file(sysfs + "/state").substr(0, 4), "lost");
    // The driver lets go of it, says why it cannot come back, and the other card never noticed.
    EXPECT_TRUE(unbind_driver(cards_[0]));
    EXPECT_FALSE(bind_driver(cards_[0]));
    if (cards_.size() > 1) expect_works(cards_[1]);
}

}  // namespace
}  // namespace orrery::kmod_test
