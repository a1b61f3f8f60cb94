// A card as one process uses it: made at the card's first use, lives as long as the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "umd/runtime/fleet.h"
#include "umd/runtime/memory.h"
#include "umd/runtime/semaphore.h"
#include "umd/runtime/stream.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

// Threads: everything may be called from any thread.
class Context {
  public:
    // `winsys`, `memory` and `fleet` outlive the context.
    static Result<std::unique_ptr<Context>> create(int device, Device& winsys, Memory& memory, Fleet& fleet,
                                                   Quota quota = {});
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    int device() const { return device_; }
    Device& winsys() const { return winsys_; }
    Memory& memory() const { return memory_; }
    Fleet& fleet() const { return fleet_; }
    // What failure words call the card.
    std::uint32_t node() const { return node_; }

    // Made at first use.
    Result<std::shared_ptr<Stream>> null_stream();
    // For signals from the host; never holds a wait, so nothing holds it up.
    Result<std::shared_ptr<Stream>> signal_stream();
    Result<std::shared_ptr<Stream>> create_stream(QueueOptions options = {});
    // The next use of the null stream makes a new one.
    std::shared_ptr<Stream> take_null_stream();

    // All work submitted until now; the first error, after waiting for all.
    Status synchronize();
    // Cards whose memory kernels of this one may write.
    void add_peer(Context& peer);
    std::vector<Context*> peers() const;

    // Before any context of the process goes: lets go of what crosses contexts.
    void shutdown();
    // For freeing memory: when it succeeds, nothing runs of what was submitted until now. A stream that has
    // stopped is as good as done; one in a deadlock may go on, so that is an error.
    Status drain();

    SemaphorePool& semaphores() { return semaphores_; }    // in card memory
    SemaphorePool& event_slots() { return event_slots_; }  // in pinned memory

    // A semaphore of ours at this address, or null.
    orr_semaphore* find_semaphore(std::uint64_t va) const;

    // A copy of the name that lives as long as the context.
    const char* keep_name(const std::string& name);
    // What error texts call the semaphore at this address; empty: forget it.
    void name_semaphore(std::uint64_t va, std::string name);
    // "semaphore 'x'", "an event", "the semaphore at 0x12".
    std::string describe_semaphore(std::uint64_t va) const;
    // Where the code of modules lies, for error texts.
    void add_code(std::uint64_t start, std::uint64_t size, std::string name);
    void remove_code(std::uint64_t start);
    // " (offset 0x12 of module hist.elf)", or nothing.
    std::string describe_code(std::uint64_t pc) const;

  private:
    Context(int device, Device& winsys, Memory& memory, Fleet& fleet, std::uint32_t node);

    struct Code {
        std::uint64_t size;
        std::string name;
    };

    const int device_;
    Device& winsys_;
    Memory& memory_;
    Fleet& fleet_;
    const std::uint32_t node_;
    SemaphorePool semaphores_;
    SemaphorePool event_slots_;
    mutable std::mutex mutex_;
    std::shared_ptr<Stream> null_stream_;
    std::shared_ptr<Stream> signal_stream_;
    std::vector<Context*> peers_;
    std::atomic<bool> any_peer_{false};
    std::set<std::string> names_;
    std::map<std::uint64_t, Code> code_;
    std::map<std::uint64_t, std::string> semaphore_names_;
};

}  // namespace orrery::umd
