// Libraries: images of no device.
#include "umd/api/guard.h"
#include "umd/api/module_file.h"

using namespace orrery::umd;

namespace {

Status load(Runtime& runtime, orrLibrary_t* library, std::span<const std::byte> image, const char* name) {
    ORR_TRY(made, Library::make(image, name));
    ORR_TRY(handle, give_handle(runtime.libraries, *made, "libraries"));
    *library = static_cast<orrLibrary_t>(*handle);
    return {};
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrLibraryLoad(orrLibrary_t* library, const char* path) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (library == nullptr || path == nullptr) return null_argument("library or path");
        ORR_TRY(image, read_module_file(path));
        return load(runtime, library, *image, path);
    });
}

orrError_t orrLibraryLoadData(orrLibrary_t* library, const void* image, size_t bytes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (library == nullptr || image == nullptr) return null_argument("library or image");
        return load(runtime, library, {static_cast<const std::byte*>(image), bytes}, "the library in memory");
    });
}

orrError_t orrLibraryUnload(orrLibrary_t library) {
    return with_runtime([&](Runtime& runtime) -> Status {
        {
            const auto found = runtime.libraries.find(library);
            if (!found) return bad_handle("library", library);
            // What cannot be waited for keeps the library.
            ORR_TRY(drained, found->drain());
        }
        const auto gone = runtime.libraries.remove(library);
        if (gone == nullptr) return bad_handle("library", library);
        for (void* handle : gone->unload())
            runtime.functions.remove(handle);
        return {};
    });
}

orrError_t orrLibraryGetFunction(orrFunction_t* function, orrLibrary_t library, const char* name) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (function == nullptr || name == nullptr) return null_argument("function or name");
        const auto loaded = runtime.libraries.find(library);
        if (!loaded) return bad_handle("library", library);
        ORR_TRY(devices, runtime.device_count());
        ORR_TRY(found, loaded->function(name, static_cast<std::size_t>(*devices)));
        ORR_TRY(handle, give_handle(runtime.functions, *found, "functions"));
        if (!loaded->add_handle(*handle)) {  // it was unloaded meanwhile
            runtime.functions.remove(*handle);
            return bad_handle("library", library);
        }
        *function = static_cast<orrFunction_t>(*handle);
        return {};
    });
}

orrError_t orrLibraryPreload(orrLibrary_t library) {
    return with_runtime([&](Runtime& runtime) -> Status {
        const auto loaded = runtime.libraries.find(library);
        if (!loaded) return bad_handle("library", library);
        ORR_TRY(context, runtime.current_context());
        ORR_TRY(module, loaded->on(**context));
        return {};
    });
}

orrError_t orrLibraryGetGlobal(void** address, size_t* bytes, orrLibrary_t library, const char* name) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (address == nullptr && bytes == nullptr) return null_argument("each of address and bytes");
        if (name == nullptr) return null_argument("name");
        const auto loaded = runtime.libraries.find(library);
        if (!loaded) return bad_handle("library", library);
        ORR_TRY(context, runtime.current_context());
        ORR_TRY(module, loaded->on(**context));
        ORR_TRY(variable, (*module)->variable(name));
        if (address != nullptr) *address = reinterpret_cast<void*>(variable->va);
        if (bytes != nullptr) *bytes = variable->bytes;
        return {};
    });
}

}  // namespace orrery::umd::api
