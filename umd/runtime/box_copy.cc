// Copies of boxes in more dimensions than a packet has.
#include <algorithm>
#include <cstring>

#include "umd/runtime/transfer.h"

namespace orrery::umd {
namespace {

constexpr std::uint64_t kMaxRows = 1ull << 40, kMaxBytes = 1ull << 40;
constexpr std::uint64_t kMaxCount = 0xffffffff;

// From the first byte to behind the last one, of a box that is not empty.
Result<std::uint64_t> span_of(const BoxSize& size, std::span<const std::size_t> strides, const char* what) {
    std::uint64_t span = size.width;
    for (std::size_t i = 0; i < size.counts.size(); ++i) {
        std::uint64_t more = 0;
        if (__builtin_mul_overflow(size.counts[i] - 1, strides[i], &more) ||
            __builtin_add_overflow(span, more, &span)) {
            return fail(orrErrorInvalidValue, "the {} wraps around: {} times {} bytes in dimension {}", what,
                        size.counts[i], strides[i], i + 1);
        }
    }
    return span;
}

// Of all rows; 0: of none.
Result<std::uint64_t> bytes_of(const BoxSize& size) {
    const bool empty = size.width == 0 || std::ranges::find(size.counts, 0u) != size.counts.end();
    if (empty) return 0;
    std::uint64_t rows = 1;
    for (const std::size_t count : size.counts) {
        if (count > kMaxCount || __builtin_mul_overflow(rows, count, &rows) || rows > kMaxRows)
            return fail(orrErrorInvalidValue,
                        "a box has at most 2^40 rows, and less than 2^32 of a dimension");
    }
    if (size.width > kMaxBytes / rows) {
        return fail(orrErrorInvalidValue, "{} rows of {} bytes are more than a copy can move", rows,
                    size.width);
    }
    return rows * size.width;
}

}  // namespace

Result<BoxCopy> check_box_copy(Runtime& runtime, void* dst, const void* src, const BoxSize& size,
                               orrMemcpyKind kind) {
    ORR_TRY(bytes, bytes_of(size));
    std::uint64_t dst_bytes = 0, src_bytes = 0;
    if (*bytes != 0) {
        ORR_TRY(to, span_of(size, size.dst_strides, "destination"));
        ORR_TRY(from, span_of(size, size.src_strides, "source"));
        dst_bytes = *to;
        src_bytes = *from;
    }
    BoxCopy copy;
    ORR_TRY(transfer, check_memory(runtime, dst, dst_bytes, src, src_bytes, kind));
    if (!transfer->dst_memory || !transfer->src_memory) {
        return fail(orrErrorInvalidValue,
                    "the {} of a copy of a box is ordinary host memory: use memory of orrMallocHost",
                    transfer->dst_memory ? "source" : "destination");
    }
    copy.transfer = *transfer;
    copy.transfer.bytes = *bytes;
    orr_desc_box& box = copy.box;
    box.op = ORR_DESC_BOX;
    // Bytes in a row are a box of one row.
    box.dimensions = static_cast<std::uint16_t>(std::max<std::size_t>(size.counts.size(), 1));
    box.src = transfer->src;
    box.dst = transfer->dst;
    box.row_bytes = size.width;
    box.count[0] = 1;
    for (std::size_t i = 0; i < size.counts.size(); ++i) {
        box.count[i] = static_cast<std::uint32_t>(size.counts[i]);
        box.src_stride[i] = size.src_strides[i];
        box.dst_stride[i] = size.dst_strides[i];
    }
    return copy;
}

Status copy_box_async(Runtime& runtime, const BoxCopy& copy, const std::shared_ptr<Stream>& stream) {
    if (copy.transfer.bytes == 0) return {};
    ORR_TRY(other, staged_with(runtime, copy.transfer, stream->context()));
    if (*other != nullptr) return copy_staged(copy.transfer, {.box = copy.box}, *stream, **other);
    ORR_TRY(peers, check_reach(runtime, copy.transfer, stream->context().device()));
    ORR_TRY(index, stream->submit_with(make_box_copy(), kBoxCopyWord, std::as_bytes(std::span(&copy.box, 1)),
                                       {Op::kCopy, nullptr}, *peers));
    return {};
}

}  // namespace orrery::umd
