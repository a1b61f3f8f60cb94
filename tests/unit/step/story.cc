#include "tests/unit/step/story.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace orrery::step {
namespace {

constexpr std::uint64_t kHead = ORR_SRAM_BASE + 0x1000, kTables = ORR_SRAM_BASE + 0x1100,
                        kFields = ORR_SRAM_BASE + 0x2000;
constexpr std::uint64_t kRows = ORR_SRAM_BASE + 0x8000;

struct FieldOf {
    std::string_view name;
    std::uint16_t bytes, format;
};
struct TableOf {
    std::string_view name;
    std::uint32_t rows;
    std::vector<FieldOf> fields;
};

const std::vector<TableOf>& layout() {
    static const std::vector<TableOf> tables = {
        {"queue",
         16,
         {{"exists", 1, ORR_FORMAT_BOOL},
          {"context", 2, ORR_FORMAT_UNSIGNED},
          {"priority", 1, ORR_FORMAT_UNSIGNED},
          {"weight", 2, ORR_FORMAT_UNSIGNED},
          {"slice_us", 4, ORR_FORMAT_UNSIGNED},
          {"state", 1, ORR_FORMAT_STATE},
          {"producer", 8, ORR_FORMAT_UNSIGNED},
          {"next", 8, ORR_FORMAT_UNSIGNED},
          {"retired", 8, ORR_FORMAT_UNSIGNED},
          {"in_flight", 4, ORR_FORMAT_UNSIGNED},
          {"vtime", 8, ORR_FORMAT_TIME},
          {"used_ps", 8, ORR_FORMAT_TIME},
          {"ready_since_ps", 8, ORR_FORMAT_TIME},
          {"wait_memory", 8, ORR_FORMAT_HEX},
          {"wait_value", 8, ORR_FORMAT_UNSIGNED},
          {"error", 4, ORR_FORMAT_UNSIGNED},
          {"slot", 1, ORR_FORMAT_UNSIGNED},
          {"lag", 4, ORR_FORMAT_SIGNED},
          {"name", 24, ORR_FORMAT_TEXT}}},
        {"context",
         4,
         {{"exists", 1, ORR_FORMAT_BOOL},
          {"queues", 4, ORR_FORMAT_UNSIGNED},
          {"quota", 8, ORR_FORMAT_UNSIGNED},
          {"used_ps", 8, ORR_FORMAT_TIME},
          {"throttled", 1, ORR_FORMAT_BOOL},
          {"name", 24, ORR_FORMAT_TEXT}}},
        {"port",
         4,
         {{"kind", 1, ORR_FORMAT_UNSIGNED},
          {"busy", 1, ORR_FORMAT_BOOL},
          {"queue", 2, ORR_FORMAT_UNSIGNED},
          {"index", 8, ORR_FORMAT_UNSIGNED},
          {"started_ps", 8, ORR_FORMAT_TIME},
          {"deadline_ps", 8, ORR_FORMAT_TIME},
          {"preempting", 1, ORR_FORMAT_UNSIGNED}}},
    };
    return tables;
}

struct Found {
    std::uint64_t address = 0;
    std::uint16_t bytes = 0;
};
Found find(std::string_view table, std::uint32_t row, std::string_view field) {
    std::uint64_t base = kRows;
    for (const TableOf& t : layout()) {
        std::uint32_t stride = 0, offset = 0;
        Found found;
        for (const FieldOf& f : t.fields) {
            if (f.name == field) {
                offset = stride;
                found.bytes = f.bytes;
            }
            stride += f.bytes;
        }
        if (t.name == table) {
            EXPECT_NE(found.bytes, 0) << table << "." << field;
            found.address = base + row * stride + offset;
            return found;
        }
        base += t.rows * stride;
    }
    ADD_FAILURE() << "no table " << table;
    return {};
}

template <typename T>
void put(std::vector<std::uint8_t>& sram, std::uint64_t address, const T& value) {
    std::memcpy(sram.data() + (address - ORR_SRAM_BASE), &value, sizeof value);
}

std::vector<std::uint8_t> bytes_of(std::uint64_t value, std::size_t count) {
    std::vector<std::uint8_t> bytes(count);
    std::memcpy(bytes.data(), &value, std::min<std::size_t>(count, 8));
    return bytes;
}

}  // namespace

Story::Story() : sram_(ORR_SRAM_SIZE) {
    info.file = "story.otrace";
    info.program = "test";
    info.sku = "orrery-1";
    info.build_id = "0.1.0-story";
    info.firmware_hash = std::string(64, 'a');
    info.uid = 1;
    info.hashes_checked = 3;
    orr_inspect head{ORR_INSPECT_MAGIC, 1, static_cast<std::uint32_t>(layout().size()), kTables};
    put(sram_, kHead, head);
    std::uint64_t fields = kFields, base = kRows;
    for (std::size_t t = 0; t < layout().size(); ++t) {
        const TableOf& from = layout()[t];
        orr_inspect_table table{};
        std::ranges::copy(from.name, table.name);
        table.base = base;
        table.rows = from.rows;
        table.fields = fields;
        table.field_count = static_cast<std::uint32_t>(from.fields.size());
        for (const FieldOf& f : from.fields) {
            orr_inspect_field field{};
            std::ranges::copy(f.name, field.name);
            field.offset = table.stride;
            field.bytes = f.bytes;
            field.format = f.format;
            put(sram_, fields, field);
            fields += sizeof field;
            table.stride += f.bytes;
        }
        put(sram_, kTables + t * sizeof table, table);
        base += std::uint64_t{table.rows} * table.stride;
    }
    initial_ = sram_;
}

void Story::add(Step step) {
    step.time = now_;
    step.pc = pc_;
    pc_ += 4;
    now_ += 1000;
    steps_.push_back(std::move(step));
}

Story& Story::at(Time time) {
    EXPECT_GE(time, now_) << "a story goes forward";
    now_ = std::max(time, now_);
    return *this;
}

void Story::store(std::uint64_t address, std::vector<std::uint8_t> bytes) {
    Step step;
    step.address = address;
    auto* to = sram_.data() + (address - ORR_SRAM_BASE);
    step.before.assign(to, to + bytes.size());
    std::ranges::copy(bytes, to);
    step.after = std::move(bytes);
    add(std::move(step));
}

Story& Story::set(std::string_view table, std::uint32_t row, std::string_view field, std::uint64_t value) {
    const Found found = find(table, row, field);
    store(found.address, bytes_of(value, found.bytes));
    return *this;
}

Story& Story::set_text(std::string_view table, std::uint32_t row, std::string_view field,
                       std::string_view text) {
    const Found found = find(table, row, field);
    std::vector<std::uint8_t> bytes(found.bytes);
    std::copy_n(text.begin(), std::min<std::size_t>(text.size(), found.bytes - 1), bytes.begin());
    store(found.address, std::move(bytes));
    return *this;
}

Story& Story::record(std::uint32_t type, std::uint32_t a, std::uint64_t b,
                     std::initializer_list<std::uint64_t> words) {
    const std::vector<std::uint64_t> list(words);
    records_.push_back(make_record(steps_.size(), now_, ORR_TRACE_HEADER(type, list.size(), a, b), list));
    Step step;
    step.record = true;
    add(step);
    return *this;
}

Story& Story::idle(unsigned steps) {
    for (unsigned i = 0; i < steps; ++i)
        add({});
    return *this;
}

Story& Story::create(std::uint32_t queue, std::uint32_t context, std::uint32_t priority, std::uint32_t weight,
                     std::string_view name) {
    std::uint64_t words[3] = {};
    std::memcpy(words, name.data(), std::min<std::size_t>(name.size(), 23));
    set("queue", queue, "exists", 1)
        .set("queue", queue, "context", context)
        .set("queue", queue, "priority", priority);
    set("queue", queue, "weight", weight)
        .set("queue", queue, "slot", 0xff)
        .set_text("queue", queue, "name", name);
    record(ORR_TRACE_QUEUE, queue, context,
           {priority | std::uint64_t{weight} << 16 | std::uint64_t{1000} << 32});
    return record(ORR_TRACE_NAME, queue, ORR_NAME_QUEUE, {words[0], words[1], words[2]});
}

Story& Story::state(std::uint32_t queue, std::uint32_t state) {
    if (state == ORR_TSTATE_READY || state == ORR_TSTATE_VECTOR_PORT)
        set("queue", queue, "ready_since_ps", now_);
    set("queue", queue, "state", state);
    return record(ORR_TRACE_STATE, queue, state);
}

Story& Story::doorbell(std::uint32_t queue, std::uint64_t producer) {
    set("queue", queue, "producer", producer);
    return record(ORR_TRACE_DOORBELL, queue, 0, {producer});
}

Story& Story::decision(std::uint32_t queue, std::uint32_t rule, std::uint32_t resource,
                       std::uint32_t candidates, std::uint64_t index) {
    return record(ORR_TRACE_DECISION, queue, rule | resource << 8 | candidates << 16, {index});
}

Story& Story::start_job(std::uint32_t queue, std::uint32_t port, std::uint64_t index, std::uint64_t groups) {
    set("port", port, "busy", 1)
        .set("port", port, "queue", queue)
        .set("port", port, "index", index)
        .set("port", port, "started_ps", now_);
    return record(ORR_TRACE_START_JOB, queue, port | ORR_PKT_DISPATCH << 16, {index, groups});
}

Story& Story::end_job(std::uint32_t queue, std::uint32_t port, std::uint64_t index, Time start, Time used,
                      std::uint32_t status) {
    set("port", port, "busy", 0);
    return record(ORR_TRACE_END_JOB, queue, port | status << 16, {index, start, now_, used});
}

std::unique_ptr<Story> Story::finish() {
    auto story = std::make_unique<Story>(std::move(*this));
    story->sram_ = story->initial_;
    story->position_ = 0;
    return story;
}

emu::HartState Story::registers() const {
    emu::HartState state;
    state.pc = position_ < steps_.size() ? steps_[position_].pc : pc_;
    state.steps = position_;
    state.x[10] = 0x1000 + position_;  // a0
    state.mcause = 11;
    return state;
}

bool Story::read(std::uint64_t address, std::span<std::uint8_t> out) const {
    const std::uint64_t offset = address - ORR_SRAM_BASE;
    if (offset > sram_.size() || out.size() > sram_.size() - offset) return false;
    std::copy_n(sram_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return true;
}

emu::ReplayStopInfo Story::seek(std::uint64_t position) {
    const auto apply = [&](const Step& step, const std::vector<std::uint8_t>& bytes) {
        if (step.address != 0) std::ranges::copy(bytes, sram_.data() + (step.address - ORR_SRAM_BASE));
    };
    position = std::min<std::uint64_t>(position, steps_.size());
    for (; position_ < position; ++position_)
        apply(steps_[position_], steps_[position_].after);
    for (; position_ > position; --position_)
        apply(steps_[position_ - 1], steps_[position_ - 1].before);
    return {};
}

emu::ReplayStopInfo Story::seek_time(Time time) {
    std::uint64_t position = 0;
    while (position < steps_.size() &&
           (position + 1 < steps_.size() ? steps_[position + 1].time : now_) <= time)
        ++position;
    return seek(position);
}

namespace {

template <typename Step>
bool touches(const Step& step, const emu::ReplayLimits& limits) {
    return step.address != 0 && std::ranges::any_of(limits.watchpoints, [&](const emu::Watchpoint& w) {
               return step.address < w.address + w.bytes && w.address < step.address + step.after.size();
           });
}

}  // namespace

emu::ReplayStopInfo Story::run(std::uint64_t target, const emu::ReplayLimits& limits) {
    while (position_ < std::min<std::uint64_t>(target, end())) {
        const bool touched = touches(steps_[position_], limits);
        seek(position_ + 1);
        if (touched) return {.stop = emu::ReplayStop::kWatchpoint};
        if (position_ == end()) return {.stop = emu::ReplayStop::kEnd};
        const std::uint64_t pc = steps_[position_].pc;
        if (std::ranges::count(limits.breakpoints, pc) != 0)
            return {.stop = emu::ReplayStop::kBreakpoint, .breakpoint = pc};
        if (limits.condition && (!limits.condition_at_records || steps_[position_].record) &&
            limits.condition())
            return {.stop = emu::ReplayStop::kCondition};
    }
    return {};
}

emu::ReplayStopInfo Story::run_back(std::uint64_t target, const emu::ReplayLimits& limits) {
    while (position_ > target) {
        seek(position_ - 1);
        if (touches(steps_[position_], limits)) return {.stop = emu::ReplayStop::kWatchpoint};
        const std::uint64_t pc = steps_[position_].pc;
        if (std::ranges::count(limits.breakpoints, pc) != 0)
            return {.stop = emu::ReplayStop::kBreakpoint, .breakpoint = pc};
        if (limits.condition && (!limits.condition_at_records || steps_[position_].record) &&
            limits.condition())
            return {.stop = emu::ReplayStop::kCondition};
        if (position_ == 0) return {.stop = emu::ReplayStop::kBegin};
    }
    return {};
}

std::unique_ptr<Debugger> debug(std::unique_ptr<Session> session) {
    Debugger::Options options;
    options.open = [](const std::string& file) -> Result<std::unique_ptr<Session>> {
        return fail("{}: there are no files in tests", file);
    };
    auto debugger = Debugger::make(std::move(session), std::move(options));
    EXPECT_TRUE(debugger) << debugger.error().text;
    return std::move(*debugger);
}

std::string run(Debugger& debugger, std::string_view line) {
    const auto reply = debugger.execute(line);
    return reply ? reply->text : "error: " + reply.error().text;
}

std::unique_ptr<Story> three_queues() {
    Story s;
    s.at(1 * kUs).record(ORR_TRACE_START, 0, 2u << 16, {ORR_SRAM_BASE + 0x1000, 0});
    s.record(ORR_TRACE_CONTEXT, 0, 1).set("context", 0, "exists", 1).set("context", 0, "queues", 3);
    for (std::uint32_t port = 0; port < 3; ++port)
        s.set("port", port, "kind", port == 0 ? ORR_ENGINE_COPY : ORR_ENGINE_VECTOR);
    s.create(0, 0, ORR_PRIORITY_HIGH, 64, "ui")
        .create(1, 0, ORR_PRIORITY_NORMAL, 64, "train")
        .create(2, 0, ORR_PRIORITY_NORMAL, 128, "batch");
    // train comes alone
    s.at(10 * kUs)
        .doorbell(1, 2)
        .state(1, ORR_TSTATE_READY)
        .decision(1, ORR_RULE_ONLY, ORR_RESOURCE_TURN, 1, 0)
        .state(1, ORR_TSTATE_TURN);
    s.at(12 * kUs).start_job(1, 1, 0, 8).start_job(1, 2, 1, 8).state(1, ORR_TSTATE_OWN);
    // batch finds both ports taken; train's next packet too
    s.at(20 * kUs).doorbell(2, 1).state(2, ORR_TSTATE_READY).state(2, ORR_TSTATE_VECTOR_PORT);
    s.at(21 * kUs).doorbell(1, 3).state(1, ORR_TSTATE_READY).state(1, ORR_TSTATE_VECTOR_PORT);
    s.at(40 * kUs)
        .end_job(1, 1, 0, 12 * kUs, 28 * kUs)
        .set("queue", 1, "vtime", 28 * kUs)
        .set("queue", 2, "vtime", 3 * kUs);
    s.decision(2, ORR_RULE_SHARE, ORR_RESOURCE_VECTOR, 2, 0).start_job(2, 1, 0, 4).state(2, ORR_TSTATE_OWN);
    // ui preempts train's second packet
    s.at(50 * kUs).doorbell(0, 1).state(0, ORR_TSTATE_READY).state(0, ORR_TSTATE_VECTOR_PORT);
    s.decision(0, ORR_RULE_PREEMPT, ORR_RESOURCE_VECTOR, 2, 0)
        .record(ORR_TRACE_PREEMPT, 1, 2 | SOC_PREEMPT_GROUP << 8 | 0u << 16, {1});
    s.at(52 * kUs)
        .end_job(1, 2, 1, 12 * kUs, 40 * kUs, ORR_DONE_PREEMPTED)
        .state(1, ORR_TSTATE_SUSPENDED)
        .start_job(0, 2, 0, 1);
    s.state(0, ORR_TSTATE_OWN).at(55 * kUs).end_job(0, 2, 0, 52 * kUs, 3 * kUs).state(0, ORR_TSTATE_IDLE);
    s.decision(1, ORR_RULE_RESUME, ORR_RESOURCE_VECTOR, 1, 1)
        .record(ORR_TRACE_RESUME, 1, 2, {1})
        .state(1, ORR_TSTATE_OWN);
    s.at(60 * kUs)
        .end_job(2, 1, 0, 40 * kUs, 20 * kUs)
        .state(2, ORR_TSTATE_IDLE)
        .record(ORR_TRACE_RETIRE, 2, 0, {1});
    s.at(80 * kUs)
        .end_job(1, 2, 1, 55 * kUs, 25 * kUs)
        .record(ORR_TRACE_RETIRE, 1, 0, {2})
        .state(1, ORR_TSTATE_STOPPED);
    s.set("queue", 1, "error", 8).record(ORR_TRACE_ERROR, 1, 8, {2, 0, 0});
    s.idle(10);
    return s.finish();
}

std::unique_ptr<Story> deadlock() {
    Story s;
    constexpr std::uint64_t kA = ORR_VRAM_WINDOW + 0x1000, kB = ORR_VRAM_WINDOW + 0x2000,
                            kC = ORR_VRAM_WINDOW + 0x3000;
    s.record(ORR_TRACE_START, 0, 2u << 16, {ORR_SRAM_BASE + 0x1000, 0});
    s.create(0, 0, ORR_PRIORITY_NORMAL, 64, "left").create(1, 0, ORR_PRIORITY_NORMAL, 64, "right");
    s.create(2, 0, ORR_PRIORITY_NORMAL, 64, "consumer").create(3, 0, ORR_PRIORITY_NORMAL, 64, "producer");
    const auto wait = [&](std::uint32_t queue, std::uint64_t memory, std::uint64_t value) {
        s.record(ORR_TRACE_WAIT, queue, 0, {memory, value, 0x7000 + queue, 4})
            .state(queue, ORR_TSTATE_SEMAPHORE);
    };
    s.at(5 * kUs).record(ORR_TRACE_SIGNAL, 3, 0, {kC, 6, 0x7002});
    s.at(10 * kUs);
    wait(0, kA, 1);
    wait(1, kB, 1);
    wait(2, kC, 7);
    s.at(20 * kUs).record(ORR_TRACE_DEADLOCK, 0, 1 | 0u << 16 | 2u << 24, {kA, 1, 0});
    s.record(ORR_TRACE_DEADLOCK, 1, 0 | 1u << 16 | 2u << 24, {kB, 1, 0});
    s.at(30 * kUs)
        .record(ORR_TRACE_SIGNAL, 3, 1, {kC, 7, 0x7002})
        .record(ORR_TRACE_WAKE, 2, ORR_WAKE_LOCAL, {kC, 7})
        .state(2, ORR_TSTATE_READY);
    s.idle(5);
    return s.finish();
}

}  // namespace orrery::step
