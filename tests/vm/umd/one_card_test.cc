#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

// All of it is 0xee still. Byte for byte it takes most of a minute on an emulated CPU.
bool untouched(const void* memory, std::size_t bytes) {
    const auto* first = static_cast<const std::uint8_t*>(memory);
    return bytes == 0 || (*first == 0xee && std::memcmp(first, first + 1, bytes - 1) == 0);
}

TEST(OneCard, CopiesInAllDirectionsKeepEveryByte) {
    constexpr std::size_t kSize = (2 << 20) + 12345;
    void *card_a = nullptr, *card_b = nullptr, *pinned = nullptr;
    ASSERT_OK(orrMalloc(&card_a, kSize));
    ASSERT_OK(orrMalloc(&card_b, kSize));
    ASSERT_OK(orrMallocHost(&pinned, kSize, 0));
    const auto data = random_bytes(kSize, 1);
    std::vector<std::uint8_t> back(kSize);
    std::mt19937 random(2);
    for (int round = 0; round < 40; ++round) {
        const std::size_t bytes = round == 0 ? kSize : round < 20 ? random() % 9000 : random() % kSize;
        const auto offset = [&] { return random() % (kSize - bytes + 1); };
        const std::size_t from = offset(), a = offset(), b = offset(), p = offset();
        ASSERT_OK(orrMemcpy(at(card_a, a), data.data() + from, bytes, orrMemcpyHostToDevice));
        ASSERT_OK(orrMemcpy(at(card_b, b), at(card_a, a), bytes, orrMemcpyDeviceToDevice));
        std::memset(pinned, 0xee, kSize);
        ASSERT_OK(orrMemcpy(at(pinned, p), at(card_b, b), bytes, orrMemcpyDeviceToHost));
        ASSERT_EQ(std::memcmp(at(pinned, p), data.data() + from, bytes), 0) << bytes;
        ASSERT_TRUE(untouched(pinned, p)) << "before the copy";
        ASSERT_TRUE(untouched(at(pinned, p + bytes), kSize - p - bytes)) << "behind the copy";
        std::memset(back.data(), 0xee, kSize);
        ASSERT_OK(orrMemcpy(back.data(), at(card_b, b), bytes, orrMemcpyDeviceToHost));
        ASSERT_EQ(std::memcmp(back.data(), data.data() + from, bytes), 0) << bytes;
        ASSERT_TRUE(untouched(back.data() + bytes, kSize - bytes));
    }
    ASSERT_OK(orrFree(card_a));
    ASSERT_OK(orrFree(card_b));
    ASSERT_OK(orrFreeHost(pinned));
}

// What a child has open of its parent's cards would outlive the parent.
TEST(OneCard, ForkedChildHasNoCardOpen) {
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 4096));
    const auto open_cards = [] {
        int found = 0;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;  // the directory's own
            found += std::filesystem::read_symlink(entry, gone).string().starts_with("/dev/accel/") ? 1 : 0;
        }
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            found += line.find("/dev/accel/") != std::string::npos ? 1 : 0;
        return found;
    };
    EXPECT_GT(open_cards(), 1);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(std::min(open_cards(), 100));
    EXPECT_EQ(wait_for(child), 0);
    EXPECT_OK(orrMemset(memory, 1, 4096)) << "the parent goes on";
    EXPECT_OK(orrFree(memory));
}

TEST(OneCard, MemsetOddSizes) {
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 65536));
    ASSERT_OK(orrMemset(memory, 0x11, 65536));
    ASSERT_OK(orrMemset(at(memory, 3), 0x22, 40001));
    ASSERT_OK(orrMemset(at(memory, 65528), 0x33, 8));
    std::vector<std::uint8_t> back(65536);
    ASSERT_OK(orrMemcpy(back.data(), memory, back.size(), orrMemcpyDefault));
    for (std::size_t i = 0; i < back.size(); ++i) {
        ASSERT_EQ(back[i], i >= 65528 ? 0x33 : i >= 3 && i < 40004 ? 0x22 : 0x11) << i;
    }
    ASSERT_OK(orrFree(memory));
}

TEST(OneCard, NewMemoryHoldsNobodysData) {
    // What other processes left in the card's memory must not be seen.
    ASSERT_EQ(wait_for(start_worker("add")), 0);
    constexpr std::size_t kSize = 8 << 20;
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, kSize));
    std::vector<std::uint8_t> back(kSize, 1);
    ASSERT_OK(orrMemcpy(back.data(), memory, kSize, orrMemcpyDefault));
    EXPECT_EQ(std::count(back.begin(), back.end(), 0), static_cast<std::ptrdiff_t>(kSize));
    ASSERT_OK(orrFree(memory));
}

TEST(OneCard, KernelsSeeTheirArgumentsItemsAndGroups) {
    Card card(0);
    constexpr std::uint64_t kCount = 1000;
    void* memory = nullptr;
    ASSERT_OK(orrMallocHost(&memory, kCount * 8, 0));
    auto* words = static_cast<std::uint64_t*>(memory);
    for (std::uint64_t i = 0; i < kCount; ++i)
        words[i] = i;
    ASSERT_OK(card.launch("add_value", {words, kCount, 7}, 3, 64));
    ASSERT_OK(orrStreamSynchronize(card.stream));
    for (std::uint64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(words[i], i + 7);
    ASSERT_OK(card.launch("who_am_i", {words, kCount, 0}, 8, 125));
    ASSERT_OK(orrStreamSynchronize(card.stream));
    for (std::uint64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(words[i], (i / 125) << 48 | (i % 125) << 32 | 8u << 16 | 125u) << i;
    }
    words[0] = 0;
    ASSERT_OK(card.launch("group_sum", {words, 1, 0}, 10, 100, 8));
    ASSERT_OK(orrStreamSynchronize(card.stream));
    EXPECT_EQ(words[0], 10u * 5050u) << "work-group memory starts as zero for each group";
    words[0] = 7;
    ASSERT_OK(card.launch("call_table", {words, 1, 1}));
    ASSERT_OK(card.launch("call_table", {words, 1, 0}));
    ASSERT_OK(orrStreamSynchronize(card.stream));
    EXPECT_EQ(words[0], 3u * 49u) << "relocated function pointers";
    EXPECT_EQ(words[1], 42u) << "a module's variables live as long as the module";
    auto* values = reinterpret_cast<double*>(words);
    for (std::uint64_t i = 0; i < kCount; ++i)
        values[i] = static_cast<double>(i) / 3;
    ASSERT_OK(card.launch("floating", {words, kCount, 2}, 2, 32));
    ASSERT_OK(orrStreamSynchronize(card.stream));
    for (std::uint64_t i = 0; i < kCount; ++i) {
        const double x = static_cast<double>(i) / 3;
        ASSERT_TRUE(values[i] == x * 1.5 + 2 || values[i] == __builtin_fma(x, 1.5, 2)) << i;
    }
    ASSERT_OK(orrFreeHost(memory));
}

TEST(OneCard, LongChainsKeepTheirOrder) {
    Card card(0);
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 8));
    ASSERT_OK(orrMemsetAsync(memory, 0, 8, card.stream));
    const TestArgs args{static_cast<std::uint64_t*>(memory), 1, 1};
    const orrFunction_t add = card.kernel("add_value");
    // Three times round the ring; each reads what the one before wrote.
    for (int i = 0; i < 3000; ++i) {
        ASSERT_OK(orrLaunchKernel(add, {1, 1, 1}, {1, 1, 1}, &args, sizeof(args), 0, card.stream));
    }
    std::uint64_t sum = 0;
    ASSERT_OK(orrMemcpyAsync(&sum, memory, 8, orrMemcpyDefault, card.stream));
    EXPECT_EQ(sum, 3000u);
    ASSERT_OK(orrFree(memory));
}

// A card's model time goes on while the host is busy with something else, so all orders stand on the card,
// behind a semaphore, before the first runs.
TEST(OneCard, StreamsOverlapInModelTime) {
    Card card(0);
    orrStream_t other = nullptr;
    orrSemaphore_t gate = nullptr;
    orrEvent_t begin = nullptr, one = nullptr, both = nullptr;
    void* memory = nullptr;
    ASSERT_OK(orrStreamCreate(&other, 0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    for (orrEvent_t* event : {&begin, &one, &both})
        ASSERT_OK(orrEventCreate(event, 0));
    ASSERT_OK(orrMalloc(&memory, 1 << 20));
    const TestArgs args{static_cast<std::uint64_t*>(memory), 1 << 17, 1};
    const orrFunction_t add = card.kernel("add_value");
    const auto launch = [&](orrStream_t stream) {
        return orrLaunchKernel(add, {1, 1, 1}, {16, 1, 1}, &args, sizeof(args), 0, stream);
    };
    ASSERT_OK(orrStreamWaitSemaphore(card.stream, gate, 1, nullptr));
    ASSERT_OK(orrEventRecord(begin, card.stream));
    ASSERT_OK(launch(card.stream));
    ASSERT_OK(orrEventRecord(one, card.stream));
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    ASSERT_OK(orrStreamSynchronize(card.stream));
    double alone = 0, together = 0;
    ASSERT_OK(orrEventElapsedModelTime(&alone, begin, one));
    ASSERT_OK(orrStreamWaitSemaphore(card.stream, gate, 2, nullptr));
    ASSERT_OK(orrEventRecord(begin, card.stream));
    ASSERT_OK(orrStreamWaitEvent(other, begin, nullptr));
    ASSERT_OK(launch(other));
    ASSERT_OK(orrEventRecord(one, other));
    ASSERT_OK(launch(card.stream));
    ASSERT_OK(orrStreamWaitEvent(card.stream, one, nullptr));
    ASSERT_OK(orrEventRecord(both, card.stream));
    ASSERT_OK(orrSemaphoreSignal(gate, 2));
    ASSERT_OK(orrDeviceSynchronize());
    ASSERT_OK(orrEventElapsedModelTime(&together, begin, both));
    // One group each on a card with several vector cores: side by side, not one after the other.
    EXPECT_LT(together, 1.1 * alone);
    EXPECT_GE(together, alone * 0.99);
    for (orrEvent_t event : {begin, one, both})
        ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrSemaphoreDestroy(gate));
    ASSERT_OK(orrStreamDestroy(other));
    ASSERT_OK(orrFree(memory));
}

TEST(OneCard, ModelTimeOfTheSameWorkIsTheSame) {
    Card card(0);
    orrEvent_t begin = nullptr, end = nullptr;
    void* memory = nullptr;
    ASSERT_OK(orrEventCreate(&begin, 0));
    ASSERT_OK(orrEventCreate(&end, 0));
    ASSERT_OK(orrMalloc(&memory, 1 << 20));
    const TestArgs args{static_cast<std::uint64_t*>(memory), 1 << 12, 1};
    // One kernel of known work, measured by the kernel's own share of the copy and vector counters.
    orrCounter_t counters[2] = {};
    ASSERT_OK(orrDeviceFindCounter(&counters[0], 0, "vector_instructions"));
    ASSERT_OK(orrDeviceFindCounter(&counters[1], 0, "vector_busy_ps"));
    std::uint64_t before[2], after[2];
    std::uint64_t instructions = 0, busy = 0;
    for (int round = 0; round < 4; ++round) {
        ASSERT_OK(orrDeviceReadCounters(before, 0, counters, 2));
        ASSERT_OK(card.launch("add_value", args, 8, 32));
        ASSERT_OK(orrStreamSynchronize(card.stream));
        ASSERT_OK(orrDeviceReadCounters(after, 0, counters, 2));
        const std::uint64_t done = after[0] - before[0], time = after[1] - before[1];
        if (round > 0) {
            EXPECT_EQ(done, instructions) << "vector_instructions";
            // The first one's translations are the others' too.
            if (round > 1)
                EXPECT_EQ(time, busy) << "vector_busy_ps";
            else
                EXPECT_LT(time, busy) << "vector_busy_ps";
        }
        instructions = done;
        busy = time;
    }
    EXPECT_GT(instructions, 0u);
    ASSERT_OK(orrEventDestroy(begin));
    ASSERT_OK(orrEventDestroy(end));
    ASSERT_OK(orrFree(memory));
}

TEST(OneCard, SemaphoreHoldsAStreamUntilTheHostSignals) {
    Card card(0);
    orrSemaphore_t semaphore = nullptr;
    void* memory = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    ASSERT_OK(orrMalloc(&memory, 8));
    ASSERT_OK(orrMemset(memory, 1, 8));
    ASSERT_OK(orrStreamWaitSemaphore(card.stream, semaphore, 3, nullptr));
    ASSERT_OK(orrMemsetAsync(memory, 2, 8, card.stream));
    std::uint8_t byte = 0;
    ASSERT_OK(orrMemcpy(&byte, memory, 1, orrMemcpyDefault));  // another stream goes on
    EXPECT_EQ(byte, 1);
    EXPECT_EQ(orrStreamQuery(card.stream), orrErrorNotReady);
    ASSERT_OK(orrSemaphoreSignal(semaphore, 3));
    ASSERT_OK(orrStreamSynchronize(card.stream));
    ASSERT_OK(orrMemcpy(&byte, memory, 1, orrMemcpyDefault));
    EXPECT_EQ(byte, 2);
    std::uint64_t value = 0;
    ASSERT_OK(orrSemaphoreGetValue(&value, semaphore));
    EXPECT_EQ(value, 3u);
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrFree(memory));
}

TEST(OneCard, HotSubmissionMakesNoSystemCall) {
    EXPECT_EQ(wait_for(start_worker("no-system-calls")), 0);
}

TEST(OneCard, MemoryThatIsFreedComesBack) {
    std::size_t before = 0, after = 0, total = 0;
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 1000));  // what is made at first use
    ASSERT_OK(orrMemGetInfo(&before, &total));
    for (int i = 0; i < 20; ++i) {
        void* large = nullptr;
        ASSERT_OK(orrMalloc(&large, before / 2));
        ASSERT_OK(orrFree(large));
    }
    EXPECT_FAIL(orrMalloc(&memory, total + 1), orrErrorOutOfMemory, "allocating");
    ASSERT_OK(orrMemGetInfo(&after, &total));
    EXPECT_EQ(before, after);
    ASSERT_OK(orrFree(memory));
}

}  // namespace
}  // namespace orrery::umd::vm
