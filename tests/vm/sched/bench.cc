#include "tests/vm/sched/bench.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace orrery::sched_test {

Stream::Stream(const char* name, int priority, std::uint32_t weight, std::uint32_t slice_us,
               std::uint32_t limit_us) {
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.name = name;
    attributes.priority = priority;
    attributes.weight = weight;
    attributes.slice_us = slice_us;
    attributes.limit_us = limit_us;
    EXPECT_OK(orrStreamCreateWithAttributes(&stream_, &attributes));
}

orrStreamStats Stream::stats() const {
    orrStreamStats stats = ORR_INIT(orrStreamStats);
    EXPECT_OK(orrStreamGetStats(&stats, stream_));
    return stats;
}

void Stream::destroy() {
    if (stream_ != nullptr) EXPECT_OK(orrStreamDestroy(std::exchange(stream_, nullptr)));
}

Semaphore::Semaphore(const char* name) {
    EXPECT_OK(orrSemaphoreCreate(&semaphore_, 0));
    EXPECT_OK(orrSemaphoreSetName(semaphore_, name));
}

Mark::Mark(const Stream& stream) {
    EXPECT_OK(orrEventCreate(&event_, 0));
    EXPECT_OK(orrEventRecord(event_, stream.get()));
}

std::uint64_t Mark::ps() const {
    std::uint64_t ps = 0;
    EXPECT_OK(orrEventSynchronize(event_));
    EXPECT_OK(orrEventGetModelTime(&ps, event_));
    return ps;
}

namespace {

constexpr std::uint64_t kSeed = 20261121;

}  // namespace

Count::Count(const Card& card, std::uint32_t groups, std::uint64_t us)
    : kernel_(card.kernel("count_up")), groups_(groups), iterations_(us * kIterationsPerUs) {
    void* memory = nullptr;
    EXPECT_OK(orrMallocHost(&memory, 2 * sizeof(std::uint64_t) * groups, 0));
    words_ = static_cast<std::uint64_t*>(memory);
    std::fill_n(words_, 2 * groups, 0);
}

void Count::launch(const Stream& stream) const {
    const TestArgs args{words_, iterations_, kSeed};
    EXPECT_OK(orrLaunchKernel(kernel_, {groups_, 1, 1}, {1, 1, 1}, &args, sizeof(args), 0, stream.get()));
}

void Count::wait_for_begin(std::uint32_t groups) const {
    for (std::uint32_t g = 0; g < groups; ++g) {
        while (std::atomic_ref(words_[g]).load(std::memory_order_acquire) == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

bool Count::right() const {
    for (std::uint32_t g = 0; g < groups_; ++g) {
        std::uint64_t x = kSeed + g;
        for (std::uint64_t i = 0; i < iterations_; ++i)
            x = x * 6364136223846793005ull + 1442695040888963407ull;
        if (words_[g] != 1 || words_[groups_ + g] != x) return false;
    }
    return true;
}

}  // namespace orrery::sched_test
