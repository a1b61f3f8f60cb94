#include "tools/vm/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace orrery::vm {

TerminalSize terminal_size() {
    winsize size{};
    TerminalSize result;
    if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        result = {size.ws_row, size.ws_col};
    return result;
}

bool stdin_is_taken() {
    const pid_t owner = ::tcgetpgrp(STDIN_FILENO);
    return owner > 0 && owner != ::getpgrp();
}

RawTerminal::RawTerminal() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    raw_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

RawTerminal::~RawTerminal() {
    if (raw_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

bool EscapeFilter::feed(std::string_view typed, std::string& to_guest) {
    constexpr char kEscape = 1;  // Ctrl-A
    for (const char c : typed) {
        if (!after_escape_) {
            if (c == kEscape)
                after_escape_ = true;
            else
                to_guest += c;
            continue;
        }
        after_escape_ = false;
        if (c == 'x' || c == 'X') return true;
        if (c != kEscape) to_guest += kEscape;
        to_guest += c;
    }
    return false;
}

}  // namespace orrery::vm
