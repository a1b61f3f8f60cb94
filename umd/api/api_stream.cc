#include "umd/api/guard.h"
#include "umd/api/wait_options.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace {

void* as_key(orrStream_t handle) {
    return handle;
}

Result<Event*> find_event(Runtime& runtime, orrEvent_t handle) {
    Event* event = runtime.events.find(handle);
    if (event == nullptr) return std::unexpected(bad_handle("event", handle).error());
    return event;
}

Status recorded_in_capture() {
    return fail(
        orrErrorStreamCapture,
        "the event was last recorded while its stream was captured: that is an order between nodes, and "
        "happens at no moment of its own");
}

orrError_t wait_for_event(orrStream_t stream, orrEvent_t event, const orrWaitOptions* options) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_event(runtime, event));
        ORR_TRY(queue, runtime.stream(stream));
        ORR_TRY(limit_ns, limit_of(options));
        if ((*queue)->capturing() || (*found)->captured() != nullptr) {
            if (*limit_ns != 0) return refuse_capture(**queue, "a wait with a limit");
            return capture_wait(*queue, **found);
        }
        return (*found)->make_wait(*queue, *limit_ns);
    });
}

}  // namespace

extern "C" {

orrError_t orrStreamCreate(orrStream_t* stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (stream == nullptr) return null_argument("stream");
        ORR_TRY(context, runtime.current_context());
        ORR_TRY(made, (*context)->create_stream());
        ORR_TRY(handle, give_handle(runtime.streams, *made, "stream"));
        *stream = static_cast<orrStream_t>(*handle);
        return {};
    });
}

orrError_t orrStreamDestroy(orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        std::shared_ptr<Stream> gone;
        if (stream == nullptr) {
            ORR_TRY(context, runtime.current_context());
            gone = (*context)->take_null_stream();
            if (gone == nullptr) return {};
        } else {
            gone = runtime.streams.remove(as_key(stream));
            if (gone == nullptr) return bad_handle("stream", stream);
        }
        if (gone->capturing()) {
            (void)refuse_capture(*gone, "destroying a stream");
            gone->set_capture(nullptr);
        }
        // A stream that has stopped can be destroyed like any other; its error was told at each wait.
        (void)gone->synchronize();
        gone->close();
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
        return (*queue)->synchronize();
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

orrError_t orrEventCreate(orrEvent_t* event) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (event == nullptr) return null_argument("event");
        ORR_TRY(handle, give_handle(runtime.events, std::make_shared<Event>(), "event"));
        *event = static_cast<orrEvent_t>(*handle);
        return {};
    });
}

orrError_t orrEventDestroy(orrEvent_t event) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (runtime.events.remove(event) == nullptr) return bad_handle("event", event);
        return {};
    });
}

orrError_t orrEventRecord(orrEvent_t event, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_event(runtime, event));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return capture_record(**queue, **found);
        return (*found)->record(*queue);
    });
}

orrError_t orrEventSynchronize(orrEvent_t event) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_event(runtime, event));
        if ((*found)->captured() != nullptr) return recorded_in_capture();
        return (*found)->synchronize();
    });
}

orrError_t orrEventQuery(orrEvent_t event) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_event(runtime, event));
        if ((*found)->captured() != nullptr) return recorded_in_capture();
        return (*found)->query();
    });
}

orrError_t orrStreamWaitEvent(orrStream_t stream, orrEvent_t event) {
    return wait_for_event(stream, event, nullptr);
}

orrError_t orrStreamWaitEventWithOptions(orrStream_t stream, orrEvent_t event,
                                         const orrWaitOptions* options) {
    return wait_for_event(stream, event, options);
}

orrError_t orrEventElapsedModelTime(double* ns, orrEvent_t start, orrEvent_t end) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (ns == nullptr) return null_argument("ns");
        ORR_TRY(first, find_event(runtime, start));
        ORR_TRY(second, find_event(runtime, end));
        ORR_TRY(from, (*first)->times());
        ORR_TRY(to, (*second)->times());
        if (from->device != to->device) {
            return fail(orrErrorInvalidValue,
                        "the records are on devices {} and {}, whose model clocks are not the same",
                        from->device, to->device);
        }
        *ns = static_cast<double>(static_cast<std::int64_t>(to->model_ps - from->model_ps)) / 1000.0;
        return {};
    });
}

orrError_t orrEventElapsedHostTime(double* ns, orrEvent_t start, orrEvent_t end) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (ns == nullptr) return null_argument("ns");
        ORR_TRY(first, find_event(runtime, start));
        ORR_TRY(second, find_event(runtime, end));
        ORR_TRY(from, (*first)->times());
        ORR_TRY(to, (*second)->times());
        *ns = static_cast<double>(to->host_ns - from->host_ns);
        return {};
    });
}

orrError_t orrEventGetModelTime(uint64_t* ps, orrEvent_t event) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (ps == nullptr) return null_argument("ps");
        ORR_TRY(found, find_event(runtime, event));
        ORR_TRY(times, (*found)->times());
        *ps = times->model_ps;
        return {};
    });
}

}  // extern "C"
