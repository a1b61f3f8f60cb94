// orrery-bench-guest: measures the first card from inside the guest, beside QEMU's own NVMe device and
// memcpy, for the suite `card` of orrery-bench.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <string_view>
#include <vector>

#include "tools/bench/guest/card.h"
#include "tools/bench/guest/clock.h"
#include "tools/bench/guest/launches.h"
#include "tools/bench/guest/nvme.h"
#include "tools/bench/guest/sgemm.h"
#include "tools/bench/measured.h"
#include "tools/bench/statistics.h"

namespace {

constexpr int kRounds = 10;  // card and yardstick take turns, so that both see the same noise
constexpr int kJobs = 2000;
constexpr int kReads = 300;
constexpr int kBatch = 32;
constexpr int kCopies = 7;
constexpr int kProducts = 20;
constexpr int kHundreds = 10;
constexpr int kStepped = 30;
constexpr const char* kIdleTool = "/root/bench-idle-tool.so";  // the suite brings it there

void append(std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

std::vector<double> scaled(std::vector<double> values, double factor) {
    for (double& value : values)
        value *= factor;
    return values;
}

void measure_jobs(orrery::bench::Measured& measured, double factor) {
    const auto nvme = orrery::bench::Nvme::open("/dev/nvme0n1");
    if (nvme == nullptr) throw std::runtime_error("no NVMe device: start the guest with orrery-vm --nvme");
    orrery::bench::CardBench card;
    card.job_latency(kJobs);  // warm up
    orrery::bench::LaunchBench launches;
    launches.latency(kJobs);
    std::vector<double> job, read, batch, deep, together, small;
    for (int round = 0; round < kRounds; ++round) {
        append(job, card.job_latency(kJobs));
        append(read, nvme->read_latency(kReads));
        append(small, launches.latency(kJobs));
        append(batch, card.batched_jobs(kJobs / kBatch, kBatch));
        append(deep, nvme->read_at_depth(kReads / kBatch * 4, kBatch, false));
        append(together, nvme->read_at_depth(kReads / kBatch * 4, kBatch, true));
    }
    if (read.empty() || deep.empty() || together.empty())
        throw std::runtime_error("reads of the NVMe device failed");
    const double us = factor / 1e3;
    measured.add({"empty job", {}, scaled(job, us), scaled(read, us)});
    measured.add({"small kernel", {}, scaled(small, us), scaled(read, us)});
    // The way in which the device is faster.
    const bool faster = orrery::bench::summarise(together).median < orrery::bench::summarise(deep).median;
    measured.add({"job in a batch of 32", {}, scaled(batch, us), scaled(faster ? together : deep, us)});
}

void measure_launches(orrery::bench::Measured& measured, double factor) {
    orrery::bench::LaunchBench launches;
    std::vector<double> starts[2], ends[2];  // one by one, and as a graph
    for (int round = 0; round < kHundreds; ++round) {
        for (const bool graph : {false, true}) {
            append(starts[graph], launches.starts(kRounds, graph));
            append(ends[graph], launches.until_end(kRounds, graph));
        }
    }
    const double us = factor / 1e3;
    measured.add({"start of a graph of 100 kernels", {}, scaled(starts[1], us), scaled(starts[0], us)});
    measured.add({"graph of 100 kernels", {}, scaled(ends[1], us), scaled(ends[0], us)});
    measured.add(
        {"launch on a card at work, writes to registers", {}, launches.register_writes(kRounds), {}});
    measured.add({"launch that wakes the card", {}, scaled(launches.waking(kRounds), us), {}});
    // The first launches of a process take other ways than later ones, so those of the same number go
    // together.
    const auto alone = orrery::bench::instructions_of_a_launch(kStepped, nullptr);
    measured.add({"launch, instructions", {}, alone, {}});
    measured.add({"launch beside an idle tool, instructions",
                  {},
                  orrery::bench::instructions_of_a_launch(kStepped, kIdleTool),
                  alone});
}

void measure_copies(orrery::bench::Measured& measured, std::uint64_t bytes, double factor) {
    static constexpr struct {
        const char* name;
        bool to_card, pinned;
    } kWays[] = {{"copy to card, pinned", true, true},
                 {"copy from card, pinned", false, true},
                 {"copy to card, pageable", true, false},
                 {"copy from card, pageable", false, false}};
    orrery::bench::CardBench card;
    for (const auto& way : kWays) {
        const auto memcpy_rates = orrery::bench::memcpy_rate(bytes, kCopies);
        measured.add({way.name, bytes,
                      scaled(card.copy_rate(bytes, way.to_card, way.pinned, kCopies), 1 / factor),
                      scaled(memcpy_rates, 1 / factor)});
    }
}

std::vector<std::uint64_t> parse(int argc, char** argv) {
    std::vector<std::uint64_t> sizes;
    if (argc != 3 || std::string_view(argv[1]) != "--sizes") return sizes;
    const std::string_view text = argv[2];
    for (const char* at = text.data(); at < text.data() + text.size(); ++at) {
        std::uint64_t size = 0;
        const auto [end, error] = std::from_chars(at, text.data() + text.size(), size);
        if (error != std::errc() || size == 0 || (*end != ',' && *end != '\0')) return {};
        sizes.push_back(size);
        at = end;
    }
    return sizes;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--launches") {
        try {
            orrery::bench::LaunchBench().between_breakpoints();
        } catch (const std::exception& error) {
            fmt::print(stderr, "orrery-bench-guest: {}\n", error.what());
            return 1;
        }
    }
    const auto sizes = parse(argc, argv);
    if (sizes.empty()) {
        fmt::print(stderr,
                   "usage: orrery-bench-guest --sizes BYTES,...\nMeasures the first card; for guests started "
                   "with orrery-vm --nvme. orrery-bench makes a table of it.\n");
        return 2;
    }
    try {
        const double factor = orrery::bench::clock_factor().value_or(1);
        orrery::bench::Measured measured;
        measure_jobs(measured, factor);
        measure_launches(measured, factor);
        measured.add({"SGEMM 128^3", {}, scaled(orrery::bench::sgemm_times(kProducts), factor / 1e6), {}});
        for (const std::uint64_t size : sizes)
            measure_copies(measured, size, factor);
        return measured.print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "orrery-bench-guest: {}\n", error.what());
        return 1;
    }
}
