// Memory, semaphores and events of several processes.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "umd/api/guard.h"
#include "umd/api/memory_size.h"
#include "umd/api/structs.h"
#include "umd/runtime/fd_message.h"
#include "umd/runtime/shared_event.h"
#include "umd/runtime/shared_semaphore.h"

using namespace orrery::umd;

namespace {

// The fd's owner is the caller from here on.
Status give_fd(int* fd, Result<UniqueFd> made) {
    if (!made) return std::unexpected(made.error());
    *fd = made->release();
    return {};
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrIpcMalloc(void** ptr, size_t bytes, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrIpcMalloc"));
        if (ptr == nullptr) return null_argument("ptr");
        ORR_TRY(size, check_size(bytes));
        ORR_TRY(va, allocate_memory(runtime, bytes, true));
        *ptr = reinterpret_cast<void*>(*va);
        return {};
    });
}

orrError_t orrIpcExportMemory(int* fd, void* ptr, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrIpcExportMemory"));
        if (fd == nullptr) return null_argument("fd");
        return give_fd(fd, runtime.memory().export_fd(reinterpret_cast<std::uintptr_t>(ptr)));
    });
}

orrError_t orrIpcImportMemory(orrIpcMemory* memory, int fd, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrIpcImportMemory"));
        ORR_TRY(room, check_result_struct(memory, "orrIpcMemory"));
        ORR_TRY(current, runtime.device(current_device()));
        ORR_TRY(found, runtime.find_foreign(fd));
        const int owner = found->context->device();
        orrIpcMemory value = ORR_INIT(orrIpcMemory);
        value.reach = orrIpcReachDirect;
        if (found->foreign.kind == BoKind::kVram && owner != current_device()) {
            ORR_TRY(linked, runtime.linked(current_device(), owner));
            value.reach = *linked ? orrIpcReachLink : orrIpcReachHost;
        }
        ORR_TRY(allocation, runtime.memory().import(owner, std::move(found->foreign)));
        value.ptr = reinterpret_cast<void*>(allocation->va);
        value.bytes = allocation->bytes;
        value.device = allocation->device;
        return write_struct(memory, value, "orrIpcMemory");
    });
}

orrError_t orrIpcExportSemaphore(int* fd, orrSemaphore_t semaphore, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrIpcExportSemaphore"));
        if (fd == nullptr) return null_argument("fd");
        const auto found = runtime.semaphores.find(semaphore);
        if (!found) return bad_handle("semaphore", semaphore);
        return give_fd(fd, SharedSemaphores::export_fd(*found->slot));
    });
}

orrError_t orrIpcImportSemaphore(orrSemaphore_t* semaphore, int fd, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrIpcImportSemaphore"));
        if (semaphore == nullptr) return null_argument("semaphore");
        ORR_TRY(found, runtime.find_foreign(fd));
        ORR_TRY(slot, found->context->shared_semaphores().import(std::move(found->foreign),
                                                                 SharedSemaphores::Kind::kSemaphore));
        ORR_TRY(handle,
                give_handle(runtime.semaphores, std::make_shared<Semaphore>(std::move(*slot)), "semaphores"));
        *semaphore = static_cast<orrSemaphore_t>(*handle);
        return {};
    });
}

orrError_t orrIpcExportEvent(int* fd, orrEvent_t event, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrIpcExportEvent"));
        if (fd == nullptr) return null_argument("fd");
        const auto found = runtime.events.find(event);
        if (!found) return bad_handle("event", event);
        if (found->shared() == nullptr) {
            return fail(orrErrorInvalidValue,
                        "the event is this process's alone: make it with orrEventInterprocess | "
                        "orrEventDisableTiming");
        }
        return give_fd(fd, SharedSemaphores::export_fd(found->shared()->slot()));
    });
}

orrError_t orrIpcImportEvent(orrEvent_t* event, int fd, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrIpcImportEvent"));
        if (event == nullptr) return null_argument("event");
        ORR_TRY(found, runtime.find_foreign(fd));
        ORR_TRY(shared, SharedEvent::import(*found->context, std::move(found->foreign)));
        ORR_TRY(handle, give_handle(runtime.events, std::make_shared<Event>(std::move(*shared)), "events"));
        *event = static_cast<orrEvent_t>(*handle);
        return {};
    });
}

// These two need no card.
orrError_t orrIpcSend(int socket, const int* fds, size_t count, const void* data, size_t bytes,
                      uint64_t limit_ns) {
    return guarded([&]() -> Status {
        if (fds == nullptr && count != 0) return null_argument("fds");
        if (data == nullptr && bytes != 0) return null_argument("data");
        static_assert(ORR_IPC_MAX_FDS == kMaxMessageFds && ORR_IPC_MAX_BYTES == kMaxMessageBytes);
        if (count > kMaxMessageFds || bytes > kMaxMessageBytes) {
            return fail(orrErrorInvalidValue,
                        "{} file descriptors and {} bytes: a message has at most {} and {}", count, bytes,
                        kMaxMessageFds, kMaxMessageBytes);
        }
        return send_message(socket, {fds, count}, {static_cast<const std::byte*>(data), bytes}, limit_ns);
    });
}

orrError_t orrIpcReceive(int* fds, size_t* count, size_t* bytes, void* data, int socket, uint64_t limit_ns) {
    return guarded([&]() -> Status {
        if (count == nullptr) return null_argument("count");
        if (bytes == nullptr) return null_argument("bytes");
        if (fds == nullptr && *count != 0) return null_argument("fds");
        if (data == nullptr && *bytes != 0) return null_argument("data");
        ORR_TRY(message, receive_message(socket, *count, *bytes, limit_ns));
        *count = message->fds.size();
        *bytes = message->bytes.size();
        for (std::size_t i = 0; i < message->fds.size(); ++i)
            fds[i] = message->fds[i].release();
        if (!message->bytes.empty()) std::memcpy(data, message->bytes.data(), message->bytes.size());
        return {};
    });
}

}  // namespace orrery::umd::api
