// kmod_fabric, in two VMs with a card each that are joined: VM 0 makes a handle for memory of its card, VM 1
// writes there. They tell each other by files in /share what has been done. VM 1 ends in the middle of it.
// kmod_fabric losses: fault plans lose messages of VM 1's, and nothing is carried out behind one that is
// lost.
// kmod_fabric forged: VM 1's card sends another key than it was given, by its fault plan.
// kmod_fabric stale: it sends the first key that it was given for ever.
// kmod_fabric stuck CARD: with two cards each, at one switch. VM 0's card of that index writes to VM 1's
// second, which a debugger holds; what the first ones share ends or stays as if nothing were. If it is the
// first one that writes, what it says to the other is behind that, until that is lost.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

#include "tests/vm/kmod/pci.h"
#include "tests/vm/kmod/place.h"

namespace {

using namespace orrery::kmod_test;

constexpr std::uint64_t kThere = 0x50000000;
constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::uint64_t kFillRingVa = 0x58000000;

[[noreturn]] void fail(const std::string& what) {
    fmt::print(stderr, "kmod_fabric: {}\n", what);
    std::exit(1);
}

void check(bool good, const std::string& what) {
    if (!good) fail(what);
    fmt::print("{}\n", what);
    std::fflush(stdout);
}

std::string link_file(const char* name) {
    std::string first;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/drivers/orrery"))
        if (entry.path().filename().string().starts_with("0000:")) first = entry.path();
    std::ifstream file(first + "/links/0/" + name);
    std::string word;
    file >> word;
    return word;
}

void put(const std::string& name, const std::string& text) {
    std::ofstream("/share/" + name + ".new", std::ios::binary) << text;
    std::filesystem::rename("/share/" + name + ".new", "/share/" + name);
}

std::string get(const std::string& name) {
    for (int tries = 0; tries < 3000; ++tries) {
        if (std::ifstream file("/share/" + name, std::ios::binary); file)
            return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    fmt::print(stderr, "the other did not come to '{}' in a minute\n", name);
    std::exit(1);
}

drm_orr_fabric_export make_handle(const Place& place, std::uint32_t flags = 0) {
    drm_orr_fabric_export handle{};
    handle.handle = place.memory.handle;
    handle.flags = flags;
    check(call(place.fd(), DRM_IOCTL_ORR_FABRIC_EXPORT, &handle) == 0, "a handle was made");
    return handle;
}

int revoke(const Place& place, const drm_orr_fabric_export& handle) {
    drm_orr_fabric_revoke args{.object = handle.object, .pad = 0};
    return call(place.fd(), DRM_IOCTL_ORR_FABRIC_REVOKE, &args);
}

void give(const std::string& name, const drm_orr_fabric_export& handle) {
    put(name, std::string(reinterpret_cast<const char*>(&handle), sizeof handle));
}

bool abandoned(const drm_orr_queue_wait& out) {
    return out.error == ORR_QERR_POISON && ORR_FAILURE_CODE(out.error_detail) == ORR_QERR_ABANDONED;
}

// A semaphore with two handles, and one that nobody imports.
void own_semaphores() {
    Place place(0), late(0);
    place.make_memory();
    late.make_memory();
    give("first", make_handle(place, ORR_FABRIC_SEMAPHORE));
    give("second", make_handle(place, ORR_FABRIC_SEMAPHORE));
    place.queue->submit(wait_for(kVa, 1));
    check(place.outcome().error == 0, "who imported it and never bound it is not missed");
    place.queue->submit(wait_for(kVa, 2));
    check(place.outcome().error == 0, "one of two handles let go of ends no wait");
    place.queue->submit(wait_for(kVa, 3));
    check(abandoned(place.outcome()), "the other does");
    put("closed", "");
    const drm_orr_fabric_export handle = make_handle(late, ORR_FABRIC_SEMAPHORE);
    late.queue->submit(wait_for(kVa, 1));
    check(revoke(late, handle) == 0 && abandoned(late.outcome()),
          "a handle taken back ends waits before anybody has imported it");
    get("not-lent");
}

// Two handles of the same memory, of which one is taken back, and then other memory in its place.
void own_two_handles() {
    {
        Place place(0);
        place.make_memory(kBytes);
        const drm_orr_fabric_export one = make_handle(place), two = make_handle(place);
        give("one", one);
        give("two", two);
        get("both");
        check(revoke(place, one) == 0, "one handle of two was taken back");
        put("one-revoked", "");
        get("one-denied");
        check(comes_true([&] { return place.memory.words()[1] == 4; }), "the other is good");
        check(revoke(place, two) == 0, "it was taken back, too");
    }
    Place place(0);
    place.make_memory(kBytes);
    give("three", make_handle(place));
    check(comes_true([&] { return place.memory.words()[1] == 5; }), "new memory is written to");
    get("two-denied");
    check(place.memory.words()[1] == 5, "by nobody who had the old");
}

int own() {
    Place place(0);
    place.make_memory(kBytes);
    drm_orr_fabric_export wrong{};
    wrong.handle = 12345;
    check(call(place.fd(), DRM_IOCTL_ORR_FABRIC_EXPORT, &wrong) == ENOENT, "no handle of nothing");
    wrong.handle = place.memory.handle;
    wrong.flags = 2;
    check(call(place.fd(), DRM_IOCTL_ORR_FABRIC_EXPORT, &wrong) == EINVAL, "nor with unknown flags");
    const drm_orr_fabric_export handle = make_handle(place);
    check(handle.size == kBytes && handle.node == 1, "it says what it is");
    check(revoke(Place(0), handle) == ENOENT, "another file's handle is nobody's");
    place.queue->submit(wait_for(kVa, 7));
    put("handle", std::string(reinterpret_cast<const char*>(&handle), sizeof handle));
    check(place.outcome().error == 0, "the other machine's signal came");
    check(place.memory.words()[kBytes / 8 - 1] == 0x1234567, "and all that it had written before");
    // An import asks again when the answer takes long.
    check(std::atoi(link_file("forged").c_str()) >= 2, "forged handles are counted");
    check(link_file("bad_keys") == "0", "and what came carried its key");
    check(link_file("foreign_node") == "512", "the other's number is known");
    check(revoke(place, handle) == 0, "the handle was taken back");
    put("revoked", "");
    get("denied");
    check(place.memory.words()[kBytes / 8 - 1] == 0x1234567, "nothing was written after that");
    own_semaphores();
    own_two_handles();
    const drm_orr_fabric_export again = make_handle(place);
    put("again", std::string(reinterpret_cast<const char*>(&again), sizeof again));
    check(comes_true([] { return link_file("foreign_node") == "0"; }), "the other machine is gone");
    check(revoke(place, again) == 0, "and its mapping with it");
    check(place.queue->run(std::vector{fill(kVa, kBytes, 9)}) == 0 && place.memory.words()[1] == 9,
          "the card works on");
    fmt::print("owner: passed\n");
    return 0;
}

drm_orr_fabric_import to_import(const std::string& bytes) {
    drm_orr_fabric_export handle{};
    if (bytes.size() != sizeof handle) fail("half a handle");
    bytes.copy(reinterpret_cast<char*>(&handle), sizeof handle);
    drm_orr_fabric_import import{};
    import.object = handle.object;
    import.size = handle.size;
    import.node = handle.node;
    std::memcpy(import.secret, handle.secret, sizeof import.secret);
    return import;
}

int import_of(const Place& place, drm_orr_fabric_import import, std::uint32_t* handle = nullptr) {
    const int error = call(place.fd(), DRM_IOCTL_ORR_FABRIC_IMPORT, &import);
    if (handle != nullptr) *handle = import.handle;
    return error;
}

void take(const Place& place, const drm_orr_fabric_import& import, std::uint32_t& handle) {
    check(import_of(place, import, &handle) == 0 &&
              map(place.fd(), place.vm, handle, kThere, import.size, ORR_BIND_WRITE) == 0,
          "imported and bound");
}

void let_go(const Place& place, const drm_orr_fabric_import& import, std::uint32_t handle) {
    check(unmap(place.fd(), place.vm, kThere, import.size) == 0 && close_bo(place.fd(), handle) == 0,
          "let go of");
}

void signal_there() {
    const drm_orr_fabric_import first = to_import(get("first")), second = to_import(get("second"));
    std::uint32_t handle = 0, other_handle = 0;
    {
        Place place(0);
        int error = 0, imports = 0;
        while (imports < 1000 && (error = import_of(place, first)) == 0)
            ++imports;
        check(error == EDQUOT && imports == 64, "a handle can be imported 64 times");
    }
    Place one(0), other(0);
    check(comes_true([&] { return import_of(one, first, &handle) == 0 && close_bo(one.fd(), handle) == 0; }),
          "and again once those are gone");
    take(one, first, handle);
    take(other, second, other_handle);
    check(one.queue->run(std::vector{signal(kThere, 1)}) == 0, "signalled by the first");
    let_go(one, first, handle);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // for the owner to be told
    check(other.queue->run(std::vector{signal(kThere, 2)}) == 0, "signalled by the second");
    let_go(other, second, other_handle);
    get("closed");
    check(import_of(one, first) == EOWNERDEAD, "a closed semaphore is not lent again");
    put("not-lent", "");
}

std::uint32_t write_value(const Place& place, std::uint64_t value) {
    drm_orr_queue_wait out{};
    std::ignore = place.queue->run(std::vector{fill(kVa, kBytes, value), copy(kVa, kThere, kBytes)}, out);
    return out.error;
}

void write_with_two_handles() {
    Place one(0), two(0), three(0);
    std::uint32_t handle = 0;
    for (Place* place : {&one, &two, &three})
        place->make_memory(kBytes);
    take(one, to_import(get("one")), handle);
    take(two, to_import(get("two")), handle);
    check(write_value(one, 2) == 0 && write_value(two, 3) == 0, "both handles are good");
    put("both", "");
    get("one-revoked");
    check(write_value(one, 9) != 0, "the one taken back is not");
    check(write_value(two, 4) == 0, "the other still is");
    put("one-denied", "");
    take(three, to_import(get("three")), handle);
    check(write_value(three, 5) == 0, "so is that of new memory");
    check(write_value(two, 9) != 0, "by the old one nothing is written there");
    put("two-denied", "");
}

int write_there() {
    Place place(0);
    place.make_memory(kBytes);
    const drm_orr_fabric_import import = to_import(get("handle"));
    drm_orr_fabric_import wrong = import;
    wrong.secret[15] ^= 1;
    check(import_of(place, wrong) == EACCES, "a wrong secret is refused");
    wrong = import;
    wrong.object += 1;
    check(import_of(place, wrong) == EACCES, "so is a wrong number");
    wrong = import;
    wrong.node = 77;
    check(import_of(place, wrong) == EXDEV, "no link leads to card 77");
    wrong.node = 5000;
    check(import_of(place, wrong) == EINVAL, "there can be no card 5000");
    wrong.node = 512;
    check(import_of(place, wrong) == EINVAL, "card 512 is this machine's own");
    std::uint32_t handle = 0;
    check(import_of(place, import, &handle) == 0, "the handle is good");
    check(map(place.fd(), place.vm, handle, kThere, kBytes, ORR_BIND_WRITE) == 0, "and can be bound");
    check(place.queue->run(std::vector{fill(kVa, kBytes, 0x1234567), copy(kVa + 16, kThere + 16, kBytes - 16),
                                       signal(kThere, 7)}) == 0,
          "written and signalled");
    get("revoked");
    drm_orr_queue_wait out{};
    std::ignore = place.queue->run(std::vector{fill(kVa, kBytes, 5), copy(kVa, kThere, kBytes)}, out);
    check(out.error != 0, fmt::format("a write after that fails ({})", out.error));
    check(comes_true([&] {
              return map(place.fd(), place.vm, handle, kThere + kBytes, 4096, ORR_BIND_WRITE) == ENOTCONN;
          }),
          "what was taken back can be bound no more");
    put("denied", "");
    signal_there();
    write_with_two_handles();
    Place other(0);
    check(import_of(other, to_import(get("again")), &handle) == 0, "a new handle is good");
    check(map(other.fd(), other.vm, handle, kThere, kBytes, ORR_BIND_WRITE) == 0, "and can be bound, too");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // for what was said to get out
    // Without a word to anybody.
    std::ofstream("/proc/sysrq-trigger") << "b" << std::flush;
    std::this_thread::sleep_for(std::chrono::seconds(30));
    return 1;
}

// In each but the last round a message is lost: it, and all that follows, has no effect.
constexpr int kRounds = 3;
constexpr std::uint64_t kSteps = 2000, kData = 4096;

int own_with_losses() {
    for (int round = 0; round < kRounds; ++round) {
        Place place(0);
        place.make_memory(2 * kData);
        give(fmt::format("round-{}", round), make_handle(place, ORR_FABRIC_SEMAPHORE));
        if (round + 1 < kRounds) place.queue->submit(wait_for(kVa, kSteps));
        const std::uint64_t steps = std::stoull(get(fmt::format("failed-{}", round)));
        const auto signalled = [&] { return place.memory.words()[0]; };
        if (round + 1 == kRounds) {
            check(comes_true([&] { return signalled() == steps; }), "after that all comes");
            continue;
        }
        // Its importers are gone with the session.
        const drm_orr_queue_wait out = place.outcome();
        check(
            out.error == ORR_QERR_POISON && ORR_FAILURE_CODE(out.error_detail) == ORR_QERR_PEER_LOST,
            fmt::format("who waits is told that something was lost ({}, {:x})", out.error, out.error_detail));
        const std::uint64_t written = place.memory.words()[kData / 8];
        check(steps < kSteps && signalled() > 0 && signalled() < steps,
              fmt::format("lost at {} of {} steps", signalled() + 1, steps));
        check(written == signalled() || written == signalled() + 1,
              fmt::format("nothing was carried out behind it: {} was written", written));
    }
    fmt::print("owner: passed\n");
    return 0;
}

int write_with_losses() {
    for (int round = 0; round < kRounds; ++round) {
        const bool last = round + 1 == kRounds;
        Place place(0);
        place.make_memory(kData);
        std::uint32_t handle = 0;
        take(place, to_import(get(fmt::format("round-{}", round))), handle);
        std::uint64_t step = 0;
        drm_orr_queue_wait out{};
        while (out.error == 0 && step < (last ? 50 : kSteps)) {
            ++step;
            std::ignore = place.queue->run(
                std::vector{fill(kVa, kData, step), copy(kVa, kThere + kData, kData), signal(kThere, step)},
                out);
        }
        check((out.error == 0) == last,
              fmt::format("round {} ends at step {} with {}", round, step, out.error));
        put(fmt::format("failed-{}", round), std::to_string(step));
        if (last)
            std::this_thread::sleep_for(std::chrono::seconds(1));  // it has not let go before all has come
    }
    return 0;
}

// What VM 1's card sends carries none of the keys that its driver was told with the handle.
int own_beside_forger() {
    Place place(0);
    place.make_memory(kBytes);
    check(place.queue->run(std::vector{fill(kVa, kBytes, 7)}) == 0, "memory of this card");
    const drm_orr_fabric_export handle = make_handle(place, ORR_FABRIC_SEMAPHORE);
    give("handle", handle);
    get("sent");
    check(comes_true([] { return std::atoi(link_file("bad_keys").c_str()) >= 5; }), "wrong keys are counted");
    check(link_file("denied") == link_file("bad_keys"), "and nothing else was refused");
    check(link_file("forged") == "0", "the handle was the right one");
    for (std::uint64_t word = 0; word < kBytes / 8; ++word)
        if (place.memory.words()[word] != 7) fail(fmt::format("word {} was written", word));
    check(revoke(place, handle) == 0, "the handle was taken back");
    put("looked", "");
    fmt::print("owner: passed\n");
    return 0;
}

int forge_there() {
    Place place(0);
    place.make_memory(kBytes);
    std::uint32_t handle = 0;
    take(place, to_import(get("handle")), handle);
    // As long as they find room they have left, whatever becomes of them.
    std::ignore = place.queue->run(
        std::vector{fill(kVa, kBytes, 9), copy(kVa, kThere, kBytes), signal(kThere + 4096, 99)});
    check(comes_true([] { return std::atoi(link_file("refused").c_str()) >= 5; }),
          "each was told to the sender");
    put("sent", "");
    get("looked");
    return 0;
}

// What VM 1's card sends carries the key of its first session for ever. The second begins when the link comes
// up again, the third when VM 0's driver does.
constexpr int kSessions = 3;

int own_beside_stale() {
    const auto first_card = [] { return pci_addresses().at(0); };
    for (int session = 0; session < kSessions; ++session) {
        if (session == 1)
            check(write_file("/sys/bus/pci/devices/" + first_card() + "/links/0/reset", "1"),
                  "the link was reset");
        if (session == 2)
            check(unbind_driver(first_card()) && bind_driver(first_card()), "the driver came anew");
        check(comes_true([] { return link_file("foreign_node") == "512"; }), "the other's number is known");
        Place place(static_cast<unsigned>(node_of(first_card())));
        place.make_memory(kBytes);
        check(place.queue->run(std::vector{fill(kVa, kBytes, 7)}) == 0, "memory of this card");
        const int before = std::atoi(link_file("bad_keys").c_str());
        const drm_orr_fabric_export handle = make_handle(place);
        give(fmt::format("session-{}", session), handle);
        if (session == 0) {
            check(comes_true([&] { return place.memory.words()[kBytes / 8 - 1] == 9; }),
                  "its first key is good");
            check(std::atoi(link_file("bad_keys").c_str()) == before, "and no other was sent");
        } else {
            get(fmt::format("sent-{}", session));
            check(comes_true([&] { return std::atoi(link_file("bad_keys").c_str()) > before; }),
                  "an old key is refused");
            for (std::uint64_t word = 0; word < kBytes / 8; ++word)
                if (place.memory.words()[word] != 7) fail(fmt::format("word {} was written", word));
        }
        put(fmt::format("looked-{}", session), "");
    }
    fmt::print("owner: passed\n");
    return 0;
}

int write_with_stale_key() {
    for (int session = 0; session < kSessions; ++session) {
        const drm_orr_fabric_import import = to_import(get(fmt::format("session-{}", session)));
        const int before = std::atoi(link_file("refused").c_str());
        // What is imported before both drivers know that the old session has ended ends with it.
        const auto write = [&] {
            Place place(0);
            place.make_memory(kBytes);
            std::uint32_t handle = 0;
            if (import_of(place, import, &handle) != 0 ||
                map(place.fd(), place.vm, handle, kThere, kBytes, ORR_BIND_WRITE) != 0)
                return false;
            const std::uint32_t error = write_value(place, 9);
            if (session == 0) return error == 0;
            // Each message is told to the sender, but not before the queue is done.
            for (int tries = 0; tries < 50; ++tries) {
                if (std::atoi(link_file("refused").c_str()) > before) return true;
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
            }
            return false;
        };
        check(comes_true(write), session == 0 ? "written" : "refused there, and told here");
        put(fmt::format("sent-{}", session), "");
        get(fmt::format("looked-{}", session));
    }
    return 0;
}

// Fills what there is between two cards.
constexpr std::uint32_t kFillers = 48, kFillLimitUs = 100'000'000;

int own_beside_stuck(unsigned writing) {
    Place kept(0), writer(writing);
    kept.make_memory(kBytes);
    give("kept", make_handle(kept));
    writer.make_memory(kBytes);
    std::uint32_t third = 0;
    take(writer, to_import(get("third")), third);
    Queue filler(writer.fd(), writer.vm, kFillRingVa, 64, ORR_BO_SYSTEM, {}, kFillLimitUs);
    check(filler.error() == 0, "a queue that may wait for long");
    drm_orr_queue_wait out{};
    const auto is_done = [&](double seconds = 0) {
        return wait(writer.fd(), filler.number(), kFillers, seconds, out) == 0;
    };
    {
        Place ended(0);
        ended.make_memory(kBytes);
        const drm_orr_fabric_export handle = make_handle(ended);
        give("ended", handle);
        get("held");
        for (std::uint32_t i = 0; i < kFillers; ++i)
            filler.submit(copy(kVa, kThere, kBytes));
        check(!is_done(), "a third card takes nothing");
        check(revoke(ended, handle) == 0, "one handle was taken back");
        put("ended-revoked", "");
        get("ended-denied");
        check(ended.memory.words()[1] == 2, "nothing was written there after that");
        check(comes_true([&] { return kept.memory.words()[1] == 3; }), "the other is good");
        check(writing == 0 || !is_done(), "the third card has taken nothing");
    }
    // In the place of the old, whose end nobody had to wait for.
    Place again(0);
    again.make_memory(kBytes);
    give("again", make_handle(again));
    check(comes_true([&] { return again.memory.words()[1] == 4; }), "new memory is written to");
    put("go-on", "");
    // What was in the way is lost, and the writer only told of that if it was still at it.
    check(is_done(kLong) && (out.error == 0 || writing == 0), "all that was for the third card is sent");
    put("done", "");
    fmt::print("owner: passed\n");
    return 0;
}

void hold(int number, const char* what) {
    put(fmt::format("hold.{}", number), what);
    get(fmt::format("hold.{}.done", number));
}

int write_beside_stuck() {
    Place third(1), kept(0), ended(0), again(0);
    third.make_memory(kBytes);
    give("third", make_handle(third));
    std::uint32_t handle = 0;
    for (Place* place : {&kept, &ended, &again})
        place->make_memory(kBytes);
    take(kept, to_import(get("kept")), handle);
    take(ended, to_import(get("ended")), handle);
    check(write_value(kept, 1) == 0 && write_value(ended, 2) == 0, "both handles are good");
    hold(0, "on");
    put("held", "");
    get("ended-revoked");
    check(comes_true([&] { return write_value(ended, 9) != 0; }), "the one taken back is not");
    check(write_value(kept, 3) == 0, "the other still is");
    put("ended-denied", "");
    take(again, to_import(get("again")), handle);
    check(write_value(again, 4) == 0, "so is that of new memory");
    get("go-on");
    hold(1, "off");
    get("done");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const char* vm = std::getenv("ORR_VM");
    const bool writes = vm != nullptr && *vm == '1';
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "forged") return writes ? forge_there() : own_beside_forger();
    if (what == "stale") return writes ? write_with_stale_key() : own_beside_stale();
    if (what == "losses") return writes ? write_with_losses() : own_with_losses();
    if (what == "stuck" && argc == 3)
        return writes ? write_beside_stuck() : own_beside_stuck(static_cast<unsigned>(std::atoi(argv[2])));
    return writes ? write_there() : own();
}
