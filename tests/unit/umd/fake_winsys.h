// Cards that live in the test's process: buffers are anonymous memory, a thread a card executes packets as
// the contracts say, with page tables, doorbells that go to sleep, and links. Strict where the runtime must
// be right.
#pragma once

#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>
#include <orrery/hw/bar0.h>
#include <orrery/hw/engine.h>
#include <orrery/hw/link.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/umd/fake_gang.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd::test {

class FakeCard;

// Who may signal which semaphore, of all cards of the process; semaphores by where they are. Thread safe.
class FakeSignallers {
  public:
    static FakeSignallers& all();
    void add(std::byte* semaphore, const void* queue);
    // word: what those who wait learn if this was the last.
    void remove(std::byte* semaphore, const void* queue, std::uint64_t word);
    void remove_all(const void* queue, std::uint64_t word);
    // Of one that is closed.
    std::uint64_t word(std::byte* semaphore) const;

  private:
    mutable std::mutex mutex_;
    std::map<std::byte*, std::set<const void*>> queues_;
    std::map<std::byte*, std::uint64_t> closed_;
};

// Pages behind a buffer object; shared by all that have imported it.
struct FakePages {
    FakePages(FakeCard& owner, std::uint64_t size, BoKind kind);
    ~FakePages();
    FakePages(const FakePages&) = delete;
    FakePages& operator=(const FakePages&) = delete;
    FakeCard& owner;
    std::uint64_t size;
    BoKind kind;
    std::byte* data;
    std::atomic<bool> revoked{false};  // the key by which another machine had it
};

struct FakeDispatch {
    std::uint64_t entry;
    std::uint64_t args;
    std::uint32_t grid[3];
    std::uint16_t block[3];
    std::uint32_t local_bytes;
    bool resident = false;
    std::uint16_t item_stack_pages = 0;
};

// What a dispatch came to; error 0: fine.
struct FakeOutcome {
    std::uint64_t error = 0, address = 0, detail = 0;
    bool running = false;  // not over: to be asked again
};

class FakeCard {
  public:
    FakeCard(int number, std::uint64_t vram_bytes);
    ~FakeCard();
    FakeCard(const FakeCard&) = delete;
    FakeCard& operator=(const FakeCard&) = delete;

    // --- for tests ---
    // Runs on the card's thread in place of kernels.
    std::function<FakeOutcome(FakeCard&, const FakeDispatch&)> on_dispatch;
    // What its time stamps are; null: its model time, which what it hears of others moves.
    std::function<std::uint64_t()> clock;
    // Memory as the card sees it; null if not mapped so.
    std::byte* translate(std::uint64_t va, std::uint64_t bytes, std::uint32_t access, std::uint64_t* fault);
    // When this returns, nothing more is executed.
    void pause(bool paused) {
        const std::lock_guard lock(mutex_);
        paused_.store(paused);
    }
    // Its process is killed: what it had on its links is gone.
    void lose();
    // The firmware crashes while it works for the queue of this name, and comes back.
    void crash(const std::string& queue);
    // The cables of its links are pulled: what would cross them faults, and what is on them is gone, or may
    // still arrive.
    void cut_link(bool gone = true);
    void mend_link();
    void link_to(FakeCard& other);
    // What arrives over its links is carried out by its own thread: not while it is held.
    void hold_arrivals(bool held) {
        hold_arrivals_.store(held);
        poke();
    }
    std::size_t arrivals();
    // Called by whoever waits for a queue of the card, before the look; by whoever makes one, before it is
    // there.
    std::function<void()> on_wait, on_make_queue, on_link;
    // What the next wait for a queue of the card fails with; 0: nothing.
    std::atomic<int> wait_errno{0};
    std::uint32_t link_known =
        ORR_LINK_KNOWS_COUNTS | ORR_LINK_KNOWS_DENIALS | ORR_LINK_KNOWS_FORGED;  // 0: a driver before 1.17
    // Another number in each of what its driver tells.
    void tell_link_counts(drm_orr_query_link& link) const;
    bool names_losses = true;  // the driver says which link it was (1.16)
    // With a driver_version of 1.17: what the driver says is settled before a loss that this counts; it is
    // for ever, if nobody says other.
    std::atomic<std::uint32_t> settled_losses{~0u};
    int refuse_import = 0;  // the n-th import from now on fails; 0: none
    int probe_errno = 0;    // what asking it for another process's buffer fails with; 0: nothing
    // It is asked for another card's buffer of another process, and has a handle for it meanwhile.
    std::function<void()> on_probe;
    std::atomic<const FakePages*> probed{nullptr};
    // The card does not see this buffer any more: what touches it faults.
    void hide(const void* buffer) {
        const std::lock_guard lock(mutex_);
        mappings.erase(reinterpret_cast<std::uintptr_t>(buffer));
    }
    bool as_another_process = false;  // imports what this process has exported
    bool knows_signallers = true;     // false: a driver without the call
    int fabric_errno = 0;             // what keys and imports of other machines' memory fail with; 0: nothing
    std::uint64_t kicks() const { return kicks_.load(); }
    std::uint64_t waits() const { return waits_.load(); }
    std::uint64_t packets() const { return packets_done_.load(); }
    std::uint32_t max_grants = ORR_LINK_GRANT_SLOTS;
    static constexpr std::uint32_t kVectorCores = 4;

    // --- for the winsys; all with mutex() held unless atomic ---
    struct Mapping {
        std::shared_ptr<FakePages> pages;
        std::uint64_t offset, size;
        std::uint32_t flags;
    };
    struct Queue {
        std::uint64_t ring_va;
        std::uint32_t entries;
        std::uint32_t slot;
        std::uint64_t generation;
        std::uint64_t completed = 0;
        QueueState state;
        bool waiting = false;
        QueueOptions options;
        std::uint64_t failure = 0;                // word of its first cause
        std::uint64_t failed_upto = 0;            // stopped: semaphores of packets below have failed
        std::int64_t since_ns = 0;                // that the first packet waits with a limit, or runs
        std::optional<FakeGangs::Member> gang{};  // of which the next dispatch is a part
        std::uint64_t bell_seen = 0;              // stopped: the doorbell at which promises were failed last
    };

    std::recursive_mutex& mutex() { return mutex_; }
    int number;
    std::uint64_t uid;
    std::uint64_t vram_bytes;
    std::uint64_t vram_used = 0;
    std::string sku_name = "fake";
    std::uint32_t vector_ports = 4;
    std::string vector_isa;  // empty: a card from before it was told
    bool checks_memory = false;
    std::uint32_t driver_version = ORR_MAKE_VERSION(1, 4, 3);
    bool host_atomics = true;
    bool in_step = false;
    bool peer_reads = false;
    bool fabric_semaphores = true;
    bool has_barriers = false;  // in name alone: the driver has none to give, or fails with barrier_errno
    int barrier_errno = 0;
    std::vector<orr_desc_tell> told;
    bool records_work = true, work_wanted = false;
    bool work_lost = false;   // what is read next says so
    bool loses_work = false;  // nobody is given records of what it does now
    // Samples: those that are wanted, and what is read next.
    std::uint32_t sample_ns = 0;
    std::array<std::uint64_t, 2> sample_set{};
    std::deque<std::uint64_t> sample_words;
    bool samples_lost = false;  // behind these
    bool takes_samples = true;
    std::uint32_t counters = 4;
    // Where vector cores are: at which period it is wanted, and what is read next.
    std::uint32_t pc_ns = 0;
    std::optional<std::uint32_t> pc_core{};
    std::deque<drm_orr_pc_record> pc_records;
    std::vector<drm_orr_pc_record> pcs_of_next;  // of the next job, without its start
    bool pcs_lost = false, says_pcs = true;
    // With what it did, number n of it 1000 * index + n, or without.
    bool counters_wanted = false;
    unsigned counters_busy = 0;                        // so often it cannot for now
    std::uint64_t counters_known = ~std::uint64_t{0};  // bit n: it counts number n
    std::deque<std::pair<drm_orr_work_record, bool>> work_records;
    std::size_t work_room = ~std::size_t{0};  // of more than so many records all are gone, until it is read
    bool work_overrun = false;                // and so they are
    // As if a neighbour's records filled the room in that time: whoever reads less often than so gets
    // nothing.
    std::chrono::milliseconds work_lives{0};
    std::chrono::steady_clock::time_point work_read_at;
    void add_work(const drm_orr_work_record& record, bool counted);
    std::function<void()> on_work_read;  // has been, by its thread, and without its mutex
    // The next kernel, copy or fill is preempted so often: each time the record of a part comes first.
    unsigned preempts_next = 0;
    bool loses_next_end = false;  // and nobody is given the record of its end
    int live_pages = 0;
    std::uint32_t grants = 0;
    bool has_vm = false;
    Quota quota;
    std::vector<drm_orr_wait_edge> deadlock;  // what the winsys says; waits end with it while it is not empty
    std::map<std::uint64_t, Mapping> mappings;
    std::list<Queue> queues;
    std::uint64_t generations = 6;
    orr_doorbell_page* doorbells;
    std::byte* kick_page;
    const std::vector<FakeCard*>& peers() const { return peers_; }
    bool lost() const { return lost_.load(); }
    std::uint32_t link_losses() const { return link_losses_.load(); }
    void poke() { poked_.store(true); }
    void wake();  // and those that it is linked to
    // A link to it is up.
    bool reaches(const FakeCard& peer) const;
    void drop_arrivals(const FakeCard* from);
    // Stops the queue if it has not stopped, and fails what its packets would have signalled.
    void stop(Queue& queue, std::uint64_t error, std::uint64_t address, std::uint64_t detail,
              std::uint64_t other = 0);
    bool idle(const Queue& queue);
    // Nothing of the queue will signal any more.
    void end_signals(const Queue& queue);
    // What waits for a semaphore learn that is closed after this queue.
    std::uint64_t abandoned_by(const Queue& queue) const;
    void count_wait() { waits_.fetch_add(1); }

  private:
    void run();
    bool work();
    bool step(Queue& queue);
    // false: the packet waits; state.error set: it failed.
    bool execute(Queue& queue, const orr_packet& packet, std::uint64_t index);
    void note_work(const Queue& queue, const orr_packet& packet, bool done, std::uint64_t begin_ps);
    void note_signal(const Queue& queue, std::uint64_t va, std::uint64_t value);
    // The first address that faults; 0: none.
    std::uint64_t copy(std::uint64_t to, std::uint64_t from, std::uint64_t count, std::uint64_t* fault);
    FakeOutcome copy_box(const orr_packet& packet);
    static bool reduce(std::byte* dst, const std::byte* src, const orr_packet_reduce& packet);
    bool wait_for_kick();
    void fail_promises(Queue& queue);
    // What a gang packet says, if all of it is as the contract wants it.
    std::optional<FakeGangs::Member> member(const orr_packet& packet);
    void leave_gang(Queue& queue);
    // Of one that may start: nothing.
    std::optional<FakeOutcome> gather(Queue& queue, const orr_packet_dispatch& dispatch);
    void fail_semaphore(std::uint64_t va, std::uint64_t word);
    // Carries out `act` with the memory, now or, if it is another card's, when that gets there. False:
    // faults.
    bool write(std::uint64_t va, std::uint64_t bytes, std::uint64_t* fault,
               std::function<void(std::byte*)> act);
    bool take_arrivals();

    std::recursive_mutex mutex_;
    bool busy_ = false;  // time alone may end something
    std::atomic<bool> stop_{false}, paused_{false}, lost_{false}, poked_{false}, link_up_{true};
    std::atomic<std::uint32_t> link_losses_{0};
    std::atomic<bool> hold_arrivals_{false};
    std::atomic<std::uint64_t> kicks_{0}, waits_{0}, packets_done_{0};
    std::uint64_t model_ps_ = 1'000'000;
    std::vector<FakeCard*> peers_;
    struct Arrival {
        const FakeCard* from;
        std::shared_ptr<FakePages> pages;
        std::function<void()> act;
    };
    std::mutex arrivals_mutex_;  // behind all others
    std::deque<Arrival> arrivals_;
    std::thread thread_;
};

class FakeWinsys final : public Winsys {
  public:
    explicit FakeWinsys(std::span<const std::unique_ptr<FakeCard>> cards) : cards_(cards) {}
    Result<std::vector<std::unique_ptr<Device>>> open_devices() override;

  private:
    std::span<const std::unique_ptr<FakeCard>> cards_;
};

// Installs a runtime with this many cards, all linked in pairs (0-1, 2-3); checks at the end that nothing
// leaked.
class FakeSystem {
  public:
    explicit FakeSystem(int cards = 1, std::uint64_t vram_bytes = 64 << 20);
    ~FakeSystem();
    FakeSystem(const FakeSystem&) = delete;
    FakeSystem& operator=(const FakeSystem&) = delete;
    FakeCard& card(std::size_t number = 0) { return *cards_[number]; }
    // For runtimes that have some of them each, as on several machines.
    std::span<const std::unique_ptr<FakeCard>> cards() const { return cards_; }

  private:
    std::vector<std::unique_ptr<FakeCard>> cards_;
};

}  // namespace orrery::umd::test
