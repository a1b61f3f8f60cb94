/* SPDX-License-Identifier: MIT */
/** What a kernel is made of, and what of that a program may change. */
#ifndef ORRERY_FUNCTION_H
#define ORRERY_FUNCTION_H

#include <orrery/base.h>
#include <orrery/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Every core has all registers, and a work-group a core of its own: there is no number of registers. */
typedef struct orrFuncAttributes {
    size_t size;               /**< see ORR_INIT */
    uint64_t code_bytes;       /**< of its machine code, without what it calls */
    uint64_t max_items;        /**< a work-group may have */
    uint64_t max_local_bytes;  /**< of work-group memory a launch may ask for */
    uint64_t stack_bytes;      /**< of a group's only item, and of items that never wait at barriers */
    uint64_t item_stack_bytes; /**< of each item otherwise; 0: nothing in its module waits at barriers */
    uint64_t vlen;             /**< bits that a vector register has to have at least; 0: uses no vectors */
    char isa[128];             /**< its module needs, "rv64imafdcv_zvl128b"; cut if it is longer */
    char source[128];          /**< its first line that does something, "saxpy.cc:42"; empty without -g */
} orrFuncAttributes;
/** Of a kernel, which needs no launch before. */
ORR_API orrError_t orrFuncGetAttributes(orrFuncAttributes* attributes, orrFunction_t function);

typedef enum orrFuncAttribute {
    /**
     * Stack of each item of a group of several, in bytes: 1 to 524,288, rounded up to 4,096. The file says it
     * with ORR_ITEM_STACK. Only if the module has barriers: else all items of a group share a core's stack.
     */
    orrFuncAttributeItemStackBytes = 1,
} orrFuncAttribute;
/** For later launches and nodes with this handle; what is submitted or part of a graph stays as it is. */
ORR_API orrError_t orrFuncSetAttribute(orrFunction_t function, orrFuncAttribute attribute, uint64_t value);

#ifdef __cplusplus
}
#endif

#endif /* ORRERY_FUNCTION_H */
