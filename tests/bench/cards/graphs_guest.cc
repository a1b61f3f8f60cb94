// bench_graphs_guest: factors matrices as task graphs on all cards, as its standard input asks for; it
// answers each line with the model time and its bound, in ns. bench_graphs asks it.
//
//   TILES SIZE        nothing is known of what tasks take
//   TILES SIZE FILE   costs are read from FILE, and kept there
#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <iostream>
#include <numeric>
#include <orrery/orrery.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "umd/samples/cholesky/factor.h"

namespace {

constexpr double kWorstResidual = 1e-12;

void be_asked() {
    std::vector<int> devices(static_cast<std::size_t>(orrery::device_count()));
    std::iota(devices.begin(), devices.end(), 0);
    // Comparing a factor with its matrix takes a guest long, so one is compared, and the rest with that.
    std::vector<std::vector<double>> right;
    for (std::string line; std::getline(std::cin, line);) {
        unsigned tiles = 0, size = 0;
        std::string costs;
        std::istringstream words(line);
        if (!(words >> tiles >> size)) throw std::runtime_error(fmt::format("'{}' is not known here", line));
        words >> costs;
        const Matrix matrix = make_matrix(tiles, size, 1);
        const Run run = factor(matrix, devices, costs.empty() ? nullptr : costs.c_str(), 0);
        if (right.empty() && residual(matrix, run.factor) < kWorstResidual) right = run.factor.tile;
        // Each tile has the same operations in the same order, whichever card does them.
        if (right != run.factor.tile) throw std::runtime_error("the factor is wrong");
        std::cout << fmt::format("{} {}", run.model_ns, run.bound_ns()) << std::endl;
    }
}

}  // namespace

int main() {
    try {
        be_asked();
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_graphs_guest: {}\n", error.what());
        return 1;
    }
}
