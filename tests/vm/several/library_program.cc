// umd_fabric, in two VMs with a card each that are joined: what the library of VM 0 has made a handle of,
// that of VM 1 writes to and signals. They tell each other by files in /share what has been done. VM 1 ends
// in the middle of it, without a word.
#include <fmt/format.h>
#include <orrery/orrery.h>
#include <sys/wait.h>
#include <unistd.h>
#include <orrery/embedded_kernel.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/vm/several/talk.h"
#include "tests/vm/umd/kernels.h"

ORR_EMBEDDED_KERNEL(umd_test_kernels);

using namespace orrery::vm::test;

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr std::size_t kMany = 60;
constexpr std::uint64_t kWords = 512;  // that a kernel writes
constexpr std::uint64_t kLongNs = 60'000'000'000;

struct Mine {
    explicit Mine(std::size_t bytes = kBytes) {
        must(orrIpcMalloc(&memory, bytes, 0));
        must(orrMemset(memory, 0, bytes));
        must(orrStreamCreate(&stream, 0));
    }
    std::uint8_t byte(std::size_t at) const {
        std::uint8_t value = 0;
        must(orrMemcpy(&value, static_cast<std::byte*>(memory) + at, 1, orrMemcpyDeviceToHost));
        return value;
    }
    void* memory = nullptr;
    orrStream_t stream = nullptr;
};

orrFabricHandle handle_of(void* memory) {
    orrFabricHandle handle{};
    must(orrFabricExportMemory(&handle, memory, 0));
    return handle;
}

void* take_memory(const orrFabricHandle& handle) {
    void* there = nullptr;
    std::size_t bytes = 0;
    must(orrFabricImportMemory(&there, &bytes, &handle, 0));
    if (bytes != kBytes) fail("imported memory of another size");
    return there;
}

orrError_t import_error(const orrFabricHandle& handle) {
    void* there = nullptr;
    std::size_t bytes = 0;
    return orrFabricImportMemory(&there, &bytes, &handle, 0);
}

// A stream of its own that waits for the semaphore: its end.
orrError_t end_of_wait(orrSemaphore_t semaphore, std::uint64_t value) {
    orrStream_t stream = nullptr;
    must(orrStreamCreate(&stream, 0));
    must(orrStreamWaitSemaphore(stream, semaphore, value, nullptr));
    return orrStreamSynchronize(stream);
}

// A kernel of the tests on all of `words` words of `here`, to or from `there`, in a stream of its own: its
// end.
orrError_t end_of_kernel(const char* name, void* here, void* there, std::uint64_t words) {
    const auto image = umd_test_kernels_image();
    orrModule_t module = nullptr;
    orrFunction_t function = nullptr;
    orrStream_t stream = nullptr;
    must(orrModuleLoadData(&module, image.data(), image.size()));
    must(orrModuleGetFunction(&function, module, name));
    must(orrStreamCreate(&stream, 0));
    const TestArgs args{static_cast<std::uint64_t*>(here), words, reinterpret_cast<std::uintptr_t>(there)};
    must(orrLaunchKernel(function, {8, 1, 1}, {1, 1, 1}, &args, sizeof args, 0, stream));
    return orrStreamSynchronize(stream);
}

int own() {
    Mine mine;
    const orrFabricHandle handle = handle_of(mine.memory);
    check(import_error(handle), orrErrorInvalidValue, "is of this machine", "an own handle is refused");
    orrSemaphore_t full = give_semaphore("full");
    put("memory", &handle, sizeof handle);
    // Queued before the other has begun.
    void* pinned = nullptr;
    must(orrMallocHost(&pinned, kBytes, 0));
    must(orrStreamWaitSemaphore(mine.stream, full, 3, nullptr));
    must(orrMemcpyAsync(pinned, mine.memory, kBytes, orrMemcpyDefault, mine.stream));
    must(orrStreamSynchronize(mine.stream));
    const auto* const bytes = static_cast<const std::uint8_t*>(pinned);
    check(bytes[0] == 0x21 && bytes[kBytes - 2] == 0x21 && bytes[kBytes - 1] == 0x22,
          "the signal came behind all that was written");
    check(bytes[kBytes / 2] == 0x22 && bytes[kBytes / 2 + 8 * kWords - 1] == 0x21 &&
              bytes[kBytes / 2 + 8 * kWords] == 0x21,
          "also by a kernel");
    check(orrSemaphoreWait(full, 4, kLongNs) == orrSuccess, "the other's host signalled, too");

    must(orrFabricRevoke(&handle));
    check(orrFabricRevoke(&handle), orrErrorInvalidHandle, "no such handle", "a handle is taken back once");
    put("revoked");
    await("denied");
    check(mine.byte(0) == 0x21, "nothing was written after that");

    put("let-go");
    check(end_of_wait(full, 5), orrErrorAbandoned, "'full'", "who lets go ends the waits");
    check(orrSemaphoreWait(full, 5, kLongNs) == orrErrorAbandoned, "also of the host");
    check(orrSemaphoreWait(full, 4, 0) == orrSuccess, "its value stays");

    orrSemaphore_t killed = give_semaphore("killed");
    check(end_of_wait(killed, 1), orrErrorAborted, "'killed'", "who is killed fails what he was to signal");

    std::vector<orrSemaphore_t> many;
    std::vector<orrFabricHandle> handles(kMany);
    for (orrFabricHandle& each : handles) {
        many.emplace_back();
        must(orrSemaphoreCreate(&many.back(), orrSemaphoreInterprocess));
        must(orrFabricExportSemaphore(&each, many.back(), 0));
    }
    put("many", handles.data(), sizeof(orrFabricHandle) * kMany);
    await("many-ended");
    for (orrSemaphore_t each : many)
        if (orrSemaphoreWait(each, 1, kLongNs) != orrErrorAbandoned) fail("somebody who ended is not missed");
    say("who ends is missed in all that he had");
    for (orrSemaphore_t each : many)
        must(orrSemaphoreDestroy(each));

    // What lives when the other machine ends, on both sides.
    Mine again;
    const orrFabricHandle last = handle_of(again.memory);
    orrSemaphore_t never = give_semaphore("never");
    // Waits before the other can know of it, which ends soon after the signal below.
    orrStream_t waits = nullptr;
    must(orrStreamCreate(&waits, 0));
    must(orrStreamWaitSemaphore(waits, never, 1, nullptr));
    put("last", &last, sizeof last);
    void* there = take_memory(get("theirs"));
    orrSemaphore_t their_semaphore = take_semaphore("their-semaphore");
    must(orrMemsetAsync(there, 1, kBytes, again.stream));
    must(orrStreamSignalSemaphore(again.stream, their_semaphore, 1));
    must(orrStreamSynchronize(again.stream));
    check(orrStreamSynchronize(waits), orrErrorPeerAccess, "'never'", "a machine that ends ends the waits");
    check(orrSemaphoreWait(never, 1, kLongNs) == orrErrorAbandoned, "also of the host");
    must(orrMemsetAsync(there, 2, kBytes, again.stream));
    check(orrStreamSynchronize(again.stream), orrErrorPeerAccess, "another machine",
          "who writes there is told");
    orrStream_t other = nullptr;
    must(orrStreamCreate(&other, 0));
    must(orrStreamSignalSemaphore(other, their_semaphore, 2));
    check(orrStreamSynchronize(other) == orrErrorPeerAccess, "who signals there is told");
    check(import_error(get("theirs")), orrErrorPeerAccess, "no link", "nothing is imported from there");
    must(orrFree(there));
    must(orrSemaphoreDestroy(their_semaphore));
    for (orrSemaphore_t semaphore : {full, killed, never})
        must(orrSemaphoreDestroy(semaphore));
    must(orrFree(mine.memory));
    must(orrMemset(again.memory, 9, kBytes));
    check(again.byte(kBytes - 1) == 9, "the card works on");
    must(orrFree(again.memory));
    say("owner: passed");
    return 0;
}

pid_t start(const char* part) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::execl("/proc/self/exe", "umd_fabric", part, nullptr);
        ::_exit(127);
    }
    return child;
}

int end_of(pid_t child) {
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
}

// More than cards keep notes of drivers.
int have_many() {
    await("many");
    std::vector<orrFabricHandle> handles(kMany);
    std::ifstream("/share/many", std::ios::binary)
        .read(reinterpret_cast<char*>(handles.data()), sizeof(orrFabricHandle) * kMany);
    for (const orrFabricHandle& handle : handles) {
        orrSemaphore_t semaphore = nullptr;
        must(orrFabricImportSemaphore(&semaphore, &handle, 0));
    }
    ::_exit(0);
}

// A process that is killed while its stream has a signal to carry out.
void be_killed() {
    const pid_t child = start("killed");
    await("about-to-be-killed");
    ::kill(child, SIGKILL);
    check(WIFSIGNALED(end_of(child)), "a process was killed");
}

int killed() {
    orrSemaphore_t there = take_semaphore("killed"), gate = nullptr;
    Mine mine;
    must(orrSemaphoreCreate(&gate, 0));
    must(orrStreamWaitSemaphore(mine.stream, gate, 1, nullptr));
    must(orrStreamSignalSemaphore(mine.stream, there, 1));
    put("about-to-be-killed");
    std::this_thread::sleep_for(std::chrono::seconds(60));
    return 1;
}

int write_there() {
    Mine mine;
    const orrFabricHandle handle = get("memory");
    orrFabricHandle wrong = handle;
    wrong.opaque[4] ^= 1;
    check(import_error(wrong), orrErrorInvalidHandle, "does not know the handle",
          "a wrong secret is refused");
    wrong = handle;
    wrong.opaque[1] += 100;
    check(import_error(wrong), orrErrorInvalidHandle, "does not know", "so is a wrong number");
    wrong = handle;
    wrong.opaque[3] += 5;
    check(import_error(wrong), orrErrorPeerAccess, "no link", "no link leads to card 6");
    void* there = take_memory(handle);
    orrSemaphore_t full = take_semaphore("full");
    must(orrMemsetAsync(mine.memory, 0x21, kBytes, mine.stream));
    must(orrMemcpyAsync(there, mine.memory, kBytes, orrMemcpyDefault, mine.stream));
    must(orrMemsetAsync(static_cast<std::byte*>(there) + kBytes - 1, 0x22, 1, mine.stream));
    must(orrStreamSynchronize(mine.stream));
    must(end_of_kernel("write_there", mine.memory, static_cast<std::byte*>(there) + kBytes / 2, kWords));
    check(end_of_kernel("sum_there", mine.memory, there, 1), orrErrorIllegalAddress, "written only",
          "a kernel does not read there");
    must(orrStreamSignalSemaphore(mine.stream, full, 3));
    must(orrStreamSynchronize(mine.stream));
    must(orrSemaphoreSignal(full, 4));
    check(orrMemcpy(mine.memory, there, kBytes, orrMemcpyDefault), orrErrorInvalidValue, "written only",
          "nobody reads there");
    std::uint64_t value = 0;
    check(orrSemaphoreGetValue(&value, full), orrErrorNotSupported, "only there", "nor asks for a value");

    await("revoked");
    must(orrMemsetAsync(mine.memory, 0x55, kBytes, mine.stream));
    must(orrMemcpyAsync(there, mine.memory, kBytes, orrMemcpyDefault, mine.stream));
    check(orrStreamSynchronize(mine.stream), orrErrorPeerAccess, "another machine",
          "who writes after that is told");
    check(end_of_kernel("write_there", mine.memory, there, 1), orrErrorPeerAccess, "another machine",
          "also by a kernel");
    must(orrFree(there));
    check(import_error(handle), orrErrorInvalidHandle, "revoked", "what was taken back is not given again");
    put("denied");
    await("let-go");
    must(orrSemaphoreDestroy(full));
    be_killed();
    check(end_of(start("many")) == 0, "a process had many semaphores, and ended");
    put("many-ended");

    Mine theirs;
    const orrFabricHandle own_handle = handle_of(theirs.memory);
    put("theirs", &own_handle, sizeof own_handle);
    orrSemaphore_t semaphore = give_semaphore("their-semaphore");
    void* last = take_memory(get("last"));
    orrSemaphore_t never = take_semaphore("never");
    check(orrSemaphoreWait(semaphore, 1, kLongNs) == orrSuccess && theirs.byte(kBytes - 1) == 1,
          "this one's memory is written to, too");
    (void)last;
    (void)never;
    say("writer: about to end");
    std::this_thread::sleep_for(std::chrono::seconds(1));  // for what was said to get out
    // Without a word to anybody.
    std::ofstream("/proc/sysrq-trigger") << "b" << std::flush;
    std::this_thread::sleep_for(std::chrono::seconds(30));
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) return std::string_view(argv[1]) == "many" ? have_many() : killed();
    const char* const vm = std::getenv("ORR_VM");
    return vm != nullptr && *vm == '1' ? write_there() : own();
}
