// Memory and semaphores of several machines.
#include <algorithm>
#include <bit>
#include <utility>

#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/runtime/shared_semaphore.h"

using namespace orrery::umd;

namespace {

enum class FabricKind : std::uint32_t { kMemory = 1, kSemaphore = 2 };

// What a handle says: the same for all machines and versions.
struct FabricWords {
    std::uint64_t magic;
    std::uint64_t object;
    std::uint64_t size;
    std::uint32_t node;
    FabricKind kind;
    std::uint8_t secret[16];
    std::uint64_t reserved[2];  // 0

    static constexpr std::uint64_t kMagic = 0x31'42'41'46'52'52'4fULL;  // "ORRFAB1"
};
static_assert(sizeof(FabricWords) == sizeof(orrFabricHandle) && std::endian::native == std::endian::little);

orrFabricHandle handle_of(const FabricKey& key, FabricKind kind) {
    FabricWords words{FabricWords::kMagic, key.object, key.size, key.node, kind, {}, {}};
    std::ranges::copy(key.secret, words.secret);
    return std::bit_cast<orrFabricHandle>(words);
}

// What the driver is asked with is looked at there: here only whether it is a handle at all.
Result<std::pair<FabricKey, FabricKind>> read_handle(const orrFabricHandle& handle) {
    const auto words = std::bit_cast<FabricWords>(handle);
    if (words.magic != FabricWords::kMagic || words.reserved[0] != 0 || words.reserved[1] != 0 ||
        (words.kind != FabricKind::kMemory && words.kind != FabricKind::kSemaphore)) {
        return fail(orrErrorInvalidValue,
                    "what was given is no handle of orrFabricExportMemory or orrFabricExportSemaphore, or of "
                    "a newer library: have all of its {} bytes come as they were",
                    sizeof(orrFabricHandle));
    }
    FabricKey key{words.object, words.size, words.node, {}};
    std::ranges::copy(words.secret, key.secret.begin());
    return std::pair(key, words.kind);
}

Result<FabricKey> read_handle(const orrFabricHandle* handle, FabricKind wanted, const char* other) {
    if (handle == nullptr) return std::unexpected(null_argument("handle").error());
    ORR_TRY(read, read_handle(*handle));
    if (read->second == wanted) return read->first;
    return fail(orrErrorInvalidValue, "the handle is not of that kind: use {}", other);
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrFabricExportMemory(orrFabricHandle* handle, void* ptr, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrFabricExportMemory"));
        if (handle == nullptr) return null_argument("handle");
        ORR_TRY(key, runtime.memory().export_fabric(reinterpret_cast<std::uintptr_t>(ptr)));
        *handle = handle_of(*key, FabricKind::kMemory);
        return {};
    });
}

orrError_t orrFabricImportMemory(void** ptr, size_t* bytes, const orrFabricHandle* handle, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrFabricImportMemory"));
        if (ptr == nullptr) return null_argument("ptr");
        if (bytes == nullptr) return null_argument("bytes");
        ORR_TRY(key, read_handle(handle, FabricKind::kMemory, "orrFabricImportSemaphore"));
        ORR_TRY(context, runtime.current_context());
        ORR_TRY(bo, (*context)->winsys().import_fabric(*key));
        ORR_TRY(allocation,
                runtime.memory().import_elsewhere((*context)->device(), std::move(*bo), key->node));
        *ptr = reinterpret_cast<void*>(allocation->va);
        *bytes = allocation->bytes;
        return {};
    });
}

orrError_t orrFabricExportSemaphore(orrFabricHandle* handle, orrSemaphore_t semaphore, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrFabricExportSemaphore"));
        if (handle == nullptr) return null_argument("handle");
        const auto found = runtime.semaphores.find(semaphore);
        if (!found) return bad_handle("semaphore", semaphore);
        ORR_TRY(key, found->export_fabric());
        *handle = handle_of(*key, FabricKind::kSemaphore);
        return {};
    });
}

orrError_t orrFabricImportSemaphore(orrSemaphore_t* semaphore, const orrFabricHandle* handle,
                                    unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrFabricImportSemaphore"));
        if (semaphore == nullptr) return null_argument("semaphore");
        ORR_TRY(key, read_handle(handle, FabricKind::kSemaphore, "orrFabricImportMemory"));
        ORR_TRY(context, runtime.current_context());
        ORR_TRY(slot, (*context)->shared_semaphores().import_fabric(*key));
        ORR_TRY(made,
                give_handle(runtime.semaphores, std::make_shared<Semaphore>(std::move(*slot)), "semaphores"));
        *semaphore = static_cast<orrSemaphore_t>(*made);
        return {};
    });
}

orrError_t orrFabricRevoke(const orrFabricHandle* handle) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (handle == nullptr) return null_argument("handle");
        ORR_TRY(read, read_handle(*handle));
        if (runtime.memory().revoke_fabric(read->first)) return {};
        return fail(orrErrorInvalidHandle,
                    "this process has made no such handle, or has taken it back or freed its memory already");
    });
}

}  // namespace orrery::umd::api
