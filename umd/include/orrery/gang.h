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
 * Each part comes behind its stream's earlier work, and none starts before all can. So long as the limit of
 * model time that the parts' streams have for a kernel (1 s by default; see limit_us of orrStreamAttributes)
 * all parts may take to come to their turn. Then the devices may be busy with what goes first: for sixteen
 * times the limit in all with other launches over several devices, and with kernels of a privileged priority;
 * for 5 ms with those of a higher one; and for as long as earlier such launches of this user ran, with
 * kernels of users (or other processes of this user) who have had less. That costs nothing, unless a device
 * that came to its turn is kept meanwhile from such launches of other users: there this one pauses for twenty
 * times as long, up to 2 s, and may miss its turn on the others. So beside long launches of another user on
 * each of its devices it may wait several times as long as for those of one, and even in vain. In the end all
 * parts' streams stop with orrErrorLaunchTimeout, and the text names a device that lacked, whether
 * something went first there, and whether the parts had run before (see below: then they have written); with
 * orrErrorPeerAccess if a link between them went down. (A start that crosses a giving up may run one part
 * alone, until it is ended with the others.)
 *
 * If one part fails, before or while it runs, the others' streams stop with that code and a text that names
 * the first cause: a part that waits for one that is gone does not wait for ever. (While they run, it takes a
 * call that waits for a stream of this process, or asks for one's state.)
 *
 * At most four streams of a process have such parts that are not over on one device; the call fails with
 * orrErrorOutOfMemory for a fifth. A device has places for 16 such launches of all processes that have not
 * started, of which all processes of one user have no more than are left then: 8 if nobody else has any, a
 * second user 4 beside them, a third 2. Of a launch without a place all streams stop with
 * orrErrorOutOfMemory. If a launch kept vector cores idle for more than 1 ms while it waited to start, and
 * other work waited for them, launches of its user pause on that device for twenty times as long, also if it
 * started in the end. A call that fails starts nothing. If a part's stream stops while the call gives the
 * parts, the streams of those before it, which had theirs, stop too, with that cause; for any other failure
 * all streams go on. Once it runs the launch is preempted as a whole, if at all: its parts stop together, and
 * go on together, so they may wait for each other by spinning. It is no part of a graph. flags: 0.
 */
ORR_API orrError_t orrLaunchGang(const orrLaunchParams* const* parts, size_t count, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_GANG_H */
