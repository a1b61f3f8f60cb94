#include "tools/bench/guest/sgemm.h"

#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.hpp>

#include <cstddef>
#include <span>
#include <stdexcept>

#include "tools/bench/guest/clock.h"
#include "tools/bench/guest/sgemm_args.h"

ORR_EMBEDDED_KERNEL(bench_kernels);

namespace orrery::bench {
namespace {

// Small whole numbers: their products and sums are exact in any order.
float a_at(std::size_t i) {
    return static_cast<float>(i % 7);
}
float b_at(std::size_t i) {
    return static_cast<float>(i % 5);
}

}  // namespace

std::vector<double> sgemm_times(int rounds) {
    constexpr unsigned n = kSgemmSize, block = 8;
    constexpr std::size_t elements = std::size_t{n} * n, bytes = elements * sizeof(float);
    const auto image = bench_kernels_image();
    orrModule_t module{};
    check(orrModuleLoadData(&module, image.data(), image.size()));
    orrFunction_t function{};
    check(orrModuleGetFunction(&function, module, "sgemm"));
    Stream stream;
    PinnedArray<float> a(elements), b(elements), c(elements);
    DeviceArray<float> card_a(elements), card_b(elements), card_c(elements);
    for (std::size_t i = 0; i < elements; ++i) {
        a.data()[i] = a_at(i);
        b.data()[i] = b_at(i);
    }
    check(orrMemcpy(card_a.data(), a.data(), bytes, orrMemcpyHostToDevice));
    check(orrMemcpy(card_b.data(), b.data(), bytes, orrMemcpyHostToDevice));
    const SgemmArgs args{card_a.data(), card_b.data(), card_c.data(), n};
    const auto right = [&] {
        for (unsigned row = 0; row < n; ++row) {
            for (unsigned column = 0; column < n; ++column) {
                float sum = 0;
                for (unsigned k = 0; k < n; ++k)
                    sum += a_at(row * n + k) * b_at(k * n + column);
                if (c.data()[row * n + column] != sum) return false;
            }
        }
        return true;
    };
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
        check(orrMemset(card_c.data(), 0xff, bytes));
        const std::int64_t begin = now_ns();
        launch(function, {n / block, n / block, 1}, {block, block, 1}, args, 0, stream);
        check(orrMemcpyAsync(c.data(), card_c.data(), bytes, orrMemcpyDeviceToHost, stream.handle()));
        stream.synchronize();
        times.push_back(static_cast<double>(now_ns() - begin));
        if (!right()) throw std::runtime_error("the matrix product is wrong");
    }
    check(orrModuleUnload(module));
    return times;
}

}  // namespace orrery::bench
