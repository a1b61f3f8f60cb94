// Processes that the tests start.
#include "tests/vm/umd/workers.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/vm/sched/bench.h"

namespace orrery::umd::vm {
namespace {

using sched_test::Count;
using sched_test::Mark;
using sched_test::Semaphore;
using sched_test::Stream;

// Model time goes on while those who look on stand still, and the usual limit of a kernel is soon over; more
// than this needs a privilege.
constexpr std::uint32_t kLongUs = 10'000'000;

// All cores for seconds, until it is killed.
int hog() {
    const Card card(0);
    const Stream stream("hog", 0, 0, 0, kLongUs);
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
        streams.push_back(std::make_unique<Stream>("crowd", 0, 0, 0, kLongUs));
        count.launch(*streams.back());
    }
    count.wait_for_begin(8);
    std::ofstream("/tmp/crowd-runs") << "1\n";
    (void)orrStreamSynchronize(streams.front()->get());
    return 1;
}

constexpr std::uint64_t kRowUs = 50;  // of each group

// One of several processes of a user, each with rows of kernels for longer than anybody looks on.
int rows(const std::string& number) {
    if (::setuid(1001) != 0) return 2;
    const Card card(0);
    const Count count(card, 32, 4 * kRowUs);
    std::vector<std::unique_ptr<Stream>> streams;
    for (int n = 0; n < 4; ++n) {
        streams.push_back(std::make_unique<Stream>("rows"));
        for (int kernels = 0; kernels < 900; ++kernels)
            count.launch(*streams.back());
    }
    count.wait_for_begin(8);
    std::ofstream("/tmp/rows-run-" + number) << "1\n";
    (void)orrStreamSynchronize(streams.front()->get());
    return 1;
}

// The only process of its user: whether it has half of the cores, within two points, as long as it has work
// for them.
int half() {
    if (::setuid(1002) != 0) return 2;
    const Card card(0);
    const Count count(card, 32, kRowUs);
    const Semaphore gate("gate");
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<Mark> begins, ends;
    for (int n = 0; n < 4; ++n) {
        streams.push_back(std::make_unique<Stream>("half"));
        gate.wait_on(*streams.back());
        begins.emplace_back(*streams.back());
        for (int kernels = 0; kernels < 60; ++kernels)
            count.launch(*streams.back());
        ends.emplace_back(*streams.back());
    }
    gate.signal();
    std::uint64_t begin = ~std::uint64_t{0}, end = 0, used = 0;
    for (std::size_t n = 0; n < streams.size(); ++n) {
        begin = std::min(begin, begins[n].ps());
        end = std::max(end, ends[n].ps());
        used += streams[n]->stats().vector_ps;
    }
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    EXPECT_OK(orrGetDeviceProperties(&prop, 0));
    const double share = static_cast<double>(used) / (static_cast<double>(end - begin) * prop.vector_cores);
    if (std::abs(share - 0.5) <= 0.02) return 0;
    std::fprintf(stderr, "a share of %.3f of the cores\n", share);
    return 1;
}

// Its own share of the cores is what ORR_QUOTA says: 250 of 1000 in each millisecond. Rows of so many
// kernels: one, or until a file says that it is enough. Another one says when the first has begun.
int quota(unsigned kernels, bool until_told, double least) {
    const Card card(0);
    const Stream stream("quota");
    const Count count(card, 64, 20);
    const Mark begin(stream);
    std::optional<Mark> end;
    bool over = false;
    do {
        over = !until_told || ::access("/tmp/quota-stop", F_OK) == 0;
        for (unsigned i = 0; i < kernels; ++i)
            count.launch(stream);
        end.emplace(stream);
        count.wait_for_begin(1);
        std::ofstream("/tmp/quota-runs") << "1\n";
        if (!over) EXPECT_OK(orrStreamSynchronize(stream.get()));
    } while (!over);
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    EXPECT_OK(orrGetDeviceProperties(&prop, 0));
    const double elapsed = static_cast<double>(end->ps() - begin.ps());
    const double share = static_cast<double>(stream.stats().vector_ps) / (elapsed * prop.vector_cores);
    if (share > least && share < 0.30) return 0;
    std::fprintf(stderr, "a share of %.3f of the cores\n", share);
    return 1;
}

}  // namespace

int run_worker(const std::string& name) {
    if (name == "hog") return hog();
    if (name == "crowd") return crowd();
    if (name.starts_with("rows-")) return rows(name.substr(5));
    if (name == "half") return half();
    if (name == "quota") return quota(24, false, 0.20);
    // While the firmware starts again, nothing is dispatched: that may cost some of its share.
    if (name == "long-quota") return quota(100, true, 0.05);
    std::fprintf(stderr, "no worker '%s'\n", name.c_str());
    return 2;
}

}  // namespace orrery::umd::vm
