// The grants of a card, which are few, and those who want them: for a VM of two cards that are linked.
#include <gtest/gtest.h>
#include <orrery/hw/bar0.h>
#include <orrery/hw/mmu.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "tests/vm/kmod/fixture.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kVa = 0x40000000;
constexpr unsigned kSlots = ORR_LINK_GRANT_SLOTS;

// Takes grants of card 1 for card 0, each for a BO of its own, as long as that goes.
struct Hog {
    explicit Hog(int owner) : owner_(owner) {}
    // Errno of the one that was refused.
    int take(unsigned most = 300) {
        const File& file = files_.emplace_back(open_card(0));
        std::uint32_t vm = 0;
        if (create_vm(file.get(), vm) != 0) return -1;
        int error = 0;
        for (unsigned i = 0; error == 0 && i < most; i++) {
            error = take_one(file.get(), vm, kVa + std::uint64_t{i} * 4096);
            taken += error == 0 ? 1 : 0;
        }
        return error;
    }
    int take_one(int fd, std::uint32_t vm, std::uint64_t va) const {
        drm_orr_bo_create bo{};
        File dma_buf;
        std::uint32_t handle = 0;
        int error = create_bo(owner_, 4096, ORR_BO_VRAM, bo);
        if (error == 0) error = export_bo(owner_, bo.handle, dma_buf);
        if (error == 0) error = import_bo(fd, dma_buf.get(), handle);
        return error != 0 ? error : map(fd, vm, handle, va, 4096, ORR_BIND_WRITE);
    }
    unsigned taken = 0;

  private:
    int owner_;
    std::vector<File> files_;
};

class Grants : public ::testing::Test {
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

// A process gets no more than it leaves, however often it opens the node.
TEST_F(Grants, RunOutAndComeBack) {
    {
        Hog hog(fd(1));
        EXPECT_EQ(hog.take(), EDQUOT);
        EXPECT_EQ(hog.taken, kSlots / 2);
        EXPECT_EQ(hog.take(), EDQUOT);
        EXPECT_EQ(hog.taken, kSlots / 2);
    }
    Hog again(fd(1));
    EXPECT_EQ(again.take(kSlots / 4), 0);
    ASSERT_EQ(again.take(), EDQUOT);
    EXPECT_EQ(again.taken, kSlots / 2);
}

// A child with its own files that takes what it gets, and keeps it until this goes.
class HogProcess {
  public:
    // As user `uid`, if that is not 0.
    explicit HogProcess(uid_t uid) {
        int tells[2], end[2];
        if (::pipe(tells) != 0 || ::pipe(end) != 0) return;
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(end[1]);
            if (uid != 0 && ::seteuid(uid) != 0) ::_exit(1);
            const File owner = open_card(1);
            Hog hog(owner.get());
            const auto refused = static_cast<unsigned>(hog.take());
            const unsigned told[] = {hog.taken, refused};
            char byte = 0;
            if (::write(tells[1], told, sizeof told) != sizeof told || ::read(end[0], &byte, 1) != 0)
                ::_exit(1);
            ::_exit(0);
        }
        ::close(tells[1]);
        ::close(end[0]);
        tells_ = File(tells[0]);
        end_ = File(end[1]);
        unsigned told[2] = {};
        EXPECT_EQ(::read(tells[0], told, sizeof told), static_cast<ssize_t>(sizeof told));
        taken = told[0];
        error = static_cast<int>(told[1]);
    }
    ~HogProcess() {
        {
            const File ended = std::move(end_);
        }
        int status = 0;
        ::waitpid(pid_, &status, 0);
        EXPECT_EQ(status, 0);
    }
    unsigned taken = 0;
    int error = 0;

  private:
    pid_t pid_ = -1;
    File tells_, end_;
};

// One that takes all grants it can get keeps nobody from his peer mapping; nor do many processes of one user
// those of another.
TEST_F(Grants, AHogLeavesSomeToOthers) {
    const HogProcess first(0);
    EXPECT_EQ(first.taken, 128u);
    EXPECT_EQ(first.error, EDQUOT);
    {
        Hog mine(fd(1));
        EXPECT_EQ(mine.take(16), 0);
    }
    const HogProcess second(0), third(0);
    EXPECT_EQ(second.taken, 64u);
    EXPECT_EQ(second.error, EDQUOT);
    EXPECT_EQ(third.taken, 0u) << "a user leaves a quarter";
    EXPECT_EQ(third.error, EDQUOT);
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
    const char* const nodes[] = {"/dev/accel/accel0", "/dev/accel/accel1"};
    for (const char* node : nodes)
        ASSERT_EQ(::chmod(node, 0666), 0);
    {
        const HogProcess other(1234);
        EXPECT_EQ(other.taken, 32u);
        EXPECT_EQ(other.error, EDQUOT);
    }
    for (const char* node : nodes)
        ASSERT_EQ(::chmod(node, 0660), 0);
}

// Each part of a mapping needs the grant, and who shares it with another is not the only one to hold it.
TEST_F(Grants, StayAsLongAsOneProcessNeedsThem) {
    Buffer theirs;
    ASSERT_EQ(make_buffer(fd(1), vm_[1], kVa, 4 * kMiB, ORR_BO_VRAM, theirs), 0);
    File dma_buf;
    ASSERT_EQ(export_bo(fd(1), theirs.handle, dma_buf), 0);
    const auto map_it = [&](int fd, std::uint32_t vm) {
        std::uint32_t handle = 0;
        const int error = import_bo(fd, dma_buf.get(), handle);
        return error != 0 ? error : map(fd, vm, handle, kVa, 4 * kMiB, ORR_BIND_WRITE);
    };
    ASSERT_EQ(map_it(fd(0), vm_[0]), 0);
    EXPECT_EQ(in_child([&] {
                  const File file = open_card(0);
                  std::uint32_t vm = 0;
                  if (create_vm(file.get(), vm) != 0 || map_it(file.get(), vm) != 0) return 1;
                  return unmap(file.get(), vm, kVa + kMiB, kMiB) != 0 ? 2 : 0;
              }),
              0);
    Queue sender(fd(0), vm_[0], kRingVa);
    EXPECT_EQ(sender.run(std::vector{fill(kVa, 4096, 7)}), 0);
    // Of a later message what came before has arrived.
    ASSERT_EQ(unmap(fd(0), vm_[0], kVa, 4 * kMiB), 0);
    EXPECT_EQ(theirs.words()[0], 7u);
    EXPECT_EQ(map_it(fd(0), vm_[0]), 0) << "the slot is free again";
}

// What a mapping of another card's memory may do is what its own flags say, whatever its grant allows others;
// and a range that goes while it is read ends the reader, and nobody else.
TEST_F(Grants, AMappingIsReadAsItsFlagsSay) {
    constexpr std::uint64_t kSize = 4 * kMiB, kWritten = 2 * kVa, kMine = 3 * kVa;
    Buffer theirs, mine;
    ASSERT_EQ(make_buffer(fd(1), vm_[1], kVa, kSize, ORR_BO_VRAM, theirs), 0);
    ASSERT_EQ(make_buffer(fd(0), vm_[0], kMine, kSize, ORR_BO_VRAM, mine), 0);
    for (std::uint64_t i = 0; i < kSize / 8; i += 512)
        theirs.words()[i] = i + 1;
    File dma_buf;
    ASSERT_EQ(export_bo(fd(1), theirs.handle, dma_buf), 0);
    std::uint32_t handle = 0;
    ASSERT_EQ(import_bo(fd(0), dma_buf.get(), handle), 0);
    std::uint64_t ring_va = kRingVa;
    const auto fault_of = [&](std::uint64_t from) {
        Queue reader(fd(0), vm_[0], ring_va += kMiB);
        EXPECT_EQ(reader.error(), 0);
        drm_orr_queue_wait out{};
        EXPECT_EQ(reader.run(std::vector{copy(from, kMine, kSize)}, out), 0);
        EXPECT_TRUE(out.error == 0 || out.error == ORR_QERR_FAULT) << out.error;
        return out.error == 0 ? std::uint64_t{ORR_FAULT_NONE} : out.error_detail;
    };
    ASSERT_EQ(map(fd(0), vm_[0], handle, kWritten, kSize, ORR_BIND_WRITE), 0);
    EXPECT_EQ(fault_of(kWritten), std::uint64_t{ORR_FAULT_PERMISSION});
    ASSERT_EQ(map(fd(0), vm_[0], handle, kVa, kSize, ORR_BIND_READ), 0);
    EXPECT_EQ(fault_of(kVa), std::uint64_t{ORR_FAULT_NONE});
    for (std::uint64_t i = 0; i < kSize / 8; i += 512)
        ASSERT_EQ(mine.words()[i], i + 1);
    EXPECT_EQ(fault_of(kWritten), std::uint64_t{ORR_FAULT_PERMISSION});
    Queue reader(fd(0), vm_[0], kRingVa);
    ASSERT_EQ(reader.error(), 0);
    const std::uint64_t last = reader.submit(std::vector(32, copy(kVa, kMine, kSize)));
    ASSERT_EQ(unmap(fd(0), vm_[0], kWritten, kSize), 0);
    ASSERT_EQ(unmap(fd(0), vm_[0], kVa, kSize), 0);
    drm_orr_queue_wait out{};
    ASSERT_EQ(wait(fd(0), reader.number(), last, 60, out), 0);
    EXPECT_TRUE(out.completed == last || out.error == ORR_QERR_FAULT) << out.error;
    ASSERT_EQ(map(fd(0), vm_[0], handle, kVa, kSize, ORR_BIND_READ), 0);
    EXPECT_EQ(fault_of(kVa), std::uint64_t{ORR_FAULT_NONE});
}

}  // namespace
}  // namespace orrery::kmod_test
