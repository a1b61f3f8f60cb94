// What kernels print: the host's end of the ring of <orrery/kernel_output.h>. Kernels can write there
// whatever they like at any time, so every number in it is checked, and read once.
#pragma once

#include <orrery/kernel_output.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace orrery::umd {

// Thread safe.
class Output {
  public:
    // The text that ends at an address of the card; nothing: there is none.
    using Texts = std::function<std::optional<std::string>(std::uint64_t)>;
    // Takes a piece of output; by default the standard output.
    using Sink = std::function<void(const std::string&)>;

    // Whether some work of the card has ended; any thread may ask.
    using Ended = std::function<bool()>;
    // Gives that of all work which the card has at the time of the call.
    using Work = std::function<Ended()>;

    // `ring` outlives it. who: for messages.
    Output(orr_output& ring, Texts texts, Work work, std::string who, Sink sink = {});

    // Hands on what is complete, in order.
    void print();

  private:
    // A record that an item has claimed and not completed: it may be waiting for a core for as long as it
    // likes, and only when all work of that time has ended does nobody complete it.
    struct Gap {
        std::uint64_t at = 0;
        std::uint64_t head = 0;  // up to here all was claimed when the work was asked for
        Ended ended;
    };

    // Up to the next gap; nothing: there is none.
    std::shared_ptr<const Gap> print_complete();
    // Asks for the work that may still complete it.
    std::shared_ptr<const Gap> watch(const Gap& gap);
    void skip(const Gap& gap);
    // Of a record that begins with this word; 0: none does.
    static std::uint64_t words_of(std::uint64_t first, std::uint64_t room);
    void clear(std::uint64_t from, std::uint64_t words);
    void move_tail(std::uint64_t to);
    void print_record(std::span<const std::uint64_t> record);
    void tell(const std::string& what);

    orr_output& ring_;
    const Texts texts_;
    const std::string who_;
    const Work work_;
    const Sink sink_;
    std::mutex mutex_;                    // of what follows; tail_ and lost_ are looked at without it
    std::atomic<std::uint64_t> tail_{0};  // the ring's own may be overwritten
    std::atomic<std::uint64_t> lost_{0};  // told
    std::shared_ptr<const Gap> gap_;      // that at tail_, if it is there
};

// As printf, of arguments of 8 bytes: integers, doubles, pointers. What the format asks for and is not there
// is left as it stands in the format.
std::string format_output(const std::string& format, std::span<const std::uint64_t> args,
                          const Output::Texts& texts);

}  // namespace orrery::umd
