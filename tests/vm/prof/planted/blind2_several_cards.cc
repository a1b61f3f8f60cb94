// The second blind set, by an author who had not read the rules: two cards.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <orrery/group.h>
#include <orrery/embedded_kernel.hpp>

#include "tests/vm/prof/planted/blind2_dense.h"
#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

ORR_EMBEDDED_KERNEL(planted_kernels);

namespace planted {
namespace {

using orrery::DeviceArray;
using orrery::DeviceGuard;
using orrery::Event;
using orrery::PinnedArray;
using orrery::Stream;

// A table of embeddings over two cards, whose kernels sum bags of rows wherever those are.
void sharded_table() {
    constexpr std::uint64_t kRows = 16'384, kBags = 192, kPerBag = 8, kBatches = 2;
    join_cards();
    const orrery::Library library(planted_kernels_image());
    struct Shard {
        DeviceArray<float> rows{kRows / 2 * kB2Width};
        DeviceArray<float> sums{kBags * kB2Width};
        Stream stream;
    };
    std::vector<Shard> shards;
    for (int card = 0; card < 2; ++card) {
        const DeviceGuard on(card);
        library.preload();
        shards.emplace_back();
    }
    PinnedArray<std::uint32_t> indices(kBatches * kBags * kPerBag);
    std::uint32_t draw = 12345;
    for (std::uint32_t& index : indices)
        index = (draw = draw * 1664525u + 1013904223u) >> 18;  // below kRows
    for (std::uint64_t batch = 0; batch < kBatches; ++batch)
        for (const Shard& shard : shards) {
            const B2Bags args{{shards[0].rows.data(), shards[1].rows.data()},
                              indices.data() + batch * kBags * kPerBag,
                              shard.sums.data(),
                              kBags,
                              kPerBag};
            orrery::launch(library.function("b2_bags"), {64, 1, 1}, {1, 1, 1}, args, 0, shard.stream);
        }
    for (const Shard& shard : shards)
        shard.stream.synchronize();
}

// One of two processes that train in step, of which rank 1 has got twice the rows.
void train_rank(int rank, const orrGroupToken& token) {
    constexpr std::uint64_t kRows = 112, kWidth = 256, kOut = 512;
    constexpr int kSteps = 16;
    const DeviceGuard on(rank);
    const orrery::Library library(planted_kernels_image());
    library.preload();
    const Dense layer(rank == 1 ? 2 * kRows : kRows, kWidth, kOut);
    const DeviceArray<float> momentum(layer.weight.size());
    const Stream stream;
    const Work warm_up;
    orrGroupJoinParams params = ORR_INIT(orrGroupJoinParams);
    params.rank = rank;
    params.members = 2;
    orrGroup_t group{};
    orrery::check(orrGroupJoin(&group, &token, &params));
    orrery::check(orrGroupBarrier(group, ORR_NO_LIMIT));
    warm_up.begin(stream, 40);
    for (int step = 0; step < kSteps; ++step) {
        layer.launch(library, stream);
        orrery::check(orrGroupBarrierAsync(group, stream.handle(), nullptr));
        const B2Sgd args{layer.weight.data(), momentum.data(), layer.y.data(), nullptr,
                         kRows * kOut,        0.01f,           0.001f};
        orrery::launch(library.function("b2_sgd"), {16, 1, 1}, {1, 1, 1}, args, 0, stream);
    }
    stream.synchronize();
    orrery::check(orrGroupBarrier(group, ORR_NO_LIMIT));
    orrery::check(orrGroupDestroy(group));
}

void unequal_ranks() {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe for the token");
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("no process for rank 1");
    orrGroupToken token{};
    if (child == 0) {
        if (read(ends[0], &token, sizeof token) != ssize_t{sizeof token}) _exit(1);
        try {
            train_rank(1, token);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "rank 1: %s\n", error.what());
            _exit(1);
        }
        std::exit(0);
    }
    orrery::check(orrGroupMakeToken(&token, 0));
    if (write(ends[1], &token, sizeof token) != ssize_t{sizeof token})
        throw std::runtime_error("rank 1 did not take its token");
    train_rank(0, token);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0)
        throw std::runtime_error("rank 1 ended with status " + std::to_string(status));
}

// Training on two cards, whose gradients go over the link beside the next step's products.
void data_parallel() {
    constexpr std::uint64_t kSteps = 5;
    join_cards();
    const orrery::Library library(planted_kernels_image());
    struct Worker {
        Dense layer{448, 512, 512};
        DeviceArray<float> momentum{layer.weight.size()};
        std::array<DeviceArray<float>, 2> gradient{DeviceArray<float>(layer.y.size()),
                                                   DeviceArray<float>(layer.y.size())};
        std::array<DeviceArray<float>, 2> theirs{DeviceArray<float>(layer.y.size()),
                                                 DeviceArray<float>(layer.y.size())};
        Stream working, sending;
        std::array<Event, kSteps> made, sent, applied;
    };
    std::vector<std::unique_ptr<Worker>> workers;
    for (int card = 0; card < 2; ++card) {
        const DeviceGuard on(card);
        library.preload();
        workers.push_back(std::make_unique<Worker>());
    }
    const auto apply = [&](std::size_t card, std::uint64_t step) {
        const Worker &own = *workers[card], &other = *workers[1 - card];
        own.working.wait(own.sent[step]);
        own.working.wait(other.sent[step]);
        const B2Sgd args{own.layer.weight.data(),
                         own.momentum.data(),
                         own.gradient[step % 2].data(),
                         own.theirs[step % 2].data(),
                         own.layer.y.size(),
                         0.01f,
                         0.001f};
        orrery::launch(library.function("b2_sgd"), {32, 1, 1}, {1, 1, 1}, args, 0, own.working);
        own.applied[step].record(own.working);
    };
    for (std::uint64_t step = 0; step < kSteps; ++step) {
        for (std::size_t card = 0; card < 2; ++card) {
            const Worker &own = *workers[card], &other = *workers[1 - card];
            own.layer.launch(library, own.layer.x.data(), own.gradient[step % 2].data(), own.working);
            own.made[step].record(own.working);
            own.sending.wait(own.made[step]);
            if (step >= 2) own.sending.wait(other.applied[step - 2]);
            orrery::copy(other.theirs[step % 2].data(), own.gradient[step % 2].data(),
                         own.gradient[step % 2].bytes(), own.sending);
            own.sent[step].record(own.sending);
        }
        for (std::size_t card = 0; card < 2; ++card)
            if (step >= 1) apply(card, step - 1);
    }
    for (const auto& worker : workers) {
        worker->working.synchronize();
        worker->sending.synchronize();
    }
}

}  // namespace

// Written down before any of them had been run; docs/profiling.md has what came out then, and what was
// changed.
const std::vector<Case>& blind2_several_cards_cases() {
    static const std::vector<Case> cases = {
        {.name = "blind2_sharded_table",
         .limit = "link",
         .why = "half of the rows are on the other card, and each takes the way there and back",
         .run = sharded_table,
         .share = {0.4, 1},
         .in_step = true},
        {.name = "blind2_unequal_ranks",
         .limit = "rank",
         .why = "rank 1 has twice the rows, so rank 0 waits for half of each step",
         .run = unequal_ranks,
         .words = "rank 1",
         .at_bound = "compute",
         .share = {0.3, 0.55},
         .in_step = true},
        {.name = "blind2_none_data_parallel",
         .limit = "none",
         .why = "equal parts, products near the peak, and gradients of 18 us that go beside 230 of them",
         .run = data_parallel,
         .at_bound = "compute",
         .share = {0, 0.1},
         .in_step = true},
    };
    return cases;
}

}  // namespace planted
