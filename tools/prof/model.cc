#include "tools/prof/model.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tools/prof/analysis.h"

namespace orrery::prof {
namespace {

std::vector<Span> spans_of(const Process& process, std::uint64_t last) {
    std::vector<Span> spans;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::size_t>> open;
    for (const auto& [type, range] : process.ranges) {
        auto& stack = open[{range.thread, range.domain}];
        if (type == Type::kRangeBegin) {
            stack.push_back(spans.size());
            spans.push_back({range.head.text, range.domain, range.thread, range.ns, range.ns,
                             range.correlation, range.external, true});
        } else if (type == Type::kRangeEnd && !stack.empty()) {  // else its beginning is not here
            Span& span = spans[stack.back()];
            stack.pop_back();
            span.end_ns = std::max(span.begin_ns, range.ns);
            span.open = false;
        }
    }
    for (Span& span : spans) {
        if (span.open) span.end_ns = std::max(span.begin_ns, last);
    }
    return spans;
}

Bounds bounds_of(const DeviceModel& device) {
    const auto number = [&](std::string_view key) -> std::optional<double> {
        const auto found = device.sku.find(key);
        if (found == device.sku.end()) return {};
        return static_cast<double>(found->second);
    };
    const auto whole = [&](std::string_view key) -> std::optional<std::uint64_t> {
        const auto found = device.sku.find(key);
        return found == device.sku.end() ? std::nullopt : std::optional(found->second);
    };
    Bounds bounds;
    bounds.vram_gb_per_s = number("copy.vram_gb_per_s");
    bounds.host_gb_per_s = number("copy.host_gb_per_s");
    bounds.copy_engine_gb_per_s = number("copy.engine_gb_per_s");
    if (const auto gbit = number("link.gbit_per_s")) bounds.link_gb_per_s = *gbit / 8;
    bounds.launch_ps = whole("vector.launch_ps");
    bounds.copy_setup_ps = whole("copy.setup_ps");
    const auto cores = number("vector.cores"), hz = number("vector.hz"),
               bits = number("vector.datapath_bits");
    if (cores && hz && bits) {
        bounds.gflops_f16 = 2e-9 * *cores * *hz * *bits / 16;
        bounds.gflops_f32 = 2e-9 * *cores * *hz * *bits / 32;
        bounds.gflops_f64 = 2e-9 * *cores * *hz * *bits / 64;
    }
    return bounds;
}

class Maker {
  public:
    explicit Maker(const Process& process) { made_.process = &process; }

    Activity make() {
        find_moments();
        made_.spans = spans_of(*made_.process, made_.end_ns);
        place_work();
        find_parts();
        find_calls();
        find_counters();
        find_causes();
        add_devices();
        add_memory();
        set_clocks();
        find_finders();
        for (auto& [number, own] : devices_) {
            own.bounds = bounds_of(own);
            made_.devices.push_back(std::move(own));
        }
        return std::move(made_);
    }

  private:
    using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

    void find_moments() {
        const Process& process = *made_.process;
        made_.begin_ns = made_.end_ns = process.begin_ns;
        const auto add = [&](std::uint64_t begin, std::uint64_t end, std::uint32_t thread) {
            made_.begin_ns = std::min(made_.begin_ns, begin);
            made_.end_ns = std::max(made_.end_ns, end);
            if (made_.threads.empty() || made_.threads.back() != thread) made_.threads.push_back(thread);
        };
        for (const CallRecord& call : process.calls)
            add(call.begin_ns, call.end_ns, call.thread);
        for (const auto& [type, range] : process.ranges)
            add(range.ns, range.ns, range.thread);
        std::ranges::sort(made_.threads);
        const auto [first, last] = std::ranges::unique(made_.threads);
        made_.threads.erase(first, last);
    }
    void place_work() {
        std::map<std::uint64_t, std::uint32_t> numbers;
        for (const WorkRecord& work : made_.process->work) {
            Work& one = made_.work.emplace_back();
            one.record = &work;
            numbers.try_emplace(work.stream, 0);
        }
        for (auto& [number, place] : numbers) {
            place = static_cast<std::uint32_t>(made_.streams.size());
            made_.streams.emplace_back().number = number;
        }
        std::ranges::sort(made_.work, {}, [](const Work& one) {
            return std::tuple(one.record->begin_ps, one.record->end_ps, one.record->stream,
                              one.record->index);
        });
        std::vector<std::vector<std::uint64_t>> ends(made_.streams.size());  // of the lanes of each
        for (std::uint32_t i = 0; i < made_.work.size(); ++i) {
            Work& one = made_.work[i];
            one.stream = numbers.at(one.record->stream);
            StreamModel& stream = made_.streams[one.stream];
            if (stream.work.empty()) {
                stream.device = one.record->device;
                stream.name = one.record->stream_name;
            }
            stream.work.push_back(i);
            auto& lanes = ends[one.stream];
            const auto free =
                std::ranges::find_if(lanes, [&](std::uint64_t end) { return end <= one.record->begin_ps; });
            one.lane = static_cast<std::uint32_t>(free - lanes.begin());
            if (free == lanes.end()) {
                lanes.push_back(one.record->end_ps);
            } else {
                *free = one.record->end_ps;
            }
            stream.lanes = static_cast<std::uint32_t>(lanes.size());
        }
    }
    void find_parts() {
        std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> open;  // by stream and packet
        for (std::uint32_t i = 0; i < made_.work.size(); ++i) {
            const std::pair run(made_.work[i].stream, made_.work[i].record->index);
            if (const auto before = open.extract(run); !before.empty())
                made_.work[before.mapped()].goes_on = true;
            if (made_.work[i].outcome() == Outcome::kPreempted) open.emplace(run, i);
        }
    }
    void find_calls() {
        std::unordered_map<std::uint64_t, std::uint32_t> calls;
        for (const CallRecord& call : made_.process->calls) {
            if (call.correlation != 0)
                calls.try_emplace(call.correlation,
                                  static_cast<std::uint32_t>(&call - made_.process->calls.data()));
        }
        for (Work& one : made_.work) {
            if (const auto call = calls.find(one.record->correlation); call != calls.end())
                one.call = call->second;
        }
    }
    // The call of the thread that had submitted the work, if that waited at the moment: another thread's may
    // have waited for anything. A call that did work of its own waited for the streams of that.
    std::uint32_t finder_of(const WorkRecord& work, std::uint32_t stream,
                            const std::map<std::uint32_t, std::vector<std::uint32_t>>& waiting,
                            const std::map<std::uint32_t, std::set<std::uint32_t>>& streams) const {
        const std::vector<CallRecord>& calls = made_.process->calls;
        const auto of_thread = waiting.find(work.thread);
        if (of_thread == waiting.end()) return kNone;
        const auto behind = std::ranges::upper_bound(
            of_thread->second, work.found_ns, {}, [&](std::uint32_t call) { return calls[call].begin_ns; });
        if (behind == of_thread->second.begin()) return kNone;
        const std::uint32_t found = *std::prev(behind);
        if (calls[found].end_ns < work.found_ns) return kNone;
        const auto own = streams.find(found);
        return own == streams.end() || own->second.contains(stream) ? found : kNone;
    }
    // Work stands where its card's clock says, which may be behind the end of the call: an arrow would go
    // back in time.
    bool stands_within(const Work& one, const CallRecord& call) const {
        const std::uint64_t end = devices_.at(one.record->device).stretch_of(one).ns(one.record->end_ps);
        return std::max(end, one.record->found_ns) < call.end_ns;
    }
    void find_finders() {
        // A call finds all that the stream had been given, at one moment.
        std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> last;
        for (std::uint32_t i = 0; i < made_.work.size(); ++i) {
            const WorkRecord& work = *made_.work[i].record;
            if (work.found_ns == 0) continue;
            const auto [known, is_new] = last.try_emplace({made_.work[i].stream, work.found_ns}, i);
            if (!is_new && made_.work[known->second].record->index <= work.index) known->second = i;
        }
        if (last.empty()) return;
        const std::vector<CallRecord>& calls = made_.process->calls;
        std::map<std::uint32_t, std::vector<std::uint32_t>> waiting;  // by thread
        for (std::uint32_t i = 0; i < calls.size(); ++i)
            if (is_blocking(made_.text(calls[i].head.text))) waiting[calls[i].thread].push_back(i);
        for (auto& [thread, of_thread] : waiting)
            std::ranges::sort(of_thread, {}, [&](std::uint32_t call) { return calls[call].begin_ns; });
        std::map<std::uint32_t, std::set<std::uint32_t>> streams;  // by call
        for (const Work& one : made_.work)
            if (one.call != kNone) streams[one.call].insert(one.stream);
        std::map<std::uint32_t, std::uint64_t> ends;  // of calls: the last moment at which they found some
        std::vector<std::pair<std::uint32_t, std::uint32_t>> found;  // work, call
        for (const auto& [moment, i] : last) {
            const Work& one = made_.work[i];
            const std::uint32_t call = finder_of(*one.record, one.stream, waiting, streams);
            if (call == kNone) continue;
            std::uint64_t& end = ends[call];
            end = std::max(end, one.record->found_ns);
            found.emplace_back(i, call);
        }
        for (const auto& [i, call] : found) {
            Work& one = made_.work[i];
            // What is found first while it waits for one stream is others': it ends when it has found its
            // own.
            const bool is_its_own = one.record->found_ns == ends.at(call) ||
                                    made_.text(calls[call].head.text) != "orrStreamSynchronize";
            if (is_its_own && stands_within(one, calls[call])) one.found_by = call;
        }
    }
    void find_counters() {
        std::map<Key, const WorkCountersRecord*> counters;
        for (const WorkCountersRecord& each : made_.process->counters)
            counters[{each.stream, each.index, each.begin_ps}] = &each;
        if (counters.empty()) return;
        for (Work& one : made_.work) {
            const auto found = counters.find({one.record->stream, one.record->index, one.record->begin_ps});
            if (found != counters.end()) one.counters = found->second;
        }
    }
    // The last work of the stream that signalled, before its signal.
    void find_causes() {
        std::unordered_map<std::uint64_t, std::uint32_t> numbers;
        std::vector<std::vector<std::uint32_t>> by_index(made_.streams.size());
        for (std::uint32_t i = 0; i < made_.streams.size(); ++i)
            numbers[made_.streams[i].number] = i;
        const auto index = [&](std::uint32_t work) {
            return std::pair(made_.work[work].record->index, made_.work[work].record->begin_ps);
        };
        for (Work& one : made_.work) {
            if (one.operation() != Operation::kWait || static_cast<From>(one.record->from) != From::kStream)
                continue;
            const auto stream = numbers.find(one.record->from_stream);
            if (stream == numbers.end()) continue;
            auto& work = by_index[stream->second];
            if (work.empty()) {
                work = made_.streams[stream->second].work;
                std::ranges::sort(work, {}, index);
            }
            const auto behind = std::ranges::lower_bound(
                work, std::pair(one.record->from_index, std::uint64_t{0}), {}, index);
            if (behind != work.begin()) one.cause = *std::prev(behind);
        }
    }
    DeviceModel& device(std::uint32_t number) {
        DeviceModel& own = devices_[number];
        own.number = number;
        return own;
    }
    void add_devices() {
        const Process& process = *made_.process;
        for (const CardRecord& card : process.cards)
            device(card.device).card = &card;
        for (const SkuRecord& sku : process.sku)
            device(sku.device).sku.emplace(process.text(sku.head.text), sku.value);
        for (const LinkRecord& link : process.links)
            device(link.device).links.push_back(&link);
        for (std::uint32_t i = 0; i < made_.work.size(); ++i) {
            const WorkRecord& work = *made_.work[i].record;
            DeviceModel& own = device(work.device);
            if (own.work.empty()) {
                own.begin_ps = work.begin_ps;
                own.stretches.all = {{work.begin_ps, work.end_ps, work.submitted_ns}};
            }
            own.end_ps = std::max(own.end_ps, work.end_ps);
            own.work.push_back(i);
        }
        for (std::uint32_t i = 0; i < made_.streams.size(); ++i)
            device(made_.streams[i].device).streams.push_back(i);
    }
    void set_clocks() {
        for (const ClockRecord& clock : made_.process->clocks) {
            if (const auto own = devices_.find(clock.device); own != devices_.end())
                own->second.clock.add(clock);
        }
        for (auto& [number, own] : devices_) {
            if (own.clock.empty() || own.work.empty()) continue;
            for (const std::uint32_t i : own.work) {
                // Of a wait nobody knows whether it had not begun yet.
                if (made_.work[i].operation() != Operation::kWait)
                    own.clock.not_passed(made_.work[i].record->submitted_ns, made_.work[i].record->begin_ps);
            }
            own.clock.settle();
            std::vector<std::uint64_t> errors;
            bool known = true;
            for (const std::uint32_t i : own.work) {
                for (const std::uint64_t ps :
                     {made_.work[i].record->begin_ps, made_.work[i].record->end_ps}) {
                    const auto moment = own.clock.host_of(ps);
                    known = known && moment.has_value();
                    if (moment) errors.push_back(moment->error_ns());
                }
            }
            own.on_host_clock = known;
            if (known) own.stretches = stretches_of(own.clock, timed(own));
            if (errors.empty()) continue;
            std::ranges::sort(errors);
            own.clock_error_ns = errors[errors.size() / 2];
            own.clock_worst_ns = errors.back();
        }
    }
    std::vector<TimedWork> timed(const DeviceModel& own) const {
        std::vector<TimedWork> all;
        all.reserve(own.work.size());
        for (const std::uint32_t i : own.work) {
            const Work& one = made_.work[i];
            all.push_back({one.record->begin_ps, one.record->end_ps, one.record->submitted_ns,
                           one.operation() == Operation::kWait});
        }
        return all;
    }
    void add_memory() {
        for (const MemoryRecord& memory : made_.process->memory) {
            if (memory.device < 0) {
                made_.host_memory_peak = std::max(made_.host_memory_peak, memory.in_use);
                continue;
            }
            DeviceModel& own = device(static_cast<std::uint32_t>(memory.device));
            if (memory.in_use <= own.memory_peak) continue;
            own.memory_peak = memory.in_use;
            own.memory_peak_ns = memory.ns;
        }
    }

    Activity made_;
    std::map<std::uint32_t, DeviceModel> devices_;
};

}  // namespace

Direction direction_of(const WorkRecord& work) {
    if (work.known == 0) return Direction::kUnknown;
    const auto side = [&](std::int32_t place) {
        return static_cast<Place>(place) == Place::kUnknown       ? 'u'
               : place == static_cast<std::int32_t>(Place::kHost) ? 'h'
               : place == static_cast<std::int32_t>(work.device)  ? 'd'
                                                                  : 'p';
    };
    const char from = side(work.source), to = side(work.destination);
    if (from == 'u' || to == 'u') return Direction::kUnknown;
    if (from == 'h' && to == 'd') return Direction::kFromHost;
    if (from == 'd' && to == 'h') return Direction::kToHost;
    if (from == 'd' && to == 'd') return Direction::kInside;
    if (from == 'p' && to == 'd') return Direction::kFromPeer;
    if (from == 'd' && to == 'p') return Direction::kToPeer;
    return Direction::kOther;
}

std::int32_t peer_of(const WorkRecord& work, Direction direction) {
    return direction == Direction::kToPeer ? work.destination : work.source;
}

const char* name_of(Direction direction) {
    switch (direction) {
        case Direction::kFromHost:
            return "host to device";
        case Direction::kToHost:
            return "device to host";
        case Direction::kInside:
            return "inside the device";
        case Direction::kFromPeer:
            return "peer to device";
        case Direction::kToPeer:
            return "device to peer";
        case Direction::kOther:
            return "between others";
        case Direction::kUnknown:
            break;
    }
    return "unknown";
}

std::string copy_name(std::string_view way, bool reduces) {
    return (reduces ? "reduction " : "") + std::string(way);
}

unsigned vram_passes(Direction direction, bool reduces) {
    const unsigned written = reduces ? 2 : 1;
    switch (direction) {
        case Direction::kInside:
            return 1 + written;
        case Direction::kFromHost:
        case Direction::kFromPeer:
            return written;
        case Direction::kToHost:
        case Direction::kToPeer:
        case Direction::kOther:
        case Direction::kUnknown:
            break;
    }
    return 1;
}

std::optional<double> DeviceModel::copy_bound(const Work& copy) const {
    const Direction direction = direction_of(*copy.record);
    const auto least = [](std::optional<double> one, std::optional<double> other) {
        return one && other ? std::optional(std::min(*one, *other)) : one;
    };
    const auto link_bound = [&](std::int32_t peer) {
        const auto found = std::ranges::find(links, peer, &LinkRecord::peer_device);
        if (found == links.end() || (*found)->gbit_per_s == 0) return bounds.link_gb_per_s;
        return std::optional(static_cast<double>((*found)->gbit_per_s) / 8);
    };
    const auto vram = bounds.vram_gb_per_s
                          ? std::optional(*bounds.vram_gb_per_s / vram_passes(direction, copy.reduces()))
                          : std::nullopt;
    const auto at_most = [&](std::optional<double> way) {
        return least(least(way, vram), bounds.copy_engine_gb_per_s);
    };
    switch (direction) {
        case Direction::kFromHost:
        case Direction::kToHost:
            return at_most(bounds.host_gb_per_s);
        case Direction::kInside:
            return at_most(vram);
        case Direction::kFromPeer:
            return at_most(link_bound(copy.record->source));
        case Direction::kToPeer:
            return at_most(link_bound(copy.record->destination));
        case Direction::kUnknown:
        case Direction::kOther:
            break;
    }
    return {};
}

std::optional<std::uint64_t> DeviceModel::moment_ns(std::uint64_t ps) const {
    if (on_host_clock) return stretches.ns(clock, ps);
    if (work.empty()) return {};
    const Stretch& all = stretches.all.front();
    if (ps < begin_ps && (begin_ps - ps) / 1000 >= all.begin_ns) return {};
    return all.ns(ps);
}

const Stretch& DeviceModel::stretch_of(const Work& one) const {
    return stretches.of(one.record->begin_ps, one.record->end_ps, one.operation() == Operation::kWait);
}

const Stretch& DeviceModel::stretch_of(const StepRecord& step) const {
    return stretches.of(step.begin_ps, step.end_ps, static_cast<StepKind>(step.kind) == StepKind::kBarrier);
}

const DeviceModel* Activity::device(std::uint32_t number) const {
    const auto found = std::ranges::lower_bound(devices, number, {}, &DeviceModel::number);
    return found == devices.end() || found->number != number ? nullptr : &*found;
}

Model::Model(Profile read) : profile(std::move(read)) {
    for (const Process& process : profile.processes)
        processes.push_back(Maker(process).make());
}

text::Result<Model> read_model(const std::string& file) {
    auto profile = read_profile(file);
    if (!profile) return std::unexpected(profile.error());
    return Model(*std::move(profile));
}

}  // namespace orrery::prof
