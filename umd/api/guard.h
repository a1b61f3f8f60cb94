// The border of the C API: no exception crosses it, and every failure leaves its text with the thread.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "umd/runtime/runtime.h"

namespace orrery::umd {

// Keeps the text for orrGetLastErrorText().
orrError_t report(const Error& error) noexcept;

orrError_t report_exception(orrError_t code, const std::exception& exception) noexcept;

template <typename Body>
orrError_t guarded(Body&& body) noexcept {
    try {
        Status status = std::forward<Body>(body)();
        if (status) [[likely]]
            return orrSuccess;
        return report(status.error());
    } catch (const std::bad_alloc&) {
        return report(Error{orrErrorOutOfMemory, {}});
    } catch (const std::system_error& error) {
        return report_exception(orrErrorSystem, error);  // a thread that could not be started
    } catch (const std::exception& error) {
        return report_exception(orrErrorInternal, error);
    } catch (...) {
        return report(Error{orrErrorInternal, {}});
    }
}

// The same with the process's runtime.
template <typename Body>
orrError_t with_runtime(Body&& body) noexcept {
    return guarded([&]() -> Status {
        ORR_TRY(runtime, Runtime::get());
        return body(**runtime);
    });
}

inline Status null_argument(const char* name) {
    return fail(orrErrorInvalidValue, "{} is null", name);
}

template <typename T>
[[gnu::cold]] Status bad_handle(const char* what, T* handle) {
    return fail(orrErrorInvalidHandle, "{} is not a live {}", static_cast<const void*>(handle), what);
}

template <typename Table, typename Object>
Result<void*> give_handle(Table& table, std::shared_ptr<Object> object, const char* what) {
    void* handle = table.insert(std::move(object));
    if (handle == nullptr) return fail(orrErrorOutOfMemory, "too many live {}: destroy some", what);
    return handle;
}

}  // namespace orrery::umd
