/* SPDX-License-Identifier: MIT */
/** Graphs. Included by orrery.hpp. */
#ifndef ORRERY_CPP_GRAPH_HPP
#define ORRERY_CPP_GRAPH_HPP

#include <orrery/graph.h>
#include <orrery/cpp/stream.hpp>

namespace orrery {

class Graph : public Object<Graph, orrGraph_t, orrGraphDestroy> {
  public:
    Graph() : Object(make()) {}
    explicit Graph(Empty e) : Object(e) {}
    static void begin_capture(const Stream& stream) { check(orrStreamBeginCapture(stream.handle(), 0)); }
    /** What was given to the stream since begin_capture(). */
    static Graph end_capture(const Stream& stream) {
        orrGraph_t graph{};
        check(orrStreamEndCapture(&graph, stream.handle()));
        return adopt(graph);
    }

  private:
    static orrGraph_t make() {
        orrGraph_t graph{};
        check(orrGraphCreate(&graph, 0));
        return graph;
    }
};

class GraphExec : public Object<GraphExec, orrGraphExec_t, orrGraphExecDestroy> {
  public:
    explicit GraphExec(const Graph& graph) : Object(make(graph)) {}
    explicit GraphExec(Empty e) : Object(e) {}
    void launch(const Stream& stream) const { check(orrGraphLaunch(get(), stream.handle())); }
    orrGraphExecInfo info() const {
        orrGraphExecInfo info = ORR_INIT(orrGraphExecInfo);
        check(orrGraphExecGetInfo(&info, get()));
        return info;
    }

  private:
    static orrGraphExec_t make(const Graph& graph) {
        orrGraphExec_t exec{};
        check(orrGraphInstantiate(&exec, graph.get(), 0));
        return exec;
    }
};

}  // namespace orrery

#endif /* ORRERY_CPP_GRAPH_HPP */
