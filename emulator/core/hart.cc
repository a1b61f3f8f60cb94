#include "emulator/core/hart.h"

#include <algorithm>
#include <bit>

#include "emulator/core/core.h"
#include "emulator/core/handler.h"
#include "emulator/core/hart_impl.h"
#include "emulator/core/host_fp.h"
#include "emulator/core/known.h"
#include "emulator/core/vector/cost.h"
#include "emulator/core/vector/execute.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kMaxBudget = 1ull << 62;
constexpr std::uint64_t kInterruptBit = 1ull << 63;

// Enters the handler at mtvec.
void enter(Core* core, std::uint64_t cause, std::uint64_t tval, std::uint64_t target) {
    const std::uint64_t previous = (core->mstatus & kMstatusMie) != 0 ? kMstatusMpie : 0;
    core->mstatus = (core->mstatus & ~(kMstatusMie | kMstatusMpie)) | previous;
    core->mepc = core->pc;
    core->mcause = cause;
    core->mtval = tval;
    core->pc = target;
}

// An exception takes a step, so that one that raises itself for ever comes to an end with the budget; it does
// not retire.
void enter_exception(Core* core) {
    enter(core, static_cast<std::uint64_t>(core->trap.cause), core->trap.tval,
          core->mtvec & ~std::uint64_t{3});
    --core->left;
    --core->minstret_delta;
    ++core->counted_steps;
}

void enter_interrupt(Core* core) {
    const std::uint64_t pending = core->mip & core->mie;
    const auto bit = [&](Irq line) { return (pending >> static_cast<unsigned>(line) & 1) != 0; };
    const Irq line = bit(Irq::kExternal)   ? Irq::kExternal
                     : bit(Irq::kSoftware) ? Irq::kSoftware
                                           : Irq::kTimer;
    const auto code = static_cast<std::uint64_t>(line);
    const std::uint64_t base = core->mtvec & ~std::uint64_t{3};
    enter(core, kInterruptBit | code, 0, (core->mtvec & 1) != 0 ? base + 4 * code : base);
}

bool interrupt_due(const Core* core) {
    return (core->mip & core->mie) != 0 && (core->mstatus & kMstatusMie) != 0;
}

// Between two instructions: true and a reason, or false and core->left above 0.
bool stop_now(Core* core, StopReason& reason) {
    if (core->held) {
        core->held = core->has_trap = false;
        reason = StopReason::kHeld;
        return true;
    }
    if (core->has_trap) {
        core->has_trap = false;
        if (core->config.trap_to_host) {
            reason = StopReason::kTrap;
            return true;
        }
        enter_exception(core);
    }
    if (core->has_stop) {
        core->has_stop = false;
        reason = core->stop;
        return true;
    }
    if (core->stop_requested) {
        core->stop_requested = false;
        reason = StopReason::kRequested;
        return true;
    }
    if (core->waiting) {
        if ((core->mip & core->mie) == 0) {
            reason = StopReason::kWfi;
            return true;
        }
        core->waiting = false;
    }
    if (core->config.has_exit_pc && core->pc == core->config.exit_pc && !interrupt_due(core)) {
        reason = StopReason::kExit;
        return true;
    }
    reason = StopReason::kBudget;
    return core->left == 0;
}

StopReason run_core(Core* core) {
    StopReason reason{};
    while (!stop_now(core, reason)) {
        core->attention = false;
        if (interrupt_due(core)) {
            enter_interrupt(core);
            continue;  // its handler may be the exit address
        }
        Op* const op = find_op(core);
        if (op == nullptr) continue;
        const std::int64_t most = core->attention ? 1 : std::min(core->left, kMostLeft);
        core->deferred = core->left - most;
        core->steps_end -= static_cast<std::uint64_t>(core->deferred);
        run_ops(core, op, with_steps_left(0, most));
        core->count_done();
        core->left += core->deferred;
        core->steps_end += static_cast<std::uint64_t>(core->deferred);
        core->deferred = 0;
        if (core->steps_end > core->last_step) [[unlikely]] {
            const std::uint64_t beyond =
                std::min(core->steps_end - core->last_step, static_cast<std::uint64_t>(core->left));
            core->steps_end -= beyond;
            core->left -= static_cast<std::int64_t>(beyond);
        }
    }
    return reason;
}

// So that code without a run-time of its own, a kernel, may use F, D and V at once.
std::uint64_t initial_mstatus(const Config& config) {
    return (config.fp ? kMstatusFsInitial : 0) | (config.vlen != 0 ? kMstatusVsInitial : 0);
}

}  // namespace

Hart::Hart(const Config& config, Bus& bus, CodeStore* shared)
    : impl_(std::make_unique<Impl>()),
      steps_end_(&impl_->core.steps_end),
      left_(&impl_->core.left),
      extra_cycles_(&impl_->core.extra_cycles) {
    Core& core = impl_->core;
    core.config = config;
    core.config.code_pages = std::bit_ceil(std::clamp(config.code_pages, 1u, 256u));
    core.config.exit_pc &= ~std::uint64_t{1};
    core.bus = &bus;
    core.config.vlen =
        config.fp && config.vlen != 0 ? std::bit_ceil(std::clamp(config.vlen, 128u, 8 * kMaxVlenBytes)) : 0;
    core.config.vector_datapath = std::max(config.vector_datapath, 1u);
    if (core.config.vlen != 0) {
        core.vector = std::make_unique<VectorFile>();
        core.vector->vlen_bytes = core.config.vlen / 8;
        core.vector->datapath_bits = core.config.vector_datapath;
        core.vector->kernels = &vector_kernels(std::min(config.simd, best_simd()));
        known_handlers();  // made here, not in run()
    }
    if (shared == nullptr || !shared->pool().suits(core.config)) core.own_pool = std::make_unique<CodePool>();
    core.pool = core.own_pool != nullptr ? core.own_pool.get() : &shared->pool();
    core.pool->add(core.config.code_pages);
    core.code.resize(core.config.code_pages);
    core.code_pages = core.code.data();
    core.code_mask = core.code.size() - 1;
    core.breakpoints.reserve(kMaxBreakpoints);
    core.meter = Meter(config.memory);
    core.handlers = &handler_table(core.meter.on());  // made here, not in run()
    reset();
}

Hart::~Hart() {
    for (const CodeEntry& entry : impl_->core.code) {
        if (entry.page != nullptr) impl_->core.pool->give_back(entry.page);
    }
}

void Hart::reset() {
    HartState state;
    state.pc = impl_->core.config.reset_pc;
    state.mstatus = initial_mstatus(impl_->core.config);
    set_state(state);
    set_vector_state({});
}

StopReason Hart::run(std::uint64_t budget) {
    Core* core = &impl_->core;
    if (budget == 0) return StopReason::kBudget;
    if (core->pages_of != core->overlay) drop_pages(core);
    const std::uint64_t before = core->steps();
    core->left = static_cast<std::int64_t>(std::min(budget, kMaxBudget));
    core->steps_end = before + static_cast<std::uint64_t>(core->left);
    core->first_step = before;
    core->last_step = core->steps_end;
    core->stop_requested = false;
    core->running = true;
    StopReason reason;
    {
        const HostFpScope fp(core);
        reason = run_core(core);
        if (core->vector != nullptr) compute_products(core);
    }
    core->running = false;
    core->steps_end = core->steps();
    core->left = 0;
    return reason;
}

const Trap& Hart::trap() const {
    return impl_->core.trap;
}

void Hart::set_irq(Irq line, bool level) {
    Core& core = impl_->core;
    const std::uint64_t bit = 1ull << static_cast<unsigned>(line);
    core.mip = level ? core.mip | bit : core.mip & ~bit;
    core.attention = true;
}

void Hart::limit(std::uint64_t steps) {
    Core& core = impl_->core;
    const std::uint64_t end = core.steps() + 1 + steps;
    if (!core.running || end >= core.last_step) return;
    core.last_step = end;
    core.attention = true;
}

void Hart::request_stop() {
    Core& core = impl_->core;
    if (!core.running) return;
    core.stop_requested = true;
    core.attention = true;
}

void Hart::allow(std::uint64_t work) {
    Core& core = impl_->core;
    core.work_left = core.allowed = static_cast<std::int64_t>(std::min(work, kMaxBudget));
}

void Hart::spend(std::uint64_t work) {
    impl_->core.spend(work);
}

std::uint64_t Hart::spent() const {
    return static_cast<std::uint64_t>(impl_->core.allowed - impl_->core.work_left);
}

bool Hart::may_go_on() const {
    return impl_->core.work_left > 0;
}

bool Hart::full() const {
    return impl_->core.meter.full();
}

const AccessCounts& Hart::counts() const {
    return impl_->core.meter.counts();
}

void Hart::stop_for_memory(bool stop) {
    Core& core = impl_->core;
    core.waited_pc = core.stopped_pc = core.paused_pc = Core::kNoPc;
    if (stop)
        core.meter.stop_at_next();
    else
        core.meter.stop_at_limits();
}

// None of them jumps; only loads and stores of one register may be two bytes long, and those are known.
Hart::Last Hart::last() const {
    const Core& core = impl_->core;
    const auto is_before = [&](std::uint64_t pc) { return core.pc - pc == 4 || core.pc - pc == 2; };
    if (is_before(core.waited_pc)) return {.pc = core.waited_pc, .waited = true};
    if (is_before(core.paused_pc)) return {.pc = core.paused_pc, .paused = true};
    if (is_before(core.stopped_pc)) return {.pc = core.stopped_pc};
    return {.pc = core.pc - 4};
}

std::uint64_t Hart::asked_at() const {
    const Core& core = impl_->core;
    if (core.stopped_pc != Core::kNoPc) return core.stopped_pc;
    // Behind an atomic the hart does not stop.
    return core.waited_pc != Core::kNoPc ? core.waited_pc : core.pc - 4;
}

std::uint64_t Hart::jumped_from() const {
    const Core& core = impl_->core;
    return core.jumped != nullptr ? core.pc_of(core.jumped) : core.pc;
}

void Hart::advance_cycles(std::uint64_t cycles) {
    impl_->core.mcycle_delta += cycles;
}

std::uint64_t Hart::finish_vectors() {
    VectorFile* file = impl_->core.vector.get();
    if (file == nullptr) return 0;
    const std::uint64_t now = cycles(), end = std::max(now, file->busy_until());
    file->rest();
    advance_cycles(end - now);
    return end - now;
}

void Hart::flush_pages() {
    drop_pages(&impl_->core);
    drop_code(&impl_->core);
}

void Hart::flush_code() {
    drop_code(&impl_->core);
}

HartState Hart::state() const {
    const Core& core = impl_->core;
    HartState s;
    std::copy_n(core.x, 32, s.x);
    std::copy_n(core.f, 32, s.f);
    s.pc = core.pc;
    s.steps = core.steps();
    s.minstret = s.steps + core.minstret_delta;
    s.mcycle = s.steps + core.mcycle_delta;
    s.mstatus = core.mstatus;
    s.mie = core.mie;
    s.mip = core.mip;
    s.mtvec = core.mtvec;
    s.mscratch = core.mscratch;
    s.mepc = core.mepc;
    s.mcause = core.mcause;
    s.mtval = core.mtval;
    s.reservation_address = core.reservation_address;
    s.reservation_value = core.reservation_value;
    s.reservation_size = core.reservation_size;
    s.fcsr = fcsr();
    s.waiting = core.waiting ? 1 : 0;
    return s;
}

void Hart::set_state(const HartState& s) {
    Core& core = impl_->core;
    std::copy_n(s.x, 32, core.x);
    core.x[0] = 0;
    if (core.config.fp) std::copy_n(s.f, 32, core.f);
    core.f_unsure = true;
    core.pc = s.pc & ~std::uint64_t{1};
    core.counted_steps += s.steps - core.steps();  // what is not taken yet stays
    core.steps_end = s.steps;
    core.left = 0;
    core.minstret_delta = s.minstret - s.steps;
    core.mcycle_delta = s.mcycle - s.steps;
    if (core.vector != nullptr) core.vector->rest();
    core.mstatus = legal_mstatus(core.config, s.mstatus);
    core.mie = s.mie & kIrqMask;
    core.mip = s.mip & kIrqMask;
    core.mtvec = legal_mtvec(s.mtvec);
    core.mscratch = s.mscratch;
    core.mepc = s.mepc & ~std::uint64_t{1};
    core.mcause = s.mcause;
    core.mtval = s.mtval;
    core.drop_reservation();
    if (s.reservation_size == 4 || s.reservation_size == 8) {
        core.reservation_address = s.reservation_address;
        core.reservation_value = s.reservation_value;
        core.reservation_size = s.reservation_size;
    }
    core.frm = core.config.fp ? s.fcsr >> 5 & 7 : 0;
    core.fflags = core.config.fp ? s.fcsr & 31 : 0;
    core.waiting = (s.waiting & 1) != 0;
    core.has_trap = core.has_stop = core.stop_requested = false;
    flush_pages();
}

VectorState Hart::vector_state() const {
    VectorState s;
    const VectorFile* file = impl_->core.vector.get();
    if (file == nullptr) {
        s.vtype = 0;
        return s;
    }
    s.vl = file->vl;
    s.vtype = file->vtype;
    s.vstart = file->vstart;
    s.vxrm = file->vxrm;
    s.vxsat = file->vxsat;
    std::copy_n(file->v, std::size_t{kVectorRegisters} * file->vlen_bytes, s.v);
    return s;
}

void Hart::set_vector_state(const VectorState& s) {
    VectorFile* file = impl_->core.vector.get();
    if (file == nullptr) return;
    file->vl = file->set_vtype(s.vtype) ? std::min(s.vl, file->vlmax) : 0;
    file->vstart = s.vstart & (impl_->core.config.vlen - 1);
    file->vxrm = s.vxrm & 3;
    file->vxsat = s.vxsat & 1;
    std::copy_n(s.v, std::size_t{kVectorRegisters} * file->vlen_bytes, file->v);
    file->touched = s != VectorState{};
}

AccessCounts Hart::take_counts() {
    return impl_->core.meter.take();
}

WorkCounts Hart::take_work() {
    Core& core = impl_->core;
    WorkCounts all = std::exchange(core.work_counts, {});
    if (core.vector != nullptr) {
        add_plain(*core.vector);
        all += std::exchange(core.vector->work, {});
    }
    std::uint64_t others = 0;
    for (const std::uint64_t each : all.instructions)
        others += each;
    for (const std::uint64_t each : all.scalar)
        others += each;
    all.of(ScalarClass::kInt) = core.steps() - std::exchange(core.counted_steps, core.steps()) - others;
    return all;
}

void Hart::forget_lines(std::uint32_t space) {
    impl_->core.meter.start_cold(space);
    impl_->core.memory_wait = 0;
    take_work();
}

void Hart::follow(const Invalidations& all) {
    impl_->core.meter.follow(all);
}

void Hart::forget_own_names() {
    impl_->core.meter.forget_own_names();
}

bool Hart::vector_dirty() const {
    // Not mstatus.VS, which a program may write.
    return impl_->core.vector != nullptr && impl_->core.vector->touched;
}

void Hart::restart(std::uint64_t pc) {
    Core& core = impl_->core;
    std::fill_n(core.x, 32, 0);
    if (core.f_unsure || (core.mstatus & kMstatusFs) == kMstatusFs) {
        std::fill_n(core.f, 32, 0);
        core.frm = 0;
        set_fflags(&core, 0);
    }
    core.f_unsure = false;
    core.pc = pc & ~std::uint64_t{1};
    if (core.vector != nullptr) {
        core.vector->clear();
        core.vector->rest();
    }
    core.mstatus = legal_mstatus(core.config, initial_mstatus(core.config));
    core.mie = core.mscratch = core.mepc = core.mcause = core.mtval = 0;
    core.mtvec = legal_mtvec(0);
    core.drop_reservation();
    core.waiting = core.has_trap = core.has_stop = core.stop_requested = false;
}

void Hart::set_fcsr(std::uint32_t fcsr) {
    Core& core = impl_->core;
    if (!core.config.fp) return;
    core.f_unsure = true;
    core.frm = fcsr >> 5 & 7;
    set_fflags(&core, fcsr & 31);
}

std::uint32_t Hart::fcsr() const {
    return static_cast<std::uint32_t>(impl_->core.frm) << 5 | collect_fflags(&impl_->core);
}

Hart::Burst::Burst(Hart& hart) : hart_(hart), saved_(wrap_fp(&hart.impl_->core)) {}
Hart::Burst::~Burst() {
    unwrap_fp(&hart_.impl_->core, saved_);
}

std::uint64_t Hart::pc() const {
    return impl_->core.pc;
}
std::uint64_t Hart::x(unsigned index) const {
    return index < 32 ? impl_->core.x[index] : 0;
}
void Hart::set_x(unsigned index, std::uint64_t value) {
    if (index > 0 && index < 32) impl_->core.x[index] = value;
}
void Hart::set_pc(std::uint64_t pc) {
    impl_->core.pc = pc & ~std::uint64_t{1};
}

bool Hart::set_breakpoints(std::span<const std::uint64_t> addresses) {
    Core& core = impl_->core;
    const std::size_t count = std::min<std::size_t>(addresses.size(), kMaxBreakpoints);
    core.breakpoints.assign(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(count));
    // Decoded code holds them.
    core.pool->all_stale();
    drop_code(&core);
    return count == addresses.size();
}

const Config& Hart::config() const {
    return impl_->core.config;
}

}  // namespace orrery::emu
