#include <algorithm>
#include <cstring>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

class TwoCards : public ::testing::Test {
  protected:
    void SetUp() override {
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        ASSERT_EQ(count, 2);
        for (int device = 0; device < 2; ++device) {
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrStreamCreate(&stream_[device], 0));
        }
    }
    void TearDown() override {
        for (orrStream_t stream : stream_)
            EXPECT_OK(orrStreamDestroy(stream));
    }
    static void* malloc_on(int device, std::size_t bytes) {
        void* memory = nullptr;
        EXPECT_OK(orrSetDevice(device));
        EXPECT_OK(orrMalloc(&memory, bytes));
        return memory;
    }
    static void enable(int device, int peer) {
        ASSERT_OK(orrSetDevice(device));
        ASSERT_OK(orrDeviceEnablePeerAccess(peer, 0));
    }

    orrStream_t stream_[2] = {};
};

TEST_F(TwoCards, PeerCopiesKeepEveryByteInBothDirections) {
    constexpr std::size_t kSize = (3 << 20) + 77;
    void* memory[2] = {malloc_on(0, kSize), malloc_on(1, kSize)};
    int can = 0;
    ASSERT_OK(orrDeviceCanAccessPeer(&can, 0, 1));
    ASSERT_EQ(can, 1);
    enable(0, 1);
    enable(1, 0);
    std::vector<std::uint8_t> back(kSize);
    std::mt19937 random(5);
    for (int round = 0; round < 16; ++round) {
        const int from = round % 2, to = 1 - from;
        const std::size_t bytes = round < 2 ? kSize : 1 + random() % kSize;
        const std::size_t a = random() % (kSize - bytes + 1), b = random() % (kSize - bytes + 1);
        const auto data = random_bytes(bytes, static_cast<std::uint32_t>(round));
        ASSERT_OK(orrMemset(memory[to], 0xee, kSize));
        ASSERT_OK(orrMemcpy(at(memory[from], a), data.data(), bytes, orrMemcpyHostToDevice));
        ASSERT_OK(orrMemcpy(at(memory[to], b), at(memory[from], a), bytes, orrMemcpyDeviceToDevice));
        ASSERT_OK(orrMemcpy(back.data(), memory[to], kSize, orrMemcpyDeviceToHost));
        ASSERT_EQ(std::memcmp(back.data() + b, data.data(), bytes), 0) << round;
        const auto untouched = [&](std::size_t first, std::size_t end) {
            return std::all_of(&back[0] + first, &back[0] + end,
                               [](std::uint8_t byte) { return byte == 0xee; });
        };
        ASSERT_TRUE(untouched(0, b)) << "before the copy";
        ASSERT_TRUE(untouched(b + bytes, kSize)) << "behind the copy";
    }
    for (void* m : memory)
        ASSERT_OK(orrFree(m));
}

// In streams of the destination's card, which reads; while the other card writes the other way, and in rows.
TEST_F(TwoCards, ACardReadsAnothersMemory) {
    constexpr std::size_t kSize = (2 << 20) + 77;
    void* memory[2] = {malloc_on(0, kSize), malloc_on(1, kSize)};
    void* other[2] = {malloc_on(0, kSize), malloc_on(1, kSize)};
    enable(0, 1);
    std::vector<std::uint8_t> back(kSize);
    std::mt19937 random(6);
    for (int round = 0; round < 3; ++round) {
        const std::size_t bytes = round == 0 ? kSize : 1 + random() % kSize;
        const std::size_t a = random() % (kSize - bytes + 1), b = random() % (kSize - bytes + 1);
        const auto data = random_bytes(bytes, static_cast<std::uint32_t>(round));
        ASSERT_OK(orrMemset(memory[0], 0xee, kSize));
        ASSERT_OK(orrMemset(other[0], round, kSize));
        ASSERT_OK(orrMemcpy(at(memory[1], a), data.data(), bytes, orrMemcpyHostToDevice));
        orrStream_t second = nullptr;
        ASSERT_OK(orrSetDevice(0));
        ASSERT_OK(orrStreamCreate(&second, 0));
        ASSERT_OK(orrMemcpyAsync(other[1], other[0], kSize, orrMemcpyDefault, second));
        ASSERT_OK(
            orrMemcpyAsync(at(memory[0], b), at(memory[1], a), bytes, orrMemcpyDeviceToDevice, stream_[0]));
        ASSERT_OK(orrStreamSynchronize(stream_[0]));
        ASSERT_OK(orrStreamSynchronize(second));
        ASSERT_OK(orrStreamDestroy(second));
        ASSERT_OK(orrMemcpy(back.data(), memory[0], kSize, orrMemcpyDeviceToHost));
        ASSERT_EQ(std::memcmp(back.data() + b, data.data(), bytes), 0) << round;
        ASSERT_TRUE(std::all_of(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(b),
                                [](std::uint8_t byte) { return byte == 0xee; }));
        ASSERT_TRUE(std::all_of(back.begin() + static_cast<std::ptrdiff_t>(b + bytes), back.end(),
                                [](std::uint8_t byte) { return byte == 0xee; }));
        ASSERT_OK(orrMemcpy(back.data(), other[1], kSize, orrMemcpyDeviceToHost));
        ASSERT_TRUE(std::ranges::all_of(
            back, [&](std::uint8_t byte) { return byte == static_cast<std::uint8_t>(round); }));
    }
    // Nobody has to say whose stream.
    ASSERT_OK(orrMemset(memory[1], 0x31, 4096));
    ASSERT_OK(orrMemcpy(memory[0], memory[1], 4096, orrMemcpyDeviceToDevice));
    ASSERT_OK(orrMemcpy(back.data(), memory[0], 4096, orrMemcpyDeviceToHost));
    EXPECT_EQ(back[4095], 0x31);
    for (void* m : {memory[0], memory[1], other[0], other[1]})
        ASSERT_OK(orrFree(m));
}

TEST_F(TwoCards, SmallAndLaterAllocationsArePeersToo) {
    enable(0, 1);
    void* source = malloc_on(0, 4096);
    ASSERT_OK(orrMemset(source, 0x5a, 4096));
    for (const std::size_t size : {std::size_t{64}, std::size_t{5000}, std::size_t{1} << 21}) {
        void* memory = malloc_on(1, size);
        ASSERT_OK(orrMemcpy(memory, source, 64, orrMemcpyDefault));
        std::uint8_t byte = 0;
        ASSERT_OK(orrMemcpy(&byte, at(memory, 63), 1, orrMemcpyDefault));
        EXPECT_EQ(byte, 0x5a);
        ASSERT_OK(orrFree(memory));
    }
    ASSERT_OK(orrFree(source));
}

TEST_F(TwoCards, SemaphoreArrivesBehindTheDataItAnnounces) {
    constexpr std::size_t kSize = 256 << 10;
    void* target = malloc_on(0, kSize);
    void* source = malloc_on(1, kSize);
    enable(1, 0);
    orrSemaphore_t arrived = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrSemaphoreCreate(&arrived, 0));
    void* pinned = nullptr;
    ASSERT_OK(orrMallocHost(&pinned, kSize, 0));
    for (std::uint64_t round = 1; round <= 60; ++round) {
        ASSERT_OK(orrStreamWaitSemaphore(stream_[0], arrived, round, nullptr));
        ASSERT_OK(orrMemcpyAsync(pinned, target, kSize, orrMemcpyDefault, stream_[0]));
        ASSERT_OK(orrMemsetAsync(source, static_cast<int>(round), kSize, stream_[1]));
        ASSERT_OK(orrMemcpyAsync(target, source, kSize, orrMemcpyDefault, stream_[1]));
        ASSERT_OK(orrStreamSignalSemaphore(stream_[1], arrived, round));
        ASSERT_OK(orrStreamSynchronize(stream_[0]));
        const auto* bytes = static_cast<const std::uint8_t*>(pinned);
        const auto* const wrong =
            std::find_if(bytes, bytes + kSize, [&](std::uint8_t byte) { return byte != round; });
        ASSERT_EQ(wrong, bytes + kSize) << wrong - bytes;
    }
    ASSERT_OK(orrSemaphoreDestroy(arrived));
    ASSERT_OK(orrFreeHost(pinned));
    ASSERT_OK(orrFree(target));
    ASSERT_OK(orrFree(source));
}

TEST_F(TwoCards, EventsOrderStreamsAcrossTheLink) {
    constexpr int kRounds = 100;
    void* pinned = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrMallocHost(&pinned, 8 * (kRounds + 1), 0));
    std::memset(pinned, 0, 8 * (kRounds + 1));
    void* words[2] = {malloc_on(0, 8), malloc_on(1, 8)};
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    for (int i = 0; i < kRounds; ++i) {
        const int device = i % 2;
        ASSERT_OK(orrStreamWaitEvent(stream_[device], event, nullptr));
        ASSERT_OK(orrMemcpyAsync(at(pinned, static_cast<std::size_t>(8 + 8 * i)), pinned, 8, orrMemcpyDefault,
                                 stream_[device]));
        ASSERT_OK(orrMemsetAsync(words[device], i + 1, 8, stream_[device]));
        ASSERT_OK(orrMemcpyAsync(pinned, words[device], 8, orrMemcpyDefault, stream_[device]));
        ASSERT_OK(orrEventRecord(event, stream_[device]));
    }
    ASSERT_OK(orrStreamSynchronize(stream_[1]));
    for (int i = 0; i < kRounds; ++i)
        ASSERT_EQ(static_cast<std::uint8_t*>(pinned)[8 + 8 * i], i) << i;
    ASSERT_OK(orrEventDestroy(event));
    for (void* word : words)
        ASSERT_OK(orrFree(word));
    ASSERT_OK(orrFreeHost(pinned));
}

}  // namespace
}  // namespace orrery::umd::vm
