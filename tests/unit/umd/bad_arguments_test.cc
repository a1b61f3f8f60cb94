// Every call that shapes copies, fills and reductions, describes kernels or launches them, with every kind of
// bad argument that it can have: a documented error with a text of one line, and nothing has happened.
#include <orrery/gang.h>
#include <orrery/graph.h>
#include <orrery/task.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

constexpr std::size_t kBytes = 4096, kHuge = ~std::size_t{0};

// Two cards with a link and no peer access, and an object of each kind, also dead ones. On device 0, which is
// current, unless it says otherwise.
struct World {
    World() {
        EXPECT_OK(orrSetDevice(1));
        EXPECT_OK(orrMalloc(&there, kBytes));
        EXPECT_OK(orrStreamCreate(&stream_there, 0));
        EXPECT_OK(orrModuleLoad(&module_there, TEST_KERNELS));
        EXPECT_OK(orrModuleGetFunction(&kernel_there, module_there, "add_value"));
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrMalloc(&card, kBytes));
        EXPECT_OK(orrMalloc(&other, kBytes));
        EXPECT_OK(orrMallocHost(&pinned, kBytes, 0));
        void* memory = nullptr;
        EXPECT_OK(orrMalloc(&memory, kBytes));
        EXPECT_OK(orrFree(memory));
        freed = memory;
        EXPECT_OK(orrStreamCreate(&stream, 0));
        EXPECT_OK(orrStreamCreate(&dead_stream, 0));
        EXPECT_OK(orrStreamDestroy(dead_stream));
        EXPECT_OK(orrModuleLoad(&module, TEST_KERNELS));
        EXPECT_OK(orrModuleGetFunction(&kernel, module, "add_value"));
        EXPECT_OK(orrModuleGetGlobal(&constant, nullptr, module, "shared_constants"));
        EXPECT_OK(orrModuleLoad(&dead_module, TEST_KERNELS));
        EXPECT_OK(orrModuleGetFunction(&dead_kernel, dead_module, "add_value"));
        EXPECT_OK(orrModuleUnload(dead_module));
        EXPECT_OK(orrLibraryLoad(&library, TEST_KERNELS));
        EXPECT_OK(orrLibraryPreload(library));
        EXPECT_OK(orrLibraryLoad(&dead_library, TEST_KERNELS));
        EXPECT_OK(orrLibraryUnload(dead_library));
        EXPECT_OK(orrGraphCreate(&graph, 0));
        EXPECT_OK(orrGraphCreate(&other_graph, 0));
        EXPECT_OK(orrGraphAddEmptyNode(&foreign_node, other_graph, nullptr, 0));
        EXPECT_OK(orrGraphCreate(&dead_graph, 0));
        EXPECT_OK(orrGraphDestroy(dead_graph));
        for (void* each : {card, other, pinned})
            EXPECT_OK(orrMemset(each, 0xee, kBytes));
    }
    ~World() {
        if (tasks != nullptr) EXPECT_OK(orrTaskGraphDestroy(tasks));
        for (orrGraph_t each : {graph, other_graph})
            EXPECT_OK(orrGraphDestroy(each));
        EXPECT_OK(orrLibraryUnload(library));
        for (orrModule_t each : {module, module_there})
            EXPECT_OK(orrModuleUnload(each));
        for (orrStream_t each : {stream, stream_there})
            EXPECT_OK(orrStreamDestroy(each));
        for (void* each : {card, other, there})
            EXPECT_OK(orrFree(each));
        EXPECT_OK(orrFreeHost(pinned));
    }
    // Both rows inside of what they are in, unless `change` says otherwise.
    orrMemcpy3DParams box(const std::function<void(orrMemcpy3DParams&)>& change) const {
        orrMemcpy3DParams params = ORR_INIT(orrMemcpy3DParams);
        params.dst = card;
        params.src = other;
        params.dst_pitch = params.src_pitch = 128;
        params.dst_height = params.src_height = 2;
        params.width = 100;
        params.height = params.depth = 2;
        params.kind = orrMemcpyDefault;
        change(params);
        return params;
    }
    orrMemcpyNDParams nd(const std::function<void(orrMemcpyNDParams&)>& change) const {
        orrMemcpyNDParams params = ORR_INIT(orrMemcpyNDParams);
        params.dst = card;
        params.src = other;
        params.dims = 2;
        params.extent[0] = 100;
        params.extent[1] = 2;
        params.dst_stride[0] = params.src_stride[0] = 128;
        params.kind = orrMemcpyDefault;
        change(params);
        return params;
    }
    orrMemsetNodeParams fill(const std::function<void(orrMemsetNodeParams&)>& change) const {
        orrMemsetNodeParams params = ORR_INIT(orrMemsetNodeParams);
        params.dst = card;
        params.pitch = 128;
        params.value_bytes = 4;
        params.width = 100;
        params.height = 2;
        change(params);
        return params;
    }
    orrLaunchParams launch(const std::function<void(orrLaunchParams&)>& change) const {
        orrLaunchParams params = ORR_INIT(orrLaunchParams);
        params.function = kernel;
        params.stream = stream;
        params.grid = params.block = {1, 1, 1};
        change(params);
        return params;
    }
    orrKernelNodeParams node(const std::function<void(orrKernelNodeParams&)>& change) const {
        orrKernelNodeParams params = ORR_INIT(orrKernelNodeParams);
        params.function = kernel;
        params.grid = params.block = {1, 1, 1};
        change(params);
        return params;
    }

    void *card = nullptr, *other = nullptr, *there = nullptr, *pinned = nullptr, *freed = nullptr;
    void* constant = nullptr;
    std::array<std::uint64_t, kBytes / 8> ordinary{};
    orrStream_t stream = nullptr, stream_there = nullptr, dead_stream = nullptr;
    orrModule_t module = nullptr, module_there = nullptr, dead_module = nullptr;
    orrFunction_t kernel = nullptr, kernel_there = nullptr, dead_kernel = nullptr;
    orrLibrary_t library = nullptr, dead_library = nullptr;
    orrGraph_t graph = nullptr, other_graph = nullptr, dead_graph = nullptr;
    orrGraphNode_t foreign_node = nullptr;
    orrTaskGraph_t tasks = nullptr;  // only where it is asked for: it lets its devices write to each other
};

template <class To, class From>
To as(From handle) {
    return reinterpret_cast<To>(handle);
}

struct Case {
    const char* what;
    orrError_t code;
    std::function<orrError_t(World&)> call;
};

constexpr orrError_t kValue = orrErrorInvalidValue, kHandle = orrErrorInvalidHandle;
constexpr orrError_t kPeer = orrErrorPeerAccess;

// A copy or fill in each of its forms: at once, in a stream, in a graph.
std::vector<Case> boxes() {
    struct Spoilt {
        const char* what;
        orrError_t code;
        std::function<void(World&, orrMemcpy3DParams&)> change;
    };
    const Spoilt spoilt[] = {
        {"null destination", kValue, [](World&, auto& p) { p.dst = nullptr; }},
        {"null source", kValue, [](World&, auto& p) { p.src = nullptr; }},
        {"freed destination", kValue, [](World& w, auto& p) { p.dst = w.freed; }},
        {"freed source", kValue, [](World& w, auto& p) { p.src = w.freed; }},
        {"constant destination", kValue, [](World& w, auto& p) { p.dst = w.constant; }},
        {"another device's source", kPeer, [](World& w, auto& p) { p.src = w.there; }},
        {"another device's destination", kPeer, [](World& w, auto& p) { p.dst = w.there; }},
        {"too many planes", kValue, [](World&, auto& p) { p.depth = 100; }},
        {"a pitch that is too small", kValue, [](World&, auto& p) { p.dst_pitch = 99; }},
        {"a pitch that wraps around", kValue, [](World&, auto& p) { p.src_pitch = kHuge / 2; }},
        {"a height that is too small", kValue, [](World&, auto& p) { p.src_height = 1; }},
        {"a width beyond all memory", kValue, [](World&, auto& p) { p.width = kHuge; }},
        {"a reserved word", kValue, [](World&, auto& p) { p.reserved = 1; }},
        {"no kind", kValue, [](World&, auto& p) { p.kind = static_cast<orrMemcpyKind>(5); }},
        {"another kind", kValue, [](World&, auto& p) { p.kind = orrMemcpyHostToDevice; }},
        {"no size", kValue, [](World&, auto& p) { p.size = 0; }},
    };
    std::vector<Case> all;
    for (const Spoilt& s : spoilt) {
        const auto box = [change = s.change](World& w) {
            return w.box([&](orrMemcpy3DParams& p) { change(w, p); });
        };
        // At once it runs where the memory is.
        if (s.code != kPeer || std::string(s.what).contains("source"))
            all.push_back({s.what, s.code, [box](World& w) {
                               const auto p = box(w);
                               return orrMemcpy3D(&p);
                           }});
        all.push_back({s.what, s.code, [box](World& w) {
                           const auto p = box(w);
                           return orrMemcpy3DAsync(&p, w.stream);
                       }});
        all.push_back({s.what, s.code, [box](World& w) {
                           const auto p = box(w);
                           return orrGraphAddMemcpy3DNode(nullptr, w.graph, nullptr, 0, &p);
                       }});
    }
    return all;
}

std::vector<Case> boxes_of_more_dimensions() {
    struct Spoilt {
        const char* what;
        orrError_t code;
        std::function<void(World&, orrMemcpyNDParams&)> change;
    };
    const Spoilt spoilt[] = {
        {"null destination", kValue, [](World&, auto& p) { p.dst = nullptr; }},
        {"null source", kValue, [](World&, auto& p) { p.src = nullptr; }},
        {"freed destination", kValue, [](World& w, auto& p) { p.dst = w.freed; }},
        {"freed source", kValue, [](World& w, auto& p) { p.src = w.freed; }},
        {"ordinary destination", kValue, [](World& w, auto& p) { p.dst = w.ordinary.data(); }},
        {"ordinary source", kValue, [](World& w, auto& p) { p.src = w.ordinary.data(); }},
        {"constant destination", kValue, [](World& w, auto& p) { p.dst = w.constant; }},
        {"another device's source", kPeer, [](World& w, auto& p) { p.src = w.there; }},
        {"another device's destination", kPeer, [](World& w, auto& p) { p.dst = w.there; }},
        {"no dimensions", kValue, [](World&, auto& p) { p.dims = 0; }},
        {"too many dimensions", kValue, [](World&, auto& p) { p.dims = 6; }},
        {"dimensions behind dims", kValue, [](World&, auto& p) { p.extent[2] = 1; }},
        {"strides behind dims", kValue, [](World&, auto& p) { p.src_stride[1] = 1; }},
        {"too many rows", kValue, [](World&, auto& p) { p.extent[1] = 40; }},
        {"a stride that leaves the memory", kValue, [](World&, auto& p) { p.dst_stride[0] = kBytes; }},
        {"a stride that wraps around", kValue, [](World&, auto& p) { p.src_stride[0] = kHuge; }},
        {"a row beyond all memory", kValue, [](World&, auto& p) { p.extent[0] = kHuge; }},
        {"a reserved word", kValue, [](World&, auto& p) { p.reserved = 1; }},
        {"no kind", kValue, [](World&, auto& p) { p.kind = static_cast<orrMemcpyKind>(5); }},
        {"no size", kValue, [](World&, auto& p) { p.size = 0; }},
    };
    std::vector<Case> all;
    for (const Spoilt& s : spoilt) {
        const auto box = [change = s.change](World& w) {
            return w.nd([&](orrMemcpyNDParams& p) { change(w, p); });
        };
        if (s.code != kPeer || std::string(s.what).contains("source"))
            all.push_back({s.what, s.code, [box](World& w) {
                               const auto p = box(w);
                               return orrMemcpyND(&p);
                           }});
        all.push_back({s.what, s.code, [box](World& w) {
                           const auto p = box(w);
                           return orrMemcpyNDAsync(&p, w.stream);
                       }});
        all.push_back({s.what, s.code, [box](World& w) {
                           const auto p = box(w);
                           return orrGraphAddMemcpyNDNode(nullptr, w.graph, nullptr, 0, &p);
                       }});
    }
    return all;
}

std::vector<Case> copies() {
    const auto batch = [](World& w, void* dst, const void* src, std::size_t bytes) {
        // Behind one that is good.
        void* const dsts[] = {w.card, dst};
        const void* const srcs[] = {w.other, src};
        const std::size_t sizes[] = {64, bytes};
        return orrMemcpyBatchAsync(dsts, srcs, sizes, 2, 0, w.stream);
    };
    static void* one[] = {nullptr};
    static const void* source[] = {nullptr};
    static const std::size_t size[] = {8};
    return {
        {"2D null", kValue,
         [](World& w) { return orrMemcpy2D(nullptr, 128, w.other, 128, 100, 2, orrMemcpyDefault); }},
        {"2D oversized", kValue,
         [](World& w) { return orrMemcpy2D(w.card, 128, w.other, 128, 100, kHuge, orrMemcpyDefault); }},
        {"2D freed", kValue,
         [](World& w) { return orrMemcpy2D(w.card, 128, w.freed, 128, 100, 2, orrMemcpyDefault); }},
        {"2D dead stream", kHandle,
         [](World& w) {
             return orrMemcpy2DAsync(w.card, 128, w.other, 128, 100, 2, orrMemcpyDefault, w.dead_stream);
         }},
        {"3D null", kValue, [](World&) { return orrMemcpy3D(nullptr); }},
        {"3D null in a stream", kValue, [](World& w) { return orrMemcpy3DAsync(nullptr, w.stream); }},
        {"3D another object's handle", kHandle,
         [](World& w) {
             const auto p = w.box([](auto&) {});
             return orrMemcpy3DAsync(&p, as<orrStream_t>(w.kernel));
         }},
        {"ND null", kValue, [](World&) { return orrMemcpyND(nullptr); }},
        {"ND dead stream", kHandle,
         [](World& w) {
             const auto p = w.nd([](auto&) {});
             return orrMemcpyNDAsync(&p, w.dead_stream);
         }},
        {"batch null destination", kValue, [batch](World& w) { return batch(w, nullptr, w.other, 8); }},
        {"batch null source", kValue, [batch](World& w) { return batch(w, w.card, nullptr, 8); }},
        {"batch freed", kValue, [batch](World& w) { return batch(w, w.freed, w.other, 8); }},
        {"batch oversized", kValue, [batch](World& w) { return batch(w, w.card, w.other, kBytes + 1); }},
        {"batch beyond all memory", kValue, [batch](World& w) { return batch(w, w.card, w.other, kHuge); }},
        {"batch constant", kValue, [batch](World& w) { return batch(w, w.constant, w.other, 8); }},
        {"batch of another device", kPeer, [batch](World& w) { return batch(w, w.there, w.other, 8); }},
        {"batch null list", kValue,
         [](World& w) { return orrMemcpyBatchAsync(nullptr, source, size, 1, 0, w.stream); }},
        {"batch null sources", kValue,
         [](World& w) { return orrMemcpyBatchAsync(one, nullptr, size, 1, 0, w.stream); }},
        {"batch null sizes", kValue,
         [](World& w) { return orrMemcpyBatchAsync(one, source, nullptr, 1, 0, w.stream); }},
        {"batch flags", kValue,
         [](World& w) { return orrMemcpyBatchAsync(one, source, size, 0, 1, w.stream); }},
        {"batch dead stream", kHandle,
         [](World& w) { return orrMemcpyBatchAsync(one, source, size, 1, 0, w.dead_stream); }},
        {"pitch null", kValue,
         [](World&) {
             std::size_t pitch = 0;
             return orrMallocPitch(nullptr, &pitch, 8, 8);
         }},
        {"pitch null pitch", kValue,
         [](World&) {
             void* memory = nullptr;
             return orrMallocPitch(&memory, nullptr, 8, 8);
         }},
        {"pitch of nothing", kValue,
         [](World&) {
             void* memory = nullptr;
             std::size_t pitch = 0;
             return orrMallocPitch(&memory, &pitch, 0, 8);
         }},
        {"pitch beyond all memory", orrErrorOutOfMemory,
         [](World&) {
             void* memory = nullptr;
             std::size_t pitch = 0;
             return orrMallocPitch(&memory, &pitch, kHuge - 5, 2);
         }},
        {"pitch of rows that wrap around", orrErrorOutOfMemory,
         [](World&) {
             void* memory = nullptr;
             std::size_t pitch = 0;
             return orrMallocPitch(&memory, &pitch, 256, kHuge / 256 + 2);
         }},
    };
}

std::vector<Case> fills() {
    std::vector<Case> all;
    const auto add = [&all](const char* what, orrError_t code, auto call) {
        all.push_back({what, code, call});
    };
    add("2D null", kValue, [](World&) { return orrMemset2D(nullptr, 128, 1, 100, 2); });
    add("2D ordinary", kValue, [](World& w) { return orrMemset2D(w.ordinary.data(), 128, 1, 100, 2); });
    add("2D freed", kValue, [](World& w) { return orrMemset2DAsync(w.freed, 128, 1, 100, 2, w.stream); });
    add("2D constant", kValue, [](World& w) { return orrMemset2DAsync(w.constant, 128, 1, 8, 1, w.stream); });
    add("2D another device's", kPeer,
        [](World& w) { return orrMemset2DAsync(w.there, 128, 1, 100, 2, w.stream); });
    add("2D dead stream", kHandle,
        [](World& w) { return orrMemset2DAsync(w.card, 128, 1, 100, 2, w.dead_stream); });
    add("2D oversized", kValue, [](World& w) { return orrMemset2D(w.card, 128, 1, 100, 33); });
    add("2D beyond all memory", kValue, [](World& w) { return orrMemset2D(w.card, kHuge, 1, kHuge, 2); });
    const auto each_size = [&](auto now, auto later, std::size_t size) {
        add("null", kValue, [=](World&) { return now(nullptr, 1, 4); });
        add("freed", kValue, [=](World& w) { return now(w.freed, 1, 4); });
        add("ordinary", kValue, [=](World& w) { return now(w.ordinary.data(), 1, 4); });
        add("constant", kValue, [=](World& w) { return later(w.constant, 1, 1, w.stream); });
        add("misaligned", kValue, [=](World& w) { return now(at(w.card, size / 2), 1, 4); });
        add("misaligned by one", kValue, [=](World& w) { return later(at(w.card, 1), 1, 1, w.stream); });
        add("oversized", kValue, [=](World& w) { return now(w.card, 1, kBytes / size + 1); });
        add("wraps around", kValue, [=](World& w) { return now(w.card, 1, kHuge / size + 2); });
        add("beyond all memory", kValue, [=](World& w) { return later(w.card, 1, kHuge, w.stream); });
        add("another device's", kPeer, [=](World& w) { return later(w.there, 1, 4, w.stream); });
        add("dead stream", kHandle, [=](World& w) { return later(w.card, 1, 4, w.dead_stream); });
        add("another object's handle", kHandle,
            [=](World& w) { return later(w.card, 1, 4, as<orrStream_t>(w.graph)); });
    };
    each_size(orrMemsetD16, orrMemsetD16Async, 2);
    each_size(orrMemsetD32, orrMemsetD32Async, 4);
    each_size(orrMemsetD64, orrMemsetD64Async, 8);
    struct Spoilt {
        const char* what;
        orrError_t code;
        std::function<void(World&, orrMemsetNodeParams&)> change;
    };
    const Spoilt spoilt[] = {
        {"node null", kValue, [](World&, auto& p) { p.dst = nullptr; }},
        {"node freed", kValue, [](World& w, auto& p) { p.dst = w.freed; }},
        {"node ordinary", kValue, [](World& w, auto& p) { p.dst = w.ordinary.data(); }},
        {"node constant", kValue, [](World& w, auto& p) { p.dst = w.constant; }},
        {"node misaligned", kValue, [](World& w, auto& p) { p.dst = at(w.card, 2); }},
        {"node rows misaligned", kValue, [](World&, auto& p) { p.pitch = 126; }},
        {"node width of parts", kValue, [](World&, auto& p) { p.width = 99; }},
        {"node value of 3 bytes", kValue, [](World&, auto& p) { p.value_bytes = 3; }},
        {"node value of none", kValue, [](World&, auto& p) { p.value_bytes = 0; }},
        {"node value of 16 bytes", kValue, [](World&, auto& p) { p.value_bytes = 16; }},
        {"node pitch too small", kValue, [](World&, auto& p) { p.pitch = 96; }},
        {"node oversized", kValue, [](World&, auto& p) { p.height = 40; }},
        {"node beyond all memory", kValue, [](World&, auto& p) { p.height = kHuge; }},
        {"node no size", kValue, [](World&, auto& p) { p.size = 0; }},
    };
    for (const Spoilt& s : spoilt) {
        add(s.what, s.code, [change = s.change](World& w) {
            const auto p = w.fill([&](orrMemsetNodeParams& params) { change(w, params); });
            return orrGraphAddMemset2DNode(nullptr, w.graph, nullptr, 0, &p);
        });
    }
    return all;
}

std::vector<Case> reductions() {
    struct Spoilt {
        const char* what;
        orrError_t code;
        std::function<void(World&, void*& dst, const void*& src, std::size_t& count)> change;
    };
    const Spoilt spoilt[] = {
        {"null destination", kValue, [](World&, auto& dst, auto&, auto&) { dst = nullptr; }},
        {"null source", kValue, [](World&, auto&, auto& src, auto&) { src = nullptr; }},
        {"freed destination", kValue, [](World& w, auto& dst, auto&, auto&) { dst = w.freed; }},
        {"freed source", kValue, [](World& w, auto&, auto& src, auto&) { src = w.freed; }},
        {"ordinary destination", kValue, [](World& w, auto& dst, auto&, auto&) { dst = w.ordinary.data(); }},
        {"ordinary source", kValue, [](World& w, auto&, auto& src, auto&) { src = w.ordinary.data(); }},
        {"constant destination", kValue,
         [](World& w, auto& dst, auto&, auto& count) {
             dst = w.constant;
             count = 1;
         }},
        {"misaligned destination", kValue, [](World& w, auto& dst, auto&, auto&) { dst = at(w.card, 2); }},
        {"misaligned source", kValue, [](World& w, auto&, auto& src, auto&) { src = at(w.other, 1); }},
        {"overlap", kValue, [](World& w, auto&, auto& src, auto&) { src = at(w.card, 4); }},
        {"overlap from behind", kValue,
         [](World& w, auto& dst, auto& src, auto&) {
             src = w.card;
             dst = at(w.card, 60);
         }},
        {"oversized", kValue, [](World&, auto&, auto&, auto& count) { count = kBytes / 4 + 1; }},
        {"wraps around", kValue, [](World&, auto&, auto&, auto& count) { count = kHuge / 4 + 2; }},
        {"beyond all memory", kValue, [](World&, auto&, auto&, auto& count) { count = kHuge; }},
        {"another device's source", kPeer, [](World& w, auto&, auto& src, auto&) { src = w.there; }},
    };
    std::vector<Case> all;
    for (const Spoilt& s : spoilt) {
        const auto with = [change = s.change](World& w, auto call) {
            void* dst = w.card;
            const void* src = w.other;
            std::size_t count = 16;
            change(w, dst, src, count);
            return call(dst, src, count);
        };
        all.push_back({s.what, s.code, [with](World& w) {
                           return with(w, [](void* dst, const void* src, std::size_t count) {
                               return orrMemcpyReduce(dst, src, count, orrFloat32, orrReduceSum, 0);
                           });
                       }});
        all.push_back({s.what, s.code, [with](World& w) {
                           return with(w, [&](void* dst, const void* src, std::size_t count) {
                               return orrMemcpyReduceAsync(dst, src, count, orrInt32, orrReduceMax, 0,
                                                           w.stream);
                           });
                       }});
        all.push_back({s.what, s.code, [with](World& w) {
                           return with(w, [&](void* dst, const void* src, std::size_t count) {
                               return orrGraphAddReduceNode(nullptr, w.graph, nullptr, 0, dst, src, count,
                                                            orrUint32, orrReduceMin, 0);
                           });
                       }});
    }
    return all;
}

std::vector<Case> launches() {
    struct Spoilt {
        const char* what;
        orrError_t code;
        std::function<void(World&, orrLaunchParams&)> change;
    };
    const Spoilt spoilt[] = {
        {"null function", kHandle, [](World&, auto& p) { p.function = nullptr; }},
        {"dead function", kHandle, [](World& w, auto& p) { p.function = w.dead_kernel; }},
        {"a stream as function", kHandle,
         [](World& w, auto& p) { p.function = as<orrFunction_t>(w.stream); }},
        {"another device's function", kValue, [](World& w, auto& p) { p.function = w.kernel_there; }},
        {"dead stream", kHandle, [](World& w, auto& p) { p.stream = w.dead_stream; }},
        {"a function as stream", kHandle, [](World& w, auto& p) { p.stream = as<orrStream_t>(w.kernel); }},
        {"no groups", kValue, [](World&, auto& p) { p.grid.z = 0; }},
        {"no items", kValue, [](World&, auto& p) { p.block.y = 0; }},
        {"too many groups", kValue, [](World&, auto& p) { p.grid = {~0u, ~0u, ~0u}; }},
        {"too many items", kValue, [](World&, auto& p) { p.block = {1024, 2, 1}; }},
        {"items that wrap around", kValue, [](World&, auto& p) { p.block = {1u << 31, 1u << 31, 4}; }},
        {"null arguments", kValue, [](World&, auto& p) { p.bytes = 8; }},
        {"too long arguments", kValue,
         [](World& w, auto& p) {
             p.args = w.ordinary.data();
             p.bytes = 4097;
         }},
        {"arguments beyond all memory", kValue,
         [](World& w, auto& p) {
             p.args = w.ordinary.data();
             p.bytes = kHuge;
         }},
        {"too much local memory", kValue, [](World&, auto& p) { p.local_bytes = kHuge; }},
        {"unknown flags", kValue, [](World&, auto& p) { p.flags = 1ull << 63; }},
        {"more groups than cores together", kValue,
         [](World&, auto& p) {
             p.flags = orrLaunchCooperative;
             p.grid = {FakeCard::kVectorCores + 1, 1, 1};
         }},
        {"no size", kValue, [](World&, auto& p) { p.size = 0; }},
    };
    std::vector<Case> all;
    for (const Spoilt& s : spoilt) {
        const auto params = [change = s.change](World& w) {
            return w.launch([&](orrLaunchParams& p) { change(w, p); });
        };
        all.push_back({s.what, s.code, [params](World& w) {
                           const auto p = params(w);
                           return orrLaunchKernelEx(&p);
                       }});
        // In a gang all are together, and flags of their own are none.
        if (s.code != kValue || !std::string(s.what).contains("flags"))
            all.push_back({s.what, s.code, [params](World& w) {
                               const auto p = params(w);
                               const orrLaunchParams* const parts[] = {&p};
                               return orrLaunchGang(parts, 1, 0);
                           }});
        if (std::string(s.what).contains("stream") && !std::string(s.what).contains("as function")) continue;
        // A node takes the function's device.
        if (std::string(s.what).starts_with("another device's")) continue;
        all.push_back({s.what, s.code, [params](World& w) {
                           const orrLaunchParams p = params(w);
                           const auto node = w.node([&](orrKernelNodeParams& n) {
                               if (p.size == 0) n.size = 0;
                               n.function = p.function;
                               n.grid = p.grid;
                               n.block = p.block;
                               n.args = p.args;
                               n.bytes = p.bytes;
                               n.local_bytes = p.local_bytes;
                               n.flags = p.flags;
                           });
                           return orrGraphAddKernelNode(nullptr, w.graph, nullptr, 0, &node);
                       }});
    }
    return all;
}

std::vector<Case> descriptions() {
    static std::uint32_t groups = 0;
    static orrFuncAttributes attributes = ORR_INIT(orrFuncAttributes);
    static void* address = nullptr;
    static std::size_t bytes = 0;
    static orrFunction_t function = nullptr;
    static orrLibrary_t library = nullptr;
    static orrTaskKernel_t task = nullptr;
    static constexpr orrDim3 kOne{1, 1, 1};
    const auto occupancy = [](orrFunction_t of, orrDim3 block, std::size_t local, unsigned flags) {
        return orrOccupancyMaxActiveGroups(&groups, of, block, local, flags);
    };
    return {
        {"launch null", kValue, [](World&) { return orrLaunchKernelEx(nullptr); }},
        {"gang null", kValue, [](World&) { return orrLaunchGang(nullptr, 1, 0); }},
        {"gang null part", kValue,
         [](World&) {
             const orrLaunchParams* const parts[] = {nullptr};
             return orrLaunchGang(parts, 1, 0);
         }},
        {"gang of none", kValue,
         [](World&) {
             const orrLaunchParams* const parts[] = {nullptr};
             return orrLaunchGang(parts, 0, 0);
         }},
        {"gang beyond all memory", kValue,
         [](World&) {
             const orrLaunchParams* const parts[] = {nullptr};
             return orrLaunchGang(parts, kHuge, 0);
         }},
        {"occupancy null", kValue,
         [](World& w) { return orrOccupancyMaxActiveGroups(nullptr, w.kernel, kOne, 0, 0); }},
        {"occupancy null function", kHandle, [=](World&) { return occupancy(nullptr, kOne, 0, 0); }},
        {"occupancy dead function", kHandle, [=](World& w) { return occupancy(w.dead_kernel, kOne, 0, 0); }},
        {"occupancy foreign handle", kHandle,
         [=](World& w) { return occupancy(as<orrFunction_t>(w.module), kOne, 0, 0); }},
        {"occupancy no items", kValue, [=](World& w) { return occupancy(w.kernel, {0, 1, 1}, 0, 0); }},
        {"occupancy too many items", kValue,
         [=](World& w) { return occupancy(w.kernel, {~0u, ~0u, ~0u}, 0, 0); }},
        {"occupancy too much memory", kValue, [=](World& w) { return occupancy(w.kernel, kOne, kHuge, 0); }},
        {"occupancy flags", kValue, [=](World& w) { return occupancy(w.kernel, kOne, 0, 1); }},
        {"attributes null", kValue, [](World& w) { return orrFuncGetAttributes(nullptr, w.kernel); }},
        {"attributes dead", kHandle,
         [](World& w) { return orrFuncGetAttributes(&attributes, w.dead_kernel); }},
        {"attributes foreign", kHandle,
         [](World& w) { return orrFuncGetAttributes(&attributes, as<orrFunction_t>(w.library)); }},
        {"attributes no size", kValue,
         [](World& w) {
             orrFuncAttributes none{};
             return orrFuncGetAttributes(&none, w.kernel);
         }},
        {"set dead", kHandle,
         [](World& w) { return orrFuncSetAttribute(w.dead_kernel, orrFuncAttributeItemStackBytes, 1); }},
        {"set no attribute", kValue,
         [](World& w) { return orrFuncSetAttribute(w.kernel, static_cast<orrFuncAttribute>(0), 1); }},
        {"set beyond all memory", kValue,
         [](World& w) { return orrFuncSetAttribute(w.kernel, orrFuncAttributeItemStackBytes, kHuge); }},
        {"global nowhere", kValue,
         [](World& w) { return orrModuleGetGlobal(nullptr, nullptr, w.module, "shared_table"); }},
        {"global null name", kValue,
         [](World& w) { return orrModuleGetGlobal(&address, &bytes, w.module, nullptr); }},
        {"global dead", kHandle,
         [](World& w) { return orrModuleGetGlobal(&address, &bytes, w.dead_module, "shared_table"); }},
        {"global foreign", kHandle,
         [](World& w) {
             return orrModuleGetGlobal(&address, &bytes, as<orrModule_t>(w.library), "shared_table");
         }},
        {"global unknown", orrErrorNotFound,
         [](World& w) { return orrModuleGetGlobal(&address, &bytes, w.module, ""); }},
        {"library null", kValue, [](World&) { return orrLibraryLoad(&library, nullptr); }},
        {"library nowhere", kValue, [](World&) { return orrLibraryLoad(nullptr, TEST_KERNELS); }},
        {"library no file", orrErrorSystem, [](World&) { return orrLibraryLoad(&library, "/nonexistent"); }},
        {"library data null", kValue, [](World&) { return orrLibraryLoadData(&library, nullptr, 64); }},
        {"library data of none", orrErrorInvalidImage,
         [](World& w) { return orrLibraryLoadData(&library, w.ordinary.data(), 0); }},
        {"library data of zeros", orrErrorInvalidImage,
         [](World& w) { return orrLibraryLoadData(&library, w.ordinary.data(), kBytes); }},
        {"library function dead", kHandle,
         [](World& w) { return orrLibraryGetFunction(&function, w.dead_library, "add_value"); }},
        {"library function foreign", kHandle,
         [](World& w) { return orrLibraryGetFunction(&function, as<orrLibrary_t>(w.module), "add_value"); }},
        {"library function unknown", orrErrorNotFound,
         [](World& w) { return orrLibraryGetFunction(&function, w.library, "shared_table"); }},
        {"library preload dead", kHandle, [](World& w) { return orrLibraryPreload(w.dead_library); }},
        {"library preload null", kHandle, [](World&) { return orrLibraryPreload(nullptr); }},
        {"library unload dead", kHandle, [](World& w) { return orrLibraryUnload(w.dead_library); }},
        {"library unload foreign", kHandle,
         [](World& w) { return orrLibraryUnload(as<orrLibrary_t>(w.graph)); }},
        {"library global nowhere", kValue,
         [](World& w) { return orrLibraryGetGlobal(nullptr, nullptr, w.library, "shared_table"); }},
        {"library global dead", kHandle,
         [](World& w) { return orrLibraryGetGlobal(&address, &bytes, w.dead_library, "shared_table"); }},
        {"library global unknown", orrErrorNotFound,
         [](World& w) { return orrLibraryGetGlobal(&address, &bytes, w.library, "add_value"); }},
        {"task kernel nowhere", kValue,
         [](World& w) { return orrTaskKernelFromFunction(nullptr, w.tasks, w.kernel); }},
        {"task kernel null", kHandle,
         [](World& w) { return orrTaskKernelFromFunction(&task, w.tasks, nullptr); }},
        {"task kernel dead", kHandle,
         [](World& w) { return orrTaskKernelFromFunction(&task, w.tasks, w.dead_kernel); }},
        {"task kernel of one device", kValue,
         [](World& w) { return orrTaskKernelFromFunction(&task, w.tasks, w.kernel); }},
        {"task kernel in no graph", kHandle,
         [](World& w) { return orrTaskKernelFromFunction(&task, as<orrTaskGraph_t>(w.graph), w.kernel); }},
    };
}

// The graph, and what a node depends on, of each call that adds one.
std::vector<Case> nodes() {
    using Add = std::function<orrError_t(World&, orrGraph_t, const orrGraphNode_t*, std::size_t)>;
    const Add adds[] = {
        [](World& w, orrGraph_t graph, const orrGraphNode_t* after, std::size_t count) {
            const auto p = w.box([](auto&) {});
            return orrGraphAddMemcpy3DNode(nullptr, graph, after, count, &p);
        },
        [](World& w, orrGraph_t graph, const orrGraphNode_t* after, std::size_t count) {
            const auto p = w.nd([](auto&) {});
            return orrGraphAddMemcpyNDNode(nullptr, graph, after, count, &p);
        },
        [](World& w, orrGraph_t graph, const orrGraphNode_t* after, std::size_t count) {
            const auto p = w.fill([](auto&) {});
            return orrGraphAddMemset2DNode(nullptr, graph, after, count, &p);
        },
        [](World& w, orrGraph_t graph, const orrGraphNode_t* after, std::size_t count) {
            return orrGraphAddReduceNode(nullptr, graph, after, count, w.card, w.other, 16, orrInt32,
                                         orrReduceSum, 0);
        },
        [](World& w, orrGraph_t graph, const orrGraphNode_t* after, std::size_t count) {
            const auto p = w.node([](auto&) {});
            return orrGraphAddKernelNode(nullptr, graph, after, count, &p);
        },
    };
    std::vector<Case> all{
        {"3D null", kValue,
         [](World& w) { return orrGraphAddMemcpy3DNode(nullptr, w.graph, nullptr, 0, nullptr); }},
        {"ND null", kValue,
         [](World& w) { return orrGraphAddMemcpyNDNode(nullptr, w.graph, nullptr, 0, nullptr); }},
        {"fill null", kValue,
         [](World& w) { return orrGraphAddMemset2DNode(nullptr, w.graph, nullptr, 0, nullptr); }},
        {"kernel null", kValue,
         [](World& w) { return orrGraphAddKernelNode(nullptr, w.graph, nullptr, 0, nullptr); }},
    };
    for (const Add& add : adds) {
        all.push_back({"null graph", kHandle, [add](World& w) { return add(w, nullptr, nullptr, 0); }});
        all.push_back({"dead graph", kHandle, [add](World& w) { return add(w, w.dead_graph, nullptr, 0); }});
        all.push_back({"a stream as graph", kHandle,
                       [add](World& w) { return add(w, as<orrGraph_t>(w.stream), nullptr, 0); }});
        all.push_back({"null dependencies", kValue, [add](World& w) { return add(w, w.graph, nullptr, 1); }});
        all.push_back({"a foreign dependency", kHandle,
                       [add](World& w) { return add(w, w.graph, &w.foreign_node, 1); }});
        all.push_back({"a null dependency", kHandle, [add](World& w) {
                           const orrGraphNode_t none = nullptr;
                           return add(w, w.graph, &none, 1);
                       }});
    }
    return all;
}

struct Group {
    const char* name;
    std::vector<Case> (*cases)();
    bool tasks = false;
};
const Group kGroups[] = {{"Boxes", boxes},
                         {"BoxesOfMoreDimensions", boxes_of_more_dimensions},
                         {"Copies", copies},
                         {"Fills", fills},
                         {"Reductions", reductions},
                         {"Launches", launches},
                         {"Descriptions", descriptions, true},
                         {"Nodes", nodes}};

class BadArguments : public ::testing::TestWithParam<Group> {};

TEST_P(BadArguments, AreErrorsAndNothingHasHappened) {
    FakeSystem system(2);
    World world;
    if (GetParam().tasks) ASSERT_OK(orrTaskGraphCreate(&world.tasks, nullptr));
    ASSERT_OK(orrDeviceSynchronize());
    const std::uint64_t packets[] = {system.card(0).packets(), system.card(1).packets()};
    std::size_t used = 0, total = 0, now = 0;
    ASSERT_OK(orrMemGetInfo(&used, &total));
    std::size_t number = 0;
    for (const Case& each : GetParam().cases()) {
        SCOPED_TRACE("case " + std::to_string(number++) + ": " + each.what);
        EXPECT_EQ(each.call(world), each.code) << orrGetLastErrorText();
        const std::string text = orrGetLastErrorText();
        EXPECT_GT(text.size(), 10u);
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
    EXPECT_GT(number, 10u);
    EXPECT_EQ(system.card(0).packets(), packets[0]);
    EXPECT_EQ(system.card(1).packets(), packets[1]);
    ASSERT_OK(orrMemGetInfo(&now, &total));
    EXPECT_EQ(now, used) << "memory was lost";
    std::size_t nodes = 1;
    ASSERT_OK(orrGraphGetNodeCount(&nodes, world.graph));
    EXPECT_EQ(nodes, 0u);
    // All is as it was, and goes on.
    for (void* memory : {world.card, world.other, world.pinned}) {
        std::vector<std::uint8_t> bytes(kBytes);
        ASSERT_OK(orrMemcpyAsync(bytes.data(), memory, kBytes, orrMemcpyDefault, world.stream));
        ASSERT_OK(orrStreamSynchronize(world.stream));
        EXPECT_EQ(bytes, std::vector<std::uint8_t>(kBytes, 0xee));
    }
    const auto good = world.launch([](auto&) {});
    ASSERT_OK(orrLaunchKernelEx(&good));
    ASSERT_OK(orrStreamSynchronize(world.stream));
}

INSTANTIATE_TEST_SUITE_P(Of, BadArguments, ::testing::ValuesIn(kGroups),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace orrery::umd::test
