/* SPDX-License-Identifier: MIT */
/** Modules of kernels, made by orrery-cc, and their launch. */
#ifndef ORRERY_MODULE_H
#define ORRERY_MODULE_H

#include <orrery/base.h>
#include <orrery/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct orrDim3 {
    uint32_t x, y, z;
} orrDim3;

/** An image made by orrery-cc, loaded on the current device. */
ORR_API orrError_t orrModuleLoad(orrModule_t* module, const char* path);
/** The same from memory; the image is not needed any more when this returns. */
ORR_API orrError_t orrModuleLoadData(orrModule_t* module, const void* image, size_t bytes);
/**
 * Whether the image is a module with a kernel that a card could run; needs no device. orrErrorNotSupported:
 * no card could, as of orrModuleLoadData a card that lacks what the module needs.
 */
ORR_API orrError_t orrModuleCheckData(const void* image, size_t bytes);
/** Waits for the device's streams; its functions end with it. */
ORR_API orrError_t orrModuleUnload(orrModule_t module);
/** A kernel of the module, by its name; orrErrorNotFound lists those that there are. */
ORR_API orrError_t orrModuleGetFunction(orrFunction_t* function, orrModule_t module, const char* name);
/**
 * A variable of the module that is marked ORR_GLOBAL (orrery/kernel.h): its address on the module's device
 * and its size. All copies, fills and reductions take the address, up to the variable's end; only a device's
 * own streams reach its variables, and what is const can only be read. It goes with the module. One of
 * address and bytes may be null. orrErrorNotFound lists the variables that there are.
 */
ORR_API orrError_t orrModuleGetGlobal(void** address, size_t* bytes, orrModule_t module, const char* name);
/**
 * Runs grid.x*y*z work-groups of block.x*y*z work-items; each item is one call of the kernel with
 * a pointer to a copy of the `bytes` bytes at args (at most 4,096; taken before this returns).
 * local_bytes of zeroed memory are shared by the items of a group. The function's module
 * and the stream must be of one device; a library's function (orrery/library.h) takes streams of all.
 */
ORR_API orrError_t orrLaunchKernel(orrFunction_t function, orrDim3 grid, orrDim3 block, const void* args,
                                   size_t bytes, size_t local_bytes, orrStream_t stream);

/**
 * All work-groups are on vector cores at one moment, so that they may wait for each other.
 * At most as many as orrOccupancyMaxActiveGroups says; the stream waits until so many cores are free.
 */
#define orrLaunchCooperative 0x1u

/** A launch; with `flags` 0 that of orrLaunchKernel. */
typedef struct orrLaunchParams {
    size_t size; /**< see ORR_INIT */
    orrFunction_t function;
    orrDim3 grid;
    orrDim3 block;
    const void* args;
    size_t bytes;
    size_t local_bytes;
    orrStream_t stream;
    uint64_t flags; /**< orrLaunch* */
} orrLaunchParams;
/** As orrLaunchKernel, with all that a launch can have. */
ORR_API orrError_t orrLaunchKernelEx(const orrLaunchParams* params);
/**
 * How many work-groups of such a launch run at one moment on the function's device (the current one, if the
 * function is a library's): one on each core.
 * flags: 0.
 */
ORR_API orrError_t orrOccupancyMaxActiveGroups(uint32_t* groups, orrFunction_t function, orrDim3 block,
                                               size_t local_bytes, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_MODULE_H */
