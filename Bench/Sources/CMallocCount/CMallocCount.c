#define _GNU_SOURCE
#include "CMallocCount.h"
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

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

// One row a thread, never given back: a bench has few.
static malloc_thread threads[MALLOC_THREADS];
static int threads_used;
static __thread malloc_thread *own __attribute__((tls_model("initial-exec")));

static malloc_site sites[MALLOC_SITES];
static int sites_used;
static int traced = -1;
// backtrace may allocate.
static __thread int is_tracing __attribute__((tls_model("initial-exec")));

static void note_site(void) {
  is_tracing = 1;
  void *frames[MALLOC_SITE_FRAMES + 3];
  int depth = backtrace(frames, MALLOC_SITE_FRAMES + 3) - 3;
  if (depth < 0) depth = 0;
  int index = 0;
  while (index < sites_used && (sites[index].depth != depth || memcmp(sites[index].frames, frames + 3, depth * sizeof(void *)))) index++;
  if (index < MALLOC_SITES) {
    if (index == sites_used) {
      sites[index].depth = depth;
      memcpy(sites[index].frames, frames + 3, depth * sizeof(void *));
      sites_used++;
    }
    sites[index].calls++;
  }
  is_tracing = 0;
}

static inline void note_call(void) {
  calls++;
  __atomic_fetch_add(&all_calls, 1, __ATOMIC_RELAXED);
  if (__builtin_expect(!own, 0)) {
    int row = __atomic_fetch_add(&threads_used, 1, __ATOMIC_RELAXED);
    own = &threads[row < MALLOC_THREADS ? row : MALLOC_THREADS - 1];
    own->thread = gettid();
  }
  __atomic_store_n(&own->calls, calls, __ATOMIC_RELAXED);
  if (__builtin_expect(traced == own->thread && !is_tracing, 0)) note_site();
}

int malloc_threads(malloc_thread *out, int room) {
  int count = __atomic_load_n(&threads_used, __ATOMIC_RELAXED);
  if (count > MALLOC_THREADS) count = MALLOC_THREADS;
  if (count > room) count = room;
  memcpy(out, threads, count * sizeof(malloc_thread));
  return count;
}

void malloc_trace(int32_t thread) {
  // The first call loads libgcc: not within malloc.
  void *frame;
  (void)backtrace(&frame, 1);
  __atomic_store_n(&traced, thread ? thread : -1, __ATOMIC_RELAXED);
}

const void *image_base(const void *address, const char **symbol) {
  Dl_info info;
  if (!dladdr(address, &info)) return NULL;
  *symbol = info.dli_sname;
  return info.dli_fbase;
}

const void *own_image_base(void) {
  const char *symbol;
  return image_base((const void *)&own_image_base, &symbol);
}

int malloc_sites(malloc_site *out, int room) {
  int count = sites_used < room ? sites_used : room;
  memcpy(out, sites, count * sizeof(malloc_site));
  return count;
}

uint64_t malloc_count(void) { return calls; }

uint64_t malloc_in_use(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

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
