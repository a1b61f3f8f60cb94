// The life of a dispatch on a port of the vector unit: launch, groups on cores, preemption, resume, end.
#include <algorithm>
#include <cstring>
#include <utility>

#include "emulator/engines/vector_unit_impl.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

// Of work (Hart::allow): 0.1 s of the host's time; told if it is more than the cycles, which is some fifty
// times what they should take.
constexpr std::uint64_t kTellFrom = 2'000'000;
// So many guesses of a launch may be wrong, beside one for four that were right.
constexpr std::uint64_t kWrongGuesses = 16;

}  // namespace

// --- start and end ---

void VectorUnit::Impl::Port::begin(std::uint32_t tag, ModelTime now) {
    launch_.serial = ++unit_.serial;
    check_.reset();
    launch_.check = nullptr;
    busy_ = true;
    launched_ = ended_ = false;
    next_group_ = active_ = 0;
    pending_.clear();
    places_.reset();
    ways_.forget();
    used_ = 0;
    // Until a group has shown how long it takes.
    group_time_ = duration_ps(unit_.config.quantum, unit_.config.hz);
    preempt_ = Preempt::kNo;
    saved_ = 0;
    saved_bytes_ = unsaved_ = 0;
    lookups_ = work_ = cycles_ = 0;
    short_groups_ = 0;
    in_order_ = true;
    told_ = queued_ = false;
    account_ = {};
    completion_ = {.port = number_, .tag = tag, .start_ps = now};
    job_counter_.begin(unit_.context.jobs);
    if (job_counter_.on()) ran_on_.reset();
}

bool VectorUnit::Impl::Port::start(const DescriptorWords& descriptor, std::uint32_t tag) {
    if (busy_) return false;
    const ModelTime now = unit_.context.events.now();
    begin(tag, now);
    static_assert(sizeof descriptor == sizeof launch_.desc);
    std::memcpy(&launch_.desc, descriptor.data(), sizeof launch_.desc);
    unit_.context.counters.add(ORR_CTR_VECTOR_JOBS);
    queued_ = true;
    if (!work_of(descriptor)) {
        end(ORR_DONE_BAD_DESC, 0, 0, now);
    } else {
        if (unit_.config.check != 0) check(unit_.new_check(launch_));
        unit_.context.events.schedule(event_, later(now, unit_.config.launch_ps));
    }
    return true;
}

void VectorUnit::Impl::Port::check(std::unique_ptr<LaunchCheck> check) {
    check_ = std::move(check);
    launch_.check = check_.get();
}

// All groups are done. What was found fails the launch.
void VectorUnit::Impl::Port::end_well(ModelTime now) {
    if (check_ == nullptr || check_->findings().empty()) return end(ORR_DONE_OK, 0, 0, now);
    const FindingWords words = words_of(check_->findings().front(), check_->found(), launch_.desc.entry);
    completion_.item = words.item;
    completion_.other = words.other;
    end(ORR_DONE_TRAP, words.fault, words.detail, now);
}

void VectorUnit::Impl::Port::log_findings() {
    if (check_ == nullptr || unit_.context.errors == nullptr) return;
    Errors& errors = *unit_.context.errors;
    const std::uint64_t entry = launch_.desc.entry;
    for (const Finding& finding : check_->findings())
        errors.note("check: the kernel at {:#x} of address space {}: {}", entry, launch_.desc.asid,
                    to_string(finding, entry));
    if (check_->found() > check_->findings().size())
        errors.note("check: and {} findings more", check_->found() - check_->findings().size());
    const bool gave_up = unit_.context.checked != nullptr && unit_.context.checked->gave_up();
    if (gave_up && !unit_.memory_given_up)
        errors.note(
            "check: what is allocated and written takes more of the host's memory than there is for "
            "it: use of card memory is not checked from here on");
    unit_.memory_given_up = gave_up;
    if (check_->gave_up())
        errors.note(
            "check: not all of the kernel at {:#x} of address space {} was checked: that takes more than the "
            "{} MiB of the host's memory that there are for checks, or it has too many work-items and "
            "barriers",
            entry, launch_.desc.asid, unit_.config.check_bytes >> 20);
}

void VectorUnit::Impl::Port::on_event(ModelTime now) {
    if (ended_) return hand_in(now);
    if (unsaved_ != 0) return go_on_saving(now);
    pass_ = unit_.pass_of_newcomer(*this, now);
    launched_ = true;
    unit_.with_groups |= bit();
    in_order_ = unit_.ahead == nullptr || unit_.was_in_order(launch_.desc);
    if (in_order_) account_.cause = unit_.ahead == nullptr ? InOrder::kNoThreads : InOrder::kBefore;
    unit_.distribute(now);
}

void VectorUnit::Impl::Port::end(std::uint32_t status, std::uint64_t fault, std::uint64_t detail,
                                 ModelTime at) {
    unit_.join();
    completion_.status = status;
    completion_.fault = fault;
    completion_.detail = detail;
    ended_ = true;
    launched_ = false;
    unit_.context.events.schedule(event_, at);
}

void VectorUnit::Impl::Port::stop(std::uint32_t status, std::uint64_t fault, std::uint64_t detail,
                                  ModelTime at) {
    unit_.take_cores_of(*this, unit_.context.events.now());
    active_ = 0;
    drop_pending();
    end(status, fault, detail, at);
}

// They never go on.
void VectorUnit::Impl::Port::drop_pending() {
    for (const SavedGroup& group : pending_) {
        if (group.record.owed == 0) continue;
        if (auto owed = unit_.take_owed(launch_, group.record)) owed->forget();
    }
    pending_.clear();
    unit_.forget_owed_of(launch_.serial);
}

void VectorUnit::Impl::Port::stop(const Core& core, const Quantum& did, ModelTime at) {
    static_assert(ORR_SAVE_ITEMS <= 1u << ORR_DONE_ITEM_BITS);
    completion_.item = core.core.group() << ORR_DONE_ITEM_BITS | core.core.item();
    completion_.other = did.other;
    stop(did.status, did.fault, did.detail, at);
}

void VectorUnit::Impl::Port::watch_cost(const Quantum& did) {
    lookups_ += did.lookups;
    work_ += did.work;
    cycles_ += did.cycles;
    // A check takes its time, and whoever asks for it knows.
    if (told_ || check_ != nullptr || work_ < kTellFrom || work_ < cycles_) return;
    told_ = true;
    if (unit_.context.errors == nullptr) return;
    unit_.context.errors->note(
        "the kernel at {:#x} of address space {} is slow on the host: {} page lookups, and {} steps of work "
        "in all, "
        "in {} cycles. It runs or touches more pages in turn than a core keeps (16 of code, 1,024 of data), "
        "writes "
        "where it executes, or computes floating point as the host cannot (docs/riscv.md)",
        launch_.desc.entry, launch_.desc.asid, lookups_, work_, cycles_);
}

void VectorUnit::Impl::Port::abort() {
    // A save that is not complete, or not handed in, is no save.
    if (!busy_ || (ended_ && completion_.status != ORR_DONE_PREEMPTED)) return;
    const ModelTime now = unit_.context.events.now();
    stop(ORR_DONE_ABORTED, 0, 0, now);
    unit_.distribute(now);
}

void VectorUnit::Impl::Port::hand_in(ModelTime now) {
    completion_.end_ps = now;
    completion_.used_ps = used_;
    if (completion_.status == ORR_DONE_PREEMPTED) {
        orr_save_header header{};
        header.kind = ORR_ENGINE_VECTOR;
        header.groups = saved_;
        header.next_group = next_group_;
        if (check_ != nullptr) header.row = launch_.serial;
        static_assert(sizeof header.descriptor == sizeof launch_.desc);
        std::memcpy(header.descriptor, &launch_.desc, sizeof launch_.desc);
        unit_.area_at(save_)->write_header(header);
        unit_.context.counters.add(ORR_CTR_PREEMPTIONS);
        unit_.context.counters.add(ORR_CTR_SAVED_BYTES, saved_bytes_);
        if (check_ != nullptr) unit_.park(launch_, std::move(check_));
    }
    log_findings();
    check_.reset();
    if (unit_.config.account && completion_.status != ORR_DONE_BAD_DESC) {
        account_.desc = launch_.desc;
        account_.port = number_;
        account_.status = completion_.status;
        account_.start_ps = completion_.start_ps;
        account_.end_ps = completion_.end_ps;
        unit_.config.account(account_);
    }
    busy_ = ended_ = false;
    if (job_counter_.on()) job_counter_.add(ORR_JOB_CORES, ran_on_.count());
    job_counter_.end(unit_.context.jobs, completion_);
    const Completion completion = completion_;  // the callee may start the next
    unit_.context.done(completion);
}

void VectorUnit::Impl::Port::reset() {
    unit_.take_cores_of(*this, unit_.context.events.now());
    unit_.context.events.cancel(event_);
    busy_ = launched_ = ended_ = false;
    check_.reset();
    preempt_ = Preempt::kNo;
    active_ = 0;
    drop_pending();
    priority_ = 0;
    weight_ = 1;
}

ModelTime VectorUnit::Impl::Port::used() const {
    if (!busy_) return 0;
    ModelTime used = used_;
    cores_.for_each(
        [&](std::uint32_t number) { used += unit_.context.events.now() - unit_.cores[number].taken; });
    return used;
}

// --- share of the cores ---

void VectorUnit::Impl::Port::set_priority(std::uint32_t priority) {
    if (priority == priority_) return;
    priority_ = priority;
    if (!shares()) return;
    const ModelTime now = unit_.context.events.now();
    pass_ = unit_.pass_of_newcomer(*this, now);
    // One that waits for all its cores may have held others back.
    unit_.distribute(now);
}

void VectorUnit::Impl::Port::set_weight(std::uint32_t weight) {
    weight_ = weight;
}

void VectorUnit::Impl::Port::give_group(Core& core, ModelTime now) {
    if (unit_.ahead != nullptr) unit_.ahead->forget(core.number);
    std::uint64_t load = 0;
    std::unique_ptr<PeerAccess::Owed> owed;
    bool right = false;  // a thread may be computing the group
    bool lost = false;   // what the group had on its way
    if (!pending_.empty()) {
        const SavedGroup& saved = pending_.front();
        load = saved.bytes();
        if (unit_.ahead != nullptr) unit_.ahead->drop_guess(core.number);
        core.core.restore(launch_, saved);
        if (saved.record.owed != 0) {
            owed = unit_.take_owed(launch_, saved.record);
            lost = owed == nullptr;
        }
        pending_.pop_front();
    } else {
        const std::uint64_t group = next_group_++;
        const std::uint32_t place = take_place(core.core.place());
        const bool guessed = unit_.ahead != nullptr && unit_.ahead->has_guess(core.number);
        right = guessed && unit_.ahead->confirm(core.number, launch_, group, place);
        if (guessed) ++(right ? account_.right_guesses : account_.wrong_guesses);
        if (!right) core.core.take(launch_, group, place);
    }
    if (std::exchange(queued_, false)) {
        unit_.context.counters.add(ORR_CTR_VECTOR_QUEUED_PS, now - completion_.start_ps);
        job_counter_.add(ORR_JOB_QUEUED_PS, now - completion_.start_ps);
    }
    if (job_counter_.on()) ran_on_.set(core.number);
    core.port = this;
    core.turn = ++unit_.turns;
    cores_.add(core.number);
    unit_.free.remove(core.number);
    core.phase = Core::Phase::kRunning;
    core.open.reset();
    core.carried = 0;
    core.cut = 0;
    core.answered = 0;
    if (!right) core.peers.forget();
    if (owed) core.peers.take(std::move(owed));
    if (lost) {
        core.phase = Core::Phase::kStopped;
        core.stopped = {.status = ORR_DONE_FAULT, .fault = ORR_FAULT_PEER_DOWN, .other = core.core.pc()};
    }
    // What was in flight for a group that was aborted holds nobody up.
    core.vram_reads.reset();
    core.host_reads.reset();
    core.taken = now;
    core.expected = group_time_;
    core.charge = cost(group_time_);
    pass_ += core.charge;
    ++active_;
    if (unit_.ahead != nullptr && core.peers.idle()) unit_.start_ahead(core);
    const ModelTime hand_over = unit_.config.group_ps;
    if (load != 0) return unit_.carry(core, load, hand_over + unit_.config.save_core_ps, now);
    unit_.context.events.schedule(core.event, later(now, hand_over));
}

std::optional<std::uint64_t> VectorUnit::Impl::Port::guess(const Core& core) const {
    if (!shares() || !pending_.empty() || account_.wrong_guesses > account_.right_guesses / 4 + kWrongGuesses)
        return std::nullopt;
    // The next group's items would have the stacks of those of the present one.
    if (launch_.desc.item_stacks != 0) return std::nullopt;
    std::uint64_t group = next_group_;
    cores_.for_each([&](std::uint32_t number) { group += unit_.cores[number].turn < core.turn ? 1 : 0; });
    return group < launch_.groups() ? std::optional(group) : std::nullopt;
}

// The one that the core knows already, or the lowest: no more are in use than there are groups or cores.
std::uint32_t VectorUnit::Impl::Port::take_place(std::uint32_t wanted) {
    std::uint32_t place = wanted;
    if (place >= std::min<std::uint64_t>(unit_.config.cores, launch_.groups()) || places_[place]) {
        place = 0;
        while (places_[place])
            ++place;
    }
    places_.set(place);
    return place;
}

void VectorUnit::Impl::Port::take_back(const Core& core, ModelTime now) {
    const ModelTime held = now - core.taken;
    used_ += held;
    places_.reset(core.core.place());
    cores_.remove(core.number);
    if (core.phase == Core::Phase::kDone) group_time_ = held;
    pass_ += cost(held) - core.charge;
}

void VectorUnit::Impl::Port::group_done(ModelTime now) {
    unit_.context.counters.add(ORR_CTR_VECTOR_GROUPS);
    job_counter_.add(ORR_JOB_GROUPS, 1);
    --active_;
    if (active_ > 0) return;
    if (waiting_groups() == 0 && saved_ == 0) {
        end_well(now);
    } else if (preempt_ != Preempt::kNo) {
        finish_save(now);
    }
}

// --- preemption ---

bool VectorUnit::Impl::Port::preempt(Preempt mode, std::uint64_t save) {
    if (mode == Preempt::kNo || !busy_ || ended_) return true;
    const ModelTime now = unit_.context.events.now();
    if (preempt_ == Preempt::kNo) {
        auto area = unit_.area_at(save);
        if (!area) return false;
        area->invalidate();
        save_ = save;
        unit_.forget_owed_at(save);
    }
    preempt_ = std::max(preempt_, mode);
    if (preempt_ == Preempt::kNow) {
        unit_.settle();
        cores_.for_each([&](std::uint32_t number) { unit_.cores[number].peers.wake(); });
    }
    launched_ = false;
    if (active_ == 0 && unsaved_ == 0) finish_save(now);
    // One that waited for all its cores may have held others back.
    unit_.distribute(now);
    return true;
}

std::uint64_t VectorUnit::Impl::Port::store(const SavedGroup& group) {
    const std::uint64_t bytes = unit_.area_at(save_)->write_group(saved_++, group);
    saved_bytes_ += bytes;
    return bytes;
}

void VectorUnit::Impl::Port::group_saved(ModelTime now) {
    --active_;
    if (active_ == 0) finish_save(now);
}

// All groups are off their cores.
void VectorUnit::Impl::Port::finish_save(ModelTime now) {
    unsaved_ = kSavePage;
    for (const SavedGroup& group : pending_) {
        unsaved_ += store(group);
        if (group.record.owed != 0) unit_.owed_by(launch_, group.record, save_);
    }
    pending_.clear();
    saved_bytes_ += kSavePage;
    go_on_saving(now);
}

// A piece at a time, so that others get their share.
void VectorUnit::Impl::Port::go_on_saving(ModelTime now) {
    Resource& vram = unit_.context.memory.vram(ORR_CTR_VRAM_VECTOR_BYTES);
    const std::uint64_t piece = std::min(unsaved_, vram.piece());
    const ModelTime through = vram.reserve(now, piece);
    job_counter_.add(ORR_JOB_VRAM_WRITTEN, piece);
    unsaved_ -= piece;
    if (unsaved_ == 0) return end(ORR_DONE_PREEMPTED, 0, saved_bytes_, through);
    unit_.context.events.schedule(event_, through);
}

std::optional<std::uint64_t> VectorUnit::Impl::Port::load(std::uint64_t save) {
    const std::uint32_t limit = unit_.config.cores;
    auto area = unit_.area_at(save);
    if (!area) return std::nullopt;
    const auto header = area->read_header(ORR_ENGINE_VECTOR);
    if (!header || (header->row != 0 && unit_.config.check == 0) || header->column != 0) return std::nullopt;
    std::memcpy(&launch_.desc, header->descriptor, sizeof launch_.desc);
    if (!emu::work_of(launch_.desc, limit) || header->next_group > launch_.groups()) return std::nullopt;
    next_group_ = header->next_group;
    std::vector<std::uint64_t> numbers;
    for (std::uint32_t i = 0; i < header->groups; ++i) {
        auto group = area->read_group(i, launch_.items());
        if (!group || group->record.group >= next_group_ || places_[group->record.place]) return std::nullopt;
        if (group->record.waits != 0 && launch_.desc.item_stacks == 0) return std::nullopt;
        places_.set(group->record.place);
        numbers.push_back(group->record.group);
        pending_.push_back(*std::move(group));
    }
    std::ranges::sort(numbers);
    if (std::ranges::adjacent_find(numbers) != numbers.end() || waiting_groups() == 0) return std::nullopt;
    area->invalidate();
    for (const SavedGroup& group : pending_)
        if (group.record.owed != 0) unit_.owed_by(launch_, group.record, Impl::kNoArea);
    return header->row;
}

bool VectorUnit::Impl::Port::resume(std::uint64_t save, std::uint32_t tag) {
    if (busy_) return false;
    const ModelTime now = unit_.context.events.now();
    begin(tag, now);
    const auto number = load(save);
    if (!number) {
        pending_.clear();
        end(ORR_DONE_BAD_DESC, 0, 0, now);
        return true;
    }
    if (unit_.config.check != 0) check(unit_.unpark(launch_, *number));
    const ModelTime read = unit_.context.memory.vram(ORR_CTR_VRAM_VECTOR_BYTES).reserve(now, kSavePage);
    job_counter_.add(ORR_JOB_VRAM_READ, kSavePage);
    unit_.context.events.schedule(event_, later(read, unit_.config.launch_ps));
    return true;
}

}  // namespace orrery::emu
