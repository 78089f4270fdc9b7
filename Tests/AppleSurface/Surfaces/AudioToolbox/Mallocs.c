// Counts what the program asks malloc for: an allocation that is given back at once counts too. glibc's own is behind it.
#include "Unit.h"
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
static _Thread_local long mallocs;

long surface_mallocs(void) { return mallocs; }
void *malloc(size_t size) { return mallocs++, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return mallocs++, __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { return mallocs++, __libc_realloc(old, size); }
