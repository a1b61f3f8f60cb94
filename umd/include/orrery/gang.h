/* SPDX-License-Identifier: MIT */
/** One launch over several devices. */
#ifndef ORRERY_GANG_H
#define ORRERY_GANG_H

#include <orrery/base.h>
#include <orrery/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Launches `count` (1 to 8) kernels together, each in a stream of a device of its own; each pair of the
 * devices has to be joined by a link. All work-groups of all parts are on vector cores at the same time, as
 * those of a cooperative launch are on one device (whose flag goes without saying), so they may wait for each
 * other: in memory of orrMallocHost, which all devices see, as kernels cannot reach another device's memory.
 *
 * Each part comes behind its stream's earlier work, and none starts before all can. If they cannot within the
 * limit of model time that their streams have for a kernel (1 s by default; see limit_us of
 * orrStreamAttributes), all parts' streams stop with orrErrorLaunchTimeout, and the text names the device
 * that lacked. If one part fails, before or while it runs, the others' streams stop with that code and a text
 * that names the first cause: a part that waits for one that is gone does not wait for ever. (While they run,
 * it takes a call that waits for a stream of this process, or asks for one's state.) A call that fails has
 * started nothing. The launch is not preempted once it runs, and is no part of a graph. flags: 0.
 */
ORR_API orrError_t orrLaunchGang(const orrLaunchParams* const* parts, size_t count, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_GANG_H */
