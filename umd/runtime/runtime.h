// The process-wide state behind the C API.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "umd/runtime/context.h"
#include "umd/runtime/event.h"
#include "umd/runtime/handle_table.h"
#include "umd/runtime/host_copies.h"
#include "umd/runtime/library.h"
#include "umd/runtime/memory.h"
#include "umd/runtime/module.h"
#include "umd/runtime/semaphore.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Graph;        // umd/scheduler/graph.h
class Group;        // umd/runtime/group.h
class GraphExec;    // umd/scheduler/graph_exec.h
class TaskSession;  // umd/scheduler/task_session.h, as the next two
struct TaskDataRef;
struct TaskKernelRef;

// Threads: everything may be called from any thread.
class Runtime {
  public:
    explicit Runtime(std::unique_ptr<Winsys> winsys);
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    // Of this process, made at first use with the cards of /dev/accel. In a child after fork() of a process
    // that had made it: an error.
    static Result<Runtime*> get() {
        if (Runtime* const runtime = usable()) [[likely]]
            return runtime;
        return make();
    }
    // Null: get() makes one, or says why there is none.
    static Runtime* usable() noexcept { return usable_.load(std::memory_order_acquire); }
    // For tests: the next get() gives this one; null: back to the cards. Nobody is inside the library
    // meanwhile.
    static void replace(std::unique_ptr<Runtime> runtime);
    // After a fork(): the child cannot use the parent's.
    static void enter_child();

    Result<int> device_count();
    Result<Device*> device(int number);
    // Makes the context at the first use of the card.
    Result<Context*> context(int device);
    Result<Context*> current_context();
    // For cards that are not in use yet, in place of the environment's. False: this one is.
    Status set_quota(int device, Quota quota);
    // Of all cards that are in use.
    std::vector<Context*> contexts() const;
    // Gives back the pages of shared semaphores that nothing can touch any more.
    void sweep();

    // Number of the device with this uid, or -1.
    int device_of_uid(std::uint64_t uid);
    // The way over links that are up; no links: none joins them. orrErrorDeviceLost if none does as one of
    // them is lost.
    Result<drm_orr_query_way> way(int device, int peer);
    Result<bool> linked(int device, int peer);
    // Whether copies between them, for which peer access is not enabled, have gone through the host's memory.
    bool went_by_host(int device, int peer) const;
    // Cards to which ways lead again get what came meanwhile of the memory that they may use.
    void offer_again() {
        if (memory_.awaits_ways()) offer_awaited();
    }

    // What is behind a descriptor of another process, and the card that has it.
    struct Found {
        Context* context;
        ForeignBo foreign;
    };
    Result<Found> find_foreign(int fd);

    Memory& memory() { return memory_; }
    HostCopies& host_copies() { return host_copies_; }

    // Null: the null stream of the thread's current device.
    Result<std::shared_ptr<Stream>> stream(orrStream_t handle);

    HandleTable<Stream, HandleKind::kStream> streams;
    HandleTable<Event, HandleKind::kEvent> events;
    HandleTable<Semaphore, HandleKind::kSemaphore> semaphores;
    HandleTable<Module, HandleKind::kModule> modules;
    HandleTable<Function, HandleKind::kFunction> functions;
    HandleTable<Library, HandleKind::kLibrary> libraries;
    HandleTable<Group, HandleKind::kGroup> groups;
    HandleTable<Graph, HandleKind::kGraph> graphs;
    HandleTable<GraphExec, HandleKind::kGraphExec> graph_execs;
    HandleTable<TaskSession, HandleKind::kTaskGraph> task_graphs;
    HandleTable<TaskDataRef, HandleKind::kTaskData> task_data;
    HandleTable<TaskKernelRef, HandleKind::kTaskKernel> task_kernels;

  private:
    struct Card {
        std::unique_ptr<Device> winsys;
        std::uint64_t uid = 0;
        std::unique_ptr<Context> context_owner;
        std::optional<Quota> quota;  // nullopt: as the environment says
        std::atomic<Context*> context{nullptr};
    };
    static Result<Runtime*> make();
    Status open();
    void offer_awaited();

    // Null: there is none yet, or it is the parent's.
    inline static std::atomic<Runtime*> usable_{nullptr};

    std::unique_ptr<Winsys> winsys_;
    mutable std::mutex mutex_;
    std::atomic<bool> opened_{false};
    std::vector<std::unique_ptr<Card>> cards_;
    Memory memory_;
    Fleet fleet_;
    HostCopies host_copies_;
};

// The thread's current device.
int& current_device();

}  // namespace orrery::umd
