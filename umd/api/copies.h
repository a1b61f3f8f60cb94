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

inline Result<Reduction> check_reduction(Runtime& runtime, void* dst, const void* src, std::size_t count,
                                         orrDataType type, orrReduceOp op, unsigned flags) {
    ORR_TRY(known, check_flags(flags, 0, "a copy with reduction"));
    return check_reduction(runtime, dst, src, count, type, op);
}

}  // namespace orrery::umd
