#include "emulator/trace/replay_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "emulator/core/trap_entry.h"
#include "emulator/trace/recorder.h"
#include "emulator/trace/start.h"

namespace orrery::emu {

namespace {

constexpr std::size_t kCachedLogs = 4;
constexpr std::uint64_t kOpenWindows = std::uint64_t{1} << 62;  // context and host windows from here on

Config hart_config() {
    Config config;
    config.reset_pc = ORR_ROM_BASE;
    config.trap_to_host = true;  // as the card's control core does
    return config;
}

bool in_sram(std::uint64_t va) {
    return va - ORR_SRAM_BASE < ORR_SRAM_SIZE;
}

}  // namespace

TraceNote trace_note(const orr_otrace_block& block, const LoggedNote& note) {
    TraceNote out;
    out.step = block.first_step + note.step;
    out.time_ps = block.first_ps + static_cast<std::uint64_t>(note.time_ps);
    out.kind = note.kind;
    std::ranges::copy(note.field, out.field);
    return out;
}

ReplayCore::ReplayCore(const TraceReader& reader)
    : reader_(reader),
      memory_(1 + ORR_SRAM_SIZE / kPageBytes),
      checked_(reader.blocks().size()),
      hart_(hart_config(), *this),
      clock_(reader.info().cycle_ps),
      stopped_time_(reader.info().start_ps) {}

ReplayCore::~ReplayCore() = default;

ReplayCore::Position ReplayCore::save() const {
    return {.step = step(),
            .state = hart_.state(),
            .clock = clock_,
            .stopped_time = stopped_time_,
            .block = block_,
            .access = access_,
            .boundary = boundary_,
            .values = values_,
            .stalls = stalls_,
            .running = running_,
            .in_block = in_block_,
            .image = image_};
}

ReplayCore::Position ReplayCore::position_of(std::size_t block, const Keyframe& keyframe) const {
    const TraceBlock& log = reader_.blocks()[block];
    Position position;
    position.step = log.header.last_step;
    position.state = keyframe.state;
    position.clock = CoreClock(reader_.info().cycle_ps);
    position.clock.resume(log.header.last_ps, keyframe.state.steps, keyframe.rest_ps);
    position.stopped_time = log.header.last_ps;
    position.block = block + 1;
    position.running = true;
    position.image = log.image;
    return position;
}

void ReplayCore::restore(const Position& position) {
    hart_.set_state(position.state);
    offset_ = position.step - position.state.steps;
    clock_ = position.clock;
    stopped_time_ = position.stopped_time;
    block_ = position.block;
    access_ = position.access;
    boundary_ = position.boundary;
    values_ = position.values;
    stalls_ = position.stalls;
    running_ = position.running;
    in_block_ = position.in_block;
    image_ = position.image;
    hit_ = diverged_now_ = false;
    if (in_block_ && block().kind == ORR_OTRACE_LOG) load_log();
}

std::uint8_t* ReplayCore::host(std::uint64_t address, std::uint64_t bytes) {
    if (in_sram(address) && bytes <= ORR_SRAM_SIZE - (address - ORR_SRAM_BASE))
        return memory_[1].bytes + (address - ORR_SRAM_BASE);
    if (address - ORR_ROM_BASE < ORR_ROM_SIZE && bytes <= ORR_ROM_SIZE - (address - ORR_ROM_BASE))
        return memory_[0].bytes + (address - ORR_ROM_BASE);
    return nullptr;
}

bool ReplayCore::read(std::uint64_t address, std::span<std::uint8_t> out) const {
    const std::uint8_t* const from = const_cast<ReplayCore*>(this)->host(address, out.size());
    if (from == nullptr) return false;
    std::copy_n(from, out.size(), out.begin());
    return true;
}

void ReplayCore::diverge(const std::string& reason) {
    diverged_now_ = true;
    hart_.request_stop();
    if (divergence_ && divergence_->step <= step()) return;
    const std::uint64_t offset = block_ < reader_.blocks().size() ? reader_.blocks()[block_].offset : 0;
    divergence_ = Replayer::Divergence{step(), offset, fmt::format("{} (pc {:#x})", reason, hart_.pc())};
}

// --- through the blocks ---

bool ReplayCore::load_log() {
    for (auto each = logs_.begin(); each != logs_.end(); ++each) {
        if (each->block != block_) continue;
        logs_.splice(logs_.begin(), logs_, each);
        log_ = &logs_.front().log;
        return true;
    }
    if (logs_.size() < kCachedLogs) {
        logs_.emplace_front();
    } else {
        logs_.splice(logs_.begin(), logs_, std::prev(logs_.end()));
    }
    logs_.front().block = block_;
    log_ = &logs_.front().log;
    const TraceBlock& from = reader_.blocks()[block_];
    const auto unreadable = [&](std::string why) {
        error_ = std::move(why);
        // Neither half of it nor the log that was in its place is this block's.
        logs_.pop_front();
        log_ = &nothing_;
        return false;
    };
    const auto payload = reader_.payload(from, unpacked_);
    if (!payload) return unreadable(payload.error());
    const auto decoded = decode_log(*payload, from.header.last_step - from.header.first_step, *log_);
    if (!decoded) return unreadable(reader_.error_at(from.offset, describe(decoded.error())));
    return true;
}

void ReplayCore::enter_block() {
    access_ = boundary_ = 0;
    values_.fill(0);
    stalls_.fill(0);
    in_block_ = true;
    if (block().kind != ORR_OTRACE_LOG) return;
    if (!load_log()) {
        in_block_ = false;
        diverge(error_);
        return;
    }
    if (listener_ == nullptr) return;
    for (const LoggedNote& note : log_->notes)
        listener_->noted(trace_note(block(), note));
}

// At the end of block_.
bool ReplayCore::check_hash(const char* otherwise) {
    // Who listens starts from the begin, and not where the file says that something was.
    if (checked_[block_] && listener_ == nullptr) return true;
    if (trace_hash(hart_.state(), recorded_sram()) != block().state_hash) {
        diverge(otherwise);
        return false;
    }
    if (!checked_[block_]) ++hashes_checked_;
    checked_[block_] = true;
    return true;
}

// false: not what was recorded.
bool ReplayCore::leave_block() {
    if (block().kind == ORR_OTRACE_LOG) {
        if (access_ != log_->accesses.size()) {
            diverge("the recorded core accessed more than the replayed one");
            return false;
        }
        if (running_ && time() != block().last_ps) {
            diverge(fmt::format("model time {} ps, recorded {} ps", time(), block().last_ps));
            return false;
        }
        if (running_ && !check_hash("the state hash is not the recorded one")) return false;
        if (log_->stops) running_ = false;
        stopped_time_ = block().last_ps;
    }
    in_block_ = false;
    ++block_;
    return true;
}

ReplayCore::Why ReplayCore::settle() {
    for (;;) {
        if (!in_block_) {
            if (block_ == reader_.blocks().size()) return Why::kEnd;
            if (begins_core(block().kind)) return Why::kSteps;  // takes a step
            enter_block();
            if (diverged_now_) return Why::kDiverged;
        }
        if (block().kind == ORR_OTRACE_LOG) {
            const std::uint64_t here = step() - block().first_step;
            while (boundary_ < log_->boundaries.size() && log_->boundaries[boundary_].step <= here) {
                apply(log_->boundaries[boundary_++]);
                if (diverged_now_) return Why::kDiverged;
            }
            if (step() < block().last_step) {
                if (running_) return Why::kSteps;
                diverge("steps of a core that does not run");
                return Why::kDiverged;
            }
        }
        if (!leave_block()) return Why::kDiverged;
    }
}

void ReplayCore::set_lines(unsigned lines) {
    hart_.set_irq(Irq::kExternal, (lines & ORR_OTRACE_LINE_EXTERNAL) != 0);
    hart_.set_irq(Irq::kTimer, (lines & ORR_OTRACE_LINE_TIMER) != 0);
}

void ReplayCore::pass(std::uint64_t ps) {
    if (const std::uint64_t cycles = clock_.pass(ps); cycles != 0) hart_.advance_cycles(cycles);
}

void ReplayCore::apply(const LoggedBoundary& boundary) {
    if (boundary.change == 0) {
        if (boundary.ps != 0) pass(boundary.ps);
        if (boundary.has_lines) set_lines(boundary.lines);
        return;
    }
    const std::uint8_t* const bytes = log_->bytes.data() + boundary.first_byte;
    if (boundary.change == ORR_OTRACE_NOTE_SET_STATE) {
        orr_otrace_state state;
        std::memcpy(&state, bytes, sizeof state);
        if (state.steps != hart_.steps()) return diverge("a change of registers at another step");
        hart_.set_state(hart_state(state));
        return;
    }
    std::uint8_t* const to = host(boundary.address, boundary.byte_count);
    if (to == nullptr || !in_sram(boundary.address)) return diverge("a change of memory that is not SRAM");
    std::copy_n(bytes, boundary.byte_count, to);
    hart_.flush_code();
}

std::expected<ReplayCore::Begin, const char*> ReplayCore::load_start(std::size_t block) {
    const std::uint32_t kind = reader_.blocks()[block].header.kind;
    const auto payload = reader_.payload(reader_.blocks()[block]);
    if (!payload) return std::unexpected("a start cannot be read");
    orr_otrace_start head;
    const std::size_t before = resume_bytes(kind);
    std::memcpy(&head, payload->data() + before, sizeof head);
    const std::uint8_t* const rom = payload->data() + before + sizeof head;
    if (rom_known_ && std::memcmp(memory_[0].bytes, rom, ORR_ROM_SIZE) != 0)
        return std::unexpected("a start with another ROM");
    rom_known_ = true;
    // A card of an older build had less SRAM: the rest is not there for its firmware, and in no hash.
    recorded_sram_ = payload->size() - before - sizeof head - ORR_ROM_SIZE;
    std::memcpy(memory_.data(), rom, ORR_ROM_SIZE + recorded_sram_);
    std::fill(sram().begin() + static_cast<std::ptrdiff_t>(recorded_sram_), sram().end(), std::uint8_t{0});
    if (kind == ORR_OTRACE_RESUME) {
        orr_otrace_resume resume;
        std::memcpy(&resume, payload->data(), sizeof resume);
        return Begin{hart_state(resume.state), resume.rest_ps, resume.port_words};
    }
    Begin begin;
    hart_.reset();
    hart_.set_pc(head.reset_pc);
    begin.state = hart_.state();
    return begin;
}

void ReplayCore::start() {
    const TraceBlock& from = reader_.blocks()[block_];
    const auto begin = load_start(block_);
    if (!begin) return diverge(begin.error());
    hart_.reset();
    hart_.set_state(begin->state);
    offset_ = from.header.last_step - begin->state.steps;
    clock_.resume(from.header.last_ps, begin->state.steps, begin->rest_ps);
    running_ = true;
    image_ = from.image;
    if (listener_ != nullptr) listener_->started(step(), begin->port_words);
    if (!check_hash("the state hash at a start is not the recorded one")) return;
    ++block_;
}

// --- running ---

bool ReplayCore::at_breakpoint() const {
    if (!running_ || !std::ranges::binary_search(breakpoints_, hart_.pc())) return false;
    const HartState state = hart_.state();
    return (state.mip & state.mie) == 0 || (state.mstatus & 8) == 0;
}

ReplayCore::Why ReplayCore::run(std::uint64_t target) {
    if (const Why why = settle(); why != Why::kSteps) return why;
    while (step() < target) {
        if (time() > time_limit_) return Why::kTime;
        if (!in_block_) {
            start();
        } else {
            std::uint64_t limit = std::min(target, block().last_step);
            if (boundary_ < log_->boundaries.size())
                limit = std::min(limit, block().first_step + log_->boundaries[boundary_].step);
            if (breakpoints_.size() > Hart::kMaxBreakpoints) limit = step() + 1;
            if (time_limit_ != ~std::uint64_t{0})
                limit = std::min(limit, step() + (time_limit_ - time()) / reader_.info().cycle_ps + 1);
            const StopReason reason = hart_.run(limit - step());
            if (!diverged_now_ && reason == StopReason::kTrap) take_trap(limit);
            if (reason == StopReason::kWfi && step() < limit)
                diverge("the core sleeps, and the recorded one did not");
            if (reason == StopReason::kBreakpoint && !diverged_now_) return Why::kBreakpoint;
        }
        if (diverged_now_) return Why::kDiverged;
        const Why why = settle();
        if (std::exchange(hit_, false)) return Why::kWatchpoint;
        if (why != Why::kSteps) return why;
        if (time() > time_limit_) return Why::kTime;
        if (step() < target && at_breakpoint()) return Why::kBreakpoint;
    }
    return Why::kSteps;
}

void ReplayCore::take_trap(std::uint64_t limit) {
    Trap trap = hart_.trap();
    const bool misaligned = trap.cause == Cause::kLoadMisaligned || trap.cause == Cause::kStoreMisaligned;
    if (misaligned && (watches_.covers(trap.tval) || watches_.covers(trap.tval + 7))) {
        // Only because the page is watched: the recorded core was allowed to.
        watches_.suspend(true);
        hart_.flush_pages();
        const StopReason reason = hart_.run(1);
        watches_.suspend(false);
        hart_.flush_pages();
        if (reason != StopReason::kTrap) return look(trap.tval, 8, trap.cause == Cause::kLoadMisaligned);
        trap = hart_.trap();
    }
    HartState state = hart_.state();
    if (enter_trap(state, trap)) {
        hart_.set_state(state);
        clock_.step_without_time();
    } else if (step() < limit) {
        diverge("the core halts, and the recorded one did not");
    }
}

// --- the bus ---

PageRef ReplayCore::translate(std::uint64_t va, Access access) {
    const std::uint64_t page = va & ~(kPageBytes - 1);
    if (in_sram(page)) {
        if (access == Access::kFetch) {
            fetched_watched_ = fetched_watched_ || watches_.covers(page);
        } else if (watches_.covers(page)) {
            return PageRef::mmio();
        }
        return PageRef::memory(memory_[1 + (page - ORR_SRAM_BASE) / kPageBytes].bytes,
                               kPageRead | kPageWrite | kPageExec);
    }
    if (page == ORR_ROM_BASE) {
        if (access == Access::kStore) return PageRef::fault();
        return PageRef::memory(memory_[0].bytes, kPageRead | kPageExec);
    }
    if (page == ORR_SOC_BASE + SOC_TRACE && access == Access::kStore && listener_ == nullptr)
        return PageRef::memory(unheard_->bytes, kPageWrite | kPageStrict);
    if (va - ORR_SOC_BASE < ORR_SOC_SIZE || va >= kOpenWindows || va - ORR_VRAM_WINDOW < ORR_VRAM_WINDOW_SIZE)
        return PageRef::mmio();
    return PageRef::fault();
}

const LoggedAccess* ReplayCore::next_access(unsigned kind) {
    if (access_ >= log_->accesses.size() || log_->accesses[access_].kind != kind) {
        diverge(kind == ORR_OTRACE_LOAD ? "a load that was not recorded" : "a store that was not recorded");
        return nullptr;
    }
    ++accesses_done_;
    return &log_->accesses[access_++];
}

void ReplayCore::after(const LoggedAccess& access, std::uint64_t va, std::uint64_t value) {
    std::uint64_t& stall = stalls_[access_class(va, access.kind == ORR_OTRACE_STORE)];
    if (access.has_stall) stall = access.stall;
    if (tells_accesses_) {
        listener_->accessed({.step = step(),
                             .time_ps = clock_.time(hart_.steps()),
                             .address = va,
                             .value = value,
                             .stall_ps = stall,
                             .store = access.kind == ORR_OTRACE_STORE});
    }
    if (stall != 0) pass(stall);
    if (access.has_lines) set_lines(access.lines);
    // How many steps fit below the limit has to be found out again.
    if (time_limit_ != ~std::uint64_t{0} && stall != 0) hart_.request_stop();
}

bool ReplayCore::load(std::uint64_t va, unsigned size, std::uint64_t& value) {
    if (in_sram(va)) {
        std::memcpy(&value, host(va, size), size);
        look(va, size, true);
        return true;
    }
    const LoggedAccess* const access = next_access(ORR_OTRACE_LOAD);
    if (access == nullptr) return true;
    if (access->n == ORR_OTRACE_N_FAULT) return false;
    std::uint64_t& predicted = values_[value_slot(va)];
    if (access->n != ORR_OTRACE_N_SAME) predicted = access->value;
    value = predicted;
    after(*access, va, value);
    return true;
}

bool ReplayCore::store(std::uint64_t va, unsigned size, std::uint64_t value) {
    if (in_sram(va)) {
        std::memcpy(host(va, size), &value, size);
        if (fetched_watched_) hart_.flush_code();
        look(va, size, false);
        return true;
    }
    if (is_trace_port(va)) {
        if (listener_ != nullptr) listener_->port_word(step(), clock_.time(hart_.steps()), value);
        return true;
    }
    if (is_activity(va)) return true;
    const LoggedAccess* const access = next_access(ORR_OTRACE_STORE);
    if (access == nullptr) return true;
    if (access->n == ORR_OTRACE_N_FAULT) return false;
    after(*access, va, value);
    return true;
}

// Atomics are for SRAM only; here they come for watched pages.
bool ReplayCore::compare_exchange(std::uint64_t va, unsigned size, std::uint64_t expected,
                                  std::uint64_t desired, std::uint64_t& observed) {
    if (!in_sram(va)) return false;
    observed = 0;
    std::memcpy(&observed, host(va, size), size);
    const std::uint64_t mask = size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size)) - 1;
    if (observed == (expected & mask)) {
        std::memcpy(host(va, size), &desired, size);
        if (fetched_watched_) hart_.flush_code();
        look(va, size, false);
    }
    return true;
}

// --- points ---

void ReplayCore::set_breakpoints(std::span<const std::uint64_t> sorted) {
    if (std::ranges::equal(sorted, breakpoints_)) return;
    breakpoints_.assign(sorted.begin(), sorted.end());
    hart_.set_breakpoints(breakpoints_);
}

void ReplayCore::set_watchpoints(std::span<const Watchpoint> watchpoints) {
    if (watchpoints.empty() && !watches_.on()) return;
    watches_.set(watchpoints);
    fetched_watched_ = false;
    hart_.flush_pages();
}

void ReplayCore::look(std::uint64_t va, unsigned size, bool read) {
    if (!watches_.hit(va, size, read)) return;
    hit_ = true;
    watched_ = {va, hart_.pc(), read};
    hart_.request_stop();
}

}  // namespace orrery::emu
