// What is queued behind a release takes the same time whatever the card has done before: every record of
// the firmware, to the cycle. Without that, two runs of one program differ by what the host did in them:
// how many packets came with one doorbell, and how long somebody had waited, is the host's.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <orrery/fw/trace.h>

#include "tests/unit/scenario/jobs.h"
#include "tools/records/names.h"
#include "tools/scenario/runner.h"

namespace orrery::fw::test {
namespace {

using namespace scenario;

enum Who : std::uint32_t { kWorks, kReleases, kSame, kOther, kQueues };

// What is behind the release.
enum class Work : std::uint8_t {
    kOneStream,
    kMoreThanPorts,  // kernels and copies that wait for a port
    kTwoStreams,     // that signal each other, and share ports
    kTwoOfTurns,     // that are ready all the time
};

// Who shared the card before: what tenants cost is the same for all pasts that had the same ones.
struct Setting {
    const char* name;
    Work work = Work::kOneStream;
    std::uint32_t process = 0, user = 0;  // of queue kOther
    bool poked = false;                   // by a linked card, and not by a queue
    bool soon = false;                    // while the card still tidies up after something else
    std::uint32_t priority = ORR_PRIORITY_NORMAL, weight = ORR_WEIGHT_DEFAULT;  // of queue kWorks
    friend std::ostream& operator<<(std::ostream& to, const Setting& setting) { return to << setting.name; }
};

class Past {
  public:
    Past(const Setting& setting, std::uint64_t seed) : random_(seed), setting_(setting) {
        s_.name = fmt::format("past {} of {}", seed, setting.name);
        s_.until = 20 * kMs;
        s_.contexts = {{.name = "ours"},
                       {.name = "another", .user = setting.user, .process = setting.process}};
        for (const char* name : {"works", "releases", "same", "other"})
            s_.queues.push_back({.name = name, .entries = 1024});
        s_.queues[kOther].context = 1;
        s_.queues[kWorks].priority = setting.priority;
        s_.queues[kWorks].weight = setting.weight;
        s_.semaphores = {{.name = "gate"}, {.name = "to works"}, {.name = "to same"}};
    }

    Scenario make() {
        // A ring's packets are read ahead in lines, so where in its ring the work begins is the same.
        for (std::uint32_t queue = 0; queue < kQueues; ++queue) {
            const std::uint64_t count = queue == kOther ? 1 + pick(100) : 41;
            std::vector<Job> jobs;
            for (std::uint64_t n = 0; n < count; ++n)
                jobs.push_back(any());
            submit_in_turns(queue, 20 * kUs, 50, jobs);
        }
        // Who waits first is woken first, so the order is part of the work.
        submit_in_turns(kWorks, 3 * kMs + pick(1000) * 1000, 20, work(kWorks));
        if (setting_.work >= Work::kTwoStreams)
            submit_in_turns(kSame, 6 * kMs + pick(1000) * 1000, 20, work(kSame));
        const Ps at = 8 * kMs + pick(6'000'000) * 1000;
        if (setting_.soon) submit(kReleases, at, {Job{}});
        release(at + (setting_.soon ? pick(6'000) * 1000 : 0));
        return std::move(s_);
    }

  private:
    std::uint64_t pick(std::uint64_t below) { return random_() % below; }
    void submit(std::uint32_t queue, Ps at, std::vector<Job> jobs) {
        s_.submits.push_back({.at = at, .queue = queue, .jobs = std::move(jobs)});
    }
    static Job of(Op op, std::uint64_t bytes) {
        Job job;
        job.op = op;
        job.bytes = bytes;
        return job;
    }
    Job any() {
        switch (pick(5)) {
            case 0:
                return of(Op::kCopy, 64ull << pick(10));
            case 1:
                return of(Op::kFill, 64ull << pick(10));
            case 2:
                return kernel(1 + static_cast<std::uint32_t>(pick(12)), 100 + pick(20'000));
            case 3:
                return of(Op::kTimestamp, 0);
            default:
                return {};
        }
    }
    static Job semaphore(Op op, std::uint32_t number, std::uint64_t value) {
        Job job;
        job.op = op;
        job.semaphore = number;
        job.value = value;
        return job;
    }
    std::vector<Job> work(Who who) const {
        std::vector<Job> jobs = {semaphore(Op::kWait, 0, 1)};
        if (setting_.work == Work::kTwoOfTurns) jobs.resize(200);
        const std::uint32_t kernels = setting_.work == Work::kMoreThanPorts ? 24 : 12;
        for (std::uint32_t n = 0; n < kernels; ++n) {
            jobs.push_back(kernel(1 + n % 9, 1000 + 3000 * (n % 4)));
            jobs.back().ordered = setting_.work == Work::kOneStream && n % 3 != 0;
            if (n % 4 == 1) jobs.push_back(of(Op::kCopy, 4096));
            if (setting_.work == Work::kMoreThanPorts) continue;
            if (n % 4 == 2) jobs.push_back(of(Op::kTimestamp, 0));
            if (n % 4 == 3) jobs.push_back(of(Op::kBarrier, 0));
            if (setting_.work == Work::kTwoStreams && n % 3 == 2) {
                const std::uint32_t mine = who == kWorks ? 1 : 2;
                jobs.push_back(semaphore(Op::kSignal, 3 - mine, n));
                jobs.push_back(semaphore(Op::kWait, mine, n));
            }
        }
        return jobs;
    }
    // In as many doorbells as the host likes.
    void submit_in_turns(std::uint32_t queue, Ps at, std::uint64_t most_us, const std::vector<Job>& jobs) {
        for (auto from = jobs.begin(); from != jobs.end();) {
            const auto left = static_cast<std::uint64_t>(jobs.end() - from);
            const auto to = from + static_cast<std::ptrdiff_t>(1 + pick(std::min<std::uint64_t>(left, 8)));
            submit(queue, at, {from, to});
            from = to;
            at += pick(most_us * 1000) * 1000;
        }
    }
    void release(Ps at) {
        if (setting_.poked) {
            Action poke;
            poke.kind = Action::Kind::kPoke;
            poke.at = at;
            poke.value = 1;
            s_.actions.push_back(poke);
        } else {
            submit(kReleases, at, {semaphore(Op::kSignal, 0, 1)});
        }
    }

    Scenario s_;
    std::mt19937_64 random_;
    Setting setting_;
};

// One line for each record from the first turn behind the release on, with its time since then: who releases
// may do other things before. Of a record there is its header, but for slots, which are taken in turn: the
// words behind it are indices, counts and times, which are as far on as the past was long.
std::vector<std::string> behind_release(const Scenario& scenario) {
    Options options;
    options.keep_records = true;
    const auto result = run(scenario, options);
    if (!result || !result->done) {
        ADD_FAILURE() << scenario.name << ": " << (result ? "it did not end" : result.error());
        return {};
    }
    std::vector<std::string> lines;
    enum { kBefore, kReleased, kWorking } now = kBefore;
    Ps began = 0;
    for (const Record& record : result->records) {
        const std::uint64_t header = record.words.front();
        const std::uint32_t type = ORR_TRACE_TYPE(header);
        const bool signals = type == ORR_TRACE_SIGNAL || type == ORR_TRACE_POKE;
        if (now == kBefore && signals) now = kReleased;
        if (now == kReleased && type == ORR_TRACE_DECISION) {
            now = kWorking;
            began = record.at;
        }
        if (now != kWorking) continue;
        lines.push_back(fmt::format("{:>10} ps: {} {} {:#x}", record.at - began, records::record_name(type),
                                    ORR_TRACE_A(header), type == ORR_TRACE_SLOT ? 0 : ORR_TRACE_B(header)));
    }
    return lines;
}

class PastTest : public testing::TestWithParam<Setting> {};

TEST_P(PastTest, DoesNotShowBehindARelease) {
    constexpr std::uint64_t kPasts = 40;
    const std::vector<std::string> want = behind_release(Past(GetParam(), 0).make());
    ASSERT_GT(want.size(), 100u);
    for (std::uint64_t seed = 1; seed < kPasts; ++seed) {
        const Scenario scenario = Past(GetParam(), seed).make();
        const std::vector<std::string> got = behind_release(scenario);
        const auto [a, b] = std::ranges::mismatch(want, got);
        if (a == want.end() && b == got.end()) continue;
        // With some of those before it, to find the place by.
        std::string text;
        const auto nth = static_cast<std::size_t>(a - want.begin());
        for (std::size_t n = nth - std::min<std::size_t>(nth, 5); n <= nth; ++n)
            text += fmt::format("\n{:<46} {}", n < got.size() ? got[n] : "none",
                                n < want.size() ? want[n] : "none");
        ADD_FAILURE() << scenario.name << ": record " << nth << " is another than after past 0:" << text;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, PastTest,
    testing::Values(Setting{.name = "one process"}, Setting{.name = "another process", .process = 1},
                    Setting{.name = "another user", .process = 1, .user = 1},
                    Setting{.name = "a linked card", .poked = true},
                    Setting{.name = "released soon", .soon = true},
                    Setting{.name = "more than ports", .work = Work::kMoreThanPorts},
                    Setting{.name = "two streams", .work = Work::kTwoStreams},
                    Setting{.name = "two streams soon", .work = Work::kTwoStreams, .soon = true},
                    Setting{.name = "two streams by a linked card", .work = Work::kTwoStreams, .poked = true},
                    Setting{.name = "two streams of two weights", .work = Work::kTwoStreams, .weight = 64},
                    Setting{.name = "two streams of turns", .work = Work::kTwoOfTurns},
                    Setting{.name = "two streams of two classes",
                            .work = Work::kTwoStreams,
                            .priority = ORR_PRIORITY_HIGH}),
    [](const auto& info) {
        std::string name = info.param.name;
        std::ranges::replace(name, ' ', '_');
        return name;
    });

}  // namespace
}  // namespace orrery::fw::test
