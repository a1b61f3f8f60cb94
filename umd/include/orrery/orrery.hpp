/* SPDX-License-Identifier: MIT */
/**
 * The C API with owners: objects that clean up after themselves, and failures as exceptions that carry the
 * library's text. Header only; threads and lifetimes as in orrery.h.
 */
#ifndef ORRERY_ORRERY_HPP
#define ORRERY_ORRERY_HPP

#include <orrery/graph.h>
#include <orrery/orrery.h>
#include <orrery/task.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace orrery {

/** what(): "orrErrorNoDevice: there is no Orrery card: ..." */
class ApiError : public std::runtime_error {
  public:
    explicit ApiError(orrError_t code)
        : std::runtime_error(std::string(orrGetErrorName(code)) + ": " + orrGetLastErrorText()),
          code_(code) {}
    orrError_t code() const { return code_; }

  private:
    orrError_t code_;
};

inline void check(orrError_t code) {
    if (code != orrSuccess) throw ApiError(code);
}

/** Owner of a handle; movable, not copyable. */
template <typename Handle, orrError_t (*Destroy)(Handle)>
class Owner {
  public:
    Owner() = default;
    explicit Owner(Handle handle) : handle_(handle) {}
    Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
    Owner& operator=(Owner&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Owner() {
        if (handle_ != Handle{}) (void)Destroy(handle_);
    }
    Handle get() const { return handle_; }

  private:
    Handle handle_{};
};

class Stream : public Owner<orrStream_t, orrStreamDestroy> {
  public:
    Stream() : Owner(make()) {}
    explicit Stream(const orrStreamAttributes& attributes) : Owner(make(attributes)) {}
    void synchronize() const { check(orrStreamSynchronize(get())); }
    orrStreamStats stats() const {
        orrStreamStats stats{};
        check(orrStreamGetStats(&stats, get()));
        return stats;
    }

  private:
    static orrStream_t make() {
        orrStream_t stream{};
        check(orrStreamCreate(&stream));
        return stream;
    }
    static orrStream_t make(const orrStreamAttributes& attributes) {
        orrStream_t stream{};
        check(orrStreamCreateWithAttributes(&stream, &attributes));
        return stream;
    }
};

class Event : public Owner<orrEvent_t, orrEventDestroy> {
  public:
    Event() : Owner(make()) {}
    void record(const Stream& stream) const { check(orrEventRecord(get(), stream.get())); }
    void synchronize() const { check(orrEventSynchronize(get())); }
    double model_ns_since(const Event& start) const {
        double ns = 0;
        check(orrEventElapsedModelTime(&ns, start.get(), get()));
        return ns;
    }

  private:
    static orrEvent_t make() {
        orrEvent_t event{};
        check(orrEventCreate(&event));
        return event;
    }
};

class Semaphore : public Owner<orrSemaphore_t, orrSemaphoreDestroy> {
  public:
    Semaphore() : Owner(make()) {}

  private:
    static orrSemaphore_t make() {
        orrSemaphore_t semaphore{};
        check(orrSemaphoreCreate(&semaphore));
        return semaphore;
    }
};

class Module : public Owner<orrModule_t, orrModuleUnload> {
  public:
    explicit Module(const std::string& path) : Owner(make(path)) {}
    orrFunction_t function(const char* name) const {
        orrFunction_t function{};
        check(orrModuleGetFunction(&function, get(), name));
        return function;
    }

  private:
    static orrModule_t make(const std::string& path) {
        orrModule_t module{};
        check(orrModuleLoad(&module, path.c_str()));
        return module;
    }
};

/** `count` objects of T in memory of the current device. */
template <typename T>
class DeviceArray {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    explicit DeviceArray(std::size_t count) : count_(count) {
        void* pointer = nullptr;
        check(orrMalloc(&pointer, count * sizeof(T)));
        memory_ = Owner<void*, orrFree>(pointer);
    }
    T* data() const { return static_cast<T*>(memory_.get()); }
    std::size_t size() const { return count_; }
    std::size_t bytes() const { return count_ * sizeof(T); }

  private:
    Owner<void*, orrFree> memory_;
    std::size_t count_;
};

/** `count` objects of T in pinned host memory, at the same address for the CPU and every device. */
template <typename T>
class PinnedArray {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    explicit PinnedArray(std::size_t count) : count_(count) {
        void* pointer = nullptr;
        check(orrMallocHost(&pointer, count * sizeof(T)));
        memory_ = Owner<void*, orrFreeHost>(pointer);
    }
    T* data() const { return static_cast<T*>(memory_.get()); }
    std::size_t size() const { return count_; }
    std::size_t bytes() const { return count_ * sizeof(T); }
    T* begin() const { return data(); }
    T* end() const { return data() + count_; }

  private:
    Owner<void*, orrFreeHost> memory_;
    std::size_t count_;
};

/** The launch of a kernel whose argument structure is Args. */
template <typename Args>
void launch(orrFunction_t function, orrDim3 grid, orrDim3 block, const Args& args, std::size_t local_bytes,
            const Stream& stream) {
    static_assert(std::is_trivially_copyable_v<Args>);
    check(orrLaunchKernel(function, grid, block, &args, sizeof(args), local_bytes, stream.get()));
}

class Graph : public Owner<orrGraph_t, orrGraphDestroy> {
  public:
    Graph() : Owner(make()) {}
    /** What is given to the stream between orrStreamBeginCapture and this. */
    static Graph end_capture(const Stream& stream) {
        orrGraph_t graph{};
        check(orrStreamEndCapture(stream.get(), &graph));
        return Graph(graph);
    }

  private:
    explicit Graph(orrGraph_t graph) : Owner(graph) {}
    static orrGraph_t make() {
        orrGraph_t graph{};
        check(orrGraphCreate(&graph));
        return graph;
    }
};

class GraphExec : public Owner<orrGraphExec_t, orrGraphExecDestroy> {
  public:
    explicit GraphExec(const Graph& graph) : Owner(make(graph)) {}
    void launch(const Stream& stream) const { check(orrGraphLaunch(get(), stream.get())); }

  private:
    static orrGraphExec_t make(const Graph& graph) {
        orrGraphExec_t exec{};
        check(orrGraphInstantiate(&exec, graph.get()));
        return exec;
    }
};

class TaskGraph : public Owner<orrTaskGraph_t, orrTaskGraphDestroy> {
  public:
    explicit TaskGraph(const orrTaskGraphOptions& options = {}) : Owner(make(options)) {}
    void wait() const { check(orrTaskGraphWait(get())); }

  private:
    static orrTaskGraph_t make(const orrTaskGraphOptions& options) {
        orrTaskGraph_t graph{};
        check(orrTaskGraphCreate(&graph, &options));
        return graph;
    }
};

}  // namespace orrery

#endif /* ORRERY_ORRERY_HPP */
