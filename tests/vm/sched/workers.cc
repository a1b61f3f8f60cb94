// Processes that the tests start.
#include "tests/vm/umd/workers.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include "tests/vm/sched/bench.h"

namespace orrery::umd::vm {
namespace {

using sched_test::Count;
using sched_test::Mark;
using sched_test::Stream;

// All cores for seconds, until it is killed.
int hog() {
    const Card card(0);
    const Stream stream("hog");
    const Count count(card, 32, 1'000'000);
    count.launch(stream);
    // The first eight are on the cores; the others wait behind them for ever.
    count.wait_for_begin(8);
    std::ofstream("/tmp/hog-runs") << "1\n";
    (void)orrStreamSynchronize(stream.get());
    return 1;
}

// The same from forty streams: more than there are ports, and save areas for.
int crowd() {
    const Card card(0);
    const Count count(card, 32, 1'000'000);
    std::vector<std::unique_ptr<Stream>> streams;
    for (int n = 0; n < 40; ++n) {
        streams.push_back(std::make_unique<Stream>("crowd"));
        count.launch(*streams.back());
    }
    count.wait_for_begin(8);
    std::ofstream("/tmp/crowd-runs") << "1\n";
    (void)orrStreamSynchronize(streams.front()->get());
    return 1;
}

// Its own share of the cores is what ORRERY_QUOTA says: 250 of 1000 in each millisecond. `kernels` of them;
// the file says when the first has begun.
int quota(unsigned kernels, double least) {
    const Card card(0);
    const Stream stream("quota");
    const Count count(card, 64, 20);
    const Mark begin(stream);
    for (unsigned i = 0; i < kernels; ++i)
        count.launch(stream);
    const Mark end(stream);
    count.wait_for_begin(1);
    std::ofstream("/tmp/quota-runs") << "1\n";
    orrDeviceProp prop{};
    EXPECT_OK(orrGetDeviceProperties(&prop, 0));
    const double elapsed = static_cast<double>(end.ps() - begin.ps());
    const double share = static_cast<double>(stream.stats().vector_ps) / (elapsed * prop.vector_cores);
    if (share > least && share < 0.30) return 0;
    std::fprintf(stderr, "a share of %.3f of the cores\n", share);
    return 1;
}

}  // namespace

int run_worker(const std::string& name) {
    if (name == "hog") return hog();
    if (name == "crowd") return crowd();
    if (name == "quota") return quota(24, 0.20);
    // While the firmware starts again, nothing is dispatched: that may cost some of its share.
    if (name == "long-quota") return quota(200, 0.05);
    std::fprintf(stderr, "no worker '%s'\n", name.c_str());
    return 2;
}

}  // namespace orrery::umd::vm
