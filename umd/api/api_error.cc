#include <array>
#include <string>

#include "umd/api/guard.h"
#include "umd/prof/profiler.h"
#include "umd/prof/thread_object.h"

namespace orrery::umd {
namespace {

static_assert(ORR_VERSION == ORRERY_PROJECT_VERSION, "orrery/base.h and CMakeLists.txt differ");

// Of the thread's last failure, by how many callbacks it was in: what a tool's calls come to is not the
// program's. Null: the thread has ended.
std::string* last_text(std::uint32_t depth) {
    auto* const texts = thread_object<std::array<std::string, 1 + orrProfMaxSubscriptions>>();
    return texts == nullptr ? nullptr : &(*texts)[depth];
}

struct Named {
    const char* name;
    const char* sentence;
};

Named describe(orrError_t error) {
    switch (error) {
        case orrSuccess:
            return {"orrSuccess", "No error."};
        case orrErrorInvalidValue:
            return {"orrErrorInvalidValue", "An argument is out of range or null."};
        case orrErrorOutOfMemory:
            return {"orrErrorOutOfMemory", "The card or the host has no memory left."};
        case orrErrorNoDevice:
            return {"orrErrorNoDevice", "There is no card, or its node may not be opened."};
        case orrErrorInvalidDevice:
            return {"orrErrorInvalidDevice", "There is no device of that number."};
        case orrErrorInvalidHandle:
            return {"orrErrorInvalidHandle", "The handle is not of a live object of the expected kind."};
        case orrErrorNotReady:
            return {"orrErrorNotReady", "The work is still running."};
        case orrErrorInvalidImage:
            return {"orrErrorInvalidImage", "The module is not what orrery-cc makes."};
        case orrErrorNotFound:
            return {"orrErrorNotFound", "There is nothing of that name."};
        case orrErrorIllegalAddress:
            return {"orrErrorIllegalAddress", "A kernel or copy touched unmapped or protected memory."};
        case orrErrorIllegalInstruction:
            return {"orrErrorIllegalInstruction", "A kernel trapped."};
        case orrErrorLaunchTimeout:
            return {"orrErrorLaunchTimeout", "A kernel ran over its limit of model time."};
        case orrErrorDeviceLost:
            return {"orrErrorDeviceLost", "The card was reset or removed."};
        case orrErrorPeerAccess:
            return {"orrErrorPeerAccess", "There is no link to that card, or peer access is not enabled."};
        case orrErrorNotSupported:
            return {"orrErrorNotSupported",
                    "The card, its driver, its firmware or this process cannot do it."};
        case orrErrorVersion:
            return {"orrErrorVersion", "The driver or firmware is too old or too new for this library."};
        case orrErrorSystem:
            return {"orrErrorSystem", "A system call failed."};
        case orrErrorTimeout:
            return {"orrErrorTimeout", "A wait of limited time ended."};
        case orrErrorInternal:
            return {"orrErrorInternal", "A fault of the library: please report it."};
        case orrErrorCancelled:
            return {"orrErrorCancelled", "The task was cancelled, or depends on one that was."};
        case orrErrorStreamCapture:
            return {"orrErrorStreamCapture", "The call does not go together with the capture of a stream."};
        case orrErrorDeadlock:
            return {"orrErrorDeadlock", "Streams wait for each other in a circle."};
        case orrErrorFirmware:
            return {"orrErrorFirmware", "The card's firmware crashed while it worked for the stream."};
        case orrErrorAborted:
            return {"orrErrorAborted", "Somebody aborted the stream, or one that it waited for."};
        case orrErrorAbandoned:
            return {"orrErrorAbandoned", "Nobody is left who may signal what the stream waited for."};
    }
    return {"orrErrorUnknown", "Not an error code of this library."};
}

}  // namespace

orrError_t report(const Error& error) noexcept {
    ThreadMarks& marks = thread_marks();
    marks.failed |= 1u << marks.depth;
    std::string* const text = last_text(marks.depth);
    if (text == nullptr) return error.code;
    try {
        *text = error.text.empty() ? describe(error.code).sentence : error.text;
    } catch (...) {
        text->clear();
    }
    return error.code;
}

orrError_t report_exception(orrError_t code, const std::exception& exception) noexcept {
    try {
        return report(Error{code, exception.what()});
    } catch (...) {
        return report(Error{code, {}});
    }
}

}  // namespace orrery::umd

using namespace orrery::umd;

namespace orrery::umd::api {

const char* orrGetErrorName(orrError_t error) {
    return describe(error).name;
}
const char* orrGetErrorString(orrError_t error) {
    return describe(error).sentence;
}
const char* orrGetLastErrorText(void) {
    const ThreadMarks& marks = thread_marks();
    std::uint32_t depth = marks.depth;
    while (depth > 0 && (marks.failed & 1u << depth) == 0)
        --depth;
    const std::string* const text = last_text(depth);
    return text == nullptr ? "" : text->c_str();
}

orrError_t orrGetVersion(uint32_t* version) {
    return guarded([&]() -> Status {
        if (version == nullptr) return null_argument("version");
        *version = ORR_VERSION;
        return {};
    });
}

}  // namespace orrery::umd::api
