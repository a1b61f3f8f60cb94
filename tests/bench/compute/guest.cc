// bench_compute_guest: does on the first card what its standard input names, a name a line, and answers each
// with a line: seconds of the host from the call until the result is there, and nanoseconds of model time.
// bench_compute asks it.
#include <fmt/format.h>

#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/compute/shape.h"
#include "tools/bench/guest/clock.h"
#include "umd/samples/attention/kernels.h"
#include "umd/samples/gemm/kernels.h"

ORR_EMBEDDED_KERNEL(compute_kernels);
ORR_EMBEDDED_KERNEL(gemm_kernels);
ORR_EMBEDDED_KERNEL(attention_kernels);

namespace {

constexpr std::size_t kBytes = kElements * sizeof(float);
constexpr std::uint32_t kHeads = 8, kLength = 512, kWidth = 64;

// A number of the card's SKU.
double sku(std::string_view key) {
    std::ifstream in(
        fmt::format("/sys/bus/pci/devices/{}/sku_table", orrery::device_properties(0).pci_address));
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(key) && line[key.size()] == '\t') return std::stod(line.substr(key.size() + 1));
    }
    throw std::runtime_error(fmt::format("the card does not say its {}", key));
}

class Card {
  public:
    Card() {
        for (std::size_t i = 0; i < kElements; ++i)
            host_.data()[i] = 1;
        orrery::copy(x_.data(), host_.data(), kBytes);
        orrery::copy(y_.data(), host_.data(), kBytes);
        for (const char* loop : {"saxpy", "triad", "reduction"})
            run(loop);
        orrery::copy(host_.data(), y_.data(), kBytes);
        want("saxpy", 1 + kFactor);
        orrery::copy(host_.data(), z_.data() + kGroups, kBytes - kGroups * sizeof(float));
        want("triad", 1 + kFactor * (1 + kFactor));
        orrery::copy(host_.data(), z_.data(), kGroups * sizeof(float));
        if (host_.data()[kGroups - 1] != static_cast<float>(kElements / kGroups))
            throw std::runtime_error("reduction: a wrong result");
    }

    // What `name` stands for, measured or looked up.
    std::string answer(const std::string& name) {
        if (name == "vector peak")  // GFLOP/s: a multiply-add is two
            return said(2e-9 * sku("vector.cores") * sku("vector.hz") * sku("vector.datapath_bits") / 32);
        if (name == "memory peak") return said(sku("copy.vram_gb_per_s"));
        const double began = static_cast<double>(orrery::bench::now_ns());
        // One wait, as there is one call on the other side.
        begin_.record(stream_);
        start(name);
        end_.record(stream_);
        stream_.synchronize();
        const double ns = static_cast<double>(orrery::bench::now_ns()) - began;
        return fmt::format("{} {}", ns * 1e-9 * factor_, end_.model_ns_since(begin_));
    }

  private:
    static std::string said(double number) { return fmt::format("{} 0", number); }
    void want(const char* what, float value) const {
        for (std::size_t i = 0; i < kElements - kGroups; ++i) {
            if (host_.data()[i] != value)
                throw std::runtime_error(
                    fmt::format("{}: element {} is {}, not {}", what, i, host_.data()[i], value));
        }
    }
    void start(const std::string& name) {
        const auto it = runs_.find(name);
        if (it == runs_.end()) throw std::runtime_error(fmt::format("'{}' is not known here", name));
        it->second();
    }
    void in_a_row(const char* way) {
        for (int i = 0; i < kInARow; ++i)
            start(way);
    }
    void run(const std::string& name) {
        start(name);
        stream_.synchronize();
    }
    void loop(const char* kernel) const {
        orrery::launch(compute_.function(kernel), {kGroups, 1, 1}, {1, 1, 1},
                       LoopArgs{x_.data(), y_.data(), z_.data()}, 0, stream_);
    }
    void gemm() const {
        const GemmArgs args{x_.data(), y_.data(), z_.data(), kMatrix, kMatrix, kMatrix, 1};
        orrery::launch(gemm_.function("gemm"), {(kMatrix + kGemmRows - 1) / kGemmRows, 1, kGemmColumns},
                       {1, 1, 1}, args, sizeof(GemmLocal), stream_);
    }
    void attention() const {
        const AttentionArgs args{x_.data(), y_.data(), y_.data(), z_.data(), kLength, kWidth, 0.125f, 0};
        orrery::launch(attention_.function("attention"),
                       {(kLength + kAttentionQueries - 1) / kAttentionQueries, kHeads, 1}, {1, 1, 1}, args,
                       sizeof(AttentionLocal), stream_);
    }

    orrery::PinnedArray<float> host_{kElements};
    orrery::DeviceArray<float> x_{kElements}, y_{kElements}, z_{kElements};
    orrery::Library compute_{compute_kernels_image()}, gemm_{gemm_kernels_image()},
        attention_{attention_kernels_image()};
    orrery::Stream stream_;
    orrery::Event begin_, end_;
    double factor_ = orrery::bench::clock_factor().value_or(1);
    const std::map<std::string, std::function<void()>> runs_ = {
        {"saxpy", [this] { loop("saxpy"); }},
        {"triad", [this] { loop("triad"); }},
        {"reduction", [this] { loop("sum"); }},
        {"sgemm", [this] { gemm(); }},
        {"attention", [this] { attention(); }},
        {"to card", [this] { orrery::copy(x_.data(), host_.data(), kBytes, stream_); }},
        {"from card", [this] { orrery::copy(host_.data(), x_.data(), kBytes, stream_); }},
        {"to card, in a row", [this] { in_a_row("to card"); }},
        {"from card, in a row", [this] { in_a_row("from card"); }},
    };
};

}  // namespace

int main() {
    try {
        Card card;
        for (std::string name; std::getline(std::cin, name);)
            std::cout << card.answer(name) << std::endl;
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_compute_guest: {}\n", error.what());
        return 1;
    }
}
