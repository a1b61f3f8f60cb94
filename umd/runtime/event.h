// An event: a signal of its own semaphore, pushed behind the stream's earlier work. The semaphore unit stores
// the model time with the value, so one packet is time stamp and something to wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "umd/runtime/semaphore.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {

struct CapturedRecord;  // umd/scheduler/capture.h

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
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    Status record(const std::shared_ptr<Stream>& stream);
    Status synchronize();
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

    // Not null: the last record was in a capture, so it is no record that can be waited for.
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
    void note_seen(const Record& record);
    void retire(Record& record);

    const bool timed_;
    mutable std::mutex mutex_;
    std::optional<Record> record_;
    std::shared_ptr<CapturedRecord> captured_;
};

}  // namespace orrery::umd
