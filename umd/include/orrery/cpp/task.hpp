/* SPDX-License-Identifier: MIT */
/** Task graphs. Included by orrery.hpp. */
#ifndef ORRERY_CPP_TASK_HPP
#define ORRERY_CPP_TASK_HPP

#include <orrery/task.h>
#include <orrery/cpp/object.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery {

/** The kernel finds the datum's address in its arguments at `offset`. */
inline orrTaskAccess task_access(orrTaskData_t data, orrTaskAccessMode mode, std::size_t offset) {
    return {data, mode, 0, static_cast<std::uint32_t>(offset), 0};
}
/** Nothing is put into arguments: of host tasks, or for order alone. */
inline orrTaskAccess task_access(orrTaskData_t data, orrTaskAccessMode mode) {
    return {data, mode, orrTaskAccessNoArgument, 0, 0};
}

class TaskGraph : public Object<TaskGraph, orrTaskGraph_t, orrTaskGraphDestroy> {
  public:
    TaskGraph() : TaskGraph(ORR_INIT(orrTaskGraphOptions)) {}
    explicit TaskGraph(const orrTaskGraphOptions& options) : Object(make(options)) {}
    explicit TaskGraph(Empty e) : Object(e) {}
    /** host: first contents, or null. */
    orrTaskData_t data(void* host, std::size_t bytes) const {
        orrTaskData_t data{};
        check(orrTaskDataCreate(&data, get(), host, bytes));
        return data;
    }
    orrTaskKernel_t kernel(const void* image, std::size_t bytes, const char* name) const {
        orrTaskKernel_t kernel{};
        check(orrTaskKernelCreate(&kernel, get(), image, bytes, name));
        return kernel;
    }
    /** Of a library. */
    orrTaskKernel_t kernel(orrFunction_t function) const {
        orrTaskKernel_t kernel{};
        check(orrTaskKernelFromFunction(&kernel, get(), function));
        return kernel;
    }
    orrTask_t submit(const orrTaskDesc& desc) const {
        orrTask_t task = 0;
        check(orrTaskSubmit(&task, get(), &desc));
        return task;
    }
    /** The accesses take the place of those in desc. */
    orrTask_t submit(orrTaskDesc desc, const std::vector<orrTaskAccess>& accesses) const {
        desc.accesses = accesses.data();
        desc.access_count = accesses.size();
        return submit(desc);
    }
    void start() const { check(orrTaskGraphStart(get())); }
    void wait() const { check(orrTaskGraphWait(get())); }
    void wait(orrTask_t task) const { check(orrTaskWait(get(), task)); }
    static void read(void* dst, orrTaskData_t data, std::size_t bytes) {
        check(orrTaskDataRead(dst, data, bytes));
    }
    orrTaskInfo info(orrTask_t task) const {
        orrTaskInfo info = ORR_INIT(orrTaskInfo);
        check(orrTaskGetInfo(&info, get(), task));
        return info;
    }
    orrTaskStats stats() const {
        orrTaskStats stats = ORR_INIT(orrTaskStats);
        check(orrTaskGraphGetStats(&stats, get()));
        return stats;
    }

  private:
    static orrTaskGraph_t make(const orrTaskGraphOptions& options) {
        orrTaskGraph_t graph{};
        check(orrTaskGraphCreate(&graph, &options));
        return graph;
    }
};

}  // namespace orrery

#endif /* ORRERY_CPP_TASK_HPP */
