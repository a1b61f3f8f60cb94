// embedding: sums of table rows in bags of variable length, checked against the CPU.
#include <fmt/format.h>
#include <orrery/embedded_kernel.hpp>

#include <algorithm>

#include "umd/samples/embedding/kernels.h"
#include "umd/samples/support/sample.h"

ORR_EMBEDDED_KERNEL(embedding_kernels);

namespace {

using namespace orrery::sample;

constexpr const char* kHelp =
    "usage: embedding [--quick] [--exact]\n"
    "Sums rows of a table, picked by index in bags of variable length, on the first Orrery card, and checks "
    "the "
    "sums against the CPU.\n"
    "\n"
    "  --quick     fewer bags\n"
    "  --exact     work queued behind one release: the card\'s times to the picosecond, no others\n"
    "Exit status: 0 all correct, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

int run(bool quick) {
    constexpr std::uint32_t kRows = 20000, kWidth = 96, kLongest = 200, kGroups = 16;
    const std::uint32_t bags = quick ? 200 : 4000;
    const std::vector<float> table = random_floats(std::size_t{kRows} * kWidth, 1);
    // Lengths from 0 on, most of them short and a few long.
    std::vector<std::uint32_t> offsets = {0};
    for (const std::uint32_t draw : random_integers(bags, kLongest, 2))
        offsets.push_back(offsets.back() + draw * draw / kLongest);
    const std::vector<std::uint32_t> indices = random_integers(offsets.back(), kRows, 3);

    const auto card_table = to_card<float>(table);
    const auto card_indices = to_card<std::uint32_t>(indices), card_offsets = to_card<std::uint32_t>(offsets);
    const orrery::DeviceArray<float> out(std::size_t{bags} * kWidth);
    const orrery::DeviceArray<std::uint32_t> next(1);
    orrery::fill(next.data(), 0, next.bytes());
    const orrery::Stream stream;
    const orrery::Library library(embedding_kernels_image());
    library.preload();

    Row row{.name = "embedding bags",
            .size = fmt::format("{} bags, {} rows of {}", bags, indices.size(), kWidth)};
    timed(row, stream, [&] {
        const EmbeddingArgs args{card_table.data(),
                                 card_indices.data(),
                                 card_offsets.data(),
                                 out.data(),
                                 next.data(),
                                 bags,
                                 kWidth};
        orrery::launch(library.function("embedding"), {kGroups, 1, 1}, {1, 1, 1}, args, 0, stream);
    });
    row.bytes = 4.0 * (static_cast<double>(indices.size()) + bags) * kWidth;
    row.flops = static_cast<double>(indices.size()) * kWidth;

    std::vector<float> want(out.size());
    for (std::size_t bag = 0; bag < bags; ++bag)
        for (std::size_t i = offsets[bag]; i < offsets[bag + 1]; ++i)
            for (std::size_t at = 0; at < kWidth; ++at)
                want[bag * kWidth + at] += table[std::size_t{indices[i]} * kWidth + at];
    judge(row, from_card(out), want, 0);  // the same additions in the same order
    return print("Sums of table rows, in bags of variable length:", {row});
}

}  // namespace

int main(int argc, char** argv) {
    return run_main(argc, argv, kHelp, run);
}
