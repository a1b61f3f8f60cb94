#include "tools/step/session/expression.h"

#include <orrery/fw/inspect.h>
#include <orrery/fw/trace.h>

#include <array>

#include "tools/records/names.h"
#include "tools/step/session/expression_node.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

Result<std::uint64_t> read_memory(const Session& session, std::uint64_t address, unsigned bytes) {
    std::array<std::uint8_t, 8> buffer{};
    if (!session.read(address, std::span(buffer).first(bytes))) {
        return fail(
            "a recording holds the core's SRAM (0x80000000 on) and ROM (0x10000 on); {:#x} is in neither",
            address);
    }
    std::uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;)
        value = value << 8 | buffer[i];
    return value;
}

Value event_value(const Node& node, const Record* record) {
    Value value = node.value;
    value.present = record != nullptr;
    if (record == nullptr) return value;
    using S = Node::Selector;
    if (node.selector >= S::kDecisionQueue && record->type != ORR_TRACE_DECISION) {
        value.present = false;
        return value;
    }
    switch (node.selector) {
        case S::kType:
            value.bits = record->type;
            break;
        case S::kQueue:
            value.bits = queue_of(*record);
            value.present = value.bits != ORR_TRACE_NONE;
            break;
        case S::kA:
            value.bits = record->a;
            break;
        case S::kB:
            value.bits = record->b;
            break;
        case S::kDecisionQueue:
            value.bits = record->a;
            break;
        case S::kDecisionRule:
            value.bits = record->b & 0xff;
            break;
        case S::kDecisionResource:
            value.bits = record->b >> 8 & 0xff;
            break;
        case S::kDecisionCandidates:
            value.bits = record->b >> 16;
            break;
        case S::kDecisionIndex:
            value.bits = record->word[0];
            break;
    }
    return value;
}

bool less(const Value& a, const Value& b) {
    if (a.is_signed || b.is_signed)
        return static_cast<std::int64_t>(a.bits) < static_cast<std::int64_t>(b.bits);
    return a.bits < b.bits;
}

Result<Value> apply(Op op, const Value& a, const Value& b) {
    Value result;
    if (is_comparison(op)) {
        result.format = ORR_FORMAT_BOOL;
        if (!a.present || !b.present) return result;
        switch (op) {
            case Op::kEqual:
                result.bits = a.bits == b.bits;
                break;
            case Op::kDiffer:
                result.bits = a.bits != b.bits;
                break;
            case Op::kLess:
                result.bits = less(a, b);
                break;
            case Op::kLessEqual:
                result.bits = !less(b, a);
                break;
            case Op::kGreater:
                result.bits = less(b, a);
                break;
            default:
                result.bits = !less(a, b);
                break;
        }
        return result;
    }
    result.present = a.present && b.present;
    result.is_signed = a.is_signed || b.is_signed;
    if (a.format == b.format) result.format = a.format;
    if (op == Op::kAdd || op == Op::kSubtract) {
        if (a.format == ORR_FORMAT_TIME || b.format == ORR_FORMAT_TIME) result.format = ORR_FORMAT_TIME;
        result.is_address = a.is_address != b.is_address;
    }
    switch (op) {
        case Op::kBitOr:
            result.bits = a.bits | b.bits;
            break;
        case Op::kBitXor:
            result.bits = a.bits ^ b.bits;
            break;
        case Op::kBitAnd:
            result.bits = a.bits & b.bits;
            break;
        case Op::kShiftLeft:
            result.bits = b.bits < 64 ? a.bits << b.bits : 0;
            break;
        case Op::kShiftRight:
            result.bits = b.bits < 64 ? a.bits >> b.bits : 0;
            break;
        case Op::kAdd:
            result.bits = a.bits + b.bits;
            break;
        case Op::kSubtract:
            result.bits = a.bits - b.bits;
            // A difference below zero is meant as such.
            if (!result.is_signed && a.bits < b.bits) {
                result.is_signed = true;
                if (result.format != ORR_FORMAT_TIME) result.format = ORR_FORMAT_SIGNED;
            }
            break;
        case Op::kMultiply:
            result.bits = a.bits * b.bits;
            result.format = a.format == ORR_FORMAT_TIME ? a.format : b.format;
            break;
        default: {
            if (b.bits == 0) return fail("division by zero");
            if (result.is_signed) {
                const auto x = static_cast<std::int64_t>(a.bits), y = static_cast<std::int64_t>(b.bits);
                // The one quotient that does not fit.
                const bool wraps = y == -1;
                result.bits = static_cast<std::uint64_t>(
                    op == Op::kDivide ? (wraps ? static_cast<std::int64_t>(0 - a.bits) : x / y)
                                      : (wraps ? 0 : x % y));
            } else {
                result.bits = op == Op::kDivide ? a.bits / b.bits : a.bits % b.bits;
            }
            result.format = op == Op::kDivide && b.format == ORR_FORMAT_TIME ? ORR_FORMAT_UNSIGNED : a.format;
        }
    }
    return result;
}

Result<Value> evaluate_node(const Node& node, const Moment& moment) {
    const Session& session = *moment.session;
    Value value = node.value;
    switch (node.kind) {
        case Kind::kConstant:
            return value;
        case Kind::kRegister:
            value.bits = session.registers().x[node.number];
            return value;
        case Kind::kPc:
            value.bits = session.registers().pc;
            return value;
        case Kind::kCsr:
            value.bits = session.registers().*node.csr;
            return value;
        case Kind::kTime:
            value.bits = session.time();
            return value;
        case Kind::kStep:
            value.bits = session.position();
            return value;
        case Kind::kMemory: {
            auto address = evaluate_node(*node.left, moment);
            if (!address) return address;
            auto bits = read_memory(session, address->bits, node.number);
            if (!bits) return std::unexpected(bits.error());
            value.bits = *bits;
            return value;
        }
        case Kind::kCell: {
            auto row = evaluate_node(*node.left, moment);
            if (!row) return row;
            if (row->bits >= node.table->rows) {
                return fail("{}[{}]: the table has rows 0 to {}", node.table->name, row->bits,
                            node.table->rows - 1);
            }
            const Cell cell = read_cell(session.sram(), *node.table, row->bits, *node.field);
            value.bits = cell.bits;
            value.text = cell.text;
            if (cell.format == ORR_FORMAT_SIGNED && cell.bytes < 8) {
                const unsigned unused = 64 - 8u * cell.bytes;
                value.bits =
                    static_cast<std::uint64_t>(static_cast<std::int64_t>(cell.bits << unused) >> unused);
            }
            return value;
        }
        case Kind::kEvent:
            return event_value(node, moment.record);
        case Kind::kNot:
        case Kind::kInvert:
        case Kind::kNegate: {
            auto operand = evaluate_node(*node.left, moment);
            if (!operand) return operand;
            if (node.kind == Kind::kNot) {
                value.format = ORR_FORMAT_BOOL;
                value.bits = !operand->present || operand->bits == 0;
                return value;
            }
            operand->bits = node.kind == Kind::kInvert ? ~operand->bits : 0 - operand->bits;
            if (node.kind == Kind::kNegate) {
                operand->is_signed = true;
                operand->format = ORR_FORMAT_SIGNED;
            }
            operand->list = "";
            return operand;
        }
        case Kind::kBinary:
            break;
    }
    auto left = evaluate_node(*node.left, moment);
    if (!left) return left;
    if (node.op == Op::kAnd || node.op == Op::kOr) {
        const bool first = left->present && left->bits != 0;
        Value result;
        result.format = ORR_FORMAT_BOOL;
        result.bits = first;
        if (first == (node.op == Op::kOr)) return result;
        auto right = evaluate_node(*node.right, moment);
        if (!right) return right;
        result.bits = right->present && right->bits != 0;
        return result;
    }
    auto right = evaluate_node(*node.right, moment);
    if (!right) return right;
    return apply(node.op, *left, *right);
}

}  // namespace

Expression::Expression() = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

Result<Value> Expression::evaluate(const Moment& moment) const {
    return evaluate_node(*root_, moment);
}

bool Expression::holds(const Moment& moment) const {
    const auto value = evaluate(moment);
    return value && value->present && value->bits != 0;
}

std::string show(const Value& value, const Program& program) {
    if (!value.present) return "nothing (there is no such record at this position)";
    if (!value.list.empty()) {
        for (const std::string_view word : words_of(value.list))
            if (number_of(value.list, word) == value.bits) return fmt::format("{} ({})", word, value.bits);
    }
    switch (value.format) {
        case ORR_FORMAT_TEXT:
            return fmt::format("\"{}\"", value.text);
        case ORR_FORMAT_BOOL:
            return value.bits != 0 ? "true" : "false";
        case ORR_FORMAT_TIME:
            if (value.is_signed && static_cast<std::int64_t>(value.bits) < 0)
                return fmt::format("-{} (-{} ps)", duration(0 - value.bits), 0 - value.bits);
            return value.bits < 1000 ? fmt::format("{} ps", value.bits)
                                     : fmt::format("{} ({} ps)", duration(value.bits), value.bits);
        case ORR_FORMAT_HEX:
            return fmt::format("{:#x}", value.bits);
        default:
            break;
    }
    if (value.is_signed) return fmt::format("{}", static_cast<std::int64_t>(value.bits));
    if (value.is_address) {
        const std::string where = program.where(value.bits);
        return fmt::format("{:#x} ({}){}", value.bits, value.bits, where.empty() ? "" : " <" + where + ">");
    }
    if (value.bits < 10) return fmt::format("{}", value.bits);
    return fmt::format("{} ({:#x})", value.bits, value.bits);
}

}  // namespace orrery::step
