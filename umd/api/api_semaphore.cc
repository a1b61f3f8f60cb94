// Timeline semaphores: signals, waits, and who may signal.
#include <orrery/fw/failure.h>

#include <span>

#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/api/wait_options.h"
#include "umd/runtime/packets.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace {

using SemaphoreRef = decltype(Runtime::semaphores)::Ref;

Result<SemaphoreRef> find_semaphore(Runtime& runtime, orrSemaphore_t handle) {
    auto semaphore = runtime.semaphores.find(handle);
    if (!semaphore) return std::unexpected(bad_handle("semaphore", handle).error());
    return semaphore;
}

Status check_value(std::uint64_t value) {
    static_assert(ORR_SEMAPHORE_VALUE_MAX == ORR_SEM_FAILED - 1);
    if (value <= ORR_SEMAPHORE_VALUE_MAX) return {};
    return fail(orrErrorInvalidValue, "a semaphore's value is below 2^63, {} was asked for", value);
}

// Of one that is another machine's nobody here knows the value.
Status check_here(const SemaphoreSlot& slot, const char* call) {
    if (!slot.elsewhere) return {};
    return fail(orrErrorNotSupported,
                "{} of {}, which is another machine's: only there it can be waited for and read", call,
                slot.context->describe_semaphore(slot.va));
}

// So that the stream's card reaches the semaphore.
Status make_reachable(Runtime& runtime, const Stream& stream, const SemaphoreSlot& slot) {
    const int device = stream.context().device(), owner = slot.context->device();
    if (device == owner) return {};
    if (slot.elsewhere) {
        return fail(orrErrorPeerAccess,
                    "the semaphore is another machine's, which only device {} reaches here, that imported "
                    "it: signal it in a stream of that device, not of device {}",
                    owner, device);
    }
    if (!runtime.memory().peer_enabled(device, owner)) {
        return fail(orrErrorPeerAccess,
                    "device {} may not signal on device {}: call orrSetDevice({}) and "
                    "orrDeviceEnablePeerAccess({}, 0) first",
                    device, owner, device, owner);
    }
    return runtime.memory().share_block(*slot.block, device);
}

}  // namespace

namespace orrery::umd {

Result<std::uint64_t> limit_of(const orrWaitOptions* options) {
    ORR_TRY(given, read_optional(options, "orrWaitOptions"));
    ORR_TRY(known, check_flags(given->flags, 0, "orrWaitOptions"));
    if (given->reserved != 0) return fail(orrErrorInvalidValue, "orrWaitOptions::reserved is not zero");
    if (given->limit_ns > ORR_WAIT_LIMIT_MAX_NS) {
        return fail(orrErrorInvalidValue, "a limit of {} ns: at most {}, or 0 for none", given->limit_ns,
                    ORR_WAIT_LIMIT_MAX_NS);
    }
    return given->limit_ns;
}

}  // namespace orrery::umd

namespace orrery::umd::api {

orrError_t orrSemaphoreCreate(orrSemaphore_t* semaphore, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (semaphore == nullptr) return null_argument("semaphore");
        ORR_TRY(known, check_flags(flags, orrSemaphoreInterprocess, "orrSemaphoreCreate"));
        ORR_TRY(context, runtime.current_context());
        const bool shared = (flags & orrSemaphoreInterprocess) != 0;
        auto slot = shared ? (*context)->shared_semaphores().create(SharedSemaphores::Kind::kSemaphore)
                           : (*context)->semaphores().take(true);
        if (!slot) return std::unexpected(slot.error());
        ORR_TRY(handle,
                give_handle(runtime.semaphores, std::make_shared<Semaphore>(std::move(*slot)), "semaphores"));
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
        auto gone = runtime.semaphores.remove(semaphore);
        if (gone == nullptr) return bad_handle("semaphore", semaphore);
        gone->end_waits();
        if (!gone->slot->shared) return {};
        SharedSemaphores& all = gone->slot->context->shared_semaphores();
        gone.reset();
        all.sweep();
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
        ORR_TRY(reachable, make_reachable(runtime, **queue, slot));
        const orr_packet packet = make_semaphore(ORR_PKT_SIGNAL, slot.va, value);
        const bool crosses = slot.context != &(*queue)->context();
        Crossing crossing{1, nullptr, value};
        if (crosses) crossing.slot = (*found)->slot;
        const std::span<const Crossing> crossings(&crossing, crosses ? 1 : 0);
        slot.claim();
        ORR_TRY(index, (*queue)->submit({&packet, 1}, {Op::kSignal, nullptr}, {}, crossings));
        slot.promise(value);
        return {};
    });
}

orrError_t orrStreamWaitSemaphore(orrStream_t stream, orrSemaphore_t semaphore, uint64_t value,
                                  const orrWaitOptions* options) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return refuse_capture(**queue, "orrStreamWaitSemaphore");
        ORR_TRY(valid, check_value(value));
        ORR_TRY(limit_ns, limit_of(options));
        SemaphoreSlot& slot = *(*found)->slot;
        ORR_TRY(here, check_here(slot, "orrStreamWaitSemaphore"));
        if (slot.context != &(*queue)->context()) {
            return fail(
                orrErrorInvalidValue,
                "the stream is on device {}, the semaphore on device {}: a card waits only on its own "
                "semaphores; make one there and signal it over the link",
                (*queue)->context().device(), slot.context->device());
        }
        const orr_packet packet = make_wait(slot.va, value, *limit_ns);
        ORR_TRY(index, (*queue)->submit({&packet, 1}, {Op::kWait, nullptr}));
        slot.want(value);
        return {};
    });
}

orrError_t orrSemaphoreAddSignaller(orrSemaphore_t semaphore, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return refuse_capture(**queue, "orrSemaphoreAddSignaller");
        ORR_TRY(reachable, make_reachable(runtime, **queue, *(*found)->slot));
        return (*found)->add_signaller(*queue);
    });
}

orrError_t orrSemaphoreRemoveSignaller(orrSemaphore_t semaphore, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        ORR_TRY(queue, runtime.stream(stream));
        return (*found)->remove_signaller(*queue);
    });
}

orrError_t orrSemaphoreGetValue(uint64_t* value, orrSemaphore_t semaphore) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (value == nullptr) return null_argument("value");
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        ORR_TRY(here, check_here(*(*found)->slot, "orrSemaphoreGetValue"));
        ORR_TRY(state, (*found)->slot->look());
        *value = state->value;
        if (!state->closed) return {};
        return (*found)->slot->abandoned(state->value);
    });
}

orrError_t orrSemaphoreWait(orrSemaphore_t semaphore, uint64_t value, uint64_t limit_ns) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        ORR_TRY(valid, check_value(value));
        ORR_TRY(here, check_here(*(*found)->slot, "orrSemaphoreWait"));
        return (*found)->wait(value, limit_ns);
    });
}

orrError_t orrSemaphoreSignal(orrSemaphore_t semaphore, uint64_t value) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_semaphore(runtime, semaphore));
        ORR_TRY(valid, check_value(value));
        SemaphoreSlot& slot = *(*found)->slot;
        ORR_TRY(good, slot.check());
        if (value < slot.value()) {
            return fail(orrErrorInvalidValue, "a semaphore only grows: it is {} already, {} was asked for",
                        slot.value(), value);
        }
        // By the card's own semaphore unit, so that its waiters see it at once and with a model time.
        slot.claim();
        ORR_TRY(sent, slot.context->signal(make_semaphore(ORR_PKT_SIGNAL, slot.va, value), slot.elsewhere));
        return sent->first->wait(sent->second);
    });
}

}  // namespace orrery::umd::api
