#pragma once
#include <stdint.h>

/// Calls of malloc, calloc, realloc and the aligned forms made by this thread so far. Replaces the C library's own entry points, so
/// it must only be linked into benches.
uint64_t malloc_count(void);

/// Calls of all threads.
uint64_t malloc_count_all(void);

/// Octets that malloc has handed out and not got back, of the whole process (mallinfo2).
uint64_t malloc_in_use(void);

#define MALLOC_THREADS 1024
typedef struct {
  int32_t thread;
  uint64_t calls;
} malloc_thread;

/// Calls of each thread that has made one, those that are gone included; returns how many rows were written.
int malloc_threads(malloc_thread *out, int room);

#define MALLOC_SITES 512
#define MALLOC_SITE_FRAMES 16
typedef struct {
  uint64_t calls;
  int32_t depth;
  void *frames[MALLOC_SITE_FRAMES];
} malloc_site;

/// From now on the calls of this thread are kept by their call stacks; 0: of none. At most MALLOC_SITES stacks.
void malloc_trace(int32_t thread);

/// What was kept, while nothing is traced.
int malloc_sites(malloc_site *out, int room);

/// Where the image that has this address is loaded, and the exported symbol before it or NULL (dladdr); NULL: no image.
const void *image_base(const void *address, const char **symbol);
/// This executable's.
const void *own_image_base(void);

/// Switches callgrind's counting on or off; does nothing outside valgrind.
void count_instructions(int on);

/// 1 if `count_instructions` was built with valgrind's header.
int can_count_instructions(void);
