#include "umd/runtime/event.h"

#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/runtime.h"
#include "umd/runtime/shared_event.h"

namespace orrery::umd {
namespace {

Result<std::shared_ptr<Stream::Relay>> make_relay(Context& source, Context& target) {
    ORR_TRY(slot, target.semaphores().take(true));
    ORR_TRY(shared, target.memory().share_block(*(*slot)->block, source.device()));
    QueueOptions options;
    options.name = fmt::format("events to device {}", target.device());
    ORR_TRY(stream,
            Stream::create(source, Stream::kDefaultEntries, 0, std::move(options), Stream::Use::kRelay));
    auto relay = std::make_shared<Stream::Relay>();
    relay->source = std::move(*stream);
    relay->slot = std::move(*slot);
    return relay;
}

}  // namespace

Event::~Event() {
    if (record_) retire(*record_);
}

void Event::retire(Record& record) {
    SemaphorePool& pool = *record.slot->pool;
    pool.retire(std::move(record.slot), std::move(record.stream), record.index);
}

Result<bool> Event::submit_locked(Record& record, Stream& stream) {
    const std::uint64_t value = record.slot->last + 1;
    const std::int64_t recorded_ns = timed_ ? now_ns() : 0;
    ORR_TRY(index, stream.signal_now(record.slot->va, value));
    if (*index == 0) return false;
    note_recorded(record, value, *index, recorded_ns);
    captured_.reset();
    return true;
}

Status Event::record(const std::shared_ptr<Stream>& stream, orrStream_t handle) {
    if (shared_ != nullptr) return shared_->record(stream);
    // No lock of the event is held while room is waited for: whoever would make it may need the event first.
    while (true) {
        ORR_TRY(room, stream->make_room(1));
        ORR_TRY(recorded, try_record(stream, handle));
        if (*recorded) return {};
    }
}

Result<bool> Event::try_record(const std::shared_ptr<Stream>& stream, orrStream_t handle) {
    const std::lock_guard lock(mutex_);
    // A slot is used again only where the old signal cannot come after the new one.
    const bool reuse = record_ && record_->slot->context == &stream->context() &&
                       (record_->stream == stream || record_->stream->done(record_->index));
    if (reuse) {
        ORR_TRY(submitted, submit_locked(*record_, *stream));
        if (!*submitted) return false;
        if (record_->stream != stream) record_->stream = stream;
    } else {
        ORR_TRY(slot, stream->context().event_slots().take(false));
        Record first;
        first.slot = std::move(*slot);
        ORR_TRY(submitted, submit_locked(first, *stream));
        if (!*submitted) return false;
        first.stream = stream;
        if (record_) retire(*record_);
        record_ = std::move(first);
    }
    handle_ = handle;
    return true;
}

std::optional<Event::Record> Event::current() {
    const std::lock_guard lock(mutex_);
    return record_;
}

Status Event::synchronize() {
    if (shared_ != nullptr) return shared_->synchronize();
    std::shared_ptr<Stream> stream;
    std::uint64_t index = 0;
    {
        const std::lock_guard lock(mutex_);
        if (!record_) return {};  // as CUDA has it: what was never recorded is complete
        stream = record_->stream;
        index = record_->index;
    }
    ORR_TRY(done, stream->wait(index));
    note_seen(stream.get(), index);
    return {};
}

Status Event::query() {
    if (shared_ != nullptr) return shared_->query();
    const auto record = current();
    if (!record) return {};
    if (!record->stream->done(record->index)) {
        if (auto stopped = record->stream->failed(record->index)) return std::unexpected(*stopped);
        return fail(orrErrorNotReady, "the event's record is not done yet");
    }
    note_seen(record->stream.get(), record->index);
    return {};
}

Result<Event::Times> Event::times() {
    if (!timed_) {
        return fail(orrErrorInvalidValue,
                    "the event was made with orrEventDisableTiming, so it has no times to ask for");
    }
    ORR_TRY(done, query());
    const std::lock_guard lock(mutex_);
    if (!record_)
        return fail(orrErrorInvalidValue, "the event was never recorded: call orrEventRecord first");
    // Another thread may have recorded it again; its slot's time is that of what came last.
    if (!record_->stream->done(record_->index))
        return fail(orrErrorNotReady, "the event was recorded anew, and that is not done yet");
    if (record_->seen_ns == 0) record_->seen_ns = now_ns();
    return Times{record_->slot->context->device(), record_->slot->time_ps(), record_->recorded_ns,
                 record_->seen_ns};
}

Status Event::make_wait(const std::shared_ptr<Stream>& stream, std::uint64_t limit_ns) {
    if (shared_ != nullptr) return shared_->make_wait(stream, limit_ns);
    const auto record = current();
    if (!record || record->stream == stream) return {};
    if (auto stopped = record->stream->error(); stopped && record->stream->executed() < record->index) {
        return fail(stopped->code, "the event will never come, as {} stopped: {}", record->stream->label(),
                    stopped->text);
    }
    // The packet is pushed even when the record is done: model times must not depend on when we looked.
    Context& source = *record->slot->context;
    Context& target = stream->context();
    if (&source == &target) {
        const orr_packet wait = umd::make_wait(record->slot->va, record->value, limit_ns);
        ORR_TRY(index, stream->submit({&wait, 1}, {Op::kWait, nullptr}));
        return {};
    }
    return wait_over_link(source, record->slot->va, record->value, stream, limit_ns, record->stream->label());
}

// A stream on the record's card waits for it there and signals over the link. One such relay for each pair of
// waiting stream and source card, so that no wait holds up another stream's.
Result<SemaphorePoint> bring_over_link(Context& source, std::uint64_t semaphore, std::uint64_t wanted,
                                       const std::shared_ptr<Stream>& stream, const std::string& who) {
    Context& target = stream->context();
    // Nothing takes away what would be put behind it.
    if (auto stopped = stream->error()) return std::unexpected(*stopped);
    auto found = stream->relay(source.device(), [&] { return make_relay(source, target); });
    if (!found) {
        // A card that has just died has no links; the driver may not have noticed yet.
        const auto loss = source.ask();
        if (!loss) return std::unexpected(found.error());
        return fail(loss->code, "the event will never come, as the card of {} is gone: {}", who, loss->text);
    }
    Stream::Relay& relay = **found;
    const std::lock_guard lock(relay.mutex);
    const std::uint64_t value = relay.slot->last + 1;
    const orr_packet forward[] = {umd::make_wait(semaphore, wanted, 0),
                                  make_semaphore(ORR_PKT_SIGNAL, relay.slot->va, value)};
    const Crossing crossing{2, relay.slot, value};
    ORR_TRY(sent, relay.source->submit(forward, {Op::kSignal, nullptr}, {}, {&crossing, 1}));
    relay.slot->last = value;
    return SemaphorePoint{relay.slot->va, value};
}

Status wait_over_link(Context& source, std::uint64_t semaphore, std::uint64_t wanted,
                      const std::shared_ptr<Stream>& stream, std::uint64_t limit_ns, const std::string& who) {
    ORR_TRY(point, bring_over_link(source, semaphore, wanted, stream, who));
    const orr_packet arrive = umd::make_wait(point->va, point->value, limit_ns);
    ORR_TRY(index, stream->submit({&arrive, 1}, {Op::kWait, nullptr}));
    return {};
}

}  // namespace orrery::umd
