#include "umd/api/guard.h"
#include "umd/api/module_file.h"
#include "umd/api/structs.h"
#include "umd/runtime/launch.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace {

Status load(Runtime& runtime, orrModule_t* module, std::span<const std::byte> image, const char* name) {
    ORR_TRY(context, runtime.current_context());
    ORR_TRY(made, Module::load(**context, image, name));
    ORR_TRY(handle, give_handle(runtime.modules, *made, "modules"));
    *module = static_cast<orrModule_t>(*handle);
    return {};
}

// flags: orrLaunch*
orrError_t launch(orrFunction_t function, orrDim3 grid, orrDim3 block, const void* args, std::size_t bytes,
                  std::size_t local_bytes, orrStream_t stream, std::uint64_t flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(queue, runtime.stream(stream));
        const auto handle = runtime.functions.find(function);
        const Function* kernel = nullptr;
        const auto check = [&]() -> Status {
            if (!handle) return bad_handle("function", function);
            ORR_TRY(there, handle->on((*queue)->context()));
            kernel = *there;
            ORR_TRY(known, check_flags(flags, orrLaunchCooperative, "orrLaunchKernelEx"));
            return check_launch(grid, block, args, bytes, local_bytes);
        };
        const Status valid = check();
        if ((*queue)->capturing()) {
            // A graph without this kernel would be another one.
            if (!valid) return capture_failure(**queue, valid.error());
            return capture_kernel(**queue, *kernel, grid, block, {static_cast<const std::byte*>(args), bytes},
                                  local_bytes, flags);
        }
        if (!valid) return valid;
        runtime.offer_again();
        ORR_TRY(packet, make_launch(*kernel, grid, block, local_bytes, flags));
        ORR_TRY(index, (*queue)->submit_kernel(*packet, {static_cast<const std::byte*>(args), bytes},
                                               kernel->name, kernel->context->peers()));
        return {};
    });
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrModuleLoad(orrModule_t* module, const char* path) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (module == nullptr || path == nullptr) return null_argument("module or path");
        ORR_TRY(image, read_module_file(path));
        return load(runtime, module, *image, path);
    });
}

orrError_t orrModuleLoadData(orrModule_t* module, const void* image, size_t bytes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (module == nullptr || image == nullptr) return null_argument("module or image");
        return load(runtime, module, {static_cast<const std::byte*>(image), bytes}, "the module in memory");
    });
}

orrError_t orrModuleCheckData(const void* image, size_t bytes) {
    return guarded([&]() -> Status {
        if (image == nullptr) return null_argument("image");
        ORR_TRY(parsed, ElfImage::parse({static_cast<const std::byte*>(image), bytes}));
        if (parsed->functions().empty()) {
            return fail(orrErrorInvalidImage, "the module has no kernel: mark one with ORR_KERNEL");
        }
        if (const std::string lacking = parsed->needs().lacking(Isa::largest()); !lacking.empty())
            return fail(orrErrorNotSupported, "the module needs {}, which no card has", lacking);
        return {};
    });
}

orrError_t orrModuleUnload(orrModule_t module) {
    return with_runtime([&](Runtime& runtime) -> Status {
        {
            const auto found = runtime.modules.find(module);
            if (!found) return bad_handle("module", module);
            // What cannot be waited for keeps the module.
            ORR_TRY(drained, found->context().drain());
        }
        const auto gone = runtime.modules.remove(module);
        if (gone == nullptr) return bad_handle("module", module);
        for (void* handle : gone->unload())
            runtime.functions.remove(handle);
        return {};
    });
}

orrError_t orrModuleGetFunction(orrFunction_t* function, orrModule_t module, const char* name) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (function == nullptr || name == nullptr) return null_argument("function or name");
        const auto loaded = runtime.modules.find_shared(module);
        if (loaded == nullptr) return bad_handle("module", module);
        ORR_TRY(found, loaded->function(name));
        (*found)->module = loaded;
        ORR_TRY(handle, give_handle(runtime.functions, *found, "functions"));
        if (!loaded->add_handle(*handle)) {  // it was unloaded meanwhile
            runtime.functions.remove(*handle);
            return bad_handle("module", module);
        }
        *function = static_cast<orrFunction_t>(*handle);
        return {};
    });
}

orrError_t orrLaunchKernel(orrFunction_t function, orrDim3 grid, orrDim3 block, const void* args,
                           size_t bytes, size_t local_bytes, orrStream_t stream) {
    return launch(function, grid, block, args, bytes, local_bytes, stream, 0);
}

orrError_t orrLaunchKernelEx(const orrLaunchParams* params) {
    orrLaunchParams given{};
    const orrError_t code = guarded([&]() -> Status {
        ORR_TRY(read, read_struct(params, "orrLaunchParams"));
        given = *read;
        return {};
    });
    if (code != orrSuccess) return code;
    return launch(given.function, given.grid, given.block, given.args, given.bytes, given.local_bytes,
                  given.stream, given.flags);
}

orrError_t orrOccupancyMaxActiveGroups(uint32_t* groups, orrFunction_t function, orrDim3 block,
                                       size_t local_bytes, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrOccupancyMaxActiveGroups"));
        if (groups == nullptr) return null_argument("groups");
        const auto kernel = runtime.functions.find(function);
        if (!kernel) return bad_handle("function", function);
        ORR_TRY(valid, check_launch({1, 1, 1}, block, nullptr, 0, local_bytes));
        if (kernel->context != nullptr) {
            *groups = kernel->context->vector_cores();
            return {};
        }
        ORR_TRY(context, runtime.current_context());
        *groups = (*context)->vector_cores();
        return {};
    });
}

}  // namespace orrery::umd::api
