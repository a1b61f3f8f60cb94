// Expressions over a moment of a recording: registers, CSRs, memory, symbols, fields of the firmware's
// tables, and the trace record at the position.
//
//   queue[3].vtime > queue[4].vtime + 2us && pc == &Scheduler::turn
//
// Operators are C's, with its precedence, on 64 bits: || && | ^ & == != < <= > >= << >> + - * / % ! ~ - and
// parentheses. Operands:
//   12, 0x1f, 12.5us              numbers and times (ps, ns, us, ms, s)
//   a0, sp, x17, pc, mcause, ...  registers and CSRs, also with $ before them
//   time, step                    model time, and the position
//   queue[N].field                any table and field that the firmware describes
//   event.type, .queue, .a, .b    of the record at the position; nothing (and no comparison holds) between
//   records decision.queue, .rule, .resource, .candidates, .index   the same, of decisions name, &name a
//   symbol: its value (1, 2, 4 or 8 bytes), its address u8(a) u16(a) u32(a) u64(a)    memory ready, share,
//   high, ...       words for states, rules, classes, resources, event types; or rule.gang
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/records/inspect.h"
#include "tools/step/program/program.h"
#include "tools/step/session/session.h"
#include "tools/step/words.h"
#include "tools/text/result.h"

namespace orrery::step {

struct Value {
    std::uint64_t bits = 0;
    bool present = true;  // false: event.* between records
    bool is_signed = false;
    bool is_address = false;
    std::uint16_t format = 0;  // ORR_FORMAT_*
    std::string_view list;     // the word list (names.h) that has a word for it, or ""
    std::string text;          // of ORR_FORMAT_TEXT
};
std::string show(const Value& value, const Program& program);

// What names in expressions mean. Members outlive the expression; inspect may be null.
struct Meanings {
    const Inspect* inspect = nullptr;
    const Program* program = nullptr;
};

// The moment at which an expression is evaluated.
struct Moment {
    const Session* session = nullptr;
    const Record* record = nullptr;  // at the position, or null
};

class Expression {
  public:
    // Errors point at the place: "... at 'xyz'".
    static Result<Expression> parse(std::string_view text, const Meanings& meanings);
    Expression(Expression&&) noexcept;
    Expression& operator=(Expression&&) noexcept;
    ~Expression();

    const std::string& text() const { return text_; }
    // Fails on memory that a recording does not hold, and on division by zero.
    Result<Value> evaluate(const Moment& moment) const;
    // Holds: present and not 0. What cannot be evaluated does not hold.
    bool holds(const Moment& moment) const;

    // What the value depends on.
    bool uses_registers() const { return uses_registers_; }
    bool uses_time() const { return uses_time_; }
    bool uses_event() const { return uses_event_; }
    // The memory that it reads, if that is fixed; nothing: addresses are computed from what may change.
    const std::optional<std::vector<emu::Watchpoint>>& memory() const { return memory_; }

    struct Node;

  private:
    friend class ExpressionParser;
    Expression();
    std::string text_;
    std::unique_ptr<Node> root_;
    bool uses_registers_ = false, uses_time_ = false, uses_event_ = false;
    std::optional<std::vector<emu::Watchpoint>> memory_{std::in_place};
};

// All that can stand at the beginning of an operand, for completion.
std::vector<std::string> operand_names(const Meanings& meanings);

}  // namespace orrery::step
