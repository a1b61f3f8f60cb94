// Packets of a session that are about threads.
#include <fmt/format.h>

#include "emulator/gdb/session.h"

namespace orrery::emu::gdb {

namespace {

constexpr const char* kBadRequest = "E01";
constexpr const char* kNotThere = "E02";

}  // namespace

// OPERATION THREAD: only of registers and memory (g); 0 and -1 are any thread.
std::string Session::select(std::string_view text) {
    if (target_.selected() == 0 || !take(text, 'g') || text == "-1") return "OK";
    const auto thread = take_number(text);
    if (!thread || !text.empty()) return kBadRequest;
    return *thread == 0 || target_.select(*thread) ? "OK" : kNotThere;
}

std::string Session::alive(std::string_view text) {
    const auto thread = take_number(text);
    if (!thread) return kBadRequest;
    for (const Target::Thread& each : target_.threads()) {
        if (each.id == *thread) return "OK";
    }
    return kNotThere;
}

std::string Session::thread_query(std::string_view packet) {
    if (target_.selected() == 0) return "";
    constexpr std::string_view kText = "qThreadExtraInfo,";
    if (packet == "qC") return fmt::format("QC{:x}", target_.selected());
    if (packet == "qsThreadInfo") return "l";
    if (packet == "qfThreadInfo") {
        std::string out;
        for (const Target::Thread& each : target_.threads())
            out += fmt::format("{}{:x}", out.empty() ? "m" : ",", each.id);
        return out;
    }
    if (!packet.starts_with(kText)) return "";
    packet.remove_prefix(kText.size());
    const auto thread = take_number(packet);
    if (!thread) return kBadRequest;
    for (const Target::Thread& each : target_.threads()) {
        if (each.id == *thread)
            return to_hex({reinterpret_cast<const std::uint8_t*>(each.text.data()), each.text.size()});
    }
    return kNotThere;
}

// "?", or ;ACTION[:THREAD] several times. A step is of one thread, whatever the others are to do.
void Session::resume_threads(std::string_view actions) {
    if (actions == "?") return reply("vCont;c;C;s;S");
    bool resumes = false;
    while (take(actions, ';')) {
        const bool step = !actions.empty() && (actions.front() == 's' || actions.front() == 'S');
        const bool go = !actions.empty() && (actions.front() == 'c' || actions.front() == 'C');
        if (!step && !go) return reply(kBadRequest);
        const bool signal = actions.front() == 'S' || actions.front() == 'C';
        actions.remove_prefix(1);
        // The kernel gets what it met, whatever the debugger makes of it.
        if (signal && !take_number(actions)) return reply(kBadRequest);
        if (take(actions, ':') && !take(actions, '-')) {
            const auto thread = take_number(actions);
            if (!thread) return reply(kBadRequest);
            if (step && *thread != 0) target_.select(*thread);
        } else if (!actions.empty() && actions.front() == '1') {
            actions.remove_prefix(1);
        }
        if (step) return resume(Resume::kStep);
        resumes = true;
    }
    if (!resumes || !actions.empty()) return reply(kBadRequest);
    resume(Resume::kContinue);
}

}  // namespace orrery::emu::gdb
