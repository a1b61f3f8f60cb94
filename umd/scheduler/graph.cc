#include "umd/scheduler/graph.h"

#include <atomic>
#include <utility>

#include "umd/runtime/launch.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/transfer.h"

namespace orrery::umd {
namespace {

constexpr std::uintptr_t kNodeMark = handle_mark(HandleKind::kGraphNode);
constexpr unsigned kNodeBits = 20;
static_assert(Graph::kMaxNodes == 1u << kNodeBits);

std::uint32_t next_serial() {
    static std::atomic<std::uint32_t> serial{0};
    return ++serial;
}

bool is_between_cards(const Transfer& transfer) {
    return transfer.bytes != 0 && transfer.dst_memory && transfer.src_memory &&
           transfer.dst_memory->device != kHost && transfer.src_memory->device != kHost &&
           transfer.dst_memory->device != transfer.src_memory->device;
}

// Whether a card does it, and what it writes to; false: not one alone.
Result<bool> check_packet(Runtime& runtime, const Transfer& transfer, const StagedCopy& copy,
                          GraphNode& node) {
    node.writes_to = 0;
    ORR_TRY(context, runtime.context(node.device));
    ORR_TRY(other, staged_with(runtime, transfer, **context));
    if (*other != nullptr) return false;
    if (copy.type != 0) {
        ORR_TRY(reached, reachable(runtime, {.transfer = transfer, .type = copy.type}, node.device));
        return true;
    }
    ORR_TRY(peers, check_reach(runtime, transfer, node.device));
    for (const Context* peer : *peers)
        node.writes_to |= 1ull << peer->device();
    return true;
}

// Of a copy between memory that cards use, without its packet; of nothing: one that does nothing.
Result<GraphNode> node_of_copy(Runtime& runtime, const Transfer& transfer, const StagedCopy& copy,
                               int device) {
    GraphNode node;
    node.device = device;
    ORR_TRY(can, check_packet(runtime, transfer, copy, node));
    if (transfer.bytes == 0) return node;
    node.kind = NodeKind::kPacket;
    node.note = {Op::kCopy, nullptr};
    if (is_between_cards(transfer))
        node.between = std::make_shared<const BetweenCards>(BetweenCards{transfer, copy});
    return node;
}

int copying_device(Runtime& runtime, const Transfer& transfer, std::optional<int> device) {
    return device.value_or(executing_device(runtime, transfer).value_or(current_device()));
}

}  // namespace

Graph::Graph() : serial_(next_serial()) {}

Result<std::uint32_t> Graph::add(GraphNode node) {
    if (nodes_.size() == kMaxNodes) {
        return fail(orrErrorOutOfMemory, "a graph has at most {} nodes: split it", kMaxNodes);
    }
    nodes_.push_back(std::move(node));
    return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::vector<GraphNode> Graph::copy_nodes() {
    const auto held = lock();
    return nodes_;
}

Result<std::uint32_t> Graph::add_child(std::vector<GraphNode> child, std::vector<std::uint32_t> after) {
    if (child.size() + 1 > kMaxNodes - nodes_.size()) {
        return fail(orrErrorOutOfMemory, "a graph has at most {} nodes: split it", kMaxNodes);
    }
    const auto base = static_cast<std::uint32_t>(nodes_.size());
    std::vector<bool> has_successor(child.size());
    for (GraphNode& node : child) {
        for (std::uint32_t& before : node.after) {
            has_successor[before] = true;
            before += base;
        }
        if (node.after.empty()) node.after = after;
        nodes_.push_back(std::move(node));
    }
    GraphNode end;
    if (child.empty()) end.after = std::move(after);
    for (std::size_t i = 0; i < child.size(); ++i) {
        if (!has_successor[i]) end.after.push_back(base + static_cast<std::uint32_t>(i));
    }
    // A cycle in the child leaves no last node; instantiating finds it.
    return add(std::move(end));
}

Status Graph::add_edge(std::uint32_t from, std::uint32_t to) {
    if (from == to) return fail(orrErrorInvalidValue, "node {} cannot depend on itself", from);
    nodes_[to].after.push_back(from);
    return {};
}

orrGraphNode_t Graph::handle(std::uint32_t node) const {
    return reinterpret_cast<orrGraphNode_t>(kNodeMark | std::uintptr_t{serial_} << kNodeBits | node);
}

Result<std::uint32_t> Graph::number(orrGraphNode_t handle) const {
    const auto bits = reinterpret_cast<std::uintptr_t>(handle);
    const auto node = static_cast<std::uint32_t>(bits & (kMaxNodes - 1));
    if (bits - node != (kNodeMark | std::uintptr_t{serial_} << kNodeBits) || node >= nodes_.size()) {
        return fail(orrErrorInvalidHandle, "{} is not a node of this graph", fmt::ptr(handle));
    }
    return node;
}

Result<GraphNode> kernel_node(const Function& function, orrDim3 grid, orrDim3 block,
                              std::span<const std::byte> args, std::size_t local_bytes, std::uint64_t flags) {
    ORR_TRY(valid, check_launch(grid, block, args.data(), args.size(), local_bytes));
    GraphNode node;
    node.kind = NodeKind::kPacket;
    node.device = function.context->device();
    ORR_TRY(packet, make_launch(function, grid, block, local_bytes, flags));
    node.packet = *packet;
    node.note = {Op::kKernel, function.name};
    node.args.assign(args.begin(), args.end());
    node.kernel = true;
    node.module = function.module;
    return node;
}

Result<GraphNode> copy_node(Runtime& runtime, const Transfer& transfer, std::optional<int> device) {
    if (!transfer.src_memory || !transfer.dst_memory) {
        return fail(orrErrorInvalidValue,
                    "the {} of a copy in a graph is ordinary host memory, which may be another one at the "
                    "launch: use memory of orrMallocHost",
                    transfer.src_memory ? "destination" : "source");
    }
    const StagedCopy staged{.box = make_box(transfer.dst, transfer.src, transfer.shape)};
    ORR_TRY(node, node_of_copy(runtime, transfer, staged, copying_device(runtime, transfer, device)));
    if (transfer.bytes == 0) return node;
    node->packet = make_copy(transfer.dst, transfer.src, transfer.shape, true);
    return node;
}

Result<GraphNode> box_copy_node(Runtime& runtime, const BoxCopy& copy, std::optional<int> device) {
    ORR_TRY(node, node_of_copy(runtime, copy.transfer, {.box = copy.box},
                               copying_device(runtime, copy.transfer, device)));
    if (copy.transfer.bytes == 0) return node;
    node->packet = make_box_copy();
    node->args_word = kBoxCopyWord;
    const auto descriptor = std::as_bytes(std::span(&copy.box, 1));
    node->args.assign(descriptor.begin(), descriptor.end());
    return node;
}

Result<GraphNode> fill_node(Runtime& runtime, const CheckedFill& fill, std::optional<int> device) {
    const int owner = fill.memory.device == kHost ? current_device() : fill.memory.device;
    const int runner = device.value_or(owner);
    ORR_TRY(peers, peers_written(runtime, runner, fill.memory));
    GraphNode node;
    node.device = runner;
    if (fill.bytes == 0) return node;
    node.kind = NodeKind::kPacket;
    node.packet = make_fill(fill.filling);
    node.note = {Op::kFill, nullptr};
    for (const Context* peer : *peers)
        node.writes_to |= 1ull << peer->device();
    return node;
}

Result<GraphNode> reduce_node(Runtime& runtime, const Reduction& reduction, std::optional<int> device) {
    const Transfer& transfer = reduction.transfer;
    const StagedCopy staged{.box = make_box(transfer.dst, transfer.src, transfer.shape),
                            .type = reduction.type,
                            .function = reduction.function};
    ORR_TRY(node, node_of_copy(runtime, transfer, staged,
                               device.value_or(executing_device(reduction).value_or(current_device()))));
    if (transfer.bytes != 0) node->packet = reduction.packet();
    return node;
}

Status choose_way(Runtime& runtime, GraphNode& node) {
    if (node.between == nullptr) return {};
    auto now = std::make_shared<BetweenCards>(*node.between);
    Transfer& transfer = now->transfer;
    for (auto [memory, va] :
         {std::pair(&transfer.dst_memory, transfer.dst), std::pair(&transfer.src_memory, transfer.src)}) {
        const int device = (*memory)->device;
        *memory = runtime.memory().find(va);
        if (*memory && (*memory)->device == device) continue;
        return fail(orrErrorInvalidValue, "memory of a copy in the graph is gone: {:#x} is {}", va,
                    runtime.memory().describe(va));
    }
    ORR_TRY(can, check_packet(runtime, transfer, now->copy, node));
    node.kind = *can ? NodeKind::kPacket : NodeKind::kByHost;
    node.between = std::move(now);
    return {};
}

}  // namespace orrery::umd
