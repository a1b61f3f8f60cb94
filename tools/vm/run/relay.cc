#include "tools/vm/run/relay.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace orrery::vm {

void Relay::read_some() {
    char buffer[65536];
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    if (n > 0)
        pending.append(buffer, static_cast<std::size_t>(n));
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        open = false;
}

void Relay::write_some() {
    // No more than a pipe takes at once when poll says that it takes something, so that this cannot block.
    const ssize_t n = ::write(to, pending.data(), std::min<std::size_t>(pending.size(), PIPE_BUF));
    if (n > 0) {
        pending.erase(0, static_cast<std::size_t>(n));
    } else if (n < 0 && errno != EINTR && errno != EAGAIN) {
        pending.clear();  // nobody reads it any more; the command goes on
    }
}

}  // namespace orrery::vm
