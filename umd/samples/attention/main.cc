// attention: softmax(Q K^T) V in one kernel, in the manner of FlashAttention, beside the chain of three
// kernels whose scores go through memory. Both are checked against the CPU.
#include <fmt/format.h>
#include <orrery/embedded_kernel.hpp>

#include <algorithm>
#include <cmath>

#include "umd/samples/attention/kernels.h"
#include "umd/samples/gemm/kernels.h"
#include "umd/samples/support/sample.h"
#include "umd/samples/vector_basics/kernels.h"

ORR_EMBEDDED_KERNEL(attention_kernels);
ORR_EMBEDDED_KERNEL(gemm_kernels);
ORR_EMBEDDED_KERNEL(vector_basics_kernels);

namespace {

using namespace orrery::sample;

constexpr const char* kHelp =
    "usage: attention [--quick] [--exact]\n"
    "Attention on the first Orrery card: fused into one kernel, and as a chain of three. Checked against the "
    "CPU.\n"
    "\n"
    "  --quick     short sequences\n"
    "  --exact     work queued behind one release: the card\'s times to the picosecond, no others\n"
    "Exit status: 0 all correct, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

struct Shape {
    std::uint32_t heads, length, width;
    std::size_t elements() const { return std::size_t{heads} * length * width; }
    std::size_t scores() const { return std::size_t{heads} * length * length; }
    float scale() const { return 1.0f / std::sqrt(static_cast<float>(width)); }
    double flops() const { return 4.0 * static_cast<double>(scores()) * width; }
};

// Each head's `rows` rows as columns.
std::vector<float> turned(const Shape& shape, const std::vector<float>& x, std::size_t rows) {
    std::vector<float> y(x.size());
    const std::size_t columns = std::size_t{shape.length} * shape.width / rows;
    for (std::size_t head = 0; head < shape.heads; ++head) {
        const std::size_t base = head * rows * columns;
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t column = 0; column < columns; ++column)
                y[base + column * rows + row] = x[base + row * columns + column];
    }
    return y;
}

// K lies as heads x width x length.
std::vector<float> reference(const Shape& shape, const std::vector<float>& q, const std::vector<float>& k,
                             const std::vector<float>& v) {
    std::vector<float> out(shape.elements());
    std::vector<double> weights(shape.length), row(shape.width);
    for (std::size_t head = 0; head < shape.heads; ++head) {
        const std::size_t base = head * shape.length * shape.width;
        for (std::size_t i = 0; i < shape.length; ++i) {
            std::fill(weights.begin(), weights.end(), 0.0);
            for (std::size_t at = 0; at < shape.width; ++at)
                for (std::size_t j = 0; j < shape.length; ++j)
                    weights[j] += double{q[base + i * shape.width + at]} * k[base + at * shape.length + j];
            const double top = *std::max_element(weights.begin(), weights.end());
            double sum = 0;
            for (double& weight : weights)
                sum += weight = std::exp((weight - top) * shape.scale());
            std::fill(row.begin(), row.end(), 0.0);
            for (std::size_t j = 0; j < shape.length; ++j)
                for (std::size_t at = 0; at < shape.width; ++at)
                    row[at] += weights[j] * v[base + j * shape.width + at];
            for (std::size_t at = 0; at < shape.width; ++at)
                out[base + i * shape.width + at] = static_cast<float>(row[at] / sum);
        }
    }
    return out;
}

std::uint32_t parts(std::uint32_t count, std::uint32_t each) {
    return (count + each - 1) / each;
}

int run(bool quick) {
    // No multiple of what the kernels take at a time.
    const Shape shape = quick ? Shape{4, 300, 64} : Shape{8, 500, 64};
    const std::vector<float> q = random_floats(shape.elements(), 1), k = random_floats(shape.elements(), 2),
                             v = random_floats(shape.elements(), 3);
    const std::vector<float> want = reference(shape, q, k, v);
    const auto card_q = to_card<float>(q), card_k = to_card<float>(k), card_v = to_card<float>(v);
    // The fused kernel wants Q and K the other way round.
    const auto turned_q = to_card<float>(turned(shape, q, shape.length)),
               turned_k = to_card<float>(turned(shape, k, shape.width));
    const orrery::DeviceArray<float> out(shape.elements());
    const orrery::Stream stream;
    const std::string size = fmt::format("{} x {} x {}", shape.heads, shape.length, shape.width);
    constexpr double kTolerance = 2e-5;

    const orrery::Library fused(attention_kernels_image());
    fused.preload();
    Row one{.name = "fused", .size = size, .flops = shape.flops()};
    timed(one, stream, [&] {
        const AttentionArgs args{turned_q.data(), turned_k.data(), card_v.data(), out.data(),
                                 shape.length,    shape.width,     shape.scale(), 0};
        orrery::launch(fused.function("attention"), {parts(shape.length, kAttentionQueries), shape.heads, 1},
                       {1, 1, 1}, args, sizeof(AttentionLocal), stream);
    });
    judge(one, turned(shape, from_card(out), shape.width), want, kTolerance);

    orrery::fill(out.data(), 0, out.bytes());
    const orrery::Library gemm(gemm_kernels_image()), basics(vector_basics_kernels_image());
    gemm.preload();
    basics.preload();
    const orrery::DeviceArray<float> scores(shape.scores());
    Row chain{.name = "three kernels", .size = size, .flops = shape.flops()};
    timed(chain, stream, [&] {
        const orrDim3 grid{parts(shape.length, kGemmRows), shape.heads, kGemmColumns};
        const GemmArgs first{card_q.data(), card_k.data(), scores.data(), shape.length,
                             shape.length,  shape.width,   shape.scale()};
        orrery::launch(gemm.function("gemm"), grid, {1, 1, 1}, first, sizeof(GemmLocal), stream);
        const std::uint32_t rows = shape.heads * shape.length;
        const SoftmaxArgs softmax{scores.data(), scores.data(), rows, shape.length};
        orrery::launch(basics.function("softmax"), {std::min(rows, 64u), 1, 1}, {1, 1, 1}, softmax, 0,
                       stream);
        const GemmArgs second{scores.data(), card_v.data(), out.data(), shape.length,
                              shape.width,   shape.length,  1};
        orrery::launch(gemm.function("gemm"), grid, {1, 1, 1}, second, sizeof(GemmLocal), stream);
    });
    judge(chain, from_card(out), want, kTolerance);

    std::vector<std::string> notes = {fmt::format(
        "The chain's {:.1f} MB of scores go through the card's memory; the fused kernel keeps them "
        "on the core.",
        static_cast<double>(scores.bytes()) / 1e6)};
    if (one.moved > 0) {
        notes.push_back(fmt::format("By the card's counter the chain moves {:.1f} times as many bytes.",
                                    chain.moved / one.moved));
        if (!(one.moved < chain.moved)) {
            one.correct = false;
            one.difference = "moves no less memory than the chain";
        }
    }
    return print("Attention (heads x length x width), in one kernel and in three:", {one, chain}, notes);
}

}  // namespace

int main(int argc, char** argv) {
    return run_main(argc, argv, kHelp, run);
}
