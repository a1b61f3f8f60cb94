#include "tools/bench/guest/card.h"

#include <cstring>

#include "tools/bench/guest/clock.h"

namespace orrery::bench {

std::vector<double> CardBench::job_latency(int jobs) {
    std::vector<double> times;
    for (int i = 0; i < jobs; ++i) {
        const std::int64_t begin = now_ns();
        event_.record(stream_);
        event_.synchronize();
        times.push_back(static_cast<double>(now_ns() - begin));
    }
    return times;
}

std::vector<double> CardBench::batched_jobs(int batches, int batch) {
    std::vector<double> times;
    for (int i = 0; i < batches; ++i) {
        const std::int64_t begin = now_ns();
        for (int job = 0; job < batch; ++job)
            event_.record(stream_);
        event_.synchronize();
        times.push_back(static_cast<double>(now_ns() - begin) / batch);
    }
    return times;
}

std::vector<double> CardBench::copy_rate(std::size_t bytes, bool to_card, bool pinned, int rounds) {
    const DeviceArray<std::byte> card(bytes);
    std::vector<std::byte> pageable;
    std::vector<PinnedArray<std::byte>> pinned_memory;
    std::byte* host = nullptr;
    if (pinned) {
        host = pinned_memory.emplace_back(bytes).data();
    } else {
        pageable.resize(bytes);
        host = pageable.data();
    }
    std::memset(host, 1, bytes);
    check(orrMemset(card.data(), 2, bytes));
    std::vector<double> rates;
    for (int i = 0; i < rounds; ++i) {
        const std::int64_t begin = now_ns();
        check(to_card ? orrMemcpy(card.data(), host, bytes, orrMemcpyHostToDevice)
                      : orrMemcpy(host, card.data(), bytes, orrMemcpyDeviceToHost));
        rates.push_back(static_cast<double>(bytes) / static_cast<double>(now_ns() - begin));
    }
    return rates;
}

std::vector<double> memcpy_rate(std::size_t bytes, int rounds) {
    std::vector<std::byte> from(bytes), to(bytes);
    std::memset(from.data(), 1, bytes);
    std::memset(to.data(), 2, bytes);
    std::vector<double> rates;
    for (int i = 0; i < rounds; ++i) {
        const std::int64_t begin = now_ns();
        std::memcpy(to.data(), from.data(), bytes);
        asm volatile("" ::"r"(to.data()) : "memory");
        rates.push_back(static_cast<double>(bytes) / static_cast<double>(now_ns() - begin));
    }
    return rates;
}

}  // namespace orrery::bench
