/* SPDX-License-Identifier: MIT */
/**
 * The C API with owners: objects that clean up after themselves, and failures as exceptions that carry the
 * library's text. Header only, C++17; threads and lifetimes as in orrery.h.
 *
 *   orrery::Stream stream;                              // made on the current device
 *   orrery::Stream later(orrery::empty);                // nothing yet: later = orrery::Stream();
 *   auto null = orrery::Stream::null();                 // the null stream of the current device
 *   auto theirs = orrery::Stream::borrow(handle);       // used, and left alone
 *   auto mine = orrery::Stream::adopt(handle);          // destroyed at the end
 *   stream.destroy();                                   // as the destructor does it, and throws if it fails
 */
#ifndef ORRERY_ORRERY_HPP
#define ORRERY_ORRERY_HPP

#include <orrery/graph.h>
#include <orrery/orrery.h>
#include <orrery/task.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery {

/** what(): "orrErrorNoDevice: there is no Orrery card: ..." */
class ApiError : public std::runtime_error {
  public:
    explicit ApiError(orrError_t code)
        : std::runtime_error(std::string(orrGetErrorName(code)) + ": " + orrGetLastErrorText()),
          code_(code) {}
    /** Of this header: the library was not called. */
    ApiError(orrError_t code, const char* text)
        : std::runtime_error(std::string(orrGetErrorName(code)) + ": " + text), code_(code) {}
    orrError_t code() const { return code_; }

  private:
    orrError_t code_;
};

inline void check(orrError_t code) {
    if (code != orrSuccess) throw ApiError(code);
}

struct Empty {};
inline constexpr Empty empty{};

/** A handle and whether it is ours to destroy; movable, not copyable. */
template <typename Derived, typename Handle, orrError_t (*Destroy)(Handle)>
class Object {
  public:
    explicit Object(Empty) noexcept {}
    Object(Object&& other) noexcept
        : handle_(std::exchange(other.handle_, Handle{})), owned_(std::exchange(other.owned_, false)) {}
    /** What was held is destroyed first; a failure of that is dropped, as in the destructor. */
    Object& operator=(Object&& other) noexcept {
        if (this == &other) return *this;
        drop();
        handle_ = std::exchange(other.handle_, Handle{});
        owned_ = std::exchange(other.owned_, false);
        return *this;
    }
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    ~Object() { drop(); }

    /** The handle stays somebody else's. */
    static Derived borrow(Handle handle) { return hold(handle, false); }
    static Derived adopt(Handle handle) { return hold(handle, true); }

    Handle get() const { return handle_; }
    explicit operator bool() const { return handle_ != Handle{}; }
    /** Empty afterwards, also when it throws; of one that is borrowed nothing is destroyed. */
    void destroy() {
        const Handle handle = std::exchange(handle_, Handle{});
        if (std::exchange(owned_, false)) check(Destroy(handle));
    }
    /** Empty afterwards: the caller destroys it. */
    Handle release() {
        owned_ = false;
        return std::exchange(handle_, Handle{});
    }

  protected:
    explicit Object(Handle made) noexcept : handle_(made), owned_(true) {}

  private:
    static Derived hold(Handle handle, bool owned) {
        Derived object(empty);
        object.handle_ = handle;
        object.owned_ = owned;
        return object;
    }
    void drop() noexcept {
        if (owned_) (void)Destroy(handle_);
    }
    Handle handle_{};
    bool owned_ = false;
};

/* --- devices --- */

inline int device_count() {
    int count = 0;
    check(orrGetDeviceCount(&count));
    return count;
}
inline int current_device() {
    int device = 0;
    check(orrGetDevice(&device));
    return device;
}
inline orrDeviceProp device_properties(int device) {
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    check(orrGetDeviceProperties(&prop, device));
    return prop;
}

/** Makes a device current, and the one before again at its end. */
class DeviceGuard {
  public:
    explicit DeviceGuard(int device) : before_(current_device()) { check(orrSetDevice(device)); }
    ~DeviceGuard() { (void)orrSetDevice(before_); }
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;

  private:
    int before_;
};

/** Lets `device` write to memory of `peer`. */
inline void enable_peer_access(int device, int peer) {
    const DeviceGuard guard(device);
    check(orrDeviceEnablePeerAccess(peer, 0));
}

/* --- semaphores, events, streams --- */

class Semaphore : public Object<Semaphore, orrSemaphore_t, orrSemaphoreDestroy> {
  public:
    Semaphore() : Object(make()) {}
    explicit Semaphore(Empty e) : Object(e) {}
    void name(const std::string& text) const { check(orrSemaphoreSetName(get(), text.c_str())); }
    /** From the host. */
    void signal(std::uint64_t value) const { check(orrSemaphoreSignal(get(), value)); }
    std::uint64_t value() const {
        std::uint64_t value = 0;
        check(orrSemaphoreGetValue(&value, get()));
        return value;
    }
    /** This thread waits. */
    void wait(std::uint64_t value) const { check(orrSemaphoreWait(get(), value, ORR_NO_LIMIT)); }
    /** The same; false when limit_ns of the host's time were not enough. */
    bool wait_for(std::uint64_t value, std::uint64_t limit_ns) const {
        const orrError_t code = orrSemaphoreWait(get(), value, limit_ns);
        if (code != orrErrorTimeout) check(code);
        return code == orrSuccess;
    }

  private:
    static orrSemaphore_t make() {
        orrSemaphore_t semaphore{};
        check(orrSemaphoreCreate(&semaphore, 0));
        return semaphore;
    }
};

class Event;

/**
 * For the C API a null handle is the null stream of the current device; here that is Stream::null(). An empty
 * object, as moving leaves it, is no stream: its calls throw orrErrorInvalidHandle.
 */
class Stream : public Object<Stream, orrStream_t, orrStreamDestroy> {
  public:
    Stream() : Object(make(ORR_INIT(orrStreamAttributes))) {}
    explicit Stream(const orrStreamAttributes& attributes) : Object(make(attributes)) {}
    explicit Stream(Empty e) : Object(e) {}
    /** Not owned. Each call means the device that is current then. */
    static Stream null() {
        Stream stream(empty);
        stream.null_ = true;
        return stream;
    }
    Stream(Stream&& other) noexcept : Object(std::move(other)), null_(std::exchange(other.null_, false)) {}
    Stream& operator=(Stream&& other) noexcept {
        const bool null = std::exchange(other.null_, false);
        Object::operator=(std::move(other));
        null_ = null;
        return *this;
    }
    explicit operator bool() const { return get() != nullptr || null_; }
    void destroy() {
        null_ = false;
        Object::destroy();
    }
    orrStream_t release() {
        null_ = false;
        return Object::release();
    }
    /** A handle for calls of the C API; throws if this is empty. */
    orrStream_t handle() const {
        if (get() == nullptr && !null_)
            throw ApiError(orrErrorInvalidHandle,
                           "the orrery::Stream is empty: it was moved from, destroyed or never set");
        return get();
    }
    void synchronize() const { check(orrStreamSynchronize(handle())); }
    /** All its work is done. */
    bool done() const {
        const orrError_t code = orrStreamQuery(handle());
        if (code != orrErrorNotReady) check(code);
        return code == orrSuccess;
    }
    void abort() const { check(orrStreamAbort(handle())); }
    inline void wait(const Event& event) const;
    void wait(const Semaphore& semaphore, std::uint64_t value) const {
        check(orrStreamWaitSemaphore(handle(), semaphore.get(), value, nullptr));
    }
    void signal(const Semaphore& semaphore, std::uint64_t value) const {
        check(orrStreamSignalSemaphore(handle(), semaphore.get(), value));
    }
    orrStreamStats stats() const {
        orrStreamStats stats = ORR_INIT(orrStreamStats);
        check(orrStreamGetStats(&stats, handle()));
        return stats;
    }

  private:
    static orrStream_t make(const orrStreamAttributes& attributes) {
        orrStream_t stream{};
        check(orrStreamCreateWithAttributes(&stream, &attributes));
        return stream;
    }
    bool null_ = false;
};

class Event : public Object<Event, orrEvent_t, orrEventDestroy> {
  public:
    explicit Event(unsigned flags = orrEventDefault) : Object(make(flags)) {}
    explicit Event(Empty e) : Object(e) {}
    void record(const Stream& stream) const { check(orrEventRecord(get(), stream.handle())); }
    void synchronize() const { check(orrEventSynchronize(get())); }
    bool done() const {
        const orrError_t code = orrEventQuery(get());
        if (code != orrErrorNotReady) check(code);
        return code == orrSuccess;
    }
    double model_ns_since(const Event& start) const {
        double ns = 0;
        check(orrEventElapsedModelTime(&ns, start.get(), get()));
        return ns;
    }
    double host_ns_since(const Event& start) const {
        double ns = 0;
        check(orrEventElapsedHostTime(&ns, start.get(), get()));
        return ns;
    }

  private:
    static orrEvent_t make(unsigned flags) {
        orrEvent_t event{};
        check(orrEventCreate(&event, flags));
        return event;
    }
};

inline void Stream::wait(const Event& event) const {
    check(orrStreamWaitEvent(handle(), event.get(), nullptr));
}

/* --- memory --- */

/** Returns when it is done. */
inline void copy(void* dst, const void* src, std::size_t bytes) {
    check(orrMemcpy(dst, src, bytes, orrMemcpyDefault));
}
/** In the stream's order; see orrMemcpyAsync. */
inline void copy(void* dst, const void* src, std::size_t bytes, const Stream& stream) {
    check(orrMemcpyAsync(dst, src, bytes, orrMemcpyDefault, stream.handle()));
}
/** Rows; see orrMemcpy2D. */
inline void copy_2d(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                    std::size_t width, std::size_t height) {
    check(orrMemcpy2D(dst, dst_pitch, src, src_pitch, width, height, orrMemcpyDefault));
}
inline void copy_2d(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                    std::size_t width, std::size_t height, const Stream& stream) {
    check(orrMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, orrMemcpyDefault, stream.handle()));
}
/** A box of rows and planes; see orrMemcpy3D. */
inline void copy_3d(const orrMemcpy3DParams& params) {
    check(orrMemcpy3D(&params));
}
inline void copy_3d(const orrMemcpy3DParams& params, const Stream& stream) {
    check(orrMemcpy3DAsync(&params, stream.handle()));
}
struct CopyPart {
    void* dst;
    const void* src;
    std::size_t bytes;
};
/** All of them as one piece of work, in any order; see orrMemcpyBatchAsync. */
inline void copy_batch(const std::vector<CopyPart>& parts, const Stream& stream) {
    std::vector<void*> dsts;
    std::vector<const void*> srcs;
    std::vector<std::size_t> bytes;
    for (const CopyPart& part : parts) {
        dsts.push_back(part.dst);
        srcs.push_back(part.src);
        bytes.push_back(part.bytes);
    }
    check(orrMemcpyBatchAsync(dsts.data(), srcs.data(), bytes.data(), parts.size(), 0, stream.handle()));
}
/** dst[i] = dst[i] op src[i]; see orrMemcpyReduce. */
inline void reduce(void* dst, const void* src, std::size_t count, orrDataType type, orrReduceOp op) {
    check(orrMemcpyReduce(dst, src, count, type, op, 0));
}
inline void reduce(void* dst, const void* src, std::size_t count, orrDataType type, orrReduceOp op,
                   const Stream& stream) {
    check(orrMemcpyReduceAsync(dst, src, count, type, op, 0, stream.handle()));
}
/** Returns when it is done. */
inline void fill(void* dst, int value, std::size_t bytes) {
    check(orrMemset(dst, value, bytes));
}
/** In the stream's order. */
inline void fill(void* dst, int value, std::size_t bytes, const Stream& stream) {
    check(orrMemsetAsync(dst, value, bytes, stream.handle()));
}

/** `height` rows of `width` bytes; see orrMemset2D. */
inline void fill_2d(void* dst, std::size_t pitch, int value, std::size_t width, std::size_t height) {
    check(orrMemset2D(dst, pitch, value, width, height));
}
inline void fill_2d(void* dst, std::size_t pitch, int value, std::size_t width, std::size_t height,
                    const Stream& stream) {
    check(orrMemset2DAsync(dst, pitch, value, width, height, stream.handle()));
}
/** `count` times a value of 2, 4 or 8 bytes, for example a float; see orrMemsetD16. In the stream's order. */
template <typename T>
void fill_values(T* dst, T value, std::size_t count, const Stream& stream) {
    static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8));
    if constexpr (sizeof(T) == 2) {
        std::uint16_t bits;
        std::memcpy(&bits, &value, sizeof(T));
        check(orrMemsetD16Async(dst, bits, count, stream.handle()));
    } else if constexpr (sizeof(T) == 4) {
        std::uint32_t bits;
        std::memcpy(&bits, &value, sizeof(T));
        check(orrMemsetD32Async(dst, bits, count, stream.handle()));
    } else {
        std::uint64_t bits;
        std::memcpy(&bits, &value, sizeof(T));
        check(orrMemsetD64Async(dst, bits, count, stream.handle()));
    }
}

class DeviceMemory : public Object<DeviceMemory, void*, orrFree> {
  public:
    explicit DeviceMemory(std::size_t bytes) : Object(make(bytes)) {}
    explicit DeviceMemory(Empty e) : Object(e) {}

  private:
    static void* make(std::size_t bytes) {
        void* pointer = nullptr;
        check(orrMalloc(&pointer, bytes));
        return pointer;
    }
};

/** `height` rows of `width` bytes on the current device, pitch() bytes apart; see orrMallocPitch. */
class PitchedMemory : public Object<PitchedMemory, void*, orrFree> {
  public:
    PitchedMemory(std::size_t width, std::size_t height) : Object(empty) {
        void* pointer = nullptr;
        check(orrMallocPitch(&pointer, &pitch_, width, height));
        *static_cast<Object*>(this) = adopt(pointer);
    }
    explicit PitchedMemory(Empty e) : Object(e) {}
    std::size_t pitch() const { return pitch_; }

  private:
    std::size_t pitch_ = 0;
};

class PinnedMemory : public Object<PinnedMemory, void*, orrFreeHost> {
  public:
    explicit PinnedMemory(std::size_t bytes) : Object(make(bytes)) {}
    explicit PinnedMemory(Empty e) : Object(e) {}

  private:
    static void* make(std::size_t bytes) {
        void* pointer = nullptr;
        check(orrMallocHost(&pointer, bytes, 0));
        return pointer;
    }
};

template <typename T, typename Memory>
class Array {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    explicit Array(std::size_t count) : memory_(count * sizeof(T)), count_(count) {}
    explicit Array(Empty e) : memory_(e) {}
    Array(Array&& other) noexcept
        : memory_(std::move(other.memory_)), count_(std::exchange(other.count_, 0)) {}
    Array& operator=(Array&& other) noexcept {
        memory_ = std::move(other.memory_);
        count_ = std::exchange(other.count_, 0);
        return *this;
    }
    T* data() const { return static_cast<T*>(memory_.get()); }
    std::size_t size() const { return count_; }
    std::size_t bytes() const { return count_ * sizeof(T); }
    /** Frees it and says so if that fails. */
    void destroy() {
        count_ = 0;
        memory_.destroy();
    }

  private:
    Memory memory_;
    std::size_t count_ = 0;
};

/** `count` objects of T in memory of the current device. */
template <typename T>
using DeviceArray = Array<T, DeviceMemory>;

/** `count` objects of T in pinned host memory, at the same address for the CPU and every device. */
template <typename T>
class PinnedArray : public Array<T, PinnedMemory> {
  public:
    using Array<T, PinnedMemory>::Array;
    T* begin() const { return this->data(); }
    T* end() const { return this->data() + this->size(); }
    T& operator[](std::size_t index) const { return this->data()[index]; }
};

/* --- kernels --- */

class Module : public Object<Module, orrModule_t, orrModuleUnload> {
  public:
    explicit Module(const std::string& path) : Object(make(path)) {}
    /** From memory, as orrery_embed_kernel() puts it into a program. */
    Module(const void* image, std::size_t bytes) : Object(make(image, bytes)) {}
    explicit Module(Empty e) : Object(e) {}
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
    static orrModule_t make(const void* image, std::size_t bytes) {
        orrModule_t module{};
        check(orrModuleLoadData(&module, image, bytes));
        return module;
    }
};

/** Kernels of no device, which each device loads when it needs them; see orrery/library.h. */
class Library : public Object<Library, orrLibrary_t, orrLibraryUnload> {
  public:
    explicit Library(const std::string& path) : Object(make(path)) {}
    /** From memory, as orrery_embed_kernel() puts it into a program. */
#ifdef __cpp_lib_span
    explicit Library(std::span<const std::byte> image) : Object(make(image)) {}
#endif
    explicit Library(Empty e) : Object(e) {}
    /** The same one each time: it may be asked for at each launch. */
    orrFunction_t function(const char* name) const {
        if (!*this || name == nullptr) return find(name);  // fails
        const std::lock_guard<std::mutex> lock(functions_->mutex);
        const auto known = functions_->by_name.find(name);
        if (known != functions_->by_name.end()) return known->second;
        return functions_->by_name.emplace(name, find(name)).first->second;
    }
    /** On the current device, before it is needed. */
    void preload() const { check(orrLibraryPreload(get())); }

  private:
    struct Functions {
        std::mutex mutex;
        std::map<std::string, orrFunction_t, std::less<>> by_name;
    };
    orrFunction_t find(const char* name) const {
        orrFunction_t function{};
        check(orrLibraryGetFunction(&function, get(), name));
        return function;
    }
    static orrLibrary_t make(const std::string& path) {
        orrLibrary_t library{};
        check(orrLibraryLoad(&library, path.c_str()));
        return library;
    }
#ifdef __cpp_lib_span
    static orrLibrary_t make(std::span<const std::byte> image) {
        orrLibrary_t library{};
        check(orrLibraryLoadData(&library, image.data(), image.size()));
        return library;
    }
#endif
    /** They end with the library, and move with it. */
    std::unique_ptr<Functions> functions_ = std::make_unique<Functions>();
};

/** The launch of a kernel whose argument structure is Args. */
template <typename Args>
void launch(orrFunction_t function, orrDim3 grid, orrDim3 block, const Args& args, std::size_t local_bytes,
            const Stream& stream) {
    static_assert(std::is_trivially_copyable_v<Args>);
    check(orrLaunchKernel(function, grid, block, &args, sizeof(args), local_bytes, stream.handle()));
}

/** The same with all groups on cores at one moment; see orrLaunchCooperative. */
template <typename Args>
void launch_cooperative(orrFunction_t function, orrDim3 grid, orrDim3 block, const Args& args,
                        std::size_t local_bytes, const Stream& stream) {
    static_assert(std::is_trivially_copyable_v<Args>);
    orrLaunchParams params = ORR_INIT(orrLaunchParams);
    params.function = function;
    params.grid = grid;
    params.block = block;
    params.args = &args;
    params.bytes = sizeof(args);
    params.local_bytes = local_bytes;
    params.stream = stream.handle();
    params.flags = orrLaunchCooperative;
    check(orrLaunchKernelEx(&params));
}
/** How many groups such a launch may have. */
inline std::uint32_t max_active_groups(orrFunction_t function, orrDim3 block, std::size_t local_bytes) {
    std::uint32_t groups = 0;
    check(orrOccupancyMaxActiveGroups(&groups, function, block, local_bytes, 0));
    return groups;
}

/* --- graphs --- */

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

/* --- task graphs --- */

/** The kernel finds the datum's address in its arguments at `offset`. */
inline orrTaskAccess task_access(orrTaskData_t data, orrTaskAccessMode mode, std::size_t offset) {
    return {data, mode, 0, static_cast<std::uint32_t>(offset), 0};
}
/** Nothing is put into arguments: of host tasks, or for order alone. */
inline orrTaskAccess task_access(orrTaskData_t data, orrTaskAccessMode mode) {
    return {data, mode, orrTaskAccessNoArgument, 0, 0};
}

class TaskGraph : public Object<TaskGraph, orrTaskGraph_t, orrTaskGraphDestroy> {
  public:
    TaskGraph() : TaskGraph(ORR_INIT(orrTaskGraphOptions)) {}
    explicit TaskGraph(const orrTaskGraphOptions& options) : Object(make(options)) {}
    explicit TaskGraph(Empty e) : Object(e) {}
    /** host: first contents, or null. */
    orrTaskData_t data(void* host, std::size_t bytes) const {
        orrTaskData_t data{};
        check(orrTaskDataCreate(&data, get(), host, bytes));
        return data;
    }
    orrTaskKernel_t kernel(const void* image, std::size_t bytes, const char* name) const {
        orrTaskKernel_t kernel{};
        check(orrTaskKernelCreate(&kernel, get(), image, bytes, name));
        return kernel;
    }
    orrTask_t submit(const orrTaskDesc& desc) const {
        orrTask_t task = 0;
        check(orrTaskSubmit(&task, get(), &desc));
        return task;
    }
    /** The accesses take the place of those in desc. */
    orrTask_t submit(orrTaskDesc desc, const std::vector<orrTaskAccess>& accesses) const {
        desc.accesses = accesses.data();
        desc.access_count = accesses.size();
        return submit(desc);
    }
    void start() const { check(orrTaskGraphStart(get())); }
    void wait() const { check(orrTaskGraphWait(get())); }
    void wait(orrTask_t task) const { check(orrTaskWait(get(), task)); }
    static void read(void* dst, orrTaskData_t data, std::size_t bytes) {
        check(orrTaskDataRead(dst, data, bytes));
    }
    orrTaskInfo info(orrTask_t task) const {
        orrTaskInfo info = ORR_INIT(orrTaskInfo);
        check(orrTaskGetInfo(&info, get(), task));
        return info;
    }
    orrTaskStats stats() const {
        orrTaskStats stats = ORR_INIT(orrTaskStats);
        check(orrTaskGraphGetStats(&stats, get()));
        return stats;
    }

  private:
    static orrTaskGraph_t make(const orrTaskGraphOptions& options) {
        orrTaskGraph_t graph{};
        check(orrTaskGraphCreate(&graph, &options));
        return graph;
    }
};

}  // namespace orrery

#endif /* ORRERY_ORRERY_HPP */
