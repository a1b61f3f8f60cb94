// A task graph of the C API: the core, the executor on real cards, the cost model, and two threads: one
// plans, issues and looks for ends, the other runs host tasks.
#pragma once

#include <orrery/task.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "umd/scheduler/core.h"
#include "umd/scheduler/cost_model.h"
#include "umd/scheduler/runtime_executor.h"

namespace orrery::umd {

// What handles of data and kernels stand for. They end with their session.
class TaskSession;
struct TaskDataRef {
    std::weak_ptr<TaskSession> session;
    DataId id = 0;
};
struct TaskKernelRef {
    std::weak_ptr<TaskSession> session;
    std::shared_ptr<TaskKernel> kernel;
};

// Thread safe.
class TaskSession final : private RuntimeExecutor::Listener {
  public:
    struct Options {
        std::vector<int> devices;
        std::string cost_file;
        unsigned issue_ahead = 0;    // 0: as task.h says
        std::uint32_t limit_us = 0;  // likewise
    };
    static Result<std::shared_ptr<TaskSession>> create(Runtime& runtime, Options options);
    ~TaskSession() override;
    TaskSession(const TaskSession&) = delete;
    TaskSession& operator=(const TaskSession&) = delete;

    // Waits for what runs, cancels what does not, and ends its threads; who comes later is refused. Not from
    // a host task of its own.
    Status close();

    Result<DataId> add_data(Runtime& runtime, const void* host, std::uint64_t bytes);
    Result<std::shared_ptr<TaskKernel>> load(std::span<const std::byte> image, const std::string& name);
    Result<std::shared_ptr<TaskKernel>> load(const std::shared_ptr<const Function>& function);
    Status set_merge(DataId data, std::shared_ptr<TaskKernel> kernel, orrDim3 grid, orrDim3 block);

    struct Submission {
        TaskWork work;
        std::vector<DataAccess> accesses;
        std::vector<TaskId> after;
        Ps cost = 0;  // 0: measured
        Ps deadline = kNever;
        std::int32_t priority = 0;
        int device = -1;
    };
    Result<TaskId> submit(Submission submission);
    Status read(DataId data, std::span<std::byte> dst);
    void start();
    Status wait_all();
    Status wait(TaskId task);
    Status cancel(TaskId task);
    Result<orrTaskInfo> info(TaskId task);
    orrTaskStats stats();
    int host_node() const { return static_cast<int>(executor_->machine().host()); }
    // The place of a device among those of this graph.
    Result<int> card_of(int device) const;

    // Handles given out, which end with the session.
    void keep_handle(void* handle, bool data) {
        const std::lock_guard lock(mutex_);
        (data ? data_handles_ : kernel_handles_).push_back(handle);
    }
    template <typename Data, typename Kernel>
    void take_handles(Data&& data, Kernel&& kernel) {
        const std::lock_guard lock(mutex_);
        for (void* handle : data_handles_)
            data(handle);
        for (void* handle : kernel_handles_)
            kernel(handle);
    }

  private:
    TaskSession() = default;
    void completed(TaskId task, Ps start, Ps finish) override;
    void failed(TaskId task, const Error& error) override;
    void run(const std::stop_token& stop);
    void run_host_tasks(const std::stop_token& stop);
    // Whether a recovery has ended.
    bool turn(std::unique_lock<std::mutex>& lock);
    void advance();
    void give_up();
    void let_waiters_go(std::unique_lock<std::mutex>& lock);
    Status outcome(TaskId task) const;
    std::string describe(TaskId task) const;
    Status check_task(TaskId task) const;
    Result<TaskId> submit_locked(Submission submission);
    Ps expected_cost(const Submission& submission, CostModel::Key& key);
    Ps expected_cost(CostModel::Key key) const;
    bool learn_slowness();

    struct Extra {
        CostModel::Key key = 0;
        bool calibrated = false;  // its cost comes from the model
    };

    std::mutex mutex_;
    std::condition_variable_any changed_;  // anything ended, was submitted, or shall stop
    std::unique_ptr<RuntimeExecutor> executor_;
    std::unique_ptr<Core> core_;
    CostModel costs_;
    std::vector<CostModel::Sku> skus_;  // of the cards; costs in the core are those of the first one's
    std::string cost_file_;
    std::deque<TaskWork> work_;
    std::vector<Extra> extra_;
    std::vector<std::uint64_t> bytes_;
    std::map<TaskId, Error> errors_;
    std::optional<TaskId> first_failure_;
    std::deque<TaskId> host_tasks_;
    std::optional<TaskId> host_running_;
    bool started_ = false;
    bool closing_ = false;
    bool closed_ = false;     // its threads have ended
    bool cancelled_ = false;  // some of it, as it was closed
    bool told_ = false;       // a task ended, and nobody has been notified yet
    std::multiset<TaskId> awaited_;
    std::vector<void*> data_handles_, kernel_handles_;
    std::thread::id host_thread_id_;
    std::jthread host_thread_;
    std::jthread thread_;
};

}  // namespace orrery::umd
