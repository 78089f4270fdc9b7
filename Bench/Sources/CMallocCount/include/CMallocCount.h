#pragma once
#include <stdint.h>

/// Calls of malloc, calloc, realloc and the aligned forms made by this thread so far. Replaces the C library's own entry points, so
/// it must only be linked into benches.
uint64_t malloc_count(void);

/// Calls of all threads.
uint64_t malloc_count_all(void);

/// Switches callgrind's counting on or off; does nothing outside valgrind.
void count_instructions(int on);

/// 1 if `count_instructions` was built with valgrind's header.
int can_count_instructions(void);
