// Counters of a device, by the catalogue.
#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/runtime/counter_catalogue.h"

using namespace orrery::umd;

namespace {

Result<std::size_t> counters_of(Runtime& runtime, int device) {
    ORR_TRY(winsys, runtime.device(device));
    ORR_TRY(card, (*winsys)->query());
    return catalogued(card->counters);
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrDeviceGetCounterCount(size_t* count, int device) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (count == nullptr) return null_argument("count");
        ORR_TRY(counters, counters_of(runtime, device));
        *count = *counters;
        return {};
    });
}

orrError_t orrDeviceGetCounterInfo(orrCounterInfo* info, int device, size_t number) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(info, "orrCounterInfo"));
        ORR_TRY(counters, counters_of(runtime, device));
        if (number >= *counters) {
            return fail(orrErrorInvalidValue, "there is no counter {}: device {} has {}", number, device,
                        *counters);
        }
        const CatalogueEntry& entry = catalogue_entry(number);
        orrCounterInfo told{};
        told.name = entry.name;
        told.unit = entry.unit;
        told.meaning = entry.meaning;
        told.engine = entry.engine;
        told.counter = counter_of(number);
        return write_struct(info, told, "orrCounterInfo");
    });
}

orrError_t orrDeviceFindCounter(orrCounter_t* counter, int device, const char* name) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (counter == nullptr || name == nullptr) return null_argument("counter or name");
        ORR_TRY(counters, counters_of(runtime, device));
        const auto number = find_in_catalogue(name);
        if (!number || *number >= *counters) {
            return fail(orrErrorNotFound,
                        "device {} has no counter '{}': orrDeviceGetCounterInfo goes through those it has",
                        device, name);
        }
        *counter = counter_of(*number);
        return {};
    });
}

orrError_t orrDeviceReadCounters(uint64_t* values, int device, const orrCounter_t* counters, size_t count) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if ((values == nullptr || counters == nullptr) && count != 0)
            return null_argument("values or counters");
        ORR_TRY(winsys, runtime.device(device));
        ORR_TRY(read, (*winsys)->counters());
        for (std::size_t i = 0; i < count; ++i) {
            const auto number = number_of(counters[i]);
            if (number && *number < read->size()) continue;
            return fail(orrErrorInvalidValue,
                        "counters[{}] is {:#x}, which is no counter of device {}: ask orrDeviceFindCounter",
                        i, counters[i], device);
        }
        for (std::size_t i = 0; i < count; ++i)
            values[i] = (*read)[*number_of(counters[i])];
        return {};
    });
}

}  // namespace orrery::umd::api
