// Where a card's vector cores are in this process's kernels, for profilers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Context;
class Stream;

// Of a card. Threads: any, but for tell_all().
class PcLog {
  public:
    explicit PcLog(Context& context) : context_(context) {}
    // Instead of what was asked for before; the other stays.
    Status start(std::uint32_t period_ns);
    // From now on, in so many picoseconds of the card's model time, until so many.
    Status trace(std::uint32_t core, std::uint64_t from_ps, std::uint64_t until_ps);
    // Tells the last ones; inside of a callback a little later. Nothing if there are none.
    Status stop();
    // Ends them if nobody listens any more: they take everybody's room, and other processes wait for them.
    void stop_unless_wanted();
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

    Status want(const std::function<void(PcWanted& wanted)>& change);
    void keep(const drm_orr_pc_record& record, std::uint64_t period_ns);
    void forget(std::map<Job, std::vector<Waiting>>::iterator job);
    void tell(const drm_orr_pc_record& ended, Stream& stream);
    void tell_lost();

    Context& context_;
    std::mutex mutex_;
    PcWanted wanted_;
    bool ends_ = false;  // somebody has ended them inside of a callback
    // Of who tells: of jobs whose end is not known yet.
    std::map<Job, std::vector<Waiting>> waiting_;
    std::size_t kept_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace orrery::umd
