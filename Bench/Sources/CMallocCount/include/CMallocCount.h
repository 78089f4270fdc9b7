#pragma once
#include <stdint.h>

/// Calls of malloc, calloc, realloc and the aligned forms by the calling thread so far. The definitions in this target take the place of the C
/// library's in any program that links it.
uint64_t malloc_count(void);
