// An event that several processes have: the one that made it records, the others wait for what it recorded
// last. It is one semaphore whose value counts the records.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "umd/runtime/semaphore.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {

// Thread safe.
class SharedEvent {
  public:
    static Result<std::shared_ptr<SharedEvent>> create(Context& context);
    static Result<std::shared_ptr<SharedEvent>> import(Context& context, ForeignBo foreign);
    SharedEvent(std::shared_ptr<SemaphoreSlot> slot, bool ours) : slot_(std::move(slot)), ours_(ours) {}

    Context& context() const { return *slot_->context; }
    const SemaphoreSlot& slot() const { return *slot_; }
    Status record(const std::shared_ptr<Stream>& stream);
    // orrErrorNotReady while it is not done.
    Status query() const;
    Status synchronize() const;
    // As Event::make_wait().
    Status make_wait(const std::shared_ptr<Stream>& stream, std::uint64_t limit_ns);
    // Its handle is gone: who waits is told.
    void end_waits() { destroyed_.store(true, std::memory_order_release); }

  private:
    // Of the last record; 0: there is none.
    Result<std::uint64_t> recorded() const;
    // False: room has to be waited for first.
    Result<bool> try_record(const std::shared_ptr<Stream>& stream);

    const std::shared_ptr<SemaphoreSlot> slot_;
    const bool ours_;
    std::atomic<bool> destroyed_{false};
    std::mutex mutex_;  // orders records
    std::shared_ptr<Stream> stream_;
    std::uint64_t index_ = 0;
};

}  // namespace orrery::umd
