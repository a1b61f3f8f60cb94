#include "tools/scenario/collector.h"

#include <algorithm>
#include <span>
#include <tuple>

#include <orrery/fw/trace.h>
#include <orrery/hw/counters.h>
#include <orrery/hw/engine.h>

namespace orrery::scenario {

Collector::Collector(const Scenario& scenario, bool keep_records, bool keep_history)
    : keep_records_(keep_records),
      keep_history_(keep_history),
      queues_(scenario.queues.size()),
      numbers_(scenario.cards.size()),
      ports_(scenario.cards.size()) {
    result_.history.resize(scenario.cards.size());
}

void Collector::place(std::uint32_t queue, std::uint32_t card, std::uint32_t number) {
    numbers_[card][number] = queue;
}

void Collector::listen(std::uint32_t card, emu::LoneCard& hardware) {
    hardware.on_trace([this, card](std::uint64_t value, emu::ModelTime now) { word(card, value, now); });
}

void Collector::begin(Ps start, std::vector<std::unique_ptr<Machine>>& machines) {
    start_ = result_.start = start;
    active_ = true;
    for (auto& machine : machines)
        counters_.push_back(machine->card().counters());
}

void Collector::end(bool done, std::vector<std::unique_ptr<Machine>>& machines) {
    active_ = keep_history_ = false;
    result_.done = done;
    for (std::size_t n = 0; n < machines.size(); ++n) {
        result_.counters.push_back(machines[n]->card().counters());
        for (unsigned counter = 0; counter < ORR_COUNTER_COUNT; ++counter)
            result_.counters[n][counter] -= counters_[n][counter];
        result_.end = std::max(result_.end, since(machines[n]->now()));
    }
}

std::uint32_t Collector::queue_of(std::uint32_t card, std::uint32_t number) const {
    const auto found = numbers_[card].find(number);
    return found == numbers_[card].end() ? Decision::kNoQueue : found->second;
}

JobResult* Collector::job_of(std::uint32_t card, std::uint32_t number, std::uint64_t index) {
    const std::uint32_t queue = queue_of(card, number);
    if (queue >= queues_.size() || index >= queues_[queue].jobs.size()) return nullptr;
    return &queues_[queue].jobs[index];
}

void Collector::submitted(std::uint32_t queue, std::uint64_t index, Ps now, const Job& job) {
    JobResult& made = queues_[queue].jobs.emplace_back();
    made.queue = queue;
    made.index = index;
    made.job = job;
    made.submitted = since(now);
}

void Collector::consumed(std::uint32_t queue, std::uint64_t consumer, Ps time) {
    Progress& progress = queues_[queue];
    for (; progress.retired < consumer && progress.retired < progress.jobs.size(); ++progress.retired) {
        JobResult& job = progress.jobs[progress.retired];
        if (job.finished == kUnknown) job.finished = since(time);
    }
}

void Collector::message(Ps at, std::uint32_t card, const orr_mbox_message& message) {
    if (active_) result_.events.push_back({since(at), card, message});
}

void Collector::word(std::uint32_t card, std::uint64_t value, Ps now) {
    Port& port = ports_[card];
    if (port.words.empty()) port.at = now;
    port.words.push_back(value);
    if (port.words.size() <= ORR_TRACE_WORDS(port.words[0])) return;
    if (keep_history_) {
        auto& history = result_.history[card];
        // There is no step to tell: the number of the record says as well what came first.
        history.push_back(
            records::make_record(history.size(), port.at, port.words[0], std::span(port.words).subspan(1)));
    }
    if (active_) record(card, since(port.at), port.words);
    port.words.clear();
}

void Collector::record(std::uint32_t card, Ps at, const std::vector<std::uint64_t>& words) {
    if (keep_records_) result_.records.push_back({at, card, words});
    const std::uint64_t header = words[0];
    const std::uint32_t a = ORR_TRACE_A(header), b = ORR_TRACE_B(header);
    const auto field = [&](std::size_t n) { return n < words.size() ? words[n] : 0; };
    switch (ORR_TRACE_TYPE(header)) {
        case ORR_TRACE_DECISION: {
            Decision made;
            made.at = at;
            made.queue = a == ORR_TRACE_NONE ? Decision::kNoQueue : queue_of(card, a);
            made.rule = b & 0xff;
            made.resource = b >> 8 & 0xff;
            made.candidates = b >> 16;
            made.index = field(1);
            made.card = card;
            made.number = result_.decisions.size();
            result_.decisions.push_back(made);
            return;
        }
        case ORR_TRACE_START_JOB: {
            if (JobResult* job = job_of(card, a, field(1)); job != nullptr && job->started == kUnknown)
                job->started = at;
            return;
        }
        case ORR_TRACE_END_JOB: {
            JobResult* job = job_of(card, a, field(1));
            if (job == nullptr) return;
            job->used_ps += field(4);
            const std::uint32_t status = b >> 16;
            if (status != ORR_DONE_PREEMPTED)
                job->finished = since(field(3));
            else
                ++job->preempted;
            return;
        }
        case ORR_TRACE_RETIRE: {
            if (const std::uint32_t queue = queue_of(card, a); queue < queues_.size())
                consumed(queue, field(1), start_ + at);
            return;
        }
        default:
            return;
    }
}

Result Collector::take() {
    for (Progress& progress : queues_) {
        for (JobResult& job : progress.jobs) {
            if (job.finished != kUnknown) result_.makespan = std::max(result_.makespan, job.finished);
            result_.jobs.push_back(job);
        }
    }
    std::ranges::sort(result_.decisions, {},
                      [](const Decision& one) { return std::tuple(one.at, one.card, one.number); });
    return std::move(result_);
}

}  // namespace orrery::scenario
