#include "umd/runtime/pc_log.h"

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <orrery/hw/trace_sink.h>
#include <orrery/prof.h>

#include "umd/prof/profiler.h"
#include "umd/runtime/context.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

constexpr std::size_t kBatch = 256;

static_assert(orrProfStallComputing == ORR_PC_ISSUE && orrProfStallLatency == ORR_PC_LATENCY &&
              orrProfStallBandwidth == ORR_PC_BANDWIDTH && orrProfStallLink == ORR_PC_LINK &&
              orrProfStallLaunch == ORR_PC_LAUNCH && orrProfStallBarrier == ORR_PC_BARRIER &&
              orrProfStallPause == ORR_PC_PAUSE);

std::string text_of(const PcWanted& wanted) {
    std::string text;
    if (wanted.period_ns != 0) text = fmt::format("each {} ns", wanted.period_ns);
    if (wanted.core)
        text += fmt::format("{}each instruction of core {}", text.empty() ? "" : ", ", *wanted.core);
    return text;
}

}  // namespace

Status PcLog::want(orrProfSubscription_t who, const std::function<void(PcWanted& wanted)>& change) {
    // What is told goes by the packets that the other one knows.
    if (!Profiler::get().wants(who, orrProfWantWork | orrProfWantPcs))
        return fail(orrErrorInvalidValue,
                    "the subscription has ended, or would not be told: subscribe with orrProfWantWork and "
                    "orrProfWantPcs");
    if (!context_.work_log().want())
        return fail(orrErrorNotSupported, "the card or its driver does not record its work");
    // What was not read yet is of the period from before, and the driver begins anew.
    ORR_TRY(drained, context_.work_log().drain());
    const std::lock_guard lock(mutex_);
    const bool held = !holders_.empty();
    PcWanted wanted = held ? wanted_ : PcWanted{};
    change(wanted);
    if (held && wanted == wanted_) {
        holders_.add(who);
        return {};
    }
    if (!holders_.only(who))
        return fail(orrErrorSystem,
                    "{} has samples of device {}'s vector cores ({}), and a card takes one kind at a time: "
                    "ask for just those, or wait until they are ended",
                    holders_.other_than(who), context_.device(), text_of(wanted_));
    ORR_TRY(started, context_.winsys().want_pcs(wanted));
    wanted_ = wanted;
    holders_.add(who);
    return {};
}

Status PcLog::start(orrProfSubscription_t who, std::uint32_t period_ns) {
    return want(who, [&](PcWanted& wanted) { wanted.period_ns = period_ns; });
}

Status PcLog::trace(orrProfSubscription_t who, std::uint32_t core, std::uint64_t from_ps,
                    std::uint64_t until_ps) {
    if (core >= context_.vector_cores())
        return fail(orrErrorInvalidValue, "core {} of {}", core, context_.vector_cores());
    ORR_TRY(card, context_.winsys().query());
    const std::uint64_t now = card->model_time_ps;
    return want(who, [&](PcWanted& wanted) {
        wanted.core = core;
        wanted.from_ps = now + from_ps;
        wanted.until_ps = now + until_ps;
    });
}

Status PcLog::stop(orrProfSubscription_t who) {
    {
        const std::lock_guard lock(mutex_);
        if (!holders_.has(who)) return {};
        // The last ones are told by the log's thread, which ends them.
        if (thread_marks().inside != 0) {
            holders_.remove(who);
            return {};
        }
    }
    Status drained = context_.work_log().drain();
    // They would be gone: it can be asked again.
    if (!drained && drained.error().code == orrErrorTimeout) return drained;
    const std::lock_guard lock(mutex_);
    holders_.remove(who);
    if (!holders_.empty() || !std::exchange(wanted_, {}).any()) return drained;
    auto stopped = context_.winsys().want_pcs({});
    return drained ? stopped : drained;
}

bool PcLog::any() {
    const std::lock_guard lock(mutex_);
    return wanted_.any();
}

bool PcLog::unheld() {
    const std::lock_guard lock(mutex_);
    return wanted_.any() && holders_.empty();
}

void PcLog::end_unheld() {
    const std::lock_guard lock(mutex_);
    if (!wanted_.any() || !holders_.empty()) return;
    wanted_ = {};
    (void)context_.winsys().want_pcs({});
}

void PcLog::end() {
    {
        const std::lock_guard lock(mutex_);
        holders_.clear();
    }
    if (!any()) return;
    (void)context_.work_log().drain();
    const std::lock_guard lock(mutex_);
    wanted_ = {};
    (void)context_.winsys().want_pcs({});
}

void PcLog::forget(std::map<Job, std::vector<Waiting>>::iterator job) {
    for (const Waiting& each : job->second)
        lost_ += each.record.count;
    kept_ -= job->second.size();
    waiting_.erase(job);
}

void PcLog::keep(const drm_orr_pc_record& record, std::uint64_t period_ns) {
    if (kept_ == kMostWaiting) forget(waiting_.begin());
    waiting_[{record.start_ps, record.port}].push_back({record, period_ns});
    ++kept_;
}

Status PcLog::tell_all(const std::function<Stream*(std::uint32_t queue)>& find) {
    std::array<drm_orr_pc_record, kBatch> records;
    PcRead read{};
    do {
        // They are of this period as long as nobody asks for another one.
        std::unique_lock lock(mutex_);
        const std::uint64_t period_ns = wanted_.period_ns;
        if (!wanted_.any()) {
            waiting_.clear();
            kept_ = 0;
            return {};
        }
        ORR_TRY(got, context_.winsys().read_pcs(records));
        lock.unlock();
        read = *got;
        for (std::size_t i = 0; i < read.count; ++i) {
            const drm_orr_pc_record& record = records.at(i);
            if (record.kind != ORR_PC_JOB) {
                keep(record, period_ns);
                continue;
            }
            const auto job = waiting_.find({record.start_ps, record.port});
            if (job == waiting_.end()) continue;
            Stream* const stream = find(record.queue);
            if (stream != nullptr) tell(record, *stream);
            if (stream == nullptr) forget(job);
        }
        if (read.lost) ++lost_;
    } while (read.more);
    if (lost_ != 0) tell_lost();
    return {};
}

void PcLog::tell(const drm_orr_pc_record& ended, Stream& stream) {
    auto job = waiting_.extract({ended.start_ps, ended.port});
    kept_ -= job.mapped().size();
    orrProfWork work = ORR_INIT(orrProfWork);
    orrProfRecord told = ORR_INIT(orrProfRecord);
    std::uint64_t semaphore = 0;
    drm_orr_work_record record{};
    record.kind = ORR_WORK_JOB;
    record.index = ended.group;
    record.start_ps = ended.start_ps;
    // Of a packet that nobody wanted to know of.
    if (!stream.trail().find(record, told, work, semaphore, nullptr)) return;
    told.kind = orrProfPcSampled;
    std::unordered_map<std::uint64_t, std::optional<Context::CodePlace>> places;
    for (const auto& [each, period_ns] : job.mapped()) {
        auto [place, is_new] = places.try_emplace(each.pc);
        if (is_new) place->second = context_.place_in_code(each.pc);
        orrProfPcSample sample = ORR_INIT(orrProfPcSample);
        sample.device = context_.device();
        sample.core = each.core;
        sample.time_ps = each.time_ps;
        sample.count = each.count;
        sample.period_ns = each.kind == ORR_PC_STEP ? 0 : period_ns;
        sample.lost = std::exchange(lost_, 0);
        sample.stream = work.stream;
        sample.index = work.index;
        sample.begin_ps = work.begin_ps;
        sample.group = each.group;
        sample.stall = each.cause;
        if (place->second) {
            const Context::CodePlace& known = *place->second;
            sample.offset = known.offset;
            sample.function = known.function.empty() ? nullptr : known.function.c_str();
            sample.source = known.source.empty() ? nullptr : known.source.c_str();
        }
        told.params = &sample;
        Profiler::get().tell_as_it_is(told, orrProfWantPcs);
    }
}

void PcLog::tell_lost() {
    orrProfPcSample sample = ORR_INIT(orrProfPcSample);
    sample.device = context_.device();
    sample.lost = std::exchange(lost_, 0);
    orrProfRecord told = ORR_INIT(orrProfRecord);
    told.kind = orrProfPcSampled;
    told.params = &sample;
    Profiler::get().tell_as_it_is(told, orrProfWantPcs);
}

}  // namespace orrery::umd
