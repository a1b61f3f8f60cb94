#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/api/wait_options.h"
#include "umd/runtime/shared_event.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace {

using EventRef = decltype(Runtime::events)::Ref;

Result<EventRef> find_event(Runtime& runtime, orrEvent_t handle) {
    auto event = runtime.events.find(handle);
    if (!event) return std::unexpected(bad_handle("event", handle).error());
    return event;
}

// The times of an event's last record.
Result<Event::Times> times_of(Runtime& runtime, orrEvent_t handle) {
    ORR_TRY(event, find_event(runtime, handle));
    return (*event)->times();
}

// Most events are recorded on one stream again and again. False: nothing happened.
bool record_again(orrEvent_t event, orrStream_t stream) noexcept {
    Runtime* const runtime = Runtime::usable();
    if (runtime == nullptr || stream == nullptr || !runtime->streams.is_live(stream)) return false;
    const auto found = runtime->events.find(event);
    return found && found->record_again(stream);
}

// Most waits that are short end before anything else is asked. False: nothing happened.
bool synchronize_soon(orrEvent_t event) noexcept {
    Runtime* const runtime = Runtime::usable();
    if (runtime == nullptr) return false;
    const auto found = runtime->events.find(event);
    return found && found->synchronize_soon();
}

Status recorded_in_capture() {
    return fail(
        orrErrorStreamCapture,
        "the event was last recorded while its stream was captured: that is an order between nodes, and "
        "happens at no moment of its own");
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrStreamDestroy(orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        std::shared_ptr<Stream> gone;
        if (stream == nullptr) {
            ORR_TRY(context, runtime.current_context());
            gone = (*context)->take_null_stream();
            if (gone == nullptr) return {};
        } else {
            gone = runtime.streams.remove(stream);
            if (gone == nullptr) return bad_handle("stream", stream);
        }
        if (gone->capturing()) {
            (void)refuse_capture(*gone, "destroying a stream");
            gone->set_capture(nullptr);
        }
        // A stream that has stopped can be destroyed like any other; its error was told at each wait.
        (void)gone->synchronize();
        gone->close();
        runtime.sweep();
        return {};
    });
}

orrError_t orrStreamAbort(orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return refuse_capture(**queue, "orrStreamAbort");
        (*queue)->stop(Error{orrErrorAborted,
                             fmt::format("{} was aborted (orrStreamAbort): destroy it and make a new one",
                                         (*queue)->label())});
        return {};
    });
}

orrError_t orrStreamSynchronize(orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return refuse_capture(**queue, "orrStreamSynchronize");
        auto done = (*queue)->synchronize();
        // Who waits on another machine for what was destroyed while the stream was busy hears of it now.
        (*queue)->context().shared_semaphores().sweep();
        return done;
    });
}

orrError_t orrStreamQuery(orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return refuse_capture(**queue, "orrStreamQuery");
        const std::uint64_t all = (*queue)->submitted();
        if ((*queue)->done(all)) return {};
        if (auto stopped = (*queue)->failed(all)) return std::unexpected(*stopped);
        return fail(orrErrorNotReady, "the stream has work that is not done yet");
    });
}

orrError_t orrEventCreate(orrEvent_t* event, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (event == nullptr) return null_argument("event");
        ORR_TRY(known, check_flags(flags, orrEventDisableTiming | orrEventInterprocess, "orrEventCreate"));
        const bool timed = (flags & orrEventDisableTiming) == 0;
        std::shared_ptr<Event> made;
        if ((flags & orrEventInterprocess) != 0) {
            if (timed) {
                return fail(orrErrorInvalidValue,
                            "an event of several processes has no times: give orrEventDisableTiming with "
                            "orrEventInterprocess");
            }
            ORR_TRY(context, runtime.current_context());
            ORR_TRY(shared, SharedEvent::create(**context));
            made = std::make_shared<Event>(std::move(*shared));
        } else {
            made = std::make_shared<Event>(timed);
        }
        ORR_TRY(handle, give_handle(runtime.events, std::move(made), "events"));
        *event = static_cast<orrEvent_t>(*handle);
        return {};
    });
}

orrError_t orrEventDestroy(orrEvent_t event) {
    return with_runtime([&](Runtime& runtime) -> Status {
        auto gone = runtime.events.remove(event);
        if (gone == nullptr) return bad_handle("event", event);
        if (gone->shared() == nullptr) return {};
        SharedSemaphores& all = gone->shared()->context().shared_semaphores();
        gone->shared()->end_waits();
        gone.reset();
        all.sweep();
        return {};
    });
}

orrError_t orrEventRecord(orrEvent_t event, orrStream_t stream) {
    if (record_again(event, stream)) [[likely]]
        return orrSuccess;
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_event(runtime, event));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing() && (*found)->shared() != nullptr)
            return refuse_capture(**queue, "the record of an event that other processes have");
        if ((*queue)->capturing()) return capture_record(**queue, **found);
        return (*found)->record(*queue, stream);
    });
}

orrError_t orrEventSynchronize(orrEvent_t event) {
    if (synchronize_soon(event)) [[likely]]
        return orrSuccess;
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_event(runtime, event));
        if ((*found)->in_capture()) return recorded_in_capture();
        return (*found)->synchronize();
    });
}

orrError_t orrEventQuery(orrEvent_t event) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_event(runtime, event));
        if ((*found)->in_capture()) return recorded_in_capture();
        return (*found)->query();
    });
}

orrError_t orrStreamWaitEvent(orrStream_t stream, orrEvent_t event, const orrWaitOptions* options) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_event(runtime, event));
        ORR_TRY(queue, runtime.stream(stream));
        ORR_TRY(limit_ns, limit_of(options));
        if ((*queue)->capturing() || (*found)->in_capture()) {
            if (*limit_ns != 0) return refuse_capture(**queue, "a wait with a limit");
            if ((*found)->shared() != nullptr)
                return refuse_capture(**queue, "a wait for an event that other processes have");
            return capture_wait(*queue, **found);
        }
        return (*found)->make_wait(*queue, *limit_ns);
    });
}

orrError_t orrEventElapsedModelTime(double* ns, orrEvent_t start, orrEvent_t end) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (ns == nullptr) return null_argument("ns");
        ORR_TRY(from, times_of(runtime, start));
        ORR_TRY(to, times_of(runtime, end));
        if (from->device != to->device) {
            return fail(orrErrorInvalidValue,
                        "the records are on devices {0} and {1}, whose clocks are not the same: "
                        "orrDeviceGetClockOffset(&offset, {1}, {0}) says how far they are apart now",
                        from->device, to->device);
        }
        *ns = static_cast<double>(static_cast<std::int64_t>(to->model_ps - from->model_ps)) / 1000.0;
        return {};
    });
}

orrError_t orrEventElapsedHostTime(double* ns, orrEvent_t start, orrEvent_t end) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (ns == nullptr) return null_argument("ns");
        ORR_TRY(from, times_of(runtime, start));
        ORR_TRY(to, times_of(runtime, end));
        // Nobody may have looked at the start while it was the latest: when it was seen says nothing.
        *ns = static_cast<double>(to->seen_ns - from->recorded_ns);
        return {};
    });
}

orrError_t orrEventGetModelTime(uint64_t* ps, orrEvent_t event) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (ps == nullptr) return null_argument("ps");
        ORR_TRY(times, times_of(runtime, event));
        *ps = times->model_ps;
        return {};
    });
}

}  // namespace orrery::umd::api
