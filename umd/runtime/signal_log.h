// Who signals what in this process, so that a wait can be told with who ended it: where that is not sure,
// with nobody.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include <orrery/prof.h>

namespace orrery::umd {

// One for all of the process. Threads: any.
class SignalLog {
  public:
    struct Source {
        orrProfFrom from = orrProfFromUnknown;
        std::uint64_t stream = 0, index = 0;
    };
    static SignalLog& get();
    // A semaphore begins at this address; shared: others than this process may signal it.
    void begin(std::uint64_t semaphore, bool shared) noexcept;
    // Which of those at this address it is, for find().
    std::uint64_t generation(std::uint64_t semaphore) const;
    // The same, and from now on there is one. 0: no memory for it.
    std::uint64_t identify(std::uint64_t semaphore) noexcept;
    // Before anybody can see the signal.
    void note(std::uint64_t semaphore, std::uint64_t value, Source source) noexcept;
    // A signal was submitted that is not noted, as nobody wants to know of work.
    static void miss() noexcept {
        if (!missed_.load(std::memory_order_relaxed)) missed_.store(true, std::memory_order_relaxed);
    }
    // Not all signals of this process have been noted.
    static bool missed() { return missed_.load(std::memory_order_relaxed); }
    // Who raised it to so much; not what stands behind the wait in its own stream. Outside: nobody noted it,
    // and it is shared.
    Source find(std::uint64_t semaphore, std::uint64_t generation, std::uint64_t value, std::uint64_t stream,
                std::uint64_t index) const;

  private:
    static constexpr std::size_t kMostOfOne = 4'096;
    static constexpr std::size_t kMost = std::size_t{1} << 20;  // then all that is known is forgotten

    struct Signals {
        std::uint64_t generation = 0;
        bool shared = false;
        std::uint64_t dropped = 0;  // the highest value of which the source is forgotten
        std::map<std::uint64_t, Source> sources;
    };

    mutable std::mutex mutex_;
    std::unordered_map<std::uint64_t, Signals> signals_;
    std::size_t count_ = 0;
    std::uint64_t generations_ = 0;
    static inline std::atomic<bool> missed_{false};
};

}  // namespace orrery::umd
