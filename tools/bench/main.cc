// orrery-bench: measures a card from inside the guest, beside QEMU's own NVMe device. Prints JSON for
// orrery-bench-report; `make bench` runs both.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/bench/card.h"
#include "tools/bench/clock.h"
#include "tools/bench/nvme.h"
#include "tools/bench/sgemm.h"
#include "tools/bench/statistics.h"

namespace {

using orrery::bench::summarise;
using Json = nlohmann::ordered_json;

constexpr int kRounds = 10;  // card and yardstick take turns, so that both see the same noise
constexpr int kJobs = 2000;
constexpr int kReads = 300;
constexpr int kBatch = 32;
constexpr int kProducts = 20;
constexpr std::size_t kCopyBytes = 64 << 20;

void append(std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

// Time scaled to real time.
Json times(const std::vector<double>& ns, double factor) {
    const auto s = summarise(ns);
    return {
        {"median", s.median * factor}, {"p10", s.p10 * factor}, {"p90", s.p90 * factor}, {"count", s.count}};
}

Json rates(const std::vector<double>& bytes_per_ns, double factor) {
    const auto s = summarise(bytes_per_ns);
    return {
        {"median", s.median / factor}, {"p10", s.p10 / factor}, {"p90", s.p90 / factor}, {"count", s.count}};
}

int measure() {
    const orrDeviceProp prop = orrery::device_properties(0);
    const auto nvme = orrery::bench::Nvme::open("/dev/nvme0n1");
    if (nvme == nullptr) return 1;
    const auto factor = orrery::bench::clock_factor();
    orrery::bench::CardBench card;
    card.job_latency(kJobs);  // warm up
    std::vector<double> job, read, batch, deep;
    for (int round = 0; round < kRounds; ++round) {
        append(job, card.job_latency(kJobs));
        append(read, nvme->read_latency(kReads));
        append(batch, card.batched_jobs(kJobs / kBatch, kBatch));
        append(deep, nvme->read_at_depth(kReads / kBatch * 4, kBatch));
    }
    if (read.empty() || deep.empty()) {
        fmt::print(stderr, "orrery-bench: reads of the NVMe device failed\n");
        return 1;
    }
    const double f = factor.value_or(1);
    Json result = {{"sku", prop.name},
                   {"seed", nullptr},
                   {"clock_factor", factor ? Json(*factor) : Json(nullptr)},
                   {"job_latency_ns", times(job, f)},
                   {"nvme_read_ns", times(read, f)},
                   {"batched_job_ns", times(batch, f)},
                   {"nvme_deep_read_ns", times(deep, f)},
                   {"sgemm_ns", times(orrery::bench::sgemm_times(kProducts), f)},
                   {"memcpy_gbps", rates(orrery::bench::memcpy_rate(kCopyBytes, 5), f)},
                   {"h2d_pinned_gbps", rates(card.copy_rate(kCopyBytes, true, true, 5), f)},
                   {"d2h_pinned_gbps", rates(card.copy_rate(kCopyBytes, false, true, 5), f)},
                   {"h2d_pageable_gbps", rates(card.copy_rate(kCopyBytes, true, false, 5), f)},
                   {"d2h_pageable_gbps", rates(card.copy_rate(kCopyBytes, false, false, 5), f)}};
    fmt::print("{}\n", result.dump(2));
    return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) {
        const bool help = std::string_view(argv[1]) == "--help";
        fmt::print(
            help ? stdout : stderr,
            "usage: orrery-bench\nMeasures the first card and QEMU's NVMe device; for guests started with "
            "orrery-vm --nvme.\nPrints JSON; `make bench` makes a table of it.\n");
        return help ? 0 : 2;
    }
    try {
        return measure();
    } catch (const std::exception& error) {
        fmt::print(stderr, "orrery-bench: {}\n", error.what());
        return 1;
    }
}
