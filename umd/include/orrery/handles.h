/* SPDX-License-Identifier: MIT */
/**
 * Objects are known by handles. A handle is a number in a pointer's clothes and never points at anything: a
 * stale or made-up one is orrErrorInvalidHandle, also while other threads create, use and destroy. A call
 * that uses an object while another thread destroys it is carried out as if it came before, or gives
 * orrErrorInvalidHandle.
 */
#ifndef ORRERY_HANDLES_H
#define ORRERY_HANDLES_H

typedef struct orrStream_st* orrStream_t;
typedef struct orrEvent_st* orrEvent_t;
typedef struct orrSemaphore_st* orrSemaphore_t;
typedef struct orrModule_st* orrModule_t;
typedef struct orrFunction_st* orrFunction_t; /**< belongs to its module or library and ends with it */

#endif /* ORRERY_HANDLES_H */
