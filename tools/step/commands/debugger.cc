#include "tools/step/commands/debugger.h"

#include <algorithm>
#include <csignal>

#include "tools/records/names.h"
#include "tools/step/commands/commands.h"
#include "tools/step/words.h"

namespace orrery::step {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

constexpr const char* kNotWhatWasRecorded = "replay does NOT make what was recorded: ";
constexpr const char* kNoTables =
    "the firmware did not say where its tables are: no queues, contexts and engines";

// Behind the layers that only reach for the hardware: who wanted it. Null: not known.
const Frame* find_telling(const std::vector<Frame>& frames) {
    for (const Frame& frame : frames) {
        if (!frame.line) continue;
        const std::string& file = frame.line->file;
        if (file.find("/hal/") == std::string::npos && !file.ends_with("/trace.h")) return &frame;
    }
    return frames.empty() ? nullptr : &frames.front();
}

}  // namespace

void Debugger::interrupt() {
    g_interrupted = 1;
}

bool Debugger::take_interrupt() {
    const bool was = g_interrupted != 0;
    g_interrupted = 0;
    return was;
}

Result<std::unique_ptr<Debugger>> Debugger::make(std::unique_ptr<Session> session, Options options) {
    std::unique_ptr<Debugger> debugger(new Debugger());
    debugger->session_ = std::move(session);
    debugger->options_ = std::move(options);
    Session& s = *debugger->session_;
    const About& about = s.about();
    std::string note;
    auto program = Program::find(about.elf, about.symbols, debugger->options_.elf, note);
    if (!program) return std::unexpected(program.error());
    debugger->program_ = std::move(*program);
    // These moves too may find a divergence, and fewer records are left then.
    do {
        debugger->find_beginning();
        debugger->make_history();
        debugger->find_inspect();
        debugger->go_to_first();
    } while (s.take_divergence());
    if (!about.divergence.empty()) {
        debugger->notes_.push_back(kNotWhatWasRecorded + about.divergence +
                                   ". The recording ends before that here");
    }
    if (!about.verified)
        debugger->notes_.emplace_back(
            "not verified: the events are what the file says; 'verify' replays and checks them");
    if (about.resumed)
        debugger->notes_.push_back(
            fmt::format("a flight recorder's: it begins at {}, and what was before is not kept",
                        moment_text(about.start)));
    if (about.crashed)
        debugger->notes_.emplace_back("the recorder died; this is all up to the last block that it wrote");
    if (!note.empty()) debugger->notes_.push_back(note);
    if (!debugger->no_inspect_.empty()) debugger->notes_.push_back(debugger->no_inspect_);
    return debugger;
}

void Debugger::go_to_first() {
    session_->seek(history_->records().empty() ? 0 : history_->records().front().step);
}

std::string Debugger::take_divergence() {
    if (!session_->take_divergence()) return {};
    make_history();
    // The tables stay known to the conditions of breakpoints, which have been given their places.
    if (!history_->tables()) no_inspect_ = kNoTables;
    return fmt::format(
        "{}{}. The recording ends at step {} from now on, and this is step {}; what was asked for can be "
        "asked of what is left",
        kNotWhatWasRecorded, session_->about().divergence, session_->end(), session_->position());
}

void Debugger::make_history() {
    history_ = std::make_unique<History>(session_->records(), beginning_ ? &*beginning_ : nullptr);
}

// Of a recording that begins in the midst: what the firmware said before is gone, and its tables are there.
void Debugger::find_beginning() {
    beginning_.reset();
    if (!session_->about().resumed) return;
    session_->seek(1);
    const auto address = Inspect::find(session_->sram());
    const auto inspect = address ? Inspect::read(session_->sram(), *address) : fail("{}", kNoTables);
    if (inspect)
        beginning_ = Beginning{*address, session_->position(), session_->time(),
                               take_snapshot(*inspect, session_->sram())};
}

// The tables are constant data: as they are when the firmware says where they are, they stay.
void Debugger::find_inspect() {
    inspect_.reset();
    no_inspect_.clear();
    const auto& tables = history_->tables();
    if (!tables) {
        no_inspect_ = history_->records().empty()
                          ? "the firmware wrote no trace records: only instructions can be stepped"
                          : kNoTables;
        return;
    }
    session_->seek(tables->step);
    auto inspect = Inspect::read(session_->sram(), tables->address);
    if (inspect) {
        inspect_ = std::move(*inspect);
    } else {
        no_inspect_ = inspect.error().text;
    }
}

Result<const Inspect*> Debugger::inspect() const {
    if (!inspect_ || !history_->tables()) return fail("{}", no_inspect_);
    if (session_->position() < history_->tables()->step) {
        return fail(
            "the firmware has not started yet at this position; 'step event' goes to its first record");
    }
    return &*inspect_;
}

Result<Snapshot> Debugger::snapshot() const {
    const auto inspect = this->inspect();
    if (!inspect) return std::unexpected(inspect.error());
    return take_snapshot(**inspect, session_->sram());
}

std::optional<std::size_t> Debugger::record_here() const {
    const std::size_t at = history_->first_at_or_after(session_->position());
    if (at == history_->records().size() || history_->records()[at].step != session_->position())
        return std::nullopt;
    return at;
}

Moment Debugger::moment() const {
    const auto at = record_here();
    return {session_.get(), at ? &history_->records()[*at] : nullptr};
}

bool Debugger::has_breakpoints() const {
    return std::ranges::any_of(breakpoints_, &Breakpoint::enabled);
}

std::optional<Line> Debugger::telling_line(std::uint64_t pc) const {
    const auto frames = program_.debug().frames(pc);
    const Frame* frame = find_telling(frames);
    return frame != nullptr ? frame->line : program_.debug().line_at(pc);
}

std::string Debugger::place(std::uint64_t pc) const {
    const std::string where = program_.where(pc);
    return where.empty() ? fmt::format("{:#x}", pc) : fmt::format("{:#x} <{}>", pc, where);
}

Reply Debugger::here() const {
    const Session& s = *session_;
    const std::uint64_t pc = s.registers().pc;
    Reply reply;
    reply.data["step"] = s.position();
    reply.data["time_ps"] = s.time();
    reply.data["pc"] = pc;
    std::string first = fmt::format("step {}  {}  ", s.position(), style().strong(moment_text(s.time())));
    if (!s.running()) {
        first += "the core does not run";
        reply.data["core"] = "stopped";
    } else if (s.sleeping()) {
        first += fmt::format("the core sleeps at {}", place(pc));
        reply.data["core"] = "sleeping";
    } else {
        first += place(pc);
        reply.data["core"] = "running";
    }
    if (const std::string symbol = program_.where(pc); !symbol.empty()) reply.data["symbol"] = symbol;
    const auto frames = program_.debug().frames(pc);
    const Frame* frame = find_telling(frames);
    const auto line = telling_line(pc);
    if (frame != nullptr) {
        // Said only where the symbol does not.
        if (frame != &frames.back()) first += fmt::format("  in {}", frame->function);
        reply.data["function"] = frame->function;
    }
    if (line) {
        first += fmt::format("{} {}:{}", frame != nullptr && frame != &frames.back() ? "," : " ", line->file,
                             line->line);
        reply.data["source"] = {{"file", line->file}, {"line", line->line}};
    }
    if (s.position() == s.end()) first += "  (the end of the recording)";
    reply.text = first + '\n';
    if (const auto at = record_here()) {
        const Record& record = history_->records()[*at];
        const std::string text = describe(record, *history_);
        reply.text += fmt::format("  {}: {}\n", style().good(record_name(record.type)), text);
        reply.data["event"] = record_json(record, *history_);
    }
    return reply;
}

Result<Reply> Debugger::execute(std::string_view line) {
    return run_command(*this, line);
}

}  // namespace orrery::step
