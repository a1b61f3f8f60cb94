// The terminal that orrery-vm runs on.
#pragma once

#include <termios.h>

#include "tools/vm/initramfs.h"

namespace orrery::vm {

TerminalSize terminal_size();

// Whether reading stdin would stop this process: it is a terminal, and another job of the shell's has it.
bool stdin_is_taken();

// Puts the terminal on stdin into raw mode for as long as it lives. Nothing happens if stdin is no terminal.
class RawTerminal {
  public:
    RawTerminal();
    RawTerminal(const RawTerminal&) = delete;
    RawTerminal& operator=(const RawTerminal&) = delete;
    ~RawTerminal();

  private:
    bool raw_ = false;
    termios before_{};
};

// Finds Ctrl-A X in what is typed. Ctrl-A Ctrl-A stands for one Ctrl-A.
class EscapeFilter {
  public:
    // Appends what the guest shall see; true if the user wants to leave.
    bool feed(std::string_view typed, std::string& to_guest);

  private:
    bool after_escape_ = false;
};

}  // namespace orrery::vm
