// The inside of Expression: its tree. For the parser and the evaluation only.
#pragma once

#include "tools/step/session/expression.h"

namespace orrery::step {

struct Expression::Node {
    enum class Kind : std::uint8_t {
        kConstant,
        kRegister,  // number
        kPc,
        kCsr,  // member
        kTime,
        kStep,
        kMemory,  // left: address; bytes
        kCell,    // table, field, row
        kEvent,   // selector
        kNot,
        kInvert,
        kNegate,
        kBinary,  // op
    };
    enum class Op : std::uint8_t {
        kOr,
        kAnd,
        kBitOr,
        kBitXor,
        kBitAnd,
        kEqual,
        kDiffer,
        kLess,
        kLessEqual,
        kGreater,
        kGreaterEqual,
        kShiftLeft,
        kShiftRight,
        kAdd,
        kSubtract,
        kMultiply,
        kDivide,
        kRemainder
    };
    enum class Selector : std::uint8_t {
        kType,
        kQueue,
        kA,
        kB,
        kDecisionQueue,
        kDecisionRule,
        kDecisionResource,
        kDecisionCandidates,
        kDecisionIndex
    };

    Kind kind = Kind::kConstant;
    Op op{};
    Selector selector{};
    unsigned number = 0;  // register, bytes
    std::uint64_t emu::HartState::* csr = nullptr;
    const Inspect::Table* table = nullptr;
    const Inspect::Field* field = nullptr;
    Value value;  // of a constant; for others the format and list of the result
    std::unique_ptr<Node> left, right;
};

using Node = Expression::Node;
using NodePtr = std::unique_ptr<Node>;
using Kind = Node::Kind;
using Op = Node::Op;

inline bool is_comparison(Op op) {
    return op >= Op::kEqual && op <= Op::kGreaterEqual;
}

}  // namespace orrery::step
