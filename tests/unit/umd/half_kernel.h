// What half_kernel.cc and its callers agree on.
#pragma once

namespace orrery::umd::test {

struct ScaleArgs {
    void* halves;  // one more than count: the factor comes last
    void* brains;
    float factor;
    unsigned count;
};

}  // namespace orrery::umd::test
