// One launch over several cards.
#include <algorithm>
#include <vector>

#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/runtime/gang.h"
#include "umd/runtime/launch.h"
#include "umd/scheduler/capture.h"

using namespace orrery::umd;

namespace {

// function: keeps what is launched.
Result<GangPart> check_part(Runtime& runtime, const orrLaunchParams* params,
                            HandleTable<Function, HandleKind::kFunction>::Ref& function) {
    ORR_TRY(given, read_struct(params, "orrLaunchParams"));
    ORR_TRY(known, check_flags(given->flags, orrLaunchCooperative, "orrLaunchGang"));
    GangPart part;
    ORR_TRY(queue, runtime.stream(given->stream));
    part.stream = std::move(*queue);
    if (part.stream->capturing())
        return std::unexpected(refuse_capture(*part.stream, "a launch over several devices").error());
    function = runtime.functions.find(given->function);
    if (!function) return std::unexpected(bad_handle("function", given->function).error());
    ORR_TRY(kernel, function->on(part.stream->context()));
    part.kernel = *kernel;
    ORR_TRY(valid, check_launch(given->grid, given->block, given->args, given->bytes, given->local_bytes));
    ORR_TRY(fits, check_resident(*part.kernel, given->grid));
    if (const auto stopped = part.stream->error()) return std::unexpected(*stopped);
    part.dispatch = make_dispatch(*part.kernel, given->grid, given->block, given->local_bytes, 0);
    part.dispatch.header.flags |= ORR_PKT_F_RESIDENT;
    part.args = {static_cast<const std::byte*>(given->args), given->bytes};
    return part;
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrLaunchGang(const orrLaunchParams* const* parts, size_t count, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrLaunchGang"));
        if (parts == nullptr) return null_argument("parts");
        if (count == 0 || count > ORR_GANG_MAX_CARDS) {
            return fail(orrErrorInvalidValue, "a launch over {} devices: at least 1, at most {}", count,
                        ORR_GANG_MAX_CARDS);
        }
        std::vector<HandleTable<Function, HandleKind::kFunction>::Ref> functions(count);
        std::vector<GangPart> all;
        for (std::size_t i = 0; i < count; ++i) {
            auto part = check_part(runtime, parts[i], functions[i]);
            if (!part) return fail(part.error().code, "part {} of {}: {}", i, count, part.error().text);
            const auto same = std::ranges::find_if(all, [&](const GangPart& other) {
                return &other.stream->context() == &part->stream->context();
            });
            if (same != all.end()) {
                return fail(orrErrorInvalidValue,
                            "parts {} and {} are both in streams of device {}: one part a device",
                            same - all.begin(), i, part->stream->context().device());
            }
            all.push_back(std::move(*part));
        }
        runtime.offer_again();
        return all.front().stream->context().fleet().gangs().launch(std::move(all));
    });
}

}  // namespace orrery::umd::api
