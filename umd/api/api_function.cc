// What modules and their kernels are made of.
#include <orrery/hw/kernel_abi.h>

#include <algorithm>

#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/runtime/launch.h"

using namespace orrery::umd;

namespace {

// As much as there is room for.
template <std::size_t kSize>
void put_text(char (&to)[kSize], std::string_view text) {
    std::ranges::copy(text.substr(0, kSize - 1), to);
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrModuleGetGlobal(void** address, size_t* bytes, orrModule_t module, const char* name) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (address == nullptr && bytes == nullptr) return null_argument("each of address and bytes");
        if (name == nullptr) return null_argument("name");
        const auto loaded = runtime.modules.find(module);
        if (!loaded) return bad_handle("module", module);
        ORR_TRY(variable, loaded->variable(name));
        if (address != nullptr) *address = reinterpret_cast<void*>(variable->va);
        if (bytes != nullptr) *bytes = variable->bytes;
        return {};
    });
}

orrError_t orrFuncGetAttributes(orrFuncAttributes* attributes, orrFunction_t function) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(attributes, "orrFuncAttributes"));
        const auto kernel = runtime.functions.find(function);
        if (!kernel) return bad_handle("function", function);
        const Isa& needs = kernel->needs();
        orrFuncAttributes all{};
        all.code_bytes = kernel->code_bytes;
        all.max_items = kMaxItems;
        all.max_local_bytes = ORR_LOCAL_BYTES;
        all.stack_bytes = ORR_STACK_BYTES;
        all.item_stack_bytes = std::uint64_t{kernel->item_stack_pages} * ORR_PAGE_SIZE;
        all.vlen = needs.vlen();
        put_text(all.isa, needs.text());
        put_text(all.source, kernel->source());
        return write_struct(attributes, all, "orrFuncAttributes");
    });
}

orrError_t orrFuncSetAttribute(orrFunction_t function, orrFuncAttribute attribute, uint64_t value) {
    return with_runtime([&](Runtime& runtime) -> Status {
        const auto kernel = runtime.functions.find(function);
        if (!kernel) return bad_handle("function", function);
        if (attribute != orrFuncAttributeItemStackBytes) {
            return fail(orrErrorInvalidValue, "{} is not an orrFuncAttribute", static_cast<int>(attribute));
        }
        if (value == 0 || value > ElfImage::kMaxItemStack) {
            return fail(orrErrorInvalidValue, "item stacks of {} bytes: at least 1, at most {}", value,
                        ElfImage::kMaxItemStack);
        }
        if (kernel->item_stack_pages == 0) {
            return fail(
                orrErrorInvalidValue,
                "nothing in the module of kernel '{}' waits at a barrier, so its items have no stacks "
                "of their own",
                printable(kernel->name));
        }
        kernel->set_item_stack_pages(static_cast<std::uint16_t>((value + ORR_PAGE_SIZE - 1) / ORR_PAGE_SIZE));
        return {};
    });
}

}  // namespace orrery::umd::api
