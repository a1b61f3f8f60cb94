#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/transfer.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace {

constexpr std::size_t kMaxAllocation = std::size_t{1} << 46;

Status check_size(std::size_t bytes) {
    if (bytes == 0) return fail(orrErrorInvalidValue, "0 bytes were asked for");
    if (bytes > kMaxAllocation)
        return fail(orrErrorOutOfMemory, "{} bytes are more than any card has", bytes);
    return {};
}

// Everything that may still use memory of this device (kHost: of the host).
Status drain_users(Runtime& runtime, int device) {
    for (Context* context : runtime.contexts()) {
        const bool uses = device == kHost || context->device() == device ||
                          runtime.memory().peer_enabled(context->device(), device);
        if (!uses) continue;
        ORR_TRY(drained, context->drain());
    }
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
    return runtime.memory().free(va);
}

Result<std::uint64_t> fill(Runtime& runtime, void* dst, int value, std::size_t bytes,
                           const std::shared_ptr<Stream>& stream) {
    const auto va = reinterpret_cast<std::uintptr_t>(dst);
    ORR_TRY(allocation, runtime.memory().find_range(va, bytes, "the memset's destination"));
    ORR_TRY(peers, peers_written(runtime, stream->context().device(), *allocation));
    if (bytes == 0) return 0;
    const orr_packet packet = make_fill(va, static_cast<std::uint8_t>(value), bytes);
    return stream->submit({&packet, 1}, {Op::kFill, nullptr}, *peers);
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrMalloc(void** ptr, size_t bytes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (ptr == nullptr) return null_argument("ptr");
        ORR_TRY(size, check_size(bytes));
        ORR_TRY(context, runtime.current_context());
        ORR_TRY(va, runtime.memory().allocate_device((*context)->device(), bytes));
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

orrError_t orrMemcpy(void* dst, const void* src, size_t bytes, orrMemcpyKind kind) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(transfer, check_transfer(runtime, dst, src, bytes, kind));
        ORR_TRY(context, runtime.context(executing_device(*transfer).value_or(current_device())));
        ORR_TRY(stream, (*context)->null_stream());
        ORR_TRY(copied, copy_async(runtime, *transfer, *stream));
        return (*stream)->synchronize();
    });
}

orrError_t orrMemcpyAsync(void* dst, const void* src, size_t bytes, orrMemcpyKind kind, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(transfer, check_transfer(runtime, dst, src, bytes, kind));
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return capture_copy(runtime, **queue, *transfer);
        return copy_async(runtime, *transfer, *queue);
    });
}

orrError_t orrMemset(void* dst, int value, size_t bytes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        const auto allocation = runtime.memory().find(reinterpret_cast<std::uintptr_t>(dst));
        const bool on_card = allocation && allocation->device != kHost;
        ORR_TRY(context, runtime.context(on_card ? allocation->device : current_device()));
        ORR_TRY(stream, (*context)->null_stream());
        ORR_TRY(index, fill(runtime, dst, value, bytes, *stream));
        return (*stream)->wait(*index);
    });
}

orrError_t orrMemsetAsync(void* dst, int value, size_t bytes, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing()) return capture_fill(runtime, **queue, dst, value, bytes);
        ORR_TRY(index, fill(runtime, dst, value, bytes, *queue));
        return {};
    });
}

}  // namespace orrery::umd::api
