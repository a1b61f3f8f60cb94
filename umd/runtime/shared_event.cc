#include "umd/runtime/shared_event.h"

#include <utility>

#include "umd/runtime/context.h"
#include "umd/runtime/event.h"
#include "umd/runtime/packets.h"

namespace orrery::umd {

Result<std::shared_ptr<SharedEvent>> SharedEvent::create(Context& context) {
    ORR_TRY(slot, context.shared_semaphores().create(SharedSemaphores::Kind::kEvent));
    return std::make_shared<SharedEvent>(std::move(*slot), true);
}

Result<std::shared_ptr<SharedEvent>> SharedEvent::import(Context& context, ForeignBo foreign) {
    ORR_TRY(slot, context.shared_semaphores().import(std::move(foreign), SharedSemaphores::Kind::kEvent));
    return std::make_shared<SharedEvent>(std::move(*slot), false);
}

Result<std::uint64_t> SharedEvent::recorded() const {
    // Who made it knows, whatever others write there.
    if (ours_) return std::atomic_ref(slot_->last).load(std::memory_order_acquire);
    SharedPage& page = SharedSemaphores::page(*slot_);
    const std::uint64_t value = std::atomic_ref(page.recorded).load(std::memory_order_acquire);
    if (value <= ORR_SEMAPHORE_VALUE_MAX) return value;
    return fail(orrErrorInvalidValue, "the process that made the event has written nonsense into it");
}

Status SharedEvent::record(const std::shared_ptr<Stream>& stream) {
    if (!ours_) {
        return fail(orrErrorInvalidValue,
                    "the event is another process's, which alone records it: make one here for the other "
                    "direction");
    }
    if (&stream->context() != slot_->context) {
        return fail(orrErrorInvalidValue,
                    "the event is on device {}, and {} is not: an event of several processes is recorded in "
                    "streams of the device that was current when it was made",
                    slot_->context->device(), stream->label());
    }
    // As Event::record() does: nobody is held up while room is waited for.
    while (true) {
        ORR_TRY(room, stream->make_room(1));
        ORR_TRY(recorded, try_record(stream));
        if (*recorded) return {};
    }
}

Result<bool> SharedEvent::try_record(const std::shared_ptr<Stream>& stream) {
    const std::lock_guard lock(mutex_);
    ORR_TRY(good, slot_->check());
    // Else the later signal may come before the earlier one, which it would stand for.
    if (stream_ != nullptr && stream_ != stream && !stream_->done(index_)) {
        return fail(orrErrorNotReady,
                    "the event's last record, in {}, is not done: record an event of several processes in "
                    "one stream, or wait for it before another one records it",
                    stream_->label());
    }
    const std::uint64_t value = slot_->last + 1;
    slot_->claim();
    ORR_TRY(index, stream->signal_now(slot_->va, value));
    if (*index == 0) return false;
    slot_->promise(value);
    stream_ = stream;
    index_ = *index;
    // Now that it is in a ring: whatever becomes of this process, the card signals it, or fails it.
    std::atomic_ref(SharedSemaphores::page(*slot_).recorded).store(value, std::memory_order_release);
    return true;
}

Status SharedEvent::query() const {
    ORR_TRY(wanted, recorded());
    slot_->context->fleet().watch();
    ORR_TRY(state, slot_->look());
    if (state->value >= *wanted) return {};
    if (const auto loss = slot_->context->loss()) return std::unexpected(*loss);
    if (state->closed) return slot_->abandoned(state->value);
    return fail(orrErrorNotReady, "the event's record is not done yet");
}

Status SharedEvent::synchronize() const {
    ORR_TRY(wanted, recorded());
    return slot_->wait(*wanted, ORR_NO_LIMIT, destroyed_);
}

Status SharedEvent::make_wait(const std::shared_ptr<Stream>& stream, std::uint64_t limit_ns) {
    ORR_TRY(wanted, recorded());
    if (*wanted == 0) return {};  // as CUDA has it: what was never recorded is complete
    Context& source = *slot_->context;
    slot_->want(*wanted);
    if (&source != &stream->context())
        return wait_over_link(source, slot_->va, *wanted, stream, limit_ns, "the event");
    const orr_packet packet = umd::make_wait(slot_->va, *wanted, limit_ns);
    ORR_TRY(index, stream->submit({&packet, 1}, {Op::kWait, nullptr}));
    return {};
}

}  // namespace orrery::umd
