// How fast engines work on the host: copies beside memcpy, in turns, and kernels in instructions a second.
//   bench_engines BYTES,...
//   bench_engines --launches ITEMS,...    small kernels, with groups of so many work-items
//   bench_engines --grids GROUPS,...      grids of so many groups of one short item, on few and on many cores
//   bench_engines --workers THREADS,...   large copies on so many host threads beside the card's
//   bench_engines --checks WHAT,...       kernels on a card that checks them (1 race, 2 memory, 3 both),
//   beside one
//                                         that does not, and what memory a check takes
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/api/checks.h"
#include "emulator/check/launch_check.h"
#include "emulator/engines/checked_spaces.h"
#include "tests/unit/engines/kernels.h"
#include "tests/unit/engines/rig.h"
#include "tools/bench/measured.h"
#include "tools/bench/thread_clock.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kHost = 0x10'0000'0000, kCard = 0x20'0000'0000, kData = 0x30'0000'0000;
constexpr std::uint64_t kMost = 64 << 20;  // bytes of a copy
constexpr int kCopies = 15, kLaunches = 9;

void copies(bench::Measured& measured, std::uint64_t bytes, bool to_host) {
    if (bytes == 0 || bytes > kMost) throw std::runtime_error(fmt::format("copies of 1 to {} bytes", kMost));
    Rig rig(256 << 20, 128 << 20);
    rig.map(kHost, kMost, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kCard, kMost, ORR_TARGET_VRAM, 0, Rig::kRights, 0, false);
    CopyEngine engine(0, CopyRates{}, rig.context);
    orr_desc_copy desc{};
    desc.op = ORR_DESC_COPY;
    desc.asid = 1;
    desc.src = to_host ? kCard : kHost;
    desc.dst = to_host ? kHost : kCard;
    desc.row_bytes = bytes;
    desc.rows = 1;
    std::memset(rig.vram.data(), 1, bytes);
    std::memset(rig.host_data, 2, bytes);
    std::uint8_t* const from = to_host ? rig.vram.data() : rig.host_data;
    std::uint8_t* const to = to_host ? rig.host_data : rig.vram.data();
    bench::Measurement one{to_host ? "copy engine, from card" : "copy engine, to card", bytes, {}, {}};
    const double gb = static_cast<double>(bytes) / 1e9;
    bool good = true;
    for (int turn = 0; turn < kCopies; ++turn) {
        one.yardstick.push_back(gb / bench::thread_seconds_of([&] {
                                    std::memcpy(to, from, bytes);
                                    bench::written();
                                }));
        one.samples.push_back(
            gb / bench::thread_seconds_of([&] { good &= rig.run_one(engine, desc).status == ORR_DONE_OK; }));
    }
    if (!good) throw std::runtime_error("the copy failed");
    measured.add(std::move(one));
}

double seconds_of(const std::function<void()>& work) {
    const auto began = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// Somebody else on the card thread, each 200 ns of model time: how long the host lets him wait at most.
struct Other {
    explicit Other(Rig& its) : rig(its), event(Event::of<&Other::on_event>(this)) {}
    void start() {
        last = std::chrono::steady_clock::now();
        gaps.clear();
        rig.events.schedule(event, rig.events.now() + 200'000);
    }
    void on_event(ModelTime now) {
        const auto at = std::chrono::steady_clock::now();
        gaps.push_back(std::chrono::duration<double>(at - last).count());
        last = at;
        if (rig.done.empty()) rig.events.schedule(event, now + 200'000);
    }
    double hundredth() {
        std::ranges::sort(gaps);
        return gaps[gaps.size() * 99 / 100];
    }

    Rig& rig;
    Event event;
    std::chrono::steady_clock::time_point last;
    std::vector<double> gaps;
};

// By the wall's clock, as threads are what it is about: one copy, two at once, and who waits beside one.
void beside(bench::Measured& measured, unsigned threads) {
    Rig rig(256 << 20, 128 << 20);
    Workers workers(threads);
    rig.context.workers = &workers;
    rig.mmu.before_change([&] { workers.quiesce(); });
    rig.map(kHost, 2 * kMost, ORR_TARGET_HOST, Rig::kHostBase);
    rig.map(kCard, 2 * kMost, ORR_TARGET_VRAM, 0);
    CopyEngine engines[] = {{0, CopyRates{}, rig.context}, {1, CopyRates{}, rig.context}};
    std::memset(rig.vram.data(), 1, 2 * kMost);
    std::memset(rig.host_data, 2, 2 * kMost);
    Other other(rig);
    bench::Measurement one{"one copy", threads, {}, {}}, two{"two copies at once", threads, {}, {}},
        gap{"who waits beside a copy, us in one of a hundred cases", threads, {}, {}};
    const auto start = [&](int number) {
        orr_desc_copy desc{};
        desc.op = ORR_DESC_COPY;
        desc.asid = 1;
        desc.src = kHost + static_cast<std::uint64_t>(number) * kMost;
        desc.dst = kCard + static_cast<std::uint64_t>(number) * kMost;
        desc.row_bytes = kMost;
        desc.rows = 1;
        if (!engines[number].start(Rig::words_of(desc), 1)) throw std::runtime_error("busy");
    };
    const double gb = static_cast<double>(kMost) / 1e9;
    for (int turn = 0; turn < kCopies; ++turn) {
        const double plain = gb / seconds_of([&] {
                                 std::memcpy(rig.vram.data(), rig.host_data, kMost);
                                 bench::written();
                             });
        one.yardstick.push_back(plain);
        two.yardstick.push_back(plain);
        rig.done.clear();
        start(0);
        one.samples.push_back(gb / seconds_of([&] { rig.run(); }));
        start(0);
        start(1);
        two.samples.push_back(2 * gb / seconds_of([&] { rig.run(); }));
        rig.done.clear();
        start(0);
        other.start();
        rig.run();
        gap.samples.push_back(other.hundredth() * 1e6);
    }
    measured.add(std::move(one));
    measured.add(std::move(two));
    measured.add(std::move(gap));
}

// The test kernels on a vector unit; args are theirs.
struct KernelRig {
    explicit KernelRig(const VectorConfig& config = {})
        : checked(checked_spaces(rig.mmu), std::uint64_t{1} << 30), unit(config, on_card(config.check)) {
        std::ifstream file(ORRERY_TEST_KERNELS, std::ios::binary);
        image.assign(std::istreambuf_iterator<char>(file), {});
        if (image.size() < kKernels * sizeof(std::uint64_t))
            throw std::runtime_error("there is no kernel image");
        std::memcpy(rig.vram.data(), image.data(), image.size());
        rig.map(kImageBase, 64 << 10, ORR_TARGET_VRAM, 0, ORR_PTE_READ | ORR_PTE_EXEC);
        rig.map(kData, 8 << 20, ORR_TARGET_VRAM, 16 << 20);
        rig.map(kHost, 8 << 20, ORR_TARGET_HOST, Rig::kHostBase);
    }
    bool run(Kernel which, std::uint32_t groups, std::uint16_t items) {
        orr_desc_kernel desc{};
        desc.op = ORR_DESC_KERNEL;
        desc.asid = 1;
        std::memcpy(&desc.entry, image.data() + which * sizeof(std::uint64_t), sizeof(std::uint64_t));
        desc.args = kData;
        desc.grid_x = groups;
        desc.block_x = items;
        desc.grid_y = desc.grid_z = desc.block_y = desc.block_z = 1;
        return rig.run_one(unit.port(0), desc).status == ORR_DONE_OK;
    }

    // As a card has it.
    EngineContext& on_card(unsigned check) {
        if ((check & kCheckMemory) != 0) rig.context.checked = &checked;
        return rig.context;
    }

    Rig rig;
    std::vector<char> image;
    CheckedMemory checked;
    VectorUnit unit;
    std::uint64_t* args = reinterpret_cast<std::uint64_t*>(rig.vram.data() + (16 << 20));
};

// Instructions a second.
void kernel(bench::Measured& measured, const char* name, Kernel which, std::uint16_t items,
            std::uint64_t rounds) {
    KernelRig rig;
    bench::Measurement one{name, {}, {}, {}};
    for (int turn = 0; turn <= kLaunches; ++turn) {
        rig.args[0] = which == kHistogram ? kHost : rounds;
        rig.args[1] = 4 << 20;
        rig.args[2] = kData + 4096;
        const std::uint64_t before = rig.rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS);
        bool good = false;
        const double took = bench::thread_seconds_of([&] { good = rig.run(which, 64, items); });
        if (!good) throw std::runtime_error("the kernel failed");
        const std::uint64_t done = rig.rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS) - before;
        if (turn > 0) one.samples.push_back(static_cast<double>(done) / took / 1e6);
    }
    measured.add(std::move(one));
}

// A graph of 100 small kernels, two kinds in turn, on all cores: microseconds a launch.
void launches(bench::Measured& measured, std::uint16_t items) {
    constexpr int kGraph = 100;
    KernelRig rig;
    rig.args[0] = 10;  // rounds of an item
    rig.args[2] = kData + 4096;
    bench::Measurement one{"launch of a small kernel", items, {}, {}};
    for (int turn = 0; turn <= kLaunches; ++turn) {
        bool good = true;
        const double took = bench::thread_seconds_of([&] {
            for (int launch = 0; launch < kGraph; ++launch)
                good &= rig.run(launch % 2 == 0 ? kSpin : kRegisters, 8, items);
        });
        if (!good) throw std::runtime_error("a small kernel failed");
        if (turn > 0) one.samples.push_back(took * 1e6 / kGraph);
    }
    measured.add(std::move(one));
}

// Nanoseconds a group.
void grid(bench::Measured& measured, std::uint32_t groups, std::uint32_t cores) {
    KernelRig rig({.cores = cores});
    rig.args[0] = 1;
    bench::Measurement one{fmt::format("group of a large grid, {} cores", cores), groups, {}, {}};
    for (int turn = 0; turn < 3; ++turn) {
        bool good = false;
        const double took = bench::thread_seconds_of([&] { good = rig.run(kSpin, groups, 1); });
        if (!good) throw std::runtime_error("the grid failed");
        one.samples.push_back(took * 1e9 / groups);
    }
    measured.add(std::move(one));
}

// Launches a second of kernels that are checked, by the thread's own clock.
void checks(bench::Measured& measured, unsigned what) {
    constexpr std::uint64_t kArray = 1 << 20;
    const struct {
        const char* name;
        Kernel kernel;
        std::vector<std::uint64_t> args;
        std::uint16_t items;
    } works[] = {
        {"checked: scalar code in registers", kSpin, {2'000}, 16},
        {"checked: scalar code with a stack, and memory", kMixAlone, {2'000, kData + kArray}, 1},
        {"checked: vector code in registers", kVectors, {2'000, kData + kArray}, 1},
        {"checked: vector stream, a = b + c",
         kTriad,
         {kData + kArray, kData + 3 * kArray, kData + 5 * kArray, 2048},
         1},
    };
    for (const auto& work : works) {
        const auto on_card = [](unsigned check) {
            return VectorConfig{.vlen = 2048, .datapath_bits = 2048, .check = check};
        };
        KernelRig plain(on_card(0)), checked(on_card(what));
        bench::Measurement one{work.name, what, {}, {}};
        const auto launches = [&](KernelRig& on) {
            std::ranges::copy(work.args, on.args);
            bool good = false;
            const double took = bench::thread_seconds_of([&] { good = on.run(work.kernel, 64, work.items); });
            if (!good) throw std::runtime_error(fmt::format("{} failed", work.name));
            return 1 / took;
        };
        for (int turn = 0; turn <= kLaunches; ++turn) {
            const double yardstick = launches(plain), sample = launches(checked);
            if (turn == 0) continue;  // it decodes, and touches memory for the first time
            one.samples.push_back(sample);
            one.yardstick.push_back(yardstick);
        }
        measured.add(std::move(one));
    }
    // Of each byte of a large array, written by an item of its own.
    LaunchCheck check(what, 256, 0);
    const std::uint64_t groups = 4096;
    for (std::uint64_t group = 0; group < groups; ++group) {
        LaunchCheck::Group& items = check.begin(group);
        for (std::uint32_t item = 0; item < 256; ++item) {
            check.start_item(items, true);
            check.access(items, item, 0x1000, 0,
                         {.va = kData + (group * 256 + item) * 4,
                          .bytes = 4,
                          .kind = AccessKind::kStore,
                          .element = 4});
        }
        check.end(items);
    }
    if ((what & kCheckRace) != 0)
        measured.add({"memory of a check",
                      what,
                      {static_cast<double>(check.most_shadow_bytes())},
                      {static_cast<double>(check.most_touched_bytes())}});
}

}  // namespace
}  // namespace orrery::emu::test

int main(int argc, char** argv) {
    using namespace orrery::emu::test;
    const std::string_view mode = argc == 3 ? argv[1] : "";
    const bool small = mode == "--launches", grids = mode == "--grids", threads = mode == "--workers",
               checked = mode == "--checks";
    std::istringstream sizes(argc == 2 || small || grids || threads || checked ? argv[argc - 1] : "");
    orrery::bench::Measured measured;
    try {
        for (std::string size; std::getline(sizes, size, ',');) {
            if (grids) {
                for (const std::uint32_t cores : {8u, 256u})
                    grid(measured, static_cast<std::uint32_t>(std::stoul(size)), cores);
                continue;
            }
            if (small) {
                launches(measured, static_cast<std::uint16_t>(std::stoul(size)));
                continue;
            }
            if (threads) {
                beside(measured, static_cast<unsigned>(std::stoul(size)));
                continue;
            }
            if (checked) {
                checks(measured, static_cast<unsigned>(std::stoul(size)));
                continue;
            }
            for (const bool to_host : {false, true})
                copies(measured, std::stoull(size), to_host);
        }
        if (!small && !grids && !threads && !checked) {
            kernel(measured, "kernel, long items", kSpin, 64, 10'000);
            kernel(measured, "kernel, short items", kSpin, 256, 10);
            kernel(measured, "kernel, histogram", kHistogram, 256, 0);
        }
        return measured.print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_engines: {}\n", error.what());
        return 1;
    }
}
