#include "umd/samples/cholesky/factor.h"

#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <random>
#include <utility>

#include "umd/samples/cholesky/kernels.h"

ORR_EMBEDDED_KERNEL(cholesky_kernels);

namespace {

struct Tile {
    orrTaskData_t data = nullptr;
    orrTask_t writer = 0;
    bool written = false;
};

struct Step {
    orrTask_t task = 0;
    std::vector<orrTask_t> after;  // whose results it needs
};

class Factorisation {
  public:
    Factorisation(const Matrix& matrix, const std::vector<int>& devices, const char* costs, unsigned ahead)
        : matrix_(matrix), devices_(devices.size()), graph_(options(devices, costs, ahead)) {
        const auto image = cholesky_kernels_image();
        for (const char* name : {"potrf", "trsm", "gemm"})
            kernels_.push_back(graph_.kernel(image.data(), image.size(), name));
        for (auto& contents : matrix_.tile) {
            Tile tile;
            tile.data = graph_.data(contents.data(), contents.size() * sizeof(double));
            tiles_.push_back(tile);
        }
    }

    Run run() {
        submit_all();
        // All results go into the last one: if it cannot come, that is known before the rest has ended.
        graph_.wait(steps_.back().task);
        graph_.wait();
        Run run;
        run.factor = matrix_;
        run.devices = devices_;
        report(run);
        for (std::size_t i = 0; i < tiles_.size(); ++i) {
            auto& contents = run.factor.tile[i];
            orrery::TaskGraph::read(contents.data(), tiles_[i].data, contents.size() * sizeof(double));
        }
        return run;
    }

  private:
    enum Kernel : std::size_t { kPotrf, kTrsm, kGemm };

    static orrery::TaskGraph options(const std::vector<int>& devices, const char* costs, unsigned ahead) {
        orrTaskGraphOptions options = ORR_INIT(orrTaskGraphOptions);
        options.devices = devices.data();
        options.device_count = devices.size();
        options.cost_file = costs;
        options.issue_ahead = ahead;
        return orrery::TaskGraph(options);
    }
    Tile& tile(unsigned i, unsigned j) { return tiles_[i * (i + 1) / 2 + j]; }

    // a and b may be null.
    void submit(Kernel kernel, Tile* a, Tile* b, Tile& c) {
        const TileArgs args{nullptr, nullptr, nullptr, matrix_.size, 0};
        std::vector<orrTaskAccess> accesses = {
            orrery::task_access(c.data, orrTaskAccessReadWrite, offsetof(TileArgs, c))};
        Step step;
        const auto reads = [&](Tile* from, std::size_t offset) {
            if (from == nullptr) return;
            accesses.push_back(orrery::task_access(from->data, orrTaskAccessRead, offset));
            if (from->written) step.after.push_back(from->writer);
        };
        reads(a, offsetof(TileArgs, a));
        reads(b, offsetof(TileArgs, b));
        if (c.written) step.after.push_back(c.writer);
        // Eight groups, as many as a card has vector cores; potrf cannot be divided.
        const std::uint32_t items = kernel == kPotrf ? 1 : (matrix_.size + 7) / 8;
        orrTaskDesc desc = ORR_INIT(orrTaskDesc);
        desc.kernel = kernels_[kernel];
        desc.grid = {kernel == kPotrf ? 1u : 8u, 1, 1};
        desc.block = {items, 1, 1};
        desc.args = &args;
        desc.bytes = sizeof(args);
        step.task = graph_.submit(desc, accesses);
        c.writer = step.task;
        c.written = true;
        steps_.push_back(std::move(step));
    }

    void submit_all() {
        const unsigned n = matrix_.tiles;
        for (unsigned k = 0; k < n; ++k) {
            submit(kPotrf, nullptr, nullptr, tile(k, k));
            for (unsigned i = k + 1; i < n; ++i)
                submit(kTrsm, &tile(k, k), nullptr, tile(i, k));
            for (unsigned i = k + 1; i < n; ++i) {
                for (unsigned j = k + 1; j < i; ++j)
                    submit(kGemm, &tile(i, k), &tile(j, k), tile(i, j));
                submit(kGemm, &tile(i, k), nullptr, tile(i, i));
            }
        }
    }
    void report(Run& run) {
        const orrTaskStats stats = graph_.stats();
        run.tasks = stats.done;
        run.transfers = stats.transfers;
        run.transfer_bytes = stats.transfer_bytes;
        run.model_ns = stats.end_ns;
        std::vector<double> path(steps_.size());
        std::map<int, std::vector<std::pair<double, double>>> times;
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            const orrTaskInfo info = graph_.info(steps_[i].task);
            auto card = std::ranges::find(run.cards, info.device, &CardUse::device);
            if (card == run.cards.end()) card = run.cards.insert(card, {info.device, 0, 0});
            ++card->tasks;
            times[info.device].emplace_back(info.start_ns, info.end_ns);
            // No merges in this graph, so tasks are numbered as they were submitted.
            for (const orrTask_t before : steps_[i].after)
                path[i] = std::max(path[i], path[before]);
            path[i] += info.end_ns - info.start_ns;
            run.longest_path_ns = std::max(run.longest_path_ns, path[i]);
        }
        std::ranges::sort(run.cards, {}, &CardUse::device);
        // Tasks that do not fill a card may share it.
        for (CardUse& card : run.cards) {
            auto& spans = times[card.device];
            std::ranges::sort(spans);
            double until = 0;
            for (const auto& [start, end] : spans) {
                card.busy_ns += std::max(end - std::max(start, until), 0.0);
                until = std::max(until, end);
            }
        }
    }

    Matrix matrix_;
    std::size_t devices_;
    orrery::TaskGraph graph_;
    std::vector<orrTaskKernel_t> kernels_;
    std::vector<Tile> tiles_;
    std::vector<Step> steps_;
};

}  // namespace

Matrix make_matrix(unsigned tiles, unsigned size, std::uint32_t seed) {
    std::mt19937 random(seed);
    Matrix matrix{tiles, size, {}};
    for (unsigned i = 0; i < tiles; ++i) {
        for (unsigned j = 0; j <= i; ++j) {
            std::vector<double> contents(std::size_t{size} * size);
            for (double& value : contents)
                value = static_cast<double>(random() % 2001) / 1000 - 1;
            for (unsigned row = 0; i == j && row < size; ++row) {
                for (unsigned column = 0; column < row; ++column)
                    contents[column * size + row] = contents[row * size + column];
                contents[row * size + row] = 2.0 * tiles * size;  // outweighs its row
            }
            matrix.tile.push_back(std::move(contents));
        }
    }
    return matrix;
}

double residual(const Matrix& a, const Matrix& factor) {
    const unsigned n = a.size;
    double worst = 0, largest = 0;
    for (unsigned i = 0; i < a.tiles; ++i) {
        for (unsigned j = 0; j <= i; ++j) {
            for (unsigned row = 0; row < n; ++row) {
                for (unsigned column = 0; column < n; ++column) {
                    if (i == j && column > row) continue;
                    double sum = 0;
                    for (unsigned k = 0; k <= j; ++k) {
                        // Above the diagonal of a diagonal tile stands what was there before.
                        const unsigned end = k == j ? column + 1 : n;
                        for (unsigned x = 0; x < end; ++x)
                            sum += factor.at(i, k)[row * n + x] * factor.at(j, k)[column * n + x];
                    }
                    const double wanted = a.at(i, j)[row * n + column];
                    worst = std::max(worst, std::abs(wanted - sum));
                    largest = std::max(largest, std::abs(wanted));
                }
            }
        }
    }
    return worst / largest;
}

Run factor(const Matrix& matrix, const std::vector<int>& devices, const char* costs, unsigned ahead) {
    return Factorisation(matrix, devices, costs, ahead).run();
}
