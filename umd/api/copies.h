// What several calls take as the shape of a copy.
#pragma once

#include "umd/api/structs.h"
#include "umd/runtime/transfer.h"

namespace orrery::umd {

inline Result<Transfer> check_box(Runtime& runtime, const orrMemcpy3DParams* params) {
    ORR_TRY(given, read_struct(params, "orrMemcpy3DParams"));
    if (given->reserved != 0) return fail(orrErrorInvalidValue, "orrMemcpy3DParams::reserved is not zero");
    if (given->depth == 0)
        return fail(orrErrorInvalidValue, "orrMemcpy3DParams::depth is 0: it counts planes, 1 for rows only");
    return check_box(runtime, given->dst, given->src,
                     Box{.width = given->width,
                         .height = given->height,
                         .depth = given->depth,
                         .dst_pitch = given->dst_pitch,
                         .dst_height = given->dst_height,
                         .src_pitch = given->src_pitch,
                         .src_height = given->src_height},
                     given->kind);
}

inline Result<BoxCopy> check_box_copy(Runtime& runtime, const orrMemcpyNDParams* params) {
    ORR_TRY(given, read_struct(params, "orrMemcpyNDParams"));
    if (given->reserved != 0) return fail(orrErrorInvalidValue, "orrMemcpyNDParams::reserved is not zero");
    if (given->dims == 0 || given->dims > orrMemcpyNDMaxDims) {
        return fail(orrErrorInvalidValue, "orrMemcpyNDParams::dims is {}: at least 1, at most {}",
                    given->dims, orrMemcpyNDMaxDims);
    }
    const auto more = static_cast<std::size_t>(given->dims - 1);
    // Who fills in more than dims says has likely forgotten to raise it.
    for (std::size_t i = more; i < orrMemcpyNDMaxDims - 1; ++i) {
        if ((given->extent[i + 1] | given->dst_stride[i] | given->src_stride[i]) != 0) {
            return fail(orrErrorInvalidValue,
                        "orrMemcpyNDParams::dims is {}, but an extent or stride behind that is not 0",
                        given->dims);
        }
    }
    return check_box_copy(runtime, given->dst, given->src,
                          BoxSize{.width = given->extent[0],
                                  .counts = std::span(given->extent).subspan(1, more),
                                  .dst_strides = std::span(given->dst_stride).first(more),
                                  .src_strides = std::span(given->src_stride).first(more)},
                          given->kind);
}

inline Result<Reduction> check_reduction(Runtime& runtime, void* dst, const void* src, std::size_t count,
                                         orrDataType type, orrReduceOp op, unsigned flags) {
    ORR_TRY(known, check_flags(flags, 0, "a copy with reduction"));
    return check_reduction(runtime, dst, src, count, type, op);
}

}  // namespace orrery::umd
