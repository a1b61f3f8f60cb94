// An event: a signal of its own semaphore, pushed behind the stream's earlier work. The semaphore unit stores
// the model time with the value, so one packet is time stamp and something to wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/mutex.h"
#include "umd/runtime/semaphore.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {

struct CapturedRecord;  // umd/scheduler/capture.h
class SharedEvent;      // umd/runtime/shared_event.h

// Later work of `stream` waits for a semaphore on another card, to which a link has to lead from there: a
// stream over there waits and signals. who: whose signal it is; limit_ns as Event::make_wait().
Status wait_over_link(Context& source, std::uint64_t semaphore, std::uint64_t value,
                      const std::shared_ptr<Stream>& stream, std::uint64_t limit_ns, const std::string& who);

// The first half of it: the semaphore of the stream's card that is signalled, and the value.
Result<SemaphorePoint> bring_over_link(Context& source, std::uint64_t semaphore, std::uint64_t value,
                                       const std::shared_ptr<Stream>& stream, const std::string& who);

// What orrEventRecord did last.
struct EventRecord {
    std::shared_ptr<Stream> stream;
    std::uint64_t index = 0;
    std::shared_ptr<SemaphoreSlot> slot;
    std::uint64_t value = 0;
    // The host's clock: when it was recorded, and when a call on the event first saw it done; 0: not yet.
    std::int64_t recorded_ns = 0;
    std::int64_t seen_ns = 0;
};

// Thread safe.
class Event {
  public:
    // timed: its times may be asked.
    explicit Event(bool timed = true) : timed_(timed) {}
    // One that other processes may have; without times.
    explicit Event(std::shared_ptr<SharedEvent> shared) : timed_(false), shared_(std::move(shared)) {}
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    // `handle`: the stream's, or null.
    Status record(const std::shared_ptr<Stream>& stream, orrStream_t handle = nullptr);
    // The same where it was recorded last, the short way, if that is the stream of this live handle. False:
    // nothing happened, and record() will do it, or tell what is in the way.
    bool record_again(orrStream_t handle) noexcept;
    Status synchronize();
    // The same the short way, if the record is done soon; false: synchronize() waits, or tells what is wrong.
    bool synchronize_soon() noexcept;
    // orrErrorNotReady while it is not done.
    Status query();
    // Later work of `stream` waits; a record on another card needs a link from that card to the stream's.
    // limit_ns: model time of the stream's card after which it stops; 0: none.
    Status make_wait(const std::shared_ptr<Stream>& stream, std::uint64_t limit_ns = 0);

    // Of a finished record.
    struct Times {
        int device = 0;
        std::uint64_t model_ps = 0;
        std::int64_t recorded_ns = 0;
        std::int64_t seen_ns = 0;
    };
    Result<Times> times();

    // Null: it is this process's alone.
    const std::shared_ptr<SharedEvent>& shared() const { return shared_; }

    // The last record was in a capture, so it is no record that can be waited for.
    bool in_capture() const {
        const std::lock_guard lock(mutex_);
        return captured_ != nullptr;
    }
    // Null if it was not.
    std::shared_ptr<CapturedRecord> captured() const {
        const std::lock_guard lock(mutex_);
        return captured_;
    }
    void set_captured(std::shared_ptr<CapturedRecord> record) {
        const std::lock_guard lock(mutex_);
        captured_ = std::move(record);
    }

  private:
    using Record = EventRecord;
    // nullopt if it was never recorded.
    std::optional<Record> current();
    // False: room has to be waited for first.
    Result<bool> try_record(const std::shared_ptr<Stream>& stream, orrStream_t handle);
    // Records on `stream`, with the slot of `record`; false: as above.
    Result<bool> submit_locked(Record& record, Stream& stream);
    static void note_recorded(Record& record, std::uint64_t value, std::uint64_t index,
                              std::int64_t recorded_ns) noexcept;
    void note_seen(const Stream* stream, std::uint64_t index);
    void retire(Record& record);

    const bool timed_;
    const std::shared_ptr<SharedEvent> shared_;
    mutable Mutex mutex_;
    std::optional<Record> record_;
    orrStream_t handle_ = nullptr;  // of its stream; null: not known
    std::shared_ptr<CapturedRecord> captured_;
};

inline void Event::note_recorded(Record& record, std::uint64_t value, std::uint64_t index,
                                 std::int64_t recorded_ns) noexcept {
    record.slot->last = value;
    record.index = index;
    record.value = value;
    record.recorded_ns = recorded_ns;
    record.seen_ns = 0;
}

inline bool Event::record_again(orrStream_t handle) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || handle == nullptr || handle_ != handle || captured_ != nullptr ||
        record_->stream->capturing()) [[unlikely]]
        return false;
    const std::uint64_t value = record_->slot->last + 1;
    // Before the card hears of it: what the doorbell takes belongs to the work that follows.
    const std::int64_t recorded_ns = timed_ ? now_ns() : 0;
    const std::uint64_t index = record_->stream->try_signal(record_->slot->va, value);
    if (index == 0) [[unlikely]]
        return false;
    note_recorded(*record_, value, index, recorded_ns);
    return true;
}

inline void Event::note_seen(const Stream* stream, std::uint64_t index) {
    if (!timed_) return;  // nobody can ask
    const std::lock_guard lock(mutex_);
    const bool same = record_ && record_->stream.get() == stream && record_->index == index;
    if (same && record_->seen_ns == 0) record_->seen_ns = now_ns();
}

inline bool Event::synchronize_soon() noexcept {
    std::shared_ptr<Stream> stream;
    std::uint64_t index = 0;
    {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || !record_ || captured_ != nullptr) [[unlikely]]
            return false;
        stream = record_->stream;
        index = record_->index;
    }
    // Whoever waits prints what kernels have to say.
    if (stream->prints() || !stream->done_soon(index)) [[unlikely]]
        return false;
    if (prof_has(orrProfWantWork)) [[unlikely]]
        stream->trail().see(index);
    note_seen(stream.get(), index);
    return true;
}

}  // namespace orrery::umd
