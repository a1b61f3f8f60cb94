#include "umd/scheduler/task_session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/launch.h"
#include "umd/runtime/quiet_thread.h"

namespace orrery::umd {
namespace {

// While cards work the thread looks often at first, then leaves the CPU to them.
constexpr int kBusyLooks = 200;
constexpr std::chrono::microseconds kNap{50};
// While only the host works; stop() does not wake it.
constexpr std::chrono::microseconds kHostNap{2000};
constexpr std::chrono::milliseconds kCourtesy{100};

// Tasks that a card has before others are done. The more, the less it waits for the host, which costs model
// time while others work. But of cards that do not keep step one whose model clock is ahead, because it has
// much to do and a fast host, takes what others send it late; with little to do it cannot get far ahead. So
// few are best for several of these: less than 3 leave no task to run while the next one's data is on its
// way.
constexpr unsigned kAheadInStep = 32, kAheadFree = 3;

}  // namespace

Result<std::shared_ptr<TaskSession>> TaskSession::create(Runtime& runtime, Options options) {
    std::shared_ptr<TaskSession> session(new TaskSession());
    if (!options.cost_file.empty()) {
        if (auto loaded = session->costs_.load(options.cost_file); !loaded)
            return std::unexpected(loaded.error());
    }
    session->cost_file_ = options.cost_file;
    ORR_TRY(executor, RuntimeExecutor::create(runtime, options.devices, options.limit_us));
    session->executor_ = std::move(*executor);
    for (unsigned card = 0; card < session->executor_->machine().cards; ++card)
        session->skus_.push_back(session->costs_.sku(session->executor_->sku(card)));
    (void)session->learn_slowness();
    session->executor_->calibrate(session->costs_);
    CoreOptions core;
    core.issue_ahead = options.issue_ahead;
    if (core.issue_ahead == 0) {
        const bool in_step = session->executor_->machine().cards == 1 || session->executor_->in_step();
        core.issue_ahead = in_step ? kAheadInStep : kAheadFree;
    }
    session->core_ = std::make_unique<Core>(session->executor_->machine(), *session->executor_, core);
    session->executor_->attach(*session->core_, session->work_);
    TaskSession* raw = session.get();
    session->host_thread_ =
        start_quiet_thread([raw](const std::stop_token& stop) { raw->run_host_tasks(stop); });
    session->host_thread_id_ = session->host_thread_.get_id();
    session->thread_ = start_quiet_thread([raw](const std::stop_token& stop) { raw->run(stop); });
    return session;
}

TaskSession::~TaskSession() {
    if (core_ != nullptr) (void)close();
}

Status TaskSession::close() {
    if (std::this_thread::get_id() == host_thread_id_) {
        return fail(orrErrorNotSupported,
                    "a host task cannot destroy its own graph: let the thread do so that waits for it");
    }
    executor_->stop();  // it goes: who holds the lock makes no more queues
    {
        std::unique_lock lock(mutex_);
        if (std::exchange(closing_, true)) {
            changed_.wait(lock, [&] { return closed_; });
            return fail(orrErrorInvalidHandle, "another thread has destroyed the task graph");
        }
        changed_.notify_all();
        changed_.wait(lock,
                      [&] { return !started_ || (core_->idle() && executor_->idle() && !host_running_); });
    }
    thread_.request_stop();
    host_thread_.request_stop();
    changed_.notify_all();
    thread_ = {};
    host_thread_ = {};
    {
        // Whoever still waits for what was never started.
        const std::lock_guard lock(mutex_);
        give_up();
        closed_ = true;
        changed_.notify_all();
    }
    if (!cost_file_.empty()) (void)costs_.save(cost_file_);
    return {};
}

// --- what there is ---

Result<DataId> TaskSession::add_data(Runtime& runtime, const void* host, std::uint64_t bytes) {
    const auto va = reinterpret_cast<std::uintptr_t>(host);
    const auto allocation = host == nullptr ? std::nullopt : runtime.memory().find(va);
    if (allocation && allocation->device != kHost) {
        return fail(orrErrorInvalidValue,
                    "the datum's first contents lie on device {}: copy them to host memory first",
                    allocation->device);
    }
    if (allocation) {
        ORR_TRY(whole, runtime.memory().find_range(va, bytes, "the datum"));
    }
    const std::lock_guard lock(mutex_);
    const bool pinned = allocation && va % 16 == 0;
    const DataId id = core_->add_data(bytes, executor_->machine().host());
    executor_->add_data(bytes, pinned ? va : 0);
    bytes_.push_back(bytes);
    if (host != nullptr && !pinned) {
        ORR_TRY(memory, executor_->host_memory(id));
        std::memcpy(*memory, host, bytes);
    }
    return id;
}

Result<std::shared_ptr<TaskKernel>> TaskSession::load(std::span<const std::byte> image,
                                                      const std::string& name) {
    const std::lock_guard lock(mutex_);
    return executor_->load(image, name);
}

Result<std::shared_ptr<TaskKernel>> TaskSession::load(const std::shared_ptr<const Function>& function) {
    const std::lock_guard lock(mutex_);
    return executor_->load(function);
}

Status TaskSession::set_merge(DataId data, std::shared_ptr<TaskKernel> kernel, orrDim3 grid, orrDim3 block) {
    ORR_TRY(valid, check_launch(grid, block, nullptr, 0, 0));
    const std::lock_guard lock(mutex_);
    executor_->set_merge(data, std::move(kernel), grid, block);
    core_->set_merge_cost(data, costs_.guess(skus_[0]));
    return {};
}

Result<int> TaskSession::card_of(int device) const {
    for (unsigned card = 0; card < executor_->machine().cards; ++card) {
        if (executor_->device(card) == device) return static_cast<int>(card);
    }
    return fail(orrErrorInvalidDevice, "device {} is none of this task graph's", device);
}

// --- submission ---

Ps TaskSession::expected_cost(const Submission& submission, CostModel::Key& key) {
    const TaskWork& work = submission.work;
    std::string footprint = work.kernel == nullptr ? "host:" + work.name : work.kernel->name;
    footprint += fmt::format(":{}:{}", std::uint64_t{work.grid.x} * work.grid.y * work.grid.z,
                             std::uint64_t{work.block.x} * work.block.y * work.block.z);
    for (const DataAccess& access : submission.accesses)
        footprint += fmt::format(":{}", bytes_[access.data]);
    std::ranges::replace(footprint, ' ', '_');
    key = costs_.key(footprint);
    return expected_cost(key);
}

// On the first card; by what it took on another one, if only that is known.
Ps TaskSession::expected_cost(CostModel::Key key) const {
    for (unsigned card = 0; card < skus_.size(); ++card) {
        const Ps measured = costs_.expect(skus_[card], key);
        if (measured == kNever) continue;
        const double here = static_cast<double>(measured) / executor_->machine().slowness[card];
        return std::max<Ps>(duration_of(here), 1);
    }
    return costs_.guess(skus_[0]);
}

// True if a card turned out to be faster or slower than thought by more than a fifth.
bool TaskSession::learn_slowness() {
    bool any = false;
    for (unsigned card = 1; card < skus_.size(); ++card) {
        const double thought = executor_->machine().slowness[card];
        const double measured = costs_.slowness(skus_[card], skus_[0]);
        if (measured <= 0 || std::abs(measured - thought) <= thought / 5) continue;
        executor_->set_slowness(card, measured);
        any = true;
    }
    return any;
}

Result<TaskId> TaskSession::submit_locked(Submission submission) {
    if (closing_) return fail(orrErrorInvalidHandle, "the task graph is being destroyed");
    for (std::size_t i = 0; i < submission.accesses.size(); ++i) {
        const DataAccess& access = submission.accesses[i];
        if (access.mode == Access::kReduce && !executor_->has_merge(access.data)) {
            return fail(orrErrorInvalidValue,
                        "access {} reduces a datum without a merge: call orrTaskDataSetMerge first", i);
        }
    }
    for (const TaskId before : submission.after) {
        if (before >= core_->tasks())
            return fail(orrErrorInvalidValue, "there is no task {} to come after", before);
    }
    TaskSpec spec;
    Extra extra;
    const Ps expected = expected_cost(submission, extra.key);
    extra.calibrated = submission.cost == 0;
    spec.cost = submission.cost == 0 ? expected : submission.cost;
    const orrDim3& grid = submission.work.grid;
    spec.groups = std::uint64_t{grid.x} * grid.y * grid.z;
    spec.accesses = submission.accesses;
    spec.after = submission.after;
    spec.priority = submission.priority;
    spec.deadline = submission.deadline;
    spec.node = submission.device;
    const TaskId id = core_->submit(spec);
    if (steps_wanted()) submission.work.marks = StepMarks::here();
    while (work_.size() < id) {
        TaskWork merge;
        merge.name = "merge of a reduction";
        work_.push_back(std::move(merge));
        extra_.emplace_back();
    }
    work_.push_back(std::move(submission.work));
    extra_.push_back(extra);
    changed_.notify_all();
    return id;
}

Result<TaskId> TaskSession::submit(Submission submission) {
    const std::lock_guard lock(mutex_);
    return submit_locked(std::move(submission));
}

// --- running ---

void TaskSession::completed(TaskId task, Ps start, Ps finish) {
    if (core_->state(task) != TaskState::kIssued) return;
    core_->complete(task, start, finish);
    told_ = true;
    if (core_->is_merge(task) || work_[task].kernel == nullptr) return;
    const CostModel::Key key = extra_[task].key;
    const CostModel::Sku sku = skus_[core_->node(task)];
    if (!costs_.measured(sku, key, std::max<Ps>(finish - start, 1))) return;
    bool changed = learn_slowness();
    if (changed) core_->set_machine(executor_->machine());
    const Ps cost = expected_cost(key);
    for (TaskId other = 0; other < core_->tasks(); ++other) {
        if (!extra_[other].calibrated || extra_[other].key != key) continue;
        if (core_->state(other) > TaskState::kIssued) continue;
        core_->set_cost(other, cost);
        changed = changed || core_->state(other) == TaskState::kPlanned;
    }
    if (changed) core_->replan();
}

void TaskSession::failed(TaskId task, const Error& error) {
    if (core_->state(task) > TaskState::kIssued) return;
    errors_.emplace(task, error);
    if (!first_failure_) first_failure_ = task;
    core_->fail(task);
    told_ = true;
}

// Nothing more is issued, ever.
void TaskSession::give_up() {
    if (core_->idle()) return;
    core_->cancel_all();
    cancelled_ = told_ = true;
}

// Who has heard of a failure may want to end here and now, before queues are closed and made for the rest.
void TaskSession::let_waiters_go(std::unique_lock<std::mutex>& lock) {
    changed_.notify_all();
    changed_.wait_for(lock, kCourtesy, [&] {
        return std::ranges::none_of(awaited_,
                                    [&](TaskId task) { return core_->state(task) > TaskState::kIssued; });
    });
}

bool TaskSession::turn(std::unique_lock<std::mutex>& lock) {
    if (executor_->stopped()) give_up();
    if (executor_->broken()) {
        host_tasks_.clear();              // issued anew
        if (host_running_) return false;  // it may still use what it was given
        // What is in flight after a failure nobody waits for, and it may itself wait for a lost card's links.
        const bool unwanted = executor_->stopped() && first_failure_;
        if (!unwanted && !executor_->recover(*this)) return false;
        let_waiters_go(lock);
        executor_->start_anew();
        core_->set_machine(executor_->machine());
        core_->reissue(executor_->lost_cards());
        const Error gone{orrErrorDeviceLost,
                         "data that it needs was only in the memory of a card that was lost"};
        for (const TaskId task : core_->stranded())
            failed(task, gone);
        if (executor_->stopped()) give_up();
        return true;
    }
    advance();
    return false;
}

void TaskSession::advance() {
    core_->pump();
    executor_->flush();
    for (const TaskId task : executor_->take_host_tasks())
        host_tasks_.push_back(task);
}

void TaskSession::run(const std::stop_token& stop) {
    int looks = 0;
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        if (!started_ || (core_->idle() && executor_->idle())) {
            changed_.notify_all();
            const bool work =
                changed_.wait(lock, stop, [&] { return started_ && !(core_->idle() && executor_->idle()); });
            if (!work) return;
            looks = 0;
        }
        const bool any = executor_->poll(*this);
        // Who hears of a failure may want to end here and now, before queues are made for the rest.
        const bool nap = turn(lock) || executor_->made_enough();
        if (any) {
            looks = 0;
            changed_.notify_all();
            if (!executor_->broken() && !nap) continue;
        }
        if (std::exchange(told_, false) || !host_tasks_.empty()) changed_.notify_all();
        // The end of a host task is told; the end of work on cards has to be looked for.
        const bool cards_work = executor_->cards_work();
        if (++looks > kBusyLooks || nap || !cards_work) {
            (void)changed_.wait_for(lock, cards_work || nap ? kNap : kHostNap);
            continue;
        }
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
    }
}

void TaskSession::run_host_tasks(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (true) {
        if (!changed_.wait(lock, stop, [&] { return !host_tasks_.empty(); })) return;
        const TaskId task = host_tasks_.front();
        host_tasks_.pop_front();
        host_running_ = task;
        if (core_->state(task) == TaskState::kIssued) {
            if (const auto addresses = executor_->host_addresses(task)) {
                const TaskWork& work = work_[task];  // a deque: stays where it is
                // Others may submit tasks meanwhile, and the deque itself is theirs then.
                std::optional<StepNote> step;
                if (steps_wanted()) step = executor_->step_of(orrProfStepHost, task, -1);
                lock.unlock();
                const std::int64_t begin_ns = step ? now_ns() : 0;
                work.function(work.user, addresses->data(), addresses->size());
                if (step) tell_host_step(*step, begin_ns);
                lock.lock();
            } else {
                failed(task, addresses.error());
            }
        }
        executor_->host_task_done(task);
        core_->complete(task, core_->now(), core_->now());
        host_running_.reset();
        // What waited for it is not left to the other thread, which would have to wake up first.
        if (!executor_->broken() && !executor_->stopped()) {
            (void)executor_->poll(*this);
            advance();
        }
        // Each that wakes up takes the CPU from the tasks.
        if (host_tasks_.empty() || !awaited_.empty() || executor_->broken()) changed_.notify_all();
    }
}

void TaskSession::start() {
    const std::lock_guard lock(mutex_);
    started_ = true;
    changed_.notify_all();
}

// --- outcomes ---

std::string TaskSession::describe(TaskId task) const {
    return work_[task].name.empty() ? fmt::format("task {}", task)
                                    : fmt::format("task {} '{}'", task, work_[task].name);
}

Status TaskSession::outcome(TaskId task) const {
    const TaskState state = core_->state(task);
    if (state != TaskState::kFailed && state != TaskState::kCancelled) return {};
    const TaskId cause = core_->caused_by(task);
    const auto error = errors_.find(cause);
    if (cause == task) {
        if (error == errors_.end()) return fail(orrErrorCancelled, "{} was cancelled", describe(task));
        return fail(error->second.code, "{} failed: {}", describe(task), error->second.text);
    }
    if (error == errors_.end()) {
        return fail(orrErrorCancelled, "{} did not run, as {}, whose results it needs, was cancelled",
                    describe(task), describe(cause));
    }
    return fail(error->second.code, "{} did not run, because {} had failed: {}", describe(task),
                describe(cause), error->second.text);
}

Status TaskSession::check_task(TaskId task) const {
    if (task < core_->tasks()) return {};
    return fail(orrErrorInvalidValue, "there is no task {}: this graph has {}", task, core_->tasks());
}

Status TaskSession::wait(TaskId task) {
    std::unique_lock lock(mutex_);
    ORR_TRY(known, check_task(task));
    started_ = true;
    changed_.notify_all();
    const auto awaited = awaited_.insert(task);
    changed_.wait(lock, [&] { return core_->state(task) > TaskState::kIssued; });
    awaited_.erase(awaited);
    if (executor_->broken()) changed_.notify_all();  // let_waiters_go()
    return outcome(task);
}

Status TaskSession::wait_all() {
    std::unique_lock lock(mutex_);
    started_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return closed_ || (core_->idle() && executor_->idle()); });
    if (first_failure_) return outcome(*first_failure_);
    if (cancelled_) return fail(orrErrorCancelled, "the task graph was destroyed before all had run");
    return {};
}

Status TaskSession::cancel(TaskId task) {
    const std::lock_guard lock(mutex_);
    ORR_TRY(known, check_task(task));
    if (core_->cancel(task)) {
        changed_.notify_all();
        return {};
    }
    return fail(orrErrorNotReady, "{} cannot be cancelled any more: it {}", describe(task),
                core_->state(task) == TaskState::kIssued ? "was handed to a device" : "has ended");
}

Status TaskSession::read(DataId data, std::span<std::byte> dst) {
    struct Copy {
        std::span<std::byte> dst;
        static void call(void* self, void* const* from, std::size_t) {
            const auto& copy = *static_cast<Copy*>(self);
            std::memcpy(copy.dst.data(), from[0], copy.dst.size());
        }
    } copy{dst};
    Submission submission;
    submission.work.name = "orrTaskDataRead";
    submission.work.function = Copy::call;
    submission.work.user = &copy;
    submission.work.offsets = {-1};
    submission.accesses = {{data, Access::kRead}};
    submission.cost = 1;
    submission.device = static_cast<int>(executor_->machine().host());
    TaskId task = 0;
    {
        const std::lock_guard lock(mutex_);
        if (dst.size() > bytes_[data]) {
            return fail(orrErrorInvalidValue, "{} bytes were asked for, the datum has {}", dst.size(),
                        bytes_[data]);
        }
        ORR_TRY(submitted, submit_locked(std::move(submission)));
        task = *submitted;
    }
    return wait(task);
}

Result<orrTaskInfo> TaskSession::info(TaskId task) {
    const std::lock_guard lock(mutex_);
    ORR_TRY(known, check_task(task));
    orrTaskInfo info = ORR_INIT(orrTaskInfo);
    static constexpr orrTaskState kStates[] = {orrTaskStateWaiting, orrTaskStateWaiting,
                                               orrTaskStateIssued,  orrTaskStateDone,
                                               orrTaskStateFailed,  orrTaskStateCancelled};
    const TaskState state = core_->state(task);
    info.state = kStates[static_cast<std::size_t>(state)];
    const bool placed =
        state == TaskState::kIssued || state == TaskState::kDone || state == TaskState::kFailed;
    const unsigned node = core_->node(task);
    info.device = placed && node < executor_->machine().cards ? executor_->device(node) : -1;
    info.cause = info.state >= orrTaskStateFailed ? core_->caused_by(task) : task;
    const auto result = outcome(task);
    info.error = result ? orrSuccess : result.error().code;
    if (state == TaskState::kDone) {
        info.start_ns = static_cast<double>(core_->planned_start(task)) / 1000;
        info.end_ns = static_cast<double>(core_->planned_finish(task)) / 1000;
    }
    return info;
}

orrTaskStats TaskSession::stats() {
    const std::lock_guard lock(mutex_);
    const CoreStats& core = core_->stats();
    const auto& figures = executor_->figures();
    return {.size = sizeof(orrTaskStats),
            .tasks = core.submitted,
            .done = core.done,
            .failed = core.failed,
            .cancelled = core.cancelled,
            .transfers = core.transfers,
            .transfer_bytes = core.transfer_bytes,
            .plans_changed = core.replans,
            .packets = figures.packets,
            .waits = figures.waits,
            .doorbells = figures.doorbells,
            .end_ns = static_cast<double>(core_->now()) / 1000};
}

}  // namespace orrery::umd
