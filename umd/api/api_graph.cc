#include "umd/api/copies.h"
#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/runtime/transfer.h"
#include "umd/scheduler/capture.h"
#include "umd/scheduler/graph_exec.h"

using namespace orrery::umd;

namespace {

using GraphRef = decltype(Runtime::graphs)::Ref;

Result<GraphRef> find_graph(Runtime& runtime, orrGraph_t handle) {
    auto graph = runtime.graphs.find(handle);
    if (!graph) return std::unexpected(bad_handle("graph", handle).error());
    return graph;
}

Result<std::vector<std::uint32_t>> numbers(const Graph& graph, const orrGraphNode_t* nodes,
                                           std::size_t count) {
    if (nodes == nullptr && count != 0) return std::unexpected(null_argument("dependencies").error());
    std::vector<std::uint32_t> result;
    for (std::size_t i = 0; i < count; ++i) {
        ORR_TRY(number, graph.number(nodes[i]));
        result.push_back(*number);
    }
    return result;
}

// The frame of all functions that add a node: `make` gives it without its order.
template <typename Make>
orrError_t add_node(orrGraphNode_t* node, orrGraph_t handle, const orrGraphNode_t* dependencies,
                    std::size_t count, Make&& make) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(graph, find_graph(runtime, handle));
        ORR_TRY(made, make(runtime));
        const auto lock = (*graph)->lock();
        ORR_TRY(after, numbers(**graph, dependencies, count));
        made->after = std::move(*after);
        ORR_TRY(number, (*graph)->add(std::move(*made)));
        if (node != nullptr) *node = (*graph)->handle(*number);
        return {};
    });
}

Result<GraphNode> event_node(Runtime& runtime, NodeKind kind, orrEvent_t event) {
    GraphNode node;
    node.kind = kind;
    node.device = current_device();
    node.event = runtime.events.find_shared(event);
    if (node.event == nullptr) return std::unexpected(bad_handle("event", event).error());
    return node;
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrGraphCreate(orrGraph_t* graph, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (graph == nullptr) return null_argument("graph");
        ORR_TRY(known, check_flags(flags, 0, "orrGraphCreate"));
        ORR_TRY(handle, give_handle(runtime.graphs, std::make_shared<Graph>(), "graphs"));
        *graph = static_cast<orrGraph_t>(*handle);
        return {};
    });
}

orrError_t orrGraphDestroy(orrGraph_t graph) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (runtime.graphs.remove(graph) == nullptr) return bad_handle("graph", graph);
        return {};
    });
}

orrError_t orrGraphAddKernelNode(orrGraphNode_t* node, orrGraph_t graph, const orrGraphNode_t* dependencies,
                                 size_t count, const orrKernelNodeParams* params) {
    return add_node(node, graph, dependencies, count, [&](Runtime& runtime) -> Result<GraphNode> {
        ORR_TRY(given, read_struct(params, "orrKernelNodeParams"));
        ORR_TRY(known, check_flags(given->flags, orrLaunchCooperative, "orrKernelNodeParams"));
        const auto function = runtime.functions.find(given->function);
        if (!function) return std::unexpected(bad_handle("function", given->function).error());
        if (given->args == nullptr && given->bytes != 0) {
            return std::unexpected(null_argument("orrKernelNodeParams::args").error());
        }
        const Function* kernel = &*function;
        if (function->context == nullptr) {
            ORR_TRY(context, runtime.current_context());
            ORR_TRY(there, function->on(**context));
            kernel = *there;
        }
        return kernel_node(*kernel, given->grid, given->block,
                           {static_cast<const std::byte*>(given->args), given->bytes}, given->local_bytes,
                           given->flags);
    });
}

orrError_t orrGraphAddMemcpyNode(orrGraphNode_t* node, orrGraph_t graph, const orrGraphNode_t* dependencies,
                                 size_t count, void* dst, const void* src, size_t bytes, orrMemcpyKind kind) {
    return add_node(node, graph, dependencies, count, [&](Runtime& runtime) -> Result<GraphNode> {
        ORR_TRY(transfer, check_transfer(runtime, dst, src, bytes, kind));
        return copy_node(runtime, *transfer, std::nullopt);
    });
}

orrError_t orrGraphAddMemsetNode(orrGraphNode_t* node, orrGraph_t graph, const orrGraphNode_t* dependencies,
                                 size_t count, void* dst, int value, size_t bytes) {
    return add_node(node, graph, dependencies, count, [&](Runtime& runtime) -> Result<GraphNode> {
        ORR_TRY(fill, check_fill(runtime, dst, static_cast<std::uint8_t>(value), 1, 0, bytes, 1));
        return fill_node(runtime, *fill, std::nullopt);
    });
}

orrError_t orrGraphAddMemcpy3DNode(orrGraphNode_t* node, orrGraph_t graph, const orrGraphNode_t* dependencies,
                                   size_t count, const orrMemcpy3DParams* params) {
    return add_node(node, graph, dependencies, count, [&](Runtime& runtime) -> Result<GraphNode> {
        ORR_TRY(transfer, check_box(runtime, params));
        return copy_node(runtime, *transfer, std::nullopt);
    });
}

orrError_t orrGraphAddMemcpyNDNode(orrGraphNode_t* node, orrGraph_t graph, const orrGraphNode_t* dependencies,
                                   size_t count, const orrMemcpyNDParams* params) {
    return add_node(node, graph, dependencies, count, [&](Runtime& runtime) -> Result<GraphNode> {
        ORR_TRY(copy, check_box_copy(runtime, params));
        return box_copy_node(runtime, *copy, std::nullopt);
    });
}

orrError_t orrGraphAddMemset2DNode(orrGraphNode_t* node, orrGraph_t graph, const orrGraphNode_t* dependencies,
                                   size_t count, const orrMemsetNodeParams* params) {
    return add_node(node, graph, dependencies, count, [&](Runtime& runtime) -> Result<GraphNode> {
        ORR_TRY(given, read_struct(params, "orrMemsetNodeParams"));
        const std::size_t bytes = given->value_bytes;
        if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
            return fail(orrErrorInvalidValue,
                        "orrMemsetNodeParams::value_bytes is {}: it can be 1, 2, 4 or 8", bytes);
        }
        if (given->width % bytes != 0) {
            return fail(orrErrorInvalidValue, "rows of {} bytes are no multiple of the value's {} bytes",
                        given->width, bytes);
        }
        ORR_TRY(fill, check_fill(runtime, given->dst, given->value, static_cast<std::uint32_t>(bytes),
                                 given->pitch, given->width, given->height));
        return fill_node(runtime, *fill, std::nullopt);
    });
}

orrError_t orrGraphAddReduceNode(orrGraphNode_t* node, orrGraph_t graph, const orrGraphNode_t* dependencies,
                                 size_t count, void* dst, const void* src, size_t elements, orrDataType type,
                                 orrReduceOp op, unsigned flags) {
    return add_node(node, graph, dependencies, count, [&](Runtime& runtime) -> Result<GraphNode> {
        ORR_TRY(reduction, check_reduction(runtime, dst, src, elements, type, op, flags));
        return reduce_node(runtime, *reduction, std::nullopt);
    });
}

orrError_t orrGraphAddHostNode(orrGraphNode_t* node, orrGraph_t graph, const orrGraphNode_t* dependencies,
                               size_t count, orrHostFn_t function, void* user) {
    return add_node(node, graph, dependencies, count, [&](Runtime&) -> Result<GraphNode> {
        if (function == nullptr) return std::unexpected(null_argument("function").error());
        GraphNode host;
        host.kind = NodeKind::kHostCall;
        host.function = function;
        host.user = user;
        return host;
    });
}

orrError_t orrGraphAddEmptyNode(orrGraphNode_t* node, orrGraph_t graph, const orrGraphNode_t* dependencies,
                                size_t count) {
    return add_node(node, graph, dependencies, count, [&](Runtime&) -> Result<GraphNode> {
        GraphNode empty;
        empty.device = current_device();
        return empty;
    });
}

orrError_t orrGraphAddEventRecordNode(orrGraphNode_t* node, orrGraph_t graph,
                                      const orrGraphNode_t* dependencies, size_t count, orrEvent_t event) {
    return add_node(node, graph, dependencies, count,
                    [&](Runtime& runtime) { return event_node(runtime, NodeKind::kEventRecord, event); });
}

orrError_t orrGraphAddEventWaitNode(orrGraphNode_t* node, orrGraph_t graph,
                                    const orrGraphNode_t* dependencies, size_t count, orrEvent_t event) {
    return add_node(node, graph, dependencies, count,
                    [&](Runtime& runtime) { return event_node(runtime, NodeKind::kEventWait, event); });
}

orrError_t orrGraphAddChildGraphNode(orrGraphNode_t* node, orrGraph_t graph,
                                     const orrGraphNode_t* dependencies, size_t count, orrGraph_t child) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(parent, find_graph(runtime, graph));
        ORR_TRY(added, find_graph(runtime, child));
        // As it is now; the child may be the parent.
        auto copied = (*added)->copy_nodes();
        const auto lock = (*parent)->lock();
        ORR_TRY(after, numbers(**parent, dependencies, count));
        ORR_TRY(number, (*parent)->add_child(std::move(copied), std::move(*after)));
        if (node != nullptr) *node = (*parent)->handle(*number);
        return {};
    });
}

orrError_t orrGraphAddDependencies(orrGraph_t graph, const orrGraphNode_t* from, const orrGraphNode_t* to,
                                   size_t count) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, find_graph(runtime, graph));
        const auto lock = (*found)->lock();
        ORR_TRY(sources, numbers(**found, from, count));
        ORR_TRY(targets, numbers(**found, to, count));
        for (std::size_t i = 0; i < count; ++i) {
            ORR_TRY(added, (*found)->add_edge((*sources)[i], (*targets)[i]));
        }
        return {};
    });
}

orrError_t orrGraphGetNodeCount(size_t* nodes, orrGraph_t graph) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (nodes == nullptr) return null_argument("nodes");
        ORR_TRY(found, find_graph(runtime, graph));
        const auto lock = (*found)->lock();
        *nodes = (*found)->nodes().size();
        return {};
    });
}

orrError_t orrGraphInstantiate(orrGraphExec_t* exec, orrGraph_t graph, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (exec == nullptr) return null_argument("exec");
        ORR_TRY(known, check_flags(flags, 0, "orrGraphInstantiate"));
        ORR_TRY(found, find_graph(runtime, graph));
        runtime.offer_again();
        ORR_TRY(made, GraphExec::create(runtime, (*found)->copy_nodes()));
        ORR_TRY(handle, give_handle(runtime.graph_execs, std::move(*made), "instantiated graphs"));
        *exec = static_cast<orrGraphExec_t>(*handle);
        return {};
    });
}

orrError_t orrGraphLaunch(orrGraphExec_t exec, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        const auto found = runtime.graph_execs.find(exec);
        if (!found) return bad_handle("instantiated graph", exec);
        ORR_TRY(queue, runtime.stream(stream));
        if ((*queue)->capturing())
            return refuse_capture(**queue, "orrGraphLaunch (add a child graph instead)");
        runtime.offer_again();
        return found->launch(*queue);
    });
}

orrError_t orrGraphExecDestroy(orrGraphExec_t exec) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (runtime.graph_execs.remove(exec) == nullptr) return bad_handle("instantiated graph", exec);
        return {};
    });
}

orrError_t orrGraphExecGetInfo(orrGraphExecInfo* info, orrGraphExec_t exec) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(info, "orrGraphExecInfo"));
        const auto found = runtime.graph_execs.find(exec);
        if (!found) return bad_handle("instantiated graph", exec);
        return write_struct(info, found->info(), "orrGraphExecInfo");
    });
}

orrError_t orrStreamBeginCapture(orrStream_t stream, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrStreamBeginCapture"));
        if (stream == nullptr) {
            return fail(orrErrorStreamCapture, "the null stream cannot be captured: create a stream");
        }
        ORR_TRY(queue, runtime.stream(stream));
        return begin_capture(*queue);
    });
}

orrError_t orrStreamEndCapture(orrGraph_t* graph, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (graph == nullptr) return null_argument("graph");
        *graph = nullptr;
        ORR_TRY(queue, runtime.stream(stream));
        ORR_TRY(captured, end_capture(**queue));
        ORR_TRY(handle, give_handle(runtime.graphs, std::move(*captured), "graphs"));
        *graph = static_cast<orrGraph_t>(*handle);
        return {};
    });
}

orrError_t orrStreamIsCapturing(int* capturing, orrStream_t stream) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (capturing == nullptr) return null_argument("capturing");
        ORR_TRY(queue, runtime.stream(stream));
        *capturing = (*queue)->capturing() ? 1 : 0;
        return {};
    });
}

}  // namespace orrery::umd::api
