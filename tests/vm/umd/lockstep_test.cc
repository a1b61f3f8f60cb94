// Cards that keep step in model time (orrery-vm --sync=lockstep): nothing comes after its time.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

// Cards in a chain. Each round goes to its end and back: a kernel, and data for both neighbours, over links
// that carry both directions. One stream a card: who gets a turn first would depend on who had more before.
class InStep : public ::testing::Test {
  protected:
    static constexpr std::size_t kBytes = (192 << 10) + 77, kBack = 64 << 10;
    static constexpr std::uint64_t kRounds = 4;
    static constexpr std::uint64_t kBetweenLooksPs = 10'000'000'000;  // deadlock_us of the firmware's policy

    struct Member {
        explicit Member(int device) : card(device, kNoLimitUs) {
            for (void** memory : {&data, &from_left, &from_right})
                EXPECT_OK(orrMalloc(memory, kBytes));
            EXPECT_OK(orrMemset(data, device + 1, kBytes));
            for (orrSemaphore_t* semaphore : {&left, &right, &met_left, &met_right})
                EXPECT_OK(orrSemaphoreCreate(semaphore, 0));
        }
        ~Member() {
            EXPECT_OK(orrSetDevice(card.device));
            for (orrSemaphore_t semaphore : {left, right, met_left, met_right})
                EXPECT_OK(orrSemaphoreDestroy(semaphore));
            for (void* memory : {data, from_left, from_right})
                EXPECT_OK(orrFree(memory));
        }
        Member(const Member&) = delete;
        Member& operator=(const Member&) = delete;
        Card card;
        void *data = nullptr, *from_left = nullptr, *from_right = nullptr;
        // Raised by the neighbours.
        orrSemaphore_t left = nullptr, right = nullptr, met_left = nullptr, met_right = nullptr;
    };

    void SetUp() override {
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        ASSERT_GE(count, 2);
        for (int device = 0; device < count; ++device) {
            for (const int peer : {device - 1, device + 1}) {
                if (peer < 0 || peer >= count) continue;
                ASSERT_OK(orrSetDevice(device));
                ASSERT_OK(orrDeviceEnablePeerAccess(peer, 0));
            }
        }
        for (int device = 0; device < count; ++device)
            members_.push_back(std::make_unique<Member>(device));
        ASSERT_OK(orrSetDevice(0));
        ASSERT_OK(orrSemaphoreCreate(&gate_, 0));
        ASSERT_OK(orrMallocHost(reinterpret_cast<void**>(&words_), 16, 0));
    }
    void TearDown() override {
        EXPECT_OK(orrFreeHost(words_));
        EXPECT_OK(orrSemaphoreDestroy(gate_));
        members_.clear();
    }

    void note(std::vector<orrEvent_t>& events, const Member& at) {
        orrEvent_t event = nullptr;
        ASSERT_OK(orrSetDevice(at.card.device));
        ASSERT_OK(orrEventCreate(&event, 0));
        ASSERT_OK(orrEventRecord(event, at.card.stream));
        events.push_back(event);
    }

    void queue(std::uint64_t round, std::vector<orrEvent_t>& events) {
        const std::size_t count = members_.size();
        for (std::size_t n = 0; n < count; ++n) {
            Member& member = *members_[n];
            Member* const left = n > 0 ? members_[n - 1].get() : nullptr;
            Member* const right = n + 1 < count ? members_[n + 1].get() : nullptr;
            ASSERT_OK(orrSetDevice(member.card.device));
            const orrStream_t stream = member.card.stream;
            if (left != nullptr) {
                ASSERT_OK(orrStreamWaitSemaphore(stream, member.left, round, nullptr));
                ASSERT_OK(orrMemcpyAsync(left->from_right, member.data, kBack, orrMemcpyDefault, stream));
                note(events, member);
            }
            ASSERT_OK(member.card.launch("count_up", {static_cast<std::uint64_t*>(member.data), 2000, 3}, 8));
            if (right != nullptr) {
                ASSERT_OK(orrMemcpyAsync(right->from_left, member.data, kBytes, orrMemcpyDefault, stream));
                ASSERT_OK(orrStreamSignalSemaphore(stream, right->left, round));
                ASSERT_OK(orrStreamWaitSemaphore(stream, member.right, round, nullptr));
            }
            note(events, member);
            if (left != nullptr) ASSERT_OK(orrStreamSignalSemaphore(stream, left->right, round));
            note(events, member);
        }
    }

    // All at once: each has its own kernel, and then data for both neighbours and for the first card,
    // whatever the others are at. When both neighbours have done as much there is another kernel. The cards
    // begin from the first on, and end from the last on.
    void crowd(std::uint64_t round, std::vector<orrEvent_t>& events) {
        const std::size_t count = members_.size();
        for (std::size_t n = 0; n < count; ++n) {
            Member& member = *members_[n];
            Member* const left = n > 0 ? members_[n - 1].get() : nullptr;
            Member* const right = n + 1 < count ? members_[n + 1].get() : nullptr;
            ASSERT_OK(orrSetDevice(member.card.device));
            const orrStream_t stream = member.card.stream;
            const auto works = [&](std::uint64_t by) {
                const std::uint64_t length = 500 + 431 * ((by * n + 3 * round) % 7);
                ASSERT_OK(
                    member.card.launch("count_up", {static_cast<std::uint64_t*>(member.data), length, 3}, 8));
            };
            if (left != nullptr) ASSERT_OK(orrStreamWaitSemaphore(stream, member.left, round, nullptr));
            if (right != nullptr) ASSERT_OK(orrStreamSignalSemaphore(stream, right->left, round));
            works(5);
            const auto copy = [&](void* to, std::size_t bytes) {
                ASSERT_OK(orrMemcpyAsync(to, member.data, bytes, orrMemcpyDefault, stream));
            };
            if (left != nullptr) copy(left->from_right, kBack);
            if (right != nullptr) copy(right->from_left, kBytes);
            if (n > 0) copy(members_[0]->from_left, kBack);
            if (left != nullptr) ASSERT_OK(orrStreamSignalSemaphore(stream, left->met_right, round));
            if (right != nullptr) ASSERT_OK(orrStreamSignalSemaphore(stream, right->met_left, round));
            note(events, member);
            if (left != nullptr) ASSERT_OK(orrStreamWaitSemaphore(stream, member.met_left, round, nullptr));
            if (right != nullptr) ASSERT_OK(orrStreamWaitSemaphore(stream, member.met_right, round, nullptr));
            works(2);
            if (right != nullptr) ASSERT_OK(orrStreamWaitSemaphore(stream, member.right, round, nullptr));
            if (left != nullptr) ASSERT_OK(orrStreamSignalSemaphore(stream, left->right, round));
            note(events, member);
        }
    }

    // Whatever this process and the driver have said to the card before, it has heard: it hears commands in
    // their order, and the last of these is answered.
    static void make_heard(const Member& member) {
        orrStream_t stream = nullptr;
        ASSERT_OK(orrSetDevice(member.card.device));
        ASSERT_OK(orrStreamCreate(&stream, 0));
        ASSERT_OK(orrStreamDestroy(stream));
    }

    // What each card has counted since it was switched on.
    using Counts = std::vector<std::vector<std::uint64_t>>;
    Counts counts() const {
        Counts all;
        for (const auto& member : members_) {
            std::size_t count = 0;
            EXPECT_OK(orrDeviceGetCounterCount(&count, member->card.device));
            std::vector<orrCounter_t> counters(count);
            for (std::size_t n = 0; n < count; ++n)
                counters[n] = info(member->card.device, n).counter;
            EXPECT_OK(orrDeviceReadCounters(all.emplace_back(count).data(), member->card.device,
                                            counters.data(), count));
        }
        return all;
    }
    static orrCounterInfo info(int device, std::size_t number) {
        orrCounterInfo info = ORR_INIT(orrCounterInfo);
        EXPECT_OK(orrDeviceGetCounterInfo(&info, device, number));
        return info;
    }

    // Times of all that is noted, from the first on. A plain store lets that come, of which no card hears but
    // by the kernel that looks for it: from there on no host has anything to say, however slow it is. What
    // the cards make of what it said last is over when the kernel behind that is: also the time for which the
    // firmware of a busy card puts its next look for deadlocks off (kBetweenLooksPs).
    using Round = void (InStep::*)(std::uint64_t round, std::vector<orrEvent_t>& events);
    std::vector<std::uint64_t> play(Round queue_round = &InStep::queue) {
        std::vector<orrEvent_t> events;
        Member& first = *members_[0];
        const std::atomic_ref told(words_[0]), begun(words_[1]);
        told = 0;
        begun = 0;
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrStreamWaitSemaphore(first.card.stream, gate_, ++plays_, nullptr));
        EXPECT_OK(first.card.launch("obey", {words_, kObeyEnd, 0}));
        note(events, first);
        EXPECT_OK(first.card.launch("count_up", {static_cast<std::uint64_t*>(first.data), 4'000'000, 3}));
        note(events, first);
        for (std::uint64_t n = 0; n < kRounds; ++n)
            (this->*queue_round)(++round_, events);
        EXPECT_OK(orrSemaphoreSignal(gate_, plays_));
        while (begun == 0 && orrStreamQuery(first.card.stream) == orrErrorNotReady)
            ::usleep(5'000);
        for (const auto& member : members_)
            make_heard(*member);
        before_ = counts();
        told = 1;
        // Who waits has the driver speak to the card now and then, so nobody does.
        for (const auto& member : members_) {
            orrError_t state = orrErrorNotReady;
            while ((state = orrStreamQuery(member->card.stream)) == orrErrorNotReady)
                ::usleep(200'000);
            EXPECT_OK(state);
        }
        after_ = counts();
        std::vector<std::uint64_t> times;
        for (orrEvent_t event : events) {
            std::uint64_t ps = 0;
            EXPECT_OK(orrEventGetModelTime(&ps, event));
            times.push_back(ps);
            EXPECT_OK(orrEventDestroy(event));
        }
        EXPECT_GT(times[1] - times[0], kBetweenLooksPs);
        times.erase(times.begin());
        const std::uint64_t begin = times.front();
        for (std::uint64_t& time : times)
            time -= begin;
        return times;
    }

    std::vector<std::uint64_t> play_crowd() { return play(&InStep::crowd); }

    std::vector<std::unique_ptr<Member>> members_;
    orrSemaphore_t gate_ = nullptr;
    std::uint64_t* words_ = nullptr;  // of `obey`
    std::uint64_t plays_ = 0, round_ = 0;
    Counts before_, after_;  // of the last play
};

// What card processes record of it is compared by tests/vm/trace/same_work.sh.
TEST_F(InStep, ACrowd) {
    for (std::size_t n = 2; n < members_.size(); ++n) {
        ASSERT_OK(orrSetDevice(members_[n]->card.device));
        ASSERT_OK(orrDeviceEnablePeerAccess(0, 0));
    }
    EXPECT_GT(play_crowd().size(), 8u);
}

// The times of a play, on one line, to be compared with those of other processes by who wants to know
// (docs/links.md).
TEST_F(InStep, APlay) {
    const std::vector<std::uint64_t> times = play();
    ASSERT_GT(times.size(), 8u);
    fmt::print("times {}\n", fmt::join(times, " "));
    for (std::size_t card = 0; card < after_.size(); ++card)
        for (std::size_t n = 0; n < after_[card].size(); ++n)
            fmt::print("count {} {} {}\n", card, info(members_[card]->card.device, n).name,
                       after_[card][n] - before_[card][n]);
}

// Nothing came to a card after its time.
TEST_F(InStep, NothingIsLate) {
    const auto expect_none = [&] {
        for (const auto& member : members_) {
            orrCounter_t counter{};
            std::uint64_t late = 0;
            ASSERT_OK(orrDeviceFindCounter(&counter, member->card.device, "link_stragglers"));
            ASSERT_OK(orrDeviceReadCounters(&late, member->card.device, &counter, 1));
            EXPECT_EQ(late, 0u) << "card " << member->card.device;
        }
    };
    expect_none();
    play();
    expect_none();
}

}  // namespace
}  // namespace orrery::umd::vm
