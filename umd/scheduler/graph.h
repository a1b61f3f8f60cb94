// A graph as the user describes it: nodes and the order between them. See graph_exec.h for how it runs.
#pragma once

#include <orrery/graph.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "umd/runtime/runtime.h"
#include "umd/runtime/transfer.h"

namespace orrery::umd {

enum class NodeKind : std::uint8_t {
    kPacket,
    kHostCall,
    kEmpty,
    kEventRecord,
    kEventWait,
    kByHost,  // instantiated graphs only: `between`, through the host's memory
    kRelay,   // likewise: a thread of the host passes on that what comes before is done
};

// A copy between memory of two cards.
struct BetweenCards {
    Transfer transfer;
    StagedCopy copy;
};

struct GraphNode {
    NodeKind kind = NodeKind::kEmpty;
    std::vector<std::uint32_t> after;
    int device = kHost;  // kPacket: that runs it; kEmpty, events: if no neighbour says better
    // kPacket
    orr_packet packet{};
    OpNote note;
    std::vector<std::byte>
        args;                // a kernel's, or a copy's descriptor: their place is known when the graph is
    unsigned args_word = 1;  // instantiated, and put into this word of the packet
    bool kernel = false;     // may write to all peers of its device
    std::weak_ptr<Module> module;  // a kernel's; its code may not be there any more when this has expired
    std::uint64_t writes_to = 0;   // a copy's: bits of other devices
    std::shared_ptr<const BetweenCards> between;  // a packet's that is such a copy
    // kHostCall
    orrHostFn_t function = nullptr;
    void* user = nullptr;
    // kEventRecord, kEventWait
    std::shared_ptr<Event> event;
};

// Threads: one at a time; those who share it hold lock() around each use.
class Graph {
  public:
    Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
    // The nodes as they are now; takes the lock.
    std::vector<GraphNode> copy_nodes();

    // Adds the node; its number.
    Result<std::uint32_t> add(GraphNode node);
    // The nodes of another graph, behind `after`; the node that stands for all of them.
    Result<std::uint32_t> add_child(std::vector<GraphNode> child, std::vector<std::uint32_t> after);
    Status add_edge(std::uint32_t from, std::uint32_t to);
    const std::vector<GraphNode>& nodes() const { return nodes_; }

    // Nodes as user code holds them: numbers in a pointer's clothes, as handle_table.h does it.
    orrGraphNode_t handle(std::uint32_t node) const;
    Result<std::uint32_t> number(orrGraphNode_t handle) const;

    static constexpr std::uint32_t kMaxNodes = 1u << 20;

  private:
    std::mutex mutex_;
    std::uint32_t serial_;
    std::vector<GraphNode> nodes_;
};

// Nodes of checked arguments, without their order. flags: orrLaunch*
Result<GraphNode> kernel_node(const Function& function, orrDim3 grid, orrDim3 block,
                              std::span<const std::byte> args, std::size_t local_bytes, std::uint64_t flags);
// device: that runs it; nothing: the source's card, else the destination's.
Result<GraphNode> copy_node(Runtime& runtime, const Transfer& transfer, std::optional<int> device);
Result<GraphNode> box_copy_node(Runtime& runtime, const BoxCopy& copy, std::optional<int> device);
Result<GraphNode> fill_node(Runtime& runtime, const CheckedFill& fill, std::optional<int> device);
// device: that runs it; nothing: the destination's card, else the source's.
Result<GraphNode> reduce_node(Runtime& runtime, const Reduction& reduction, std::optional<int> device);

// Of a node that is a copy between cards, how it goes now: by its packet over links, or kByHost.
Status choose_way(Runtime& runtime, GraphNode& node);

}  // namespace orrery::umd
