#include "tools/prof/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/prof/links.h"
#include "tools/prof/show.h"
#include "tools/prof/steps.h"
#include "tools/prof/stream_events.h"

namespace orrery::prof {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMost = PageColumn::kMost;
// More slices than this on top of each other are not shown, and counted.
constexpr std::size_t kDeepest = 64;

// As data.js has them.
enum Kind : std::uint8_t {
    kCall,
    kRange,
    kOpenRange,
    kMarker,
    kOther,
    kCopy,
    kFill,
    kKernel,
    kWait,
    kStep,
    kLinkCopy,
    kSignal,
    kStreamMark
};

Kind kind_of(const Work& work) {
    switch (work.operation()) {
        case Operation::kCopy:
            return kCopy;
        case Operation::kFill:
            return kFill;
        case Operation::kKernel:
            return kKernel;
        case Operation::kWait:
            return kWait;
        default:
            return kOther;
    }
}

struct Slice {
    std::uint64_t begin = 0, end = 0;
    std::uint32_t name = 0;
    Kind kind = kCall;
    std::int64_t status = 0;  // an error, or an outcome
    std::uint64_t correlation = 0, external = 0;
    std::uint32_t work = kNone;  // of Activity::work; beside it: which it shows once more
};

Json optional(const std::optional<double>& value) {
    return value ? Json(*value) : Json();
}

class Writer {
  public:
    explicit Writer(const Model& model) : model_(model), lasts_(model), host_begin_(model.profile.begin_ns) {
        std::optional<std::uint64_t> first;
        for (const Activity& activity : model.processes) {
            const auto see = [&](std::uint64_t ps) {
                first = std::min(first.value_or(~std::uint64_t{0}), ps);
            };
            if (!activity.work.empty()) see(activity.work[0].record->begin_ps);
            for (const SignalRecord& signal : activity.process->signals)
                see(signal.time_ps);
            for (const StreamMarkRecord& mark : activity.process->stream_marks)
                if (mark.time_ps != 0) see(mark.time_ps);
        }
        model_begin_ = first.value_or(0);
    }

    PageData written() {
        Json processes = Json::array();
        for (std::size_t i = 0; i < model_.processes.size(); ++i) {
            const Process& process = *model_.processes[i].process;
            Json lost_samples = Json::array(), lost_work = Json::array();
            for (const auto& [device, count] : process.lost_work)
                lost_work.push_back({device, count});
            for (const auto& [device, lost] : process.lost_samples)
                lost_samples.push_back({device, lost.counters + lost.pcs});
            processes.push_back({{"pid", process.pid},
                                 {"machine", model_.profile.machines.size() > 1 ? process.machine_at + 1 : 0},
                                 {"parent", process.parent},
                                 {"command", texts_.number(process.command)},
                                 {"lost", process.lost},
                                 {"ended", process.ended},
                                 {"cutAt", process.cut ? Json(process.cut->at) : Json()},
                                 {"lostWork", std::move(lost_work)},
                                 {"lostSamples", std::move(lost_samples)},
                                 {"hostMemoryPeak", model_.processes[i].host_memory_peak}});
            add_host(model_.processes[i], i);
        }
        const std::uint64_t first_work = slices_;
        for (std::size_t i = 0; i < model_.processes.size(); ++i)
            add_cards(model_.processes[i], i);
        const std::uint64_t first_beside = slices_;
        for (std::size_t i = 0; i < model_.processes.size(); ++i) {
            add_steps(model_.processes[i], i, /*on_cards=*/true);
            add_stream_events(model_.processes[i], i);
            add_links(model_.processes[i], i);
        }

        PageData data;
        data.meta = {{"version", 1},
                     {"hostBegin", std::to_string(host_begin_)},
                     {"modelBegin", std::to_string(model_begin_)},
                     {"slices", slices_},
                     {"firstWork", first_work},
                     {"firstBeside", first_beside},
                     {"hidden", hidden_},
                     {"processes", std::move(processes)},
                     {"devices", std::move(devices_)},
                     {"findings", std::move(findings_)},
                     {"tracks", std::move(tracks_)},
                     {"rows", std::move(rows_)}};
        add_work_counters(work_, data, columns_);
        add_samples(model_, model_begin_, texts_, data, columns_);
        Json columns = Json::array();
        for (const auto& [name, column] : columns_) {
            columns.push_back({name, column.bytes().size()});
            data.columns += column.bytes();
        }
        data.meta["columns"] = std::move(columns);
        data.meta["texts"] = texts_.all();
        return data;
    }

  private:
    void add_host(const Activity& activity, std::size_t number) {
        const Process& process = *activity.process;
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Slice>> tracks;  // thread, domain
        for (const CallRecord& call : process.calls) {
            tracks[{call.thread, 0}].push_back({call.begin_ns, call.end_ns,
                                                texts_.number(process, call.head.text), kCall, call.error,
                                                call.correlation, call.external});
        }
        for (const Span& span : activity.spans) {
            tracks[{span.thread, span.domain}].push_back(
                {span.begin_ns, span.end_ns, texts_.number(process, span.text),
                 span.open ? kOpenRange : kRange, 0, span.correlation, span.external});
        }
        for (const auto& [type, range] : process.ranges) {
            if (type != Type::kMark) continue;
            tracks[{range.thread, range.domain}].push_back({range.ns, range.ns,
                                                            texts_.number(process, range.head.text), kMarker,
                                                            0, range.correlation, range.external});
        }
        for (auto& [key, slices] : tracks) {
            const auto [thread, domain] = key;
            Json track = {{"process", number}, {"thread", thread}};
            if (domain != 0) track["domain"] = texts_.number(process, domain);
            add_track(std::move(track), slices, host_begin_, nullptr);
        }
        add_steps(activity, number, /*on_cards=*/false);
    }

    // What graphs, task graphs and groups did within calls, on cards or on the host.
    void add_steps(const Activity& activity, std::size_t number, bool on_cards) {
        const std::vector<StepRow> all = step_rows(activity);
        for (std::size_t i = 0; i < all.size();) {
            const StepRow& first = all[i];
            std::vector<Slice> slices;
            for (; i < all.size() && all[i].device == first.device && all[i].title == first.title; ++i) {
                for (const StepRecord* const step : all[i].steps) {
                    const auto [begin, end] = on_host(*step) ? std::pair(step->begin_ns, step->end_ns)
                                                             : std::pair(step->begin_ps, step->end_ps);
                    slices.push_back({begin, end, texts_.number(*activity.process, step->head.text), kStep, 0,
                                      step->correlation, step->external});
                }
            }
            if (on_cards != (first.device >= 0)) continue;
            Json track = {{"process", number}, {"title", texts_.number(first.title)}};
            if (on_cards) track["device"] = first.device;
            add_track(std::move(track), slices, on_cards ? model_begin_ : host_begin_, nullptr, nullptr,
                      on_cards);
        }
    }

    // Signals and marks, each in a row of its stream's. Of a signal the wait that it ended is shown.
    void add_stream_events(const Activity& activity, std::size_t number) {
        const Process& process = *activity.process;
        std::map<const SignalRecord*, std::uint32_t> waits;
        const SignalIndex index(activity);
        for (std::size_t i = 0; i < activity.work.size(); ++i) {
            if (const SignalRecord* const ender = index.ender_of(activity.work[i]))
                waits.try_emplace(ender, places_.at(&activity)[i]);
        }
        using Key = std::tuple<std::uint32_t, std::uint64_t, Kind>;  // device and stream
        std::map<Key, std::pair<std::string, std::vector<Slice>>> tracks;
        const auto add = [&](const auto& record, Kind kind, std::string_view name, std::int64_t status,
                             std::uint32_t shows) {
            auto& [title, slices] = tracks[{record.device, record.stream, kind}];
            if (slices.empty())
                title = fmt::format("{} of {}", kind == kSignal ? "signals" : "marks",
                                    process.text(record.stream_name));
            slices.push_back({record.time_ps, record.time_ps, texts_.number(name), kind, status,
                              record.correlation, record.external, shows});
        };
        for (const SignalRecord& signal : process.signals) {
            const auto wait = waits.find(&signal);
            add(signal, kSignal, title_of(activity, signal), signal.outcome,
                wait == waits.end() ? kNone : wait->second);
        }
        for (const StreamMarkRecord& mark : process.stream_marks) {
            // One with nothing before it has no time of the card's.
            if (mark.time_ps != 0) add(mark, kStreamMark, process.text(mark.head.text), 0, kNone);
        }
        for (const auto& [key, track] : tracks) {
            add_track(
                {{"process", number}, {"device", std::get<0>(key)}, {"title", texts_.number(track.first)}},
                track.second, model_begin_, nullptr, nullptr, true);
        }
    }

    // Copies once more, by the link that they went over: of the card's own engines, and of the peer's if both
    // have one time.
    void add_links(const Activity& activity, std::size_t number) {
        for (const DeviceModel& device : activity.devices) {
            std::set<std::int32_t> peers;
            for (const LinkRecord* link : device.links)
                if (link->peer_device >= 0) peers.insert(link->peer_device);
            for (const std::int32_t peer : peers) {
                for (const bool sent : {true, false}) {
                    std::vector<Slice> slices;
                    add_copies(activity, device, peer, sent ? Direction::kToPeer : Direction::kFromPeer,
                               slices);
                    const auto place = static_cast<std::uint32_t>(peer);
                    const DeviceModel* const other = activity.device(place);
                    if (other != nullptr && in_step(activity, device.number) && in_step(activity, place)) {
                        add_copies(activity, *other, static_cast<std::int32_t>(device.number),
                                   sent ? Direction::kFromPeer : Direction::kToPeer, slices);
                    }
                    if (slices.empty()) continue;
                    const std::string title = fmt::format("link {} card {}", sent ? "to" : "from", peer);
                    add_track(
                        {{"process", number}, {"device", device.number}, {"title", texts_.number(title)}},
                        slices, model_begin_, nullptr, nullptr, true);
                }
            }
        }
    }
    void add_copies(const Activity& activity, const DeviceModel& device, std::int32_t peer,
                    Direction direction, std::vector<Slice>& slices) {
        for (const std::uint32_t i : device.work) {
            const Work& one = activity.work[i];
            const WorkRecord& work = *one.record;
            if (one.operation() != Operation::kCopy || direction_of(work) != direction ||
                peer_of(work, direction) != peer)
                continue;
            const std::uint32_t slice = places_.at(&activity)[i];
            slices.push_back(
                {work.begin_ps, work.end_ps,
                 texts_.number(fmt::format("{} by card {}", bytes_text(work.bytes), work.device)), kLinkCopy,
                 work.outcome, work.correlation, work.external, slice});
        }
    }

    void add_cards(const Activity& activity, std::size_t number) {
        const Process& process = *activity.process;
        const std::size_t first = work_.size();
        std::vector<std::uint32_t>& places = places_[&activity];  // the slice of each work
        places.assign(activity.work.size(), kNone);
        for (const DeviceModel& device : activity.devices) {
            devices_.push_back(device_json(activity, device, number));
            for (const std::uint32_t stream_number : device.streams) {
                const StreamModel& stream = activity.streams[stream_number];
                std::vector<Slice> slices;
                for (const std::uint32_t i : stream.work) {
                    const WorkRecord& work = *activity.work[i].record;
                    slices.push_back({work.begin_ps, work.end_ps, texts_.number(process, work.head.text),
                                      kind_of(activity.work[i]), work.outcome, work.correlation,
                                      work.external, i});
                }
                add_track({{"process", number},
                           {"device", device.number},
                           {"stream", stream.number},
                           {"name", texts_.number(process, stream.name)}},
                          slices, model_begin_, &activity, &places);
            }
        }
        const Explanation explained = explain(model_, activity, lasts_);
        for (const Finding& finding : explained.findings)
            findings_.push_back(finding_json(finding, number));
        for (const DeviceSums& sums : explained.sums.devices) {
            for (Json& device : devices_) {
                if (device["process"] == number && device["device"] == sums.device->number)
                    add_summary(sums, model_begin_, places, device);
            }
        }
        // Where the slice of a wait's cause stands is known only now.
        for (std::size_t i = first; i < work_.size(); ++i) {
            const std::uint32_t cause = work_[i]->cause;
            cause_.put(cause == kNone || places[cause] == kNone ? 0 : places[cause] + std::uint64_t{1});
        }
    }

    Json device_json(const Activity& activity, const DeviceModel& device, std::size_t process) {
        Json json = {{"process", process},
                     {"device", device.number},
                     {"vector", engine(activity, device, kKernel, kKernel)},
                     {"copy", engine(activity, device, kCopy, kFill)},
                     {"memoryPeak", std::min(device.memory_peak, kMost)},
                     {"bounds",
                      {{"vram", optional(device.bounds.vram_gb_per_s)},
                       {"host", optional(device.bounds.host_gb_per_s)},
                       {"copyEngine", optional(device.bounds.copy_engine_gb_per_s)},
                       {"link", optional(device.bounds.link_gb_per_s)},
                       {"f16", optional(device.bounds.gflops_f16)},
                       {"f32", optional(device.bounds.gflops_f32)},
                       {"f64", optional(device.bounds.gflops_f64)}}}};
        if (device.card != nullptr) {
            json["sku"] = texts_.number(*activity.process, device.card->head.text);
            json["pci"] = texts_.number(*activity.process, device.card->pci);
            json["vram"] = std::min(device.card->vram_bytes, kMost);
            json["cores"] = device.card->vector_cores;
            json["copyEngines"] = device.card->copy_engines;
        }
        for (const LinkRecord* link : device.links) {
            json["links"].push_back({{"port", link->port},
                                     {"peer", link->peer_device},
                                     {"peerPort", link->peer_port},
                                     {"lanes", link->lanes},
                                     {"gbit", link->gbit_per_s}});
        }
        return json;
    }

    // How much of it there was, and how much at once.
    static Json engine(const Activity& activity, const DeviceModel& device, Kind first, Kind last) {
        std::vector<std::pair<std::uint64_t, int>> changes;
        std::size_t runs = 0;  // their parts may be several
        for (const std::uint32_t i : device.work) {
            const Kind kind = kind_of(activity.work[i]);
            if (kind < first || kind > last) continue;
            runs += activity.work[i].runs();
            changes.emplace_back(activity.work[i].record->begin_ps, 1);
            changes.emplace_back(activity.work[i].record->end_ps, -1);
        }
        std::ranges::sort(changes);  // ends before begins
        int now = 0, most = 0;
        for (const auto& [ps, change] : changes)
            most = std::max(most, now += change);
        return {{"count", runs}, {"most", most}};
    }

    // Each slice in the first row where nothing is in its way: a call within a range is one row below it.
    // `places` gets the number of each work's slice.
    void add_track(Json track, const std::vector<Slice>& slices, std::uint64_t origin,
                   const Activity* activity, std::vector<std::uint32_t>* places = nullptr,
                   bool beside = false) {
        std::vector<const Slice*> sorted;
        for (const Slice& slice : slices)
            sorted.push_back(&slice);
        std::ranges::sort(sorted, {}, [](const Slice* slice) {
            return std::tuple(slice->begin, ~slice->end, slice);  // what is around others first
        });
        std::vector<std::vector<const Slice*>> rows;
        for (const Slice* slice : sorted) {
            auto row = std::ranges::find_if(
                rows, [&](const auto& others) { return others.back()->end <= slice->begin; });
            if (row == rows.end()) {
                if (rows.size() == kDeepest) {
                    ++hidden_;
                    continue;
                }
                row = rows.emplace(rows.end());
            }
            row->push_back(slice);
        }
        const std::size_t number = tracks_.size();
        tracks_.push_back(std::move(track));
        for (const auto& row : rows) {
            rows_.push_back({number, row.size()});
            begin_.restart();
            correlation_.restart();
            submitted_.restart();
            for (const Slice* slice : row) {
                if (places != nullptr) (*places)[slice->work] = static_cast<std::uint32_t>(slices_);
                add_slice(*slice, origin);
                if (beside) shows_.put(slice->work == kNone ? 0 : slice->work + std::uint64_t{1});
                if (activity != nullptr) {
                    const Work& work = activity->work[slice->work];
                    add_work(*activity->process, *activity->device(work.record->device), work);
                }
            }
        }
    }

    void add_slice(const Slice& slice, std::uint64_t origin) {
        ++slices_;
        begin_.put_delta(slice.begin - std::min(origin, slice.begin));
        time_.put(slice.end - slice.begin);
        name_.put(slice.name);
        kind_.put(slice.kind);
        status_.put_signed(slice.status);
        correlation_.put_delta(slice.correlation);
        external_.put(slice.external);
    }

    // When it began by the host's clock, plus one, and how exact that is; 0: nobody knows.
    void add_host_time(const DeviceModel& device, const WorkRecord& work) {
        const auto moment = device.clock.host_of(work.begin_ps);
        const std::uint64_t at = moment ? moment->at_ns() : 0;
        host_at_.put(moment ? at - std::min(at, host_begin_) + 1 : 0);
        host_error_.put(moment ? moment->error_ns() : 0);
    }
    void add_work(const Process& process, const DeviceModel& device, const Work& work) {
        work_.push_back(&work);
        index_.put(work.record->index);
        submitted_.put_delta(work.record->submitted_ns - std::min(work.record->submitted_ns, host_begin_));
        used_.put(work.record->used_ps);
        thread_.put(work.record->thread);
        bytes_.put(work.record->bytes);
        const bool copies = work.operation() == Operation::kCopy;
        direction_.put(copies ? static_cast<std::uint64_t>(direction_of(*work.record)) : 0);
        from_.put(work.record->from);
        add_host_time(device, *work.record);
        from_name_.put(texts_.number(process, work.record->from_name));
        found_by_.put(work.found_by == kNone ? 0 : process.calls[work.found_by].correlation);
    }
    PageColumn& column(const char* name) { return columns_.emplace_back(name, PageColumn{}).second; }

    const Model& model_;
    const BarrierLasts lasts_;
    const std::uint64_t host_begin_;
    std::uint64_t model_begin_ = 0;
    PageTexts texts_;
    Json tracks_ = Json::array(), rows_ = Json::array(), devices_ = Json::array(), findings_ = Json::array();
    std::uint64_t slices_ = 0, hidden_ = 0;
    std::vector<const Work*> work_;  // in the order of their slices
    std::map<const Activity*, std::vector<std::uint32_t>> places_;
    PageColumns columns_;
    // Of each slice.
    PageColumn &begin_ = column("begin"), &time_ = column("time"), &name_ = column("name"),
               &kind_ = column("kind"), &status_ = column("status"), &correlation_ = column("correlation"),
               &external_ = column("external");
    // Of each work.
    PageColumn &index_ = column("index"), &submitted_ = column("submitted"), &used_ = column("used"),
               &thread_ = column("thread"), &bytes_ = column("bytes"), &direction_ = column("direction"),
               &from_ = column("from"), &from_name_ = column("fromName"), &cause_ = column("cause"),
               &found_by_ = column("foundBy"), &host_at_ = column("hostAt"),
               &host_error_ = column("hostError");
    // Of each slice beside work: the slice of the work that it shows once more, and 1; 0: none.
    PageColumn& shows_ = column("shows");
};

}  // namespace

void PageColumn::put(std::uint64_t value) {
    value = std::min(value, kMost);
    for (; value >= 0x80; value >>= 7)
        bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
}

void PageColumn::put_signed(std::int64_t value) {
    constexpr auto kHalf = static_cast<std::int64_t>(kMost / 2);
    value = std::clamp(value, -kHalf, kHalf);
    put((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

void PageColumn::put_delta(std::uint64_t value) {
    value = std::min(value, kMost / 2);
    put_signed(static_cast<std::int64_t>(value) - static_cast<std::int64_t>(last_));
    last_ = value;
}

std::uint32_t PageTexts::number(std::string_view text) {
    if (const auto found = known_.find(text); found != known_.end()) return found->second;
    const auto number = static_cast<std::uint32_t>(all_.size());
    known_.emplace(text, number);
    all_.push_back(text);
    return number;
}

std::uint32_t PageTexts::number(const Process& process, std::uint32_t text) {
    if (process_ != &process) {
        process_ = &process;
        numbers_.assign(process.texts.size(), kNone);
    }
    std::uint32_t& known = numbers_[text];
    if (known == kNone) known = number(process.texts[text]);
    return known;
}

PageData page_data(const Model& model) {
    return Writer(model).written();
}

}  // namespace orrery::prof
