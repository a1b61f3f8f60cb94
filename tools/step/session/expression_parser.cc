#include <orrery/fw/inspect.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "tools/records/names.h"
#include "tools/step/program/disassemble.h"
#include "tools/step/session/expression_node.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

struct Csr {
    std::string_view name;
    std::uint64_t emu::HartState::* member;
};
constexpr std::array kCsrs = {
    Csr{"mstatus", &emu::HartState::mstatus},   Csr{"mie", &emu::HartState::mie},
    Csr{"mip", &emu::HartState::mip},           Csr{"mtvec", &emu::HartState::mtvec},
    Csr{"mscratch", &emu::HartState::mscratch}, Csr{"mepc", &emu::HartState::mepc},
    Csr{"mcause", &emu::HartState::mcause},     Csr{"mtval", &emu::HartState::mtval},
    Csr{"mcycle", &emu::HartState::mcycle},     Csr{"minstret", &emu::HartState::minstret},
};

struct BinaryOp {
    std::string_view text;
    int level;
    Op op;
};
// Longer ones before those that they begin with.
constexpr std::array kBinary = {
    BinaryOp{"||", 1, Op::kOr},        BinaryOp{"&&", 2, Op::kAnd},
    BinaryOp{"==", 6, Op::kEqual},     BinaryOp{"!=", 6, Op::kDiffer},
    BinaryOp{"<<", 8, Op::kShiftLeft}, BinaryOp{">>", 8, Op::kShiftRight},
    BinaryOp{"<=", 7, Op::kLessEqual}, BinaryOp{">=", 7, Op::kGreaterEqual},
    BinaryOp{"<", 7, Op::kLess},       BinaryOp{">", 7, Op::kGreater},
    BinaryOp{"|", 3, Op::kBitOr},      BinaryOp{"^", 4, Op::kBitXor},
    BinaryOp{"&", 5, Op::kBitAnd},     BinaryOp{"+", 9, Op::kAdd},
    BinaryOp{"-", 9, Op::kSubtract},   BinaryOp{"*", 10, Op::kMultiply},
    BinaryOp{"/", 10, Op::kDivide},    BinaryOp{"%", 10, Op::kRemainder},
};

struct EventField {
    std::string_view name;
    Node::Selector selector;
    std::string_view list;
};
constexpr std::array kEventFields = {
    EventField{"event.type", Node::Selector::kType, "event"},
    EventField{"event.queue", Node::Selector::kQueue, ""},
    EventField{"event.a", Node::Selector::kA, ""},
    EventField{"event.b", Node::Selector::kB, ""},
    EventField{"decision.queue", Node::Selector::kDecisionQueue, ""},
    EventField{"decision.rule", Node::Selector::kDecisionRule, "rule"},
    EventField{"decision.resource", Node::Selector::kDecisionResource, "resource"},
    EventField{"decision.candidates", Node::Selector::kDecisionCandidates, ""},
    EventField{"decision.index", Node::Selector::kDecisionIndex, ""},
};

std::optional<unsigned> register_number(std::string_view name) {
    for (unsigned i = 0; i < 32; ++i)
        if (name == register_name(i) || name == fmt::format("x{}", i)) return i;
    if (name == "fp") return 8u;
    return std::nullopt;
}

}  // namespace

class ExpressionParser {
  public:
    ExpressionParser(std::string_view text, const Meanings& meanings) : text_(text), meanings_(meanings) {}

    Result<Expression> run() {
        result_.text_ = std::string(text_);
        auto root = binary(1);
        if (!root) return std::unexpected(root.error());
        skip();
        if (at_ < text_.size()) return wrong("did not expect this");
        result_.root_ = std::move(*root);
        return std::move(result_);
    }

  private:
    void skip() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
            ++at_;
    }
    bool take(std::string_view token) {
        skip();
        if (!text_.substr(at_).starts_with(token)) return false;
        at_ += token.size();
        return true;
    }
    std::unexpected<Error> wrong(std::string_view what) const {
        const std::string_view rest = text_.substr(std::min(at_, text_.size()));
        return fail("{} at {} ('help print' shows what expressions can be)", what,
                    rest.empty() ? "the end" : fmt::format("'{}'", rest));
    }
    static NodePtr make(Kind kind, NodePtr left = nullptr) {
        auto node = std::make_unique<Node>();
        node->kind = kind;
        node->left = std::move(left);
        return node;
    }

    Result<NodePtr> binary(int level) {
        if (++depth_ > 200) return fail("the expression is nested too deeply");
        auto left = level > 10 ? unary() : binary(level + 1);
        --depth_;
        while (left) {
            skip();
            const auto op = std::ranges::find_if(
                kBinary, [&](const BinaryOp& o) { return text_.substr(at_).starts_with(o.text); });
            if (op == kBinary.end() || op->level != level) return left;
            at_ += op->text.size();
            // A word on the right means what it means for what stands on the left.
            const std::string_view outer = hint_;
            hint_ = is_comparison(op->op) ? (*left)->value.list : "";
            auto right = level >= 10 ? unary() : binary(level + 1);
            hint_ = outer;
            if (!right) return right;
            auto node = make(Kind::kBinary, std::move(*left));
            node->op = op->op;
            node->right = std::move(*right);
            left = std::move(node);
        }
        return left;
    }

    Result<NodePtr> unary() {
        if (++depth_ > 200) return fail("the expression is nested too deeply");
        auto result = unary_inner();
        --depth_;
        return result;
    }

    Result<NodePtr> unary_inner() {
        for (const auto& [token, kind] :
             {std::pair{"!", Kind::kNot}, {"~", Kind::kInvert}, {"-", Kind::kNegate}}) {
            if (!take(token)) continue;
            auto operand = unary();
            if (!operand) return operand;
            return make(kind, std::move(*operand));
        }
        if (take("*")) {
            auto address = unary();
            if (!address) return address;
            return memory(std::move(*address), 8);
        }
        if (take("&")) {
            skip();
            const std::size_t from = at_;
            const std::string_view name = word();
            if (const Symbol* symbol = find_symbol(name)) return address(symbol->address);
            auto inlined = code(name);
            if (!inlined || *inlined) return inlined;
            at_ = from;
            return wrong("there is no symbol of this name");
        }
        if (take("(")) {
            auto inner = binary(1);
            if (!inner) return inner;
            if (!take(")")) return wrong("expected ')'");
            return inner;
        }
        skip();
        if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return number();
        return name();
    }

    Result<NodePtr> number() {
        const std::size_t from = at_;
        while (at_ < text_.size() &&
               (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '.'))
            ++at_;
        const std::string_view token = text_.substr(from, at_ - from);
        auto node = make(Kind::kConstant);
        if (auto plain = parse_number(token)) {
            node->value.bits = *plain;
            // "12 us" with a space
            const std::size_t before = at_;
            skip();
            const std::size_t unit_at = at_;
            while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0)
                ++at_;
            if (auto time = parse_time(fmt::format("{}{}", token, text_.substr(unit_at, at_ - unit_at)));
                time && at_ > unit_at) {
                node->value.bits = *time;
                node->value.format = ORR_FORMAT_TIME;
            } else {
                at_ = before;
            }
            return node;
        }
        if (auto time = parse_time(token)) {
            node->value.bits = *time;
            node->value.format = ORR_FORMAT_TIME;
            return node;
        }
        at_ = from;
        return wrong("neither a number nor a time");
    }

    std::string_view word() {
        const std::size_t from = at_;
        const auto in_word = [&](std::size_t i) {
            const char c = text_[i];
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
                   c == ':';
        };
        while (at_ < text_.size() && in_word(at_))
            ++at_;
        return text_.substr(from, at_ - from);
    }

    const Symbol* find_symbol(std::string_view name) const {
        return meanings_.program == nullptr ? nullptr : meanings_.program->symbol(name);
    }

    NodePtr address(std::uint64_t value) {
        auto node = make(Kind::kConstant);
        node->value.bits = value;
        node->value.is_address = true;
        return node;
    }

    // The address of a function that has no symbol, as it was inlined; null: there is none.
    Result<NodePtr> code(std::string_view name) {
        if (meanings_.program == nullptr) return NodePtr();
        const auto function = meanings_.program->function(name);
        if (!function) return std::unexpected(function.error());
        if (!*function) return NodePtr();
        const Place& place = **function;
        if (place.entries.size() > 1) {
            return fail("'{}' was inlined at {} places and has no single address; 'break {}' stops at each",
                        name, place.entries.size(), name);
        }
        return address(place.entries.front());
    }

    NodePtr memory(NodePtr address, unsigned bytes) {
        if (address->kind == Kind::kConstant) {
            if (result_.memory_) result_.memory_->push_back({address->value.bits, bytes, false, true});
        } else {
            result_.memory_.reset();
        }
        auto node = make(Kind::kMemory, std::move(address));
        node->number = bytes;
        return node;
    }

    Result<NodePtr> cell(const Inspect::Table& table) {
        auto row = binary(1);
        if (!row) return row;
        if (!take("]")) return wrong("expected ']'");
        if (!take("."))
            return wrong(fmt::format("expected a field of \"{}\", as in {}[0].{}", table.name, table.name,
                                     table.fields.empty() ? "" : table.fields.front().name));
        const std::size_t from = at_;
        const std::string_view field_name = word();
        const Inspect::Field* field = table.field(field_name);
        if (field == nullptr) {
            at_ = from;
            std::string known;
            for (const auto& f : table.fields)
                known += (known.empty() ? "" : ", ") + f.name;
            return fail("\"{}\" has no field '{}'; it has {}", table.name, field_name, known);
        }
        auto node = make(Kind::kCell);
        node->table = &table;
        node->field = field;
        node->value.format = field->format;
        node->value.is_signed = field->format == ORR_FORMAT_SIGNED;
        if (field->format == ORR_FORMAT_STATE) node->value.list = "state";
        if (field->name == "priority") node->value.list = "class";
        if ((*row)->kind == Kind::kConstant) {
            if ((*row)->value.bits >= table.rows) {
                return fail("{}[{}]: the table has rows 0 to {}", table.name, (*row)->value.bits,
                            table.rows - 1);
            }
            if (result_.memory_) {
                result_.memory_->push_back(
                    {address_of(table, (*row)->value.bits, *field), field->bytes, false, true});
            }
        } else {
            result_.memory_.reset();
        }
        node->left = std::move(*row);
        return node;
    }

    Result<NodePtr> name() {
        const std::size_t from = at_;
        std::string_view token = word();
        if (token.empty()) return wrong("expected a value");
        const bool dollar = token.starts_with('$');
        if (dollar) token.remove_prefix(1);
        if (const auto number = register_number(token)) {
            result_.uses_registers_ = true;
            auto node = make(Kind::kRegister);
            node->number = *number;
            node->value.is_address = true;
            return node;
        }
        if (token == "pc") {
            result_.uses_registers_ = true;
            auto node = make(Kind::kPc);
            node->value.is_address = true;
            return node;
        }
        for (const Csr& csr : kCsrs) {
            if (token != csr.name) continue;
            result_.uses_registers_ = true;
            auto node = make(Kind::kCsr);
            node->csr = csr.member;
            node->value.is_address = true;
            return node;
        }
        if (dollar) {
            at_ = from;
            return wrong("there is no register of this name");
        }
        if (token == "time" || token == "step") {
            result_.uses_time_ = true;
            auto node = make(token == "time" ? Kind::kTime : Kind::kStep);
            if (token == "time") node->value.format = ORR_FORMAT_TIME;
            return node;
        }
        for (const EventField& field : kEventFields) {
            if (token != field.name) continue;
            result_.uses_event_ = true;
            auto node = make(Kind::kEvent);
            node->selector = field.selector;
            node->value.list = field.list;
            return node;
        }
        for (const auto& [read, bytes] : {std::pair{"u8", 1u}, {"u16", 2u}, {"u32", 4u}, {"u64", 8u}}) {
            if (token != read || !take("(")) continue;
            auto address = binary(1);
            if (!address) return address;
            if (!take(")")) return wrong("expected ')'");
            return memory(std::move(*address), bytes);
        }
        if (meanings_.inspect != nullptr) {
            if (const Inspect::Table* table = meanings_.inspect->table(token); table != nullptr && take("["))
                return cell(*table);
        }
        if (meanings_.inspect == nullptr && take("["))
            return fail("the firmware of this recording does not describe its tables: no {}[...]", token);
        const std::size_t dot = token.find('.');
        std::string_view list = dot == std::string_view::npos ? hint_ : token.substr(0, dot);
        const std::string_view plain = dot == std::string_view::npos ? token : token.substr(dot + 1);
        auto number = number_of(list, plain);
        if (!number && dot == std::string_view::npos) number = number_of("", plain);
        if (number) {
            auto node = make(Kind::kConstant);
            node->value.bits = *number;
            return node;
        }
        if (token == "true" || token == "false") {
            auto node = make(Kind::kConstant);
            node->value.bits = token == "true";
            node->value.format = ORR_FORMAT_BOOL;
            return node;
        }
        if (const Symbol* symbol = find_symbol(token)) {
            const std::uint64_t bytes = symbol->bytes;
            if (symbol->code || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
                return address(symbol->address);
            return memory(address(symbol->address), static_cast<unsigned>(bytes));
        }
        if (auto inlined = code(token); !inlined || *inlined) return inlined;
        at_ = from;
        return wrong("neither a register, nor a table, a word or a symbol");
    }

    std::string_view text_;
    const Meanings& meanings_;
    std::size_t at_ = 0;
    int depth_ = 0;
    std::string_view hint_;
    Expression result_;
};

Result<Expression> Expression::parse(std::string_view text, const Meanings& meanings) {
    if (text.size() > 4096) return fail("the expression is longer than 4,096 characters");
    return ExpressionParser(text, meanings).run();
}

std::vector<std::string> operand_names(const Meanings& meanings) {
    std::vector<std::string> names = {"pc", "time", "step", "u8(", "u16(", "u32(", "u64("};
    for (unsigned i = 0; i < 32; ++i)
        names.emplace_back(register_name(i));
    for (const Csr& csr : kCsrs)
        names.emplace_back(csr.name);
    for (const EventField& field : kEventFields)
        names.emplace_back(field.name);
    for (const std::string_view list : word_lists())
        for (const std::string_view word : words_of(list))
            names.emplace_back(word);
    if (meanings.inspect != nullptr)
        for (const auto& table : meanings.inspect->tables())
            names.push_back(table.name + "[");
    if (meanings.program != nullptr) {
        for (const Symbol& symbol : meanings.program->symbols())
            if (!symbol.code) names.push_back(symbol.name);
        for (std::string& name : meanings.program->function_names())
            names.push_back(std::move(name));
    }
    return names;
}

}  // namespace orrery::step
