// umd_cable, in two VMs with a card each that are joined: each writes to the other's memory and waits for the
// other's signal while the cable between them is pulled. Both are told, by name, and when it is in again,
// both go on. They tell each other by files in /share what has been done; VM 0 has a hand at the cable
// (cable.sh).
#include <fmt/format.h>
#include <orrery/orrery.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "tests/system/runtime/hand.h"
#include "tests/vm/several/talk.h"

using namespace orrery::vm::test;

namespace {

constexpr std::size_t kBytes = 16 << 20;
constexpr int kMany = 900;  // many seconds of copies, which are lost and cost nothing
constexpr int kRounds = 2;
constexpr std::uint64_t kLongNs = 60'000'000'000;

struct Side {
    int number;
    std::uint32_t node(int vm) const { return vm == 0 ? 1 : 512; }
    std::string name(const char* what, int round, int vm) const {
        return fmt::format("{}-{}-{}", what, round, vm);
    }
    std::string mine(const char* what, int round) const { return name(what, round, number); }
    std::string theirs(const char* what, int round) const { return name(what, round, 1 - number); }
};

void expect(orrError_t got, const std::string& part, const std::string& what) {
    check(got, orrErrorPeerAccess, part.c_str(), what);
}

// The link may just have come up again: until both drivers have greeted nothing is known of the other card.
template <typename Import>
void import_patiently(Import import) {
    orrError_t got = import();
    for (int tries = 0; tries < 3000 && (got == orrErrorPeerAccess || got == orrErrorTimeout); ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        got = import();
    }
    must(got);
}

std::uint8_t last_byte(const void* memory) {
    std::uint8_t value = 0;
    must(orrMemcpy(&value, static_cast<const std::byte*>(memory) + kBytes - 1, 1, orrMemcpyDeviceToHost));
    return value;
}

void turn_cable(const char* what) {
    const std::string answer = orrery::ask_host("cable", what, std::chrono::seconds(60));
    if (answer != "ok\n") fail(fmt::format("{}: {}", what, answer));
}

void play(const Side& side, int round, void* memory, void* source) {
    const std::string full_name = side.mine("full", round);
    orrSemaphore_t full = give_semaphore(full_name), far = nullptr;
    orrFabricHandle handle{};
    must(orrFabricExportMemory(&handle, memory, 0));
    put(side.mine("memory", round), &handle, sizeof handle);
    const orrFabricHandle there_handle = get(side.theirs("memory", round)),
                          far_handle = get(side.theirs("full", round));
    void* there = nullptr;
    std::size_t bytes = 0;
    import_patiently([&] { return orrFabricImportMemory(&there, &bytes, &there_handle, 0); });
    import_patiently([&] { return orrFabricImportSemaphore(&far, &far_handle, 0); });
    orrStream_t writes = nullptr, waits = nullptr;
    must(orrStreamCreate(&writes, 0));
    must(orrStreamCreate(&waits, 0));

    const auto pattern = [&](int vm) { return static_cast<std::uint8_t>(16 * round + vm + 1); };
    must(orrMemsetAsync(source, pattern(side.number), kBytes, writes));
    must(orrMemcpyAsync(there, source, kBytes, orrMemcpyDefault, writes));
    must(orrStreamSignalSemaphore(writes, far, 1));
    must(orrStreamSynchronize(writes));
    check(orrSemaphoreWait(full, 1, kLongNs) == orrSuccess && last_byte(memory) == pattern(1 - side.number),
          fmt::format("round {}: both write to each other", round));

    orrEvent_t begun = nullptr;
    must(orrEventCreate(&begun, 0));
    must(orrStreamWaitSemaphore(waits, full, 2, nullptr));
    for (int copy = 0; copy < kMany; ++copy) {
        must(orrMemcpyAsync(there, source, kBytes, orrMemcpyDefault, writes));
        if (copy == 0) must(orrEventRecord(begun, writes));
    }
    must(orrStreamSignalSemaphore(writes, far, 2));
    must(orrEventSynchronize(begun));
    put(side.mine("works", round));
    if (side.number == 0) {
        await(side.theirs("works", round));
        turn_cable("unplug");
    }
    expect(orrStreamSynchronize(writes),
           fmt::format("card {} of another machine has it: the link from port 0 of device 0, by which it was "
                       "reached, is down",
                       side.node(1 - side.number)),
           "who writes is told by which link, and where to");
    expect(orrStreamSynchronize(waits), fmt::format("semaphore '{}'", full_name),
           "who waits is told for what");
    expect(orrStreamSynchronize(waits), "the link from port 0 of device 0 to it is down",
           "and by which link");
    const orrError_t host = orrSemaphoreWait(full, 2, kLongNs);
    check(host == orrErrorPeerAccess || host == orrErrorAbandoned, "also on the host");
    void* nothing = nullptr;
    expect(orrFabricImportMemory(&nothing, &bytes, &there_handle, 0), "no link",
           "nothing is imported meanwhile");
    must(orrMemset(memory, 0x77, kBytes));
    check(last_byte(memory) == 0x77, "the card itself works on");
    put(side.mine("told", round));
    if (side.number == 0) {
        await(side.theirs("told", round));
        turn_cable("plug");
    }
    must(orrEventDestroy(begun));
    for (orrStream_t stream : {writes, waits})
        must(orrStreamDestroy(stream));
    must(orrFree(there));
    for (orrSemaphore_t semaphore : {full, far})
        must(orrSemaphoreDestroy(semaphore));
    must(orrFabricRevoke(&handle));
}

}  // namespace

int main() {
    const char* const vm = std::getenv("ORR_VM");
    const Side side{vm != nullptr && *vm == '1' ? 1 : 0};
    void *memory = nullptr, *source = nullptr;
    must(orrIpcMalloc(&memory, kBytes, 0));
    must(orrMalloc(&source, kBytes));
    // The last round goes no further than that all is well again.
    for (int round = 0; round < kRounds; ++round)
        play(side, round, memory, source);
    say(fmt::format("side {}: passed", side.number));
    return 0;
}
