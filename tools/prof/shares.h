// Where the time of a card went.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "tools/prof/analysis.h"

namespace orrery::prof {

inline constexpr double kNearBound = 0.8;

// Each moment is in one place, as shares of its span.
struct Shares {
    double kernels =
        0;  // in which vector cores worked, counted as if all did at once; the sum of the next eight
    double compute = 0, bandwidth = 0, latency = 0, link = 0, item_launch = 0;
    double waits = 0;          // pauses for others: mostly groups that had not come to where these were
    double polling = 0;        // pauses of a launch's only group, for the host or another card
    double uncounted = 0;      // of kernels without counters
    double unused_cores = 0;   // a kernel ran, and cores had nothing to do
    double others_cores = 0;   // or had kernels of other processes of the profile
    double kernel_launch = 0;  // to the first work-group of kernels
    double host_copies = 0;    // copies from and to the host, and no kernel
    double peer_copies = 0;    // the same of other cards
    double inner_copies = 0;   // of the card's own memory, and fills
    double small_copies = 0;   // what copies of few bytes took beyond their bytes, and no kernel ran
    // One direction of PCIe or of links is busy nearly all the time, and for longer than kernels run: what
    // runs beside its copies is hidden by them, so all of their time is theirs.
    bool pcie_is_full = false, links_are_full = false;
    std::array<double, kIdleKinds> idle{};

    double idle_of(Idle why) const { return idle[static_cast<std::size_t>(why)]; }
};
Shares shares_of(const DeviceSums& sums);

// Copies of some directions together.
struct Copies {
    std::uint64_t count = 0, bytes = 0, ps = 0;
    double best_ps = 0;
    std::optional<double> bound;
    double gb_per_s() const {
        return ps == 0 ? 0 : 1e3 * static_cast<double>(bytes) / static_cast<double>(ps);
    }
    double of_bound() const { return ps == 0 ? 0 : best_ps / static_cast<double>(ps); }
    std::uint64_t mean_bytes() const { return count == 0 ? 0 : bytes / count; }
};
Copies copies_of(const DeviceSums& sums, std::initializer_list<Direction> directions);

// It moves what VRAM can, alone or with what runs beside it.
bool is_at_vram(const KernelSums& kernel);

}  // namespace orrery::prof
