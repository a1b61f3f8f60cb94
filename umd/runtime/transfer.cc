#include "umd/runtime/transfer.h"

#include <cstring>

#include "umd/runtime/packets.h"

namespace orrery::umd {
namespace {

// What one copy of an engine may move, see orrery/hw/engine.h.
constexpr std::uint64_t kMaxBytes = 1ull << 40;

bool on_card(const std::optional<Allocation>& memory) {
    return memory && memory->device != kHost;
}

Status check_kind(const Transfer& transfer, orrMemcpyKind kind) {
    bool to_card = false, from_card = false;
    switch (kind) {
        case orrMemcpyDefault:
            return {};
        case orrMemcpyHostToHost:
            break;
        case orrMemcpyHostToDevice:
            to_card = true;
            break;
        case orrMemcpyDeviceToHost:
            from_card = true;
            break;
        case orrMemcpyDeviceToDevice:
            to_card = from_card = true;
            break;
        default:
            return fail(orrErrorInvalidValue, "{} is not an orrMemcpyKind", static_cast<int>(kind));
    }
    const auto name = [](bool card) { return card ? "card" : "host"; };
    if (on_card(transfer.dst_memory) != to_card) {
        return fail(orrErrorInvalidValue,
                    "the copy's kind says {} memory, but its destination {:#x} is {} memory", name(to_card),
                    transfer.dst, name(!to_card));
    }
    if (on_card(transfer.src_memory) != from_card) {
        return fail(orrErrorInvalidValue, "the copy's kind says {} memory, but its source {:#x} is {} memory",
                    name(from_card), transfer.src, name(!from_card));
    }
    return {};
}

Result<std::optional<Allocation>> look_up(Runtime& runtime, std::uint64_t address, std::uint64_t bytes,
                                          const char* what) {
    if (address == 0) return fail(orrErrorInvalidValue, "the {} is null", what);
    if (address + bytes < address) return fail(orrErrorInvalidValue, "the {} wraps around", what);
    if (!runtime.memory().find(address)) {
        // Ordinary memory never lies where cards have theirs; the CPU must not touch those addresses.
        if (!runtime.memory().on_cards(address, bytes)) return std::optional<Allocation>{};
        return fail(orrErrorInvalidValue,
                    "the {} {:#x} ({} bytes) is an address of a card, but no memory of orrMalloc: it is {}. "
                    "Was it freed?",
                    what, address, bytes, runtime.memory().describe(address));
    }
    ORR_TRY(allocation, runtime.memory().find_range(address, bytes, what));
    return std::optional(*allocation);
}

}  // namespace

Result<Transfer> check_transfer(Runtime& runtime, void* dst, const void* src, std::size_t bytes,
                                orrMemcpyKind kind) {
    Transfer transfer;
    transfer.dst = reinterpret_cast<std::uintptr_t>(dst);
    transfer.src = reinterpret_cast<std::uintptr_t>(src);
    transfer.bytes = bytes;
    if (bytes > kMaxBytes) return fail(orrErrorInvalidValue, "{} bytes are more than a copy can move", bytes);
    ORR_TRY(found, look_up(runtime, transfer.dst, bytes, "destination"));
    transfer.dst_memory = *found;
    found = look_up(runtime, transfer.src, bytes, "source");
    if (!found) return std::unexpected(found.error());
    transfer.src_memory = *found;
    ORR_TRY(kind_fits, check_kind(transfer, kind));
    return transfer;
}

std::optional<int> executing_device(const Transfer& transfer) {
    if (on_card(transfer.src_memory)) return transfer.src_memory->device;
    if (on_card(transfer.dst_memory)) return transfer.dst_memory->device;
    return std::nullopt;
}

Result<std::vector<Context*>> peers_written(Runtime& runtime, int device,
                                            const std::optional<Allocation>& dst_memory) {
    std::vector<Context*> peers;
    if (!on_card(dst_memory) || dst_memory->device == device) return peers;
    if (auto refused = runtime.memory().peer_refusal(device, *dst_memory)) return std::unexpected(*refused);
    ORR_TRY(peer, runtime.context(dst_memory->device));
    peers.push_back(*peer);
    return peers;
}

Status copy_async(Runtime& runtime, const Transfer& transfer, const std::shared_ptr<Stream>& stream) {
    if (transfer.bytes == 0) return {};
    const int device = stream->context().device();
    if (on_card(transfer.src_memory) && transfer.src_memory->device != device) {
        return fail(
            orrErrorPeerAccess,
            "the source is on device {}, the stream on device {}: a link carries only writes, so use a "
            "stream of the source's device",
            transfer.src_memory->device, device);
    }
    ORR_TRY(peers, peers_written(runtime, device, transfer.dst_memory));
    for (const auto* memory : {&transfer.src_memory, &transfer.dst_memory}) {
        if (!*memory || on_card(*memory)) continue;
        if (auto refused = runtime.memory().host_refusal(device, **memory)) return std::unexpected(*refused);
    }
    if (!transfer.src_memory && !transfer.dst_memory) {
        // Ordinary memory on both sides: nothing for a card to do but to keep the order.
        ORR_TRY(done, stream->synchronize());
        std::memmove(reinterpret_cast<void*>(transfer.dst), reinterpret_cast<const void*>(transfer.src),
                     transfer.bytes);
        return {};
    }
    if (!transfer.src_memory) {
        const auto* src = reinterpret_cast<const std::byte*>(transfer.src);
        return stream->staging().to_device(*stream, transfer.dst, {src, transfer.bytes}, *peers);
    }
    if (!transfer.dst_memory) {
        auto* dst = reinterpret_cast<std::byte*>(transfer.dst);
        return stream->staging().from_device(*stream, {dst, transfer.bytes}, transfer.src);
    }
    const orr_packet packet = make_copy(transfer.dst, transfer.src, transfer.bytes, true);
    ORR_TRY(index, stream->submit({&packet, 1}, {Op::kCopy, nullptr}, *peers));
    return {};
}

}  // namespace orrery::umd
