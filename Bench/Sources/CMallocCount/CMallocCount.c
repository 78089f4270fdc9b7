#include "CMallocCount.h"
#include <errno.h>
#include <stddef.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif

// The names under which glibc exports its own allocator: no dlsym, which would itself allocate.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

// initial-exec: a lazily allocated thread-local would call malloc from malloc.
static __thread uint64_t calls __attribute__((tls_model("initial-exec")));

static uint64_t all_calls;

static inline void note_call(void) {
  calls++;
  __atomic_fetch_add(&all_calls, 1, __ATOMIC_RELAXED);
}

uint64_t malloc_count(void) { return calls; }

uint64_t malloc_count_all(void) { return __atomic_load_n(&all_calls, __ATOMIC_RELAXED); }

void count_instructions(int on) {
#ifdef CALLGRIND_START_INSTRUMENTATION
  if (on) {
    CALLGRIND_START_INSTRUMENTATION;
  } else {
    CALLGRIND_STOP_INSTRUMENTATION;
  }
#else
  (void)on;
#endif
}

int can_count_instructions(void) {
#ifdef CALLGRIND_START_INSTRUMENTATION
  return 1;
#else
  return 0;
#endif
}

void *malloc(size_t size) {
  note_call();
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  note_call();
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  note_call();
  return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
  note_call();
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  note_call();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  note_call();
  void *memory = __libc_memalign(alignment, size);
  if (!memory) return ENOMEM;
  *result = memory;
  return 0;
}
