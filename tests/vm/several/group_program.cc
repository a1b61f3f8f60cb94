// umd_group_vms [SCENARIO...], a rank of orrery-run on two VMs or more: what members of a group on several
// machines are told. Each scenario is a group of its own, whose members are children of the ranks: one may
// end. A rank tells in lines what its member was told; all are told the same cause.
#include <fmt/format.h>
#include <orrery/group.h>
#include <orrery/orrery.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::uint64_t kLongNs = 60'000'000'000;

int number(const char* name) {
    const char* const text = std::getenv(name);
    return text == nullptr ? 0 : std::atoi(text);
}
const int kRank = number("ORR_RANK"), kRanks = number("ORR_RANKS"), kLocal = number("ORR_LOCAL_RANK"),
          kLocals = number("ORR_LOCAL_RANKS");

[[noreturn]] void fail(const std::string& what) {
    fmt::print(stderr, "umd_group_vms: rank {}: {}\n", kRank, what);
    std::exit(1);
}
void must(orrError_t code, const char* what) {
    if (code != orrSuccess)
        fail(fmt::format("{}: {}: {}", what, orrGetErrorName(code), orrGetLastErrorText()));
}
#define MUST(call) must(call, #call)
void check(bool good, const std::string& what) {
    if (!good) fail(what);
}

void put(const std::string& name, const std::string& text = "") {
    const std::string made = fmt::format("/share/{}-{}.new", name, kRank);
    std::ofstream(made, std::ios::binary) << text;
    std::filesystem::rename(made, "/share/" + name);
}
std::string await(const std::string& name) {
    for (int tries = 0; !std::filesystem::exists("/share/" + name); ++tries) {
        if (tries == 3000) fail(fmt::format("nobody came to '{}' in a minute", name));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::ifstream file("/share/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// What a member has.
struct Member {
    orrGroup_t group = nullptr;
    orrStream_t stream = nullptr;
    std::string scenario;

    // Told by a rank once, to all.
    void say(const std::string& what) const { put(scenario + "-" + what); }
    void hear(const std::string& what) const { (void)await(scenario + "-" + what); }
    // Another thread lets the process end when it is in the wait that follows.
    void die_soon() const {
        std::thread([me = *this] {
            std::this_thread::sleep_for(std::chrono::seconds(1));
            me.say("dies");
            ::kill(::getpid(), SIGKILL);
        }).detach();
    }
    // Another thread says so when this one is in the wait that follows, and so has come to it.
    void say_when_it_waits() const {
        std::thread([me = *this, caller = ::gettid()] {
            std::string call;
            while (call != std::to_string(SYS_futex)) {
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                std::ifstream(fmt::format("/proc/self/task/{}/syscall", caller)) >> call;
            }
            me.say(fmt::format("waits-{}", kRank));
        }).detach();
    }
    // The call ends with a failure, whose cause is `who` and `code`, with `part` in its text.
    void expect(orrError_t got, orrError_t code, int who, const char* part) const {
        const std::string text = orrGetLastErrorText();
        orrGroupCause cause = ORR_INIT(orrGroupCause);
        MUST(orrGroupGetCause(&cause, group));
        if (got == orrSuccess || cause.code != code || cause.rank != who ||
            std::string_view(cause.text).find(part) == std::string_view::npos) {
            fail(fmt::format("{}: {} ({}) and {} of rank {}: {}", scenario, orrGetErrorName(got), text,
                             orrGetErrorName(cause.code), cause.rank, cause.text));
        }
        fmt::print("{}: {} of rank {}: {}\n", scenario, orrGetErrorName(cause.code), cause.rank, cause.text);
        std::fflush(stdout);
    }
    orrError_t stream_barrier() const {
        const orrError_t queued = orrGroupBarrierAsync(group, stream, nullptr);
        return queued == orrSuccess ? orrStreamSynchronize(stream) : queued;
    }
};

void meet(const Member& me) {
    orrGroupInfo info = ORR_INIT(orrGroupInfo);
    MUST(orrGroupGetInfo(&info, me.group));
    check(info.by_units == 0 && info.rank == kRank && info.members == kRanks, "what the group is");
    for (int turn = 0; turn < 3; ++turn)
        MUST(orrGroupBarrier(me.group, kLongNs));
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{3}, std::size_t{8}, std::size_t{4096}}) {
        std::vector<std::uint8_t> own(bytes, static_cast<std::uint8_t>(kRank * 16 + 5));
        std::vector<std::uint8_t> all(bytes * static_cast<std::size_t>(kRanks));
        MUST(orrGroupAllGather(me.group, all.data(), own.data(), bytes, kLongNs));
        for (std::size_t i = 0; i < all.size(); ++i)
            check(all[i] == i / bytes * 16 + 5, fmt::format("byte {} of {} gathered", i, all.size()));
        for (int root = 0; root < kRanks; ++root) {
            std::vector<std::uint8_t> data(bytes, static_cast<std::uint8_t>(kRank));
            MUST(orrGroupBroadcast(me.group, data.data(), bytes, root, kLongNs));
            check(std::ranges::all_of(data, [&](int byte) { return byte == root; }), "what a root sent");
        }
    }
    // In streams: each member in turn is the last to come, and the others have not gone on before.
    orrStream_t other = nullptr;
    orrSemaphore_t gate = nullptr;
    MUST(orrStreamCreate(&other, 0));
    MUST(orrSemaphoreCreate(&gate, 0));
    for (int last = 0; last < kRanks; ++last) {
        const std::uint64_t turn = static_cast<std::uint64_t>(last) + 1;
        if (last == kRank) MUST(orrStreamWaitSemaphore(me.stream, gate, turn, nullptr));
        MUST(orrGroupBarrierAsync(me.group, me.stream, nullptr));
        MUST(orrGroupBarrierAsync(me.group, other, nullptr));
        MUST(orrGroupBarrier(me.group, kLongNs));
        check(orrStreamQuery(me.stream) == orrErrorNotReady && orrStreamQuery(other) == orrErrorNotReady,
              "nobody goes on before the last has come");
        MUST(orrGroupBarrier(me.group, kLongNs));
        if (last == kRank) MUST(orrSemaphoreSignal(gate, turn));
        MUST(orrStreamSynchronize(me.stream));
        MUST(orrStreamSynchronize(other));
    }
    for (int i = 0; i < 20; ++i)
        MUST(orrGroupBarrierAsync(me.group, i % 2 == 0 ? me.stream : other, nullptr));
    MUST(orrStreamSynchronize(me.stream));
    MUST(orrStreamSynchronize(other));
    orrGroupCause cause = ORR_INIT(orrGroupCause);
    MUST(orrGroupGetCause(&cause, me.group));
    check(cause.code == orrSuccess, "nothing has failed");
    fmt::print("meet: passed\n");
}

// One group after the other in the same processes: nothing of the last is in the next one's way.
void meet_again(Member& me) {
    for (int turn = 0; turn < 6; ++turn) {
        orrGroupToken token{};
        if (kRank == 0) MUST(orrGroupMakeFolderToken(&token, "/share", 0));
        MUST(orrGroupBroadcast(me.group, &token, sizeof token, 0, kLongNs));
        orrGroupJoinParams params = ORR_INIT(orrGroupJoinParams);
        params.rank = kRank;
        params.members = kRanks;
        orrGroup_t next = nullptr;
        MUST(orrGroupJoin(&next, &token, &params));
        // Both at once.
        MUST(orrGroupBarrierAsync(me.group, me.stream, nullptr));
        MUST(orrGroupBarrierAsync(next, me.stream, nullptr));
        MUST(orrStreamSynchronize(me.stream));
        MUST(orrGroupBarrier(next, kLongNs));
        MUST(orrGroupDestroy(me.group));
        me.group = next;
    }
    MUST(orrGroupBarrier(me.group, kLongNs));
    fmt::print("again: passed\n");
}

// All wait on the host but `who`, who aborts.
void abort_host(const Member& me, int who) {
    orrError_t got = orrErrorAborted;
    if (kRank == who) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        MUST(orrGroupAbort(me.group, "as it was told"));
    } else {
        got = orrGroupBarrier(me.group, kLongNs);
    }
    me.expect(got, orrErrorAborted, who, "it called orrGroupAbort: as it was told");
}

void abort_streams(const Member& me, int who) {
    orrError_t got = orrErrorAborted;
    if (kRank == who) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        MUST(orrGroupAbort(me.group, nullptr));
    } else {
        got = me.stream_barrier();
    }
    me.expect(got, orrErrorAborted, who, "it called orrGroupAbort");
}

// All wait but `late`, which looks only when the other has been killed.
void killed(const Member& me, int who, int late, const std::function<orrError_t()>& wait) {
    if (kRank == who) me.die_soon();
    if (kRank == late) {
        me.hear("dies");
        // Also who is in no call is told.
        orrGroupCause cause = ORR_INIT(orrGroupCause);
        for (int tries = 0; tries < 3000 && cause.code == orrSuccess; ++tries) {
            MUST(orrGroupGetCause(&cause, me.group));
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    const orrError_t got = wait();
    me.expect(got, orrErrorAborted, who, "its process ended");
}

// All but `who` and the one whose limit passes, who begins when all others are in their calls.
void limit(const Member& me, int who) {
    MUST(orrGroupBarrier(me.group, kLongNs));
    const int impatient = (who + 1) % kRanks;
    orrError_t got = orrErrorTimeout;
    if (kRank == who) {
        me.hear("over");
        got = orrGroupBarrier(me.group, kLongNs);
    } else if (kRank == impatient) {
        for (int rank = 0; rank < kRanks; ++rank) {
            if (rank != who && rank != impatient) me.hear(fmt::format("waits-{}", rank));
        }
        got = orrGroupBarrier(me.group, 5'000'000'000);
        me.say("over");
    } else {
        me.say_when_it_waits();
        got = orrGroupBarrier(me.group, kLongNs);
    }
    me.expect(got, orrErrorTimeout, who, "it did not come to orrGroupBarrier within the 5000000000 ns");
}

void different(const Member& me, int who) {
    std::uint64_t value = 0;
    const orrError_t got = kRank == who ? orrGroupBroadcast(me.group, &value, sizeof value, 0, kLongNs)
                                        : orrGroupBarrier(me.group, kLongNs);
    me.expect(got, orrErrorInvalidValue, who, "it called orrGroupBroadcast (bytes 8, root 0), and rank 0");
}

void leaves(Member& me, int who) {
    if (kRank == who) {
        MUST(orrGroupDestroy(me.group));
        me.group = nullptr;
        me.hear("told");
        return;
    }
    const orrError_t got = orrGroupBarrier(me.group, kLongNs);
    me.expect(got, orrErrorAbandoned, who, "it destroyed its group while others wait for it in");
    me.say("told");
}

// The member's stream waits for what nobody signals, and fails by the limit of that.
void wait_in_vain(const Member& me) {
    orrSemaphore_t never = nullptr;
    MUST(orrSemaphoreCreate(&never, 0));
    MUST(orrSemaphoreSetName(never, "never"));
    orrWaitOptions options = ORR_INIT(orrWaitOptions);
    options.limit_ns = 1000;
    MUST(orrStreamWaitSemaphore(me.stream, never, 1, &options));
}

// A stream fails with a barrier behind.
void stream_fails(const Member& me, int who) {
    if (kRank == who) wait_in_vain(me);
    me.expect(me.stream_barrier(), orrErrorTimeout, who, "'never'");
}

// The same by the cards alone, as from outside the test stops the VM of `who`, the last, for some seconds
// when all of that VM is queued; rank 0 comes to the barrier before it only then.
void stream_fails_while_its_vm_stands(const Member& me, int who) {
    if (kRank == 0) me.hear("stands");
    MUST(orrGroupBarrierAsync(me.group, me.stream, nullptr));
    if (kRank == who) wait_in_vain(me);
    // Else who is told of it before may be refused its second.
    if (kRank != 0) MUST(orrGroupBarrierAsync(me.group, me.stream, nullptr));
    if (kRank != who) me.say(fmt::format("queued-{}", kRank));
    for (int rank = 1; kRank == who && rank < who; ++rank)
        me.hear(fmt::format("queued-{}", rank));
    if (kRank == who) put(me.scenario + "-waits", std::getenv("ORR_VM"));
    const orrError_t got = kRank == 0 ? me.stream_barrier() : orrStreamSynchronize(me.stream);
    me.expect(got, orrErrorTimeout, who, "'never'");
}

// From outside the test ends the VM of `who`, or stops it.
void wait_for_the_end(const Member& me) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    put(me.scenario + "-waits", std::getenv("ORR_VM"));
    std::this_thread::sleep_for(std::chrono::seconds(60));
    fail("its VM goes on");
}

// Device and port at which this VM has what is not its own: a card of another, or a switch.
std::set<std::pair<int, int>> ports_to_others() {
    std::set<std::pair<int, int>> found;
    int devices = 0;
    MUST(orrGetDeviceCount(&devices));
    for (int device = 0; device < devices; ++device) {
        orrDeviceProp properties = ORR_INIT(orrDeviceProp);
        MUST(orrGetDeviceProperties(&properties, device));
        for (int port = 0; port < static_cast<int>(properties.link_ports); ++port) {
            orrLinkInfo link = ORR_INIT(orrLinkInfo);
            MUST(orrDeviceGetLink(&link, device, port));
            if (link.state == orrLinkStateUp && link.peer_device < 0) found.emplace(device, port);
        }
    }
    return found;
}

void vm_ends(const Member& me, int who, bool streams) {
    const auto ports = ports_to_others();
    me.say(fmt::format("looked-{}", kRank));
    for (int rank = 0; kRank == who && rank < kRanks; ++rank)
        me.hear(fmt::format("looked-{}", rank));
    if (kRank == who) wait_for_the_end(me);
    const orrError_t got = streams ? me.stream_barrier() : orrGroupBarrier(me.group, kLongNs);
    me.expect(got, orrErrorPeerAccess, who, "its machine is not reached any more: its card, node 51");
    orrGroupCause cause = ORR_INIT(orrGroupCause);
    MUST(orrGroupGetCause(&cause, me.group));
    int port = -1, rank = -1, device = -1;
    const char* const where = std::strstr(cause.text, ", was at port ");
    check(where != nullptr && std::sscanf(where, ", was at port %d of rank %d's device %d (orrery-smi links)",
                                          &port, &rank, &device) == 3,
          fmt::format("{}: no port: {}", me.scenario, cause.text));
    check(rank >= 0 && rank < kRanks && (rank < who || rank >= who + kLocals),
          fmt::format("{}: rank {} has gone itself: {}", me.scenario, rank, cause.text));
    // Who is of that machine knows which of its ports led there.
    if (rank < kRank - kLocal || rank >= kRank - kLocal + kLocals) return;
    check(ports.contains({device, port}),
          fmt::format("{}: no other machine was at that port: {}", me.scenario, cause.text));
    fmt::print("{}: the port is right\n", me.scenario);
}

// It stands still, and is there for all that others can see.
void vm_stops(const Member& me, int who) {
    if (kRank == who) wait_for_the_end(me);
    // Of the others of rank 0's machine all are in their calls before its limit begins.
    if (kRank != 0) me.say_when_it_waits();
    for (int rank = 1; kRank == 0 && rank < who; ++rank)
        me.hear(fmt::format("waits-{}", rank));
    const orrError_t got = orrGroupBarrier(me.group, kRank == 0 ? 5'000'000'000 : kLongNs);
    me.expect(got, orrErrorTimeout, who, "it did not come to orrGroupBarrier within the 5000000000 ns");
}

// All live, and each side names its own link to the switch.
void switch_ends(const Member& me) {
    const int half = kRanks / 2;
    // Who is not in a call hears of it, too.
    if (kRank == half) me.say("waits");
    orrGroupCause cause = ORR_INIT(orrGroupCause);
    for (int tries = 0; kRank == half && cause.code == orrSuccess; ++tries) {
        check(tries < 3000, "no cause in a minute");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        MUST(orrGroupGetCause(&cause, me.group));
    }
    const orrError_t got = orrGroupBarrier(me.group, kLongNs);
    me.expect(got, orrErrorPeerAccess, kRank < half ? 0 : half, "to a switch went down, by which it reached");
}

void run(Member& me) {
    const int last = kRanks - 1, half = kRanks / 2;
    const auto on_host = [&] { return orrGroupBarrier(me.group, kLongNs); };
    const auto in_gather = [&] {
        std::vector<std::uint64_t> all(static_cast<std::size_t>(kRanks));
        return orrGroupAllGather(me.group, all.data(), all.data(), sizeof all[0], kLongNs);
    };
    const auto in_stream = [&] { return me.stream_barrier(); };
    const std::string& name = me.scenario;
    // Ranks from `half` on are on other VMs than rank 0; rank `half` leads its VM.
    if (name == "meet") return meet(me);
    if (name == "again") return meet_again(me);
    if (name == "abort") return abort_host(me, last);
    if (name == "abort-root") return abort_host(me, 0);
    if (name == "abort-streams") return abort_streams(me, 1);
    if (name == "killed-host") return killed(me, last, 0, on_host);
    if (name == "killed-leader") return killed(me, half, last, on_host);
    if (name == "killed-root") return killed(me, 0, half, in_gather);
    if (name == "killed-stream") return killed(me, last, 1, in_stream);
    if (name == "killed-leader-stream") return killed(me, half, 0, in_stream);
    if (name == "limit") return limit(me, last);
    if (name == "limit-root") return limit(me, 0);
    if (name == "different") return different(me, last);
    if (name == "leaves") return leaves(me, last);
    if (name == "leaves-root") return leaves(me, 0);
    if (name == "leaves-leader") return leaves(me, half);
    if (name == "stream-fails") return stream_fails(me, last);
    if (name == "stream-fails-vm-stands") return stream_fails_while_its_vm_stands(me, last);
    if (name == "vm-ends-host") return vm_ends(me, half, false);
    if (name == "vm-ends-stream") return vm_ends(me, half, true);
    if (name == "vm-stops") return vm_stops(me, half);
    if (name == "switch-ends") return switch_ends(me);
    fail("there is no scenario " + name);
}

// Who joins wrongly, or not at all.
int join_wrongly(const std::string& name, const orrGroupToken& token) {
    const int last = kRanks - 1;
    orrGroup_t group = nullptr;
    orrGroupJoinParams params = ORR_INIT(orrGroupJoinParams);
    params.rank = kRank;
    params.members = kRanks;
    params.limit_ns = kLongNs;
    if (name == "join-members") {
        if (kRank == last) params.members = kRanks + 1;
        const orrError_t got = orrGroupJoin(&group, &token, &params);
        check(got == (kRank == last ? orrErrorTimeout : orrErrorInvalidValue) || got == orrErrorInvalidValue,
              orrGetLastErrorText());
    } else {
        if (kRank == last && name == "join-late") return 0;
        // It is there, and ends before all are.
        if (kRank == last) Member{nullptr, nullptr, name}.die_soon();
        if (kRank == 0 && name == "join-killed") Member{nullptr, nullptr, name}.hear("dies");
        // Whose limit passes first says who is missing, and the others are told. They come long before.
        if (kRank == kRanks / 2) params.limit_ns = 10'000'000'000;
        const orrError_t got = orrGroupJoin(&group, &token, &params);
        check(got == orrErrorTimeout &&
                  std::string_view(orrGetLastErrorText()).find(fmt::format("rank {} did not", last)) !=
                      std::string_view::npos,
              fmt::format("{}: {}", orrGetErrorName(got), orrGetLastErrorText()));
    }
    fmt::print("{}: {}\n", name, orrGetLastErrorText());
    return 0;
}

int be_member(const std::string& name, const std::string& text) {
    int devices = 0;
    MUST(orrGetDeviceCount(&devices));
    MUST(orrSetDevice(kLocal % devices));
    orrGroupToken token{};
    std::strncpy(token.text, text.c_str(), sizeof token.text - 1);
    if (name.starts_with("join-")) return join_wrongly(name, token);
    Member me;
    me.scenario = name;
    orrGroupJoinParams params = ORR_INIT(orrGroupJoinParams);
    params.rank = kRank;
    params.members = kRanks;
    MUST(orrGroupJoin(&me.group, &token, &params));
    MUST(orrStreamCreate(&me.stream, 0));
    run(me);
    if (me.group != nullptr) MUST(orrGroupDestroy(me.group));
    std::fflush(stdout);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::string_view(argv[1]) == "member") return be_member(argv[2], argv[3]);
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (kRank == 0) {
            orrGroupToken token{};
            MUST(orrGroupMakeFolderToken(&token, "/share", 0));
            put(name + "-token", token.text);
        }
        const std::string token = await(name + "-token");
        const pid_t child = ::fork();
        if (child == 0) {
            ::execl("/proc/self/exe", "umd_group_vms", "member", name.c_str(), token.c_str(), nullptr);
            ::_exit(127);
        }
        int status = -1;
        ::waitpid(child, &status, 0);
        const bool killed =
            WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && name.find("killed") != name.npos;
        check(status == 0 || killed, fmt::format("{}: ended with {:#x}", name, status));
        put(fmt::format("{}-done-{}", name, kRank));
        for (int rank = 0; rank < kRanks; ++rank) {
            if (!name.starts_with("vm-") || rank < kRanks / 2)
                (void)await(fmt::format("{}-done-{}", name, rank));
        }
        const bool orderly =
            name.find("killed") == name.npos && !name.starts_with("join-") && !name.starts_with("vm-");
        check(!orderly || !std::filesystem::exists("/share/orrery-group-" + token.substr(10, 32)),
              name + ": the folder in which the group met is left");
    }
    fmt::print("passed\n");
    return 0;
}
