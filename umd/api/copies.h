// What several calls take as the shape of a copy.
#pragma once

#include "umd/api/structs.h"
#include "umd/runtime/transfer.h"

namespace orrery::umd {

inline Result<Transfer> check_box(Runtime& runtime, const orrMemcpy3DParams* params) {
    ORR_TRY(given, read_struct(params, "orrMemcpy3DParams"));
    if (given->reserved != 0) return fail(orrErrorInvalidValue, "orrMemcpy3DParams::reserved is not zero");
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

}  // namespace orrery::umd
