// Keeps the guest kernel's console and finds the kernel's reports of its own trouble in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/vm/process.h"

namespace orrery::vm {

enum class Trouble {
    kWarning,  // WARN() and its kind: the kernel goes on
    kFault,    // oops, BUG, deadlock, sanitizer report, stall
    kPanic,    // the kernel has stopped
};

// What a console line (with or without its time stamp) reports, if it reports trouble.
std::optional<Trouble> classify(std::string_view line);

class ConsoleLog {
  public:
    explicit ConsoleLog(Fd file) : file_(std::move(file)) {}

    void feed(std::string_view bytes);

    // The worst trouble so far, the line that told it first (an oops says more than the panic that follows),
    // and the log from there on, up to kContextLines.
    const std::optional<Trouble>& trouble() const { return trouble_; }
    const std::string& line() const { return line_; }
    const std::string& context() const { return context_; }

  private:
    void judge(std::string_view line);

    static constexpr std::size_t kContextLines = 25;
    Fd file_;
    std::string pending_;
    std::string context_;
    std::size_t context_lines_ = 0;
    std::optional<Trouble> trouble_;
    std::string line_;
};

}  // namespace orrery::vm
