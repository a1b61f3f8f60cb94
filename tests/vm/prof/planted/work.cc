#include "tests/vm/prof/planted/work.h"

#include <orrery/embedded_kernel.hpp>

ORR_EMBEDDED_KERNEL(planted_kernels);

namespace planted {

std::uint32_t cores() {
    return orrery::device_properties(orrery::current_device()).vector_cores;
}

Work::Work(std::size_t size, bool scattered)
    : bytes(size), library(planted_kernels_image()), in(size / sizeof(float)), out(size / sizeof(float)) {
    library.preload();
    if (scattered) {
        // A linear congruence whose period is a power of two: all of them.
        std::vector<std::uint32_t> values(in.size());
        for (std::uint32_t i = 0; i < values.size(); ++i)
            values[i] = (i * 1664525u + 1013904223u) % static_cast<std::uint32_t>(values.size());
        orrery::copy(in.data(), values.data(), bytes);
    } else {
        orrery::fill(in.data(), 0, bytes);
    }
    orrery::fill(out.data(), 0, bytes);
}

void Work::launch(const char* kernel, const Shape& shape, const orrery::Stream& stream) const {
    launch(kernel, shape, {out.data(), in.data(), in.size(), 0, 0}, stream);
}

void Work::launch(const char* kernel, const Shape& shape, const PlantedArgs& args,
                  const orrery::Stream& stream) const {
    PlantedArgs all = args;
    all.rounds = shape.rounds;
    all.skew = shape.skew;
    orrery::launch(library.function(kernel), {shape.groups, 1, 1}, {1, 1, 1}, all, 0, stream);
}

}  // namespace planted
