/* SPDX-License-Identifier: MIT */
/**
 * What all headers of liborrery share: version, error codes, how structs and flags grow.
 *
 * Structs: one that is given to the library or filled by it starts with `size_t size`, its size as the
 * program was built, which ORR_INIT sets; all other members are zero then, and zero is the default of each.
 *
 *   orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
 *   attributes.priority = -1;
 *
 * Later versions add members at the end. A program of an older header gives a shorter struct: what it lacks
 * has its default, and of results it gets the members that it has room for. A program of a newer header may
 * leave at zero what this library does not know; anything else there is orrErrorNotSupported.
 *
 * Flags: bits that the library does not know are orrErrorInvalidValue.
 * Parameters: what a call gives back comes first.
 */
#ifndef ORRERY_BASE_H
#define ORRERY_BASE_H

#include <stddef.h>
#include <stdint.h>

/** Versions are numbers that can be compared: major, minor and patch with 8 bits each for the last two. */
#define ORR_MAKE_VERSION(major, minor, patch) (((major) << 16) | ((minor) << 8) | (patch))
#define ORR_VERSION_MAJOR 0
#define ORR_VERSION_MINOR 3
#define ORR_VERSION_PATCH 0
/** Of these headers; orrGetVersion() tells that of the library. */
#define ORR_VERSION ORR_MAKE_VERSION(ORR_VERSION_MAJOR, ORR_VERSION_MINOR, ORR_VERSION_PATCH)

#define ORR_API __attribute__((visibility("default")))

/** ORR_INIT(type): a value of a struct whose first member is its size, with all else zero. */
#ifdef __cplusplus
/* A program may include this inside of extern "C", where no template can be. */
extern "C++" {
template <typename Struct>
constexpr Struct orrInit() {
    Struct value{};
    value.size = sizeof(Struct);
    return value;
}
}
#define ORR_INIT(type) (orrInit<type>())
#else
#define ORR_INIT(type) ((type){.size = sizeof(type)})
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Codes are stable: numbers never change, new ones are added at the end. */
typedef enum orrError {
    orrSuccess = 0,
    orrErrorInvalidValue = 1,        /**< an argument is out of range or null */
    orrErrorOutOfMemory = 2,         /**< of the card or of the host, or no place for orrLaunchGang */
    orrErrorNoDevice = 3,            /**< no card, or its node may not be opened */
    orrErrorInvalidDevice = 4,       /**< no such device number */
    orrErrorInvalidHandle = 5,       /**< not a live object of that kind */
    orrErrorNotReady = 6,            /**< asked for the state: still running */
    orrErrorInvalidImage = 7,        /**< a module that is not what orrery-cc makes */
    orrErrorNotFound = 8,            /**< no such function in the module, no such counter */
    orrErrorIllegalAddress = 9,      /**< a kernel or copy touched unmapped or protected memory */
    orrErrorIllegalInstruction = 10, /**< a kernel trapped, or a card that checks it found something */
    orrErrorLaunchTimeout = 11,      /**< a kernel, or orrLaunchGang, ran over its limit of model time */
    orrErrorDeviceLost = 12,         /**< the card was reset or removed */
    orrErrorPeerAccess = 13,         /**< no link to that card, or peer access not enabled */
    orrErrorNotSupported = 14,       /**< this library, the card, driver or firmware cannot do it */
    orrErrorVersion = 15,            /**< driver or firmware too old or too new for this library */
    orrErrorSystem = 16,             /**< a system call failed; the text has its name and reason */
    orrErrorTimeout = 17,            /**< a wait of limited time ended */
    orrErrorInternal = 18,           /**< a fault of the library, please report */
    orrErrorCancelled = 19,          /**< a task that was cancelled, or depends on one that was */
    orrErrorStreamCapture = 20,      /**< the call does not go together with the capture of a stream */
    orrErrorDeadlock = 21,           /**< the wait ends only if somebody signals: streams wait in a circle */
    orrErrorFirmware = 22,           /**< the card's firmware crashed while it worked for the stream */
    orrErrorAborted = 23,            /**< somebody aborted the stream, or one that it waited for */
    orrErrorAbandoned = 24,          /**< nobody is left who may signal what the stream waited for */
} orrError_t;

/** "orrErrorInvalidValue"; never null. */
ORR_API const char* orrGetErrorName(orrError_t error);
/** One sentence; never null. */
ORR_API const char* orrGetErrorString(orrError_t error);
/**
 * Text of this thread's last failure: cause and next step. Valid until the thread's next failure. Failures of
 * calls in a callback (orrery/prof.h) are the callback's: until one fails there it is the program's text.
 */
ORR_API const char* orrGetLastErrorText(void);

/**
 * Of the library that is loaded: an ORR_MAKE_VERSION number. It may be below ORR_VERSION if the program uses
 * nothing that is newer.
 */
ORR_API orrError_t orrGetVersion(uint32_t* version);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_BASE_H */
