#include "umd/runtime/transfer.h"

#include <orrery/hw/engine.h>

#include <algorithm>
#include <cstring>

#include "umd/runtime/packets.h"

namespace orrery::umd {

// The numbers are the card's.
static_assert(orrInt8 == ORR_TYPE_I8 && orrUint8 == ORR_TYPE_U8 && orrInt32 == ORR_TYPE_I32 &&
              orrUint32 == ORR_TYPE_U32 && orrInt64 == ORR_TYPE_I64 && orrUint64 == ORR_TYPE_U64 &&
              orrFloat16 == ORR_TYPE_F16 && orrBfloat16 == ORR_TYPE_BF16 && orrFloat32 == ORR_TYPE_F32 &&
              orrFloat64 == ORR_TYPE_F64);
static_assert(orrReduceSum == ORR_REDUCE_ADD && orrReduceMin == ORR_REDUCE_MIN &&
              orrReduceMax == ORR_REDUCE_MAX && orrReduceProd == ORR_REDUCE_PRODUCT);

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

Status check_writable(const std::optional<Allocation>& memory, std::uint64_t dst) {
    if (!memory || memory->variable != Allocation::Variable::kConstant) return {};
    return fail(orrErrorInvalidValue, "the destination {:#x} is a constant of a module: nothing can write it",
                dst);
}

// What cards take: rows and planes are 32 bits.
Result<std::uint64_t> bytes_of(std::uint64_t width, std::uint64_t height, std::uint64_t depth) {
    constexpr std::uint64_t kMost = 0xffffffff;
    // With a factor of 0 there is nothing to do, however large the others are.
    if (width == 0 || height == 0 || depth == 0) return 0;
    if (height <= kMost && depth <= kMost && width <= kMaxBytes && height * depth <= kMaxBytes / width)
        return width * height * depth;
    return fail(orrErrorInvalidValue, "{} x {} x {} bytes are more than a copy can move", width, height,
                depth);
}

struct Extent {
    std::uint64_t width, height, depth, pitch, plane_height;
};

// From the first byte to behind the last one.
Result<std::uint64_t> span_of(const Extent& extent, const char* what) {
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return 0;
    if (extent.height * extent.depth > 1 && extent.pitch < extent.width) {
        return fail(orrErrorInvalidValue, "the {}'s pitch is {}, less than a row's {} bytes", what,
                    extent.pitch, extent.width);
    }
    if (extent.depth > 1 && (extent.plane_height < extent.height || extent.plane_height > 0xffffffff)) {
        return fail(orrErrorInvalidValue,
                    "the {}'s planes are {} rows apart: at least the {} that are copied, and "
                    "below 2^32",
                    what, extent.plane_height, extent.height);
    }
    std::uint64_t rows = 0, span = 0;
    if (__builtin_mul_overflow(extent.depth - 1, extent.plane_height, &rows) ||
        __builtin_add_overflow(rows, extent.height - 1, &rows) ||
        __builtin_mul_overflow(rows, extent.pitch, &span) ||
        __builtin_add_overflow(span, extent.width, &span)) {
        return fail(orrErrorInvalidValue, "the {} wraps around: {} rows of {} bytes", what, rows,
                    extent.pitch);
    }
    return span;
}

}  // namespace

Result<Transfer> check_memory(Runtime& runtime, void* dst, std::uint64_t dst_bytes, const void* src,
                              std::uint64_t src_bytes, orrMemcpyKind kind, bool reduces) {
    Transfer transfer;
    transfer.dst = reinterpret_cast<std::uintptr_t>(dst);
    transfer.src = reinterpret_cast<std::uintptr_t>(src);
    runtime.offer_again();
    ORR_TRY(found, look_up(runtime, transfer.dst, dst_bytes, "destination"));
    transfer.dst_memory = *found;
    found = look_up(runtime, transfer.src, src_bytes, "source");
    if (!found) return std::unexpected(found.error());
    transfer.src_memory = *found;
    if (transfer.src_memory && transfer.src_memory->elsewhere &&
        !(reduces && transfer.src_memory->block->combines)) {
        return fail(
            orrErrorInvalidValue, "the source {:#x} is {}, which can be {}: have its owner copy from there",
            transfer.src, transfer.src_memory->where(),
            transfer.src_memory->block->combines                      ? "read in copies with reduction only"
            : reduces && !transfer.src_memory->block->members.empty() ? "written only (orrMulticastReadable)"
                                                                      : "written only");
    }
    ORR_TRY(kind_fits, check_kind(transfer, kind));
    ORR_TRY(writable, check_writable(transfer.dst_memory, transfer.dst));
    return transfer;
}

Result<Transfer> check_transfer(Runtime& runtime, void* dst, const void* src, std::size_t bytes,
                                orrMemcpyKind kind, bool reduces) {
    if (bytes > kMaxBytes) return fail(orrErrorInvalidValue, "{} bytes are more than a copy can move", bytes);
    ORR_TRY(transfer, check_memory(runtime, dst, bytes, src, bytes, kind, reduces));
    transfer->bytes = transfer->shape.row_bytes = bytes;
    return transfer;
}

Result<Transfer> check_box(Runtime& runtime, void* dst, const void* src, const Box& box, orrMemcpyKind kind) {
    ORR_TRY(bytes, bytes_of(box.width, box.height, box.depth));
    const Extent to{box.width, box.height, box.depth, box.dst_pitch, box.dst_height};
    const Extent from{box.width, box.height, box.depth, box.src_pitch, box.src_height};
    ORR_TRY(dst_bytes, span_of(to, "destination"));
    ORR_TRY(src_bytes, span_of(from, "source"));
    ORR_TRY(transfer, check_memory(runtime, dst, *dst_bytes, src, *src_bytes, kind));
    transfer->bytes = *bytes;
    if (transfer->bytes == 0) return transfer;
    CopyShape& shape = transfer->shape;
    shape.row_bytes = box.width;
    shape.rows = static_cast<std::uint32_t>(box.height);
    shape.planes = static_cast<std::uint32_t>(box.depth);
    if (!shape.linear()) {
        shape.dst_pitch = box.dst_pitch;
        shape.src_pitch = box.src_pitch;
    }
    if (shape.planes > 1) {
        shape.dst_height = static_cast<std::uint32_t>(box.dst_height);
        shape.src_height = static_cast<std::uint32_t>(box.src_height);
    }
    return transfer;
}

Result<CheckedFill> check_fill(Runtime& runtime, void* dst, std::uint64_t pattern,
                               std::uint32_t pattern_bytes, std::uint64_t pitch, std::uint64_t width,
                               std::uint64_t height) {
    constexpr const char* kWhat = "the memset's destination";
    CheckedFill fill;
    const auto va = reinterpret_cast<std::uintptr_t>(dst);
    ORR_TRY(bytes, bytes_of(width, height, 1));
    fill.bytes = *bytes;
    const std::uint64_t last = height > 1 ? pitch : 0;
    if ((va | last) % pattern_bytes != 0) {
        return fail(orrErrorInvalidValue,
                    "{} {:#x}, or its pitch of {}, is no multiple of the value's {} bytes", kWhat, va, last,
                    pattern_bytes);
    }
    ORR_TRY(span, span_of({width, height, 1, pitch, height}, "memset"));
    runtime.offer_again();
    ORR_TRY(memory, runtime.memory().find_range(va, *span, kWhat));
    ORR_TRY(writable, check_writable(*memory, va));
    fill.memory = *memory;
    fill.filling = {.dst = va,
                    .pattern = pattern,
                    .pattern_bytes = pattern_bytes,
                    .row_bytes = width,
                    .rows = static_cast<std::uint32_t>(height),
                    .pitch = last};
    return fill;
}

Result<Reduction> check_reduction(Runtime& runtime, void* dst, const void* src, std::uint64_t count,
                                  orrDataType type, orrReduceOp op) {
    if (type < orrInt8 || type > orrFloat64)
        return fail(orrErrorInvalidValue, "{} is not an orrDataType", static_cast<int>(type));
    if (op < orrReduceSum || op > orrReduceProd)
        return fail(orrErrorInvalidValue, "{} is not an orrReduceOp", static_cast<int>(op));
    constexpr std::uint8_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8};
    const std::uint64_t unit = kBytes[type - orrInt8];
    if (count > kMaxBytes / unit)
        return fail(orrErrorInvalidValue, "{} elements of {} bytes are more than a copy can move", count,
                    unit);
    Reduction reduction;
    reduction.type = static_cast<std::uint16_t>(type);
    reduction.function = static_cast<std::uint16_t>(op);
    ORR_TRY(transfer, check_transfer(runtime, dst, src, count * unit, orrMemcpyDefault, true));
    reduction.transfer = *transfer;
    if ((transfer->dst | transfer->src) % unit != 0) {
        return fail(orrErrorInvalidValue, "{:#x} or {:#x} is no multiple of the elements' {} bytes",
                    transfer->dst, transfer->src, unit);
    }
    if (!transfer->dst_memory || !transfer->src_memory) {
        return fail(
            orrErrorInvalidValue,
            "the {} of a copy with reduction is ordinary host memory: use memory of orrMallocHost, or "
            "copy it to the card first",
            transfer->dst_memory ? "source" : "destination");
    }
    if (transfer->dst_memory->elsewhere) {
        return fail(orrErrorInvalidValue,
                    "the destination {:#x} of a copy with reduction is {}, which can "
                    "be written only: copy the source there and have its owner reduce it",
                    transfer->dst, transfer->dst_memory->where());
    }
    const std::uint64_t apart =
        transfer->dst > transfer->src ? transfer->dst - transfer->src : transfer->src - transfer->dst;
    if (apart != 0 && apart < transfer->bytes) {
        return fail(
            orrErrorInvalidValue,
            "source {:#x} and destination {:#x} of a copy with reduction overlap: they must be the same, "
            "or {} bytes apart",
            transfer->src, transfer->dst, transfer->bytes);
    }
    return reduction;
}

namespace {

// Of memory of another card: why not, and if no link leads there, that alone.
std::unexpected<Error> not_reached(Runtime& runtime, int device, const Allocation& memory, Error refused) {
    if (memory.elsewhere || refused.code != orrErrorPeerAccess) return std::unexpected(std::move(refused));
    ORR_TRY(linked, runtime.linked(device, memory.device));
    if (*linked) return std::unexpected(std::move(refused));
    return fail(orrErrorPeerAccess,
                "no way over links that are up joins device {} and device {} (orrery-smi topo). Copies in a "
                "stream of one of the two, and in graphs, go through the host's memory then; kernels and "
                "memsets do not",
                device, memory.device);
}

}  // namespace

std::optional<int> executing_device(const Reduction& reduction) {
    for (const auto* memory : {&reduction.transfer.dst_memory, &reduction.transfer.src_memory}) {
        if (on_card(*memory)) return (*memory)->device;
    }
    return std::nullopt;
}

Status reachable(Runtime& runtime, const Reduction& reduction, int device) {
    const Transfer& transfer = reduction.transfer;
    for (const auto* memory : {&transfer.src_memory, &transfer.dst_memory}) {
        if (!on_card(*memory)) {
            if (auto refused = runtime.memory().host_refusal(device, **memory))
                return std::unexpected(*refused);
        } else if ((*memory)->device != device && memory == &transfer.src_memory) {
            if (auto refused = runtime.memory().peer_read_refusal(device, **memory))
                return not_reached(runtime, device, **memory, *std::move(refused));
        } else if ((*memory)->device != device) {
            return fail(
                orrErrorPeerAccess,
                "the {} of a copy with reduction is on device {}, the stream on device {}: a link carries "
                "only writes, so copy the source there and reduce in a stream of that device",
                memory == &transfer.src_memory ? "source" : "destination", (*memory)->device, device);
        }
    }
    return {};
}

std::optional<int> executing_device(Runtime& runtime, const Transfer& transfer) {
    if (!on_card(transfer.src_memory))
        return on_card(transfer.dst_memory) ? std::optional(transfer.dst_memory->device) : std::nullopt;
    const int src = transfer.src_memory->device;
    if (on_card(transfer.dst_memory) && transfer.dst_memory->device != src) {
        const int dst = transfer.dst_memory->device;
        const Memory& memory = runtime.memory();
        if (memory.peer_refusal(src, *transfer.dst_memory) &&
            !memory.peer_read_refusal(dst, *transfer.src_memory))
            return dst;
    }
    return src;
}

Result<std::vector<Context*>> peers_written(Runtime& runtime, int device,
                                            const std::optional<Allocation>& dst_memory) {
    std::vector<Context*> peers;
    if (!on_card(dst_memory)) return peers;
    if (dst_memory->device == device) {
        for (const MulticastWay& member : dst_memory->block->members) {
            ORR_TRY(peer, runtime.context(member.device));
            peers.push_back(*peer);
        }
        return peers;
    }
    if (auto refused = runtime.memory().peer_refusal(device, *dst_memory))
        return not_reached(runtime, device, *dst_memory, *std::move(refused));
    ORR_TRY(peer, runtime.context(dst_memory->device));
    peers.push_back(*peer);
    return peers;
}

Result<Context*> staged_with(Runtime& runtime, const Transfer& transfer, Context& own) {
    if (!on_card(transfer.src_memory) || !on_card(transfer.dst_memory)) return nullptr;
    const Allocation &src = *transfer.src_memory, &dst = *transfer.dst_memory;
    const bool pushes = src.device == own.device();
    if (pushes == (dst.device == own.device()) || src.elsewhere || dst.elsewhere) return nullptr;
    const Memory& memory = runtime.memory();
    ORR_TRY(peer, runtime.context(pushes ? dst.device : src.device));
    const auto refused =
        pushes ? memory.peer_refusal(own.device(), dst) : memory.peer_read_refusal(own.device(), src);
    if (refused ? !own.goes_by_host(**peer) : own.reaches(**peer)) return nullptr;
    // A card that is lost has no links, and is the cause that counts: the stream is told as of any copy.
    if (auto loss = loss_of_either(own, **peer)) {
        if (refused) return std::unexpected(*loss);
        return nullptr;
    }
    return *peer;
}

Result<std::vector<Context*>> check_reach(Runtime& runtime, const Transfer& transfer, int device) {
    ORR_TRY(peers, peers_written(runtime, device, transfer.dst_memory));
    if (on_card(transfer.src_memory) && transfer.src_memory->device != device) {
        if (auto refused = runtime.memory().peer_read_refusal(device, *transfer.src_memory))
            return not_reached(runtime, device, *transfer.src_memory, *std::move(refused));
    }
    for (const auto* memory : {&transfer.src_memory, &transfer.dst_memory}) {
        if (!*memory || on_card(*memory)) continue;
        if (auto refused = runtime.memory().host_refusal(device, **memory)) return std::unexpected(*refused);
    }
    return peers;
}

Status copy_staged(const Transfer& transfer, StagedCopy copy, Stream& stream, Context& other) {
    copy.pushes = transfer.src_memory->device == stream.context().device();
    return stream.staging().between(stream, other, copy);
}

namespace {

orr_desc_box box_of(const Transfer& transfer) {
    return make_box(transfer.dst, transfer.src, transfer.shape);
}

}  // namespace

Status copy_async(Runtime& runtime, const Transfer& transfer, const std::shared_ptr<Stream>& stream) {
    if (transfer.bytes == 0) return {};
    ORR_TRY(other, staged_with(runtime, transfer, stream->context()));
    if (*other != nullptr) return copy_staged(transfer, {.box = box_of(transfer)}, *stream, **other);
    ORR_TRY(peers, check_reach(runtime, transfer, stream->context().device()));
    if (!transfer.src_memory && !transfer.dst_memory) {
        // Ordinary memory on both sides: nothing for a card to do but to keep the order.
        ORR_TRY(done, stream->synchronize());
        const CopyShape& shape = transfer.shape;
        for (std::uint64_t plane = 0; plane < shape.planes; ++plane) {
            for (std::uint64_t row = 0; row < shape.rows; ++row) {
                const std::uint64_t to = (plane * shape.dst_height + row) * shape.dst_pitch;
                const std::uint64_t from = (plane * shape.src_height + row) * shape.src_pitch;
                std::memmove(reinterpret_cast<void*>(transfer.dst + to),
                             reinterpret_cast<const void*>(transfer.src + from), shape.row_bytes);
            }
        }
        return {};
    }
    if (!transfer.src_memory) {
        const auto* src = reinterpret_cast<const std::byte*>(transfer.src);
        return stream->staging().to_device(*stream, transfer.dst, src, transfer.shape, *peers);
    }
    if (!transfer.dst_memory) {
        auto* dst = reinterpret_cast<std::byte*>(transfer.dst);
        return stream->staging().from_device(*stream, dst, transfer.src, transfer.shape);
    }
    const orr_packet packet = make_copy(transfer.dst, transfer.src, transfer.shape, true);
    ORR_TRY(index, stream->submit({&packet, 1}, {Op::kCopy, nullptr}, *peers));
    return {};
}

Status copy_batch(Runtime& runtime, std::span<const Transfer> transfers,
                  const std::shared_ptr<Stream>& stream) {
    // All is looked at before anything is done.
    std::vector<Context*> peers;
    std::vector<bool> alone;  // of each: a card can do it alone
    for (const Transfer& transfer : transfers) {
        ORR_TRY(other, staged_with(runtime, transfer, stream->context()));
        alone.push_back(*other == nullptr && transfer.src_memory && transfer.dst_memory);
        if (*other != nullptr) continue;
        ORR_TRY(written, check_reach(runtime, transfer, stream->context().device()));
        for (Context* peer : *written) {
            if (std::ranges::find(peers, peer) == peers.end()) peers.push_back(peer);
        }
    }
    constexpr std::size_t kMost = 128;
    std::vector<orr_copy_entry> list;
    std::vector<BatchCopy> numbers;
    std::vector<std::byte> data;
    std::uint64_t bytes = 0;
    const auto send = [&]() -> Status {
        if (list.empty()) return {};
        const orr_packet packet = make_copies(bytes, static_cast<std::uint32_t>(list.size()));
        const auto entries = std::as_bytes(std::span(list)), behind = std::as_bytes(std::span(numbers));
        data.assign(entries.begin(), entries.end());
        data.insert(data.end(), behind.begin(), behind.end());
        ORR_TRY(index, stream->submit_with(packet, 0, data, {Op::kCopy, nullptr}, peers));
        list.clear();
        numbers.clear();
        bytes = 0;
        return {};
    };
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        const Transfer& transfer = transfers[i];
        if (!alone[i]) {
            ORR_TRY(copied, copy_async(runtime, transfer, stream));
        } else if (transfer.bytes != 0) {
            if (list.size() == kMost || transfer.bytes > kMaxBytes - bytes) {
                ORR_TRY(sent, send());
            }
            list.push_back({transfer.src, transfer.dst, transfer.bytes, 0});
            numbers.push_back({i, transfers.size()});
            bytes += transfer.bytes;
        }
    }
    return send();
}

Result<std::uint64_t> fill_async(Runtime& runtime, const CheckedFill& fill,
                                 const std::shared_ptr<Stream>& stream) {
    ORR_TRY(peers, peers_written(runtime, stream->context().device(), fill.memory));
    if (fill.bytes == 0) return 0;
    const orr_packet packet = make_fill(fill.filling);
    return stream->submit({&packet, 1}, {Op::kFill, nullptr}, *peers);
}

Result<std::uint64_t> reduce_async(Runtime& runtime, const Reduction& reduction,
                                   const std::shared_ptr<Stream>& stream) {
    const Transfer& transfer = reduction.transfer;
    ORR_TRY(other, staged_with(runtime, transfer, stream->context()));
    if (*other != nullptr) {
        if (transfer.bytes == 0) return 0;
        const StagedCopy copy{
            .box = box_of(transfer), .type = reduction.type, .function = reduction.function};
        ORR_TRY(reduced, copy_staged(transfer, copy, *stream, **other));
        return 0;
    }
    ORR_TRY(reached, reachable(runtime, reduction, stream->context().device()));
    if (transfer.bytes == 0) return 0;
    const orr_packet packet = reduction.packet();
    return stream->submit({&packet, 1}, {Op::kCopy, nullptr});
}

}  // namespace orrery::umd
