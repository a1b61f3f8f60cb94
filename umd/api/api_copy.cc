// Copies, fills and copies with reduction.
#include <vector>

#include "umd/api/copies.h"
#include "umd/api/guard.h"
#include "umd/runtime/transfer.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace {

// In a stream's order. What was asked for is part of a capture, also if it is wrong.
template <typename Checked, typename Capture, typename Run>
Status in_stream(Runtime& runtime, orrStream_t stream, const Result<Checked>& checked, Capture&& capture,
                 Run&& run) {
    ORR_TRY(queue, runtime.stream(stream));
    if ((*queue)->capturing()) {
        if (!checked) return capture_failure(**queue, checked.error());
        return capture(**queue, *checked);
    }
    if (!checked) return std::unexpected(checked.error());
    ORR_TRY(given, run(*queue, *checked));
    return {};
}

// In the null stream of the device that does it.
template <typename Run>
Status copy_on(Runtime& runtime, std::optional<int> device, Run&& run) {
    ORR_TRY(context, runtime.context(device.value_or(current_device())));
    ORR_TRY(stream, (*context)->null_stream());
    ORR_TRY(copied, run(*stream));
    return (*stream)->synchronize();
}

Status copy_now(Runtime& runtime, const Result<Transfer>& transfer) {
    if (!transfer) return std::unexpected(transfer.error());
    return copy_on(runtime, executing_device(runtime, *transfer),
                   [&](const auto& stream) { return copy_async(runtime, *transfer, stream); });
}

Status copy_in(Runtime& runtime, const Result<Transfer>& transfer, orrStream_t stream) {
    return in_stream(
        runtime, stream, transfer,
        [&](Stream& queue, const Transfer& good) { return capture_copy(runtime, queue, good); },
        [&](const auto& queue, const Transfer& good) { return copy_async(runtime, good, queue); });
}

Status fill_now(Runtime& runtime, const Result<CheckedFill>& fill) {
    if (!fill) return std::unexpected(fill.error());
    const int owner = fill->memory.device;
    ORR_TRY(context, runtime.context(owner == kHost ? current_device() : owner));
    ORR_TRY(stream, (*context)->null_stream());
    ORR_TRY(index, fill_async(runtime, *fill, *stream));
    return (*stream)->wait(*index);
}

Status fill_in(Runtime& runtime, const Result<CheckedFill>& fill, orrStream_t stream) {
    return in_stream(
        runtime, stream, fill,
        [&](Stream& queue, const CheckedFill& good) { return capture_fill(runtime, queue, good); },
        [&](const auto& queue, const CheckedFill& good) { return fill_async(runtime, good, queue); });
}

// `count` values of a type.
template <typename Value>
Result<CheckedFill> check_values(Runtime& runtime, void* dst, Value value, std::size_t count) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeof value, &bytes)) {
        return fail(orrErrorInvalidValue, "{} values of {} bytes are more than a memset can write", count,
                    sizeof value);
    }
    return check_fill(runtime, dst, value, sizeof value, 0, bytes, 1);
}

template <typename Value>
orrError_t set_values(void* dst, Value value, std::size_t count) {
    return with_runtime(
        [&](Runtime& runtime) { return fill_now(runtime, check_values(runtime, dst, value, count)); });
}

template <typename Value>
orrError_t set_values(void* dst, Value value, std::size_t count, orrStream_t stream) {
    return with_runtime(
        [&](Runtime& runtime) { return fill_in(runtime, check_values(runtime, dst, value, count), stream); });
}

Result<Transfer> check_rows(Runtime& runtime, void* dst, std::size_t dst_pitch, const void* src,
                            std::size_t src_pitch, std::size_t width, std::size_t height,
                            orrMemcpyKind kind) {
    const Box box{.width = width, .height = height, .dst_pitch = dst_pitch, .src_pitch = src_pitch};
    return check_box(runtime, dst, src, box, kind);
}

Result<std::vector<Transfer>> check_batch(Runtime& runtime, void* const* dsts, const void* const* srcs,
                                          const std::size_t* bytes, std::size_t count, unsigned flags) {
    std::vector<Transfer> transfers;
    ORR_TRY(known, check_flags(flags, 0, "orrMemcpyBatchAsync"));
    if (count == 0) return transfers;
    if (dsts == nullptr) return std::unexpected(null_argument("dsts").error());
    if (srcs == nullptr) return std::unexpected(null_argument("srcs").error());
    if (bytes == nullptr) return std::unexpected(null_argument("bytes").error());
    for (std::size_t i = 0; i < count; ++i) {
        auto transfer = check_transfer(runtime, dsts[i], srcs[i], bytes[i], orrMemcpyDefault);
        if (!transfer) {
            return fail(transfer.error().code, "copy {} of {}: {}", i, count, transfer.error().text);
        }
        transfers.push_back(*transfer);
    }
    return transfers;
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrMemcpy(void* dst, const void* src, size_t bytes, orrMemcpyKind kind) {
    return with_runtime(
        [&](Runtime& runtime) { return copy_now(runtime, check_transfer(runtime, dst, src, bytes, kind)); });
}

orrError_t orrMemcpyAsync(void* dst, const void* src, size_t bytes, orrMemcpyKind kind, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) {
        return copy_in(runtime, check_transfer(runtime, dst, src, bytes, kind), stream);
    });
}

orrError_t orrMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                       size_t height, orrMemcpyKind kind) {
    return with_runtime([&](Runtime& runtime) {
        return copy_now(runtime, check_rows(runtime, dst, dst_pitch, src, src_pitch, width, height, kind));
    });
}

orrError_t orrMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                            size_t height, orrMemcpyKind kind, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) {
        return copy_in(runtime, check_rows(runtime, dst, dst_pitch, src, src_pitch, width, height, kind),
                       stream);
    });
}

orrError_t orrMemcpy3D(const orrMemcpy3DParams* params) {
    return with_runtime([&](Runtime& runtime) { return copy_now(runtime, check_box(runtime, params)); });
}

orrError_t orrMemcpy3DAsync(const orrMemcpy3DParams* params, orrStream_t stream) {
    return with_runtime(
        [&](Runtime& runtime) { return copy_in(runtime, check_box(runtime, params), stream); });
}

orrError_t orrMemcpyND(const orrMemcpyNDParams* params) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(copy, check_box_copy(runtime, params));
        return copy_on(runtime, executing_device(runtime, copy->transfer),
                       [&](const auto& stream) { return copy_box_async(runtime, *copy, stream); });
    });
}

orrError_t orrMemcpyNDAsync(const orrMemcpyNDParams* params, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) {
        return in_stream(
            runtime, stream, check_box_copy(runtime, params),
            [&](Stream& queue, const BoxCopy& good) { return capture_box_copy(runtime, queue, good); },
            [&](const auto& queue, const BoxCopy& good) { return copy_box_async(runtime, good, queue); });
    });
}

orrError_t orrMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* bytes, size_t count,
                               unsigned flags, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) {
        return in_stream(
            runtime, stream, check_batch(runtime, dsts, srcs, bytes, count, flags),
            [&](Stream& queue, const std::vector<Transfer>& transfers) -> Status {
                for (const Transfer& transfer : transfers) {
                    ORR_TRY(captured, capture_copy(runtime, queue, transfer));
                }
                return {};
            },
            [&](const auto& queue, const std::vector<Transfer>& transfers) {
                return copy_batch(runtime, transfers, queue);
            });
    });
}

orrError_t orrMemset(void* dst, int value, size_t bytes) {
    return set_values(dst, static_cast<std::uint8_t>(value), bytes);
}

orrError_t orrMemsetAsync(void* dst, int value, size_t bytes, orrStream_t stream) {
    return set_values(dst, static_cast<std::uint8_t>(value), bytes, stream);
}

orrError_t orrMemsetD16(void* dst, uint16_t value, size_t count) {
    return set_values(dst, value, count);
}

orrError_t orrMemsetD16Async(void* dst, uint16_t value, size_t count, orrStream_t stream) {
    return set_values(dst, value, count, stream);
}

orrError_t orrMemsetD32(void* dst, uint32_t value, size_t count) {
    return set_values(dst, value, count);
}

orrError_t orrMemsetD32Async(void* dst, uint32_t value, size_t count, orrStream_t stream) {
    return set_values(dst, value, count, stream);
}

orrError_t orrMemsetD64(void* dst, uint64_t value, size_t count) {
    return set_values(dst, value, count);
}

orrError_t orrMemsetD64Async(void* dst, uint64_t value, size_t count, orrStream_t stream) {
    return set_values(dst, value, count, stream);
}

orrError_t orrMemset2D(void* dst, size_t pitch, int value, size_t width, size_t height) {
    return with_runtime([&](Runtime& runtime) {
        return fill_now(runtime,
                        check_fill(runtime, dst, static_cast<std::uint8_t>(value), 1, pitch, width, height));
    });
}

orrError_t orrMemset2DAsync(void* dst, size_t pitch, int value, size_t width, size_t height,
                            orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) {
        return fill_in(runtime,
                       check_fill(runtime, dst, static_cast<std::uint8_t>(value), 1, pitch, width, height),
                       stream);
    });
}

orrError_t orrMemcpyReduce(void* dst, const void* src, size_t count, orrDataType type, orrReduceOp op,
                           unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(reduction, check_reduction(runtime, dst, src, count, type, op, flags));
        ORR_TRY(context, runtime.context(executing_device(*reduction).value_or(current_device())));
        ORR_TRY(stream, (*context)->null_stream());
        ORR_TRY(index, reduce_async(runtime, *reduction, *stream));
        return (*stream)->wait(*index);
    });
}

orrError_t orrMemcpyReduceAsync(void* dst, const void* src, size_t count, orrDataType type, orrReduceOp op,
                                unsigned flags, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) {
        return in_stream(
            runtime, stream, check_reduction(runtime, dst, src, count, type, op, flags),
            [&](Stream& queue, const Reduction& good) { return capture_reduction(runtime, queue, good); },
            [&](const auto& queue, const Reduction& good) { return reduce_async(runtime, good, queue); });
    });
}

}  // namespace orrery::umd::api
