// bench_end_to_end: what a task costs from its submission to the end of all, with orrTask* and with
// starpu_task_*, in one process and in turns. Tasks do nothing, on a datum of 8 bytes each:
//   host tasks     a function on the CPU on both sides: the same work in the same place
//   tasks on card  a kernel on a card against StarPU's function on the CPU: what a card's packets, doorbells
//   and
//                  transfers cost beside a function call
// as a chain through one datum and as 32 chains side by side. Both sides make one graph of so many tasks,
// start it when all are submitted, and wait for all. StarPU has its own choice of scheduler and one CPU
// worker.
#include <fmt/format.h>
#include <starpu.h>

#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "tools/bench/measured.h"

ORR_EMBEDDED_KERNEL(end_to_end_kernels);

namespace {

using orrery::check;
using Clock = std::chrono::steady_clock;

constexpr unsigned kTasks = 1000;
constexpr int kRounds = 9;

double us_each(Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kTasks;
}

double orrery_us(unsigned chains, bool on_card) {
    const orrery::TaskGraph graph;
    const auto image = end_to_end_kernels_image();
    orrTaskDesc desc = ORR_INIT(orrTaskDesc);
    if (on_card) {
        desc.kernel = graph.kernel(image.data(), image.size(), "nothing");
        desc.grid = {1, 1, 1};
        desc.block = {1, 1, 1};
    } else {
        desc.function = [](void*, void* const*, std::size_t) {};
    }
    void* pointer = nullptr;
    desc.args = on_card ? &pointer : nullptr;
    desc.bytes = on_card ? sizeof(pointer) : 0;
    std::vector<std::uint64_t> memory(chains);
    std::vector<orrTaskData_t> data;
    for (std::uint64_t& word : memory)
        data.push_back(graph.data(&word, sizeof(word)));
    const auto begin = Clock::now();
    for (unsigned i = 0; i < kTasks; ++i) {
        orrTaskAccess access{};
        access.data = data[i % chains];
        access.mode = orrTaskAccessReadWrite;
        desc.accesses = &access;
        desc.access_count = 1;
        (void)graph.submit(desc);
    }
    graph.wait();
    return us_each(begin);
}

void body(void*[], void*) {}

double starpu_us(unsigned chains) {
    static starpu_codelet codelet = [] {
        starpu_codelet made{};
        made.cpu_funcs[0] = body;
        made.nbuffers = 1;
        made.modes[0] = STARPU_RW;
        return made;
    }();
    std::vector<std::uint64_t> memory(chains);
    std::vector<starpu_data_handle_t> handles(chains);
    for (unsigned i = 0; i < chains; ++i)
        starpu_variable_data_register(&handles[i], STARPU_MAIN_RAM,
                                      reinterpret_cast<std::uintptr_t>(&memory[i]), sizeof(memory[i]));
    const auto begin = Clock::now();
    for (unsigned i = 0; i < kTasks; ++i) {
        starpu_task* task = starpu_task_create();
        task->cl = &codelet;
        task->handles[0] = handles[i % chains];
        if (starpu_task_submit(task) != 0) throw std::runtime_error("starpu_task_submit failed");
    }
    starpu_resume();
    starpu_task_wait_for_all();
    const double us = us_each(begin);
    starpu_pause();
    for (auto& handle : handles)
        starpu_data_unregister(handle);
    return us;
}

void measure(orrery::bench::Measured& measured, const char* name, unsigned chains, bool on_card) {
    orrery::bench::Measurement one{name, chains, {}, {}};
    for (int round = 0; round <= kRounds; ++round) {
        const double ours = orrery_us(chains, on_card), theirs = starpu_us(chains);
        if (round == 0) continue;  // warms up
        one.samples.push_back(ours);
        one.yardstick.push_back(theirs);
    }
    measured.add(std::move(one));
}

}  // namespace

int main() {
    // It keeps notes there.
    ::setenv("STARPU_HOME", "/tmp", 1);
    ::setenv("STARPU_SILENT", "1", 1);
    ::setenv("STARPU_WORKERS_NOBIND", "1", 1);
    try {
        starpu_conf conf;
        starpu_conf_init(&conf);
        conf.ncpus = 1;
        conf.ncuda = conf.nopencl = 0;
        if (starpu_init(&conf) != 0) throw std::runtime_error("StarPU does not start");
        starpu_pause();  // its worker looks for work all the time
        orrery::bench::Measured measured;
        for (const unsigned chains : {1u, 32u}) {
            measure(measured, "task end to end, on host", chains, false);
            measure(measured, "task end to end, on card", chains, true);
        }
        starpu_resume();
        starpu_shutdown();
        return measured.print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_end_to_end: {}\n", error.what());
        return 1;
    }
}
