// Where a card's vector cores are in this process's kernels, for profilers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "umd/prof/holders.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Context;
class Stream;

// Of a card. Threads: any, but for tell_all().
class PcLog {
  public:
    explicit PcLog(Context& context) : context_(context) {}
    // For this subscription: instead of what it has asked for before, or what others have, if that comes to
    // the same; the other one of the next two stays. It fails if others have something else.
    Status start(orrProfSubscription_t who, std::uint32_t period_ns);
    // From now on, in so many picoseconds of the card's model time, until so many.
    Status trace(orrProfSubscription_t who, std::uint32_t core, std::uint64_t from_ps,
                 std::uint64_t until_ps);
    // It has them no more; tells what there is, inside of a callback a little later. Nothing if it had none.
    Status stop(orrProfSubscription_t who);
    // There are some: they take the room that all records share.
    bool any();
    // There are some, and nobody has them any more.
    bool unheld();
    // Ends them then: they take everybody's room, and other processes wait for them.
    void end_unheld();
    // Before its context goes.
    void end();

    // For WorkLog, one at a time: tells all of jobs that have ended until now. find: a stream of this process
    // by its queue, or nullptr.
    Status tell_all(const std::function<Stream*(std::uint32_t queue)>& find);

  private:
    static constexpr std::size_t kMostWaiting = std::size_t{1} << 18;  // then the oldest job's go
    using Job = std::pair<std::uint64_t, std::uint16_t>;               // start_ps, port

    struct Waiting {
        drm_orr_pc_record record;
        std::uint64_t period_ns;
    };

    Status want(orrProfSubscription_t who, const std::function<void(PcWanted& wanted)>& change);
    void keep(const drm_orr_pc_record& record, std::uint64_t period_ns);
    void forget(std::map<Job, std::vector<Waiting>>::iterator job);
    void tell(const drm_orr_pc_record& ended, Stream& stream);
    void tell_lost();

    Context& context_;
    std::mutex mutex_;  // of the next two
    PcWanted wanted_;
    Holders holders_;
    // Of who tells: of jobs whose end is not known yet.
    std::map<Job, std::vector<Waiting>> waiting_;
    std::size_t kept_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace orrery::umd
