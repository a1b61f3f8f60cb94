/* A read that is made once. */
#pragma once

#define READ_ONCE(value) (*(const volatile __typeof__(value)*)&(value))
