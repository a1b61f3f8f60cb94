/* SPDX-License-Identifier: MIT */
/**
 * Libraries of kernels: modules of no device. A program loads one once; each device loads it when something
 * of it is used there for the first time.
 *
 * What orrLibraryGetFunction gives stands wherever a function of a module does, with streams of every device:
 * a launch and a captured launch run on the stream's device; where there is no stream (graph nodes,
 * occupancy) the thread's current device is meant. A device that cannot load it (orrErrorNotSupported if it
 * lacks what the code needs, orrErrorOutOfMemory, orrErrorDeviceLost) refuses that call with one line that
 * names it, and is asked again at the next use; others are not concerned.
 */
#ifndef ORRERY_LIBRARY_H
#define ORRERY_LIBRARY_H

#include <orrery/base.h>
#include <orrery/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orrLibrary_st* orrLibrary_t;

/** An image made by orrery-cc, which is checked now; needs no device. */
ORR_API orrError_t orrLibraryLoad(orrLibrary_t* library, const char* path);
/** The same from memory; the image is not needed any more when this returns. */
ORR_API orrError_t orrLibraryLoadData(orrLibrary_t* library, const void* image, size_t bytes);
/**
 * Waits for the streams of all devices that have loaded it; its functions and variables end with it. What
 * cannot be waited for keeps it, with orrErrorDeadlock for example.
 */
ORR_API orrError_t orrLibraryUnload(orrLibrary_t library);
/**
 * A kernel, by its name; loads nothing. A handle of its own each time, which ends with the library and not
 * before: keep it instead of asking at each launch. orrErrorNotFound lists the kernels that there are.
 */
ORR_API orrError_t orrLibraryGetFunction(orrFunction_t* function, orrLibrary_t library, const char* name);
/** Lets the current device load it now, so that its first launch there does not. */
ORR_API orrError_t orrLibraryPreload(orrLibrary_t library);
/** As orrModuleGetGlobal, of the current device, which loads the library now. Each device has its own. */
ORR_API orrError_t orrLibraryGetGlobal(void** address, size_t* bytes, orrLibrary_t library, const char* name);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_LIBRARY_H */
