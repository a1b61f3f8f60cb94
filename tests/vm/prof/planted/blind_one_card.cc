// Blind cases of one card, by an author who has not read the rules. Times are those of orrery-1.
#include <array>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

namespace planted {

// 8 vectors of 64 Ki floats, joined by 4, 2 and 1 groups of 65 us each: 2.125 of 3 levels' core time is idle,
// beside 16 us of all cores and 6 us of launches.
void blind_reduction_tree() {
    constexpr std::uint64_t kLength = 65'536;
    const Work work(8 * kLength * sizeof(float));
    const orrery::Stream stream;
    for (unsigned i = 0; i < 4; ++i) {
        work.launch("multiply_add", {.rounds = 1'000}, stream);
        for (std::uint32_t groups = 4; groups != 0; groups /= 2)
            work.launch("join_pairs", {.groups = groups}, {work.out.data(), work.in.data(), kLength, 0, 0},
                        stream);
    }
    stream.synchronize();
}

// 20 halvings of some 8 cycles, of which 9 or 10 miss the cache: 1,400 of 1,560 ns.
void blind_binary_search() {
    const Work work(4 * kMiB);
    const orrery::Stream stream;
    work.launch("number_in_order", {.rounds = 4'096}, {work.in.data(), nullptr, work.in.size(), 0, 0},
                stream);
    for (unsigned i = 0; i < 2; ++i)
        work.launch("look_up_sorted", {.rounds = 400}, stream);
    stream.synchronize();
}

// 4 MiB of weights stayed in the host's memory: 131 us on PCIe for each layer, and 2 us of launch.
void blind_host_weights() {
    const Work work(kMiB);
    const orrery::PinnedArray<float> weights(kMiB);
    const orrery::Stream stream;
    for (unsigned i = 0; i < 6; ++i)
        work.launch("layer", {.rounds = 4'096}, {work.out.data(), weights.data(), weights.size(), 0, 0},
                    stream);
    stream.synchronize();
}

// A step is a kernel of 0.4 us, and two copies of 16 bytes for the ends; what starts them takes 1 us or more
// for each of the three.
void blind_ghost_copies() {
    constexpr std::size_t kCells = 2'048;
    const Work work(16'384);
    const orrery::Stream stream;
    work.launch("multiply_add", {.rounds = 1}, stream);
    stream.synchronize();
    orrery::Graph::begin_capture(stream);
    for (unsigned step = 0; step < 100; ++step) {
        float* const now = step % 2 == 0 ? work.in.data() : work.out.data();
        float* const next = step % 2 == 0 ? work.out.data() : work.in.data();
        work.launch("wave_step", {}, {next, now, kCells, 0, 0}, stream);
        orrery::copy(next, next + kCells, 16, stream);
        orrery::copy(next + 4 + kCells, next + 4, 16, stream);
    }
    const orrery::GraphExec all(orrery::Graph::end_capture(stream));
    all.launch(stream);
    stream.synchronize();
}

// Two threads, and one lock around all that they do: milliseconds of counting words for 16 us of kernel.
void blind_locked_stage() {
    const Work work;
    std::mutex lock;
    const auto worker = [&](unsigned number) {
        const orrery::Stream stream;
        for (unsigned item = 0; item < 12; ++item) {
            const std::lock_guard guard(lock);
            std::unordered_map<std::string, unsigned> words;
            for (unsigned i = 0; i < 20'000; ++i)
                ++words[std::to_string((i * 7'919 + number + item) % 5'000)];
            work.launch("multiply_add", {.rounds = 950 + words.size() / 100}, stream);
            stream.synchronize();
        }
    };
    std::thread other(worker, 1);
    worker(0);
    other.join();
}

// A kernel of 96 us, and its state to the host, 262 us, before the next one may write over it: 73 % of copy,
// beside which a second buffer would hide the kernel (27 %).
void blind_snapshot() {
    const Work work(8 * kMiB);
    const orrery::PinnedArray<float> host(work.out.size());
    const orrery::Stream steps, writer;
    for (unsigned i = 0; i < 6; ++i) {
        work.launch("multiply_add", {.rounds = 6'000}, steps);
        const orrery::Event made(orrEventDisableTiming), saved(orrEventDisableTiming);
        made.record(steps);
        writer.wait(made);
        orrery::copy(host.data(), work.out.data(), work.bytes, writer);
        saved.record(writer);
        steps.wait(saved);
    }
    steps.synchronize();
}

// 15 cycles or more for each pair, with four of 64 lanes; the bodies are 16 bytes a pair, 10 GB/s.
void blind_short_vectors() {
    const Work work;
    const orrery::Stream stream;
    for (unsigned i = 0; i < 4; ++i)
        work.launch("forces", {.rounds = 32}, {work.out.data(), work.in.data(), 256, 0, 0}, stream);
    stream.synchronize();
}

// 124 cycles of arithmetic for 2 KiB: a seventh of VRAM's bandwidth.
void blind_none_polynomial() {
    const Work work(8 * kMiB);
    const orrery::Stream stream;
    for (unsigned i = 0; i < 6; ++i)
        work.launch("polynomial", {.groups = 8 * cores()}, stream);
    stream.synchronize();
}

// 20 bytes for each of 2 Mi elements in one pass: 52 us of VRAM, 28 of 51 ns a strip on each core.
void blind_none_momentum() {
    constexpr std::size_t kCount = 2 * kMiB;
    const Work work(64 << 10);
    const orrery::DeviceArray<float> gradients(kCount), state(2 * kCount);
    const orrery::Stream stream;
    work.launch("number_in_order", {.rounds = 1}, {gradients.data(), nullptr, kCount, 0, 0}, stream);
    work.launch("number_in_order", {.rounds = 1}, {state.data(), nullptr, 2 * kCount, 0, 0}, stream);
    for (unsigned i = 0; i < 16; ++i)
        work.launch("momentum", {}, {state.data(), gradients.data(), kCount, 0, 0}, stream);
    stream.synchronize();
}

// Two buffers: 131 us of copy beside 176 us of kernel. The first copy is 6 % of all.
void blind_none_double_buffer() {
    const Work work(8 * kMiB);
    const orrery::PinnedArray<float> host(kMiB);
    const orrery::Stream copies, kernels;
    std::vector<orrery::Event> used;
    for (unsigned i = 0; i < 12; ++i) {
        if (i >= 2) copies.wait(used[i - 2]);
        orrery::copy(work.in.data() + i % 2 * kMiB, host.data(), host.bytes(), copies);
        const orrery::Event there(orrEventDisableTiming);
        there.record(copies);
        kernels.wait(there);
        work.launch("multiply_add", {.rounds = 11'000}, kernels);
        used.emplace_back(orrEventDisableTiming);
        used.back().record(kernels);
    }
    kernels.synchronize();
}

// Four cores of whole numbers (8 times 240 us), four of polynomials (14 times 135 us), and copies beside
// them.
void blind_none_mixed() {
    const Work work(4 * kMiB), other(kMiB);
    const orrery::DeviceArray<float> there(kMiB / 2);
    const orrery::PinnedArray<float> host(kMiB / 2);
    const std::array<orrery::Stream, 3> streams;
    other.begin(streams[0]);
    work.begin(streams[0]);
    const orrery::Event begun(orrEventDisableTiming);
    begun.record(streams[0]);
    streams[1].wait(begun);
    streams[2].wait(begun);
    for (unsigned i = 0; i < 14; ++i) {
        if (i < 8) other.launch("mix_integers", {.groups = cores() / 2, .rounds = 20'000}, streams[0]);
        work.launch("polynomial", {.groups = cores() / 2}, streams[1]);
        if (i >= 10) continue;
        orrery::copy(there.data(), host.data(), host.bytes(), streams[2]);
        orrery::copy(host.data(), there.data(), host.bytes(), streams[2]);
    }
    for (const orrery::Stream& stream : streams)
        stream.synchronize();
}

const std::vector<Case>& blind_one_card_cases() {
    static const std::vector<Case> kCases{
        {.name = "blind_reduction_tree",
         .limit = "imbalance",
         .why = "a tree whose upper levels have 4, 2 and 1 groups",
         .run = blind_reduction_tree,
         .at_bound = "compute",
         .share = {0.55, 0.7},
         .gain = {0.55, 0.7}},
        {.name = "blind_binary_search",
         .limit = "latency",
         .why = "halves a sorted table for each key",
         .run = blind_binary_search,
         .share = {0.8, 0.95},
         .gain = {0.8, 0.95}},
        {.name = "blind_host_weights",
         .limit = "vram_bandwidth",
         .why = "weights are read over PCIe at each step",
         .run = blind_host_weights,
         .words = "over PCIe",
         .share = {0.85, 1}},
        {.name = "blind_ghost_copies",
         .limit = "launch",
         .why = "small steps, and copies of 16 bytes between them",
         .run = blind_ghost_copies,
         .share = {0.7, 0.97},
         .gain = {0.65, 0.97},
         .needs_prompt_host = true},
        {.name = "blind_locked_stage",
         .limit = "host",
         .why = "threads prepare their input under one lock",
         .run = blind_locked_stage,
         .share = {0.25, 1}},
        {.name = "blind_snapshot",
         .limit = "copy_not_overlapped",
         .why = "each step waits until the last one's state is saved",
         .run = blind_snapshot,
         .share = {0.65, 0.78},
         .gain = {0.2, 0.33}},
        {.name = "blind_short_vectors",
         .limit = "compute",
         .why = "vectors of four elements",
         .run = blind_short_vectors,
         .share = {0.85, 1}},
        {.name = "blind_none_polynomial",
         .limit = "none",
         .why = "31 multiply-adds for each element",
         .run = blind_none_polynomial,
         .share = {0, 0.1}},
        {.name = "blind_none_momentum",
         .limit = "none",
         .why = "an optimiser's step in one pass",
         .run = blind_none_momentum,
         .share = {0, 0.1}},
        {.name = "blind_none_double_buffer",
         .limit = "none",
         .why = "copies into the other buffer while a kernel works",
         .run = blind_none_double_buffer,
         .share = {0, 0.1}},
        {.name = "blind_none_mixed",
         .limit = "none",
         .why = "two kinds of kernels and copies side by side",
         .run = blind_none_mixed,
         .share = {0, 0.1}},
    };
    return kCases;
}

}  // namespace planted
