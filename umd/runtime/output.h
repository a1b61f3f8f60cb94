// What kernels print: the host's end of the ring of <orrery/kernel_output.h>. Kernels can write there
// whatever they like at any time, so every number in it is checked, and read once.
#pragma once

#include <orrery/kernel_output.h>

#include <cstdint>
#include <functional>
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

    // `ring` outlives it. who: for messages.
    Output(orr_output& ring, Texts texts, std::string who, Sink sink = {});

    // Hands on what is complete, in order.
    void print();

  private:
    void print_record(std::span<const std::uint64_t> record);
    void tell(const std::string& what);

    orr_output& ring_;
    const Texts texts_;
    const std::string who_;
    const Sink sink_;
    std::mutex mutex_;
    std::uint64_t tail_ = 0;   // the ring's own may be overwritten
    std::uint64_t lost_ = 0;   // told
    std::uint64_t stuck_ = 0;  // the head at the last look at a record that was not complete
};

// As printf, of arguments of 8 bytes: integers, doubles, pointers. What the format asks for and is not there
// is left as it stands in the format.
std::string format_output(const std::string& format, std::span<const std::uint64_t> args,
                          const Output::Texts& texts);

}  // namespace orrery::umd
