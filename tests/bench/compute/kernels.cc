#include <orrery/kernel.h>

#include "tests/bench/compute/loops.h"
#include "tests/bench/compute/shape.h"

namespace {
constexpr uint64_t kPart = kElements / kGroups;
inline uint64_t first() {
    return orr::group_x() * kPart;
}
}  // namespace

ORR_KERNEL void saxpy(const LoopArgs* args) {
    loops::saxpy(args->y + first(), args->x + first(), kFactor, kPart);
}
ORR_KERNEL void triad(const LoopArgs* args) {
    loops::triad(args->z + first(), args->x + first(), args->y + first(), kFactor, kPart);
}
ORR_KERNEL void sum(const LoopArgs* args) {
    args->z[orr::group_x()] = loops::sum(args->x + first(), kPart);
}
