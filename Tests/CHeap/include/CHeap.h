#pragma once
// What tests ask malloc for and SwiftGlibc lacks.
#include <stdint.h>

/// Octets that malloc has handed out and not got back, of the whole process (mallinfo2).
uint64_t heap_in_use(void);
