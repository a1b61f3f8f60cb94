#include "umd/runtime/stream.h"

#include <orrery/hw/mmu.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/fault_text.h"
#include "umd/runtime/fleet.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/patience.h"

namespace orrery::umd {
namespace {

// The card says only that the other parts of a launch over several cards did not come.
bool is_apart(const QueueState& state) {
    return state.error == ORR_QERR_GANG && state.error_detail != ORR_GANG_NO_PLACE;
}

constexpr std::uint64_t kArgsAlignment = 64;

// Longer than an idle card needs to wake up and finish a small job, shorter than anybody minds.
constexpr std::int64_t kSpinNs = 100'000;
// A wait in the kernel is cut into pieces only so that a lost interrupt costs a second, not for ever.
constexpr std::int64_t kSleepNs = 1'000'000'000;
constexpr std::int64_t kLookNs = 20'000'000;
// How old an answer of the driver on a link may be, and a way that no link is (see Context::way_to()).
constexpr std::int64_t kWayNs = 20'000'000;
constexpr std::uint64_t kNoWay = 1;

std::uint64_t load(const std::uint64_t& word, std::memory_order order) {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(order);
}

bool wants_item_stacks(const orr_packet& packet) {
    return packet.header.opcode == ORR_PKT_DISPATCH &&
           std::bit_cast<orr_packet_dispatch>(packet).item_stack_pages != 0;
}

}  // namespace

Result<std::shared_ptr<Stream>> Stream::create(Context& context, std::uint32_t entries,
                                               std::uint64_t args_bytes, QueueOptions options, Use use) {
    // One piece of memory: each is made, bound and mapped with a system call of its own.
    const std::uint64_t ring = sizeof(orr_ring) + std::uint64_t{entries} * sizeof(orr_packet);
    ORR_TRY(memory, PinnedBuffer::create(context.memory(), context.device(), ring + args_bytes));
    const std::uint64_t ring_va = memory->va();
    std::shared_ptr<Stream> stream(new Stream(context, std::move(*memory), entries, args_bytes, use));
    ORR_TRY(queue, context.winsys().create_queue(ring_va, entries, options));
    stream->queue_ = std::move(*queue);
    stream->number_ = stream->queue_->firmware_number();
    stream->options_ = std::move(options);
    context.fleet().add(stream);
    return stream;
}

Stream::Stream(Context& context, PinnedBuffer memory, std::uint32_t entries, std::uint64_t args_bytes,
               Use use)
    : context_(context),
      memory_(std::move(memory)),
      entries_(entries),
      use_(use),
      ring_(reinterpret_cast<orr_ring*>(memory_.data())),
      packets_(reinterpret_cast<orr_packet*>(memory_.data() + sizeof(orr_ring))),
      args_(reinterpret_cast<std::byte*>(packets_ + entries), args_bytes),
      room_until_(entries),
      notes_(entries) {}

Stream::~Stream() {
    close();
    for (Block* block : item_stacks_)
        context_.memory().free_block(block);
}

void Stream::close() {
    // While the card's records can still be told from those of who gets its number next. Nothing of the
    // others is told, and they may go while somebody holds a lock that a callback would want.
    if (use_ == Use::kWork && queue() != nullptr) (void)context_.work_log().drain();
    {
        const std::lock_guard lock(relays_mutex_);
        for (auto& [device, relay] : relays_) {
            if (relay != nullptr) relay->source->close();
        }
    }
    std::shared_ptr<HwQueue> gone;
    {
        // One lock over both: nobody would end what is published between them.
        const std::lock_guard lock(queue_mutex_);
        if (queue_ == nullptr) return;
        if (!done(producer_.load(std::memory_order_relaxed)))
            stop_locked({orrErrorInvalidHandle, "the stream was destroyed before this work was done"});
        gone.swap(queue_);
    }
    gone->destroy();      // for those too who wait with a reference of their own
    trail_.end_ranges();  // others may have a reference for long, to an event's stream for example
    context_.fleet().bury(*this);
    context_.fleet().gangs().retire();
    staging_.stop({orrErrorInvalidHandle, "the stream was destroyed before this work was done"});
}

void Stream::end_relays() {
    // Whoever makes one has it looked at the next time around.
    const std::unique_lock lock(relays_mutex_, std::try_to_lock);
    if (!lock) return;
    for (auto& [device, relay] : relays_) {
        if (relay == nullptr || !relay->source->works()) continue;
        relay->source->stop({orrErrorAborted, fmt::format("{}, for which it waited, has stopped", label())});
    }
}

std::shared_ptr<HwQueue> Stream::queue() const {
    const std::lock_guard lock(queue_mutex_);
    return queue_;
}

// First the hardware: nobody may take the stream for stopped, and its memory for free, while it runs.
Error Stream::stop(Error cause) {
    const auto first = [&] {
        const std::lock_guard lock(queue_mutex_);
        return stop_locked(std::move(cause));
    }();
    staging_.stop(first);
    return first;
}

Error Stream::stop_locked(Error cause) {
    if (queue_ != nullptr && !std::exchange(stopped_, true)) queue_->abort();
    const QueueState state = state_of_ring();
    // It may have stopped by itself before.
    if (state.error != ORR_QERR_NONE && state.error != ORR_QERR_ABORTED) return stopped_by(state);
    return fate_.end(std::move(cause));
}

bool Stream::arriving(std::uint64_t index) const {
    return consumer() >= index && !flight_.quiet();
}

Status Stream::publish_locked(std::uint64_t end, std::span<const FlightSignal> flight) {
    const std::lock_guard lock(queue_mutex_);
    if (queue_ == nullptr || stopped_) return std::unexpected(ended());
    if (!flight.empty()) add_flight_locked(flight);
    ring_locked(end);
    return {};
}

Result<std::uint64_t> Stream::submit(std::span<const orr_packet> packets, OpNote note,
                                     std::span<Context* const> peers, std::span<const Crossing> crossings) {
    if (packets.size() == 1) return submit(packets, std::span<const OpNote>(&note, 1), peers, crossings);
    const std::vector<OpNote> notes(packets.size(), note);
    return submit(packets, notes, peers, crossings);
}

Result<std::uint64_t> Stream::submit(std::span<const orr_packet> packets, std::span<const OpNote> notes,
                                     std::span<Context* const> peers, std::span<const Crossing> crossings,
                                     std::span<const StepNote> steps) {
    const std::lock_guard lock(mutex_);
    return submit_locked(packets, notes, peers, crossings, steps);
}

Result<std::uint64_t> Stream::signal_now(std::uint64_t semaphore, std::uint64_t value) {
    // Whoever holds it may be waiting for room.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return 0;
    const std::uint64_t index = producer_.load(std::memory_order_relaxed);
    if (index >= room_until_) return 0;
    put_locked(index, make_semaphore(ORR_PKT_SIGNAL, semaphore, value), {Op::kSignal, nullptr});
    ORR_TRY(published, publish_locked(index + 1, {}));
    return index + 1;
}

Result<std::uint64_t> Stream::submit_now(std::span<const orr_packet> packets,
                                         std::span<const StepNote> steps) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return 0;
    std::uint64_t end = producer_.load(std::memory_order_relaxed);
    if (end + packets.size() > room_until_) return 0;
    note_steps(end, steps);
    for (const orr_packet& packet : packets)
        put_locked(end++, packet, {packet.header.opcode == ORR_PKT_WAIT ? Op::kWait : Op::kSignal, nullptr});
    ORR_TRY(published, publish_locked(end, {}));
    return end;
}

Status Stream::submit_told(const orr_packet& packet, OpNote note,
                           const std::function<void(std::uint64_t)>& before) {
    const std::lock_guard lock(mutex_);
    ORR_TRY(room, make_room_locked(1));
    const std::uint64_t index = producer_.load(std::memory_order_relaxed);
    before(index);
    put_locked(index, packet, note);
    return publish_locked(index + 1, {});
}

Result<std::uint64_t> Stream::submit_locked(std::span<const orr_packet> packets,
                                            std::span<const OpNote> notes, std::span<Context* const> peers,
                                            std::span<const Crossing> crossings,
                                            std::span<const StepNote> steps) {
    const std::uint64_t all = packets.size() + peers.size();
    if (all > entries_) return fail(orrErrorInternal, "{} packets at once", all);
    for (Context* peer : peers) {
        ORR_TRY(ready, prepare_landing(*peer));
    }
    ORR_TRY(stacks, prepare_item_stacks(packets));
    ORR_TRY(room, make_room_locked(all));
    std::uint64_t end = producer_.load(std::memory_order_relaxed);
    note_steps(end, steps);
    std::vector<FlightSignal> flight;
    for (const Crossing& crossing : crossings)
        flight.push_back({end + crossing.behind, crossing.slot, crossing.value});
    for (std::size_t i = 0; i < packets.size(); ++i) {
        if (!wants_item_stacks(packets[i])) [[likely]] {
            put_locked(end++, packets[i], notes[i]);
            continue;
        }
        auto dispatch = std::bit_cast<orr_packet_dispatch>(packets[i]);
        dispatch.item_stacks = item_stacks_.back()->va;
        put_locked(end++, std::bit_cast<orr_packet>(dispatch), notes[i]);
    }
    for (Context* peer : peers) {
        const auto& slot = landing_slots_[peer->device()];
        put_locked(end++, make_semaphore(ORR_PKT_SIGNAL, slot->va, ++slot->last), {Op::kSignal, nullptr});
        flight.push_back({end, slot, slot->last, true});
    }
    ORR_TRY(published, publish_locked(end, flight));
    return end;
}

Status Stream::prepare_item_stacks(std::span<const orr_packet> packets) {
    std::uint64_t wanted = 0;
    for (const orr_packet& packet : packets) {
        if (!wants_item_stacks(packet)) [[likely]]
            continue;
        const auto dispatch = std::bit_cast<orr_packet_dispatch>(packet);
        const std::uint64_t items = std::uint64_t{dispatch.block_x} * dispatch.block_y * dispatch.block_z;
        const std::uint64_t groups = std::uint64_t{dispatch.grid_x} * dispatch.grid_y * dispatch.grid_z;
        const std::uint64_t at_once = std::min<std::uint64_t>(groups, std::max(context_.vector_cores(), 1u));
        wanted = std::max(wanted, at_once * items * dispatch.item_stack_pages * ORR_PAGE_SIZE);
    }
    if (wanted == 0 || (!item_stacks_.empty() && item_stacks_.back()->size >= wanted)) return {};
    auto block = context_.memory().create_block(context_.device(), std::bit_ceil(wanted), BoKind::kVram);
    if (!block) {
        return fail(block.error().code, "{} bytes for stacks of work-items that wait at barriers: {}",
                    std::bit_ceil(wanted), block.error().text);
    }
    item_stacks_.push_back(*block);
    return {};
}

Status Stream::prepare_landing(Context& peer) {
    auto& slot = landing_slots_[peer.device()];
    if (slot != nullptr) return {};
    ORR_TRY(taken, peer.semaphores().take(true));
    ORR_TRY(shared, peer.memory().share_block(*(*taken)->block, context_.device()));
    slot = std::move(*taken);
    return {};
}

void Stream::add_flight_locked(std::span<const FlightSignal> flight) {
    for (const FlightSignal& signal : flight) {
        Context& there = *signal.slot->context;
        // It asks the driver: not for each signal.
        const std::int64_t now = now_ns();
        if (!flight_.knows_way(there, now - kWayNs)) {
            context_.fleet().prepare_probes(context_, there);
            const std::uint64_t way = context_.way_to(there).value_or(kNoWay);
            flight_.set_way(there, way, sent(), now);
        }
        flight_.add(signal);
    }
}

// All packets are done here; their last writes are on the link.
Status Stream::wait_for_landing(std::uint64_t index) {
    const std::int64_t limit = now_ns() + landing_patience_ns();
    while (!done(index)) {
        if (auto stopped = failed(index)) return std::unexpected(*stopped);
        if (now_ns() >= limit) {
            // It may still come: nothing is lost, and nobody gets its memory.
            return std::unexpected(stop(Error{
                orrErrorPeerAccess,
                fmt::format(
                    "what device {} wrote to another card did not arrive there: is the link up and "
                    "the card alive (orrery-smi)? The stream has stopped: destroy it and make a new one",
                    context_.device())}));
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return {};
}

Status Stream::wait_quiet() {
    const std::int64_t limit = now_ns() + landing_patience_ns();
    while (!flight_.quiet()) {
        context_.fleet().watch();
        if (now_ns() >= limit) {
            return fail(orrErrorPeerAccess,
                        "what {} wrote to another card before it stopped is still on its way: nothing was "
                        "freed. Is the link up and the card alive (orrery-smi)?",
                        label());
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return {};
}

Status Stream::make_room(std::uint64_t packets) {
    const std::lock_guard lock(mutex_);
    return make_room_locked(packets);
}

// Holds the lock while it waits: later submitters would have to wait all the same.
Status Stream::make_room_locked(std::uint64_t packets) {
    if (auto stopped = error()) return std::unexpected(*stopped);
    const std::uint64_t needed = producer_.load(std::memory_order_relaxed) + packets;
    // Whether there still is a queue is asked when they are published.
    if (needed <= room_until_) return {};
    if (!done(needed - entries_)) {
        if (queue() == nullptr) return std::unexpected(ended());
        ORR_TRY(waited, wait(needed - entries_));
    }
    const std::uint64_t executed = consumer();
    // It counts for a whole ring from now on, so one that cannot be is not believed.
    const bool possible = executed <= producer_.load(std::memory_order_relaxed);
    room_until_ = possible && flight_.landed(executed, executed) ? executed + entries_ : needed;
    return {};
}

Result<std::uint64_t> Stream::submit_with(orr_packet packet, unsigned word, std::span<const std::byte> data,
                                          OpNote note, std::span<Context* const> peers) {
    const std::lock_guard lock(mutex_);
    if (!data.empty()) {
        ORR_TRY(va, take_args(data));
        packet.word[word] = *va;
    }
    auto index = submit_locked({&packet, 1}, {&note, 1}, peers, {});
    if (index && !data.empty()) args_in_use_.push_back({*index, args_head_});
    return index;
}

Status Stream::prepare(const orr_packet& dispatch, std::size_t args, std::span<Context* const> peers) {
    const std::lock_guard lock(mutex_);
    for (Context* peer : peers) {
        ORR_TRY(ready, prepare_landing(*peer));
    }
    ORR_TRY(stacks, prepare_item_stacks({&dispatch, 1}));
    if (args != 0) {
        ORR_TRY(free, make_args_room(round_up(args, kArgsAlignment)));
    }
    return make_room_locked(2 + peers.size());
}

bool Stream::has_room(std::size_t args, std::span<Context* const> peers) const {
    if (producer_.load(std::memory_order_relaxed) + 2 + peers.size() > room_until_) return false;
    const std::uint64_t size = round_up(args, kArgsAlignment);
    return args_in_use_.empty() || args_start(size) + size - args_tail_ <= args_.size();
}

Result<std::uint64_t> Stream::submit_member(const orr_packet& gang, orr_packet dispatch,
                                            std::span<const std::byte> args, const char* name,
                                            std::span<Context* const> peers) {
    if (!args.empty()) {
        ORR_TRY(va, take_args(args));
        dispatch.word[1] = *va;
    }
    const orr_packet both[] = {gang, dispatch};
    const OpNote notes[] = {{Op::kKernel, name}, {Op::kKernel, name}};
    auto end = submit_locked(both, notes, peers, {});
    if (!end) return end;
    if (!args.empty()) args_in_use_.push_back({*end, args_head_});
    // The signals behind it tell others what they are, not whether it has run.
    return *end - peers.size();
}

std::optional<Error> Stream::first_error() {
    if (fate_.ended()) return fate_.error();
    const QueueState state = state_of_ring();  // one look: what is checked is what counts
    if (state.error == ORR_QERR_NONE || is_apart(state) || state.error == ORR_QERR_ABORTED)
        return std::nullopt;
    return stopped_by(state);
}

Status Stream::make_args_room(std::uint64_t size) {
    const std::uint64_t capacity = args_.size();
    if (size > capacity) return fail(orrErrorInternal, "{} bytes of arguments, room for {}", size, capacity);
    const std::uint64_t end = args_start(size) + size;
    while (!args_in_use_.empty() && (end - args_tail_ > capacity || done(args_in_use_.front().index))) {
        ORR_TRY(free, wait(args_in_use_.front().index));
        args_tail_ = args_in_use_.front().end;
        args_in_use_.pop_front();
    }
    return {};
}

Result<std::uint64_t> Stream::take_args(std::span<const std::byte> args) {
    const std::uint64_t size = round_up(args.size(), kArgsAlignment);
    ORR_TRY(room, make_args_room(size));
    const std::uint64_t start = args_start(size);
    if (args_in_use_.empty()) args_tail_ = start;
    args_head_ = start + size;
    std::byte* const copy = args_.data() + start % args_.size();
    std::memcpy(copy, args.data(), args.size());
    return reinterpret_cast<std::uintptr_t>(copy);
}

QueueState Stream::state_of_ring() const {
    QueueState state;
    state.error = load(ring_->error, std::memory_order_acquire);
    state.completed = consumer();
    state.error_index = load(ring_->error_index, std::memory_order_relaxed);
    state.error_address = load(ring_->error_address, std::memory_order_relaxed);
    state.error_detail = load(ring_->error_detail, std::memory_order_relaxed);
    state.error_item = load(ring_->error_item, std::memory_order_relaxed);
    state.error_other = load(ring_->error_other, std::memory_order_relaxed);
    return state;
}

Error Stream::stopped_by(const QueueState& state) {
    if (state.error == ORR_QERR_ABORTED) {
        // Whoever aborts it says why before he lets go.
        const std::lock_guard lock(queue_mutex_);
        if (auto why = fate_.error()) return *why;
    }
    if (is_apart(state)) return fate_.end(context_.fleet().gangs().cause(*this, state.error_detail));
    const OpNote note = notes_[state.error_index & (entries_ - 1)];
    QueueState whole = state;
    whole.error_item = load(ring_->error_item, std::memory_order_acquire);
    whole.error_other = load(ring_->error_other, std::memory_order_relaxed);
    const orr_packet packet = load_packet(packets_[state.error_index & (entries_ - 1)]);
    return fate_.end(describe_queue_error(whole, note, packet, context_, args_));
}

std::optional<Error> Stream::error() {
    if (fate_.ended()) return fate_.error();
    if (load(ring_->error, std::memory_order_relaxed) != ORR_QERR_NONE) return stopped_by(state_of_ring());
    return std::nullopt;
}

std::optional<Error> Stream::look() {
    if (auto stopped = error()) return stopped;
    const std::int64_t now = now_ns();
    std::int64_t last = looked_ns_.load(std::memory_order_relaxed);
    if (now - last < kLookNs || !looked_ns_.compare_exchange_strong(last, now)) return std::nullopt;
    context_.fleet().watch();
    return ask();
}

std::optional<Error> Stream::failed(std::uint64_t index) {
    auto stopped = look();
    if (!stopped || !arriving(index)) return stopped;
    context_.fleet().watch();
    return std::nullopt;
}

std::optional<Error> Stream::ask() {
    if (auto stopped = error()) return stopped;
    const auto hardware = queue();
    if (hardware == nullptr) return std::nullopt;
    // One more than there are, so that a queue which is done does not hide that its card is gone.
    auto state = hardware->wait(submitted() + 1, 0);
    if (!state) return refused(state.error());
    if (state->error != ORR_QERR_NONE) return stopped_by(*state);
    return std::nullopt;
}

std::optional<Error> Stream::refused(const Error& answer) {
    if (answer.code == orrErrorDeviceLost) return stop(context_.lose(answer));
    if (answer.code != orrErrorInvalidHandle) return std::nullopt;
    return stop(answer);
}

std::string Stream::label() const {
    const std::string& name = options_.name;  // never changes
    return name.empty() ? fmt::format("a stream on device {}", context_.device())
                        : fmt::format("stream '{}' on device {}", name, context_.device());
}

bool Stream::poisoned() const {
    return load(ring_->error, std::memory_order_relaxed) == ORR_QERR_POISON;
}

bool Stream::poisoned_from_outside(std::uint64_t word) const {
    if (!poisoned()) return false;
    const QueueState state = state_of_ring();
    return state.error_detail == word && context_.others_fail(state.error_address);
}

std::uint64_t Stream::stopped_at() const {
    if (load(ring_->error, std::memory_order_acquire) == ORR_QERR_NONE) return consumer();
    return load(ring_->error_index, std::memory_order_relaxed);
}

std::vector<SemaphorePoint> Stream::signals(std::uint64_t from, std::uint64_t to) const {
    std::vector<SemaphorePoint> found;
    for (std::uint64_t index = from; index < to; ++index) {
        const auto packet =
            std::bit_cast<orr_packet_semaphore>(load_packet(packets_[index & (entries_ - 1)]));
        if (packet.header.opcode == ORR_PKT_SIGNAL && packet.header.tag == static_cast<std::uint32_t>(index))
            found.push_back({packet.semaphore, packet.value});
    }
    return found;
}

std::vector<SemaphorePoint> Stream::promises() const {
    const std::uint64_t end = submitted();
    return signals(std::max(end > entries_ ? end - entries_ : 0, consumer()), end);
}

QueueView Stream::view() const {
    QueueView view;
    view.at = consumer();
    const std::uint64_t end = submitted();
    if (view.at < end && !fate_.ended()) {
        const auto head =
            std::bit_cast<orr_packet_semaphore>(load_packet(packets_[view.at & (entries_ - 1)]));
        view.blocked = head.header.opcode == ORR_PKT_WAIT && head.limit_ns == 0 &&
                       head.header.tag == static_cast<std::uint32_t>(view.at);
        view.wanted = {head.semaphore, head.value};
        view.later = signals(view.at, end);
    }
    view.on_way = flight_.points(view.at);
    return view;
}

// Of a stream without a queue.
Error Stream::ended() const {
    return fate_.error().value_or(Error{orrErrorInvalidHandle, "the stream was destroyed"});
}

Status Stream::declare_signal(std::uint64_t semaphore) {
    if (auto stopped = error()) return std::unexpected(*stopped);
    const auto hardware = queue();
    if (hardware == nullptr) return std::unexpected(ended());
    auto declared = hardware->declare_signal(semaphore);
    if (declared) return {};
    // It may have stopped meanwhile, which the driver refuses.
    if (auto stopped = ask()) return std::unexpected(*stopped);
    return declared;
}

Status Stream::remove_signal(std::uint64_t semaphore) {
    const auto hardware = queue();
    if (hardware == nullptr) return {};  // that took everything back
    return hardware->remove_signal(semaphore);
}

Result<drm_orr_queue_stats> Stream::stats() {
    const auto hardware = queue();
    if (hardware == nullptr) return std::unexpected(ended());
    return hardware->stats();
}

Status Stream::set_options(const QueueOptions& options) {
    const std::lock_guard lock(mutex_);
    const auto hardware = queue();
    if (hardware == nullptr) return std::unexpected(ended());
    ORR_TRY(set, hardware->set(options));
    options_.priority = options.priority;
    options_.weight = options.weight;
    options_.slice_us = options.slice_us;
    return {};
}

QueueOptions Stream::options() {
    const std::lock_guard lock(mutex_);
    return options_;
}

std::shared_ptr<StreamCapture> Stream::capture() const {
    const std::lock_guard lock(capture_mutex_);
    return capture_;
}

void Stream::set_capture(std::shared_ptr<StreamCapture> capture) {
    const std::lock_guard lock(capture_mutex_);
    capture_.swap(capture);
    capturing_.store(capture_ != nullptr, std::memory_order_release);
}

Status Stream::wait(std::uint64_t index) {
    auto done = wait_for(index);
    if (done && prof_has(orrProfWantWork)) [[unlikely]]
        trail_.see(index);
    context_.print_output();
    return done;
}

bool Stream::prints() const noexcept {
    return context_.prints();
}

Status Stream::wait_for(std::uint64_t index) {
    if (done(index)) return {};
    std::int64_t spin_end = 0;
    while (true) {
        if (done_soon(index) || done(index)) return {};
        if (arriving(index)) return wait_for_landing(index);
        if (auto stopped = error()) return std::unexpected(*stopped);
        const std::int64_t now = now_ns();
        if (spin_end == 0) spin_end = now + kSpinNs;
        if (now >= spin_end) break;
    }
    while (!done(index)) {
        if (consumer() >= index) return wait_for_landing(index);
        if (auto stopped = error()) return std::unexpected(*stopped);
        // What happens on other cards raises no interrupt here.
        const bool watched = use_ != Use::kHostSignals && context_.fleet().needs_looks();
        const auto hardware = queue();
        if (hardware == nullptr) {
            if (done(index)) break;  // and closed after that
            return std::unexpected(ended());
        }
        auto state = hardware->wait(index, now_ns() + (watched ? kLookNs : kSleepNs));
        if (done(index)) break;
        if (!state) {
            if (auto stopped = refused(state.error())) return std::unexpected(*stopped);
            if (state.error().code != orrErrorOutOfMemory) return std::unexpected(state.error());
            // All places to sleep are taken: the next time around.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } else if (state->error != ORR_QERR_NONE) {
            return std::unexpected(stopped_by(*state));
        } else if (state->deadlock && !done(index)) {
            if (auto deadlock = describe_deadlock(context_)) return std::unexpected(*deadlock);
            continue;  // over already
        }
        if (!watched) continue;
        context_.fleet().watch();
        if (auto deadlock = context_.fleet().deadlock(*this)) return std::unexpected(*deadlock);
    }
    return {};
}

}  // namespace orrery::umd
