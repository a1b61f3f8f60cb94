#include <starpu.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/bench/scheduler/starpu/locations.h"
#include "tests/bench/scheduler/starpu/sides.h"

namespace orrery::umd::compare {
namespace {

struct Argument {
    Locations* locations;
    const graphs::TaskGraph* graph;
    std::uint32_t task;
};

void body(void*[], void* raw) {
    const auto& argument = *static_cast<Argument*>(raw);
    const auto worker = static_cast<unsigned>(starpu_worker_get_id());
    sleep_for(argument.locations->fetch(argument.task, worker) + argument.graph->tasks[argument.task].cost);
}

// What dmdas believes of a task on a worker, in microseconds: exactly what the worker will sleep, as far as
// the inputs lie now. The model is asked with the worker's own description, by whose address the worker is
// known.
double expected(starpu_task* task, starpu_perfmodel_arch* arch, unsigned) {
    const auto& argument = *static_cast<Argument*>(task->cl_arg);
    unsigned worker = 0;
    for (unsigned i = 0; i < starpu_worker_get_count(); ++i)
        if (starpu_worker_get_perf_archtype(static_cast<int>(i), 0) == arch) worker = i;
    const Ps all =
        argument.locations->fetch_time(argument.task, worker) + argument.graph->tasks[argument.task].cost;
    return static_cast<double>(all) * 1e-6;
}

starpu_data_access_mode mode_of(Access access) {
    if (access == Access::kRead) return STARPU_R;
    return access == Access::kWrite ? STARPU_W : STARPU_RW;
}

}  // namespace

unsigned most_starpu_workers() {
    return STARPU_MAXCPUS;
}

Outcome run_starpu(const graphs::TaskGraph& graph, const Machine& machine,
                   const std::vector<int>& priorities) {
    starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = static_cast<int>(machine.cards);
    conf.ncuda = conf.nopencl = 0;
    conf.sched_policy_name = "dmdas";
    if (starpu_init(&conf) != 0) throw std::runtime_error("starpu_init failed");
    if (starpu_worker_get_count() != machine.cards) {
        throw std::runtime_error("StarPU made another number of workers than was asked for");
    }
    Locations locations(graph, machine);
    starpu_perfmodel model{};
    model.type = STARPU_PER_ARCH;
    model.arch_cost_function = expected;
    model.symbol = "orrery_compare";
    starpu_codelet codelet{};
    codelet.cpu_funcs[0] = body;
    codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
    codelet.model = &model;
    std::vector<std::uint64_t> memory(graph.data.size());
    std::vector<starpu_data_handle_t> handles(graph.data.size());
    for (std::size_t i = 0; i < handles.size(); ++i) {
        starpu_variable_data_register(&handles[i], STARPU_MAIN_RAM,
                                      reinterpret_cast<std::uintptr_t>(&memory[i]), sizeof(memory[i]));
    }
    std::vector<Argument> arguments(graph.tasks.size());
    // Nothing starts before all is submitted, as on the other side.
    starpu_pause();
    for (std::uint32_t i = 0; i < graph.tasks.size(); ++i) {
        arguments[i] = {&locations, &graph, i};
        starpu_task* task = starpu_task_create();
        task->cl = &codelet;
        task->cl_arg = &arguments[i];
        task->cl_arg_size = sizeof(Argument);
        task->cl_arg_free = 0;
        task->priority = priorities[i];
        const auto& accesses = graph.tasks[i].accesses;
        task->nbuffers = static_cast<int>(accesses.size());
        // Freed by StarPU with the task.
        task->dyn_handles =
            static_cast<starpu_data_handle_t*>(std::malloc(accesses.size() * sizeof(starpu_data_handle_t)));
        task->dyn_modes = static_cast<starpu_data_access_mode*>(
            std::malloc(accesses.size() * sizeof(starpu_data_access_mode)));
        for (std::size_t a = 0; a < accesses.size(); ++a) {
            task->dyn_handles[a] = handles[accesses[a].data];
            task->dyn_modes[a] = mode_of(accesses[a].mode);
        }
        if (starpu_task_submit(task) != 0) throw std::runtime_error("starpu_task_submit failed");
    }
    const double start = now_seconds();
    starpu_resume();
    starpu_task_wait_for_all();
    const double seconds = now_seconds() - start;
    for (auto& handle : handles)
        starpu_data_unregister(handle);
    starpu_shutdown();
    return {seconds, locations.order()};
}

}  // namespace orrery::umd::compare
