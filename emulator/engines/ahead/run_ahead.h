// Work-groups of one card on several threads of the host. Each core has a *stretch*: quanta of its group that
// any thread may compute ahead of their model time. The card's thread plays them in the order of model time;
// a stretch's stores are done, all together, when the last of its quanta is played.
//
// Nothing of the model depends on it: before a stretch is played for the first time, the card's thread
// compares what it touched with the stretches that are being played, and with those that were done since it
// began. If one has to do with the other, what was not played yet is forgotten, and everything goes on in the
// order of model time (settle). docs/engines.md, Host threads, says more.
//
// All but the threads themselves is the card thread's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emulator/engines/ahead/stretch.h"
#include "emulator/engines/vector_core.h"

namespace orrery::emu {

class RunAhead {
  public:
    // `quantum`: cycles of one.
    RunAhead(unsigned threads, std::uint32_t cores, std::uint64_t quantum);
    ~RunAhead();
    RunAhead(const RunAhead&) = delete;
    RunAhead& operator=(const RunAhead&) = delete;

    // The core gets another group, or none.
    void forget(std::uint32_t number);
    // The core's group is between two quanta, and next() knows nothing of it.
    bool idle(std::uint32_t number) const;
    // From here on it may be computed ahead. `cut`: cycles of quanta that were full, and are one with the
    // next.
    void start(std::uint32_t number, VectorCore& core, std::uint64_t cut);
    // The group that it was at last took so few quanta that its handing over costs more.
    bool was_short(std::uint32_t number) const { return jobs_[number]->all_quanta <= kFewQuanta; }

    // The core's group is computed to its end and its first quanta are played, so that a thread could begin
    // the next one.
    bool may_guess(std::uint32_t number) const;
    // The core will probably get this group of the launch next, at the place that it has.
    void guess(std::uint32_t number, const KernelLaunch& launch, std::uint64_t group);
    bool has_guess(std::uint32_t number) const;
    // Before the core gets a group. True: it is the one that was guessed, which the core has from here on. If
    // not, what was guessed is forgotten.
    bool confirm(std::uint32_t number, const KernelLaunch& launch, std::uint64_t group, std::uint32_t place);
    void drop_guess(std::uint32_t number);

    enum class Next : std::uint8_t {
        kNone,   // the core computes, as ever
        kPlay,   // the quantum is computed
        kGoOn,   // part of it; the core computes the rest
        kWait,   // ask again
        kOrder,  // as kNone, but from now on its launch has to be computed in the order of model time
    };
    // What the core has to do at its event, which `quantum.began` says. kGoOn: everything is settled, and
    // this launch too goes on in order.
    Next next(std::uint32_t number, Quantum& quantum);

    // Every core is as if nothing had been computed ahead: a quantum that was played is all done, one that
    // was not has not begun.
    void settle();
    // All that was played stands in memory. Before anybody else looks at it.
    void join();

    static constexpr std::size_t kMostQuanta = 64;
    static constexpr std::size_t kFewQuanta = 1;

  private:
    enum class State : std::uint32_t {
        kNone,
        kPosted,   // anybody may compute on
        kRunning,  // somebody does
        kReady,    // computed
    };
    enum class Write : std::uint8_t { kNone, kAsked, kRunning };
    enum class End : std::uint8_t { kOpen, kGroup, kHeld, kFull };
    struct Job {
        Job(std::size_t frames, std::size_t pages) : stretch(frames, pages) {}
        std::atomic<State> state = State::kNone;
        VectorCore* core = nullptr;
        Job* twin = nullptr;      // of the core's group and of its next one; nullptr: none is guessed
        bool guessed = false;     // of a group that the core has not got yet
        VectorCore::Mark before;  // where the core was then
        std::uint64_t launch = 0, group = 0;  // guessed
        std::atomic<bool> dropped = false;    // whoever computes it is to give it back
        bool begun = false;
        bool in_play = false;  // it was compared, and its first quantum played
        VectorCore::Mark mark;
        Stretch stretch;
        std::vector<Quantum> quanta;  // whole ones
        Quantum open;
        End end = End::kOpen;
        std::size_t played = 0;
        std::uint64_t all_quanta = 0;  // of the group that were played
        std::uint64_t cut = 0;         // cycles of quanta that were full, and are one with the next
        std::uint64_t since = 0;       // what was done before has nothing to do with it
        std::uint64_t own_since = 0;   // nor has what its own core did before
        bool odd = false;              // `open` was played otherwise when it was computed again
        bool by_card = false;          // the card's thread computed the last of it
        // What the last stretch that was played has changed, unless that has been written back at once: the
        // thread that computes the core's next stretch does it first, or one that has nothing to do.
        std::atomic<Write> write = Write::kNone;
        WriteBack write_back;
        bool writes = false;             // that may not be done; the card's thread decides
        std::uint64_t write_serial = 0;  // of it
    };
    // What a stretch that is done has changed.
    struct Done {
        std::uint64_t serial;
        std::uint32_t core;
        TouchedPage page;
        TouchedPage::SmallStores small;  // its
        std::vector<Posted> posted;      // there
    };

    void start(Job& job, VectorCore& core, std::uint64_t cut);
    void post(Job& job);
    // One go; the job is this thread's.
    void compute(Job& job);
    bool take(Job& job);
    void give(Job& job);
    // While the card waits for `job`: a go of it or of another, which stays the card's then, as what it needs
    // is in this CPU's caches.
    void help(Job& job);
    bool meets_others(std::uint32_t number) const;
    void commit(std::uint32_t number);
    void write_first(Job& job);
    bool try_write(Job& job);
    void finish_write(Job& job);
    void forget_done();
    // Nobody else has it from here on.
    void take_away(Job& job);
    static void undo_guess(Job& job);
    void go_back(Job& job);
    void work();

    std::uint64_t quantum_;
    bool hands_over_;
    std::vector<std::unique_ptr<Job>> all_;
    std::vector<Job*> jobs_;                // of the group that a core has, by core
    std::atomic<std::size_t> at_work_ = 0;  // jobs that are not kNone
    Job* own_ = nullptr;                    // that the card's thread computes, between two goes
    std::uint64_t serial_ = 0;
    std::size_t writing_ = 0;                  // jobs that `writes`
    std::atomic<std::uint32_t> to_write_ = 0;  // of these: nobody has begun
    std::vector<Done> done_;
    std::atomic<std::uint32_t> posted_ = 0;
    std::atomic<bool> pause_ = false, stop_ = false;
    std::atomic<std::uint32_t> asleep_ = 0;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::thread> threads_;
};

}  // namespace orrery::emu
