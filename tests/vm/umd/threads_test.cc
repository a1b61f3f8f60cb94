// Cards that are alike but for the host threads that compute their kernels: 0, 1, 2 and 4 of them.
#include <algorithm>
#include <array>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

constexpr std::size_t kWords = 1 << 16;

struct Outcome {
    std::vector<std::uint64_t> words;
    std::uint64_t instructions = 0, ahead = 0;
};

struct Work {
    const char* kernel;
    TestArgs args;
    std::uint32_t groups, items;
    std::size_t local;
};

std::array<std::uint64_t, 2> counters_of(int device) {
    orrCounter_t counters[2] = {};
    std::array<std::uint64_t, 2> values{};
    EXPECT_OK(orrDeviceFindCounter(&counters[0], device, "vector_instructions"));
    EXPECT_OK(orrDeviceFindCounter(&counters[1], device, "vector_ahead"));
    EXPECT_OK(orrDeviceReadCounters(values.data(), device, counters, 2));
    return values;
}

// All of it stands on the card, behind a semaphore, before the first kernel runs.
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
    const auto before = counters_of(device);
    ASSERT_OK(orrStreamWaitSemaphore(card.stream, gate, 1, nullptr));
    for (std::size_t i = 0; i < std::size(works); ++i) {
        const Work& work = works[i];
        ASSERT_OK(card.launch(work.kernel, work.args, work.groups, work.items, work.local));
    }
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    ASSERT_OK(orrStreamSynchronize(card.stream));
    const auto after = counters_of(device);
    outcome.instructions = after[0] - before[0];
    outcome.ahead = after[1] - before[1];
    outcome.words.resize(kWords);
    ASSERT_OK(orrMemcpy(outcome.words.data(), memory, kWords * 8, orrMemcpyDeviceToHost));
    ASSERT_OK(orrSemaphoreDestroy(gate));
    ASSERT_OK(orrFree(memory));
}

// Model times are compared by the tests of cards without a VM: here the host comes in between, and the cards'
// memory is not laid out alike.
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

}  // namespace
}  // namespace orrery::umd::vm
