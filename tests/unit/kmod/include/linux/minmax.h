/* The smaller of two. */
#pragma once

#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define min(a, b) min_t(__typeof__(a), a, b)
