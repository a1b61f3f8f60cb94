// gdb's "monitor" on a live card: what the firmware decides is orrery-step's to tell, from the recording that
// the card is making.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace orrery::emu {

// Runs `program` on the recording, at its end, with the command; gives what it says, or why it says nothing.
// Calls `meanwhile` every millisecond, and gives up when that says false.
std::string ask_stepper(const std::filesystem::path& program, const std::filesystem::path& recording,
                        const std::string& command, const std::function<bool()>& meanwhile);

}  // namespace orrery::emu
