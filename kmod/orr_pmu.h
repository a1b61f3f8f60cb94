/* SPDX-License-Identifier: GPL-2.0 */
/* The counters of cards as PMUs of perf. */
#ifndef _ORR_PMU_H_
#define _ORR_PMU_H_

struct orr_device;

#ifdef CONFIG_PERF_EVENTS
int orr_pmu_init(void);
void orr_pmu_exit(void);
void orr_pmu_attach(struct orr_device *odev);
void orr_pmu_detach(struct orr_device *odev);
#else
static inline int orr_pmu_init(void) { return 0; }
static inline void orr_pmu_exit(void) {}
static inline void orr_pmu_attach(struct orr_device *odev) {}
static inline void orr_pmu_detach(struct orr_device *odev) {}
#endif

#endif
