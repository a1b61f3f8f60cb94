/* SPDX-License-Identifier: MIT */
/*
 * Where the trace sink (ORR_R_SINK in bar0.h) puts records: a head, and at once behind it the ring. A record there is
 * the model time of its header in picoseconds, the header (hw/trace.h has the framing) and its words, 64 bits each.
 * Word number n of all that were written is in place n % (bytes of the ring / 8).
 */
#ifndef ORRERY_HW_TRACE_SINK_H
#define ORRERY_HW_TRACE_SINK_H

#include "base.h"

struct orr_trace_sink {
	/*
	 * By the card: words of whole records written since the ring was set, stored last. A record of which a word
	 * is ORR_SINK_MARGIN or less from being written over, when head is read again behind it, is not to be believed.
	 */
	uint64_t head;
	uint64_t reserved[7];
};
ORR_ASSERT_SIZE(struct orr_trace_sink, 64);

#define ORR_SINK_WORDS(header) (2u + (uint32_t)((header) >> 8 & 0xffu)) /* of a record in the ring */
#define ORR_SINK_MARGIN 257u /* words of the longest record */

#endif /* ORRERY_HW_TRACE_SINK_H */
