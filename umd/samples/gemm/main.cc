// gemm: a matrix product by tiles, checked against the CPU.
#include <fmt/format.h>
#include <orrery/embedded_kernel.hpp>

#include "umd/samples/gemm/kernels.h"
#include "umd/samples/support/sample.h"

ORR_EMBEDDED_KERNEL(gemm_kernels);

namespace {

using namespace orrery::sample;

constexpr const char* kHelp =
    "usage: gemm [--quick] [--exact]\n"
    "Multiplies matrices by tiles on the first Orrery card, and checks the products against the CPU.\n"
    "\n"
    "  --quick     one small product\n"
    "  --exact     work queued behind one release: the card\'s times to the picosecond, no others\n"
    "Exit status: 0 all correct, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

Row product(const orrery::Stream& stream, orrFunction_t kernel, std::uint32_t m, std::uint32_t n,
            std::uint32_t k) {
    const std::vector<float> a = random_floats(std::size_t{m} * k, 1),
                             b = random_floats(std::size_t{k} * n, 2);
    const auto card_a = to_card<float>(a), card_b = to_card<float>(b);
    const orrery::DeviceArray<float> card_c(std::size_t{m} * n);
    Row row{.name = "sgemm", .size = fmt::format("{} x {} x {}", m, n, k)};
    timed(row, stream, [&] {
        const GemmArgs args{card_a.data(), card_b.data(), card_c.data(), m, n, k, 1.0f};
        orrery::launch(kernel, {(m + kGemmRows - 1) / kGemmRows, 1, kGemmColumns}, {1, 1, 1}, args,
                       sizeof(GemmLocal), stream);
    });
    row.flops = 2.0 * m * n * k;
    std::vector<float> want(std::size_t{m} * n);
    std::vector<double> sums(n);
    for (std::size_t r = 0; r < m; ++r) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::size_t s = 0; s < k; ++s)
            for (std::size_t c = 0; c < n; ++c)
                sums[c] += double{a[r * k + s]} * b[s * n + c];
        for (std::size_t c = 0; c < n; ++c)
            want[r * n + c] = static_cast<float>(sums[c]);
    }
    // Each sum is of k terms up to 1, rounded k times.
    judge(row, from_card(card_c), want, 1e-7 * k);
    return row;
}

int run(bool quick) {
    const orrery::Stream stream;
    const orrery::Library library(gemm_kernels_image());
    library.preload();
    const orrFunction_t kernel = library.function("gemm");
    std::vector<Row> rows = {product(stream, kernel, 100, 130, 70)};
    if (!quick) rows.push_back(product(stream, kernel, 512, 512, 512));
    const orrDeviceProp card = orrery::device_properties(0);
    return print(fmt::format("Matrix product by tiles of {} rows, on {}:", kGemmRows, card.name), rows);
}

}  // namespace

int main(int argc, char** argv) {
    return run_main(argc, argv, kHelp, run);
}
