// vector_basics: saxpy, reduction, scan, transpose, softmax and layer norm as vector kernels, each checked
// against the CPU.
#include <fmt/format.h>
#include <orrery/embedded_kernel.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "umd/samples/support/sample.h"
#include "umd/samples/vector_basics/kernels.h"

ORR_EMBEDDED_KERNEL(vector_basics_kernels);

namespace {

using namespace orrery::sample;

constexpr const char* kHelp =
    "usage: vector_basics [--quick] [--exact]\n"
    "Runs the kernels that everybody writes first on the first Orrery card, and checks them against the "
    "CPU.\n"
    "\n"
    "  --quick     small sizes\n"
    "  --exact     work queued behind one release: the card\'s times to the picosecond, no others\n"
    "Exit status: 0 all correct, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

// Each is the work of one core for long enough that what a group costs does not show.
constexpr std::uint32_t kGroups = 32;

class Basics {
  public:
    explicit Basics(bool quick)
        // No multiples of anything: last strips are short ones, and rows are left over.
        : count_((quick ? 256 * 1024 : 4 * 1024 * 1024) + 37),
          rows_(quick ? 67 : 515),
          columns_(quick ? 1000 : 2000),
          x_(random_floats(count_, 1)),
          matrix_(random_floats(std::size_t{rows_} * columns_, 2)),
          card_x_(to_card<float>(x_)),
          card_matrix_(to_card<float>(matrix_)),
          card_out_(matrix_.size()) {
        library_.preload();
    }

    std::vector<Row> run() { return {saxpy(), reduce(), scan(), transpose(), softmax(), layer_norm()}; }

  private:
    template <typename Args>
    void start(const char* kernel, std::uint32_t groups, const Args& args) const {
        orrery::launch(library_.function(kernel), {groups, 1, 1}, {1, 1, 1}, args, 0, stream_);
    }
    std::string matrix_size() const { return fmt::format("{} x {}", rows_, columns_); }

    Row saxpy() const {
        Row row{.name = "saxpy", .size = fmt::format("{}", count_)};
        std::vector<float> want = random_floats(count_, 3);
        const auto card_y = to_card<float>(want);
        timed(row, stream_,
              [&] { start("saxpy", kGroups, SaxpyArgs{card_x_.data(), card_y.data(), count_, 1.5f, 0}); });
        for (std::size_t i = 0; i < count_; ++i)
            want[i] += 1.5f * x_[i];
        row.bytes = 12.0 * static_cast<double>(count_);
        row.flops = 2.0 * static_cast<double>(count_);
        judge(row, from_card(card_y), want, 1e-6);
        return row;
    }

    Row reduce() const {
        Row row{.name = "reduction", .size = fmt::format("{}", count_)};
        const orrery::DeviceArray<float> partial(kGroups), total(1);
        timed(row, stream_, [&] {
            start("reduce", kGroups, ReduceArgs{card_x_.data(), partial.data(), count_});
            start("reduce", 1, ReduceArgs{partial.data(), total.data(), kGroups});
        });
        row.bytes = 4.0 * static_cast<double>(count_);
        row.flops = static_cast<double>(count_);
        const double want = std::accumulate(x_.begin(), x_.end(), 0.0);
        const float rounded = static_cast<float>(want);
        judge(row, from_card(total), {&rounded, 1}, 1e-5);
        return row;
    }

    Row scan() const {
        Row row{.name = "scan", .size = fmt::format("{}", count_)};
        std::vector<std::uint32_t> want = random_integers(count_, 1000, 4);
        const auto in = to_card<std::uint32_t>(want);
        const orrery::DeviceArray<std::uint32_t> sums(count_), totals(kGroups);
        const ScanArgs args{in.data(), sums.data(), totals.data(), count_, kGroups, 0};
        timed(row, stream_, [&] {
            start("scan_parts", kGroups, args);
            start("scan_totals", 1, args);
            start("scan_add", kGroups, args);
        });
        row.bytes = 16.0 * static_cast<double>(count_);
        std::partial_sum(want.begin(), want.end(), want.begin());
        const std::vector<std::uint32_t> got = from_card(sums);
        const auto wrong = std::mismatch(want.begin(), want.end(), got.begin());
        row.correct = wrong.first == want.end();
        if (!row.correct) {
            row.difference = fmt::format("element {}: {}, not {}", wrong.first - want.begin(), *wrong.second,
                                         *wrong.first);
        }
        return row;
    }

    Row transpose() const {
        Row row{.name = "transpose", .size = matrix_size()};
        timed(row, stream_, [&] {
            start("transpose", kGroups,
                  TransposeArgs{card_matrix_.data(), card_out_.data(), rows_, columns_});
        });
        row.bytes = 8.0 * static_cast<double>(matrix_.size());
        std::vector<float> want(matrix_.size());
        for (std::size_t r = 0; r < rows_; ++r)
            for (std::size_t c = 0; c < columns_; ++c)
                want[c * rows_ + r] = matrix_[r * columns_ + c];
        judge(row, from_card(card_out_), want, 0);
        return row;
    }

    Row softmax() const {
        Row row{.name = "softmax", .size = matrix_size()};
        timed(row, stream_, [&] {
            start("softmax", kGroups, SoftmaxArgs{card_matrix_.data(), card_out_.data(), rows_, columns_});
        });
        row.bytes = 8.0 * static_cast<double>(matrix_.size());
        std::vector<float> want(matrix_.size());
        for_rows(
            [&](const float* in, float* out) {
                const double top = *std::max_element(in, in + columns_);
                double sum = 0;
                for (std::size_t i = 0; i < columns_; ++i)
                    sum += std::exp(in[i] - top);
                for (std::size_t i = 0; i < columns_; ++i)
                    out[i] = static_cast<float>(std::exp(in[i] - top) / sum);
            },
            want);
        judge(row, from_card(card_out_), want, 1e-6);
        return row;
    }

    Row layer_norm() const {
        Row row{.name = "layer norm", .size = matrix_size()};
        const std::vector<float> scale = random_floats(columns_, 5), shift = random_floats(columns_, 6);
        const auto card_scale = to_card<float>(scale), card_shift = to_card<float>(shift);
        constexpr float kEpsilon = 1e-5f;
        timed(row, stream_, [&] {
            start("layer_norm", kGroups,
                  LayerNormArgs{card_matrix_.data(), card_scale.data(), card_shift.data(), card_out_.data(),
                                rows_, columns_, kEpsilon, 0});
        });
        row.bytes = 8.0 * static_cast<double>(matrix_.size());
        std::vector<float> want(matrix_.size());
        for_rows(
            [&](const float* in, float* out) {
                double mean = 0, variance = 0;
                for (std::size_t i = 0; i < columns_; ++i)
                    mean += in[i];
                mean /= columns_;
                for (std::size_t i = 0; i < columns_; ++i)
                    variance += (in[i] - mean) * (in[i] - mean);
                const double factor = 1 / std::sqrt(variance / columns_ + kEpsilon);
                for (std::size_t i = 0; i < columns_; ++i)
                    out[i] = static_cast<float>((in[i] - mean) * factor * scale[i] + shift[i]);
            },
            want);
        judge(row, from_card(card_out_), want, 1e-5);
        return row;
    }

    template <typename Reference>
    void for_rows(Reference&& reference, std::vector<float>& want) const {
        for (std::size_t row = 0; row < rows_; ++row)
            reference(matrix_.data() + row * columns_, want.data() + row * columns_);
    }

    std::size_t count_;
    std::uint32_t rows_, columns_;
    std::vector<float> x_, matrix_;
    orrery::Stream stream_;
    orrery::Library library_{vector_basics_kernels_image()};
    orrery::DeviceArray<float> card_x_, card_matrix_, card_out_;
};

int run(bool quick) {
    return print("First kernels, one hart a work-group, loops in vector code:", Basics(quick).run());
}

}  // namespace

int main(int argc, char** argv) {
    return run_main(argc, argv, kHelp, run);
}
