// The ways to memory that all parts of a card share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "emulator/model/resource.h"

namespace orrery::emu {

// Rates and latencies, from the SKU.
struct MemoryConfig {
    std::uint64_t vram_bytes_per_second = 800'000'000'000;
    std::uint64_t pcie_bytes_per_second = 32'000'000'000;  // one direction
    ModelTime vram_latency_ps = 0;                         // from a read to its data, the way back included
    ModelTime pcie_latency_ps = 0;                         // the same for host memory
};

// What a piece of work moves, by way.
struct Traffic {
    std::uint64_t vram = 0;       // bytes, both directions together
    std::uint64_t from_host = 0;  // bytes
    std::uint64_t to_host = 0;    // bytes
    Traffic& operator-=(const Traffic& other) {
        vram -= other.vram;
        from_host -= other.from_host;
        to_host -= other.to_host;
        return *this;
    }
    bool any() const { return (vram | from_host | to_host) != 0; }
    friend Traffic operator*(const Traffic& one, std::uint64_t times) {
        return {one.vram * times, one.from_host * times, one.to_host * times};
    }
};

inline constexpr std::uint64_t kMemoryLine = 64;

// Lines that bytes from `address` on touch.
constexpr std::uint64_t lines_of(std::uint64_t address, std::uint64_t bytes) {
    return (address % kMemoryLine + bytes + kMemoryLine - 1) / kMemoryLine;
}

// What one user gets who waits for the first of so many lines before it asks for more; 0: all there is.
constexpr std::uint64_t in_flight_rate(std::uint64_t lines, ModelTime latency) {
    if (lines == 0 || latency == 0) return 0;
    __extension__ using Wide = unsigned __int128;
    const Wide rate = Wide{lines} * kMemoryLine * kPsPerSecond / latency;
    return static_cast<std::uint64_t>(std::clamp<Wide>(rate, 1, Wide{1} << 62));
}

class MemorySystem {
  public:
    explicit MemorySystem(const MemoryConfig& config)
        : config_(config),
          vram_(config.vram_bytes_per_second),
          from_host_(config.pcie_bytes_per_second),
          to_host_(config.pcie_bytes_per_second) {}

    const MemoryConfig& config() const { return config_; }
    // What goes through is counted from now on.
    void count_in(Counters& counters) {
        vram_.count_in(counters, ORR_CTR_VRAM_BYTES, ORR_CTR_VRAM_WAIT_PS);
        from_host_.count_in(counters, ORR_CTR_PCIE_READ_BYTES, ORR_CTR_PCIE_WAIT_PS);
        to_host_.count_in(counters, ORR_CTR_PCIE_WRITE_BYTES, ORR_CTR_PCIE_WAIT_PS);
    }
    const Resource& vram() const { return vram_; }
    // To reserve some of it; `user`: ORR_CTR_VRAM_..._BYTES.
    Resource& vram(orr_counter user) { return vram_.of(user); }
    Resource& from_host() { return from_host_; }
    Resource& to_host() { return to_host_; }
    const Resource& from_host() const { return from_host_; }
    const Resource& to_host() const { return to_host_; }

    // When all of it is through, by memory; see Resource::reserve().
    struct Ends {
        ModelTime vram = 0, host = 0;
    };
    Ends reserve_each(ModelTime now, const Traffic& traffic, orr_counter user) {
        Ends ends{now, now};
        if (traffic.vram != 0) ends.vram = std::max(now, vram(user).reserve(now, traffic.vram));
        if (traffic.from_host != 0) ends.host = std::max(now, from_host_.reserve(now, traffic.from_host));
        if (traffic.to_host != 0) ends.host = std::max(ends.host, to_host_.reserve(now, traffic.to_host));
        return ends;
    }
    ModelTime reserve(ModelTime now, const Traffic& traffic, orr_counter user) {
        const Ends ends = reserve_each(now, traffic, user);
        return std::max(ends.vram, ends.host);
    }

    void reset() {
        vram_.reset();
        from_host_.reset();
        to_host_.reset();
    }

  private:
    MemoryConfig config_;
    Resource vram_, from_host_, to_host_;
};

}  // namespace orrery::emu
