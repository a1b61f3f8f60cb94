#include "tools/prof/counter_series.h"

#include <algorithm>
#include <utility>

namespace orrery::prof {

std::vector<std::vector<const Process::Sample*>> samples_of_sets(const Process& process) {
    std::vector<std::vector<const Process::Sample*>> of_set(process.sample_sets.size());
    for (const Process::Sample& sample : process.samples)
        of_set[sample.set].push_back(&sample);
    for (auto& samples : of_set)
        std::ranges::sort(samples, {}, [](const auto* sample) { return std::pair(sample->time_ps, sample); });
    return of_set;
}

std::vector<std::optional<std::uint64_t>> went_up(const Process& process, const Process::SampleSet& set,
                                                  const Process::Sample& first, const Process::Sample& last) {
    std::vector<std::optional<std::uint64_t>> all(set.counters.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::uint64_t from = process.sample_values[first.first + i],
                            to = process.sample_values[last.first + i];
        if (to >= from) all[i] = to - from;
    }
    return all;
}

std::optional<SampledUps> sampled_ups(const Process& process, std::uint32_t device,
                                      std::span<const std::string_view> names) {
    const auto sets = samples_of_sets(process);
    for (std::size_t number = 0; number < sets.size(); ++number) {
        const Process::SampleSet& set = process.sample_sets[number];
        if (set.device != device || sets[number].size() < 2) continue;
        const Process::Sample &first = *sets[number].front(), &last = *sets[number].back();
        SampledUps all{last.time_ps - first.time_ps, {}};
        const auto ups = went_up(process, set, first, last);
        const bool known =
            all.ps != 0 && std::ranges::all_of(names, [&](std::string_view name) {
                const auto place = std::ranges::find(
                    set.counters, name, [&](const SampledCounter& one) { return process.text(one.name); });
                const auto i = static_cast<std::size_t>(place - set.counters.begin());
                if (i == ups.size() || !ups[i]) return false;
                all.values.push_back(*ups[i]);
                return true;
            });
        if (known) return all;
    }
    return {};
}

std::vector<CounterSeries> counter_series(const Activity& activity) {
    const Process& process = *activity.process;
    std::vector<CounterSeries> all;
    const auto sets = samples_of_sets(process);
    for (std::size_t number = 0; number < sets.size(); ++number) {
        const Process::SampleSet& set = process.sample_sets[number];
        const DeviceModel* const device = activity.device(set.device);
        if (device == nullptr) continue;
        std::vector<std::pair<const Process::Sample*, std::uint64_t>> samples;
        for (const Process::Sample* sample : sets[number]) {
            // Two of one moment have no rate between them.
            if (!samples.empty() && samples.back().first->time_ps == sample->time_ps) continue;
            if (const auto ns = device->moment_ns(sample->time_ps)) samples.emplace_back(sample, *ns);
        }
        for (std::size_t place = 0; place < set.counters.size(); ++place) {
            const SampledCounter& counter = set.counters[place];
            const std::string_view unit = process.text(counter.unit);
            const bool time = unit == "ps";
            CounterSeries series{
                set.device, process.text(counter.name), time ? "at once" : std::string(unit) + "/s", {}};
            bool moved = false;
            for (std::size_t i = 0; i < samples.size(); ++i) {
                double rate = 0;
                if (i + 1 < samples.size()) {
                    const Process::Sample &from = *samples[i].first, &to = *samples[i + 1].first;
                    const std::uint64_t before = process.sample_values[from.first + place],
                                        after = process.sample_values[to.first + place];
                    // One that has gone down began anew.
                    rate = after <= before ? 0
                                           : static_cast<double>(after - before) /
                                                 static_cast<double>(to.time_ps - from.time_ps);
                    if (!time) rate *= 1e12;
                    moved = moved || rate > 0;
                }
                // What goes on as before is said already; where it ends is not.
                if (i == 0 || i + 1 == samples.size() || rate != series.points.back().rate)
                    series.points.push_back({samples[i].second, rate});
            }
            if (moved) all.push_back(std::move(series));
        }
    }
    return all;
}

}  // namespace orrery::prof
