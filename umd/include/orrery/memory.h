/* SPDX-License-Identifier: MIT */
/** Memory: addresses are unique over all devices and the host. */
#ifndef ORRERY_MEMORY_H
#define ORRERY_MEMORY_H

#include <orrery/base.h>
#include <orrery/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/** On the current device. */
ORR_API orrError_t orrMalloc(void** ptr, size_t bytes);
/** Waits for the streams of its device and of those that may write to it as peers; null is fine. */
ORR_API orrError_t orrFree(void* ptr);
/** Pinned host memory, which every device and the CPU use at this address. flags: 0. */
ORR_API orrError_t orrMallocHost(void** ptr, size_t bytes, unsigned flags);
/** Waits for the streams of all devices; null is fine. */
ORR_API orrError_t orrFreeHost(void* ptr);
/** Of the current device, over all processes. */
ORR_API orrError_t orrMemGetInfo(size_t* free_bytes, size_t* total_bytes);

typedef enum orrMemcpyKind {
    orrMemcpyHostToHost = 0,
    orrMemcpyHostToDevice = 1,
    orrMemcpyDeviceToHost = 2,
    orrMemcpyDeviceToDevice = 3, /**< on one device, or between two: see orrDeviceGetPeerWay */
    orrMemcpyDefault = 4,        /**< found out from the addresses */
} orrMemcpyKind;

/** Returns when the copy is done. Uses the null stream of the device that is involved. */
ORR_API orrError_t orrMemcpy(void* dst, const void* src, size_t bytes, orrMemcpyKind kind);
/**
 * With memory of orrMallocHost it returns at once; with ordinary host memory it may return only
 * after that memory was read (host to device) or written (device to host). Between two devices that no links
 * join (orrDeviceGetPeerWay) it returns when the copy, and all before it in the stream, is done; if the other
 * device fails meanwhile, the stream stops with that.
 */
ORR_API orrError_t orrMemcpyAsync(void* dst, const void* src, size_t bytes, orrMemcpyKind kind,
                                  orrStream_t stream);
/** Each byte becomes the low 8 bits of value. Returns when that is done. */
ORR_API orrError_t orrMemset(void* dst, int value, size_t bytes);
/** The same in the order of a stream. */
ORR_API orrError_t orrMemsetAsync(void* dst, int value, size_t bytes, orrStream_t stream);

/*
 * Rows and planes: `width` and pitches are bytes, `height` and `depth` count rows and planes. The pitch of
 * each side is at least the width; of a single row it is not looked at. Copies of memory that overlaps itself
 * have an undefined result.
 */

/** On the current device, for `height` rows: *pitch, at least width and a multiple of 256, is what lies
 * between their starts. Neither width nor height is 0. */
ORR_API orrError_t orrMallocPitch(void** ptr, size_t* pitch, size_t width, size_t height);
/** As orrMemcpy, of `height` rows of `width` bytes. */
ORR_API orrError_t orrMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                               size_t height, orrMemcpyKind kind);
/** As orrMemcpyAsync, of `height` rows of `width` bytes. */
ORR_API orrError_t orrMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                    size_t width, size_t height, orrMemcpyKind kind, orrStream_t stream);
/** A box of rows and planes. Heights are rows from plane to plane, at least `height`; unused with depth 1. */
typedef struct orrMemcpy3DParams {
    size_t size; /**< see ORR_INIT */
    void* dst;
    size_t dst_pitch;
    size_t dst_height;
    const void* src;
    size_t src_pitch;
    size_t src_height;
    size_t width;
    size_t height;
    size_t depth;       /**< 1 for rows only; 0, which ORR_INIT leaves, is refused */
    orrMemcpyKind kind; /**< zero is orrMemcpyHostToHost, as in orrMemcpy */
    uint32_t reserved;  /**< 0 */
} orrMemcpy3DParams;
/** As orrMemcpy, of a box. */
ORR_API orrError_t orrMemcpy3D(const orrMemcpy3DParams* params);
/** As orrMemcpyAsync, of a box. */
ORR_API orrError_t orrMemcpy3DAsync(const orrMemcpy3DParams* params, orrStream_t stream);
/** Dimensions of orrMemcpyNDParams, at most. */
#define orrMemcpyNDMaxDims 5u
/**
 * A box in up to five dimensions: extent[0] bytes in a row, extent[1] such rows, extent[2] planes of those,
 * and so on. Strides are bytes from one to the next: stride[0] of rows, stride[1] of planes. Those of the
 * source may be anything (with 0 one row is read again and again); where places of the destination overlap,
 * the result is undefined. What lies behind `dims` is 0.
 */
typedef struct orrMemcpyNDParams {
    size_t size; /**< see ORR_INIT */
    void* dst;
    const void* src;
    uint64_t dims;        /**< 1 to orrMemcpyNDMaxDims */
    size_t extent[5];     /**< with a 0 nothing is copied */
    size_t dst_stride[4]; /**< dims - 1 of them */
    size_t src_stride[4];
    orrMemcpyKind kind; /**< zero is orrMemcpyHostToHost, as in orrMemcpy */
    uint32_t reserved;  /**< 0 */
} orrMemcpyNDParams;
/** As orrMemcpy, also between devices, of a box in memory of orrMalloc or orrMallocHost; ordinary memory is
 * refused. */
ORR_API orrError_t orrMemcpyND(const orrMemcpyNDParams* params);
/** The same in the order of a stream; between two devices that no links join as orrMemcpyAsync. */
ORR_API orrError_t orrMemcpyNDAsync(const orrMemcpyNDParams* params, orrStream_t stream);
/**
 * As `count` calls of orrMemcpyAsync with orrMemcpyDefault, in any order, as one piece of work: none is begun
 * if an argument of one is wrong. Only of memory that cards can use (orrMalloc, orrMallocHost) it is one.
 * flags: 0.
 */
ORR_API orrError_t orrMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* bytes,
                                       size_t count, unsigned flags, orrStream_t stream);

/** As orrMemset, of `height` rows of `width` bytes. */
ORR_API orrError_t orrMemset2D(void* dst, size_t pitch, int value, size_t width, size_t height);
/** The same in the order of a stream. */
ORR_API orrError_t orrMemset2DAsync(void* dst, size_t pitch, int value, size_t width, size_t height,
                                    orrStream_t stream);
/** `count` elements of 16 bits; dst is a multiple of their size. Returns when that is done. */
ORR_API orrError_t orrMemsetD16(void* dst, uint16_t value, size_t count);
/** The same in the order of a stream. */
ORR_API orrError_t orrMemsetD16Async(void* dst, uint16_t value, size_t count, orrStream_t stream);
/** As orrMemsetD16, with 32 bits. */
ORR_API orrError_t orrMemsetD32(void* dst, uint32_t value, size_t count);
/** The same in the order of a stream. */
ORR_API orrError_t orrMemsetD32Async(void* dst, uint32_t value, size_t count, orrStream_t stream);
/** As orrMemsetD16, with 64 bits. */
ORR_API orrError_t orrMemsetD64(void* dst, uint64_t value, size_t count);
/** The same in the order of a stream. */
ORR_API orrError_t orrMemsetD64Async(void* dst, uint64_t value, size_t count, orrStream_t stream);

/** Elements of copies with reduction. */
typedef enum orrDataType {
    orrInt8 = 1,
    orrUint8 = 2,
    orrInt32 = 3,
    orrUint32 = 4,
    orrInt64 = 5,
    orrUint64 = 6,
    orrFloat16 = 7,
    orrBfloat16 = 8,
    orrFloat32 = 9,
    orrFloat64 = 10,
} orrDataType;

typedef enum orrReduceOp {
    orrReduceSum = 1,
    orrReduceMin = 2, /**< a NaN loses against a number, -0 is less than +0; max likewise */
    orrReduceMax = 3,
    orrReduceProd = 4,
} orrReduceOp;

/**
 * dst[i] = dst[i] op src[i] for `count` elements, done by a copy engine; the same bits always. Integers wrap
 * around; floats are rounded to nearest even at each element, and a NaN that comes out is the quiet one
 * without payload. Memory of orrMalloc on the device that does it, or of orrMallocHost, and src may be a
 * multicast of that device (orrMulticastReadable); both are multiples of the element's size, and the same or
 * apart. src may also be on another device that the one that does it reads over links
 * (orrDeviceEnablePeerAccess, else orrErrorPeerAccess), or that no links join with it (orrDeviceGetPeerWay).
 * Returns when that is done; runs on the destination's device, else the source's, else the current one.
 * flags: 0.
 */
ORR_API orrError_t orrMemcpyReduce(void* dst, const void* src, size_t count, orrDataType type, orrReduceOp op,
                                   unsigned flags);
/**
 * The same in the order of a stream, of the destination's device if links join it with the source's. Where
 * none do it may be either's, and the call returns as that of orrMemcpyAsync; if a device fails meanwhile,
 * some elements are combined and some are not.
 */
ORR_API orrError_t orrMemcpyReduceAsync(void* dst, const void* src, size_t count, orrDataType type,
                                        orrReduceOp op, unsigned flags, orrStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_MEMORY_H */
