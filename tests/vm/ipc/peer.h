// Another process of the test, and what is said to it.
#pragma once

#include <orrery/group.h>
#include <orrery/ipc.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/umd/api_test.h"

namespace orrery::umd::vm {

// Nothing that is waited for here takes seconds; this is for machines that are busy.
constexpr std::uint64_t kLongNs = 100'000'000'000;

// A number and descriptors, as the processes of the test tell each other.
struct Said {
    std::uint64_t number = 0;
    std::vector<int> fds;
};

void say(int socket, std::uint64_t number, const std::vector<int>& fds = {});
// Ends the process if nothing comes.
Said hear(int socket);

// This program again in a role (roles.cc); it is killed when this goes.
class Peer {
  public:
    explicit Peer(const std::string& role, int device = 0);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    void say(std::uint64_t number, const std::vector<int>& fds = {}) const { vm::say(socket_, number, fds); }
    Said hear() const { return vm::hear(socket_); }
    void kill();
    // Its first thread is in this system call; with SYS_futex in a call on its group, as it reads else.
    void wait_until_it_sleeps_in(long call) const;
    int socket() const { return socket_; }
    pid_t process() const { return process_; }

  private:
    pid_t process_ = -1;
    int socket_ = -1;
};

// What a member of a group is told to do; it tells the code that came of it.
enum GroupDo : std::uint64_t {
    kGroupBarrier = 1,
    kGroupGather,
    kGroupBroadcast,
    kGroupEnqueue,  // a barrier in its stream
    kGroupHold,     // its stream waits until kGroupRelease
    kGroupRelease,
    kGroupSync,
    kGroupAbort,
    kGroupCause,  // tells code, rank + 1 and device + 1
    kGroupLeave,  // its process stays
};
// What the other half of a cycle of waits is told to do.
enum CycleDo : std::uint64_t {
    kCycleHelp = 1,  // another stream waits for what nobody signals, and would then signal theirs
    kCycleClose,     // the stream that waits would signal theirs
    kCycleFree,      // what that other stream waits for is signalled
    kCycleSync,
};
constexpr const char* kTokenVariable = "ORR_TEST_TOKEN";
// With the token of the environment and the current device.
orrError_t join(orrGroup_t* group, int rank, int members, std::uint64_t limit_ns);
// Is told rank, members << 8 and its limit in ms << 16.
int be_member();

// What a peer does; its exit status. The other end is behind kPeerSocket.
constexpr int kPeerSocket = 3;
int run_role(const std::string& role, int device);

}  // namespace orrery::umd::vm
