/* SPDX-License-Identifier: MIT */
/** Modules, libraries, kernels and their launches. Included by orrery.hpp. */
#ifndef ORRERY_CPP_KERNEL_HPP
#define ORRERY_CPP_KERNEL_HPP

#include <orrery/cpp/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace orrery {

/** Where a variable of a module is. */
struct Global {
    void* address = nullptr;
    std::size_t bytes = 0;
    /** As an array of T; throws if it is no whole number of them. */
    template <typename T>
    T* as() const {
        if (bytes % sizeof(T) != 0)
            throw ApiError(orrErrorInvalidValue, "the variable's size is no multiple of its type's");
        return static_cast<T*>(address);
    }
};

/** What a kernel is made of. */
inline orrFuncAttributes attributes_of(orrFunction_t function) {
    orrFuncAttributes attributes = ORR_INIT(orrFuncAttributes);
    check(orrFuncGetAttributes(&attributes, function));
    return attributes;
}
/** Stack of each item of a group of several; see orrFuncAttributeItemStackBytes. */
inline void set_item_stack(orrFunction_t function, std::size_t bytes) {
    check(orrFuncSetAttribute(function, orrFuncAttributeItemStackBytes, bytes));
}

class Module : public Object<Module, orrModule_t, orrModuleUnload> {
  public:
    explicit Module(const std::string& path) : Object(make(path)) {}
    explicit Module(Empty e) : Object(e) {}
    orrFunction_t function(const char* name) const {
        orrFunction_t function{};
        check(orrModuleGetFunction(&function, get(), name));
        return function;
    }
    /** A variable marked ORR_GLOBAL, on the module's device. */
    Global global(const char* name) const {
        Global found;
        check(orrModuleGetGlobal(&found.address, &found.bytes, get(), name));
        return found;
    }

  private:
    static orrModule_t make(const std::string& path) {
        orrModule_t module{};
        check(orrModuleLoad(&module, path.c_str()));
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
    /** A variable marked ORR_GLOBAL, of which each device has its own: that of the current one. */
    Global global(const char* name) const {
        Global found;
        check(orrLibraryGetGlobal(&found.address, &found.bytes, get(), name));
        return found;
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

/** The same as a struct, for what else a launch can have; `args` has to live until it is launched. */
template <typename Args>
orrLaunchParams launch_params(orrFunction_t function, orrDim3 grid, orrDim3 block, const Args& args,
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
    return params;
}
/** All groups are on cores at one moment; see orrLaunchCooperative. */
template <typename Args>
void launch_cooperative(orrFunction_t function, orrDim3 grid, orrDim3 block, const Args& args,
                        std::size_t local_bytes, const Stream& stream) {
    orrLaunchParams params = launch_params(function, grid, block, args, local_bytes, stream);
    params.flags = orrLaunchCooperative;
    check(orrLaunchKernelEx(&params));
}
/** One launch over the devices of the parts' streams; see orrLaunchGang. */
inline void launch_gang(const std::vector<orrLaunchParams>& parts) {
    std::vector<const orrLaunchParams*> all;
    for (const orrLaunchParams& part : parts)
        all.push_back(&part);
    check(orrLaunchGang(all.data(), all.size(), 0));
}
/** How many groups a cooperative launch may have. */
inline std::uint32_t max_active_groups(orrFunction_t function, orrDim3 block, std::size_t local_bytes) {
    std::uint32_t groups = 0;
    check(orrOccupancyMaxActiveGroups(&groups, function, block, local_bytes, 0));
    return groups;
}

}  // namespace orrery

#endif /* ORRERY_CPP_KERNEL_HPP */
