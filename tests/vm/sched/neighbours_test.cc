// What another user's process does to those beside it: many processes, doorbells without a meaning, gangs
// that lie, hundreds of full rings that end at once. All in model time.
#include <orrery/fw/failure.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/vm/kmod/device.h"
#include "tests/vm/sched/bench.h"

namespace orrery::sched_test {
namespace {

using kmod_test::Buffer;
using kmod_test::File;
using kmod_test::kLong;
using kmod_test::Queue;

constexpr std::uint64_t kWords = 0x40000000, kRings = 0x10000000;
constexpr uid_t kOther = 1001;
constexpr const char* kNode = "/dev/accel/accel0";
// Of what they have alone.
constexpr double kLeast = 0.95;
constexpr std::uint64_t kPsPerUs = 1'000'000;

// A process of another user that does `body`, which says when it has begun, until it is killed.
class Intruder {
  public:
    template <typename Body>
    explicit Intruder(Body body) {
        int ready[2];
        EXPECT_EQ(::pipe(ready), 0);
        const File reads(ready[0]);
        File writes(ready[1]);
        pid_ = ::fork();
        if (pid_ == 0) {
            if (::setuid(kOther) != 0) ::_exit(2);
            body([&] {
                if (::write(writes.get(), "!", 1) != 1) ::_exit(3);
            });
            ::_exit(4);
        }
        writes = File();
        char byte = 0;
        EXPECT_EQ(::read(reads.get(), &byte, 1), 1) << "it has not begun";
    }
    ~Intruder() { kill(); }
    Intruder(const Intruder&) = delete;
    Intruder& operator=(const Intruder&) = delete;
    bool lives() const {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == 0;
    }
    void kill() {
        if (pid_ < 0) return;
        EXPECT_EQ(::kill(pid_, SIGKILL), 0);
        EXPECT_EQ(umd::vm::wait_for(std::exchange(pid_, -1)), 128 + SIGKILL)
            << "it was to be there to the end";
    }

  private:
    pid_t pid_ = -1;
};

class Neighbours : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "needs two users";
        struct stat before{};
        ASSERT_EQ(::stat(kNode, &before), 0);
        mode_ = before.st_mode & 07777;
        ASSERT_EQ(::chmod(kNode, 0666), 0);
    }
    void TearDown() override {
        if (mode_ != 0) {
            EXPECT_EQ(::chmod(kNode, mode_), 0);
        }
    }
    mode_t mode_ = 0;
};

// Kernels in a row, all of which stand on the card before the first begins.
std::uint64_t row_ps(const Card& card, unsigned kernels = 40) {
    const Semaphore gate("gate");
    const Stream stream("row");
    const Count count(card, 32, 20);
    gate.wait_on(stream);
    const Mark begin(stream);
    for (unsigned i = 0; i < kernels; ++i)
        count.launch(stream);
    const Mark end(stream);
    gate.signal();
    return end.ps() - begin.ps();
}

// The 99th percentile of what an empty job of a HIGH queue takes, from the signal that it waits for.
class EmptyJobs {
  public:
    EmptyJobs() : file_(kmod_test::open_card()) {
        EXPECT_EQ(kmod_test::create_vm(file_.get(), vm_), 0);
        EXPECT_EQ(kmod_test::make_buffer(file_.get(), vm_, kWords, 4096, ORR_BO_VRAM, words_), 0);
        waker_ = std::make_unique<Queue>(file_.get(), vm_, kRings);
        high_ = std::make_unique<Queue>(file_.get(), vm_, kRings + (1 << 20));
        drm_orr_queue_set set{high_->number(), ORR_QUEUE_PRIORITY_HIGH, 0, 0};
        EXPECT_EQ(kmod_test::call(file_.get(), DRM_IOCTL_ORR_QUEUE_SET, &set), 0);
    }
    std::uint64_t worst_ps() {
        std::vector<std::uint64_t> took;
        for (int n = 0; n < 300; ++n) {
            ++value_;
            const std::uint64_t index = high_->submit(
                std::array{kmod_test::wait_for(kWords, value_), kmod_test::timestamp(kWords + 32)});
            waker_->submit(std::array{kmod_test::timestamp(kWords + 24), kmod_test::signal(kWords, value_)});
            drm_orr_queue_wait state{};
            EXPECT_EQ(kmod_test::wait(file_.get(), high_->number(), index, kLong, state), 0);
            EXPECT_EQ(state.error, 0u);
            took.push_back(words_.words()[4] - words_.words()[3]);
        }
        std::ranges::sort(took);
        return took[took.size() * 99 / 100];
    }

  private:
    File file_;
    std::uint32_t vm_ = 0;
    Buffer words_;
    std::unique_ptr<Queue> waker_, high_;
    std::uint64_t value_ = 0;
};

// Three processes of one user with a dozen streams, one of another with four: each user has half.
TEST_F(Neighbours, SharesGoToUsersFirst) {
    std::vector<pid_t> crowd;
    for (int n = 0; n < 3; ++n) {
        const std::string runs = "/tmp/rows-run-" + std::to_string(n);
        crowd.push_back(umd::vm::start_worker("rows-" + std::to_string(n)));
        for (int tries = 0; ::access(runs.c_str(), F_OK) != 0; ++tries) {
            ASSERT_LT(tries, 3'000) << "worker " << n << " does not run";
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        ::unlink(runs.c_str());
    }
    EXPECT_EQ(umd::vm::wait_for(umd::vm::start_worker("half")), 0);
    for (const pid_t worker : crowd) {
        EXPECT_EQ(::kill(worker, SIGKILL), 0);
        EXPECT_EQ(umd::vm::wait_for(worker), 128 + SIGKILL) << "it was to be there to the end";
    }
}

// What others have beside a process that rings so many queues without end, alone and beside it.
struct Storm {
    Storm(bool stopped, std::uint64_t queues) {
        const Card card(0);
        EmptyJobs jobs;
        row_alone = static_cast<double>(row_ps(card));
        job_alone = jobs.worst_ps();
        const Intruder ringer([&](const auto& begun) {
            const File file = kmod_test::open_card();
            std::uint32_t vm = 0;
            if (!file || kmod_test::create_vm(file.get(), vm) != 0) return;
            std::vector<std::unique_ptr<Queue>> rung;
            for (std::uint64_t n = 0; n < queues; ++n) {
                rung.push_back(std::make_unique<Queue>(file.get(), vm, kRings + (n << 16)));
                if (rung.back()->error() != 0) return;
                orr_packet bad = kmod_test::nop();
                bad.header.opcode = 1234;
                if (stopped) (void)rung.back()->run(std::span(&bad, 1));
            }
            begun();
            // Changes each time, and is never new.
            for (std::uint64_t round = 0;; ++round) {
                for (const auto& queue : rung)
                    queue->ring_doorbell(ORR_DB_INDEX_MASK - round % 2);
            }
        });
        row = static_cast<double>(row_ps(card));
        job = jobs.worst_ps();
    }
    double row_alone, row;
    std::uint64_t job_alone, job;
};

TEST_F(Neighbours, ADoorbellStorm) {
    const Storm storm(false, 64);
    EXPECT_GE(storm.row_alone, kLeast * storm.row);
    EXPECT_LE(storm.job, 3 * storm.job_alone);
}

// What they left behind is looked at each time.
TEST_F(Neighbours, ADoorbellStormOfStoppedQueues) {
    const Storm storm(true, 64);
    EXPECT_GE(storm.row_alone, kLeast * storm.row);
    EXPECT_LE(storm.job, storm.job_alone + 10 * kPsPerUs);
}

// --- gangs ---

constexpr std::uint64_t kBoard = kWords, kPeers = kWords + 0x800, kElsewhere = kWords + 0x900;

template <typename T>
orr_packet as_packet(const T& typed) {
    orr_packet packet;
    static_assert(sizeof(typed) == sizeof(packet));
    std::memcpy(&packet, &typed, sizeof(packet));
    return packet;
}

orr_packet gang(std::uint16_t members, std::uint64_t round, std::uint16_t cards = 1, std::uint16_t card = 0) {
    orr_packet_gang p{};
    p.header.opcode = ORR_PKT_GANG;
    p.board = kBoard;
    p.peers = cards > 1 ? kPeers : 0;
    p.round = round;
    p.card = card;
    p.cards = cards;
    p.members = members;
    return as_packet(p);
}

// It must never start: there is no code at its entry.
orr_packet resident(std::uint32_t groups = 1) {
    orr_packet_dispatch p{};
    p.header.opcode = ORR_PKT_DISPATCH;
    p.header.flags = ORR_PKT_F_RESIDENT;
    p.entry = 0x1000;
    p.grid_x = groups;
    p.grid_y = p.grid_z = p.block_x = p.block_y = p.block_z = 1;
    return as_packet(p);
}

// What a process says of gangs that are none, and what it is told; each in a queue of its own.
class Liar {
  public:
    Liar() : file_(kmod_test::open_card()) {
        good_ = kmod_test::create_vm(file_.get(), vm_) == 0 &&
                kmod_test::make_buffer(file_.get(), vm_, kWords, 4096, ORR_BO_VRAM, board_) == 0;
    }
    bool good() const { return good_; }
    // The other card is said to have locked its ports for this gang, so ours are held; once, and then not
    // again for a while: then it is the only member that waits in vain.
    bool forge() {
        board_.words()[kPeerEntry] = kElsewhere;
        board_.words()[2] = (round_ + 1) * ORR_GANG_ROUND + 2;
        const std::uint64_t lacking = round_ == 0 ? std::uint64_t{1} << 32 : 1;
        return told(gang(1, ++round_, 2), resident(), ORR_QERR_GANG, lacking);
    }
    // Those that hold nothing. A round of which one has failed has failed for all.
    bool lie() {
        board_.words()[kPeerEntry] = 0x66660000;
        // More members than anybody has, than this card has ports, no round, no such card.
        return told(gang(ORR_GANG_MAX_MEMBERS + 1, ++round_), resident(), ORR_QERR_BAD_PACKET, 4) &&
               told(gang(5, ++round_), resident(), ORR_QERR_BAD_PACKET, 4) &&
               told(gang(1, 0), resident(), ORR_QERR_BAD_PACKET, 3) &&
               told(gang(1, ++round_, 1, 1), resident(), ORR_QERR_BAD_PACKET, 4) &&
               // Nothing behind it that could be a member, more cores than there are, a card that is nowhere.
               told(gang(1, ++round_), kmod_test::nop(), ORR_QERR_BAD_PACKET, 0) &&
               told(gang(1, ++round_), resident(9), ORR_QERR_GANG, 0) &&
               told(gang(1, ++round_, 2), resident(), ORR_QERR_GANG, std::uint64_t{1} << 32) && lacks_one();
    }

  private:
    static constexpr std::uint64_t kPeerEntry = (kPeers - kWords) / 8 + 1;

    std::unique_ptr<Queue> queue() {
        // A limit after which nobody comes any more.
        auto made = std::make_unique<Queue>(file_.get(), vm_, kRings + (number_++ << 16), 16, ORR_BO_SYSTEM,
                                            "liar", 500);
        if (made->error() != 0) ::_exit(10);
        return made;
    }
    bool ended(const Queue& queue, std::uint64_t index, std::uint32_t error, std::uint64_t detail) const {
        drm_orr_queue_wait state{};
        if (kmod_test::wait(file_.get(), queue.number(), index, kLong, state) == 0 && state.error == error &&
            state.error_detail == detail)
            return true;
        std::fprintf(stderr, "round %llu: error %u, detail %#llx instead of %u, %#llx\n",
                     static_cast<unsigned long long>(round_), state.error,
                     static_cast<unsigned long long>(state.error_detail), error,
                     static_cast<unsigned long long>(detail));
        return false;
    }
    bool told(const orr_packet& member, const orr_packet& work, std::uint32_t error, std::uint64_t detail) {
        const auto made = queue();
        return ended(*made, made->submit(std::array{member, work}), error, detail);
    }
    // Two of three come, and one that contradicts them. How far they came depends on the time they have.
    bool lacks_one() {
        ++round_;
        std::array<std::unique_ptr<Queue>, 3> queues = {queue(), queue(), queue()};
        for (std::uint16_t n = 0; n < 3; ++n)
            queues[n]->submit(std::array{gang(n < 2 ? 3 : 2, round_), resident()});
        return std::ranges::all_of(queues, [&](const auto& each) {
            drm_orr_queue_wait state{};
            return kmod_test::wait(file_.get(), each->number(), 2, kLong, state) == 0 &&
                   state.error == ORR_QERR_GANG && state.error_detail <= 2;
        });
    }

    File file_;
    std::uint32_t vm_ = 0;
    Buffer board_;
    bool good_;
    std::uint64_t round_ = 0, number_ = 0;
};

// How often the intruder has done it, as it says.
class Shared {
  public:
    Shared() : memory_(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
        EXPECT_NE(memory_, MAP_FAILED);
        new (memory_) std::atomic<unsigned>(0);
    }
    ~Shared() { ::munmap(memory_, 4096); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    std::atomic<unsigned>& count() const { return *static_cast<std::atomic<unsigned>*>(memory_); }

  private:
    void* memory_;
};

// Others keep their share beside somebody who lies so many times, each time by `lie`, and for so many rows of
// theirs at least; but for the time that is forgiven.
void expect_rows_beside(bool (Liar::*lie)(), unsigned times, double least_rows, double forgiven_ps) {
    const Card card(0);
    const auto alone = static_cast<double>(row_ps(card));
    const Shared shared;
    std::atomic<unsigned>& rounds = shared.count();
    const Intruder liar([&](const auto& begun) {
        Liar all;
        if (!all.good()) return;
        begun();
        while ((all.*lie)())
            ++rounds;
    });
    double rows = 0, took = 0;
    while ((rounds < times || rows < least_rows) && liar.lives()) {
        took += static_cast<double>(row_ps(card));
        ++rows;
    }
    EXPECT_TRUE(liar.lives()) << "it was not told what is wrong";
    EXPECT_GE(alone * rows, kLeast * (took - forgiven_ps));
}

TEST_F(Neighbours, GangsThatLie) {
    expect_rows_beside(&Liar::lie, 10, 0, 0);
}

// Ports stand idle for a gang of several cards for a tenth of a second at most, whatever the boards say, and
// not again for the next of the same user.
TEST_F(Neighbours, GangsWithForgedBoards) {
    expect_rows_beside(&Liar::forge, 5, 90, 100'000.0 * kPsPerUs);
}

// --- rings ---

// Hundreds of full rings, each packet of which signals, end at once with their process.
TEST_F(Neighbours, FullRingsThatEndAtOnce) {
    constexpr std::uint64_t kQueues = 480, kEntries = 64, kSignals = kEntries - 1;
    const Card card(0);
    EmptyJobs jobs;
    const File file = kmod_test::open_card();
    std::uint32_t vm = 0;
    ASSERT_EQ(kmod_test::create_vm(file.get(), vm), 0);
    Buffer semaphores;
    ASSERT_EQ(kmod_test::make_buffer(file.get(), vm, kWords, 1 << 19, ORR_BO_VRAM, semaphores), 0);
    File passed;
    ASSERT_EQ(kmod_test::export_bo(file.get(), semaphores.handle, passed), 0);
    const auto semaphore = [](std::uint64_t queue, std::uint64_t signal) {
        return kWords + 16 * (1 + queue * kSignals + signal);
    };
    Intruder owner([&](const auto& begun) {
        const File own = kmod_test::open_card();
        std::uint32_t space = 0, handle = 0;
        if (!own || kmod_test::create_vm(own.get(), space) != 0 ||
            kmod_test::import_bo(own.get(), passed.get(), handle) != 0 ||
            kmod_test::map(own.get(), space, handle, kWords, 1 << 19) != 0)
            return;
        std::vector<std::unique_ptr<Queue>> rings;
        for (std::uint64_t n = 0; n < kQueues; ++n) {
            rings.push_back(std::make_unique<Queue>(own.get(), space, kRings + (n << 16), kEntries));
            if (rings.back()->error() != 0) return;
            std::vector<orr_packet> packets{kmod_test::wait_for(kWords, 1)};
            for (std::uint64_t signal = 0; signal < kSignals; ++signal)
                packets.push_back(kmod_test::signal(semaphore(n, signal), 1));
            rings.back()->submit(packets);
        }
        begun();
        for (;;)
            ::pause();
    });
    std::vector<std::unique_ptr<Queue>> waiters;
    for (std::uint64_t n = 0; n < kQueues; ++n) {
        waiters.push_back(std::make_unique<Queue>(file.get(), vm, kRings + (n << 16), 4));
        ASSERT_EQ(waiters.back()->error(), 0) << n;
        waiters.back()->submit(kmod_test::wait_for(semaphore(n, kSignals - 1), 1));
    }
    const auto row_alone = static_cast<double>(row_ps(card));
    const std::uint64_t job_alone = jobs.worst_ps();
    std::atomic<bool> over{false};
    std::thread killer([&] {
        owner.kill();
        over.store(true);
    });
    double rows = 0, took = 0;
    std::uint64_t job = 0;
    while (!over.load()) {
        took += static_cast<double>(row_ps(card));
        ++rows;
        job = std::max(job, jobs.worst_ps());
    }
    killer.join();
    EXPECT_GE(row_alone * rows, kLeast * took);
    // A ring that is to be destroyed is begun with at once, for 8 us.
    EXPECT_LE(job, job_alone + 50 * kPsPerUs);
    for (std::uint64_t n = 0; n < kQueues; ++n) {
        drm_orr_queue_wait state{};
        ASSERT_EQ(kmod_test::wait(file.get(), waiters[n]->number(), 1, kLong, state), 0) << n;
        ASSERT_EQ(state.error, ORR_QERR_POISON) << n;
        ASSERT_EQ(ORR_FAILURE_CODE(state.error_detail), ORR_QERR_ABORTED) << n;
    }
    // What it had can be had again: there are not so many.
    const File another = kmod_test::open_card();
    std::uint32_t space = 0;
    ASSERT_EQ(kmod_test::create_vm(another.get(), space), 0);
    std::vector<std::unique_ptr<Queue>> again;
    for (std::uint64_t n = 0; n < 100; ++n) {
        again.push_back(std::make_unique<Queue>(another.get(), space, kRings + (n << 16), 4));
        ASSERT_EQ(again.back()->error(), 0) << n;
    }
}

}  // namespace
}  // namespace orrery::sched_test
