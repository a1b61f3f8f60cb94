#include "tools/prof/shares.h"

#include <algorithm>
#include <utility>

namespace orrery::prof {
namespace {

constexpr std::uint64_t kSmallCopyBytes = 64 << 10;  // a mean below this: what is not bytes counts
// A kernel that reaches so much of VRAM's bandwidth is limited by that, whatever its cores do meanwhile.
constexpr double kAtVram = 0.9;

}  // namespace

Copies copies_of(const DeviceSums& sums, std::initializer_list<Direction> directions) {
    Copies all;
    for (const CopySums& copy : sums.copies) {
        if (std::ranges::find(directions, copy.direction) == directions.end()) continue;
        all.count += copy.totals.count;
        all.bytes += copy.bytes;
        all.ps += copy.totals.total_ps;
        all.best_ps += copy.best_ps;
        if (copy.bound) all.bound = std::max(copy.bound.value(), all.bound.value_or(0));
    }
    return all;
}

bool is_at_vram(const KernelSums& kernel) {
    return kernel.vram_use >= kAtVram;
}

Shares shares_of(const DeviceSums& sums) {
    Shares shares;
    const auto cores = static_cast<double>(sums.device->cores());
    const double vector = sums.share(sums.vector_ps());
    std::uint64_t runs = 0;
    CounterSums counters;
    for (const KernelSums& kernel : sums.kernels) {
        runs += kernel.totals.count;
        counters.add(kernel.counters);
    }
    // While a kernel ran: its cores, the time to its first group, and cores without work.
    const double used = cores == 0 ? vector
                                   : std::min(vector, sums.share(static_cast<std::uint64_t>(
                                                          static_cast<double>(sums.kernel_used_ps) / cores)));
    const double launch = static_cast<double>(sums.device->bounds.launch_ps.value_or(0));
    shares.kernel_launch =
        std::min(vector - used, sums.share(static_cast<std::uint64_t>(launch * static_cast<double>(runs))));
    shares.unused_cores = vector - used - shares.kernel_launch;
    shares.kernels = used;
    const double counted = sums.kernel_used_ps == 0 ? 0
                                                    : used * static_cast<double>(counters.used_ps) /
                                                          static_cast<double>(sums.kernel_used_ps);
    const auto part = [&](std::uint64_t ps) {
        return counters.used_ps == 0
                   ? 0
                   : counted * static_cast<double>(ps) / static_cast<double>(counters.used_ps);
    };
    shares.uncounted = used - counted;
    shares.latency = part(counters.latency_ps);
    shares.bandwidth = part(counters.bandwidth_ps);
    shares.link = part(counters.link_ps);
    // And what hands groups over to cores.
    shares.item_launch =
        part(counters.launch_ps + counters.used_ps - std::min(counters.used_ps, counters.busy_ps));
    for (const KernelSums& kernel : sums.kernels)
        (kernel.is_alone() ? shares.polling : shares.waits) += part(kernel.counters.pause_ps);
    shares.compute = std::max(0.0, counted - shares.latency - shares.bandwidth - shares.link -
                                       shares.item_launch - shares.waits - shares.polling);
    // Of kernels that move as much as VRAM can, cores compute in the time that the bytes take anyway.
    for (const KernelSums& kernel : sums.kernels) {
        if (!is_at_vram(kernel)) continue;
        const double moves = std::min(shares.compute, part(kernel.counters.computing_ps()));
        shares.compute -= moves;
        shares.bandwidth += moves;
    }
    // What is hidden by copies of a direction that is full.
    Intervals hiding;
    const auto is_full = [&](std::initializer_list<Direction> directions) {
        const std::size_t before = hiding.size();
        for (const Direction direction : directions) {
            const auto found = sums.copy_by.find(direction);
            if (found == sums.copy_by.end()) continue;
            const std::uint64_t ps = length_of(found->second);
            if (sums.share(ps) >= kNearBound && ps > sums.vector_ps())
                hiding.insert(hiding.end(), found->second.begin(), found->second.end());
        }
        return hiding.size() > before;
    };
    shares.links_are_full = is_full({Direction::kFromPeer, Direction::kToPeer});
    shares.pcie_is_full = !shares.links_are_full && is_full({Direction::kFromHost, Direction::kToHost});
    // Copies beside which no kernel ran; of several at a time the first of these counts.
    Intervals taken = sums.vector;
    if (shares.links_are_full || shares.pcie_is_full) {
        taken = without(taken, union_of(std::move(hiding)));
        const double left = static_cast<double>(length_of(taken)) /
                            static_cast<double>(std::max<std::uint64_t>(1, sums.vector_ps()));
        for (double Shares::* const of_kernels :
             {&Shares::kernels, &Shares::compute, &Shares::bandwidth, &Shares::latency, &Shares::link,
              &Shares::item_launch, &Shares::waits, &Shares::polling, &Shares::uncounted,
              &Shares::unused_cores, &Shares::kernel_launch})
            shares.*of_kernels *= left;
    }
    const auto take = [&](std::initializer_list<Direction> directions) {
        Intervals own;
        for (const Direction direction : directions) {
            if (const auto found = sums.copy_by.find(direction); found != sums.copy_by.end())
                own.insert(own.end(), found->second.begin(), found->second.end());
        }
        const Intervals alone = without(union_of(std::move(own)), taken);
        taken.insert(taken.end(), alone.begin(), alone.end());
        taken = union_of(std::move(taken));
        double share = sums.share(length_of(alone));
        const Copies copies = copies_of(sums, directions);
        if (copies.count > 0 && copies.mean_bytes() < kSmallCopyBytes && copies.bound) {
            const double small = share * std::clamp(1 - copies.of_bound(), 0.0, 1.0);
            shares.small_copies += small;
            share -= small;
        }
        return share;
    };
    shares.peer_copies = take({Direction::kFromPeer, Direction::kToPeer, Direction::kOther});
    shares.host_copies = take({Direction::kFromHost, Direction::kToHost, Direction::kUnknown});
    shares.inner_copies = take({Direction::kInside});
    for (std::size_t i = 0; i < kIdleKinds; ++i)
        shares.idle[i] = sums.share(sums.idle_ps[i]);
    return shares;
}

}  // namespace orrery::prof
