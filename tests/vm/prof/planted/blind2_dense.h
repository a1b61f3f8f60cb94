// A dense layer, of which several programs of the second blind set are made.
#pragma once

#include <orrery/orrery.hpp>

#include "tests/vm/prof/planted/blind2.h"

namespace planted {

// Rows of a batch, and what the layer makes of each, on the current device.
struct Dense {
    std::uint64_t rows, in, out;
    orrery::DeviceArray<float> x, weight, y;

    Dense(std::uint64_t row_count, std::uint64_t in_width, std::uint64_t out_width)
        : rows(row_count), in(in_width), out(out_width), x(rows * in), weight(in * out), y(rows * out) {}

    void launch(const orrery::Library& library, const orrery::Stream& stream) const {
        launch(library, x.data(), y.data(), stream);
    }
    void launch(const orrery::Library& library, const float* from, float* to,
                const orrery::Stream& stream) const {
        const B2Gemm args{from, weight.data(), to, rows, out, in, 1};
        constexpr std::uint64_t kStrip = 256;  // columns of a group
        const orrDim3 groups{static_cast<std::uint32_t>((rows + kB2GemmRows - 1) / kB2GemmRows), 1,
                             static_cast<std::uint32_t>((out + kStrip - 1) / kStrip)};
        orrery::launch(library.function("b2_gemm"), groups, {1, 1, 1}, args, sizeof(B2GemmLocal), stream);
    }
};

}  // namespace planted
