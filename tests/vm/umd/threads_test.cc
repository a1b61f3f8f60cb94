// Cards that are alike but for the host threads that compute their kernels: 0, 1, 2 and 4 of them.
#include <fmt/format.h>
#include <sys/personality.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>

#include "tests/vm/umd/helpers.h"
#include "tests/vm/umd/workers.h"

namespace orrery::umd::vm {
namespace {

constexpr std::size_t kWords = 1 << 16;

struct Outcome {
    std::vector<std::uint64_t> words;
    std::uint64_t instructions = 0, ahead = 0, busy_ps = 0;
    const void* address = nullptr;
    std::vector<double> ns;  // model time of each kernel but the first
};

struct Work {
    const char* kernel;
    TestArgs args;
    std::uint32_t groups, items;
    std::size_t local;
};

std::array<std::uint64_t, 3> counters_of(int device) {
    orrCounter_t counters[3] = {};
    std::array<std::uint64_t, 3> values{};
    EXPECT_OK(orrDeviceFindCounter(&counters[0], device, "vector_instructions"));
    EXPECT_OK(orrDeviceFindCounter(&counters[1], device, "vector_ahead"));
    EXPECT_OK(orrDeviceFindCounter(&counters[2], device, "vector_busy_ps"));
    EXPECT_OK(orrDeviceReadCounters(values.data(), device, counters, 3));
    return values;
}

// All of it stands on the card, behind a semaphore, before the first kernel runs, and while that runs, for
// long, the host has gone to sleep: so what it does is in the time of the first, and seldom of another.
void run(int device, Outcome& outcome) {
    const Card card(device);
    void* memory = nullptr;
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrMalloc(&memory, kWords * 8));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    const auto bytes = random_bytes(kWords * 8, 1);
    ASSERT_OK(orrMemcpy(memory, bytes.data(), bytes.size(), orrMemcpyHostToDevice));
    const auto words = [&](std::size_t from) { return static_cast<std::uint64_t*>(memory) + from; };
    ASSERT_OK(orrMemset(words(24'000), 0, 1024 * 8));
    const Work works[] = {
        {"count_up", {words(0), 10'000'000, 3}, 8, 1, 0},
        {"count_up", {words(0), 40'000, 3}, 24, 1, 0},           // in registers, results side by side
        {"add_value", {words(1024), 16'384, 5}, 16, 64, 0},      // streams
        {"sort_groups", {words(18'000), 0, 0}, 16, 32, 32 * 8},  // barriers and work-group memory
        {"group_sum", {words(20'000), 0, 0}, 16, 200, 8},        // an atomic whose old value nobody uses
        {"take_rounds", {words(24'000), 8, 30}, 8, 4, 0},        // groups wait for each other: in order
    };
    std::vector<orrEvent_t> events(std::size(works) + 1);
    for (orrEvent_t& event : events)
        ASSERT_OK(orrEventCreate(&event, 0));
    const auto before = counters_of(device);
    ASSERT_OK(orrStreamWaitSemaphore(card.stream, gate, 1, nullptr));
    ASSERT_OK(orrEventRecord(events[0], card.stream));
    for (std::size_t i = 0; i < std::size(works); ++i) {
        const Work& work = works[i];
        ASSERT_OK(card.launch(work.kernel, work.args, work.groups, work.items, work.local));
        ASSERT_OK(orrEventRecord(events[i + 1], card.stream));
    }
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    ASSERT_OK(orrStreamSynchronize(card.stream));
    const auto after = counters_of(device);
    outcome.instructions = after[0] - before[0];
    outcome.ahead = after[1] - before[1];
    outcome.busy_ps = after[2] - before[2];
    outcome.address = memory;
    for (std::size_t i = 1; i < std::size(works); ++i) {
        double ns = 0;
        ASSERT_OK(orrEventElapsedModelTime(&ns, events[i], events[i + 1]));
        outcome.ns.push_back(ns);
    }
    outcome.words.resize(kWords);
    ASSERT_OK(orrMemcpy(outcome.words.data(), memory, kWords * 8, orrMemcpyDeviceToHost));
    for (orrEvent_t event : events)
        ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrSemaphoreDestroy(gate));
    ASSERT_OK(orrFree(memory));
}

TEST(FourThreads, ResultsDoNotDependOnTheirNumber) {
    int cards = 0;
    ASSERT_OK(orrGetDeviceCount(&cards));
    ASSERT_EQ(cards, 4);
    std::vector<std::uint64_t> expected;
    for (int device = 0; device < cards; ++device) {
        Outcome outcome;
        ASSERT_NO_FATAL_FAILURE(run(device, outcome));
        if (expected.empty()) expected = outcome.words;
        EXPECT_TRUE(outcome.words == expected) << "card " << device;
        if (device == 0) {
            EXPECT_EQ(outcome.ahead, 0u);
            continue;
        }
        EXPECT_GT(outcome.ahead, outcome.instructions / 2) << "card " << device;
        EXPECT_LT(outcome.ahead, outcome.instructions) << "card " << device;
    }
}

// What report_times() writes on this card: an address, a count of instructions that were done ahead, and
// times.
struct Reported {
    std::string address, times;
    std::uint64_t ahead = 0;
};
Reported report_of(int device) {
    const std::string command = fmt::format("ORR_VISIBLE_DEVICES={} exec {} --worker=times", device,
                                            std::filesystem::read_symlink("/proc/self/exe").string());
    std::FILE* const out = ::popen(command.c_str(), "r");
    if (out == nullptr) return {};
    std::string text;
    for (int c = 0; (c = std::fgetc(out)) != EOF;)
        text.push_back(static_cast<char>(c));
    EXPECT_EQ(::pclose(out), 0) << text;
    Reported reported;
    std::istringstream in(text);
    in >> reported.address >> reported.ahead;
    std::getline(in, reported.times);
    return reported;
}

// The time of a kernel depends on addresses, by which lines fall into sets of a core's cache, and the kernel
// of Linux gives each card of a process others, at random. So each card is the only one of a process of its
// own, in which memory is laid out as in the others.
TEST(FourThreads, ModelTimesDoNotDependOnTheirNumber) {
    // Whenever the host comes in between, a time is another, with threads or without. So a card's times are
    // those that it had in so many rounds.
    constexpr int kOften = 3, kRounds = 24;
    constexpr std::size_t kCards = 4;
    ASSERT_NE(::personality(ADDR_NO_RANDOMIZE), -1);
    std::string address;
    std::vector<std::string> often(kCards);
    for (std::size_t card = 0; card < kCards; ++card) {
        std::map<std::string, int> seen;
        for (int round = 0; round < kRounds && often[card].empty(); ++round) {
            const Reported now = report_of(static_cast<int>(card));
            ASSERT_FALSE(now.times.empty()) << "card " << card;
            if (address.empty()) address = now.address;
            ASSERT_EQ(now.address, address) << "other addresses: nothing can be compared";
            EXPECT_EQ(now.ahead != 0, card != 0) << "card " << card;
            if (++seen[now.times] == kOften) often[card] = now.times;
        }
        EXPECT_NE(often[card], "") << "card " << card
                                   << ": no times come again: " << testing::PrintToString(seen);
        EXPECT_EQ(often[card], often[0]) << "card " << card;
    }
}

}  // namespace

int report_times() {
    Outcome outcome;
    run(0, outcome);
    fmt::print("{} {} {} {} {}\n", outcome.address, outcome.ahead, outcome.instructions, outcome.busy_ps,
               fmt::join(outcome.ns, " "));
    return testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0;
}

}  // namespace orrery::umd::vm
