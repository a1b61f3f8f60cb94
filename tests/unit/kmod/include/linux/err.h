/* The kernel's limit of error numbers. */
#pragma once

#define MAX_ERRNO 4095
