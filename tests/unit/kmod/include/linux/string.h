/* What the kernel has of the C library's. */
#pragma once

#include <string.h>
