#include "emulator/gdb/session.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "emulator/gdb/program_file.h"
#include "emulator/gdb/registers.h"

namespace orrery::emu::gdb {

namespace {

constexpr const char* kBadRequest = "E01";  // malformed
constexpr const char* kNotThere = "E02";    // no memory or register there
constexpr const char* kNotAllowed = "E03";  // this target cannot
constexpr std::size_t kMaxMemory = (kMaxPacket - 8) / 2;
constexpr std::uint64_t kMaxWatch = 4096;

std::string hex64(std::uint64_t value) {
    std::array<std::uint8_t, 8> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    return to_hex(bytes);
}

bool value64(std::string_view hex, std::uint64_t& value) {
    const auto bytes = from_hex(hex);
    if (!bytes || bytes->size() != sizeof value) return false;
    std::memcpy(&value, bytes->data(), sizeof value);
    return true;
}

// Signal and reason.
std::string describe(const Stop& stop) {
    switch (stop.kind) {
        case Stop::Kind::kStep:
        case Stop::Kind::kBreakpoint:
            return "T05";
        case Stop::Kind::kWatchpoint:
            return fmt::format("T05{}:{:x};",
                               stop.watch == Watch::kWrite  ? "watch"
                               : stop.watch == Watch::kRead ? "rwatch"
                                                            : "awatch",
                               stop.address);
        case Stop::Kind::kInterrupt:
            return "T02";
        case Stop::Kind::kHistoryBegin:
            return "T05replaylog:begin;";
        case Stop::Kind::kHistoryEnd:
            return "T05replaylog:end;";
        case Stop::Kind::kHalted:
            return "T06";
        case Stop::Kind::kLibraries:
            return "T05library:;";
        case Stop::Kind::kSignal:
            return fmt::format("T{:02x}", stop.signal);
    }
    return "T05";
}

}  // namespace

Session::Session(Target& target) : target_(target) {
    stop_.kind = Stop::Kind::kStep;
    target_.attach();
    stop_.thread = target_.selected();
}

Session::~Session() {
    if (!over_) target_.detach();
}

void Session::end() {
    target_.detach();
    over_ = true;
}

void Session::reply(std::string_view data) {
    last_ = frame(data);
    output_ += last_;
}

void Session::receive(std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) {
        if (over_) return;
        switch (reader_.put(byte)) {
            case PacketReader::Event::kNothing:
                break;
            case PacketReader::Event::kPacket:
                if (acknowledge_) output_ += '+';
                handle(reader_.packet());
                break;
            case PacketReader::Event::kBad:
                if (acknowledge_) output_ += '-';
                break;
            case PacketReader::Event::kNack:
                if (acknowledge_) output_ += last_;
                break;
            case PacketReader::Event::kInterrupt:
                if (running_) target_.interrupt();
                break;
        }
    }
}

bool Session::poll() {
    if (!running_ || over_ || !target_.poll(stop_)) return false;
    running_ = false;
    target_.select(stop_.thread);
    reply(stop_text());
    return true;
}

std::string Session::stop_text() const {
    const std::string text = describe(stop_);
    return stop_.thread == 0 ? text : fmt::format("{}thread:{:x};", text, stop_.thread);
}

void Session::resume(Resume how) {
    running_ = true;
    target_.resume(how);
}

void Session::handle(std::string_view packet) {
    if (running_) {
        // All-stop: nothing but Ctrl-C is expected; a kill may come all the same.
        if (packet != "k" && !packet.starts_with("vKill")) return reply(kBadRequest);
    }
    if (packet.empty()) return reply("");
    const char kind = packet.front();
    std::string_view rest = packet.substr(1);
    switch (kind) {
        case '?':
            return reply(stop_text());
        case 'g':
            return reply(read_all());
        case 'G':
            return reply(write_all(rest));
        case 'p':
            return reply(read_one(rest));
        case 'P':
            return reply(write_one(rest));
        case 'm':
            return reply(read_memory(rest));
        case 'M':
            return reply(write_memory(rest));
        case 'Z':
            return reply(point(rest, true));
        case 'z':
            return reply(point(rest, false));
        case 'H':
            return reply(select(rest));
        case 'T':
            return reply(alive(rest));
        case 'c':
        case 's':
            // Resuming elsewhere is for the debugger to do by writing pc.
            if (!rest.empty()) return reply(kBadRequest);
            return resume(kind == 's' ? Resume::kStep : Resume::kContinue);
        case 'C':
        case 'S':
            return resume(kind == 'S' ? Resume::kStep : Resume::kContinue);
        case 'b':
            if (!target_.can_reverse() || (rest != "s" && rest != "c")) return reply("");
            return resume(rest == "s" ? Resume::kReverseStep : Resume::kReverseContinue);
        case 'D':
            reply("OK");
            return end();
        case 'k':
            killed_ = true;
            return end();
        case 'q':
        case 'Q':
            return query(packet);
        case 'v':
            return verbose(rest);
        default:
            return reply("");
    }
}

void Session::verbose(std::string_view rest) {
    if (rest.starts_with("Kill")) {
        reply("OK");
        killed_ = true;
        return end();
    }
    if (rest.starts_with("Cont") && target_.selected() != 0) return resume_threads(rest.substr(4));
    if (rest.starts_with("File:")) return reply(program_file(rest.substr(5), target_.program()));
    reply("");
}

void Session::query(std::string_view packet) {
    if (packet.starts_with("qSupported")) {
        return reply(fmt::format("PacketSize={:x};QStartNoAckMode+;qXfer:features:read+{}{}{}", kMaxPacket,
                                 target_.program().empty() ? "" : ";qXfer:exec-file:read+",
                                 target_.libraries().empty() ? "" : ";qXfer:libraries:read+",
                                 target_.can_reverse() ? ";ReverseStep+;ReverseContinue+" : ""));
    }
    if (packet == "QStartNoAckMode") {
        reply("OK");
        acknowledge_ = false;
        return;
    }
    if (packet.starts_with("qXfer:features:read:")) return reply(description(packet.substr(20)));
    if (packet.starts_with("qXfer:exec-file:read:")) return reply(program_path(packet.substr(21)));
    if (packet.starts_with("qXfer:libraries:read::"))
        return reply(part(target_.libraries(), packet.substr(22)));
    if (packet.starts_with("qAttached")) return reply("1");
    if (packet.starts_with("qRcmd,")) return reply(monitor(packet.substr(6)));
    reply(thread_query(packet));
}

// target.xml:OFFSET,LENGTH
std::string Session::description(std::string_view text) {
    constexpr std::string_view kFile = "target.xml:";
    if (!text.starts_with(kFile)) return "E00";
    return part(target_.description(), text.substr(kFile.size()));
}

// PROCESS:OFFSET,LENGTH; there is one process, whatever it is called.
std::string Session::program_path(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || target_.program().empty()) return "E00";
    return part(kProgramPath, text.substr(colon + 1));
}

// OFFSET,LENGTH
std::string Session::part(std::string_view all, std::string_view text) {
    const auto offset = take_number(text);
    if (!offset || !take(text, ',')) return kBadRequest;
    const auto length = take_number(text);
    if (!length || !text.empty()) return kBadRequest;
    if (*offset >= all.size()) return "l";
    const std::size_t most = std::min<std::size_t>(*length, kMaxPacket / 2);
    const std::string_view some = all.substr(*offset, most);
    return (*offset + some.size() < all.size() ? "m" : "l") + std::string(some);
}

std::string Session::monitor(std::string_view text) {
    const auto command = from_hex(text);
    if (!command) return kBadRequest;
    std::string answer = target_.monitor(*command);
    if (answer.empty()) answer = "unknown command\n";
    answer.resize(std::min(answer.size(), kMaxMemory));
    return to_hex({reinterpret_cast<const std::uint8_t*>(answer.data()), answer.size()});
}

std::string Session::read_all() {
    const HartState state = target_.state();
    std::string out;
    for (unsigned i = 0; i < kGeneralRegisters; ++i) {
        std::uint64_t value = 0;
        read_register(state, i, value);
        out += hex64(value);
    }
    return out;
}

std::string Session::write_all(std::string_view text) {
    if (text.size() != std::size_t{kGeneralRegisters} * 16) return kBadRequest;
    HartState state = target_.state();
    for (unsigned i = 0; i < kGeneralRegisters; ++i) {
        std::uint64_t value = 0;
        if (!value64(text.substr(std::size_t{i} * 16, 16), value)) return kBadRequest;
        write_register(state, i, value);
    }
    return target_.set_state(state) ? "OK" : kNotAllowed;
}

std::string Session::read_one(std::string_view text) {
    const auto number = take_number(text);
    if (!number || !text.empty()) return kBadRequest;
    const std::vector<std::uint8_t> bytes = target_.read_register(*number);
    return bytes.empty() ? kNotThere : to_hex(bytes);
}

std::string Session::write_one(std::string_view text) {
    const auto number = take_number(text);
    if (!number || !take(text, '=')) return kBadRequest;
    const auto bytes = from_hex(text);
    if (!bytes || bytes->empty()) return kBadRequest;
    switch (target_.write_register(*number,
                                   {reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size()})) {
        case Written::kDone:
            return "OK";
        case Written::kNoSuchRegister:
            return kNotThere;
        case Written::kWrongSize:
            return kBadRequest;
        case Written::kNotAllowed:
            break;
    }
    return kNotAllowed;
}

std::string Session::read_memory(std::string_view text) {
    const auto address = take_number(text);
    if (!address || !take(text, ',')) return kBadRequest;
    const auto length = take_number(text);
    if (!length || !text.empty()) return kBadRequest;
    // Less than was asked for is a good answer.
    std::array<std::uint8_t, kMaxMemory> bytes;
    const std::span<std::uint8_t> wanted(bytes.data(), std::min<std::size_t>(*length, kMaxMemory));
    if (!target_.read(*address, wanted)) return kNotThere;
    return to_hex(wanted);
}

std::string Session::write_memory(std::string_view text) {
    const auto address = take_number(text);
    if (!address || !take(text, ',')) return kBadRequest;
    const auto length = take_number(text);
    if (!length || !take(text, ':')) return kBadRequest;
    const auto bytes = from_hex(text);
    if (!bytes || bytes->size() != *length) return kBadRequest;
    const std::span<const std::uint8_t> in(reinterpret_cast<const std::uint8_t*>(bytes->data()),
                                           bytes->size());
    return target_.write(*address, in) ? "OK" : kNotThere;
}

// KIND,ADDRESS,BYTES: kind 0 and 1 are breakpoints, 2 to 4 watchpoints.
std::string Session::point(std::string_view text, bool insert) {
    const auto kind = take_number(text);
    if (!kind || !take(text, ',')) return kBadRequest;
    const auto address = take_number(text);
    if (!address || !take(text, ',')) return kBadRequest;
    const auto bytes = take_number(text);
    if (!bytes) return kBadRequest;
    if (*kind > 4 || (!text.empty() && text.front() == ';')) return "";  // conditions are gdb's to check
    bool done = false;
    if (*kind < 2) {
        done = insert ? target_.insert_breakpoint(*address) : target_.remove_breakpoint(*address);
    } else {
        if (*bytes == 0 || *bytes > kMaxWatch || *address + *bytes < *address) return kBadRequest;
        constexpr std::array kWatches = {Watch::kWrite, Watch::kRead, Watch::kAccess};
        const Watch watch = kWatches[*kind - 2];
        done = insert ? target_.insert_watchpoint(*address, *bytes, watch)
                      : target_.remove_watchpoint(*address, *bytes, watch);
    }
    return done ? "OK" : kNotAllowed;
}

}  // namespace orrery::emu::gdb
