#include "tests/vm/ipc/peer.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace orrery::umd::vm {

void say(int socket, std::uint64_t number, const std::vector<int>& fds) {
    if (orrIpcSend(socket, fds.data(), fds.size(), &number, sizeof number, kLongNs) == orrSuccess) return;
    std::fprintf(stderr, "cannot send: %s\n", orrGetLastErrorText());
    std::exit(3);
}

Said hear(int socket) {
    Said said;
    said.fds.resize(ORR_IPC_MAX_FDS);
    std::size_t count = said.fds.size(), bytes = sizeof said.number;
    if (orrIpcReceive(said.fds.data(), &count, &bytes, &said.number, socket, kLongNs) != orrSuccess ||
        bytes != sizeof said.number) {
        std::fprintf(stderr, "nothing was heard: %s\n", orrGetLastErrorText());
        std::exit(3);
    }
    said.fds.resize(count);
    return said;
}

Peer::Peer(const std::string& role, int device) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    // Its own number would keep close-on-exec.
    const int other = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 100);
    ::posix_spawn_file_actions_adddup2(&actions, other, kPeerSocket);
    std::string program = "umd_ipc_vm_test", first = "--role=" + role, second = std::to_string(device);
    char* arguments[] = {program.data(), first.data(), second.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(other);
    ::close(ends[1]);
    socket_ = ends[0];
}

Peer::~Peer() {
    kill();
    ::close(socket_);
}

void Peer::kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
}

void Peer::wait_until_it_sleeps_in(long call) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kLongNs);
    std::string found;
    while (found != std::to_string(call)) {
        ASSERT_LT(std::chrono::steady_clock::now(), limit) << "it is in: " << found;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        std::ifstream("/proc/" + std::to_string(process_) + "/syscall") >> found;
    }
}

}  // namespace orrery::umd::vm
