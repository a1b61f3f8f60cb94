#include "tools/prof/stream_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <tuple>

#include "tools/prof/analysis.h"

namespace orrery::prof {

SignalIndex::SignalIndex(const Activity& activity) {
    for (const SignalRecord& signal : activity.process->signals) {
        if (signal.stream != 0)
            by_packet_.try_emplace({signal.stream, signal.index}, &signal);
        else if (signal.semaphore != 0)
            by_semaphore_[signal.semaphore].push_back(&signal);
    }
    // They stand in the file as cards were asked for them. One that says less than another and comes later by
    // the same card's clock ended nobody's wait: what a file says is anybody's.
    for (auto& [semaphore, all] : by_semaphore_) {
        std::ranges::sort(all, std::ranges::greater{},
                          [](const SignalRecord* one) { return std::tuple(one->value, one->time_ps, one); });
        std::map<std::uint32_t, std::uint64_t> earliest;  // of a card's so far, which say as much or more
        std::erase_if(all, [&](const SignalRecord* one) {
            const auto [known, first] = earliest.try_emplace(one->device, one->time_ps);
            if (!first && known->second < one->time_ps) return true;
            known->second = one->time_ps;
            return false;
        });
        std::ranges::reverse(all);
    }
}

const SignalRecord* SignalIndex::ender_of(const Work& wait) const {
    if (wait.operation() != Operation::kWait) return nullptr;
    const WorkRecord& record = *wait.record;
    const auto from = static_cast<From>(record.from);
    if (from == From::kStream) {
        const auto found = by_packet_.find({record.from_stream, record.from_index});
        return found == by_packet_.end() ? nullptr : found->second;
    }
    if (from != From::kHost || record.semaphore == 0) return nullptr;
    const auto all = by_semaphore_.find(record.semaphore);
    if (all == by_semaphore_.end()) return nullptr;
    const auto first = std::ranges::lower_bound(all->second, record.value, {},
                                                [](const SignalRecord* one) { return one->value; });
    return first == all->second.end() ? nullptr : *first;
}

std::vector<SignalSums> signal_sums(const Activity& activity, std::uint32_t device) {
    std::map<const SignalRecord*, std::uint64_t> ended;
    const SignalIndex index(activity);
    for (const Work& one : activity.work) {
        if (const SignalRecord* const ender = index.ender_of(one)) ++ended[ender];
    }
    std::map<std::pair<std::string_view, std::string_view>, SignalSums> sums;
    for (const SignalRecord& signal : activity.process->signals) {
        if (signal.device != device) continue;
        const std::string_view name = activity.text(signal.head.text), by = activity.text(signal.stream_name);
        SignalSums& own = sums[{name, by}];
        own.semaphore = name;
        own.by = by;
        ++own.count;
        own.failed += static_cast<Outcome>(signal.outcome) == Outcome::kFailed ? 1 : 0;
        const bool elsewhere = static_cast<Place>(signal.memory) == Place::kElsewhere;
        const bool others = signal.memory >= 0 && static_cast<std::uint32_t>(signal.memory) != device;
        own.over_links += elsewhere || others ? 1 : 0;
        if (const auto found = ended.find(&signal); found != ended.end()) own.ended += found->second;
    }
    std::vector<SignalSums> all;
    for (auto& [key, own] : sums)
        all.push_back(std::move(own));
    std::ranges::sort(all, {}, [](const SignalSums& one) {
        return std::tuple(~one.count, std::string_view(one.semaphore), std::string_view(one.by));
    });
    return all;
}

std::vector<MarkRow> mark_rows(const Activity& activity, std::uint32_t device) {
    std::vector<MarkRow> rows;
    for (const StreamMarkRecord& mark : activity.process->stream_marks) {
        if (mark.device == device) rows.push_back({&mark, {}});
    }
    std::ranges::sort(rows, {}, [](const MarkRow& row) {
        return std::tuple(row.mark->stream, row.mark->index, row.mark);  // as they stand there
    });
    for (std::size_t i = 1; i < rows.size(); ++i) {
        const StreamMarkRecord &before = *rows[i - 1].mark, &own = *rows[i].mark;
        if (before.stream == own.stream && before.time_ps != 0 && own.time_ps >= before.time_ps)
            rows[i].since_ps = own.time_ps - before.time_ps;
    }
    return rows;
}

std::optional<std::uint64_t> moment_ns(const Activity& activity, const SignalRecord& signal) {
    const DeviceModel* const device = activity.device(signal.device);
    return device == nullptr ? std::nullopt : device->moment_ns(signal.time_ps);
}

std::optional<std::uint64_t> moment_ns(const Activity& activity, const StreamMarkRecord& mark) {
    if (mark.time_ps == 0) return mark.submitted_ns;
    const DeviceModel* const device = activity.device(mark.device);
    return device == nullptr ? std::nullopt : device->moment_ns(mark.time_ps);
}

std::string title_of(const Activity& activity, const SignalRecord& signal) {
    const std::string_view name = activity.text(signal.head.text);
    return name.empty() ? fmt::format("signal {}", signal.value)
                        : fmt::format("signal '{}' {}", name, signal.value);
}

}  // namespace orrery::prof
