#include "umd/scheduler/runtime_executor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "umd/runtime/launch.h"
#include "umd/runtime/packets.h"

namespace orrery::umd {
namespace {

// Until it is measured: a copy's set-up and the rate of the first generation's cards.
constexpr Ps kHostLatency = 1'500'000;
constexpr double kHostBytesPerSecond = 32e9;
constexpr Ps kLinkSetup = 500'000;

constexpr std::uint64_t kAddresses = 1ull << 47;  // a process has no more

std::uint64_t load_word(const std::uint64_t* word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(*word)).load(std::memory_order_acquire);
}

}  // namespace

// --- making ---

Result<std::unique_ptr<RuntimeExecutor>> RuntimeExecutor::create(Runtime& runtime,
                                                                 std::span<const int> devices,
                                                                 std::uint32_t limit_us) {
    std::unique_ptr<RuntimeExecutor> executor(new RuntimeExecutor(runtime, limit_us));
    ORR_TRY(opened, executor->open(devices));
    return executor;
}

Status RuntimeExecutor::open(std::span<const int> devices) {
    machine_.cards = static_cast<unsigned>(devices.size());
    machine_.slowness.fill(1.0);
    for (const int device : devices) {
        ORR_TRY(context, runtime_.context(device));
        cards_.push_back({device, *context, {}, {}, {}, {}, {}, 0, nullptr});
    }
    double first_speed = 0;
    for (unsigned a = 0; a < cards_.size(); ++a) {
        const Channel host{kHostLatency, 1e12 / kHostBytesPerSecond, true};
        machine_.channel[a][machine_.host()] = machine_.channel[machine_.host()][a] = host;
        ORR_TRY(card, cards_[a].context->winsys().query());
        in_step_ = in_step_ && (card->features & ORR_FEATURE_IN_STEP) != 0;
        const auto* const name = reinterpret_cast<const char*>(card->sku_name);
        cards_[a].sku.assign(name, strnlen(name, sizeof card->sku_name));
        std::ranges::replace_if(cards_[a].sku, [](unsigned char c) { return c <= ' ' || c == 0x7f; }, '_');
        if (cards_[a].sku.empty()) cards_[a].sku = "unnamed";
        // As many kernels at work as the card can hold, and each on as many cores as are left for it then.
        const unsigned cores = card->vector_cores;
        machine_.workers[a] = std::clamp(std::min(card->vector_ports, cores), 1u, kMaxWorkers);
        machine_.groups_a_worker[a] = std::max(cores / machine_.workers[a], 1u);
        // Until something was measured on both.
        const double speed = static_cast<double>(cores) * static_cast<double>(card->vector_hz);
        if (a == 0) first_speed = speed;
        if (speed > 0 && first_speed > 0)
            machine_.slowness[a] = std::clamp(first_speed / speed, 1 / kMostSlowness, kMostSlowness);
    }
    for (unsigned a = 0; a < cards_.size(); ++a) {
        for (unsigned b = 0; b < cards_.size(); ++b) {
            if (a == b) continue;
            ORR_TRY(way, cards_[a].context->winsys().way(cards_[b].context->uid()));
            if (way->links == 0) continue;
            if (auto enabled = runtime_.memory().enable_peer(cards_[a].device, cards_[b].device); !enabled)
                return enabled;
            const double gbps = way->gbps == 0 ? 400 : way->gbps;
            cards_[a].link_latency[b] = Ps{way->latency_ns} * 1000;
            cards_[a].links[b] = fmt::format(":{}x{}:{}", way->links, way->gbps, way->latency_ns);
            machine_.channel[a][b] = {kLinkSetup + Ps{way->latency_ns} * 1000, 8000.0 / gbps, true};
        }
    }
    return {};
}

RuntimeExecutor::~RuntimeExecutor() {
    close_all();
    lanes_.clear();
    free_all(allocations_);
}

Result<std::shared_ptr<TaskKernel>> RuntimeExecutor::load(std::span<const std::byte> image,
                                                          const std::string& name) {
    auto kernel = std::make_shared<TaskKernel>();
    kernel->name = name;
    for (const Card& card : cards_) {
        ORR_TRY(module, Module::load(*card.context, image, "the module of task kernel " + name));
        ORR_TRY(function, (*module)->function(name));
        (*function)->module = std::move(*module);
        kernel->functions.push_back(std::move(*function));
    }
    kernels_.push_back(kernel);
    return kernel;
}

Result<std::shared_ptr<TaskKernel>> RuntimeExecutor::load(const std::shared_ptr<const Function>& function) {
    auto kernel = std::make_shared<TaskKernel>();
    kernel->name = function->name;
    for (const Card& card : cards_) {
        ORR_TRY(there, function->on(*card.context));
        kernel->functions.emplace_back(function, *there);  // lives as long as the library's
    }
    kernels_.push_back(kernel);
    return kernel;
}

void RuntimeExecutor::add_data(std::uint64_t bytes, std::uint64_t host) {
    Data data;
    data.bytes = bytes;
    data.place.at[machine_.host()] = host;
    data_.push_back(std::move(data));
}

void RuntimeExecutor::set_merge(DataId data, std::shared_ptr<TaskKernel> kernel, orrDim3 grid,
                                orrDim3 block) {
    data_[data].merge = std::move(kernel);
    data_[data].grid = grid;
    data_[data].block = block;
}

void RuntimeExecutor::free_all(std::span<const std::uint64_t> allocations) {
    runtime_.memory().free(allocations);
    for (const Card& card : cards_)
        (void)card.context->tell_heap();
}

// Memory comes out of arenas: a card's buffer that linked cards may write takes one of few grants, and one in
// host memory four system calls for each card.
Result<std::uint64_t> RuntimeExecutor::allocate(unsigned node, std::uint64_t bytes) {
    const bool on_host = node == machine_.host();
    Card& card =
        cards_[on_host ? static_cast<unsigned>(std::countr_one(lost_cards_)) % machine_.cards : node];
    auto& arenas = on_host ? card.host_arenas : card.arenas;
    const std::uint64_t size = round_up(bytes, 256), arena_bytes = on_host ? kHostArena : kArena;
    if (bytes > kAddresses) return fail(orrErrorOutOfMemory, "a datum of {} bytes", bytes);
    for (RangeAllocator& arena : arenas) {
        if (auto va = arena.allocate(size, 256)) return *va;
    }
    // In host memory, what is large has a piece of its own: what it left of an arena would fit nothing of its
    // kind. A card's would take a grant of each link, which are few.
    const std::uint64_t whole = on_host && size > arena_bytes / 4 ? size : std::max(size, arena_bytes);
    auto va = on_host ? runtime_.memory().allocate_host(card.device, whole)
                      : runtime_.memory().allocate_device(card.device, whole);
    if (!va) return va;
    allocations_.push_back(*va);
    if (!on_host) {
        ORR_TRY(told, card.context->tell_heap());
    }
    return arenas.emplace_back(*va, whole).allocate(size, 256).value();
}

Result<std::uint64_t> RuntimeExecutor::buffer(std::uint64_t& place, unsigned node, std::uint64_t bytes) {
    if (place != 0) return place;
    auto va = allocate(node, bytes);
    if (va) place = *va;
    return va;
}

Result<std::byte*> RuntimeExecutor::host_memory(DataId data) {
    ORR_TRY(va, buffer(data_[data].place.at[machine_.host()], machine_.host(), data_[data].bytes));
    return reinterpret_cast<std::byte*>(*va);
}

Result<std::vector<void*>> RuntimeExecutor::host_addresses(TaskId task) {
    std::vector<void*> addresses;
    for (const DataAccess& access : core_->accesses(task)) {
        ORR_TRY(memory, host_memory(access.data));
        addresses.push_back(*memory);
    }
    return addresses;
}

// --- packets ---

void RuntimeExecutor::push(Lane& lane, const orr_packet& packet, OpNote note) {
    lane.batch.push_back(packet);
    lane.notes.push_back(note);
    ++lane.packets;
    ++figures_.packets;
}

StepNote RuntimeExecutor::step_of(orrProfStepKind kind, TaskId task, int device) const {
    StepNote note;
    note.step = make_step(kind, orrProfOwnerTasks, owner_, task, device);
    const TaskWork& work = (*work_)[task];
    note.name = work.name.empty() && work.kernel != nullptr ? work.kernel->name : work.name;
    if (note.name.empty()) note.name = "task";
    note.marks = work.marks;
    return note;
}

void RuntimeExecutor::add_step(Lane& lane, std::size_t from, unsigned number, orrProfStepKind kind,
                               TaskId task) const {
    if (!steps_wanted()) [[likely]]
        return;
    StepNote note = step_of(kind, task, cards_[lane.card].device);
    note.from = from;
    note.to = lane.batch.size();
    note.step.lane = number;
    lane.steps.push_back(std::move(note));
}

void RuntimeExecutor::flush(Lane& lane) {
    if (lane.batch.empty()) return;
    // All signals of a lane are on its one semaphore, on another card with some.
    std::vector<Crossing> crossings;
    for (std::size_t i = 0; i < lane.batch.size() && cards_[lane.card].context != lane.slot->context; ++i) {
        if (lane.batch[i].header.opcode == ORR_PKT_SIGNAL)
            crossings.push_back({i + 1, lane.slot, lane.batch[i].word[1]});
    }
    // A stream that has stopped says so when it is polled.
    (void)lane.stream->submit(lane.batch, lane.notes, {}, crossings, lane.steps);
    ++figures_.doorbells;
    lane.batch.clear();
    lane.notes.clear();
    lane.steps.clear();
}

// Cards that have nothing to do begin when all queues that the first commands need are there: making one
// takes the host milliseconds, in which the cards that have begun would work without those that have not.
void RuntimeExecutor::flush() {
    const auto at_work = [](const Lane& lane) {
        return lane.done_packets + lane.batch.size() < lane.packets;
    };
    if (made_enough() && std::ranges::none_of(lanes_, at_work)) return;
    for (Lane& lane : lanes_)
        flush(lane);
}

Status RuntimeExecutor::wait(LaneId by, Wait what, std::vector<Wait>& noted) {
    Lane* source = &lanes_[what.lane];
    if (what.lane == by) return {};
    const unsigned card = lanes_[by].card;
    const auto knows = [&](LaneId lane, std::uint64_t position) {
        const auto& known = lanes_[by].known;
        return lane < known.size() && known[lane] >= position;
    };
    if (knows(what.lane, what.position)) return {};
    const Wait original = what;
    if (source->signals != card) {
        ORR_TRY(relay, lane(LaneKind::kRelay, source->signals, card));
        Lane& between = lanes_[*relay];
        std::uint64_t& passed = between.relayed[what.lane];
        if (passed < what.position) {
            InFlight entry;
            ORR_TRY(waits, wait(*relay, what, entry.waits));
            finish(*relay, std::move(entry));
            passed = what.position;
        }
        // Relays pass on in order: its latest signal stands for all before it.
        what = {*relay, between.position};
        source = &between;
    }
    Lane& waiting = lanes_[by];
    push(waiting, make_semaphore(ORR_PKT_WAIT, source->slot->va, what.position), {Op::kWait, nullptr});
    ++figures_.waits;
    noted.push_back(what);
    if (waiting.known.size() < lanes_.size()) waiting.known.resize(lanes_.size());
    const std::uint64_t behind = source->position - what.position;
    if (behind < source->clocks.size()) {
        const auto& clock = source->clocks[source->clocks.size() - 1 - behind];
        for (std::size_t i = 0; i < clock.size(); ++i)
            waiting.known[i] = std::max(waiting.known[i], clock[i]);
    }
    for (const Wait& learnt : {what, original})
        waiting.known[learnt.lane] = std::max(waiting.known[learnt.lane], learnt.position);
    return {};
}

void RuntimeExecutor::finish(LaneId id, InFlight entry) {
    Lane& lane = lanes_[id];
    push(lane, make_semaphore(ORR_PKT_SIGNAL, lane.slot->va, ++lane.position), {Op::kSignal, nullptr});
    if (lane.known.size() < lanes_.size()) lane.known.resize(lanes_.size());
    lane.known[id] = lane.position;
    lane.clocks.push_back(lane.known);
    if (lane.clocks.size() > kClocks) lane.clocks.pop_front();
    entry.position = lane.position;
    entry.packets = lane.packets;
    if (entry.command != 0) {
        Ref& made = ref(entry.command);
        made.state = RefState::kSubmitted;
        made.lane = id;
        made.position = lane.position;
        made.epoch = epoch_;
    }
    lane.in_flight.push_back(std::move(entry));
}

RuntimeExecutor::Ref& RuntimeExecutor::ref(CommandId command) {
    if (command >= refs_.size()) refs_.resize(command + 1);
    return refs_[command];
}

bool RuntimeExecutor::resolve(unsigned card, std::span<const CommandId> after,
                              std::vector<Wait>& waits) const {
    const auto add = [&](const Wait& wait, bool done) {
        const unsigned there = lanes_[wait.lane].signals;
        if (card < machine_.cards && there != card && !machine_.channel[there][card].exists) return done;
        const auto same = std::ranges::find(waits, wait.lane, &Wait::lane);
        if (same == waits.end())
            waits.push_back(wait);
        else
            same->position = std::max(same->position, wait.position);
        return true;
    };
    for (const CommandId id : after) {
        if (id == 0 || id >= refs_.size()) continue;
        const Ref& before = refs_[id];
        if (before.epoch != epoch_ && before.state == RefState::kDone) continue;
        if (before.state == RefState::kNone) continue;  // of before a failure
        if (before.state == RefState::kHeld) return false;
        if (before.host) {
            if (before.state != RefState::kDone) return false;
            for (const Wait& wait : before.passed)
                (void)add(wait, true);
            continue;
        }
        if (!add({before.lane, before.position}, before.state == RefState::kDone)) return false;
    }
    return true;
}

// --- commands ---

void RuntimeExecutor::transfer(const TransferCommand& command) {
    Held held;
    held.transfer = command;
    held.after.push_back(command.after);
    hold(std::move(held));
}

void RuntimeExecutor::run(const RunCommand& command) {
    Held held;
    held.run = true;
    held.command = command;
    held.after.assign(command.after.begin(), command.after.end());
    held.partials.assign(command.partials.begin(), command.partials.end());
    held.command.after = {};
    held.command.partials = {};
    hold(std::move(held));
}

void RuntimeExecutor::hold(Held held) {
    Ref& made = ref(held.run ? held.command.id : held.transfer.id);
    made.state = RefState::kHeld;
    made.epoch = epoch_;
    if (!synchronised_ && !broken()) synchronise();
    if (!submit(held)) held_.push_back(std::move(held));
}

void RuntimeExecutor::lose(const Held& held, const Error& error) {
    fate_->end(error);
    // Nothing of it has begun: if a card is gone that nobody has missed yet, another one can do it.
    if (error.code == orrErrorDeviceLost && find_lost_cards()) return;
    lost_.emplace_back(held.run ? held.command.task : held.transfer.consumer, error);
}

// A ring must never be so full that submitting blocks: what would make room may not be submitted yet.
bool RuntimeExecutor::crowded() const {
    return std::ranges::any_of(lanes_, [](const Lane& lane) {
        return lane.stream != nullptr && lane.packets - lane.done_packets > lane.stream->entries() / 2;
    });
}

// False: it has to wait for the host. After a failure all that was not submitted is issued anew.
bool RuntimeExecutor::submit(const Held& held) {
    if (broken() || stopped() || made_enough() || crowded()) return false;
    const bool on_host = held.run && held.command.node == machine_.host();
    unsigned card = 0;
    if (held.run) {
        card = held.command.node;
    } else {
        card = held.transfer.from == machine_.host() ? held.transfer.to : held.transfer.from;
    }
    std::vector<Wait> waits;
    if (!resolve(card, held.after, waits)) return false;
    if (on_host) {
        // When all that it waits for is done.
        for (const CommandId id : held.after) {
            if (id != 0 && id < refs_.size() && refs_[id].state == RefState::kSubmitted) return false;
        }
        ref(held.command.id).host = true;
        ref(held.command.id).passed = std::move(waits);
        ref(held.command.id).state = RefState::kSubmitted;
        host_ready_.push_back({held.command.task, held.command.id});
        return true;
    }
    Status done;
    if (held.run) {
        RunCommand command = held.command;
        command.partials = held.partials;
        done = submit_run(command, waits);
    } else {
        done = submit_transfer(held.transfer, waits);
    }
    if (!done) lose(held, done.error());
    return true;
}

// What was pushed already stays in the lane, where what comes behind it has to wait for the same.
Status RuntimeExecutor::abandon(LaneId id, InFlight entry, Status why) {
    finish(id, std::move(entry));
    return why;
}

Status RuntimeExecutor::submit_transfer(const TransferCommand& command, std::span<const Wait> waits) {
    const unsigned host = machine_.host();
    Result<LaneId> id = 0;
    if (command.from == host)
        id = lane(LaneKind::kUp, command.to, 0);
    else if (command.to == host)
        id = lane(LaneKind::kDown, command.from, 0);
    else
        id = lane(LaneKind::kPeer, command.from, command.to);
    if (!id) return std::unexpected(id.error());
    Data& data = data_[command.data];
    const auto place = [&](unsigned node) -> std::uint64_t& {
        if (!command.partial) return data.place.at[node];
        if (node == command.origin) return data.place.partial[node];
        return data.place.received[{node, command.origin}];
    };
    ORR_TRY(from, buffer(place(command.from), command.from, data.bytes));
    ORR_TRY(to, buffer(place(command.to), command.to, data.bytes));
    InFlight entry;
    for (const Wait& before : waits) {
        if (auto done = wait(*id, before, entry.waits); !done) return abandon(*id, std::move(entry), done);
    }
    entry.task = command.consumer;
    entry.command = command.id;
    push(lanes_[*id], make_copy(*to, *from, data.bytes, true), {Op::kCopy, nullptr});
    add_step(lanes_[*id], lanes_[*id].batch.size() - 1, *id, orrProfStepCopy, command.consumer);
    finish(*id, std::move(entry));
    return {};
}

Status RuntimeExecutor::push_dispatches(Lane& lane, const RunCommand& command, std::uint32_t slot) {
    const unsigned node = command.node;
    std::byte* scratch = lane.scratch.data() + slot * kSlotBytes;
    const std::uint64_t scratch_va = lane.scratch.va() + slot * kSlotBytes;
    const auto accesses = core_->accesses(command.task);
    if (core_->is_merge(command.task)) {
        Data& data = data_[accesses[0].data];
        ORR_TRY(into, buffer(data.place.at[node], node, data.bytes));
        for (std::size_t i = 0; i < command.partials.size(); ++i) {
            const unsigned origin = command.partials[i];
            const std::uint64_t part =
                origin == node ? data.place.partial[node] : data.place.received.at({node, origin});
            const orrTaskMergeArgs args{reinterpret_cast<void*>(*into), reinterpret_cast<const void*>(part),
                                        data.bytes};
            const std::uint64_t at = kMergeArgs + i * kMergeArgsBytes;
            std::memcpy(scratch + at, &args, sizeof(args));
            push(lane, make_dispatch(*data.merge->functions[node], data.grid, data.block, 0, scratch_va + at),
                 {Op::kKernel, data.merge->functions[node]->name});
        }
        return {};
    }
    const TaskWork& work = (*work_)[command.task];
    std::memcpy(scratch, work.args.data(), work.args.size());
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        Data& data = data_[accesses[i].data];
        const bool part = accesses[i].mode == Access::kReduce;
        ORR_TRY(va, buffer(part ? data.place.partial[node] : data.place.at[node], node, data.bytes));
        if ((command.clear >> i & 1) != 0) push(lane, make_fill(*va, 0, data.bytes), {Op::kFill, nullptr});
        if (work.offsets[i] >= 0) std::memcpy(scratch + work.offsets[i], &*va, sizeof(*va));
    }
    const Function& function = *work.kernel->functions[node];
    push(lane,
         make_dispatch(function, work.grid, work.block, work.local_bytes, work.args.empty() ? 0 : scratch_va),
         {Op::kKernel, function.name});
    return {};
}

Status RuntimeExecutor::submit_run(const RunCommand& command, std::span<const Wait> waits) {
    ORR_TRY(id, lane(LaneKind::kRun, command.node, command.worker));
    InFlight entry;
    for (const Wait& before : waits) {
        if (auto done = wait(*id, before, entry.waits); !done) return abandon(*id, std::move(entry), done);
    }
    Lane& lane = lanes_[*id];
    entry.slot = static_cast<std::uint32_t>(lane.runs++ % kSlots);
    const std::uint64_t stamps = lane.scratch.va() + entry.slot * kSlotBytes + kStamps;
    push(lane, make_timestamp(stamps), {Op::kSignal, nullptr});
    const std::size_t from = lane.batch.size();
    if (auto done = push_dispatches(lane, command, entry.slot); !done)
        return abandon(*id, std::move(entry), done);
    add_step(lane, from, *id, core_->is_merge(command.task) ? orrProfStepMerge : orrProfStepKernel,
             command.task);
    entry.task = command.task;
    entry.command = command.id;
    entry.run = true;
    push(lane, make_timestamp(stamps + 8), {Op::kSignal, nullptr});
    finish(*id, std::move(entry));
    return {};
}

// --- ends ---

void RuntimeExecutor::end(Listener& listener, Lane& lane) {
    const InFlight& entry = lane.in_flight.front();
    if (entry.command != 0) ref(entry.command).state = RefState::kDone;
    if (entry.run) {
        Card& card = cards_[lane.card];
        if (card.base_stamp != nullptr) {
            card.base = static_cast<Ps>(load_word(card.base_stamp));
            card.base_stamp = nullptr;
        }
        const auto* stamps =
            reinterpret_cast<const std::uint64_t*>(lane.scratch.data() + entry.slot * kSlotBytes + kStamps);
        listener.completed(entry.task, static_cast<Ps>(load_word(stamps)) - card.base,
                           static_cast<Ps>(load_word(stamps + 1)) - card.base);
    }
    lane.done_packets = entry.packets;
    lane.in_flight.pop_front();
}

bool RuntimeExecutor::poll_lane(Listener& listener, Lane& lane) {
    bool any = false;
    while (!lane.in_flight.empty() && lane.batch.empty() &&
           lane.stream->done(lane.in_flight.front().packets)) {
        end(listener, lane);
        any = true;
    }
    return any;
}

bool RuntimeExecutor::poll(Listener& listener) {
    bool any = false;
    made_ = 0;
    for (Lane& lane : lanes_) {
        any = poll_lane(listener, lane) || any;
        if (lane.in_flight.empty()) continue;
        if (const auto stopped = lane.stream->look()) fate_->end(*stopped);
    }
    if (broken()) return any;
    if (held_.empty()) return any;
    const std::size_t before = held_.size();
    std::deque<Held> held;
    held.swap(held_);
    for (Held& command : held) {
        if (!submit(command)) held_.push_back(std::move(command));
    }
    return any || held_.size() != before;
}

bool RuntimeExecutor::idle() const {
    return !broken() && held_.empty() && host_ready_.empty() && host_running_.empty() && !cards_work();
}

bool RuntimeExecutor::cards_work() const {
    return std::ranges::any_of(lanes_, [](const Lane& lane) { return !lane.in_flight.empty(); });
}

std::vector<TaskId> RuntimeExecutor::take_host_tasks() {
    std::vector<TaskId> tasks;
    for (const HostTask& ready : host_ready_) {
        tasks.push_back(ready.task);
        host_running_.push_back(ready);
    }
    host_ready_.clear();
    return tasks;
}

void RuntimeExecutor::host_task_done(TaskId task) {
    const auto running = std::ranges::find(host_running_, task, &HostTask::task);
    if (running == host_running_.end()) return;
    ref(running->command).state = RefState::kDone;
    host_running_.erase(running);
}

}  // namespace orrery::umd
