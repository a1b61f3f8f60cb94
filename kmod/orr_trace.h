/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints, for ftrace, perf and trace-cmd: events/orrery in tracefs. `card` is the N of
 * /dev/accel/accelN, `queue` the firmware's number.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM orrery

#if !defined(_ORR_TRACE_H_) || defined(TRACE_HEADER_MULTI_READ)
#define _ORR_TRACE_H_

#include <linux/tracepoint.h>

#include <drm/drm_file.h>

#include <orrery/fw/mailbox.h>

#include "orr_bo.h"
#include "orr_device.h"
#include "orr_queue.h"

/* Longer ones are cut. */
#define ORR_TRACE_REASON_BYTES 96

/* A command goes into the mailbox; again, with the same sequence, after a restart of the firmware. */
TRACE_EVENT(orr_command,
	    TP_PROTO(struct orr_device *odev, const struct orr_mbox_message *message),
	    TP_ARGS(odev, message),
	    TP_STRUCT__entry(__field(int, card)
			     __field(u32, sequence)
			     __field(u16, opcode)
			     __field(u64, arg)
	    ),
	    TP_fast_assign(__entry->card = odev->drm.accel->index;
			   __entry->sequence = message->sequence;
			   __entry->opcode = message->opcode;
			   __entry->arg = message->arg[0];
	    ),
	    TP_printk("card=%d sequence=%u opcode=%u arg=%#llx", __entry->card, __entry->sequence,
		      __entry->opcode, __entry->arg)
);

TRACE_EVENT(orr_reply,
	    TP_PROTO(struct orr_device *odev, const struct orr_mbox_message *message),
	    TP_ARGS(odev, message),
	    TP_STRUCT__entry(__field(int, card)
			     __field(u32, sequence)
			     __field(u16, opcode)
			     __field(u32, status)
			     __field(u32, detail)
	    ),
	    TP_fast_assign(__entry->card = odev->drm.accel->index;
			   __entry->sequence = message->sequence;
			   __entry->opcode = message->opcode;
			   __entry->status = message->status;
			   __entry->detail = message->detail;
	    ),
	    TP_printk("card=%d sequence=%u opcode=%u status=%u detail=%u", __entry->card,
		      __entry->sequence, __entry->opcode, __entry->status, __entry->detail)
);

TRACE_EVENT(orr_queue_create,
	    TP_PROTO(const struct orr_queue *queue),
	    TP_ARGS(queue),
	    TP_STRUCT__entry(__field(int, card)
			     __field(u32, queue)
			     __field(u32, entries)
			     __field(u32, priority)
			     __array(char, name, ORR_QUEUE_NAME_BYTES)
	    ),
	    TP_fast_assign(__entry->card = queue->odev->drm.accel->index;
			   __entry->queue = queue->number;
			   __entry->entries = queue->entries;
			   __entry->priority = queue->priority;
			   memcpy(__entry->name, queue->name, ORR_QUEUE_NAME_BYTES);
	    ),
	    TP_printk("card=%d queue=%u entries=%u priority=%u name='%s'", __entry->card,
		      __entry->queue, __entry->entries, __entry->priority, __entry->name)
);

TRACE_EVENT(orr_queue_destroy,
	    TP_PROTO(const struct orr_queue *queue),
	    TP_ARGS(queue),
	    TP_STRUCT__entry(__field(int, card)
			     __field(u32, queue)
	    ),
	    TP_fast_assign(__entry->card = queue->odev->drm.accel->index;
			   __entry->queue = queue->number;
	    ),
	    TP_printk("card=%d queue=%u", __entry->card, __entry->queue)
);

/* As the firmware reports it: nothing of it was checked. error: ORR_QERR_* */
TRACE_EVENT(orr_queue_stopped,
	    TP_PROTO(struct orr_device *odev, const struct orr_mbox_message *event),
	    TP_ARGS(odev, event),
	    TP_STRUCT__entry(__field(int, card)
			     __field(u64, queue)
			     __field(u64, error)
			     __field(u64, index)
			     __field(u64, address)
	    ),
	    TP_fast_assign(__entry->card = odev->drm.accel->index;
			   __entry->queue = event->arg[0];
			   __entry->error = event->arg[1];
			   __entry->index = event->arg[2];
			   __entry->address = event->arg[3];
	    ),
	    TP_printk("card=%d queue=%llu error=%llu packet=%llu address=%#llx", __entry->card,
		      __entry->queue, __entry->error, __entry->index, __entry->address)
);

/* found: there were answers of the firmware, or queues that somebody waits for. */
TRACE_EVENT(orr_interrupt,
	    TP_PROTO(struct orr_device *odev, unsigned int message, bool found),
	    TP_ARGS(odev, message, found),
	    TP_STRUCT__entry(__field(int, card)
			     __field(unsigned int, message)
			     __field(bool, found)
	    ),
	    TP_fast_assign(__entry->card = odev->drm.accel->index;
			   __entry->message = message;
			   __entry->found = found;
	    ),
	    TP_printk("card=%d message=%u found=%d", __entry->card, __entry->message, __entry->found)
);

/* A mapping of a BO has been made; flags: ORR_BIND_* */
TRACE_EVENT(orr_map,
	    TP_PROTO(struct orr_device *odev, const struct orr_bo *bo, u64 va, u64 size, u32 flags),
	    TP_ARGS(odev, bo, va, size, flags),
	    TP_STRUCT__entry(__field(int, card)
			     __field(int, kind)
			     __field(u64, va)
			     __field(u64, size)
			     __field(u32, flags)
	    ),
	    TP_fast_assign(__entry->card = odev->drm.accel->index;
			   __entry->kind = bo->kind;
			   __entry->va = va;
			   __entry->size = size;
			   __entry->flags = flags;
	    ),
	    TP_printk("card=%d kind=%d va=%#llx size=%#llx flags=%#x", __entry->card, __entry->kind,
		      __entry->va, __entry->size, __entry->flags)
);

TRACE_EVENT(orr_unmap,
	    TP_PROTO(struct orr_device *odev, u64 va, u64 size),
	    TP_ARGS(odev, va, size),
	    TP_STRUCT__entry(__field(int, card)
			     __field(u64, va)
			     __field(u64, size)
	    ),
	    TP_fast_assign(__entry->card = odev->drm.accel->index;
			   __entry->va = va;
			   __entry->size = size;
	    ),
	    TP_printk("card=%d va=%#llx size=%#llx", __entry->card, __entry->va, __entry->size)
);

/* What the driver has noticed: of changes that come fast it may see the last only. */
TRACE_EVENT(orr_link,
	    TP_PROTO(struct orr_device *odev, u32 port, u32 state, u32 losses),
	    TP_ARGS(odev, port, state, losses),
	    TP_STRUCT__entry(__field(int, card)
			     __field(u32, port)
			     __field(u32, state)
			     __field(u32, losses)
	    ),
	    TP_fast_assign(__entry->card = odev->drm.accel->index;
			   __entry->port = port;
			   __entry->state = state;
			   __entry->losses = losses;
	    ),
	    TP_printk("card=%d port=%u state=%#x losses=%u", __entry->card, __entry->port,
		      __entry->state, __entry->losses)
);

TRACE_EVENT(orr_lost,
	    TP_PROTO(struct orr_device *odev, const char *reason),
	    TP_ARGS(odev, reason),
	    TP_STRUCT__entry(__field(int, card)
			     __array(char, reason, ORR_TRACE_REASON_BYTES)
	    ),
	    TP_fast_assign(__entry->card = odev->drm.accel->index;
			   strscpy(__entry->reason, reason, ORR_TRACE_REASON_BYTES);
	    ),
	    TP_printk("card=%d reason='%s'", __entry->card, __entry->reason)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE orr_trace
#include <trace/define_trace.h>
