// What the other process does.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tests/vm/ipc/peer.h"

namespace orrery::umd::vm {
namespace {

#define TRY(call)                                                                 \
    do {                                                                          \
        if ((call) != orrSuccess) {                                               \
            std::fprintf(stderr, "peer: %s: %s\n", #call, orrGetLastErrorText()); \
            return 1;                                                             \
        }                                                                         \
    } while (false)

// Tells how it reaches the memory, then what each byte of it is: 256 if they differ. 1 000: it is to end.
int use_memory() {
    orrIpcMemory memory = ORR_INIT(orrIpcMemory);
    Said said = hear(kPeerSocket);
    TRY(orrIpcImportMemory(&memory, said.fds.at(0), 0));
    ::close(said.fds[0]);
    say(kPeerSocket, memory.reach);
    std::vector<std::uint8_t> bytes(memory.bytes);
    while (true) {
        said = hear(kPeerSocket);
        if (said.number == 1000) break;
        // Reads it, or writes the number.
        if (said.number > 0) TRY(orrMemset(memory.ptr, static_cast<int>(said.number), memory.bytes));
        TRY(orrMemcpy(bytes.data(), memory.ptr, bytes.size(), orrMemcpyDefault));
        const bool alike = std::ranges::all_of(bytes, [&](std::uint8_t byte) { return byte == bytes[0]; });
        say(kPeerSocket, alike ? bytes[0] : 256);
    }
    TRY(memory.device < 0 ? orrFreeHost(memory.ptr) : orrFree(memory.ptr));
    say(kPeerSocket, 0);
    return 0;
}

// Exports a semaphore. A stream is declared to signal it, and has signalled 1; or has to signal 2 when it
// comes to that, which is never.
int signal(bool declared_only) {
    orrSemaphore_t semaphore = nullptr, never = nullptr;
    orrStream_t stream = nullptr;
    int fd = -1;
    TRY(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    TRY(orrSemaphoreCreate(&never, 0));
    TRY(orrStreamCreate(&stream, 0));
    if (declared_only)
        TRY(orrSemaphoreAddSignaller(semaphore, stream));
    else
        TRY(orrStreamWaitSemaphore(stream, never, 1, nullptr));
    TRY(orrStreamSignalSemaphore(stream, semaphore, declared_only ? 1 : 2));
    TRY(orrIpcExportSemaphore(&fd, semaphore, 0));
    say(kPeerSocket, 0, {fd});
    (void)hear(kPeerSocket);
    return 0;
}

// Copies ones to imported memory and signals behind them, by its own stream of its own device; told 0, behind
// what never comes.
int copy_and_signal(int device) {
    const Said said = hear(kPeerSocket);
    orrIpcMemory memory = ORR_INIT(orrIpcMemory);
    orrSemaphore_t semaphore = nullptr, never = nullptr;
    orrStream_t stream = nullptr;
    void* source = nullptr;
    TRY(orrIpcImportMemory(&memory, said.fds.at(0), 0));
    TRY(orrIpcImportSemaphore(&semaphore, said.fds.at(1), 0));
    TRY(orrSetDevice(device));
    if (memory.device != device) TRY(orrDeviceEnablePeerAccess(memory.device, 0));
    TRY(orrMalloc(&source, memory.bytes));
    TRY(orrSemaphoreCreate(&never, 0));
    TRY(orrStreamCreate(&stream, 0));
    TRY(orrSemaphoreAddSignaller(semaphore, stream));
    TRY(orrMemsetAsync(source, 1, memory.bytes, stream));
    if (said.number == 0) TRY(orrStreamWaitSemaphore(stream, never, 1, nullptr));
    TRY(orrMemcpyAsync(memory.ptr, source, memory.bytes, orrMemcpyDeviceToDevice, stream));
    TRY(orrStreamSignalSemaphore(stream, semaphore, 1));
    say(kPeerSocket, memory.reach);
    (void)hear(kPeerSocket);
    return 0;
}

// Waits for an event in a stream of its device and tells what came of it.
int wait_for_event() {
    const Said said = hear(kPeerSocket);
    orrEvent_t event = nullptr;
    orrStream_t stream = nullptr;
    TRY(orrIpcImportEvent(&event, said.fds.at(0), 0));
    TRY(orrStreamCreate(&stream, 0));
    TRY(orrStreamWaitEvent(stream, event, nullptr));
    say(kPeerSocket, orrStreamQuery(stream));
    (void)hear(kPeerSocket);
    say(kPeerSocket, orrStreamSynchronize(stream));
    say(kPeerSocket, orrEventSynchronize(event));
    return 0;
}

// Has a semaphore of its device, waits for it in a stream, and tells what came of that; then the same of
// another stream, and memory of its own.
int wait_for_semaphore() {
    orrSemaphore_t semaphore = nullptr;
    orrStream_t stream = nullptr, next = nullptr;
    void* memory = nullptr;
    int fd = -1;
    TRY(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    TRY(orrIpcExportSemaphore(&fd, semaphore, 0));
    TRY(orrStreamCreate(&stream, 0));
    TRY(orrStreamCreate(&next, 0));
    TRY(orrMalloc(&memory, 4096));
    say(kPeerSocket, 0, {fd});
    (void)hear(kPeerSocket);
    TRY(orrStreamWaitSemaphore(stream, semaphore, 1, nullptr));
    say(kPeerSocket, orrStreamQuery(stream));
    say(kPeerSocket, orrStreamSynchronize(stream));
    (void)hear(kPeerSocket);
    TRY(orrMemsetAsync(memory, 1, 4096, next));
    say(kPeerSocket, orrStreamSynchronize(next));
    (void)hear(kPeerSocket);
    return 0;
}

// Has an event that is recorded behind what never comes.
int record_event() {
    orrEvent_t event = nullptr;
    orrSemaphore_t never = nullptr;
    orrStream_t stream = nullptr;
    int fd = -1;
    TRY(orrEventCreate(&event, orrEventInterprocess | orrEventDisableTiming));
    TRY(orrSemaphoreCreate(&never, 0));
    TRY(orrStreamCreate(&stream, 0));
    TRY(orrStreamWaitSemaphore(stream, never, 1, nullptr));
    TRY(orrEventRecord(event, stream));
    TRY(orrIpcExportEvent(&fd, event, 0));
    say(kPeerSocket, 0, {fd});
    (void)hear(kPeerSocket);
    return 0;
}

// Has work on each card behind the event of the card before, and that of the first behind an imported
// semaphore; the last signals another. Says so when all is queued, and does nothing more.
int queue_over_cards() {
    const Said said = hear(kPeerSocket);
    orrSemaphore_t gate = nullptr, done = nullptr;
    TRY(orrIpcImportSemaphore(&gate, said.fds.at(0), 0));
    TRY(orrIpcImportSemaphore(&done, said.fds.at(1), 0));
    int count = 0;
    TRY(orrGetDeviceCount(&count));
    orrEvent_t before = nullptr;
    for (int device = 0; device < count; ++device) {
        orrStream_t stream = nullptr;
        orrEvent_t event = nullptr;
        void* memory = nullptr;
        TRY(orrSetDevice(device));
        TRY(orrStreamCreate(&stream, 0));
        TRY(orrEventCreate(&event, orrEventDisableTiming));
        TRY(orrMalloc(&memory, 1 << 20));
        if (device == 0)
            TRY(orrStreamWaitSemaphore(stream, gate, 1, nullptr));
        else
            TRY(orrStreamWaitEvent(stream, before, nullptr));
        TRY(orrMemsetAsync(memory, device, 1 << 20, stream));
        if (device + 1 < count) {
            TRY(orrEventRecord(event, stream));
        } else {
            TRY(orrSemaphoreAddSignaller(done, stream));
            TRY(orrStreamSignalSemaphore(stream, done, 1));
        }
        before = event;
    }
    say(kPeerSocket, 0);
    (void)hear(kPeerSocket);
    return 0;
}

// Waits for a semaphore of its own, which it exports, and does as it is told (CycleDo) with that of the
// other.
int be_in_cycle() {
    const Said said = hear(kPeerSocket);
    orrSemaphore_t theirs = nullptr, ours = nullptr, never = nullptr;
    orrStream_t stream = nullptr, helper = nullptr;
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.name = "theirs";
    int fd = -1;
    TRY(orrDeviceEnablePeerAccess(0, 0));
    TRY(orrIpcImportSemaphore(&theirs, said.fds.at(0), 0));
    TRY(orrStreamCreateWithAttributes(&stream, &attributes));
    TRY(orrStreamCreate(&helper, 0));
    TRY(orrSemaphoreCreate(&never, 0));
    TRY(orrSemaphoreCreate(&ours, orrSemaphoreInterprocess));
    TRY(orrStreamWaitSemaphore(stream, ours, 1, nullptr));
    TRY(orrIpcExportSemaphore(&fd, ours, 0));
    say(kPeerSocket, 0, {fd});
    while (true) {
        orrError_t result = orrSuccess;
        switch (hear(kPeerSocket).number) {
            case kCycleHelp:
                TRY(orrStreamWaitSemaphore(helper, never, 1, nullptr));
                result = orrStreamSignalSemaphore(helper, theirs, 1);
                break;
            case kCycleClose:
                result = orrStreamSignalSemaphore(stream, theirs, 1);
                break;
            case kCycleFree:
                TRY(orrSemaphoreSignal(never, 1));
                result = orrStreamSynchronize(helper);
                break;
            default:
                result = orrStreamSynchronize(stream);
        }
        say(kPeerSocket, result);
    }
}

}  // namespace

int run_role(const std::string& role, int device) {
    TRY(orrSetDevice(device));
    if (role == "memory") return use_memory();
    if (role == "declared") return signal(true);
    if (role == "pending") return signal(false);
    if (role == "copy") return copy_and_signal(device);
    if (role == "event") return wait_for_event();
    if (role == "wait") return wait_for_semaphore();
    if (role == "record") return record_event();
    if (role == "cards") return queue_over_cards();
    if (role == "cycle") return be_in_cycle();
    if (role == "member") return be_member();
    std::fprintf(stderr, "no role '%s'\n", role.c_str());
    return 2;
}

}  // namespace orrery::umd::vm
