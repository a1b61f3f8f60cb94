// Copies in all directions: who executes them, what is checked, what goes through staging.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <orrery/hw/engine.h>

#include "umd/runtime/packets.h"
#include "umd/runtime/runtime.h"
#include "umd/runtime/staging.h"

namespace orrery::umd {

struct Transfer {
    std::uint64_t dst = 0;
    std::uint64_t src = 0;
    std::uint64_t bytes = 0;  // of all rows
    CopyShape shape;
    std::optional<Allocation> dst_memory;  // nothing: ordinary host memory
    std::optional<Allocation> src_memory;
};

// Finds out what the addresses are, and checks kind and ranges, of so many bytes from first to last.
// `reduces`: of a copy with reduction.
Result<Transfer> check_memory(Runtime& runtime, void* dst, std::uint64_t dst_bytes, const void* src,
                              std::uint64_t src_bytes, orrMemcpyKind kind, bool reduces = false);
// The same of bytes in a row.
Result<Transfer> check_transfer(Runtime& runtime, void* dst, const void* src, std::size_t bytes,
                                orrMemcpyKind kind, bool reduces = false);
// The same of a box: sizes as the caller gave them.
struct Box {
    std::uint64_t width = 0, height = 1, depth = 1;  // bytes, rows, planes
    std::uint64_t dst_pitch = 0, dst_height = 0, src_pitch = 0, src_height = 0;
};
Result<Transfer> check_box(Runtime& runtime, void* dst, const void* src, const Box& box, orrMemcpyKind kind);
// A copy between memory of cards and pinned memory, in more dimensions than a packet has: they stand in a
// descriptor.
struct BoxCopy {
    Transfer transfer;  // without shape
    orr_desc_box box{};
};
// Of rows of `width` bytes: `counts` of each further dimension, and the strides of both sides.
struct BoxSize {
    std::uint64_t width = 0;
    std::span<const std::size_t> counts, dst_strides, src_strides;  // as many of each
};
Result<BoxCopy> check_box_copy(Runtime& runtime, void* dst, const void* src, const BoxSize& size,
                               orrMemcpyKind kind);
// A fill whose memory is known; pitch: unused for one row.
struct CheckedFill {
    Filling filling;
    Allocation memory;
    std::uint64_t bytes = 0;  // of all rows
};
Result<CheckedFill> check_fill(Runtime& runtime, void* dst, std::uint64_t pattern,
                               std::uint32_t pattern_bytes, std::uint64_t pitch, std::uint64_t width,
                               std::uint64_t height);
// dst = dst op src; both are memory of cards or pinned, and do not overlap unless they are the same.
struct Reduction {
    Transfer transfer;
    std::uint16_t type = 0, function = 0;
    orr_packet packet() const {
        return make_reduce(transfer.dst, transfer.src, transfer.bytes, type, function);
    }
};
Result<Reduction> check_reduction(Runtime& runtime, void* dst, const void* src, std::uint64_t count,
                                  orrDataType type, orrReduceOp op);
// The device that does it: the destination's, else the source's; nothing: both are pinned.
std::optional<int> executing_device(const Reduction& reduction);
// What of it this device cannot do alone.
Status reachable(Runtime& runtime, const Reduction& reduction, int device);

// The device that executes it: the source's card, else the destination's; nothing if no card is involved.
// Between two cards the destination's, if only that one may use the other's memory.
std::optional<int> executing_device(Runtime& runtime, const Transfer& transfer);
// The card other than the stream's whose memory it uses, if it goes through the host's memory; null: no.
Result<Context*> staged_with(Runtime& runtime, const Transfer& transfer, Context& own);
// Done when it returns. copy: which card pushes is found out.
Status copy_staged(const Transfer& transfer, StagedCopy copy, Stream& stream, Context& other);
// In the stream's order; see orrMemcpyAsync for when it returns.
Status copy_async(Runtime& runtime, const Transfer& transfer, const std::shared_ptr<Stream>& stream);
Status copy_box_async(Runtime& runtime, const BoxCopy& copy, const std::shared_ptr<Stream>& stream);
// The same of many at once, in any order; those that cards can do alone become lists of copies.
Status copy_batch(Runtime& runtime, std::span<const Transfer> transfers,
                  const std::shared_ptr<Stream>& stream);
// Index behind it; 0: done.
Result<std::uint64_t> fill_async(Runtime& runtime, const CheckedFill& fill,
                                 const std::shared_ptr<Stream>& stream);
Result<std::uint64_t> reduce_async(Runtime& runtime, const Reduction& reduction,
                                   const std::shared_ptr<Stream>& stream);
// What of a copy this device cannot do; the cards other than it that it writes to.
Result<std::vector<Context*>> check_reach(Runtime& runtime, const Transfer& transfer, int device);
// The cards other than `device` that a copy or memset by it writes to; an error if it may not.
Result<std::vector<Context*>> peers_written(Runtime& runtime, int device,
                                            const std::optional<Allocation>& dst_memory);

}  // namespace orrery::umd
