#include <thread>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

// Each thread has its own memory and stream and checks every byte; they share cards, modules and the library.
void hammer(int device, std::uint32_t seed, int rounds) {
    Card card(device);
    std::mt19937 random(seed);
    for (int round = 0; round < rounds; ++round) {
        const std::size_t count = 1 + random() % 20000;
        std::vector<std::uint64_t> data(count), back(count);
        for (auto& word : data)
            word = random();
        void *memory = nullptr, *copy = nullptr;
        ASSERT_OK(orrMalloc(&memory, count * 8));
        ASSERT_OK(orrMalloc(&copy, count * 8));
        ASSERT_OK(orrMemcpyAsync(memory, data.data(), count * 8, orrMemcpyHostToDevice, card.stream));
        const TestArgs args{static_cast<std::uint64_t*>(memory), count,
                            static_cast<std::uint64_t>(round) + 1};
        ASSERT_OK(card.launch("add_value", args, 4, 8));
        ASSERT_OK(orrMemcpyAsync(copy, memory, count * 8, orrMemcpyDeviceToDevice, card.stream));
        ASSERT_OK(orrMemcpyAsync(back.data(), copy, count * 8, orrMemcpyDeviceToHost, card.stream));
        for (std::size_t i = 0; i < count; ++i)
            ASSERT_EQ(back[i], data[i] + static_cast<std::size_t>(round) + 1);
        ASSERT_OK(orrFree(memory));
        ASSERT_OK(orrFree(copy));
    }
}

void hammer_with_threads(int devices) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back(hammer, t % devices, static_cast<std::uint32_t>(t), 25);
    }
    for (auto& thread : threads)
        thread.join();
}

TEST(Stress, ThreadsOnOneCard) {
    hammer_with_threads(1);
}

TEST(TwoCardsStress, ThreadsOnBothCards) {
    hammer_with_threads(2);
}

TEST(Stress, ProcessesBesideEachOther) {
    std::vector<pid_t> workers;
    for (int i = 0; i < 4; ++i)
        workers.push_back(start_worker("add"));
    for (const pid_t worker : workers)
        EXPECT_EQ(wait_for(worker), 0);
}

TEST(Stress, ManyStreams) {
    ASSERT_OK(orrSetDevice(0));
    std::vector<orrStream_t> streams(60);
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 64 * streams.size()));
    for (auto& stream : streams)
        ASSERT_OK(orrStreamCreate(&stream, 0));
    for (int round = 0; round < 20; ++round) {
        for (std::size_t i = 0; i < streams.size(); ++i) {
            ASSERT_OK(orrMemsetAsync(at(memory, 64 * i), round + static_cast<int>(i), 64, streams[i]));
        }
    }
    ASSERT_OK(orrDeviceSynchronize());
    std::vector<std::uint8_t> back(64 * streams.size());
    ASSERT_OK(orrMemcpy(back.data(), memory, back.size(), orrMemcpyDefault));
    for (std::size_t i = 0; i < back.size(); ++i)
        ASSERT_EQ(back[i], 19 + i / 64);
    for (auto& stream : streams)
        ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrFree(memory));
}

}  // namespace
}  // namespace orrery::umd::vm
