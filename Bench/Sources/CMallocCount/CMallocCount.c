#include "CMallocCount.h"
#include <errno.h>
#include <stddef.h>

// The names under which glibc exports its own allocator: no dlsym, which would itself allocate.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

// initial-exec: a lazily allocated thread-local would call malloc from malloc.
static __thread uint64_t calls __attribute__((tls_model("initial-exec")));

uint64_t malloc_count(void) { return calls; }

void *malloc(size_t size) {
  calls++;
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  calls++;
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  calls++;
  return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
  calls++;
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  calls++;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  calls++;
  void *memory = __libc_memalign(alignment, size);
  if (!memory) return ENOMEM;
  *result = memory;
  return 0;
}
