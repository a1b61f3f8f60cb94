#include <algorithm>

#include "umd/api/guard.h"
#include "umd/api/structs.h"
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

struct TaskAccessIn {
    DataAccess data;
    std::int32_t offset;  // in the arguments; -1: nowhere
};

struct FoundData {
    std::shared_ptr<TaskSession> session;
    DataId id = 0;
};
Result<FoundData> find_data(Runtime& runtime, orrTaskData_t handle) {
    const auto ref = runtime.task_data.find(handle);
    auto session = ref ? ref->session.lock() : nullptr;
    if (session == nullptr) return std::unexpected(bad_handle("datum of a task graph", handle).error());
    return FoundData{std::move(session), ref->id};
}

Result<std::shared_ptr<TaskKernel>> find_kernel(Runtime& runtime, orrTaskKernel_t handle,
                                                const TaskSession& session) {
    const auto ref = runtime.task_kernels.find(handle);
    const auto owner = ref ? ref->session.lock() : nullptr;
    if (owner == nullptr) return std::unexpected(bad_handle("task kernel", handle).error());
    if (owner.get() != &session)
        return fail(orrErrorInvalidHandle, "the kernel belongs to another task graph");
    return ref->kernel;
}

Status give_kernel(Runtime& runtime, const std::shared_ptr<TaskSession>& session,
                   const Result<std::shared_ptr<TaskKernel>>& loaded, orrTaskKernel_t* kernel) {
    if (!loaded) return std::unexpected(loaded.error());
    ORR_TRY(handle, give_handle(runtime.task_kernels, std::make_shared<TaskKernelRef>(session, *loaded),
                                "task kernels"));
    session->keep_handle(*handle, false);
    *kernel = static_cast<orrTaskKernel_t>(*handle);
    return {};
}

Result<TaskAccessIn> read_access(Runtime& runtime, const TaskSession& session, const orrTaskDesc& desc,
                                 std::size_t i) {
    const orrTaskAccess& access = desc.accesses[i];
    ORR_TRY(data, find_data(runtime, access.data));
    if (data->session.get() != &session)
        return fail(orrErrorInvalidHandle, "the datum of access {} belongs to another task graph", i);
    if (access.mode < orrTaskAccessRead || access.mode > orrTaskAccessReduce) {
        return fail(orrErrorInvalidValue, "access {} has mode {}: none of orrTaskAccessMode", i,
                    static_cast<int>(access.mode));
    }
    if (access.mode == orrTaskAccessReduce && desc.function != nullptr)
        return fail(orrErrorNotSupported, "access {}: a host task cannot reduce; let it read and write", i);
    ORR_TRY(known, check_flags(access.flags, orrTaskAccessNoArgument, "orrTaskAccess"));
    if (access.reserved != 0) return fail(orrErrorInvalidValue, "orrTaskAccess::reserved is not zero");
    const bool stored = desc.kernel != nullptr && (access.flags & orrTaskAccessNoArgument) == 0;
    if (stored &&
        (std::size_t{access.arg_offset} + sizeof(void*) > desc.bytes || access.arg_offset % 8 != 0)) {
        return fail(orrErrorInvalidValue,
                    "access {}: offset {} is no place for an address in {} bytes of arguments; if the kernel "
                    "needs none, say orrTaskAccessNoArgument",
                    i, access.arg_offset, desc.bytes);
    }
    return TaskAccessIn{{data->id, static_cast<Access>(access.mode)},
                        stored ? static_cast<std::int32_t>(access.arg_offset) : -1};
}

Status read_accesses(Runtime& runtime, const TaskSession& session, const orrTaskDesc& desc,
                     TaskSession::Submission& submission) {
    if (desc.access_count > kMaxAccesses) {
        return fail(orrErrorInvalidValue, "{} accesses: at most {} a task", desc.access_count, kMaxAccesses);
    }
    if (desc.accesses == nullptr && desc.access_count != 0) return null_argument("accesses");
    for (std::size_t i = 0; i < desc.access_count; ++i) {
        ORR_TRY(access, read_access(runtime, session, desc, i));
        const auto twice = [&](const DataAccess& other) { return other.data == access->data.data; };
        if (std::ranges::any_of(submission.accesses, twice)) {
            return fail(orrErrorInvalidValue, "access {} names a datum for the second time: join their modes",
                        i);
        }
        submission.accesses.push_back(access->data);
        submission.work.offsets.push_back(access->offset);
    }
    return {};
}

// All but where its data are.
Status read_work(Runtime& runtime, const TaskSession& session, const orrTaskDesc& desc,
                 TaskSession::Submission& submission) {
    if ((desc.kernel == nullptr) == (desc.function == nullptr))
        return fail(orrErrorInvalidValue, "a task has either a kernel or a function of the host");
    if (desc.kernel != nullptr) {
        ORR_TRY(kernel, find_kernel(runtime, desc.kernel, session));
        ORR_TRY(valid, check_launch(desc.grid, desc.block, desc.args, desc.bytes, desc.local_bytes));
        const auto* args = static_cast<const std::byte*>(desc.args);
        submission.work.kernel = std::move(*kernel);
        submission.work.name = submission.work.kernel->name;
        submission.work.grid = desc.grid;
        submission.work.block = desc.block;
        submission.work.local_bytes = desc.local_bytes;
        submission.work.args.assign(args, args + desc.bytes);
    } else {
        submission.work.function = desc.function;
        submission.work.user = desc.user;
        submission.device = session.host_node();
    }
    if (desc.name != nullptr) submission.work.name = desc.name;
    return {};
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrTaskGraphCreate(orrTaskGraph_t* graph, const orrTaskGraphOptions* options) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (graph == nullptr) return null_argument("graph");
        TaskSession::Options made;
        ORR_TRY(count, runtime.device_count());
        ORR_TRY(given, read_optional(options, "orrTaskGraphOptions"));
        ORR_TRY(known, check_flags(given->flags, 0, "orrTaskGraphOptions"));
        if (given->reserved != 0)
            return fail(orrErrorInvalidValue, "orrTaskGraphOptions::reserved is not zero");
        if (given->devices == nullptr && given->device_count != 0) return null_argument("devices");
        made.devices.assign(given->devices, given->devices + given->device_count);
        if (given->cost_file != nullptr) made.cost_file = given->cost_file;
        if (given->issue_ahead > 32)
            return fail(orrErrorInvalidValue, "issue_ahead {}: at most 32", given->issue_ahead);
        made.issue_ahead = given->issue_ahead;
        made.limit_us = given->limit_us;
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
        ORR_TRY(handle, give_handle(runtime.task_graphs, std::move(*session), "task graphs"));
        *graph = static_cast<orrTaskGraph_t>(*handle);
        return {};
    });
}

orrError_t orrTaskGraphDestroy(orrTaskGraph_t graph) {
    return with_runtime([&](Runtime& runtime) -> Status {
        {
            const auto found = runtime.task_graphs.find(graph);
            if (!found) return bad_handle("task graph", graph);
            ORR_TRY(closed, found->close());
        }
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
        ORR_TRY(handle, give_handle(runtime.task_data, std::make_shared<TaskDataRef>(*session, *id),
                                    "data of task graphs"));
        (*session)->keep_handle(*handle, true);
        *data = static_cast<orrTaskData_t>(*handle);
        return {};
    });
}

orrError_t orrTaskDataRead(void* dst, orrTaskData_t data, size_t bytes) {
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
        return give_kernel(runtime, *session,
                           (*session)->load({static_cast<const std::byte*>(image), bytes}, name), kernel);
    });
}

orrError_t orrTaskKernelFromFunction(orrTaskKernel_t* kernel, orrTaskGraph_t graph, orrFunction_t function) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (kernel == nullptr) return null_argument("kernel");
        ORR_TRY(session, find_session(runtime, graph));
        const auto found = runtime.functions.find_shared(function);
        if (found == nullptr) return bad_handle("function", function);
        return give_kernel(runtime, *session, (*session)->load(found), kernel);
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
        ORR_TRY(read, read_struct(desc, "orrTaskDesc"));
        const orrTaskDesc& given = *read;
        ORR_TRY(known, check_flags(given.flags, orrTaskOnDevice, "orrTaskDesc"));
        if (given.reserved != 0) return fail(orrErrorInvalidValue, "orrTaskDesc::reserved is not zero");
        ORR_TRY(session, find_session(runtime, graph));
        TaskSession::Submission submission;
        ORR_TRY(work, read_work(runtime, **session, given, submission));
        ORR_TRY(accesses, read_accesses(runtime, **session, given, submission));
        if (given.after == nullptr && given.after_count != 0) return null_argument("after");
        submission.after.assign(given.after, given.after + given.after_count);
        if (!(given.cost_ns >= 0 && given.cost_ns < 1e15 && given.deadline_ns >= 0 &&
              given.deadline_ns < 1e15)) {
            return fail(orrErrorInvalidValue, "a cost of {} ns and a deadline of {} ns: each 0 or up to 1e15",
                        given.cost_ns, given.deadline_ns);
        }
        submission.cost = static_cast<Ps>(given.cost_ns * 1000);
        if (given.deadline_ns > 0) submission.deadline = static_cast<Ps>(given.deadline_ns * 1000);
        submission.priority = given.priority;
        if ((given.flags & orrTaskOnDevice) != 0 && given.kernel != nullptr) {
            ORR_TRY(card, (*session)->card_of(given.device));
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
        ORR_TRY(good, check_result_struct(info, "orrTaskInfo"));
        ORR_TRY(session, find_session(runtime, graph));
        ORR_TRY(told, (*session)->info(task));
        return write_struct(info, *told, "orrTaskInfo");
    });
}

orrError_t orrTaskGraphGetStats(orrTaskStats* stats, orrTaskGraph_t graph) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(stats, "orrTaskStats"));
        ORR_TRY(session, find_session(runtime, graph));
        return write_struct(stats, (*session)->stats(), "orrTaskStats");
    });
}

}  // namespace orrery::umd::api
