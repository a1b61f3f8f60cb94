// The cards of one VM, and the switches that join them: a process each.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/vm/options.h"
#include "tools/vm/process.h"

namespace orrery::vm {

struct Card {
    std::string name;  // "card 0", or of a switch "switch 0"
    unsigned index;
    std::optional<Child> process;
    Fd output;  // its stdout, after the line "ready"
    std::filesystem::path socket;
    std::filesystem::path control;  // empty: none
    std::filesystem::path log;
    Fd flight;                        // the memory of its flight recorder, which outlives it; or none
    std::optional<std::string> died;  // how it ended before it was told to
};

// The file that card `index` records to.
std::filesystem::path recording_of(const Options& options, unsigned index);

// Where card `index` listens.
std::filesystem::path card_socket(const std::filesystem::path& directory, unsigned index);

// The command line of card `index`. `directory` holds the sockets.
std::vector<std::string> card_command(const Options& options, unsigned index,
                                      const std::filesystem::path& directory);

// Starts a card and waits until it says that its socket listens. A readable `interrupt_fd` ends the wait.
Result<Card> start_card(const Options& options, unsigned index, const std::filesystem::path& directory,
                        const std::filesystem::path& logs, int interrupt_fd);

// The same of switch `index`; it has no socket of its own.
std::vector<std::string> switch_command(const Options& options, unsigned index,
                                        const std::filesystem::path& directory);
Result<Card> start_switch(const Options& options, unsigned index, const std::filesystem::path& directory,
                          const std::filesystem::path& logs, int interrupt_fd);

}  // namespace orrery::vm
