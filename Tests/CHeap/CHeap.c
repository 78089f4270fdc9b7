#include <malloc.h>
#include "CHeap.h"

uint64_t heap_in_use(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}
