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

// Who shared the card before: what tenants cost is the same for all pasts that had the same ones.
struct Setting {
    const char* name;
    std::uint32_t process, user;  // of queue kOther
    bool poked;                   // by a linked card, and not by a queue
    bool soon = false;            // while the card still tidies up after something else
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
        s_.semaphores = {{.name = "gate"}};
    }

    Scenario make() {
        // A ring's packets are read ahead in lines, so where in its ring the work begins is the same.
        for (std::uint32_t queue = 0; queue < kQueues; ++queue) {
            const std::uint64_t count = queue == kWorks || queue == kReleases ? 41 : 1 + pick(100);
            std::vector<Job> jobs;
            for (std::uint64_t n = 0; n < count; ++n)
                jobs.push_back(any());
            submit_in_turns(queue, 20 * kUs, 50, jobs);
        }
        submit_work(3 * kMs + pick(1000) * 1000);
        const Ps at = 4 * kMs + pick(1'000'000) * 1000;
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
    static Job semaphore(Op op, std::uint64_t value) {
        Job job;
        job.op = op;
        job.value = value;
        return job;
    }
    void submit_work(Ps at) {
        std::vector<Job> jobs = {semaphore(Op::kWait, 1)};
        for (std::uint32_t n = 0; n < 12; ++n) {
            jobs.push_back(kernel(1 + n % 9, 1000 + 3000 * (n % 4)));
            jobs.back().ordered = n % 3 != 0;
            if (n % 4 == 1) jobs.push_back(of(Op::kCopy, 4096));
            if (n % 4 == 2) jobs.push_back(of(Op::kTimestamp, 0));
            if (n % 4 == 3) jobs.push_back(of(Op::kBarrier, 0));
        }
        submit_in_turns(kWorks, at, 20, jobs);
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
            submit(kReleases, at, {semaphore(Op::kSignal, 1)});
        }
    }

    Scenario s_;
    std::mt19937_64 random_;
    Setting setting_;
};

// One line for each record from the first turn behind the release on, with its time since then: who releases
// may do other things before. Indices and counts are as far on as the past was long, so of each record there
// is what it is.
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
        // Nobody else signals.
        if (type == ORR_TRACE_SIGNAL || type == ORR_TRACE_POKE) now = kReleased;
        if (now == kReleased && type == ORR_TRACE_DECISION) {
            now = kWorking;
            began = record.at;
        }
        if (now != kWorking) continue;
        lines.push_back(fmt::format("{:>10} ps: {} {}", record.at - began, records::record_name(type),
                                    type == ORR_TRACE_STATE ? ORR_TRACE_B(header) : 0));
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
            text += fmt::format("\n{:<32} {}", n < got.size() ? got[n] : "none",
                                n < want.size() ? want[n] : "none");
        ADD_FAILURE() << scenario.name << ": record " << nth << " is another than after past 0:" << text;
    }
}

INSTANTIATE_TEST_SUITE_P(Settings, PastTest,
                         testing::Values(Setting{"one process", 0, 0, false},
                                         Setting{"another process", 1, 0, false},
                                         Setting{"another user", 1, 1, false},
                                         Setting{"a linked card", 0, 0, true},
                                         Setting{"released soon", 0, 0, false, true}),
                         [](const auto& info) {
                             std::string name = info.param.name;
                             std::ranges::replace(name, ' ', '_');
                             return name;
                         });

}  // namespace
}  // namespace orrery::fw::test
