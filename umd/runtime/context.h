// A card as one process uses it: made at the card's first use, lives as long as the process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "umd/runtime/fate.h"
#include "umd/runtime/fleet.h"
#include "umd/runtime/isa.h"
#include "umd/runtime/line_table.h"
#include "umd/runtime/memory.h"
#include "umd/runtime/output.h"
#include "umd/runtime/pc_log.h"
#include "umd/runtime/pinned_buffer.h"
#include "umd/runtime/sample_log.h"
#include "umd/runtime/semaphore.h"
#include "umd/runtime/shared_semaphore.h"
#include "umd/runtime/stream.h"
#include "umd/runtime/work_log.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

// Whether kernels may use atomics on host memory.
bool host_atomics(const drm_orr_query_device& card);
// Older drivers do not, and a card refuses them until one does.
bool switches_atomics_on(const Device& winsys);

// A way over links that was lost, or has become another one.
struct WayLoss {
    // The one that went down: between a port of a card and another card, or a switch (`peer` 0: the driver
    // does not say which), or between two switches.
    struct Link {
        std::uint64_t uid = 0, peer = 0;
        std::uint32_t port = 0;
        bool at_switch = false, to_switch = false;
    };
    bool there = false;  // there is a way again
    std::optional<Link> link{};
};

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
    // Of its vector cores.
    const Isa& isa() const { return isa_; }
    Device& winsys() const { return winsys_; }
    Memory& memory() const { return memory_; }
    Fleet& fleet() const { return fleet_; }
    // What failure words call the card.
    std::uint32_t node() const { return static_cast<std::uint32_t>(uid_ & 0xff); }

    // The card is gone, as the driver says; the first cause stays, with the link that went down before it.
    Error lose(Error cause);
    std::optional<Error> loss() const { return loss_.error(); }
    bool lost() const { return loss_.ended(); }
    // Asks the driver whether it is: loss().
    std::optional<Error> ask();
    // The way to it, over links that are up: a number that is another one when something on it may have been
    // lost in between. 0: the driver does not say.
    std::optional<std::uint64_t> way_to(const Context& peer) const;
    // The same, with what is known of what went by earlier ways.
    WayNow way_now(const Context& peer) const;
    // What became of a way that was this number, if it is another one now.
    std::optional<WayLoss> way_loss(const Context& peer, std::uint64_t way) const;
    // The link that went down last of a way there, whenever that was; nothing: none has, or nobody knows.
    std::optional<WayLoss::Link> last_lost_link(const Context& peer) const;
    // Whether such a link, of a way to a card that is lost, went down before that. An older driver does not
    // tell, and a card that is gone is more of a cause than the link to it.
    bool knows_first() const;
    // Whether there is one, for copies: by an answer of the driver that is some milliseconds old at most.
    bool reaches(const Context& peer);
    // The same, as it was just answered.
    void saw_way(int peer, bool there);
    // Whether copies to and from that card, for which peer access is not enabled, go through the host's
    // memory. They do so when no way is there, and once they have done so they go on, whatever link comes
    // up: a program that they worked for goes on working.
    bool goes_by_host(const Context& peer);
    // The same, of a card that may have none yet. Asks nobody.
    bool went_by_host(int peer) const;
    std::uint64_t uid() const { return uid_; }
    // It can be a member of barriers of several cards.
    bool has_barriers() const { return has_barriers_; }

    // Remembers which cards are at the other ends of its links now.
    void note_links();
    // "; the link from port 0 of device 0 to it is down", of a card by the end of its uid that was at one
    // then; else nothing.
    std::string lost_link(std::uint32_t node) const;

    // Made at first use.
    Result<std::shared_ptr<Stream>> null_stream();
    // For signals from the host; never holds a wait, so nothing holds it up. A new one when the last one has
    // stopped. Another one for semaphores of other machines: those can stop it, or leave it no room on the
    // link.
    Result<std::shared_ptr<Stream>> signal_stream(bool elsewhere);
    // Signals from the host; with the stream and the index behind it.
    Result<std::pair<std::shared_ptr<Stream>, std::uint64_t>> signal(const orr_packet& packet,
                                                                     bool elsewhere = false);
    // For the half of another card's copy that this one does (Staging::between()): of that copy alone, so
    // that what stops it is no neighbour's. Those that have stopped meanwhile go behind `ended`: a stream
    // ends without any lock, as tools are told of its work. Who is done gives it back, likewise.
    Result<std::shared_ptr<Stream>> take_copy_stream(std::vector<std::shared_ptr<Stream>>& ended);
    void give_copy_stream(std::shared_ptr<Stream> stream);
    Result<std::shared_ptr<Stream>> create_stream(QueueOptions options = {});
    // The next use of the null stream makes a new one.
    std::shared_ptr<Stream> take_null_stream();

    // All work submitted until now; the first error, after waiting for all.
    Status synchronize();
    // Returns when a card that checks kernels' use of memory knows all that has become of its heap. What it
    // could not be told, it is told with what comes next.
    Status tell_heap();
    // Cards whose memory kernels of this one may write.
    void add_peer(Context& peer);
    std::vector<Context*> peers() const;

    // Before any context of the process goes: lets go of what crosses contexts.
    void shutdown();
    // For freeing memory: when it succeeds, nothing runs of what was submitted until now. A stream that has
    // stopped is as good as done once its writes to other cards have arrived or never will; one in a deadlock
    // may go on, so that is an error.
    Status drain();

    SemaphorePool& semaphores() { return semaphores_; }    // in card memory
    SemaphorePool& event_slots() { return event_slots_; }  // in pinned memory

    WorkLog& work_log() { return work_log_; }  // for profilers, as the next two
    SampleLog& sample_log() { return sample_log_; }
    PcLog& pc_log() { return pc_log_; }

    SharedSemaphores& shared_semaphores() { return shared_semaphores_; }  // in card memory, other processes'

    // Of a semaphore of ours at this address, as load_semaphore().
    std::optional<std::uint64_t> semaphore_value(std::uint64_t va) const;

    // A failure of the semaphore at this address is another process's: it is shared, and nobody of ours was
    // to signal it.
    bool others_fail(std::uint64_t va) const;

    // A copy of the name that lives as long as the context.
    const char* keep_name(const std::string& name);
    // What error texts call the semaphore at this address; empty: forget it.
    void name_semaphore(std::uint64_t va, std::string name);
    std::string semaphore_name(std::uint64_t va) const;  // empty: it has none
    // "semaphore 'x'", "an event", "the semaphore at 0x12".
    std::string describe_semaphore(std::uint64_t va) const;
    // What was loaded for a module, for error texts and for what kernels print.
    struct CodeFunction {
        std::uint64_t offset = 0, bytes = 0;
        std::string name;
    };
    void add_code(std::uint64_t start, std::string name, std::vector<std::byte> bytes, LineTables lines,
                  std::vector<CodeFunction> functions = {});
    void remove_code(std::uint64_t start);
    // " (hist.cc:17, offset 0x12 of module hist.elf)", or nothing; the line only of a module with line
    // tables.
    std::string describe_code(std::uint64_t pc) const;
    // What is known of the instruction there; empty texts: not known. Nothing: no module has it.
    struct CodePlace {
        std::uint64_t offset = 0;  // from where the module is loaded
        std::string function, source;
    };
    std::optional<CodePlace> place_in_code(std::uint64_t pc) const;
    // "hist.cc:17", of a function of so many bytes there; empty: not known.
    std::string line_of_function(std::uint64_t entry, std::uint64_t bytes) const;
    // What a module had at an address when it was loaded: a word, and a text that ends there. Nothing: no
    // module has that.
    std::optional<std::uint64_t> word_of_code(std::uint64_t va) const;
    std::optional<std::string> text_of_code(std::uint64_t va) const;

    // VA of the ring into which kernels print, in memory on which they may use atomics; made at first use.
    Result<std::uint64_t> output_ring();
    // Prints what kernels have put there.
    void print_output() {
        if (Output* const output = output_.load(std::memory_order_acquire); output != nullptr)
            output->print();
    }
    bool prints() const { return output_.load(std::memory_order_acquire) != nullptr; }
    std::uint32_t vector_cores() const { return vector_cores_; }
    bool host_atomics() const { return host_atomics_; }

  private:
    Context(int device, Device& winsys, Memory& memory, Fleet& fleet, const drm_orr_query_device& card);

    struct Code {
        std::string name;
        std::vector<std::byte> bytes;
        LineTables lines;
        std::vector<CodeFunction> functions;
    };
    // What runs now, for what kernels print.
    Output::Ended work() const;
    // With tell_mutex_ held.
    Status tell(std::span<const HeapChange> changes);
    // From `va` to the end of the module; empty: none. With mutex_ held.
    std::span<const std::byte> code_at(std::uint64_t va) const;

    const int device_;
    Device& winsys_;
    Memory& memory_;
    Fleet& fleet_;
    const std::uint64_t uid_;
    const std::uint32_t vector_cores_;
    const Isa isa_;
    Fate loss_;
    const bool host_atomics_;
    const bool tells_;  // the card asks for it
    const bool has_barriers_;
    std::mutex tell_mutex_;  // so that whoever comes back finds told what was there when he came
    std::shared_ptr<Stream> tell_stream_;
    SemaphorePool semaphores_;
    SemaphorePool event_slots_;
    SharedSemaphores shared_semaphores_;
    WorkLog work_log_{*this};
    SampleLog sample_log_{*this};
    PcLog pc_log_{*this};
    mutable std::mutex mutex_;
    std::shared_ptr<Stream> null_stream_;
    std::array<std::shared_ptr<Stream>, 2> signal_streams_;     // [1]: elsewhere
    std::vector<std::shared_ptr<Stream>> worn_signal_streams_;  // their numbers stay in failure words
    static constexpr std::size_t kKeptCopyStreams = 4;
    std::vector<std::shared_ptr<Stream>> copy_streams_;  // that nobody has now
    struct PeerWay {
        std::int64_t asked_ns = 0;  // 0: never
        bool there = false, by_host = false;
    };
    struct Neighbour {
        std::uint64_t uid = 0;
        std::uint32_t losses = 0;
    };
    const std::uint32_t link_ports_;
    mutable std::mutex ways_mutex_;
    std::map<std::uint32_t, Neighbour> neighbours_;  // by port, with ways_mutex_
    std::map<int, PeerWay> ways_;
    std::vector<Context*> peers_;
    std::atomic<bool> any_peer_{false};
    std::set<std::string> names_;
    std::map<std::uint64_t, Code> code_;
    std::mutex output_mutex_;  // of the next three while they are made
    PinnedBuffer output_memory_;
    std::uint64_t output_va_ = 0;
    std::unique_ptr<Output> made_output_;
    std::atomic<Output*> output_{nullptr};
    std::map<std::uint64_t, std::string> semaphore_names_;
};

// Of cards that no way joins: one that has just died has no links, and the driver may not have noticed yet.
std::optional<Error> loss_of_either(Context& one, Context& other);

}  // namespace orrery::umd
