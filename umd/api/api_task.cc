#include <algorithm>

#include "umd/api/guard.h"
#include "umd/runtime/launch.h"
#include "umd/scheduler/task_session.h"

using namespace orrery::umd;

namespace {

constexpr std::size_t kMaxAccesses = 64;

Result<std::shared_ptr<TaskSession>> find_session(Runtime& runtime, orrTaskGraph_t handle) {
    auto session = runtime.task_graphs.find_shared(handle);
    if (session == nullptr) return std::unexpected(bad_handle("task graph", handle).error());
    return session;
}

struct FoundData {
    std::shared_ptr<TaskSession> session;
    DataId id = 0;
};
Result<FoundData> find_data(Runtime& runtime, orrTaskData_t handle) {
    const TaskDataRef* ref = runtime.task_data.find(handle);
    auto session = ref == nullptr ? nullptr : ref->session.lock();
    if (session == nullptr) return std::unexpected(bad_handle("datum of a task graph", handle).error());
    return FoundData{std::move(session), ref->id};
}

Result<std::shared_ptr<TaskKernel>> find_kernel(Runtime& runtime, orrTaskKernel_t handle,
                                                const TaskSession& session) {
    const TaskKernelRef* ref = runtime.task_kernels.find(handle);
    const auto owner = ref == nullptr ? nullptr : ref->session.lock();
    if (owner == nullptr) return std::unexpected(bad_handle("task kernel", handle).error());
    if (owner.get() != &session)
        return fail(orrErrorInvalidHandle, "the kernel belongs to another task graph");
    return ref->kernel;
}

Status read_accesses(Runtime& runtime, const TaskSession& session, const orrTaskDesc& desc,
                     TaskSession::Submission& submission) {
    if (desc.access_count > kMaxAccesses) {
        return fail(orrErrorInvalidValue, "{} accesses: at most {} a task", desc.access_count, kMaxAccesses);
    }
    if (desc.accesses == nullptr && desc.access_count != 0) return null_argument("accesses");
    for (std::size_t i = 0; i < desc.access_count; ++i) {
        const orrTaskAccess& access = desc.accesses[i];
        ORR_TRY(data, find_data(runtime, access.data));
        if (data->session.get() != &session) {
            return fail(orrErrorInvalidHandle, "the datum of access {} belongs to another task graph", i);
        }
        const bool reduces = access.mode == orrTaskReduce;
        if (access.mode < orrTaskRead || access.mode > orrTaskReduce) {
            return fail(orrErrorInvalidValue, "access {} has mode {}: none of orrTaskAccessMode", i,
                        static_cast<int>(access.mode));
        }
        if (reduces && desc.function != nullptr) {
            return fail(orrErrorNotSupported, "access {}: a host task cannot reduce; let it read and write",
                        i);
        }
        const auto twice = [&](const DataAccess& other) { return other.data == data->id; };
        if (std::ranges::any_of(submission.accesses, twice)) {
            return fail(orrErrorInvalidValue, "access {} names a datum for the second time: join their modes",
                        i);
        }
        const bool stored = access.arg_offset >= 0;
        if (stored && desc.kernel != nullptr &&
            (static_cast<std::size_t>(access.arg_offset) + sizeof(void*) > desc.bytes ||
             access.arg_offset % 8 != 0)) {
            return fail(orrErrorInvalidValue,
                        "access {}: offset {} is no place for an address in {} bytes of arguments", i,
                        access.arg_offset, desc.bytes);
        }
        submission.accesses.push_back({data->id, static_cast<Access>(access.mode)});
        submission.work.offsets.push_back(access.arg_offset);
    }
    return {};
}

}  // namespace

extern "C" {

orrError_t orrTaskGraphCreate(orrTaskGraph_t* graph, const orrTaskGraphOptions* options) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (graph == nullptr) return null_argument("graph");
        TaskSession::Options made;
        ORR_TRY(count, runtime.device_count());
        if (options != nullptr) {
            if (options->devices == nullptr && options->device_count != 0) return null_argument("devices");
            made.devices.assign(options->devices, options->devices + options->device_count);
            if (options->cost_file != nullptr) made.cost_file = options->cost_file;
            if (options->issue_ahead > 32) {
                return fail(orrErrorInvalidValue, "issue_ahead {}: at most 32", options->issue_ahead);
            }
            made.issue_ahead = options->issue_ahead;
        }
        if (made.devices.empty()) {
            for (int device = 0; device < std::min<int>(*count, kMaxCards); ++device)
                made.devices.push_back(device);
        }
        if (made.devices.empty()) {
            ORR_TRY(none, runtime.device(0));  // says why
        }
        if (made.devices.size() > kMaxCards) {
            return fail(orrErrorInvalidValue, "{} devices: a task graph uses at most {}", made.devices.size(),
                        kMaxCards);
        }
        auto sorted = made.devices;
        std::ranges::sort(sorted);
        if (std::ranges::adjacent_find(sorted) != sorted.end()) {
            return fail(orrErrorInvalidValue, "device {} is named twice",
                        *std::ranges::adjacent_find(sorted));
        }
        ORR_TRY(session, TaskSession::create(runtime, std::move(made)));
        void* handle = runtime.task_graphs.insert(std::move(*session));
        if (handle == nullptr) return fail(orrErrorOutOfMemory, "too many live task graphs");
        *graph = static_cast<orrTaskGraph_t>(handle);
        return {};
    });
}

orrError_t orrTaskGraphDestroy(orrTaskGraph_t graph) {
    return with_runtime([&](Runtime& runtime) -> Status {
        const auto gone = runtime.task_graphs.remove(graph);
        if (gone == nullptr) return bad_handle("task graph", graph);
        gone->take_handles([&](void* data) { runtime.task_data.remove(data); },
                           [&](void* kernel) { runtime.task_kernels.remove(kernel); });
        return {};
    });
}

orrError_t orrTaskDataCreate(orrTaskData_t* data, orrTaskGraph_t graph, void* host, size_t bytes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (data == nullptr) return null_argument("data");
        if (bytes == 0) return fail(orrErrorInvalidValue, "a datum has at least one byte");
        ORR_TRY(session, find_session(runtime, graph));
        ORR_TRY(id, (*session)->add_data(runtime, host, bytes));
        void* handle = runtime.task_data.insert(std::make_shared<TaskDataRef>(TaskDataRef{*session, *id}));
        if (handle == nullptr) return fail(orrErrorOutOfMemory, "too many live data of task graphs");
        (*session)->keep_handle(handle, true);
        *data = static_cast<orrTaskData_t>(handle);
        return {};
    });
}

orrError_t orrTaskDataRead(orrTaskData_t data, void* dst, size_t bytes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (dst == nullptr) return null_argument("dst");
        ORR_TRY(found, find_data(runtime, data));
        return found->session->read(found->id, {static_cast<std::byte*>(dst), bytes});
    });
}

orrError_t orrTaskKernelCreate(orrTaskKernel_t* kernel, orrTaskGraph_t graph, const void* image, size_t bytes,
                               const char* name) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (kernel == nullptr || image == nullptr || name == nullptr)
            return null_argument("kernel, image or name");
        ORR_TRY(session, find_session(runtime, graph));
        ORR_TRY(loaded, (*session)->load({static_cast<const std::byte*>(image), bytes}, name));
        void* handle =
            runtime.task_kernels.insert(std::make_shared<TaskKernelRef>(TaskKernelRef{*session, *loaded}));
        if (handle == nullptr) return fail(orrErrorOutOfMemory, "too many live task kernels");
        (*session)->keep_handle(handle, false);
        *kernel = static_cast<orrTaskKernel_t>(handle);
        return {};
    });
}

orrError_t orrTaskDataSetMerge(orrTaskData_t data, orrTaskKernel_t kernel, orrDim3 grid, orrDim3 block) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_data(runtime, data));
        ORR_TRY(merge, find_kernel(runtime, kernel, *found->session));
        return found->session->set_merge(found->id, std::move(*merge), grid, block);
    });
}

orrError_t orrTaskSubmit(orrTask_t* task, orrTaskGraph_t graph, const orrTaskDesc* desc) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (desc == nullptr) return null_argument("desc");
        ORR_TRY(session, find_session(runtime, graph));
        TaskSession::Submission submission;
        if ((desc->kernel == nullptr) == (desc->function == nullptr)) {
            return fail(orrErrorInvalidValue, "a task has either a kernel or a function of the host");
        }
        if (desc->kernel != nullptr) {
            ORR_TRY(kernel, find_kernel(runtime, desc->kernel, **session));
            auto valid = check_launch(desc->grid, desc->block, desc->args, desc->bytes, desc->local_bytes);
            if (!valid) return valid;
            const auto* args = static_cast<const std::byte*>(desc->args);
            submission.work.kernel = std::move(*kernel);
            submission.work.name = submission.work.kernel->name;
            submission.work.grid = desc->grid;
            submission.work.block = desc->block;
            submission.work.local_bytes = desc->local_bytes;
            submission.work.args.assign(args, args + desc->bytes);
        } else {
            submission.work.function = desc->function;
            submission.work.user = desc->user;
            submission.device = (*session)->host_node();
        }
        if (desc->name != nullptr) submission.work.name = desc->name;
        if (auto read = read_accesses(runtime, **session, *desc, submission); !read) return read;
        if (desc->after == nullptr && desc->after_count != 0) return null_argument("after");
        submission.after.assign(desc->after, desc->after + desc->after_count);
        if (!(desc->cost_ns >= 0 && desc->cost_ns < 1e15 && desc->deadline_ns >= 0 &&
              desc->deadline_ns < 1e15)) {
            return fail(orrErrorInvalidValue, "a cost of {} ns and a deadline of {} ns: each 0 or up to 1e15",
                        desc->cost_ns, desc->deadline_ns);
        }
        submission.cost = static_cast<Ps>(desc->cost_ns * 1000);
        if (desc->deadline_ns > 0) submission.deadline = static_cast<Ps>(desc->deadline_ns * 1000);
        submission.priority = desc->priority;
        if (desc->device_plus_1 != 0 && desc->kernel != nullptr) {
            ORR_TRY(card, (*session)->card_of(desc->device_plus_1 - 1));
            submission.device = *card;
        }
        ORR_TRY(id, (*session)->submit(std::move(submission)));
        if (task != nullptr) *task = *id;
        return {};
    });
}

orrError_t orrTaskGraphStart(orrTaskGraph_t graph) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(session, find_session(runtime, graph));
        (*session)->start();
        return {};
    });
}

orrError_t orrTaskGraphWait(orrTaskGraph_t graph) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(session, find_session(runtime, graph));
        return (*session)->wait_all();
    });
}

orrError_t orrTaskWait(orrTaskGraph_t graph, orrTask_t task) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(session, find_session(runtime, graph));
        return (*session)->wait(task);
    });
}

orrError_t orrTaskCancel(orrTaskGraph_t graph, orrTask_t task) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(session, find_session(runtime, graph));
        return (*session)->cancel(task);
    });
}

orrError_t orrTaskGetInfo(orrTaskInfo* info, orrTaskGraph_t graph, orrTask_t task) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (info == nullptr) return null_argument("info");
        ORR_TRY(session, find_session(runtime, graph));
        ORR_TRY(told, (*session)->info(task));
        *info = *told;
        return {};
    });
}

orrError_t orrTaskGraphGetStats(orrTaskStats* stats, orrTaskGraph_t graph) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (stats == nullptr) return null_argument("stats");
        ORR_TRY(session, find_session(runtime, graph));
        *stats = (*session)->stats();
        return {};
    });
}

}  // extern "C"
