// overlap: chunks of data go to the card, are worked on and come back: in one stream, in several streams
// whose copies and kernels overlap, and as a graph that was captured from those and is launched as a whole.
#include <fmt/format.h>
#include <orrery/embedded_kernel.hpp>

#include <array>

#include "umd/samples/overlap/kernels.h"
#include "umd/samples/support/sample.h"

ORR_EMBEDDED_KERNEL(overlap_kernels);

namespace {

using namespace orrery::sample;

constexpr const char* kHelp =
    "usage: overlap [--quick] [--exact]\n"
    "Copies to the card, kernels and copies back: one after the other, overlapped by streams, and as a "
    "captured "
    "graph.\n"
    "\n"
    "  --quick     smaller chunks\n"
    "  --exact     work queued behind one release: the card\'s times to the picosecond, no others\n"
    "Exit status: 0 all correct, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

constexpr std::size_t kChunks = 8, kStreams = 3;
constexpr std::uint32_t kGroups = 8;
constexpr std::uint32_t kDegree = 32;

class Pipeline {
  public:
    explicit Pipeline(std::size_t count)
        : count_(count),
          input_(random_floats(count * kChunks, 1)),
          host_(input_.size()),
          card_(input_.size()) {
        library_.preload();
        want_.reserve(input_.size());
        for (const float x : input_) {
            float sum = 1.0f;
            for (std::uint32_t step = 0; step < kDegree; ++step)
                sum = sum * x + 0.5f;
            want_.push_back(sum);
        }
    }

    Row run(const char* name, std::size_t streams) {
        Row row = begin(name);
        timed(row, main_, [&] { enqueue(streams); });
        return end(std::move(row));
    }

    // The same work, captured once and launched twice: the second launch is the one that is measured.
    Row run_graph(const char* name, std::size_t streams) {
        orrery::Graph::begin_capture(main_);
        enqueue(streams);
        const orrery::Graph graph = orrery::Graph::end_capture(main_);
        const orrery::GraphExec exec(graph);
        Row row = begin(name);
        exec.launch(main_);
        main_.synchronize();
        row = begin(name);
        timed(row, main_, [&] { exec.launch(main_); });
        return end(std::move(row));
    }

  private:
    void enqueue(std::size_t streams) {
        start_.record(main_);
        for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
            const orrery::Stream& stream = streams_[chunk % streams];
            if (chunk < streams) stream.wait(start_);
            float* const host = host_.data() + chunk * count_;
            float* const card = card_.data() + chunk * count_;
            orrery::copy(card, host, count_ * sizeof(float), stream);
            orrery::launch(library_.function("polynomial"), {kGroups, 1, 1}, {1, 1, 1},
                           PolynomialArgs{card, count_, kDegree, 0}, 0, stream);
            orrery::copy(host, card, count_ * sizeof(float), stream);
        }
        for (std::size_t i = 0; i < streams; ++i) {
            done_[i].record(streams_[i]);
            main_.wait(done_[i]);
        }
    }

    Row begin(const char* name) {
        std::copy(input_.begin(), input_.end(), host_.begin());
        return {.name = name, .size = fmt::format("{} x {}", kChunks, count_)};
    }
    Row end(Row row) const {
        row.bytes = 2.0 * static_cast<double>(host_.bytes());
        row.flops = 2.0 * kDegree * static_cast<double>(host_.size());
        judge(row, {host_.data(), host_.size()}, want_, 1e-6);
        return row;
    }

    std::size_t count_;
    std::vector<float> input_, want_;
    orrery::PinnedArray<float> host_;
    orrery::DeviceArray<float> card_;
    orrery::Library library_{overlap_kernels_image()};
    orrery::Stream main_;
    std::array<orrery::Stream, kStreams> streams_;
    orrery::Event start_;
    std::array<orrery::Event, kStreams> done_;
};

int run(bool quick) {
    Pipeline pipeline(quick ? 64 * 1024 : 256 * 1024);
    std::vector<Row> rows;
    rows.push_back(pipeline.run("one stream", 1));
    rows.push_back(pipeline.run("three streams", kStreams));
    rows.push_back(pipeline.run_graph("captured graph", kStreams));
    const double gain = rows[0].model_ns / rows[1].model_ns;
    return print("Chunks of floats there, through a kernel, and back (GB/s: over PCIe):", rows,
                 {fmt::format("Overlapping saves the card {:.0f} % of the time.", 100 * (1 - 1 / gain))});
}

}  // namespace

int main(int argc, char** argv) {
    return run_main(argc, argv, kHelp, run);
}
