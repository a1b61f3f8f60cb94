// A stream: one hardware queue, its ring, and what the runtime remembers about the packets in it.
//
// Submission is: take the lock, copy packets into the ring, publish the producer index, ring the doorbell.
// When nobody else holds the lock and the ring has room it makes no system call.
#pragma once

#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "umd/runtime/deadlock_search.h"
#include "umd/runtime/fate.h"
#include "umd/runtime/flight.h"
#include "umd/runtime/mutex.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/pinned_buffer.h"
#include "umd/runtime/signal_log.h"
#include "umd/runtime/staging.h"
#include "umd/runtime/work_trail.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Context;
struct Block;
struct SemaphoreSlot;
struct StreamCapture;

enum class Op : std::uint8_t { kNone, kCopy, kFill, kKernel, kWait, kSignal };

// What error texts say about a packet. name: of a kernel, lives as long as the context.
struct OpNote {
    Op op = Op::kNone;
    const char* name = nullptr;
};

// A signal among packets of a submission that crosses a link.
struct Crossing {
    std::uint64_t behind = 0;  // of these packets, with its own
    std::shared_ptr<SemaphoreSlot> slot;
    std::uint64_t value = 0;
};

// Threads: everything may be called from any thread.
class Stream : public std::enable_shared_from_this<Stream> {
  public:
    // kHostSignals: holds no waits, so it needs nobody to look after others while it waits for room; whoever
    // looks after others submits to it. kRelay: waits and signals for a stream of another card, and touches
    // nothing that the user could free.
    enum class Use : std::uint8_t { kWork, kHostSignals, kRelay };
    // args_bytes: room for the arguments of kernels of submit_kernel(), a multiple of a page; 0: it is not
    // called.
    static Result<std::shared_ptr<Stream>> create(Context& context, std::uint32_t entries = kDefaultEntries,
                                                  std::uint64_t args_bytes = kDefaultArgsBytes,
                                                  QueueOptions options = {}, Use use = Use::kWork);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    Context& context() const { return context_; }
    // It does half of a copy that was submitted to a stream of another card, which alone is told its error.
    bool helps() const { return helps_.load(std::memory_order_relaxed); }
    void set_helps() { helps_.store(true, std::memory_order_relaxed); }
    // The firmware's number, as failure words have it.
    std::uint32_t number() const { return number_; }
    // What the driver calls its queue; nullopt: it has none any more.
    std::optional<std::uint32_t> hardware_number() const {
        const auto hardware = queue();
        return hardware == nullptr ? std::nullopt : std::optional(hardware->number());
    }
    // "stream 'x' on device 1"
    std::string label() const;

    // Index of the packet after the last of these, for wait(). At most entries packets; they stay together.
    // peers: cards whose memory the packets may write. A card is done with a copy when it has put it on the
    // link; so a signal of a semaphore over there follows, and only when that has arrived is the index done.
    // crossings: the signals among the packets whose semaphores are on other cards. steps: what is to be told
    // of the packets (umd/prof/steps.h), in their order.
    Result<std::uint64_t> submit(std::span<const orr_packet> packets, OpNote note,
                                 std::span<Context* const> peers = {},
                                 std::span<const Crossing> crossings = {});
    // The same for packets of several kinds: a note for each.
    Result<std::uint64_t> submit(std::span<const orr_packet> packets, std::span<const OpNote> notes,
                                 std::span<Context* const> peers = {},
                                 std::span<const Crossing> crossings = {},
                                 std::span<const StepNote> steps = {});
    // A SIGNAL of a semaphore on this card, the short way: index behind it. 0: nothing happened, as somebody
    // would have to be waited for, or an error to be told, which submit() does.
    std::uint64_t try_signal(std::uint64_t semaphore, std::uint64_t value) noexcept;
    // The same, and it tells errors. 0: make_room() has to come first, again if somebody else took the room.
    Result<std::uint64_t> signal_now(std::uint64_t semaphore, std::uint64_t value);
    // The same of several waits and signals on this card, which stay together.
    Result<std::uint64_t> submit_now(std::span<const orr_packet> packets,
                                     std::span<const StepNote> steps = {});
    // One packet; `before` is told its index before anybody can see it. It must not come back here.
    Status submit_told(const orr_packet& packet, OpNote note,
                       const std::function<void(std::uint64_t)>& before);
    // `args` are copied and their copy's address put into word[1] of the dispatch; nothing to copy: 0.
    Result<std::uint64_t> submit_kernel(orr_packet packet, std::span<const std::byte> args, const char* name,
                                        std::span<Context* const> peers) {
        return submit_with(packet, 1, args, {Op::kKernel, name}, peers);
    }
    // The same of any packet: the copy's address goes into this word.
    Result<std::uint64_t> submit_with(orr_packet packet, unsigned word, std::span<const std::byte> data,
                                      OpNote note, std::span<Context* const> peers);

    // A dispatch of a gang, with so many bytes of arguments: waits until there is room for all of it. Others
    // may take that until hold().
    Status prepare(const orr_packet& dispatch, std::size_t args, std::span<Context* const> peers);
    // While it lives nobody else submits. Does not wait: empty if somebody does so now.
    [[nodiscard]] std::unique_lock<Mutex> hold() { return std::unique_lock(mutex_, std::try_to_lock); }
    // While hold() is held: submit_member() will not wait for what prepare() made.
    bool has_room(std::size_t args, std::span<Context* const> peers) const;
    // The gang packet and the dispatch behind it, with a copy of its arguments. While hold() is held.
    Result<std::uint64_t> submit_member(const orr_packet& gang, orr_packet dispatch,
                                        std::span<const std::byte> args, const char* name,
                                        std::span<Context* const> peers);
    // As error(), takes no lock, and says nothing of what others have done to it: a gang, or who aborts it.
    std::optional<Error> first_error();

    // Waits until so many packets fit; orrErrorDeadlock as wait(). Others may take the room.
    Status make_room(std::uint64_t packets);

    // Everything below `index` is done, also on other cards. False for ever after the queue stopped before
    // it.
    bool done(std::uint64_t index) const;
    // The card has done it, and its writes are still on their way to another one.
    bool arriving(std::uint64_t index) const;
    // Returns when done(index), or with the error that stopped the queue. orrErrorDeadlock: it is in a cycle
    // of waits now; the stream has not stopped, and goes on when somebody signals.
    Status wait(std::uint64_t index);
    // Looks for some microseconds; false: wait() has to say.
    bool prints() const noexcept;
    bool done_soon(std::uint64_t index) const noexcept {
        for (unsigned turn = 0; turn < kTurnsPerLook; ++turn) {
            if (consumer() >= index) return flight_.none_lands();
        }
        return false;
    }
    Status synchronize() { return wait(submitted()); }
    // Nothing while the queue runs; the same error for ever once it has stopped. Nothing of a stream that has
    // an error runs any more.
    std::optional<Error> error();
    // The same for those who poll: now and then it asks the driver too, as a card that is gone writes
    // nothing.
    std::optional<Error> look();
    // The same for somebody who polls for `index`; nothing while its writes are still arriving elsewhere.
    std::optional<Error> failed(std::uint64_t index);
    // The same as look() at once, and also of one that has nothing to do.
    std::optional<Error> ask();
    // Stops it now; what became of it stays to be asked. Gives the first cause.
    Error stop(Error cause);
    // Of one that has stopped: waits until no write of it is on a link any more.
    Status wait_quiet();
    // It stopped because what it waited for had failed: the cause is elsewhere.
    bool poisoned() const;
    // So it is with this word, in a semaphore that others fail: see Context::others_fail().
    bool poisoned_from_outside(std::uint64_t word) const;
    // The packet at which it stopped.
    std::uint64_t stopped_at() const;
    // What it has not signalled.
    std::vector<SemaphorePoint> promises() const;
    Flight& flight() { return flight_; }
    // Packets that the queue has done.
    std::uint64_t executed() const { return consumer(); }
    // Behind it is only what the queue has not come to: neither executed, nor failed because it stopped.
    std::uint64_t sent() const {
        const bool stopped = std::atomic_ref(ring_->error).load(std::memory_order_acquire) != ORR_QERR_NONE;
        return stopped ? ~std::uint64_t{0} : consumer();
    }
    // Nobody needs to be told any more what it will not signal.
    bool settled() const { return settled_at_.load() == submitted(); }
    void settle(std::uint64_t end) { settled_at_.store(end); }
    // It has a queue and no error.
    bool works() { return !error() && queue() != nullptr; }
    QueueView view() const;
    // All packets that were submitted until now.
    std::uint64_t submitted() const { return producer_.load(std::memory_order_acquire); }
    // The same, with all that the card knows of: submitted() may be late by one submission.
    std::uint64_t rung() const {
        const std::lock_guard lock(queue_mutex_);
        return submitted();
    }
    // The card runs nothing below `index` any more, however it ended.
    bool over(std::uint64_t index) const {
        return consumer() >= index || fate_.ended() ||
               std::atomic_ref(ring_->error).load(std::memory_order_acquire) != ORR_QERR_NONE;
    }

    // Ends the hardware queue: what is left in it is aborted. done() and error() still answer.
    void close();
    Use use() const { return use_; }
    // Of one that has stopped, so nothing waits any more for what they bring.
    void end_relays();

    // The hardware queue's, with the error that stopped it first. See Semaphore.
    Status declare_signal(std::uint64_t semaphore);
    Status remove_signal(std::uint64_t semaphore);

    Result<drm_orr_queue_stats> stats();
    // All but the name.
    Status set_options(const QueueOptions& options);
    // As it was asked for last; the name may be empty.
    QueueOptions options();

    WorkTrail& trail() { return trail_; }
    // Whoever is told of this stream's work is told when it comes here (orrProfMarkStream). domain lives as
    // long as the process.
    void mark(const char* domain, const char* text);
    Staging& staging() { return staging_; }
    // The stream on another card that carries that card's events to this one, and the semaphore on this card
    // on which it does so. See event.cc.
    struct Relay {
        std::mutex mutex;  // held while a full ring is waited for
        std::shared_ptr<Stream> source;
        std::shared_ptr<SemaphoreSlot> slot;  // its `last`: what has been sent for
    };
    // make: gives a Result<std::shared_ptr<Relay>>.
    template <typename Make>
    Result<std::shared_ptr<Relay>> relay(int device, Make&& make) {
        const std::lock_guard lock(relays_mutex_);
        auto& relay = relays_[device];
        if (relay == nullptr) {
            ORR_TRY(made, make());
            relay = std::move(*made);
        }
        return relay;
    }

    std::uint32_t entries() const { return entries_; }

    // What capture.h keeps with a stream whose work becomes a graph. Null: the stream runs its work.
    bool capturing() const { return capturing_.load(std::memory_order_acquire); }
    std::shared_ptr<StreamCapture> capture() const;
    void set_capture(std::shared_ptr<StreamCapture> capture);

    static constexpr std::uint32_t kDefaultEntries = 1024;
    static constexpr std::uint64_t kDefaultArgsBytes = 256 << 10;
    static constexpr std::uint32_t kMaxArgs = 4096;

  private:
    static constexpr unsigned kTurnsPerLook = 256;  // without the clock

    struct ArgsInUse {
        std::uint64_t index;  // free when the stream has done this
        std::uint64_t end;    // position after it
    };

    Stream(Context& context, PinnedBuffer memory, std::uint32_t entries, std::uint64_t args_bytes, Use use);

    // The packets and the landings behind them, all or nothing.
    Result<std::uint64_t> submit_locked(std::span<const orr_packet> packets, std::span<const OpNote> notes,
                                        std::span<Context* const> peers, std::span<const Crossing> crossings,
                                        std::span<const StepNote> steps = {});
    void note_steps(std::uint64_t index, std::span<const StepNote> steps) noexcept;
    void put_locked(std::uint64_t index, const orr_packet& packet, OpNote note) noexcept;
    void note_work(std::uint64_t index, const orr_packet& packet, OpNote note) noexcept;
    void note_signal(std::uint64_t index, const orr_packet_semaphore& packet) noexcept;
    void note_sides(const orr_packet& packet, WorkNote& work) const;
    Error stop_locked(Error cause);  // with queue_mutex_ held
    Status publish_locked(std::uint64_t end, std::span<const FlightSignal> flight);
    void ring_locked(std::uint64_t end) noexcept;  // with queue_mutex_ held, as the next
    void add_flight_locked(std::span<const FlightSignal> flight);
    Status prepare_landing(Context& peer);
    Status wait_for(std::uint64_t index);
    Status wait_for_landing(std::uint64_t index);
    Status prepare_item_stacks(std::span<const orr_packet> packets);
    Status make_room_locked(std::uint64_t packets);
    // What an answer of the driver means for the stream; nothing: only that call failed.
    std::optional<Error> refused(const Error& answer);
    Result<std::uint64_t> take_args(std::span<const std::byte> args);
    Status make_args_room(std::uint64_t size);
    // Where the next ones of this size go: not around the end of the buffer.
    std::uint64_t args_start(std::uint64_t size) const {
        const std::uint64_t capacity = args_.size();
        return args_head_ % capacity + size > capacity ? round_up(args_head_, capacity) : args_head_;
    }
    std::uint64_t consumer() const;
    // Of the signals in [from, to) of the ring.
    std::vector<SemaphorePoint> signals(std::uint64_t from, std::uint64_t to) const;
    Error stopped_by(const QueueState& state);
    Error ended() const;
    QueueState state_of_ring() const;
    std::shared_ptr<HwQueue> queue() const;

    Context& context_;
    PinnedBuffer memory_;  // the ring, then the arguments
    std::uint32_t entries_;
    const Use use_;
    std::atomic<bool> helps_{false};
    orr_ring* ring_;
    orr_packet* packets_;
    std::span<std::byte> args_;
    // Who waits takes a reference along. Publishing and ringing are under the lock, and nothing is published
    // to a queue that was stopped: its doorbell may be another one's, and nobody would fail what was
    // promised.
    mutable Mutex queue_mutex_;
    std::shared_ptr<HwQueue> queue_;
    bool stopped_ = false;  // by us; under queue_mutex_
    QueueOptions options_;  // under mutex_

    Mutex mutex_;  // orders producers
    std::atomic<std::uint64_t> producer_{0};
    std::uint64_t room_until_;   // up to here there was room at the last look; under mutex_
    std::vector<OpNote> notes_;  // by slot
    std::deque<ArgsInUse> args_in_use_;
    std::uint64_t args_head_ = 0, args_tail_ = 0;  // positions, modulo the buffer's size

    std::map<int, std::shared_ptr<SemaphoreSlot>> landing_slots_;  // by peer; under mutex_
    Flight flight_;
    // For items that wait at barriers: the packets of a stream run one after another. One that became too
    // small stays as long as the stream, for what was submitted with it. Under mutex_.
    std::vector<Block*> item_stacks_;

    std::uint32_t number_ = 0xfff;
    Fate fate_;
    std::atomic<std::uint64_t> settled_at_{~0ull};
    std::atomic<std::int64_t> looked_ns_{0};

    std::mutex relays_mutex_;
    std::map<int, std::shared_ptr<Relay>> relays_;  // by source card; null: could not be made
    Staging staging_;
    WorkTrail trail_;
    SignalLog::Source relayed_;  // of a relay: who signalled what it waited for last; under mutex_

    mutable std::mutex capture_mutex_;
    std::shared_ptr<StreamCapture> capture_;
    std::atomic<bool> capturing_{false};
};

// What each submission and each wait does is in place, without a call.

inline std::uint64_t Stream::consumer() const {
    return std::atomic_ref(ring_->consumer).load(std::memory_order_acquire);
}

inline bool Stream::done(std::uint64_t index) const {
    const std::uint64_t executed = consumer();
    return executed >= index && flight_.landed(index, executed);
}

// There is room.
inline void Stream::put_locked(std::uint64_t index, const orr_packet& packet, OpNote note) noexcept {
    const std::uint64_t slot = index & (entries_ - 1);
    notes_[slot] = note;
    store_packet(packets_[slot], packet, static_cast<std::uint32_t>(index));
    if (prof_has(orrProfWantWork)) [[unlikely]]
        note_work(index, packet, note);
    else if (packet.header.opcode == ORR_PKT_SIGNAL)
        SignalLog::miss();
}

inline void Stream::ring_locked(std::uint64_t end) noexcept {
    std::atomic_ref(ring_->producer).store(end, std::memory_order_release);
    queue_->ring(end);
    producer_.store(end, std::memory_order_release);
}

[[gnu::always_inline]] inline std::uint64_t Stream::try_signal(std::uint64_t semaphore,
                                                               std::uint64_t value) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) [[unlikely]]
        return 0;
    const std::uint64_t index = producer_.load(std::memory_order_relaxed);
    if (index >= room_until_ || fate_.ended() ||
        std::atomic_ref(ring_->error).load(std::memory_order_relaxed) != ORR_QERR_NONE) [[unlikely]]
        return 0;
    const std::unique_lock queue_lock(queue_mutex_, std::try_to_lock);
    if (!queue_lock || queue_ == nullptr || stopped_) [[unlikely]]
        return 0;
    put_locked(index, make_semaphore(ORR_PKT_SIGNAL, semaphore, value), {Op::kSignal, nullptr});
    ring_locked(index + 1);
    return index + 1;
}

}  // namespace orrery::umd
