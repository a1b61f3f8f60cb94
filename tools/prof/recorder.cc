// The tool that orrery-prof puts into programs (ORR_PROF_TOOL): it writes each call, range and marker, and
// what cards did, to the process's part of the profile.
#include <orrery/prof.h>
#include <orrery/prof_calls.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/prof/card_facts.h"
#include "tools/prof/memory_book.h"
#include "tools/prof/part.h"

namespace orrery::prof {
namespace {

class Recorder {
  public:
    bool start() {
        const char* const folder = std::getenv(kFolderVariable);
        const char* const limit = std::getenv(kLimitVariable);
        if (folder == nullptr) return false;
        folder_ = folder;
        limit_ = limit == nullptr ? 0 : std::strtoull(limit, nullptr, 10);
        const char* const period = std::getenv(kSamplesVariable);
        sample_ns_ = period == nullptr ? 0 : std::strtoull(period, nullptr, 10);
        const char* const pc_period = std::getenv(kPcVariable);
        pc_ns_ = pc_period == nullptr ? 0 : std::strtoull(pc_period, nullptr, 10);
        if (const char* const trace = std::getenv(kTraceVariable); trace != nullptr)
            traces_ = std::sscanf(trace, "%d:%u:%llu:%llu", &trace_.device, &trace_.core, &trace_.from_ns,
                                  &trace_.until_ns) == 4;
        const std::lock_guard lock(mutex_);
        return part_.open(folder_, limit_);
    }
    orrError_t subscribe(const orrProfOptions& options) {
        return orrProfSubscribe(
            &subscription_,
            [](void* user, const orrProfRecord* record) { static_cast<Recorder*>(user)->told(*record); },
            this, &options);
    }
    void stop() {
        (void)orrProfFlush();  // what cannot be told is not there
        read_all_clocks();
        const std::lock_guard lock(mutex_);
        part_.end_in_order();
    }
    void told(const orrProfRecord& record) {
        if (record.kind == orrProfEnter) {
            *record.data = record.host_ns;
            if (gives_back(record)) begin_give_back(record);
        } else if (record.kind == orrProfLeave) {
            add_call(record);
            add_what_it_did(record);
            if ((sample_ns_ != 0 || pc_ns_ != 0 || traces_) && begins_with_a_card(record.name)) sample_card();
            read_clock(record.host_ns);
        } else if (record.kind == orrProfSampled) {
            add_sample(*static_cast<const orrProfSample*>(record.params));
        } else if (record.kind == orrProfPcSampled) {
            add_pc_sample(record, *static_cast<const orrProfPcSample*>(record.params));
        } else if (record.kind == orrProfWorkDone) {
            const orrProfWork work = known_of(record);
            add_card(work.device);
            add_work(record, work);
        } else if (record.kind == orrProfSignalDone) {
            const auto& signal = *static_cast<const orrProfSignal*>(record.params);
            add_card(signal.device);
            add_signal(record, signal);
        } else if (record.kind == orrProfStreamMarker) {
            const auto& mark = *static_cast<const orrProfStreamMark*>(record.params);
            add_card(mark.device);
            add_stream_mark(record, mark);
        } else if (record.kind == orrProfStepDone) {
            add_step(record, *static_cast<const orrProfStep*>(record.params));
        } else if (record.kind == orrProfWorkLost) {
            const auto& work = *static_cast<const orrProfWork*>(record.params);
            WorkLostRecord lost{};
            lost.device = static_cast<std::uint32_t>(work.device);
            lost.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(work.lost, 0xffff'ffff));
            const auto lock = ready();
            add(Type::kWorkLost, lost);
        } else {
            add_range(record);
        }
    }

    void before_fork() { mutex_.lock(); }
    void in_parent() { mutex_.unlock(); }
    // It writes a part of its own, if it has anything to write.
    void in_child() {
        part_.forget();
        recent_ = {};
        texts_.clear();
        call_texts_.clear();
        known_cards_.store(0);
        cards_.clear();
        memory_.clear();
        sample_tries_.clear();
        pc_tries_.clear();
        trace_tries_.clear();
        sample_sets_.clear();
        clocks_.clear();
        worked_last_ = nullptr;
        reopen_ = true;
        mutex_.unlock();
    }

  private:
    // Held while something is written; there is a part.
    std::unique_lock<std::mutex> ready() {
        std::unique_lock lock(mutex_);
        if (reopen_) {
            reopen_ = false;
            (void)part_.open(folder_, limit_);
        }
        return lock;
    }
    void add_call(const orrProfRecord& record) {
        const bool text = record.call == orrProfCall_orrGetErrorName ||
                          record.call == orrProfCall_orrGetErrorString ||
                          record.call == orrProfCall_orrGetLastErrorText;
        CallRecord call{};
        call.begin_ns = *record.data;
        call.end_ns = record.host_ns;
        call.correlation = record.correlation;
        call.external = record.external;
        call.thread = static_cast<std::uint32_t>(record.thread);
        if (!text) call.error = static_cast<std::int32_t>(*static_cast<const orrError_t*>(record.result));
        const auto lock = ready();
        call.head.text = number_of_call(record);
        add(Type::kCall, call);
    }
    static bool gives_back(const orrProfRecord& record) {
        return record.call == orrProfCall_orrFree || record.call == orrProfCall_orrFreeHost;
    }
    // Of a call that gives back an error.
    static bool is_good(const orrProfRecord& record) {
        return *static_cast<const orrError_t*>(record.result) == orrSuccess;
    }
    void begin_give_back(const orrProfRecord& record) {
        const void* const address = record.call == orrProfCall_orrFree
                                        ? static_cast<const orrFree_params*>(record.params)->ptr
                                        : static_cast<const orrFreeHost_params*>(record.params)->ptr;
        const std::lock_guard lock(mutex_);
        memory_.begin_give_back(record.correlation, reinterpret_cast<std::uintptr_t>(address));
    }
    // Memory that a call took or gave back; and a card is asked what it is when the process first uses it.
    void add_what_it_did(const orrProfRecord& record) {
        void* const* address = nullptr;
        std::uint64_t bytes = 0;
        bool host = false;
        switch (record.call) {
            case orrProfCall_orrFree:
            case orrProfCall_orrFreeHost: {
                const auto lock = ready();
                if (const auto change = memory_.end_give_back(record.correlation, is_good(record)))
                    add_memory(record, *change);
                return;
            }
            case orrProfCall_orrDeviceSetQuota: {
                const auto& params = *static_cast<const orrDeviceSetQuota_params*>(record.params);
                if (!is_good(record)) return;
                const auto lock = ready();
                quotas_[params.device] = {params.permille, params.period_us};
                return;
            }
            case orrProfCall_orrMalloc: {
                const auto& params = *static_cast<const orrMalloc_params*>(record.params);
                address = params.ptr;
                bytes = params.bytes;
                break;
            }
            case orrProfCall_orrMallocPitch: {
                const auto& params = *static_cast<const orrMallocPitch_params*>(record.params);
                address = params.ptr;
                if (is_good(record)) bytes = *params.pitch * params.height;
                break;
            }
            case orrProfCall_orrIpcMalloc: {
                const auto& params = *static_cast<const orrIpcMalloc_params*>(record.params);
                address = params.ptr;
                bytes = params.bytes;
                break;
            }
            case orrProfCall_orrMallocHost: {
                const auto& params = *static_cast<const orrMallocHost_params*>(record.params);
                address = params.ptr;
                bytes = params.bytes;
                host = true;
                break;
            }
            case orrProfCall_orrStreamCreate:
            case orrProfCall_orrStreamCreateWithPriority:
            case orrProfCall_orrStreamCreateWithAttributes:
                break;
            default:
                return;
        }
        int device = 0;
        if (!is_good(record) || orrGetDevice(&device) != orrSuccess) return;
        if (!host) add_card(device);
        if (address == nullptr) return;
        const auto lock = ready();
        add_memory(record, memory_.take(host ? static_cast<std::int32_t>(Place::kHost) : device,
                                        reinterpret_cast<std::uintptr_t>(*address), bytes));
    }
    void add_memory(const orrProfRecord& record, const MemoryBook::Change& change) {
        MemoryRecord memory{};
        memory.device = change.device;
        memory.thread = static_cast<std::uint32_t>(record.thread);
        memory.ns = record.host_ns;
        memory.correlation = record.correlation;
        memory.address = change.address;
        memory.bytes = change.bytes;
        memory.in_use = change.in_use;
        add(Type::kMemory, memory);
    }
    void add_card(int device) {
        // Most of what cards do comes of those that are known.
        const std::uint64_t bit = device >= 0 && device < 64 ? std::uint64_t{1} << device : 0;
        if ((known_cards_.load(std::memory_order_relaxed) & bit) != 0) return;
        {
            const auto lock = ready();
            const bool is_new = cards_.insert(device).second;
            known_cards_.fetch_or(bit, std::memory_order_relaxed);
            if (!is_new) return;
        }
        const CardFacts facts = ask_card(device);  // which calls the library
        if (!facts.known) return;
        const auto lock = ready();
        CardRecord card{};
        card.head.text = number_of(facts.prop.name);
        card.device = static_cast<std::uint32_t>(device);
        card.pci = number_of(facts.prop.pci_address);
        card.uid = facts.prop.uid;
        card.vram_bytes = facts.prop.vram_bytes;
        card.core_hz = facts.prop.core_hz;
        card.vector_hz = facts.prop.vector_hz;
        card.vlen = facts.prop.vector_vlen;
        card.copy_engines = facts.prop.copy_engines;
        card.vector_ports = facts.prop.vector_ports;
        card.vector_cores = facts.prop.vector_cores;
        card.link_ports = facts.prop.link_ports;
        add(Type::kCard, card);
        LastClock& last = clocks_[device];
        last.readable = facts.clock.device_ps != 0 && (facts.links.empty() || facts.clock.in_step != 0);
        last.in_step = facts.clock.in_step;
        clocks_due_ns_.store(0, std::memory_order_relaxed);
        if (last.readable) add_clock(facts.clock);
        for (const auto& [key, value] : facts.sku)
            add_number(card.device, key.c_str(), value);
        const auto quota = quotas_.find(device);
        const auto [permille, period_us] =
            quota != quotas_.end() ? quota->second : quota_of(std::getenv("ORR_QUOTA"));
        if (permille != 0) {
            add_number(card.device, kQuotaPermille, permille);
            add_number(card.device, kQuotaPeriod, period_us);
        }
        for (const auto& [port, info] : facts.links) {
            LinkRecord link{};
            link.device = card.device;
            link.port = port;
            link.peer_uid = info.peer_uid;
            link.peer_device = info.peer_device;
            link.peer_port = info.peer_port;
            link.state = static_cast<std::uint32_t>(info.state);
            link.lanes = info.lanes;
            link.gbit_per_s = info.gbps;
            link.latency_ns = info.latency_ns;
            add(Type::kLink, link);
        }
    }
    void add_number(std::uint32_t device, const char* key, std::uint64_t value) {
        SkuRecord sku{};
        sku.head.text = number_of(key);
        sku.device = device;
        sku.value = value;
        add(Type::kSku, sku);
    }
    void add_range(const orrProfRecord& record) {
        RangeRecord range{};
        range.ns = record.host_ns;
        range.correlation = record.correlation;
        range.external = record.external;
        range.thread = static_cast<std::uint32_t>(record.thread);
        const auto lock = ready();
        range.head.text = number_of(record.name);
        range.domain = number_of(record.domain);
        add(record.kind == orrProfRangeBegin ? Type::kRangeBegin
            : record.kind == orrProfRangeEnd ? Type::kRangeEnd
                                             : Type::kMark,
            range);
    }

    // An older library's is shorter.
    static orrProfWork known_of(const orrProfRecord& record) {
        orrProfWork known{};
        std::memcpy(&known, record.params,
                    std::min(static_cast<const orrProfWork*>(record.params)->size, sizeof known));
        // When its record was read.
        if (known.ended_by_ns == 0) known.ended_by_ns = record.host_ns;
        return known;
    }
    void add_work(const orrProfRecord& record, const orrProfWork& done) {
        WorkRecord work{};
        work.thread = static_cast<std::uint32_t>(record.thread);
        work.device = static_cast<std::uint32_t>(done.device);
        work.submitted_ns = done.submitted_ns;
        work.correlation = record.correlation;
        work.external = record.external;
        work.stream = done.stream;
        work.index = done.index;
        work.begin_ps = done.begin_ps;
        work.end_ps = done.end_ps;
        work.used_ps = done.used_ps;
        work.operation = static_cast<std::uint16_t>(done.operation);
        work.outcome = static_cast<std::uint16_t>(done.outcome);
        work.bytes = done.bytes;
        work.source = done.source;
        work.destination = done.destination;
        work.from_stream = done.from_stream;
        work.from_index = done.from_index;
        work.from = done.from;
        work.groups = done.groups;
        work.items = done.items;
        work.known = 1;
        work.semaphore = done.semaphore;
        work.value = done.value;
        work.reduces = done.reduces;
        // Else it is when the record was read.
        work.found_ns = done.ended_by_ns < record.host_ns ? done.ended_by_ns : 0;
        bool due = false;
        {
            const auto lock = ready();
            work.head.text = number_of(record.name);
            work.stream_name = number_of(done.stream_name);
            work.from_name = number_of(done.from_name);
            add(Type::kWork, work);
            due = add_clock_of(done, record.host_ns);
            if (done.counters != nullptr) add_counters(done);
        }
        if (due) read_clock_of(done.device);
    }
    void add_signal(const orrProfRecord& record, const orrProfSignal& done) {
        SignalRecord signal{};
        signal.thread = static_cast<std::uint32_t>(record.thread);
        signal.device = static_cast<std::uint32_t>(done.device);
        signal.submitted_ns = done.submitted_ns;
        signal.correlation = record.correlation;
        signal.external = record.external;
        signal.stream = done.stream;
        signal.index = done.index;
        signal.time_ps = done.time_ps;
        signal.semaphore = done.semaphore;
        signal.value = done.value;
        signal.outcome = static_cast<std::uint16_t>(done.outcome);
        signal.memory = done.memory;
        signal.waiters = done.waiters;
        const auto lock = ready();
        signal.head.text = number_of(done.semaphore_name);
        signal.stream_name = number_of(done.stream_name);
        add(Type::kSignal, signal);
    }
    void add_stream_mark(const orrProfRecord& record, const orrProfStreamMark& told) {
        StreamMarkRecord mark{};
        mark.thread = static_cast<std::uint32_t>(record.thread);
        mark.device = static_cast<std::uint32_t>(told.device);
        mark.submitted_ns = told.submitted_ns;
        mark.correlation = record.correlation;
        mark.external = record.external;
        mark.stream = told.stream;
        mark.index = told.index;
        mark.time_ps = told.time_ps;
        const auto lock = ready();
        mark.head.text = number_of(record.name);
        mark.stream_name = number_of(told.stream_name);
        mark.domain = number_of(record.domain);
        add(Type::kStreamMark, mark);
    }
    void add_step(const orrProfRecord& record, const orrProfStep& done) {
        StepRecord step{};
        step.thread = static_cast<std::uint32_t>(record.thread);
        step.device = done.device;
        step.correlation = record.correlation;
        step.external = record.external;
        step.owner = done.owner;
        step.round = done.round;
        step.number = done.number;
        step.kind = static_cast<std::uint16_t>(done.kind);
        step.of = static_cast<std::uint16_t>(done.of);
        step.lane = done.lane;
        step.members = done.members;
        step.stream = done.stream;
        step.first_index = done.first_index;
        step.end_index = done.end_index;
        step.begin_ps = done.begin_ps;
        step.end_ps = done.end_ps;
        step.begin_ns = done.begin_ns;
        step.end_ns = done.end_ns;
        const auto lock = ready();
        step.head.text = number_of(record.name);
        add(Type::kStep, step);
    }
    // Behind the work, under the same lock.
    void add_counters(const orrProfWork& done) {
        const orrProfWorkCounters& did = *done.counters;
        WorkCountersRecord record{};
        record.device = static_cast<std::uint32_t>(done.device);
        record.cores = static_cast<std::uint32_t>(did.cores);
        record.stream = done.stream;
        record.index = done.index;
        record.begin_ps = done.begin_ps;
        // From here on they are the same words, as many as the card counts.
        constexpr std::size_t kHead = offsetof(orrProfWorkCounters, busy_ps);
        constexpr std::size_t kBytes = sizeof record - offsetof(WorkCountersRecord, busy_ps);
        static_assert(kBytes == sizeof did - kHead);
        static_assert(offsetof(WorkCountersRecord, pause_ps) == sizeof record - sizeof record.pause_ps);
        static_assert(offsetof(WorkCountersRecord, instructions) - offsetof(WorkCountersRecord, busy_ps) ==
                      offsetof(orrProfWorkCounters, instructions) - kHead);
        const std::size_t known = std::clamp(did.size, kHead, sizeof did) - kHead;
        std::memcpy(&record.busy_ps, &did.busy_ps, known);
        add(Type::kWorkCounters, record, kBytes - known);
    }

    // An idle card's model time hardly goes on, so what is known of it holds for the moment only.
    static constexpr std::int64_t kReadEachNs = 20'000'000, kWorkEachNs = 2'000'000;
    // Moments come from several threads, and not in their order.
    static std::int64_t since(std::uint64_t then_ns, std::uint64_t now_ns) {
        return static_cast<std::int64_t>(now_ns - then_ns);
    }

    void add_clock(const orrProfClock& read) {
        ClockRecord clock{};
        clock.device = static_cast<std::uint32_t>(read.device);
        clock.in_step = read.in_step;
        clock.before_ns = read.before_ns;
        clock.device_ps = read.device_ps;
        clock.after_ns = read.after_ns;
        add(Type::kClock, clock);
    }
    // Of the thread's card, now and then.
    void read_clock(std::uint64_t now_ns) {
        // Calls of the program are made to wait for this: most find nothing due.
        if (now_ns < clocks_due_ns_.load(std::memory_order_relaxed)) return;
        {
            // Before the program uses a card nothing of the library's is begun on its behalf.
            const std::lock_guard lock(mutex_);
            if (clocks_.empty()) return;
        }
        int device = 0;
        if (orrGetDevice(&device) != orrSuccess) return;
        {
            const std::lock_guard lock(mutex_);
            const auto last = clocks_.find(device);
            const bool due = last != clocks_.end() && last->second.readable &&
                             since(last->second.read_ns, now_ns) >= kReadEachNs;
            if (due) last->second.read_ns = now_ns;
            std::uint64_t first = now_ns + kReadEachNs;
            for (const auto& [other, clock] : clocks_) {
                // One that nobody has read for longer is not waited for: its card is idle, or another
                // thread's, whose next call is at most so late.
                const std::uint64_t next = clock.read_ns + kReadEachNs;
                if (clock.readable && since(now_ns, next) > 0) first = std::min(first, next);
            }
            clocks_due_ns_.store(first, std::memory_order_relaxed);
            if (!due) return;
        }
        read_clock_of(device);
    }
    void read_clock_of(int device) {
        orrProfClock read = ORR_INIT(orrProfClock);
        if (orrProfReadClock(&read, device) != orrSuccess) return;
        const auto lock = ready();
        add_clock(read);
    }
    void read_all_clocks() {
        std::vector<int> devices;
        {
            const std::lock_guard lock(mutex_);
            for (const auto& [device, last] : clocks_)
                if (last.readable) devices.push_back(device);
        }
        for (const int device : devices)
            read_clock_of(device);
    }
    // Work had not ended when it was submitted, and has when a wait of the program's or the library has seen
    // that. Under the lock. True: the card's clock is to be read as well, as all that has ended by now is
    // before what it shows, and what ends later, while the program may make no call, is behind.
    bool add_clock_of(const orrProfWork& done, std::uint64_t now_ns) {
        // Mostly the same card's as before.
        if (worked_last_ == nullptr || worked_device_ != done.device) {
            worked_last_ = &clocks_[done.device];
            worked_device_ = done.device;
        }
        LastClock& last = *worked_last_;
        // What was read and what was waited for come mixed.
        const std::uint64_t by_ns = done.ended_by_ns;
        std::uint64_t& last_ns = by_ns == now_ns ? last.worked_ns : last.waited_ns;
        if (since(last_ns, by_ns) >= kWorkEachNs && done.submitted_ns <= by_ns) {
            last_ns = by_ns;
            orrProfClock known{};
            known.device = done.device;
            known.in_step = last.in_step;
            known.before_ns = done.submitted_ns;
            known.device_ps = done.end_ps;
            known.after_ns = by_ns;
            add_clock(known);
        }
        const bool due = last.readable && since(last.read_ns, now_ns) >= kReadEachNs / 2;
        if (due) last.read_ns = now_ns;
        return due;
    }

    static bool begins_with_a_card(std::string_view call) {
        return call.starts_with("orrMalloc") || call.starts_with("orrStreamCreate") ||
               call.starts_with("orrModuleLoad");
    }
    // The thread's card, once the program uses it.
    void sample_card() {
        int device = 0;
        if (orrGetDevice(&device) != orrSuccess) return;
        if (sample_ns_ != 0) {
            ask(sample_tries_, device, "",
                [&] { return orrProfStartSamples(subscription_, device, sample_ns_, nullptr, 0); });
        }
        if (pc_ns_ != 0) {
            ask(pc_tries_, device, "'s vector cores",
                [&] { return orrProfStartPcSampling(subscription_, device, pc_ns_); });
        }
        if (traces_ && trace_.device == device) {
            ask(trace_tries_, device, "'s instructions", [&] {
                return orrProfStartInstructionTrace(subscription_, device, trace_.core, trace_.from_ns * 1000,
                                                    trace_.until_ns * 1000);
            });
        }
    }
    // Another process or tool has them, maybe: it may go.
    template <typename Start>
    void ask(std::map<int, int>& all, int device, const char* part, const Start& start) {
        int tries = 0;
        {
            const std::lock_guard lock(mutex_);
            tries = ++all[device];
        }
        if (tries > kSampleTries) return;
        if (start() == orrSuccess) {
            const std::lock_guard lock(mutex_);
            all[device] = kSampleTries;
        } else if (tries == 1) {
            std::fprintf(stderr, "orrery-prof: no samples of device %d%s: %s\n", device, part,
                         orrGetLastErrorText());
        }
    }
    void add_pc_sample(const orrProfRecord& record, const orrProfPcSample& told) {
        const auto lock = ready();
        if (told.lost != 0) add_lost(static_cast<std::uint32_t>(told.device), Type::kPcSample, told.lost);
        if (told.count == 0) return;
        PcSampleRecord sample{};
        sample.head.text = number_of(record.name);
        sample.device = static_cast<std::uint32_t>(told.device);
        sample.core = told.core;
        sample.time_ps = told.time_ps;
        sample.stream = told.stream;
        sample.index = told.index;
        sample.offset = told.offset;
        sample.group = told.group;
        sample.function = number_of(told.function);
        sample.source = number_of(told.source);
        sample.stall = told.stall;
        sample.more = static_cast<std::uint32_t>(told.count - 1);
        sample.period_ps = told.period_ns * 1'000;
        add(told.period_ns == 0 ? Type::kInstruction : Type::kPcSample, sample);
    }
    void add_lost(std::uint32_t device, Type type, std::uint64_t count) {
        SamplesLostRecord lost{};
        lost.device = device;
        lost.type = static_cast<std::uint32_t>(type);
        lost.count = count;
        add(Type::kSamplesLost, lost);
    }
    void add_sample(const orrProfSample& told) {
        SampleRecord sample{};
        sample.device = static_cast<std::uint32_t>(told.device);
        sample.count = told.count;
        sample.time_ps = told.time_ps;
        const SampleSet set{told.period_ns, {told.counters, told.counters + told.count}};
        auto lock = ready();
        if (told.count != 0 && sample_sets_[told.device] != set) {
            lock.unlock();  // only one thread is told of a card's samples at a time
            const auto known = catalogue(told.device);
            lock.lock();
            sample_sets_[told.device] = set;
            add_sample_set(told, known);
        }
        if (told.lost != 0) add_lost(sample.device, Type::kSample, told.lost);
        if (told.count != 0) add_with(Type::kSample, sample, told.values, told.count * sizeof *told.values);
    }
    // The catalogue that its counters are of.
    static std::vector<orrCounterInfo> catalogue(int device) {
        std::size_t count = 0;
        if (orrDeviceGetCounterCount(&count, device) != orrSuccess) return {};
        std::vector<orrCounterInfo> all(count);
        for (std::size_t number = 0; number < count; ++number) {
            all[number] = ORR_INIT(orrCounterInfo);
            if (orrDeviceGetCounterInfo(&all[number], device, number) != orrSuccess) return {};
        }
        return all;
    }
    void add_sample_set(const orrProfSample& told, std::span<const orrCounterInfo> known) {
        SampleSetRecord set{};
        set.device = static_cast<std::uint32_t>(told.device);
        set.count = told.count;
        set.period_ps = told.period_ns * 1'000;
        std::vector<SampledCounter> counters(told.count);
        for (std::uint32_t i = 0; i < told.count; ++i) {
            const auto info = std::ranges::find(known, told.counters[i], &orrCounterInfo::counter);
            if (info == known.end()) continue;
            counters[i].number = static_cast<std::uint32_t>(info - known.begin());
            counters[i].name = number_of(info->name);
            counters[i].unit = number_of(info->unit);
        }
        add_with(Type::kSampleSet, set, counters.data(), counters.size() * sizeof(SampledCounter));
    }
    template <typename Record>
    void add(Type type, Record& record, std::size_t without = 0) {
        const std::size_t bytes = sizeof record - without;
        record.head.bytes = static_cast<std::uint16_t>(bytes);
        std::byte* const room = part_.take(bytes);
        if (room != nullptr) put(room, &record, bytes, type);
    }
    // And these bytes behind it.
    template <typename Record>
    void add_with(Type type, Record& record, const void* rest, std::size_t bytes) {
        record.head.bytes = static_cast<std::uint16_t>(sizeof record + bytes);
        std::byte* const room = part_.take(sizeof record + bytes);
        if (room == nullptr) return;
        std::memcpy(room + sizeof record, rest, bytes);
        put(room, &record, sizeof record, type);
    }
    // Whoever reads a part that was left sees whole records only.
    static void put(std::byte* room, const void* record, std::size_t bytes, Type type) {
        std::memcpy(room + sizeof type, static_cast<const std::byte*>(record) + sizeof type,
                    bytes - sizeof type);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        std::memcpy(room, &type, sizeof type);
    }

    // A call has one name always.
    std::uint32_t number_of_call(const orrProfRecord& record) {
        if (record.call >= call_texts_.size()) call_texts_.resize(record.call + std::size_t{1});
        std::uint32_t& number = call_texts_[record.call];
        if (number == 0) number = number_of(record.name);
        return number;
    }
    // 0: it has no text, or there are too many.
    std::uint32_t number_of(const char* text) {
        if (text == nullptr || !part_.is_open()) return 0;
        // Another text may stand there by now. One that is cut is never the same as its beginning.
        const auto place = reinterpret_cast<std::uintptr_t>(text);
        Recent& recent = recent_[(place >> 4 ^ place >> 10) % recent_.size()];
        if (recent.place == text && std::strcmp(text, recent.text) == 0) return recent.number;
        const std::string_view name(text, ::strnlen(text, kMaxText));
        if (const auto found = texts_.find(name); found != texts_.end()) {
            recent = {text, found->first.c_str(), found->second};
            return found->second;
        }
        if (texts_.size() >= kMaxTexts) return 0;
        RecordHead head{};
        const std::size_t bytes = (sizeof head + name.size() + 1 + 7) / 8 * 8;
        std::byte* const room = part_.take(bytes);
        if (room == nullptr) return 0;
        const auto number = static_cast<std::uint32_t>(texts_.size() + 1);
        head.bytes = static_cast<std::uint16_t>(bytes);
        head.text = number;
        std::memcpy(room + sizeof head, name.data(), name.size());  // what is behind is zero
        put(room, &head, sizeof head, Type::kText);
        texts_.emplace(name, number);
        return number;
    }

    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    orrProfSubscription_t subscription_ = nullptr;
    std::string folder_;
    struct Trace {
        int device = 0;
        unsigned core = 0;
        unsigned long long from_ns = 0, until_ns = 0;
    };
    Trace trace_;
    bool traces_ = false;
    std::uint64_t limit_ = 0, sample_ns_ = 0, pc_ns_ = 0;
    using SampleSet = std::pair<std::uint64_t, std::vector<orrCounter_t>>;  // period and counters
    static constexpr int kSampleTries = 8;
    std::map<int, int> sample_tries_, pc_tries_, trace_tries_;  // how often those of a card were asked for
    std::map<int, SampleSet> sample_sets_;                      // that the part says theirs are of
    bool reopen_ = false;
    std::mutex mutex_;
    Part part_;
    // When a card's clock was last written down, by what.
    struct LastClock {
        bool readable = false;  // what the library reads is the clock that work is told in
        std::uint32_t in_step = 0;
        std::uint64_t read_ns = 0, worked_ns = 0, waited_ns = 0;
    };
    std::map<int, LastClock> clocks_;
    LastClock* worked_last_ = nullptr;  // in it: that of the card whose work was told last
    int worked_device_ = 0;
    std::atomic<std::uint64_t> clocks_due_ns_{0};  // none is read before; written under the mutex
    std::set<int> cards_;                          // that were asked what they are
    std::atomic<std::uint64_t> known_cards_{0};    // of these the first 64, as bits; set under the mutex
    std::map<int, Quota> quotas_;
    MemoryBook memory_;
    std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> texts_;
    // Of texts that come again and again, by where they stand; `text` is in the map, which forgets none.
    struct Recent {
        const char* place = nullptr;
        const char* text = nullptr;
        std::uint32_t number = 0;
    };
    std::array<Recent, 64> recent_{};
    std::vector<std::uint32_t> call_texts_;  // by call; 0: not known yet
};

// Never destroyed: calls may come until the process ends.
Recorder& recorder() {
    alignas(Recorder) static std::byte room[sizeof(Recorder)];
    static Recorder* const one = new (room) Recorder;
    return *one;
}

orrError_t start() {
    if (!recorder().start()) return orrErrorSystem;
    if (::pthread_atfork([] { recorder().before_fork(); }, [] { recorder().in_parent(); },
                         [] { recorder().in_child(); }) != 0) {
        return orrErrorSystem;
    }
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want =
        orrProfWantCalls | orrProfWantRanges | orrProfWantWork | orrProfWantSteps | orrProfWantSignals;
    if (std::getenv(kCountersVariable) != nullptr) options.want |= orrProfWantCounters;
    if (std::getenv(kSamplesVariable) != nullptr) options.want |= orrProfWantSamples;
    if (std::getenv(kPcVariable) != nullptr || std::getenv(kTraceVariable) != nullptr)
        options.want |= orrProfWantPcs;
    return recorder().subscribe(options);
}

void stop() {
    recorder().stop();
}

}  // namespace
}  // namespace orrery::prof

extern "C" {
// orrery-prof refers to it to find this library's file.
extern ORR_API const orrProfTool orrery_prof_tool;
const orrProfTool orrery_prof_tool = {sizeof(orrProfTool), orrProfToolVersion, "orrery-prof",
                                      &orrery::prof::start, &orrery::prof::stop};
}
