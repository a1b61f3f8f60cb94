// A scenario on the firmware's logic, natively: the chip model of tests/unit/firmware with engines that take
// the time that they are given here.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <orrery/fw/trace.h>

#include "tests/unit/firmware/bench.h"
#include "tests/unit/policy/history.h"

namespace orrery::policy {

namespace {

using namespace fw::test;
using scenario::Job;
using scenario::Op;
using scenario::Scenario;

constexpr Ps kPass = 50'000;  // of the firmware, on top of its accesses
constexpr Ps kCopySetup = 200'000;
constexpr Ps kSaveTime = 2'000'000;

class Native {
  public:
    explicit Native(const Scenario& scenario) : scenario_(scenario) {
        const auto& sku = scenario.cards[0].sku;
        FakeSoc::Config config;
        config.copy_engines = sku.copy_engines;
        config.vector_ports = sku.vector_ports;
        config.vector_cores = sku.vector_cores;
        config.preempt_at_once = false;
        bench_ = std::make_unique<Bench>(config);
        FakeSoc& soc = bench_->soc;
        soc.set_host(kBlock + offsetof(orr_boot_block, save_areas) / 8 * 8,
                     std::uint64_t{scenario.save_areas} << 32 | 4096);
        soc.set_host(kBlock + offsetof(orr_boot_block, save_base), 0x900000);
        ports_.resize(sku.copy_engines + sku.vector_ports);
        history_.copy_engines = sku.copy_engines;
        history_.vector_ports = sku.vector_ports;
        history_.semaphores_at = kSharedVa;
    }

    std::expected<History, std::string> run() {
        if (!bench_->boot()) return std::unexpected("the firmware does not start");
        if (!scenario_.actions.empty()) return std::unexpected("no actions on the chip model");
        for (std::uint32_t n = 0; n < scenario_.contexts.size(); ++n) {
            const scenario::Context& context = scenario_.contexts[n];
            bench_->create_context(n + 1, n + 1, context.user, context.process);
            if (context.quota != 0)
                bench_->call(ORR_MBOX_QUOTA_SET,
                             {n + 1, context.quota | std::uint64_t{context.period_us} << 32});
        }
        for (std::uint32_t n = 0; n < scenario_.queues.size(); ++n) {
            if (!create(n)) return std::unexpected(fmt::format("queue {} is refused", n));
        }
        history_.submitted.resize(scenario_.queues.size());
        bench_->soc.on_start = [this](std::uint32_t port, const FakeSoc::Engine& engine) {
            started(port, engine);
        };
        bench_->soc.trace_words.clear();
        start_ = bench_->soc.time;
        for (std::size_t n = 0; n < scenario_.submits.size(); ++n)
            order_.push_back(n);
        std::ranges::sort(order_, {}, [&](std::size_t n) { return std::pair(scenario_.submits[n].at, n); });
        loop();
        for (std::uint32_t n = 0; n < queues_.size(); ++n) {
            history_.completed.push_back(bench_->status(n).completed);
            history_.errors.push_back(bench_->status(n).error);
        }
        history_.complaints = bench_->soc.violations();
        return std::move(history_);
    }

  private:
    struct PortState {
        bool running = false;
        bool saving = false;  // ends_at is when the preempted job is in its save area
        Ps ends_at = 0;
        Ps left = 0;  // when it was asked to stop
    };

    bool create(std::uint32_t n) {
        const scenario::Queue& queue = scenario_.queues[n];
        const std::uint32_t context = queue.context + 1;
        ProcessQueue made{.number = n,
                          .context = context,
                          .page = context,
                          .slot = slots_[context]++,
                          .entries = 64,
                          .ring = kRingMemory + n * kRingBytes};
        const std::uint64_t va = kRingVa + n * kRingBytes;
        for (std::uint64_t at = 0; at < kRingBytes; at += ORR_PAGE_SIZE)
            bench_->soc.map(context, va + at, made.ring + at);
        bench_->soc.set_memory(made.ring, 0);
        const auto reply = bench_->call(ORR_MBOX_QUEUE_CREATE,
                                        {n | std::uint64_t{context} << 32, va, made.entries,
                                         made.slot | std::uint64_t{queue.priority} << 32, queue.limit_us,
                                         queue.weight | std::uint64_t{queue.slice_us} << 32});
        made.generation = reply.arg[0];
        queues_.push_back(made);
        return reply.status == ORR_STATUS_OK;
    }

    orr_packet packet(const Job& job) const {
        std::uint16_t flags = job.ordered ? ORR_PKT_F_ORDERED : 0;
        if (job.interrupt) flags |= ORR_PKT_F_INTERRUPT;
        const std::uint64_t semaphore = kSharedVa + 16 * job.semaphore;
        switch (job.op) {
            case Op::kKernel: {
                auto made = dispatch_of(0x100000, flags);
                made.grid_x = job.groups;
                made.grid_y = made.grid_z = 1;
                made.args = job.cycles;
                if (job.resident) made.header.flags |= ORR_PKT_F_RESIDENT;
                return as_packet(made);
            }
            case Op::kGang: {
                orr_packet_gang made{};
                made.header.opcode = ORR_PKT_GANG;
                made.board = kSharedVa + 0xc000 + 256 * job.gang;
                made.round = job.round;
                made.cards = 1;
                made.members = static_cast<std::uint16_t>(scenario_.gangs[job.gang].members[0]);
                return as_packet(made);
            }
            case Op::kCopy: {
                auto made = copy_of(0x100000, flags);
                made.row_bytes = job.bytes;
                return as_packet(made);
            }
            case Op::kFill: {
                auto made = fill_of(0x100000);
                made.header.flags = flags;
                made.pattern_bytes = 1;
                made.pattern = 0x5a;
                made.row_bytes = job.bytes;
                made.rows = 1;
                made.dst_pitch = 0;
                return as_packet(made);
            }
            case Op::kWait:
                return wait(semaphore, job.value);
            case Op::kSignal:
                return signal(semaphore, job.value);
            case Op::kBarrier:
                return barrier();
            case Op::kTimestamp:
                return timestamp(kSharedVa + 0x8000);
            case Op::kMalformed:
                return fw::test::packet(0xdead);
            default:
                return nop(flags);
        }
    }

    Ps duration(const FakeSoc::Engine& engine) const {
        if (engine.kind == ORR_ENGINE_VECTOR) {
            const auto desc = engine.as<orr_desc_kernel>();
            const std::uint64_t cores = scenario_.cards[0].sku.vector_cores;
            return desc.args * 1000 * ((desc.grid_x + cores - 1) / cores) + 500'000;
        }
        return kCopySetup + engine.as<orr_desc_copy>().row_bytes * 5 / 2;  // 400 GB/s
    }

    void started(std::uint32_t port, const FakeSoc::Engine& engine) {
        PortState& state = ports_[port];
        Ps left = duration(engine);
        if (engine.resumed) {
            left = saved_[engine.save];
            saved_.erase(engine.save);
        }
        state = {.running = true, .saving = false, .ends_at = bench_->soc.time + left, .left = 0};
    }

    void deliver(Ps now) {
        while (next_ < order_.size() && scenario_.submits[order_[next_]].at + start_ <= now) {
            const scenario::Submit& submit = scenario_.submits[order_[next_++]];
            ProcessQueue& queue = queues_[submit.queue];
            for (const Job& job : submit.jobs) {
                bench_->push(queue, packet(job));
                history_.submitted[submit.queue].push_back(now - start_);
            }
            bench_->ring(queue);
        }
    }

    // Engines: what has come to its end, and what the firmware has asked to stop.
    void work(Ps now) {
        FakeSoc& soc = bench_->soc;
        for (std::uint32_t n = 0; n < ports_.size(); ++n) {
            PortState& port = ports_[n];
            FakeSoc::Engine& engine = soc.engines[n];
            if (!port.running) continue;
            if (!engine.busy) {  // aborted
                port.running = false;
                continue;
            }
            if (engine.preempt != 0 && !port.saving) {
                // A kernel's groups here last as long as the kernel: at their border means at the end.
                if (engine.preempt == SOC_PREEMPT_GROUP && engine.kind == ORR_ENGINE_VECTOR) {
                } else if (port.ends_at > now) {
                    port.saving = true;
                    port.left = port.ends_at - now;
                    port.ends_at = now + kSaveTime;
                }
            }
            if (port.ends_at > now) continue;
            port.running = false;
            if (port.saving) {
                saved_[engine.save] = port.left;
                soc.preempt(n);
            } else {
                soc.finish(n);
            }
        }
    }

    void hear(Ps now) {
        auto& words = bench_->soc.trace_words;
        std::size_t at = 0;
        while (at < words.size() && at + ORR_TRACE_WORDS(words[at]) < words.size()) {
            const std::size_t end = at + ORR_TRACE_WORDS(words[at]) + 1;
            Happening one;
            const auto first = words.begin();
            if (decode(now - start_,
                       {first + static_cast<std::ptrdiff_t>(at), first + static_cast<std::ptrdiff_t>(end)},
                       one))
                history_.all.push_back(one);
            at = end;
        }
        words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
    }

    bool all_done() const {
        if (next_ < order_.size()) return false;
        return std::ranges::all_of(queues_, [&](const ProcessQueue& queue) {
            const auto status = bench_->status(queue.number);
            return status.completed == queue.producer || status.error != 0;
        });
    }

    void loop() {
        FakeSoc& soc = bench_->soc;
        const Ps end = start_ + scenario_.until;
        while (soc.time < end) {
            deliver(soc.time);
            work(soc.time);
            const bool busy = bench_->pass();
            hear(soc.time);
            while (bench_->receive()) {
            }
            if (busy || soc.lines() != 0) {
                soc.time += kPass;
                continue;
            }
            // What the pass asked of the ports.
            work(soc.time);
            if (all_done()) {
                history_.done = true;
                return;
            }
            Ps next = soc.timer;
            if (next_ < order_.size()) next = std::min(next, scenario_.submits[order_[next_]].at + start_);
            for (const PortState& port : ports_) {
                if (port.running) next = std::min(next, port.ends_at);
            }
            if (next == kEmpty) return;  // nothing will ever happen
            soc.time = std::max(soc.time + kPass, next);
        }
    }

    const Scenario& scenario_;
    std::unique_ptr<Bench> bench_;
    std::vector<ProcessQueue> queues_;
    std::map<std::uint32_t, std::uint32_t> slots_;  // of each context's doorbell page
    std::vector<PortState> ports_;
    std::map<std::uint64_t, Ps> saved_;  // what is left of a job, by its save area
    std::vector<std::size_t> order_;
    std::size_t next_ = 0;
    Ps start_ = 0;
    History history_;
};

}  // namespace

std::expected<History, std::string> run_native(const Scenario& scenario) {
    return Native(scenario).run();
}

}  // namespace orrery::policy
