// Which part of the elements a work-group works on, for kernels.
#pragma once

#include <orrery/kernel.h>

namespace sample {

struct Part {
    uint64_t begin, end;
};

// The part of `count` elements that belongs to this group; the parts are alike but for the last.
inline Part my_part(uint64_t count) {
    const uint64_t each = (count + orr::grid_x() - 1) / orr::grid_x();
    const uint64_t begin = each * orr::group_x();
    const uint64_t end = begin + each;
    return {begin < count ? begin : count, end < count ? end : count};
}

}  // namespace sample
