#include <orrery/fw/failure.h>

#include "umd/api/guard.h"
#include "umd/runtime/packets.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace {

void* as_key(orrStream_t handle) {
    return handle;
}

template <typename Table, typename Object>
Result<void*> give_handle(Table& table, std::shared_ptr<Object> object, const char* what) {
    void* handle = table.insert(std::move(object));
    if (handle == nullptr) return fail(orrErrorOutOfMemory, "too many live {}s", what);
    return handle;
}

Result<Event*> find_event(Runtime& runtime, orrEvent_t handle) {
    Event* event = runtime.events.find(handle);
    if (event == nullptr) return std::unexpected(bad_handle("event", handle).error());
    return event;
}

Result<Semaphore*> find_semaphore(Runtime& runtime, orrSemaphore_t handle) {
    Semaphore* semaphore = runtime.semaphores.find(handle);
    if (semaphore == nullptr) return std::unexpected(bad_handle("semaphore", handle).error());
    return semaphore;
}

Status check_value(std::uint64_t value) {
    if (value < ORR_SEM_FAILED) return {};
    return fail(orrErrorInvalidValue, "a semaphore's value is below 2^63, {} was asked for", value);
}

// Nothing while it has not failed.
Status check_failure(const SemaphoreSlot& slot) {
    if (!slot.failed()) return {};
    const Error cause = slot.context->fleet().cause(ORR_SEM_FAILURE(slot.value()));
    return fail(cause.code, "{} has failed: {}. Destroy it and make a new one",
                slot.context->describe_semaphore(slot.va), cause.text);
}

Status recorded_in_capture() {
    return fail(
        orrErrorStreamCapture,
        "the event was last recorded while its stream was captured: that is an order between nodes, and "
        "happens at no moment of its own");
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
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_event(runtime, event));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing() || (*found)->captured() != nullptr) return capture_wait(*queue, **found);
        return (*found)->make_wait(*queue);
    });
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

orrError_t orrSemaphoreCreate(orrSemaphore_t* semaphore) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (semaphore == nullptr) return null_argument("semaphore");
        ORR_TRY(context, runtime.current_context());
        ORR_TRY(slot, (*context)->semaphores().take(true));
        auto made = std::make_shared<Semaphore>();
        made->slot = std::move(*slot);
        ORR_TRY(handle, give_handle(runtime.semaphores, std::move(made), "semaphore"));
        *semaphore = static_cast<orrSemaphore_t>(*handle);
        return {};
    });
}

orrError_t orrSemaphoreSetName(orrSemaphore_t semaphore, const char* name) {
    return with_runtime([&](Runtime& runtime) -> Status {
        constexpr std::size_t kLongest = 63;
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        const std::string text = name == nullptr ? "" : name;
        if (text.size() > kLongest) {
            return fail(orrErrorInvalidValue, "a name of {} characters: at most {}", text.size(), kLongest);
        }
        const SemaphoreSlot& slot = *(*found)->slot;
        slot.context->name_semaphore(slot.va, text);
        return {};
    });
}

orrError_t orrSemaphoreDestroy(orrSemaphore_t semaphore) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (runtime.semaphores.remove(semaphore) == nullptr) return bad_handle("semaphore", semaphore);
        return {};
    });
}

orrError_t orrStreamSignalSemaphore(orrStream_t stream, orrSemaphore_t semaphore, uint64_t value) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return refuse_capture(**queue, "orrStreamSignalSemaphore");
        ORR_TRY(valid, check_value(value));
        SemaphoreSlot& slot = *(*found)->slot;
        const int device = (*queue)->context().device(), owner = slot.context->device();
        if (device != owner) {
            if (!runtime.memory().peer_enabled(device, owner)) {
                return fail(orrErrorPeerAccess,
                            "device {} may not signal on device {}: call orrSetDevice({}) and "
                            "orrDeviceEnablePeerAccess({}) first",
                            device, owner, device, owner);
            }
            ORR_TRY(shared, runtime.memory().share_block(*slot.block, device));
        }
        const orr_packet packet = make_semaphore(ORR_PKT_SIGNAL, slot.va, value);
        Crossing crossing{1, nullptr, value};
        if (device != owner) crossing.slot = (*found)->slot;
        const std::span<const Crossing> crossings(&crossing, device != owner ? 1 : 0);
        ORR_TRY(index, (*queue)->submit({&packet, 1}, {Op::kSignal, nullptr}, {}, crossings));
        slot.promise(value);
        return {};
    });
}

orrError_t orrStreamWaitSemaphore(orrStream_t stream, orrSemaphore_t semaphore, uint64_t value) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return refuse_capture(**queue, "orrStreamWaitSemaphore");
        ORR_TRY(valid, check_value(value));
        SemaphoreSlot& slot = *(*found)->slot;
        if (slot.context != &(*queue)->context()) {
            return fail(
                orrErrorInvalidValue,
                "the stream is on device {}, the semaphore on device {}: a card waits only on its own "
                "semaphores; make one there and signal it over the link",
                (*queue)->context().device(), slot.context->device());
        }
        const orr_packet packet = make_semaphore(ORR_PKT_WAIT, slot.va, value);
        ORR_TRY(index, (*queue)->submit({&packet, 1}, {Op::kWait, nullptr}));
        slot.want(value);
        return {};
    });
}

orrError_t orrSemaphoreGetValue(uint64_t* value, orrSemaphore_t semaphore) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (value == nullptr) return null_argument("value");
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        const SemaphoreSlot& slot = *(*found)->slot;
        ORR_TRY(good, check_failure(slot));
        *value = slot.value();
        return {};
    });
}

orrError_t orrSemaphoreSignal(orrSemaphore_t semaphore, uint64_t value) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        ORR_TRY(valid, check_value(value));
        const SemaphoreSlot& slot = *(*found)->slot;
        ORR_TRY(good, check_failure(slot));
        if (value < slot.value()) {
            return fail(orrErrorInvalidValue, "a semaphore only grows: it is {} already, {} was asked for",
                        slot.value(), value);
        }
        // By the card's own semaphore unit, so that its waiters see it at once and with a model time.
        ORR_TRY(sent, slot.context->signal(make_semaphore(ORR_PKT_SIGNAL, slot.va, value)));
        return sent->first->wait(sent->second);
    });
}

}  // extern "C"
