#include "tools/scenario/extract.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include <orrery/fw/boot_block.h>
#include <orrery/fw/queue.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/doorbell.h>
#include <orrery/hw/engine.h>
#include <orrery/hw/soc.h>

#include "emulator/api/replayer.h"
#include "tools/scenario/layout.h"
#include "tools/scenario/observed.h"
#include "tools/scenario/spin.h"

namespace orrery::scenario {

namespace {

constexpr std::uint64_t kElsewhere = ~std::uint64_t{0};
// The registers of a group on their way to VRAM and back.
constexpr Ps kSavedBytesPs = 10'000;
constexpr Ps kGrain = kMs;  // a scenario of ours starts at a multiple of this
// A driver may be faster than that.
constexpr Ps kEarlyGrain = 10 * kUs;

// What the engines were asked to do for a packet, and how long it took.
struct Demand {
    bool started = false, ended = false;
    std::uint32_t preempted = 0;  // inside the kernel
    Ps used = 0, elapsed = 0;
    std::uint32_t status = ORR_DONE_OK;
};

class Extractor {
  public:
    Extractor(emu::Replayer& replayer, Observed observed, emu::Sku sku)
        : replayer_(replayer), observed_(std::move(observed)), sku_(std::move(sku)) {}

    void run(Extract& out) {
        out_ = &out;
        demands_.resize(observed_.queues.size());
        find_start();
        read_records();
        describe();
        make_jobs();
        submit();
        act();
    }

  private:
    Scenario& scenario() { return out_->scenario; }
    void note(const std::string& text) {
        if (said_.insert(text).second) out_->notes.push_back(text);
    }
    int queue_at(std::uint32_t number, Ps time) const { return observed_.queue_at(number, time); }

    void find_start();
    void read_records();
    void describe();
    void make_jobs();
    void add_unread();
    void submit();
    void act();
    void poke_what_nobody_signals();
    std::vector<std::uint64_t> retired_of_queues();
    Job job_of(const ObservedQueue& queue, std::size_t number, std::uint64_t index, const orr_packet& packet);
    // `before`: cycles of a group of the queue's kernel before this one; 0: none.
    void set_kernel(Job& job, const Demand& demand, std::uint64_t before);
    void set_copy(Job& job, std::uint64_t row_bytes, std::uint64_t rows, const Demand& demand);
    std::uint64_t key_of(std::uint32_t asid, std::uint64_t va) const {
        const auto found = memory_.find({asid, va});
        return found != memory_.end() ? found->second : ORR_CONTEXT_WINDOW(asid, va);
    }
    std::uint32_t semaphore_of(std::uint64_t key);
    Ps since_start(Ps time) const { return time > start_ ? time - start_ : 0; }

    emu::Replayer& replayer_;
    Observed observed_;
    emu::Sku sku_;
    Extract* out_ = nullptr;
    Ps start_ = 0;
    std::set<std::string> said_;
    std::vector<std::map<std::uint64_t, Demand>> demands_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> memory_;  // of (context, VA)
    std::map<std::uint64_t, std::uint32_t> semaphores_;                        // index, by key
    std::map<std::uint64_t, std::uint32_t> gangs_;                             // index, by board
    std::vector<std::vector<Job>> jobs_;
};

void Extractor::find_start() {
    Ps first = replayer_.end_time();
    for (const emu::TraceNote& one : replayer_.notes()) {
        if (one.kind == ORR_OTRACE_NOTE_DOORBELL) first = std::min(first, one.time_ps);
    }
    const Ps grain = first >= kGrain ? kGrain : kEarlyGrain;
    start_ = first / grain * grain;
}

void Extractor::read_records() {
    for (std::size_t n = 0; n < replayer_.record_count(); ++n) {
        const emu::PortRecord record = replayer_.record(n);
        const auto word = [&](std::size_t k) {
            return k - 1 < record.words.size() ? record.words[k - 1] : 0;
        };
        const int queue = queue_at(ORR_TRACE_A(record.header), record.time_ps);
        if (queue < 0) continue;
        auto& demands = demands_[static_cast<std::size_t>(queue)];
        const std::uint32_t asid = observed_.queues[static_cast<std::size_t>(queue)].asid;
        switch (ORR_TRACE_TYPE(record.header)) {
            case ORR_TRACE_START_JOB:
                demands[word(1)].started = true;
                break;
            case ORR_TRACE_PREEMPT:
                if ((ORR_TRACE_B(record.header) >> 8 & 0xff) == SOC_PREEMPT_NOW) ++demands[word(1)].preempted;
                break;
            case ORR_TRACE_END_JOB: {
                Demand& demand = demands[word(1)];
                demand.used += word(4);
                demand.elapsed += word(3) - word(2);
                demand.status = ORR_TRACE_B(record.header) >> 16;
                demand.ended = demand.status != ORR_DONE_PREEMPTED;
                break;
            }
            case ORR_TRACE_WAIT:
                memory_[{asid, word(3)}] = word(1);
                break;
            case ORR_TRACE_SIGNAL:
                memory_[{asid, word(3)}] = word(1);
                break;
            default:
                break;
        }
    }
}

std::string unique_name(std::string name, std::set<std::string>& used) {
    name.resize(std::min<std::size_t>(name.size(), ORR_NAME_BYTES - 1));
    std::string made = name;
    for (unsigned n = 2; !used.insert(made).second; ++n) {
        const std::string ending = fmt::format("#{}", n);
        made = name.substr(0, ORR_NAME_BYTES - 1 - ending.size()) + ending;
    }
    return made;
}

void Extractor::describe() {
    Scenario& made = scenario();
    made.name = std::filesystem::path(replayer_.reader().name()).stem().string();
    made.seed = replayer_.info().seed;
    made.start = start_;
    made.until = 2 * since_start(replayer_.end_time()) + 20 * kMs;
    made.cards.resize(1);
    made.cards[0].sku = sku_;
    made.cards[0].vram_bytes = std::max<std::uint64_t>(replayer_.info().vram_bytes, 64u << 20);
    const auto areas = observed_.loads.find(
        ORR_HOST_WINDOW(observed_.boot_block + offsetof(orr_boot_block, host_page_size)));
    made.save_areas =
        areas != observed_.loads.end()
            ? static_cast<std::uint32_t>(std::min<std::uint64_t>(areas->second[0].second >> 32, 64))
            : 0;
    std::set<std::string> names;
    for (const ObservedContext& from : observed_.contexts) {
        Context context;
        context.name =
            unique_name(from.name.empty() ? fmt::format("context {}", from.number) : from.name, names);
        context.quota = static_cast<std::uint32_t>(from.create.arg[3] & 0xffffffff);
        context.period_us = static_cast<std::uint32_t>(from.create.arg[3] >> 32);
        context.user = static_cast<std::uint32_t>(from.create.arg[4]);
        context.process = static_cast<std::uint32_t>(from.create.arg[4] >> 32);
        made.contexts.push_back(context);
    }
    names.clear();
    for (const ObservedQueue& from : observed_.queues) {
        Queue queue;
        queue.name = unique_name(from.name.empty() ? fmt::format("queue {}", from.number) : from.name, names);
        queue.context = static_cast<std::uint32_t>(from.context);
        queue.priority = static_cast<std::uint32_t>(std::min<std::uint64_t>(from.create.arg[3] >> 32, 3));
        queue.limit_us = from.create.arg[4];
        queue.weight = static_cast<std::uint32_t>(from.create.arg[5] & 0xffffffff);
        if (queue.weight == 0) queue.weight = ORR_WEIGHT_DEFAULT;
        queue.slice_us = static_cast<std::uint32_t>(from.create.arg[5] >> 32);
        queue.ring_in_vram = from.ring_in_vram;
        queue.entries = static_cast<std::uint32_t>(from.create.arg[2]);
        made.queues.push_back(queue);
    }
    if (made.queues.empty()) note("the recording shows no queue");
}

std::uint32_t Extractor::semaphore_of(std::uint64_t key) {
    const auto [at, fresh] =
        semaphores_.emplace(key, static_cast<std::uint32_t>(scenario().semaphores.size()));
    if (fresh) {
        scenario().semaphores.push_back(
            {key == kElsewhere ? std::string("elsewhere") : fmt::format("s{}", at->second), 0});
    }
    return at->second;
}

void Extractor::set_kernel(Job& job, const Demand& demand, std::uint64_t before) {
    if (demand.ended && demand.status == ORR_DONE_OK && job.groups != 0) {
        // To save and load a group takes time on its core, too; how many were on cores is a guess.
        const Ps moved = demand.preempted * std::min<Ps>(sku_.vector_cores, job.groups) *
                         (2 * sku_.vector_save_core_ps + sku_.vector_group_ps + kSavedBytesPs);
        if (demand.preempted != 0) note("what preempted kernels needed is known to about 0.1 %");
        const Ps held = (demand.used > moved ? demand.used - moved : demand.used) / job.groups;
        const Ps core = held > sku_.vector_group_ps ? held - sku_.vector_group_ps : 0;
        // core * hz / 10^12, without overflow for kernels of hours
        job.cycles = std::max<std::uint64_t>(
            1, static_cast<std::uint64_t>(
                   std::round(static_cast<double>(core) * static_cast<double>(sku_.vector_hz) / 1e12)));
        return;
    }
    job.cycles = 1000;
    if (demand.ended && (demand.status == ORR_DONE_TRAP || demand.status == ORR_DONE_FAULT)) {
        job.traps = true;
        note("kernels that failed fail at their first instruction");
    } else if (demand.started) {
        job.cycles = 1'000'000'000'000;
        note("kernels that were aborted, or ran when the recording ended, run for ever");
    } else if (before != 0) {
        job.cycles = before;
        note("kernels that had not started when the recording ended take as long as those before them");
    } else {
        note("kernels that had not started when the recording ended take 1,000 cycles a group");
    }
}

// The memories that a copy touched are known by how long it took.
void Extractor::set_copy(Job& job, std::uint64_t row_bytes, std::uint64_t rows, const Demand& demand) {
    if (row_bytes != 0 && rows > kMostCopyBytes / row_bytes) {
        job.op = Op::kMalformed;
        note("copies of more than 1 TiB, which no card can do, are malformed packets");
        return;
    }
    job.bytes = std::max<std::uint64_t>(1, row_bytes * rows);
    if (!demand.ended || job.bytes < 4096) return;
    const Ps before = sku_.copy_setup_ps + sku_.memory_latency_ps;
    const double seconds = static_cast<double>(demand.elapsed > before ? demand.elapsed - before : 1) / 1e12;
    const double rate = static_cast<double>(job.bytes) / seconds;
    if (rate < 1.5 * static_cast<double>(sku_.copy_host_bytes_per_s)) {
        job.to.kind = Place::Kind::kHost;
    } else if (rate < 0.5 * static_cast<double>(sku_.copy_engine_bytes_per_s)) {
        note("copies to linked cards stay in VRAM, and are faster by that");
    }
}

Job Extractor::job_of(const ObservedQueue& queue, std::size_t number, std::uint64_t index,
                      const orr_packet& packet) {
    Job job;
    job.ordered = (packet.header.flags & ORR_PKT_F_ORDERED) != 0;
    job.interrupt = (packet.header.flags & ORR_PKT_F_INTERRUPT) != 0;
    const Demand demand = demands_[number].contains(index) ? demands_[number].at(index) : Demand{};
    switch (packet.header.opcode) {
        case ORR_PKT_NOP:
            break;
        case ORR_PKT_DISPATCH: {
            orr_packet_dispatch from;
            std::memcpy(&from, &packet, sizeof from);
            job.op = Op::kKernel;
            const std::uint64_t groups = std::uint64_t{from.grid_x} * from.grid_y * from.grid_z;
            job.groups = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(groups, 1, 0x7fffffff));
            job.resident = (from.header.flags & ORR_PKT_F_RESIDENT) != 0;
            if (out_->program == kProgram || out_->program == kOldProgram) {
                job.cycles = spin_cycles(from.args, sku_);
                job.traps = from.entry == kCodeVa + kTrapEntry;
            } else {
                const auto last =
                    std::ranges::find(jobs_[number].rbegin(), jobs_[number].rend(), Op::kKernel, &Job::op);
                set_kernel(job, demand, last == jobs_[number].rend() ? 0 : last->cycles);
            }
            break;
        }
        case ORR_PKT_COPY: {
            orr_packet_copy from;
            std::memcpy(&from, &packet, sizeof from);
            job.op = Op::kCopy;
            if ((from.header.flags & ORR_PKT_F_LONG) != 0) {
                note("copies whose descriptor was in memory are of no known length");
                set_copy(job, 0, 0, demand);
                break;
            }
            // Malformed ones can say anything: their product stays below 2^64.
            set_copy(job, from.row_bytes, std::uint64_t{from.rows} * std::max(from.planes, 1u), demand);
            break;
        }
        case ORR_PKT_REDUCE: {
            orr_packet_reduce from;
            std::memcpy(&from, &packet, sizeof from);
            job.op = Op::kCopy;
            note("copies with reduction become copies");
            set_copy(job, from.row_bytes, from.rows, demand);
            break;
        }
        case ORR_PKT_COPIES: {
            orr_packet_copies from;
            std::memcpy(&from, &packet, sizeof from);
            job.op = Op::kCopy;
            note("lists of copies become copies");
            set_copy(job, from.bytes, 1, demand);
            break;
        }
        case ORR_PKT_FILL: {
            orr_packet_fill from;
            std::memcpy(&from, &packet, sizeof from);
            job.op = Op::kFill;
            set_copy(job, from.row_bytes, from.rows, demand);
            break;
        }
        case ORR_PKT_WAIT:
        case ORR_PKT_SIGNAL: {
            orr_packet_semaphore from;
            std::memcpy(&from, &packet, sizeof from);
            job.op = packet.header.opcode == ORR_PKT_WAIT ? Op::kWait : Op::kSignal;
            job.semaphore = semaphore_of(key_of(queue.asid, from.semaphore));
            job.value = from.value;
            break;
        }
        case ORR_PKT_BARRIER:
            job.op = Op::kBarrier;
            break;
        case ORR_PKT_TIMESTAMP:
            job.op = Op::kTimestamp;
            break;
        case ORR_PKT_GANG: {
            orr_packet_gang from;
            std::memcpy(&from, &packet, sizeof from);
            if (from.cards != 1) {
                note("members of gangs over several cards start alone");
                break;
            }
            const std::uint64_t board = key_of(queue.asid, from.board);
            const auto [at, fresh] =
                gangs_.emplace(board, static_cast<std::uint32_t>(scenario().gangs.size()));
            if (fresh) scenario().gangs.push_back({fmt::format("gang {}", at->second), {from.members}});
            job.op = Op::kGang;
            job.gang = at->second;
            job.round = from.round;
            break;
        }
        default:
            job.op = Op::kMalformed;
            break;
    }
    return job;
}

void Extractor::make_jobs() {
    jobs_.resize(observed_.queues.size());
    for (std::size_t n = 0; n < observed_.queues.size(); ++n) {
        const ObservedQueue& queue = observed_.queues[n];
        for (const auto& [index, packet] : queue.packets) {
            // The firmware looks at a header to see whether the queue wants the same engine again.
            if (queue.words.at(index) == 1 && packet.header.opcode == ORR_PKT_DISPATCH &&
                !demands_[n].contains(index))
                continue;
            if (jobs_[n].size() < index && index < jobs_[n].size() + ORR_RING_MAX_ENTRIES) {
                note("packets that the firmware did not read do nothing");
                jobs_[n].resize(index);
            }
            if (jobs_[n].size() == index) jobs_[n].push_back(job_of(queue, n, index, packet));
        }
    }
    add_unread();
}

// Packets that were there when the recording ended, and that the firmware had not come to: taken to be like
// the last one of their queue that uses an engine. Without them a queue that gets more in the what-if would
// run out of work.
void Extractor::add_unread() {
    std::vector<std::uint64_t> there(jobs_.size());
    for (const emu::TraceNote& one : replayer_.notes()) {
        if (one.kind != ORR_OTRACE_NOTE_DOORBELL) continue;
        const int found = queue_at(static_cast<std::uint32_t>(one.field[0]), one.time_ps);
        if (found < 0) continue;
        const auto queue = static_cast<std::size_t>(found);
        const std::uint64_t producer = one.field[1] & ORR_DB_INDEX_MASK;
        const std::uint64_t entries =
            std::min<std::uint64_t>(observed_.queues[queue].create.arg[2], ORR_RING_MAX_ENTRIES);
        if (producer <= jobs_[queue].size() + entries) there[queue] = std::max(there[queue], producer);
    }
    for (std::size_t n = 0; n < jobs_.size(); ++n) {
        const auto like = std::ranges::find_if(jobs_[n].rbegin(), jobs_[n].rend(), [](const Job& job) {
            return job.op == Op::kKernel || job.op == Op::kCopy || job.op == Op::kFill;
        });
        if (there[n] <= jobs_[n].size() || like == jobs_[n].rend()) continue;
        note("packets that the firmware had not read when the recording ended are like those before them");
        const Job job = *like;
        jobs_[n].resize(there[n], job);
    }
}

void Extractor::submit() {
    std::vector<std::uint64_t> given(observed_.queues.size());
    for (const emu::TraceNote& one : replayer_.notes()) {
        if (one.kind != ORR_OTRACE_NOTE_DOORBELL) continue;
        const int found = queue_at(static_cast<std::uint32_t>(one.field[0]), one.time_ps);
        if (found < 0) continue;
        const auto queue = static_cast<std::size_t>(found);
        const std::uint64_t producer =
            std::min<std::uint64_t>(one.field[1] & ORR_DB_INDEX_MASK, jobs_[queue].size());
        if (producer <= given[queue]) continue;
        const auto first = jobs_[queue].begin();
        scenario().submits.push_back({since_start(one.time_ps),
                                      static_cast<std::uint32_t>(queue),
                                      {first + static_cast<std::ptrdiff_t>(given[queue]),
                                       first + static_cast<std::ptrdiff_t>(producer)}});
        given[queue] = producer;
    }
    // What no doorbell told of and nothing was done with was only looked at: the search for deadlocks, and
    // the end of a queue, read what stands in the ring.
    const std::vector<std::uint64_t> retired = retired_of_queues();
    for (std::size_t n = 0; n < jobs_.size(); ++n) {
        std::uint64_t done = std::max(given[n], retired[n]);
        if (!demands_[n].empty()) done = std::max(done, demands_[n].rbegin()->first + 1);
        if (jobs_[n].size() > done) jobs_[n].resize(done);
        if (given[n] >= jobs_[n].size()) continue;
        // The doorbell came before the recording did.
        note("some packets have no doorbell in the recording: they are there from the start");
        scenario().submits.push_back(
            {0,
             static_cast<std::uint32_t>(n),
             {jobs_[n].begin() + static_cast<std::ptrdiff_t>(given[n]), jobs_[n].end()}});
    }
}

void Extractor::act() {
    std::vector<Ps> mails;
    for (const emu::TraceNote& one : replayer_.notes()) {
        if (one.kind == ORR_OTRACE_NOTE_MAILBOX) mails.push_back(one.time_ps);
        if (one.kind == ORR_OTRACE_NOTE_RESTART || one.kind == ORR_OTRACE_NOTE_HALT)
            note("the core's restarts are left out");
    }
    for (const ObservedCommand& command : observed_.commands) {
        const auto rung = std::ranges::upper_bound(mails, command.time_ps);
        Action action;
        action.at = since_start(rung == mails.begin() ? command.time_ps : *std::prev(rung));
        const orr_mbox_message& message = command.message;
        switch (message.opcode) {
            case ORR_MBOX_QUEUE_DESTROY:
                // Queues that go when all is over change nothing, but for those that are destroyed at work.
                action.kind = Action::Kind::kQueueDestroy;
                action.queue = static_cast<std::uint32_t>(command.queue);
                break;
            case ORR_MBOX_QUEUE_SET:
                action.kind = Action::Kind::kQueueSet;
                action.queue = static_cast<std::uint32_t>(command.queue);
                action.priority = static_cast<std::uint32_t>(std::min<std::uint64_t>(message.arg[1], 3));
                action.weight = static_cast<std::uint32_t>(message.arg[2] & 0xffffffff);
                action.slice_us = static_cast<std::uint32_t>(message.arg[2] >> 32);
                break;
            default:
                action.kind = Action::Kind::kQuotaSet;
                action.context = static_cast<std::uint32_t>(command.context);
                action.quota = static_cast<std::uint32_t>(message.arg[1] & 0xffffffff);
                action.period_us = static_cast<std::uint32_t>(message.arg[1] >> 32);
                break;
        }
        scenario().actions.push_back(action);
    }
    for (const emu::TraceNote& one : replayer_.notes()) {
        if (one.kind != ORR_OTRACE_NOTE_POKE) continue;
        const std::uint64_t memory = ORR_VRAM_WINDOW + one.field[0];
        const auto waits = semaphores_.find(memory);
        if (waits == semaphores_.end()) continue;
        // Its value is what the core saw there next.
        std::uint64_t value = 0;
        for (const auto& [time, seen] : observed_.loads[memory]) {
            if (time >= one.time_ps) {
                value = seen;
                break;
            }
        }
        Action action;
        action.kind = Action::Kind::kPoke;
        action.at = since_start(one.time_ps);
        action.semaphore = waits->second;
        action.value = value;
        if (value != 0) scenario().actions.push_back(action);
    }
    poke_what_nobody_signals();
}

std::vector<std::uint64_t> Extractor::retired_of_queues() {
    std::vector<std::uint64_t> retired(observed_.queues.size());
    for (std::size_t n = 0; n < replayer_.record_count(); ++n) {
        const emu::PortRecord record = replayer_.record(n);
        if (ORR_TRACE_TYPE(record.header) != ORR_TRACE_RETIRE || record.words.empty()) continue;
        const int queue = queue_at(ORR_TRACE_A(record.header), record.time_ps);
        if (queue >= 0) retired[static_cast<std::size_t>(queue)] = record.words[0];
    }
    return retired;
}

// A wait that did not have to wait, for a value that no packet and no peer gave: memory held it, or the host
// stored it.
void Extractor::poke_what_nobody_signals() {
    Scenario& made = scenario();
    std::map<std::uint32_t, std::uint64_t> highest;
    for (const auto& queue : jobs_) {
        for (const Job& job : queue) {
            if (job.op == Op::kSignal) highest[job.semaphore] = std::max(highest[job.semaphore], job.value);
        }
    }
    for (const Action& action : made.actions) {
        if (action.kind == Action::Kind::kPoke)
            highest[action.semaphore] = std::max(highest[action.semaphore], action.value);
    }
    const std::vector<std::uint64_t> retired = retired_of_queues();
    std::vector<std::uint64_t> next(observed_.queues.size());
    std::vector<Action> pokes;
    for (const Submit& submit : made.submits) {
        for (const Job& job : submit.jobs) {
            const std::uint64_t index = next[submit.queue]++;
            if (job.op != Op::kWait || index >= retired[submit.queue] || highest[job.semaphore] >= job.value)
                continue;
            note("waits for values that nobody signals in the recording find them when their doorbell rings");
            Action poke;
            poke.kind = Action::Kind::kPoke;
            poke.at = submit.at;
            poke.semaphore = job.semaphore;
            poke.value = highest[job.semaphore] = job.value;
            pokes.push_back(poke);
        }
    }
    made.actions.insert(made.actions.end(), pokes.begin(), pokes.end());
}

}  // namespace

std::expected<Extract, std::string> extract(const std::string& trace) {
    auto reader = emu::TraceReader::open(trace);
    if (!reader) return std::unexpected(reader.error());
    auto sku = emu::Sku::parse_recorded(reader->info().sku_text, trace + " (its SKU)");
    if (!sku) return std::unexpected(sku.error());
    Observer observer(sku->host_store_ps);
    if (reader->info().resumed)
        return std::unexpected(
            fmt::format("{}: a flight recorder's recording begins in the midst, and what arrived before is "
                        "not in it: record the "
                        "card from power-on (--record)",
                        trace));
    auto replayer = emu::Replayer::open(*std::move(reader), {}, emu::Opening::kWhole,
                                        [&](const emu::PortAccess& access) { observer.see(access); });
    if (!replayer) return std::unexpected(replayer.error());
    if ((*replayer)->divergence()) {
        return std::unexpected(
            fmt::format("{}: the recording does not replay: {}", trace, (*replayer)->divergence()->reason));
    }
    if ((*replayer)->images().empty())
        return std::unexpected(trace +
                               ": no firmware was booted in this recording; record from the card's start");
    const emu::TraceImage& booted = (*replayer)->images()[0];
    auto image = Image::from_bytes(booted.bytes, trace);
    if (!image) return std::unexpected(image.error());
    Extract out;
    out.program = (*replayer)->info().program;
    out.build_id = booted.build_id;
    out.image = *std::move(image);
    out.image.set_symbols(booted.symbols);
    for (std::size_t n = 0; n < (*replayer)->record_count(); ++n) {
        const emu::PortRecord record = (*replayer)->record(n);
        out.records.push_back(records::make_record(record.step, record.time_ps, record.header, record.words));
    }
    out.end = (*replayer)->end_time();
    Extractor(**replayer, observer.take(), *std::move(sku)).run(out);
    if (const std::string wrong = out.scenario.check(); !wrong.empty())
        return std::unexpected(fmt::format("{}: its arrivals make no scenario: {}", trace, wrong));
    return out;
}

}  // namespace orrery::scenario
