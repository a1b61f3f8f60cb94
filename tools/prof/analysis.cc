#include "tools/prof/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/prof/use_over_time.h"

namespace orrery::prof {
namespace {

// Of what one stream waited for, and when it went on.
std::string who_of(const Activity& activity, const WorkRecord& wait) {
    if (wait.from_name != 0) return std::string(activity.text(wait.from_name));
    switch (static_cast<From>(wait.from)) {
        case From::kStream: {
            const auto stream =
                std::ranges::lower_bound(activity.streams, wait.from_stream, {}, &StreamModel::number);
            if (stream == activity.streams.end() || stream->number != wait.from_stream)
                return "a stream whose work is not here";
            return fmt::format("{} ({})", activity.text(stream->name), stream->number);
        }
        case From::kHost:
            return "the host";
        case From::kOutside:
            return "another process or machine";
        case From::kUnknown:
            break;
    }
    return "unknown";
}

template <typename Row>
void longest_first(std::vector<Row>& rows) {
    largest_first(rows, [](const Row& row) { return row.totals.total_ps; });
}

class DeviceSummer {
  public:
    DeviceSummer(const Activity& activity, const DeviceModel& device,
                 const std::map<std::uint32_t, std::vector<std::uint64_t>>& known_done)
        : activity_(activity), device_(device), known_done_(known_done) {
        sums_.device = &device;
        sums_.span_ps = device.end_ps - device.begin_ps;
        sums_.quota_permille = sku(kQuotaPermille);
        sums_.quota_period_us = sku(kQuotaPeriod);
    }

    DeviceSums sum() {
        for (const std::uint32_t i : device_.work)
            add(i);
        for (auto& [stream, waits] : stream_waits_)
            sort_waits(waits);
        sort_waits(all_waits_);
        sums_.vector = union_of(std::move(sums_.vector));
        sums_.copy = union_of(std::move(sums_.copy));
        for (auto& [direction, times] : sums_.copy_by)
            times = union_of(std::move(times));
        Intervals all = sums_.vector;
        all.insert(all.end(), sums_.copy.begin(), sums_.copy.end());
        sums_.engines = union_of(std::move(all));
        sums_.overlap_ps = length_of(both(sums_.vector, sums_.copy));
        find_gaps();
        vram_.settle();
        Intervals counted;
        for (auto& [name, kernel] : kernels_) {
            kernel.name = name;
            Intervals& own = counted_[&kernel];
            settle_roofline(kernel, own);
            sums_.roofline.add(kernel.roofline);
            counted.insert(counted.end(), own.begin(), own.end());
            sums_.kernels.push_back(std::move(kernel));
        }
        sums_.roofline.ps = length_of(union_of(std::move(counted)));
        for (auto& [key, copy] : copies_)
            sums_.copies.push_back(std::move(copy));
        for (auto& [key, wait] : waits_)
            sums_.waits.push_back(std::move(wait));
        longest_first(sums_.kernels);
        longest_first(sums_.copies);
        longest_first(sums_.waits);
        return std::move(sums_);
    }

  private:
    std::uint64_t sku(std::string_view key) const {
        const auto found = device_.sku.find(key);
        return found == device_.sku.end() ? 0 : found->second;
    }
    void add(std::uint32_t number) {
        const Work& one = activity_.work[number];
        const WorkRecord& work = *one.record;
        const Interval time{work.begin_ps, work.end_ps};
        switch (one.operation()) {
            case Operation::kKernel:
                sums_.vector.push_back(time);
                add_kernel(one);
                break;
            case Operation::kCopy:
                sums_.copy.push_back(time);
                sums_.copy_by[direction_of(work)].push_back(time);
                use_vram(time,
                         vram_passes(direction_of(work), one.reduces()) * static_cast<double>(work.bytes));
                add_copy(one);
                break;
            case Operation::kFill:
                sums_.copy.push_back(time);
                sums_.copy_by[Direction::kInside].push_back(time);
                use_vram(time, static_cast<double>(work.bytes));
                sums_.fills.add(one.ps(), one.outcome() == Outcome::kFailed);
                break;
            case Operation::kWait: {
                std::string who = who_of(activity_, work);
                WaitSums& wait = waits_[{work.from, who}];
                wait.from = std::move(who);
                wait.kind = static_cast<From>(work.from);
                wait.totals.add(one.ps(), one.outcome() == Outcome::kFailed);
                stream_waits_[one.stream].push_back(&work);
                all_waits_.push_back(&work);
                break;
            }
            case Operation::kOther:
                break;
        }
    }
    void add_kernel(const Work& one) {
        const WorkRecord& work = *one.record;
        KernelSums& kernel = kernels_[std::string(activity_.name(one))];
        sums_.kernel_used_ps += work.used_ps;
        kernel.used_ps += work.used_ps;
        if (work.groups != 0) {
            kernel.groups = work.groups;
            kernel.least_groups = std::min(kernel.least_groups, work.groups);
            kernel.most_groups = std::max(kernel.most_groups, work.groups);
        }
        if (one.counters != nullptr) {
            kernel.counters.add(one);
            add_roofline(kernel.roofline, one);
            counted_[&kernel].push_back({work.begin_ps, work.end_ps});
        }
        const KernelRuns::Run run = runs_.add(one);
        if (run.ps != one.ps()) sums_.preempted_ps += work.begin_ps - std::min(run.last_end, work.begin_ps);
        if (!run.done) {
            ++sums_.preemptions;
            begun_.try_emplace({work.stream, work.index}, work.begin_ps);
            return;
        }
        kernel.totals.add(run.ps, one.outcome() == Outcome::kFailed);
    }
    void use_vram(const Interval& time, double bytes) {
        if (device_.bounds.vram_gb_per_s) vram_.add(time, 1e3 * bytes / *device_.bounds.vram_gb_per_s);
    }
    // Joins `counted`, the times of its runs.
    void settle_roofline(KernelSums& kernel, Intervals& counted) const {
        counted = union_of(std::move(counted));
        kernel.roofline.ps = length_of(counted);
        double used_ps = 0;
        for (const Interval& time : counted)
            used_ps += vram_.within(time);
        if (kernel.roofline.ps != 0) kernel.vram_use = used_ps / static_cast<double>(kernel.roofline.ps);
    }
    void add_roofline(Roofline& roofline, const Work& one) {
        const WorkCountersRecord& counters = *one.counters;
        const Bounds& bounds = device_.bounds;
        ++roofline.runs;
        const auto flops = [&](std::uint64_t count, std::optional<double> gflops) {
            roofline.flops += static_cast<double>(count);
            if (gflops) roofline.compute_ps += 1e3 * static_cast<double>(count) / *gflops;
        };
        flops(counters.flops_f16, bounds.gflops_f16);
        flops(counters.flops_f32, bounds.gflops_f32);
        flops(counters.flops_f64, bounds.gflops_f64);
        const double bytes =
            static_cast<double>(counters.vram_read) + static_cast<double>(counters.vram_written);
        roofline.bytes += bytes;
        if (bounds.vram_gb_per_s) roofline.memory_ps += 1e3 * bytes / *bounds.vram_gb_per_s;
        use_vram({one.record->begin_ps, one.record->end_ps}, bytes);
    }
    void add_copy(const Work& one) {
        const WorkRecord& work = *one.record;
        const Direction direction = direction_of(work);
        const std::int32_t peer = direction == Direction::kFromPeer ? work.source
                                  : direction == Direction::kToPeer ? work.destination
                                                                    : -1;
        CopySums& copy = copies_[{direction, peer, one.reduces()}];
        copy.direction = direction;
        copy.reduces = one.reduces();
        copy.peer = peer;
        copy.totals.add(one.ps(), one.outcome() == Outcome::kFailed);
        copy.bytes += work.bytes;
        const auto bound = device_.copy_bound(one);
        if (!bound || *bound <= 0) return;
        copy.bound = bound;
        copy.best_ps += 1e3 * static_cast<double>(work.bytes) / *bound;
    }

    void find_gaps() {
        const Intervals gaps = without({{device_.begin_ps, device_.end_ps}}, sums_.engines);
        // What begins when a gap ends.
        std::size_t next = 0;
        std::uint64_t before_ns = 0;  // of the work before the gap, what was submitted last
        for (const Interval& time : gaps) {
            for (; next < device_.work.size(); ++next) {
                const Work& one = activity_.work[device_.work[next]];
                if (one.operation() == Operation::kWait) continue;
                if (one.record->begin_ps >= time.end) break;
                before_ns = std::max(before_ns, one.record->submitted_ns);
            }
            Gap gap{time, Idle::kLaunch, next < device_.work.size() ? device_.work[next] : kNone, {}};
            explain(gap, before_ns);
            sums_.idle_ps[static_cast<std::size_t>(gap.why)] += time.end - time.begin;
            if (!gap.who.empty()) sums_.idle_who[gap.who] += time.end - time.begin;
            sums_.gaps.push_back(std::move(gap));
        }
        largest_first(sums_.gaps, [](const Gap& gap) { return gap.time.end - gap.time.begin; });
    }
    void explain(Gap& gap, std::uint64_t before_ns) const {
        if (gap.ended_by == kNone) {
            (void)explain_by_wait(gap, last_wait(all_waits_, gap.time));  // only waits are behind it
            return;
        }
        const Work& next = activity_.work[gap.ended_by];
        const auto waits = stream_waits_.find(next.stream);
        if (waits != stream_waits_.end() && explain_by_wait(gap, last_wait(waits->second, gap.time))) return;
        const auto begun = begun_.find({next.record->stream, next.record->index});
        if (begun != begun_.end() && begun->second < next.record->begin_ps) {
            gap.why = Idle::kHeldBack;
            return;
        }
        // Submitted after all that ran before.
        const bool later = before_ns != 0 && before_ns < next.record->submitted_ns;
        const std::uint64_t length = gap.time.end - gap.time.begin;
        if (later && waited_between(before_ns, next.record->submitted_ns)) {
            gap.why = Idle::kHost;
        } else if (length > kLongestLaunchPs) {
            const std::uint64_t late_ns = later ? next.record->submitted_ns - before_ns : 0;
            gap.why = late_ns > length / 1000 ? Idle::kHost : Idle::kHeldBack;
        }
    }
    using Waits = std::vector<const WorkRecord*>;
    static void sort_waits(Waits& waits) {
        std::ranges::sort(waits, {}, [](const WorkRecord* wait) { return wait->end_ps; });
    }
    // That ended last, within the gap.
    static const WorkRecord* last_wait(const Waits& waits, const Interval& time) {
        const auto behind = std::ranges::upper_bound(waits, time.end, {},
                                                     [](const WorkRecord* wait) { return wait->end_ps; });
        if (behind == waits.begin() || (*std::prev(behind))->end_ps < time.begin) return nullptr;
        return *std::prev(behind);
    }
    bool explain_by_wait(Gap& gap, const WorkRecord* wait) const {
        if (wait == nullptr) return false;
        switch (static_cast<From>(wait->from)) {
            case From::kHost:
                gap.why = Idle::kHostWait;
                break;
            case From::kOutside:
                gap.why = Idle::kOutside;
                break;
            case From::kStream: {
                const auto stream =
                    std::ranges::lower_bound(activity_.streams, wait->from_stream, {}, &StreamModel::number);
                // Of this card: its work was done when the gap began, and only the signal was on its way.
                if (stream == activity_.streams.end() || stream->number != wait->from_stream ||
                    stream->device == device_.number)
                    return false;
                gap.why = Idle::kOtherCard;
                break;
            }
            case From::kUnknown:
                return false;
        }
        gap.who = who_of(activity_, *wait);
        return true;
    }
    bool waited_between(std::uint64_t begin_ns, std::uint64_t end_ns) const {
        return std::ranges::any_of(known_done_, [&](const auto& thread) {
            const auto found = std::ranges::lower_bound(thread.second, begin_ns);
            return found != thread.second.end() && *found <= end_ns;
        });
    }

    using PartKey = std::pair<std::uint64_t, std::uint64_t>;
    const Activity& activity_;
    const DeviceModel& device_;
    const std::map<std::uint32_t, std::vector<std::uint64_t>>& known_done_;
    DeviceSums sums_;
    std::map<std::string, KernelSums> kernels_;
    std::map<const KernelSums*, Intervals> counted_;  // when those of its runs were that were counted
    UseOverTime vram_;                                // as what it takes at least
    std::map<std::tuple<Direction, std::int32_t, bool>, CopySums> copies_;  // and whether it reduces
    std::map<std::pair<std::uint32_t, std::string>, WaitSums> waits_;
    KernelRuns runs_;
    std::map<PartKey, std::uint64_t> begun_;  // first parts of kernels that were preempted
    std::map<std::uint32_t, Waits> stream_waits_;
    Waits all_waits_;
};

// When each thread came back from a call that waits for cards.
std::map<std::uint32_t, std::vector<std::uint64_t>> blocking_ends(const Activity& activity) {
    std::map<std::uint32_t, std::vector<std::uint64_t>> ends;
    for (const CallRecord& call : activity.process->calls) {
        if (is_blocking(activity.text(call.head.text))) ends[call.thread].push_back(call.end_ns);
    }
    for (auto& [thread, all] : ends)
        std::ranges::sort(all);
    return ends;
}

// By the host's clock: what was submitted counts as being worked on until its thread has waited for it.
void find_host_times(Sums& sums, const std::map<std::uint32_t, std::vector<std::uint64_t>>& ends) {
    const Activity& activity = *sums.activity;
    Intervals outstanding;
    for (const Work& one : activity.work) {
        const std::uint64_t begin = one.record->submitted_ns;
        const auto thread = ends.find(one.record->thread);
        if (thread == ends.end()) continue;
        const auto end = std::ranges::lower_bound(thread->second, begin);
        outstanding.push_back({begin, std::max(begin, end == thread->second.end() ? activity.end_ns : *end)});
    }
    if (outstanding.empty()) return;
    outstanding = union_of(std::move(outstanding));
    if (outstanding.empty()) return;
    sums.working_ns = outstanding.back().end - outstanding.front().begin;
    const Intervals nothing = without({{outstanding.front().begin, outstanding.back().end}}, outstanding);
    sums.nothing_submitted_ns = length_of(nothing);
    Intervals calls;
    for (const CallRecord& call : activity.process->calls)
        calls.push_back({call.begin_ns, call.end_ns});
    sums.own_ns = length_of(without(nothing, union_of(std::move(calls))));
}

}  // namespace

void CounterSums::add(const Work& work) {
    const WorkCountersRecord& counters = *work.counters;
    ++runs;
    used_ps += work.record->used_ps;
    busy_ps += counters.busy_ps;
    latency_ps += counters.latency_ps;
    bandwidth_ps += counters.bandwidth_ps;
    link_ps += counters.link_ps;
    launch_ps += counters.launch_ps;
    pause_ps += counters.pause_ps;
    queued_ps += counters.queued_ps;
    instructions += counters.instructions;
    simd_int += counters.simd_int;
    simd += counters.simd_int + counters.simd_fp + counters.simd_moves + counters.simd_loads +
            counters.simd_stores;
    lanes += counters.lanes;
    lanes_active += counters.lanes_active;
    vram_bytes += counters.vram_read + counters.vram_written;
    host_bytes += counters.host_read + counters.host_written;
    link_bytes += counters.link_read + counters.link_written;
}

void CounterSums::add(const CounterSums& others) {
    runs += others.runs;
    used_ps += others.used_ps;
    busy_ps += others.busy_ps;
    latency_ps += others.latency_ps;
    bandwidth_ps += others.bandwidth_ps;
    link_ps += others.link_ps;
    launch_ps += others.launch_ps;
    pause_ps += others.pause_ps;
    queued_ps += others.queued_ps;
    instructions += others.instructions;
    simd += others.simd;
    simd_int += others.simd_int;
    lanes += others.lanes;
    lanes_active += others.lanes_active;
    vram_bytes += others.vram_bytes;
    host_bytes += others.host_bytes;
    link_bytes += others.link_bytes;
}

void Roofline::add(const Roofline& others) {
    runs += others.runs;
    flops += others.flops;
    bytes += others.bytes;
    compute_ps += others.compute_ps;
    memory_ps += others.memory_ps;
}

double KernelSums::core_use(std::uint32_t cores) const {
    if (cores == 0 || totals.total_ps == 0) return 0;
    return static_cast<double>(used_ps) / (static_cast<double>(totals.total_ps) * cores);
}

std::string CopySums::way() const {
    if (direction == Direction::kFromPeer) return fmt::format("from device {}", peer);
    if (direction == Direction::kToPeer)
        return static_cast<Place>(peer) == Place::kElsewhere ? "to another machine"
                                                             : fmt::format("to device {}", peer);
    return name_of(direction);
}

const char* name_of(Idle idle) {
    switch (idle) {
        case Idle::kHost:
            return "host";
        case Idle::kHostWait:
            return "signal of the host";
        case Idle::kOutside:
            return "another process or machine";
        case Idle::kOtherCard:
            return "another card";
        case Idle::kHeldBack:
            return "held back";
        case Idle::kLaunch:
            break;
    }
    return "launch";
}

bool is_blocking(std::string_view call) {
    static constexpr std::string_view kNames[] = {
        "orrMemcpy",        "orrMemcpy2D",  "orrMemcpy3D",  "orrMemcpyND",     "orrMemset",
        "orrMemset2D",      "orrMemsetD16", "orrMemsetD32", "orrMemsetD64",    "orrMemcpyReduce",
        "orrSemaphoreWait", "orrFree",      "orrFreeHost",  "orrStreamDestroy"};
    return call.ends_with("Synchronize") || std::ranges::find(kNames, call) != std::end(kNames);
}

Sums sums_of(const Activity& activity) {
    Sums sums;
    sums.activity = &activity;
    std::map<std::string, CallSums> calls;
    for (const CallRecord& call : activity.process->calls) {
        CallSums& one = calls[std::string(activity.text(call.head.text))];
        const std::uint64_t ns = call.end_ns - call.begin_ns;
        one.totals.add(ns > ~std::uint64_t{0} / 1000 ? ~std::uint64_t{0} : ns * 1000, call.error != 0);
    }
    for (auto& [name, one] : calls) {
        one.name = name;
        sums.calls.push_back(std::move(one));
    }
    longest_first(sums.calls);
    const auto ends = blocking_ends(activity);
    for (const DeviceModel& device : activity.devices) {
        if (!device.work.empty()) sums.devices.push_back(DeviceSummer(activity, device, ends).sum());
    }
    find_host_times(sums, ends);
    return sums;
}

}  // namespace orrery::prof
