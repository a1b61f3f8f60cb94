// The second blind set, by an author who had not read the rules: one card.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <orrery/embedded_kernel.hpp>

#include "tests/vm/prof/planted/beside.h"
#include "tests/vm/prof/planted/blind2_dense.h"
#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

ORR_EMBEDDED_KERNEL(planted_kernels);

namespace planted {
namespace {

using orrery::DeviceArray;
using orrery::Event;
using orrery::PinnedArray;
using orrery::Stream;

// On the current card before it has work, so that it does not wait for that later.
orrery::Library loaded() {
    orrery::Library library(planted_kernels_image());
    library.preload();
    return library;
}

// Prices of four books of options, by Monte Carlo with a scalar generator for each.
void option_desk() {
    constexpr std::uint64_t kOptions = 64, kPaths = 200, kSteps = 8, kBooks = 4;
    const orrery::Library library = loaded();
    const Stream stream;
    PinnedArray<float> market(kBooks * kOptions * 2), prices(kBooks * kOptions);
    for (std::size_t i = 0; i < kBooks * kOptions; ++i) {
        market[2 * i] = 100;
        market[2 * i + 1] = 90 + static_cast<float>(i % 20);
    }
    for (std::uint64_t book = 0; book < kBooks; ++book) {
        const B2Options args{market.data() + book * kOptions * 2, prices.data() + book * kOptions, kOptions,
                             kPaths, kSteps};
        orrery::launch(library.function("b2_price_options"), {kOptions, 1, 1}, {1, 1, 1}, args, 0, stream);
    }
    stream.synchronize();
}

// What stands between the products of a transformer's layers, an operation a kernel.
void layer_tail() {
    constexpr std::uint64_t kCount = 2 << 20, kLayers = 4;
    const orrery::Library library = loaded();
    const Stream stream;
    const DeviceArray<float> hidden(kCount), scratch(kCount), mask(kCount), residual(kCount);
    orrery::fill_values(hidden.data(), 0.5f, kCount, stream);
    orrery::fill_values(mask.data(), 1.0f, kCount, stream);
    orrery::fill_values(residual.data(), 0.25f, kCount, stream);
    const auto apply = [&](const char* kernel, const float* x, const float* y, float* out) {
        const B2Pointwise args{x, y, out, kCount, 0.125f, 0};
        orrery::launch(library.function(kernel), {64, 1, 1}, {1, 1, 1}, args, 0, stream);
    };
    for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
        apply("b2_bias", hidden.data(), nullptr, scratch.data());
        apply("b2_squared_relu", scratch.data(), nullptr, hidden.data());
        apply("b2_dropout", hidden.data(), mask.data(), scratch.data());
        apply("b2_residual", scratch.data(), residual.data(), hidden.data());
    }
    stream.synchronize();
}

// The probe side of a hash join: chains of a table in the card's memory.
void hash_join() {
    constexpr std::uint32_t kBits = 14, kNodes = 40'000, kKeys = 8192, kBatches = 3;
    const orrery::Library library = loaded();
    const Stream stream;
    PinnedArray<std::uint32_t> heads(1 << kBits), keys(kBatches * kKeys), result(keys.size());
    PinnedArray<B2Node> nodes(kNodes);
    std::fill(heads.begin(), heads.end(), 0);
    std::mt19937 random(7);
    std::vector<std::uint32_t> places(kNodes - 1);
    std::iota(places.begin(), places.end(), 1);
    std::ranges::shuffle(places, random);  // rows came in no order
    for (const std::uint32_t place : places) {
        std::uint32_t& head = heads[(place * 2654435769u) >> (32 - kBits)];
        nodes[place] = {place, place * 3, head, 0};
        head = place;
    }
    for (std::uint32_t& key : keys)
        key = 1 + random() % (kNodes - 1);
    const DeviceArray<std::uint32_t> card_heads(heads.size()), card_keys(keys.size()), found(keys.size());
    const DeviceArray<B2Node> card_nodes(nodes.size());
    orrery::copy(card_nodes.data(), nodes.data(), nodes.bytes(), stream);
    orrery::copy(card_heads.data(), heads.data(), heads.bytes(), stream);
    orrery::copy(card_keys.data(), keys.data(), keys.bytes(), stream);
    for (std::uint32_t batch = 0; batch < kBatches; ++batch) {
        const B2Probe args{card_heads.data(),
                           card_nodes.data(),
                           card_keys.data() + batch * kKeys,
                           found.data() + batch * kKeys,
                           kKeys,
                           kBits};
        orrery::launch(library.function("b2_probe"), {128, 1, 1}, {1, 1, 1}, args, 0, stream);
    }
    orrery::copy(result.data(), found.data(), found.bytes(), stream);
    stream.synchronize();
}

// Many time steps of a small system, captured as a graph, each step a launch.
void heat_rod() {
    constexpr std::uint64_t kCells = 2048, kStepsOfGraph = 100, kGraphs = 5;
    const orrery::Library library = loaded();
    const Stream stream;
    const DeviceArray<float> a(kCells + 2), b(kCells + 2);
    const auto step = [&](const float* from, float* to) {
        const B2Pointwise args{from, nullptr, to, kCells, 0.2f, 0};
        orrery::launch(library.function("b2_heat"), {8, 1, 1}, {1, 1, 1}, args, 0, stream);
    };
    orrery::Graph::begin_capture(stream);
    for (std::uint64_t i = 0; i < kStepsOfGraph; i += 2) {
        step(b.data(), a.data());
        step(a.data(), b.data());
    }
    const orrery::GraphExec steps(orrery::Graph::end_capture(stream));
    // It begins as noise, whose making takes the host long enough that all steps are there by then.
    const B2Pointwise noise{nullptr, nullptr, b.data(), b.size(), 0, 10};
    orrery::launch(library.function("b2_noise"), {8, 1, 1}, {1, 1, 1}, noise, 0, stream);
    for (std::uint64_t i = 0; i < kGraphs; ++i)
        steps.launch(stream);
    stream.synchronize();
}

// A server that decodes seven sequences: each token is the likeliest of sixteen that are drawn on the host,
// and the next step needs it.
void decode_tokens() {
    constexpr std::uint64_t kSequences = 7, kWidth = 512, kWords = 2048, kTokens = 24, kDraws = 16;
    const orrery::Library library = loaded();
    const Stream stream;
    const Dense layer(kSequences, kWidth, kWords), head(kSequences, kWords, kWords);
    PinnedArray<float> embedded(kSequences * kWidth), logits(kSequences * kWords);
    std::fill(embedded.begin(), embedded.end(), 0.125f);
    std::mt19937 random(11);
    for (std::uint64_t token = 0; token < kTokens; ++token) {
        orrery::copy(layer.x.data(), embedded.data(), embedded.bytes(), stream);
        layer.launch(library, stream);
        head.launch(library, layer.y.data(), head.y.data(), stream);
        orrery::copy(logits.data(), head.y.data(), logits.bytes(), stream);
        stream.synchronize();
        for (std::uint64_t sequence = 0; sequence < kSequences; ++sequence) {
            const float* const row = logits.data() + sequence * kWords;
            const float greatest = *std::max_element(row, row + kWords);
            std::uint64_t chosen = 0;
            for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
                // Each by odds of its own temperature.
                const float warmth = 1 + 0.0625f * static_cast<float>(draw);
                std::vector<float> odds(kWords);
                float sum = 0;
                for (std::uint64_t word = 0; word < kWords; ++word)
                    sum += odds[word] = std::exp((row[word] - greatest) / warmth);
                float left = static_cast<float>(random() % 1000) / 1000 * sum;
                std::uint64_t drawn = 0;
                while (drawn + 1 < kWords && (left -= odds[drawn]) > 0)
                    ++drawn;
                if (draw == 0 || row[drawn] > row[chosen]) chosen = drawn;
            }
            std::fill_n(embedded.data() + sequence * kWidth, kWidth, static_cast<float>(chosen) / kWords);
        }
    }
}

// Frames of a film, one after the other through one stream: in, sharpened, out.
void film() {
    constexpr std::uint64_t kWidth = 512, kHeight = 512, kFrames = 12;
    const orrery::Library library = loaded();
    const Stream stream;
    PinnedArray<float> in(kFrames * kWidth * kHeight), out(in.size());
    std::fill(in.begin(), in.end(), 0.5f);
    const DeviceArray<float> raw(kWidth * kHeight), sharp(kWidth * kHeight);
    for (std::uint64_t frame = 0; frame < kFrames; ++frame) {
        orrery::copy(raw.data(), in.data() + frame * raw.size(), raw.bytes(), stream);
        const B2Image args{raw.data(), sharp.data(), kWidth, kHeight};
        orrery::launch(library.function("b2_sharpen"), {64, 1, 1}, {1, 1, 1}, args, 0, stream);
        orrery::copy(out.data() + frame * sharp.size(), sharp.data(), sharp.bytes(), stream);
    }
    stream.synchronize();
}

// Scores of causal attention, of which each core has as many rows: the last has the long ones.
void causal_attention() {
    constexpr std::uint64_t kLength = 1024, kHeads = 4;
    const orrery::Library library = loaded();
    const Stream stream;
    const DeviceArray<float> q(kHeads * kLength * kB2Depth), k(q.size()), scores(kHeads * kLength * kLength);
    orrery::fill_values(q.data(), 0.5f, q.size(), stream);
    orrery::fill_values(k.data(), 0.5f, k.size(), stream);
    for (std::uint64_t head = 0; head < kHeads; ++head) {
        const std::uint64_t at = head * kLength * kB2Depth;
        const B2Causal args{q.data() + at, k.data() + at, scores.data() + head * kLength * kLength, kLength};
        orrery::launch(library.function("b2_causal_scores"), {cores(), 1, 1}, {1, 1, 1}, args,
                       4 * kB2Depth * sizeof(float), stream);
    }
    stream.synchronize();
}

// A training job on a card that another process trains on as well.
void shared_card() {
    struct Tenant {
        orrery::Library library = loaded();
        Stream stream;
        Dense layer{448, 256, 512};
    };
    const auto others = [] {
        const auto tenant = std::make_shared<Tenant>();
        return [tenant](const Event& event) {
            tenant->layer.launch(tenant->library, tenant->stream);
            event.record(tenant->stream);
        };
    };
    beside(4, others, [] {
        const Tenant own;
        for (int step = 0; step < 6; ++step)
            own.layer.launch(own.library, own.stream);
        own.stream.synchronize();
    });
}

// A network's forward pass, by products in registers.
void dense_network() {
    const orrery::Library library = loaded();
    const Stream stream;
    const Dense first(448, 512, 512), second(448, 512, 512);
    PinnedArray<float> batch(first.x.size()), result(second.y.size());
    std::fill(batch.begin(), batch.end(), 0.5f);
    orrery::copy(first.x.data(), batch.data(), batch.bytes(), stream);
    for (int layer = 0; layer < 3; ++layer) {
        first.launch(library, layer == 0 ? first.x.data() : second.y.data(), first.y.data(), stream);
        second.launch(library, first.y.data(), second.y.data(), stream);
    }
    orrery::copy(result.data(), second.y.data(), result.bytes(), stream);
    stream.synchronize();
}

// An optimizer's step over three tensors, in one pass over each.
void optimizer() {
    constexpr std::uint64_t kCount = 2 << 20, kTensors = 3, kSteps = 2;
    const orrery::Library library = loaded();
    const Stream stream;
    std::vector<DeviceArray<float>> weights, momenta, gradients;
    for (std::uint64_t tensor = 0; tensor < kTensors; ++tensor) {
        weights.emplace_back(kCount);
        momenta.emplace_back(kCount);
        gradients.emplace_back(kCount);
    }
    for (std::uint64_t step = 0; step < kSteps; ++step)
        for (std::uint64_t tensor = 0; tensor < kTensors; ++tensor) {
            const B2Sgd args{weights[tensor].data(),
                             momenta[tensor].data(),
                             gradients[tensor].data(),
                             nullptr,
                             kCount,
                             0.01f,
                             0.001f};
            orrery::launch(library.function("b2_sgd"), {64, 1, 1}, {1, 1, 1}, args, 0, stream);
        }
    stream.synchronize();
}

// Batches that come, are worked on and go in three streams and two places.
void batch_server() {
    constexpr std::uint64_t kRows = 448, kWidth = 512, kBatches = 8;
    const orrery::Library library = loaded();
    const Dense layer(kRows, kWidth, kWidth);
    const Stream coming, working, going;
    PinnedArray<float> requests(kBatches * kRows * kWidth), answers(requests.size());
    std::fill(requests.begin(), requests.end(), 0.5f);
    const DeviceArray<float> in[2] = {DeviceArray<float>(kRows * kWidth), DeviceArray<float>(kRows * kWidth)};
    const DeviceArray<float> out[2] = {DeviceArray<float>(kRows * kWidth),
                                       DeviceArray<float>(kRows * kWidth)};
    Event come[kBatches], worked[kBatches], gone[kBatches];
    for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
        const std::uint64_t place = batch % 2, at = batch * kRows * kWidth;
        if (batch >= 2) coming.wait(worked[batch - 2]);
        orrery::copy(in[place].data(), requests.data() + at, in[place].bytes(), coming);
        come[batch].record(coming);
        working.wait(come[batch]);
        if (batch >= 2) working.wait(gone[batch - 2]);
        layer.launch(library, in[place].data(), out[place].data(), working);
        worked[batch].record(working);
        going.wait(worked[batch]);
        orrery::copy(answers.data() + at, out[place].data(), out[place].bytes(), going);
        gone[batch].record(going);
    }
    going.synchronize();
}

// Two models of one program side by side, each in its stream: the cores always have work of one or the other.
void two_models() {
    const orrery::Library library = loaded();
    const Dense one(448, 512, 512), other(448, 512, 512);
    const Stream stream_of_one, stream_of_other;
    for (int step = 0; step < 4; ++step) {
        one.launch(library, stream_of_one);
        other.launch(library, stream_of_other);
    }
    stream_of_one.synchronize();
    stream_of_other.synchronize();
}

}  // namespace

// Written down before any of them had been run; docs/profiling.md has what came out then, and what was
// changed.
const std::vector<Case>& blind2_one_card_cases() {
    static const std::vector<Case> cases = {
        {.name = "blind2_option_desk",
         .limit = "compute",
         .why = "random paths in scalar code on all cores, and hardly a byte that moves",
         .run = option_desk,
         .words = "; 0 % of those are of vectors",
         .share = {0.7, 1}},
        {.name = "blind2_layer_tail",
         .limit = "vram_bandwidth",
         .why = "four operations of a layer go through 8 MiB each, and need an operation or two a float",
         .run = layer_tail,
         .share = {0.6, 1}},
        {.name = "blind2_hash_join",
         .limit = "latency",
         .why =
             "each probe waits for a head and for each node of its chain; the cache has a twentieth of them",
         .run = hash_join,
         .share = {0.6, 1}},
        {.name = "blind2_heat_rod",
         .limit = "launch",
         .why = "a step takes a core a quarter of a microsecond, and its launch some 1.5",
         .run = heat_rod,
         .share = {0.5, 1}},
        {.name = "blind2_decode_tokens",
         .limit = "host",
         .why = "the card waits while the host draws each token, sixteen times from 14,336 odds",
         .run = decode_tokens,
         .share = {0.5, 1}},
        {.name = "blind2_film",
         .limit = "copy_not_overlapped",
         .why = "33 us in and 33 us out around a kernel of 5, none beside another",
         .run = film,
         .share = {0.7, 1}},
        {.name = "blind2_causal_attention",
         .limit = "imbalance",
         .why = "the last of 8 cores has 15/8 of the mean, so 7/15 of the cores' time is idle",
         .run = causal_attention,
         .at_bound = "compute",
         .share = {0.33, 0.55},
         .gain = {0.3, 0.55}},
        {.name = "blind2_shared_card",
         .limit = "preemption",
         .why = "another process with equal rights has kernels for half of the cores' time",
         .run = shared_card,
         .share = {0.3, 0.7}},
        {.name = "blind2_none_dense_network",
         .limit = "none",
         .why = "products near the peak of the vector units",
         .run = dense_network,
         .at_bound = "compute",
         .share = {0, 0.1}},
        {.name = "blind2_none_optimizer",
         .limit = "none",
         .why = "each float is read and written once, at the memory's bandwidth",
         .run = optimizer,
         .at_bound = "vram_bandwidth",
         .share = {0, 0.1}},
        {.name = "blind2_none_batch_server",
         .limit = "none",
         .why =
             "copies of 29 us go beside products of some 240 near the peak, but for the first and the last",
         .run = batch_server,
         .at_bound = "compute",
         .share = {0, 0.1}},
        {.name = "blind2_none_two_models",
         .limit = "none",
         .why = "each stream waits for the other, and the cores for none: products near the peak",
         .run = two_models,
         .at_bound = "compute",
         .share = {0, 0.1}},
    };
    return cases;
}

}  // namespace planted
