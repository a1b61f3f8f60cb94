#include "umd/api/guard.h"
#include "umd/api/memory_size.h"
#include "umd/api/structs.h"

using namespace orrery::umd;

namespace {

// Everything that may still use memory of this device (kHost: of the host).
Status drain_users(Runtime& runtime, int device) {
    if (device != kHost) {
        ORR_TRY(copied, runtime.host_copies().wait(device));
    }
    for (Context* context : runtime.contexts()) {
        const bool uses = device == kHost || context->device() == device ||
                          runtime.memory().peer_enabled(context->device(), device);
        if (!uses) continue;
        ORR_TRY(drained, context->drain());
    }
    runtime.sweep();
    return {};
}

Status free_memory(Runtime& runtime, void* ptr, bool host) {
    if (ptr == nullptr) return {};
    const auto va = reinterpret_cast<std::uintptr_t>(ptr);
    const auto allocation = runtime.memory().find(va);
    if (!allocation || allocation->va != va || (allocation->device == kHost) != host) {
        return fail(orrErrorInvalidValue, "{:#x} was not given by {}, or was freed before: it is {}", va,
                    host ? "orrMallocHost" : "orrMalloc", runtime.memory().describe(va));
    }
    ORR_TRY(drained, drain_users(runtime, allocation->device));
    ORR_TRY(freed, runtime.memory().free(va));
    if (host) return {};
    // The memory is free, whether its card knows or not.
    ORR_TRY(context, runtime.context(allocation->device));
    (void)(*context)->tell_heap();
    return {};
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrMalloc(void** ptr, size_t bytes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (ptr == nullptr) return null_argument("ptr");
        ORR_TRY(size, check_size(bytes));
        ORR_TRY(va, allocate_memory(runtime, bytes, false));
        *ptr = reinterpret_cast<void*>(*va);
        return {};
    });
}

orrError_t orrFree(void* ptr) {
    return with_runtime([&](Runtime& runtime) { return free_memory(runtime, ptr, false); });
}

orrError_t orrMallocHost(void** ptr, size_t bytes, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrMallocHost"));
        if (ptr == nullptr) return null_argument("ptr");
        ORR_TRY(size, check_size(bytes));
        ORR_TRY(context, runtime.current_context());
        ORR_TRY(va, runtime.memory().allocate_host((*context)->device(), bytes));
        *ptr = reinterpret_cast<void*>(*va);
        return {};
    });
}

orrError_t orrFreeHost(void* ptr) {
    return with_runtime([&](Runtime& runtime) { return free_memory(runtime, ptr, true); });
}

orrError_t orrMallocPitch(void** ptr, size_t* pitch, size_t width, size_t height) {
    return with_runtime([&](Runtime& runtime) -> Status {
        // So that each row starts at a line of memory of its own.
        constexpr std::size_t kLine = 256;
        if (ptr == nullptr) return null_argument("ptr");
        if (pitch == nullptr) return null_argument("pitch");
        ORR_TRY(row, check_size(width));
        const std::size_t wide = (width + kLine - 1) / kLine * kLine;
        std::size_t bytes = 0;
        if (__builtin_mul_overflow(wide, height, &bytes)) bytes = kMaxAllocation + 1;
        ORR_TRY(size, check_size(bytes));
        ORR_TRY(va, allocate_memory(runtime, bytes, false));
        *ptr = reinterpret_cast<void*>(*va);
        *pitch = wide;
        return {};
    });
}

}  // namespace orrery::umd::api
