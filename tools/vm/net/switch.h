// Carries Ethernet frames between this run's guest and the other runs on its segment.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "tools/vm/net/segment.h"
#include "tools/vm/process.h"

namespace orrery::vm {

// All connections carry what QEMU's stream sockets do: four bytes of length, the highest first, and the
// frame. What comes from the guest goes to all others, and what comes from them to the guest, whose network
// card takes what is meant for it.
class Switch {
  public:
    Switch(Segment segment, Fd guest);

    unsigned number() const { return segment_.number(); }
    // What poll shall wait for.
    std::vector<pollfd> wanted() const;
    // Something happened to a descriptor of those.
    void handle(int fd);

  private:
    struct Link {
        Fd fd;
        std::string in;   // the beginning of a frame
        std::string out;  // what the other end has not taken yet
    };

    void read_from(Link& link);
    void deliver(Link& from);
    static void send(Link& link, std::string_view frame);
    static void write_to(Link& link);

    Segment segment_;
    Link guest_;
    std::vector<Link> peers_;
};

}  // namespace orrery::vm
