// How long copies and kernels waited for memory and for other cards, to the picosecond: against closed forms,
// and against a queue for each way that this file makes by itself of docs/model.md.
#include <algorithm>
#include <initializer_list>
#include <random>

#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kCard = 0x10'0000'0000, kHost = 0x20'0000'0000;
constexpr std::uint64_t kMiB = 1 << 20, kLine = 64;
constexpr ModelTime kNs = 1'000, kUs = 1'000'000;

// What n users at one way wait who ask at the same moment for `pieces` each, one behind the other, and each
// piece takes `time`: for the first piece those behind the first, and from then on each for all the others.
constexpr ModelTime all_waits(std::uint64_t n, std::uint64_t pieces, ModelTime time) {
    return time * n * (n - 1) / 2 + (pieces - 1) * n * (n - 1) * time;
}

// Of a byte, in quarters of a picosecond: of VRAM, of PCIe, of a copy engine.
constexpr ModelTime kVramQuarters = 5, kPcieQuarters = 125, kEngineQuarters = 10;
constexpr ModelTime taking(std::uint64_t bytes, ModelTime quarters) {
    return bytes * quarters / 4;
}
// What a copy moves at once: 2 us of PCIe, or 128 KiB of VRAM, which it reads and writes.
constexpr std::uint64_t kHostPiece = 64'000, kCardPiece = 64 << 10;
constexpr ModelTime kSetup = 200 * kNs;

class CopyWaits : public testing::Test {
  protected:
    CopyWaits() : rig(64 << 20, 64 << 20) {
        rig.memory.count_in(rig.counters);
        rig.map(kCard, 32 * kMiB, ORR_TARGET_VRAM, 0);
        rig.map(kHost, 32 * kMiB, ORR_TARGET_HOST, Rig::kHostBase);
        for (std::uint32_t n = 0; n < 6; ++n)
            engines.emplace_back(n, CopyRates{}, rig.context);
    }
    std::uint64_t count(orr_counter counter) const { return rig.counters.get(counter); }
    void run_until(ModelTime time) {
        while (rig.events.run_next(time)) {
        }
        rig.events.advance_to(time);
    }
    // By how much the counters go up while so many copies of `bytes` run that begin together.
    std::vector<std::uint64_t> beside(unsigned copies, std::uint64_t from, std::uint64_t to,
                                      std::uint64_t bytes, std::initializer_list<orr_counter> counters) {
        std::vector<std::uint64_t> change;
        for (const orr_counter each : counters)
            change.push_back(0 - count(each));
        for (unsigned n = 0; n < copies; ++n)
            EXPECT_TRUE(
                engines[n].start(Rig::words_of(Rig::copy(from + 4 * n * kMiB, to + 4 * n * kMiB, bytes)), n));
        rig.run();
        for (std::size_t n = 0; n < change.size(); ++n)
            change[n] += count(*(counters.begin() + n));
        return change;
    }
    using Change = std::vector<std::uint64_t>;

    Rig rig;
    std::deque<CopyEngine> engines;
};

TEST_F(CopyWaits, AreForThePiecesOfTheOthers) {
    for (const std::uint64_t n : {1u, 2u, 3u, 6u}) {
        for (const std::uint64_t pieces : {1u, 2u, 7u}) {
            const ModelTime pcie = taking(kHostPiece, kPcieQuarters);
            const ModelTime waits = all_waits(n, pieces, pcie);
            // An engine works while its bytes go through, and then waits for those that do not yet.
            const ModelTime behind = waits + n * pieces * (pcie - taking(kHostPiece, kEngineQuarters));
            // They come to VRAM together only once: from then on PCIe keeps them apart.
            const ModelTime first = all_waits(n, 1, taking(kHostPiece, kVramQuarters));
            for (const auto& [from, to] : {std::pair(kHost, kCard), std::pair(kCard, kHost)}) {
                EXPECT_EQ(beside(static_cast<unsigned>(n), from, to, pieces * kHostPiece,
                                 {ORR_CTR_PCIE_WAIT_PS, ORR_CTR_COPY_PCIE_PS, ORR_CTR_VRAM_WAIT_PS,
                                  ORR_CTR_COPY_VRAM_PS}),
                          (Change{waits, behind, first, 0}))
                    << n << " copies of " << pieces << " pieces";
            }
            const ModelTime vram = all_waits(n, pieces, taking(2 * kCardPiece, kVramQuarters));
            EXPECT_EQ(beside(static_cast<unsigned>(n), kCard, kCard + 2 * kMiB, pieces * kCardPiece,
                             {ORR_CTR_VRAM_WAIT_PS, ORR_CTR_COPY_VRAM_PS, ORR_CTR_PCIE_WAIT_PS,
                              ORR_CTR_COPY_PCIE_PS}),
                      (Change{vram, vram, 0, 0}))
                << n << " copies of " << pieces << " pieces";
        }
    }
}

// One behind the other, in the order of asking.
struct Way {
    ModelTime free = 0, waited = 0;
    ModelTime take(ModelTime now, ModelTime time) {
        const ModelTime begin = std::max(free, now);
        waited += begin - now;
        return free = begin + time;
    }
};
struct Copied {
    bool from_host, to_host;
    std::uint64_t left;
    ModelTime at;            // when it asks for the next piece, and at last when it has ended
    std::uint64_t turn = 0;  // of two that ask at one moment the one first whose last turn was before
};

TEST_F(CopyWaits, OfCopiesByChanceAreThoseOfAReplay) {
    std::mt19937 random(11);
    std::uint64_t vram_waits = 0, pcie_waits = 0;
    for (unsigned round = 0; round < 30; ++round) {
        const ModelTime began = rig.events.now();
        std::vector<Copied> copies;
        ModelTime start = began;
        rig.done.clear();
        for (std::uint32_t n = 0; n < engines.size(); ++n) {
            start += 1 + random() % (3 * kUs);
            const bool from_host = random() % 2 != 0, to_host = random() % 2 != 0;
            const std::uint64_t bytes = kLine * (1 + random() % 12'000);
            copies.push_back({from_host, to_host, bytes, start + kSetup});
            run_until(start);
            ASSERT_TRUE(
                engines[n].start(Rig::words_of(Rig::copy((from_host ? kHost : kCard) + n * kMiB,
                                                         (to_host ? kHost : kCard) + (8 + n) * kMiB, bytes)),
                                 n));
        }
        rig.run();
        ASSERT_EQ(rig.done.size(), copies.size());
        Way vram, in, out;
        for (std::uint64_t turn = 1;; ++turn) {
            Copied* next = nullptr;
            for (Copied& each : copies) {
                if (each.left == 0) continue;
                if (next == nullptr || std::pair(each.at, each.turn) < std::pair(next->at, next->turn))
                    next = &each;
            }
            if (next == nullptr) break;
            next->turn = turn;
            const ModelTime now = next->at;
            const bool host = next->from_host || next->to_host;
            const std::uint64_t bytes = std::min(next->left, host ? kHostPiece : kCardPiece);
            next->left -= bytes;
            next->at = now + taking(bytes, kEngineQuarters);
            const std::uint64_t in_vram = bytes * ((next->from_host ? 0 : 1) + (next->to_host ? 0 : 1));
            if (in_vram != 0) next->at = std::max(next->at, vram.take(now, taking(in_vram, kVramQuarters)));
            if (next->from_host) next->at = std::max(next->at, in.take(now, taking(bytes, kPcieQuarters)));
            if (next->to_host) next->at = std::max(next->at, out.take(now, taking(bytes, kPcieQuarters)));
        }
        for (const Completion& done : rig.done)
            EXPECT_EQ(done.end_ps, copies.at(done.port).at) << done.port;
        vram_waits += vram.waited;
        pcie_waits += in.waited + out.waited;
        ASSERT_EQ(count(ORR_CTR_VRAM_WAIT_PS), vram_waits) << "round " << round;
        ASSERT_EQ(count(ORR_CTR_PCIE_WAIT_PS), pcie_waits) << "round " << round;
    }
    EXPECT_GT(vram_waits, kUs);
    EXPECT_GT(pcie_waits, 100 * kUs);
}

class Log final : public JobLog {
  public:
    bool wants_jobs() const override { return true; }
    void job_ended(const Completion& completion, const JobCounts& counts) override {
        EXPECT_EQ(completion.status, ORR_DONE_OK);
        jobs.at(completion.port) = counts;
    }
    void was_at(const PcSample& sample) override {
        EXPECT_EQ(sample.core, sample.port) << "the n-th kernel has the n-th core";
        nanoseconds.at(sample.core).at(sample.cause) += sample.count;
    }
    std::array<JobCounts, 4> jobs{};                                        // by port
    std::array<std::array<std::uint64_t, ORR_PC_CAUSES>, 4> nanoseconds{};  // by core and what it did
};

// Ways of which a piece is a line, which takes 2 us.
constexpr std::uint64_t kSlow = 32'000'000;
constexpr ModelTime kPiece = 2 * kUs;
constexpr ModelTime kFar = 150 * kNs, kFarHost = 600 * kNs;

// Chases of pointers: each load is of a line that no cache has. A cycle is a nanosecond, and translations
// cost nothing.
class KernelWaits : public testing::Test {
  protected:
    static constexpr std::uint64_t kFollowed = 60, kRing = 4096;
    // Two loads of arguments, three instructions for each pointer, and the return; behind the last load the
    // loop's end and the return.
    static constexpr ModelTime kInstructions = (2 + 3 * kFollowed + 1) * kNs, kEnd = 3 * kNs;

    explicit KernelWaits(std::uint64_t vram_rate = 800'000'000'000, std::uint64_t pcie_rate = 32'000'000'000)
        : rig(64 << 20, 64 << 20, 8 << 20,
              {.vram_bytes_per_second = vram_rate,
               .pcie_bytes_per_second = pcie_rate,
               .vram_latency_ps = kFar,
               .pcie_latency_ps = kFarHost}) {
        rig.context.jobs = &log;
        rig.memory.count_in(rig.counters);
        load_image(rig);
        VectorConfig config = counted_config();
        config.tlb_entries = 0;
        unit = std::make_unique<VectorUnit>(config, rig.context);
        unit->sample(kNs);
        item = config.item_cycles * kNs;
    }
    static std::uint64_t* words(void* memory) { return static_cast<std::uint64_t*>(memory); }
    std::uint64_t count(orr_counter counter) const { return rig.counters.get(counter); }
    // A kernel on each of so many ports at the same moment, with arguments of its own.
    void start(unsigned kernels, Kernel kernel, std::initializer_list<std::uint64_t> args) {
        for (unsigned n = 0; n < kernels; ++n) {
            const auto desc = kernel_desc(rig, kernel, kDataBytes - 4096 * (n + 1), args, 1, 1);
            ASSERT_TRUE(unit->port(n).start(Rig::words_of(desc), n));
        }
    }
    // What a core did at each nanosecond is what it did of its kernel.
    void expect_core(unsigned n) const {
        const auto& core = log.nanoseconds.at(n);
        const JobCounts& job = log.jobs.at(n);
        EXPECT_EQ(core[ORR_PC_ISSUE], job[ORR_JOB_INSTRUCTIONS]) << n;
        EXPECT_EQ(core[ORR_PC_LATENCY] * kNs, job[ORR_JOB_LATENCY_PS]) << n;
        EXPECT_EQ(core[ORR_PC_BANDWIDTH] * kNs, job[ORR_JOB_BANDWIDTH_PS]) << n;
        EXPECT_EQ(core[ORR_PC_LINK] * kNs, job[ORR_JOB_LINK_PS]) << n;
        EXPECT_EQ(core[ORR_PC_LAUNCH] * kNs, job[ORR_JOB_LAUNCH_PS]) << n;
    }
    // That n-th of them took so long, of which it waited for bandwidth with what it did not compute, and for
    // answers so long.
    void expect_job(unsigned n, ModelTime busy, ModelTime latency) const {
        const JobCounts& job = log.jobs.at(n);
        EXPECT_EQ(job[ORR_JOB_BUSY_PS], busy) << n;
        EXPECT_EQ(job[ORR_JOB_LATENCY_PS], latency) << n;
        EXPECT_EQ(job[ORR_JOB_LAUNCH_PS], item) << n;
        EXPECT_EQ(job[ORR_JOB_INSTRUCTIONS] * kNs, kInstructions) << n;
        EXPECT_EQ(job[ORR_JOB_BANDWIDTH_PS], busy - latency - item - kInstructions) << n;
        EXPECT_EQ(job[ORR_JOB_LINK_PS], 0u) << n;
        expect_core(n);
    }
    std::uint64_t of_jobs(orr_job_counter counter) const {
        std::uint64_t sum = 0;
        for (const JobCounts& each : log.jobs)
            sum += each[counter];
        return sum;
    }

    Log log;
    Rig rig;
    std::unique_ptr<VectorUnit> unit;
    ModelTime item = 0;
};

class SlowVram : public KernelWaits, public testing::WithParamInterface<unsigned> {
  protected:
    SlowVram() : KernelWaits(kSlow) {}
};

// Each asks for its arguments and then for one pointer after the other: all of them wait for all.
TEST_P(SlowVram, KernelsWaitForEachOthersLines) {
    const unsigned n = GetParam();
    link_ring(words(rig.vram.data() + kDataOffset), kData, kRing);
    start(n, kChase, {kData, kFollowed});
    rig.run();
    constexpr std::uint64_t kPieces = kFollowed + 1;
    EXPECT_EQ(count(ORR_CTR_VRAM_WAIT_PS), all_waits(n, kPieces, kPiece));
    EXPECT_EQ(count(ORR_CTR_PCIE_WAIT_PS), 0u);
    for (unsigned i = 0; i < n; ++i)
        expect_job(i, ((kPieces - 1) * n + i + 1) * kPiece + kEnd, kPieces * kFar);
    EXPECT_EQ(count(ORR_CTR_VECTOR_BANDWIDTH_PS), of_jobs(ORR_JOB_BANDWIDTH_PS));
    EXPECT_EQ(count(ORR_CTR_VECTOR_LATENCY_PS), n * kPieces * kFar);
    EXPECT_EQ(count(ORR_CTR_VECTOR_BUSY_PS), of_jobs(ORR_JOB_BUSY_PS));
}
INSTANTIATE_TEST_SUITE_P(Kernels, SlowVram, testing::Values(1u, 2u, 4u));

class SlowPcie : public KernelWaits, public testing::WithParamInterface<unsigned> {
  protected:
    SlowPcie() : KernelWaits(800'000'000'000, kSlow) {}
};

// Arguments are on the card and cost a line of its memory, for which all ask together.
TEST_P(SlowPcie, KernelsWaitForEachOthersLines) {
    const unsigned n = GetParam();
    link_ring(words(rig.host_data), kHostData, kRing);
    start(n, kChase, {kHostData, kFollowed});
    rig.run();
    EXPECT_EQ(count(ORR_CTR_PCIE_WAIT_PS), all_waits(n, kFollowed, kPiece));
    EXPECT_EQ(count(ORR_CTR_VRAM_WAIT_PS), all_waits(n, 1, taking(kLine, kVramQuarters)));
    for (unsigned i = 0; i < n; ++i)
        expect_job(i, ((kFollowed - 1) * n + i + 1) * kPiece + kEnd, kFar + kFollowed * kFarHost);
    EXPECT_EQ(count(ORR_CTR_VECTOR_BANDWIDTH_PS), of_jobs(ORR_JOB_BANDWIDTH_PS));
    EXPECT_EQ(count(ORR_CTR_VECTOR_LATENCY_PS), n * (kFar + kFollowed * kFarHost));
}
INSTANTIATE_TEST_SUITE_P(Kernels, SlowPcie, testing::Values(1u, 2u, 4u));

constexpr std::uint64_t kPeer = 0x30'0000'0000;

class PeerWaits : public KernelWaits, public testing::WithParamInterface<unsigned> {
  protected:
    PeerWaits() { rig.map(kPeer, 4 * kMiB, ORR_TARGET_PEER, 0, Rig::kRights, Rig::kPeerNode); }
    // Each question is answered so long after it was asked: the first, the second and so on.
    template <class Delay>
    void answer(Delay delay) {
        for (std::uint64_t n = 0;;) {
            if (rig.peer.asked.empty()) {
                if (!rig.events.run_next(kNever - 1)) return;
                continue;
            }
            const ModelTime at = rig.peer.asked.front().at + delay(n++);
            while (rig.events.run_next(at)) {
            }
            rig.events.advance_to(at);
            rig.peer.give();
        }
    }
};

TEST_P(PeerWaits, KernelsWaitForEachAnswer) {
    const unsigned n = GetParam();
    link_ring(words(rig.peer.memory.data()), kPeer, kRing);
    constexpr ModelTime kDelay = 1'234 * kNs;
    start(n, kChase, {kPeer, kFollowed});
    answer([](std::uint64_t) { return kDelay; });
    EXPECT_EQ(rig.peer.last_tag, n * kFollowed);
    for (unsigned i = 0; i < n; ++i) {
        const JobCounts& job = log.jobs.at(i);
        EXPECT_EQ(job[ORR_JOB_LINK_PS], kFollowed * kDelay) << i;
        EXPECT_EQ(job[ORR_JOB_LINK_READ], kFollowed * kLine) << i;
        // Of its own memory it loads its arguments.
        EXPECT_EQ(job[ORR_JOB_LATENCY_PS], kFar) << i;
        EXPECT_EQ(job[ORR_JOB_BANDWIDTH_PS], 0u) << i;
        // A core comes to each of these loads twice.
        EXPECT_EQ(job[ORR_JOB_BUSY_PS], item + kInstructions + kFar + kFollowed * (kDelay + kNs)) << i;
        EXPECT_EQ(log.nanoseconds.at(i)[ORR_PC_LINK] * kNs, kFollowed * kDelay) << i;
    }
    EXPECT_EQ(count(ORR_CTR_VECTOR_LINK_PS), n * kFollowed * kDelay);
}

// No two answers take the same time.
TEST_P(PeerWaits, TheirSumIsThatOfTheAnswers) {
    const unsigned n = GetParam();
    link_ring(words(rig.peer.memory.data()), kPeer, kRing);
    start(1, kChase, {kPeer, kFollowed});
    answer([n](std::uint64_t number) { return n * (kUs + number * 1'001); });
    EXPECT_EQ(count(ORR_CTR_VECTOR_LINK_PS), n * (kFollowed * kUs + kFollowed * (kFollowed - 1) / 2 * 1'001));
}

// Stores of four bytes, which leave one behind the other at 20 ps a byte.
TEST_P(PeerWaits, KernelsWaitUntilTheirStoresHaveLeft) {
    const unsigned n = GetParam();
    for (unsigned i = 0; i < n; ++i) {
        const auto desc = kernel_desc(rig, kStore, kPeer + 4096 * i, 1, 1);
        ASSERT_TRUE(unit->port(i).start(Rig::words_of(desc), i));
    }
    rig.run();
    for (std::uint64_t i = 0; i < n; ++i) {
        EXPECT_EQ(log.jobs.at(i)[ORR_JOB_LINK_PS], (i + 1) * 4 * 20) << i;
        EXPECT_EQ(log.jobs.at(i)[ORR_JOB_LINK_WRITTEN], 4u) << i;
    }
    EXPECT_EQ(count(ORR_CTR_VECTOR_LINK_PS), 4 * 20 * n * (n + 1) / 2);
}
INSTANTIATE_TEST_SUITE_P(Kernels, PeerWaits, testing::Values(1u, 2u, 4u));

}  // namespace
}  // namespace orrery::emu::test
