#include "CJitterPeers.h"

#if HAVE_LIBRE
#include <re/re_types.h>
#include <re/re_fmt.h>
#include <re/re_mem.h>
#include <re/re_mbuf.h>
#include <re/re_list.h>
#include <re/re_sa.h>
#include <re/re_rtp.h>
#include <re/re_jbuf.h>
#include <stdlib.h>
#include <string.h>

enum { pool_size = 64 };

struct libre_peer {
  struct jbuf *buffer;
  // Payloads are copied into these, so that a packet costs no allocation as long as the buffer gives them back in time.
  struct mbuf *pool[pool_size];
  unsigned next;
};

libre_peer *libre_peer_make(unsigned minimum, unsigned maximum) {
  libre_peer *self = calloc(1, sizeof *self);
  if (!self || jbuf_alloc(&self->buffer, minimum, maximum) != 0) return NULL;
  for (int i = 0; i < pool_size; i++) self->pool[i] = mbuf_alloc(1500);
  return self;
}
void libre_peer_free(libre_peer *self) {
  mem_deref(self->buffer);
  for (int i = 0; i < pool_size; i++) mem_deref(self->pool[i]);
  free(self);
}

void libre_peer_put(libre_peer *self, uint16_t sequence, uint32_t timestamp, const uint8_t *payload, size_t length) {
  struct rtp_header header;
  memset(&header, 0, offsetof(struct rtp_header, csrc));
  header.ver = 2;
  header.seq = sequence;
  header.ts = timestamp;
  header.ssrc = 1;
  const unsigned slot = self->next++ % pool_size;
  if (mem_nrefs(self->pool[slot]) > 1) {
    mem_deref(self->pool[slot]);
    self->pool[slot] = mbuf_alloc(1500);
  }
  struct mbuf *packet = self->pool[slot];
  if (length > packet->size) length = packet->size;
  memcpy(packet->buf, payload, length);
  packet->pos = 0;
  packet->end = length;
  jbuf_put(self->buffer, &header, packet);
}

int libre_peer_get(libre_peer *self, uint8_t *payload, size_t capacity, uint32_t *timestamp) {
  struct rtp_header header;
  void *memory = NULL;
  if (jbuf_get(self->buffer, &header, &memory) != 0 || !memory) return 0;
  struct mbuf *packet = memory;
  size_t length = mbuf_get_left(packet);
  if (length > capacity) length = capacity;
  memcpy(payload, mbuf_buf(packet), length);
  *timestamp = header.ts;
  mem_deref(packet);
  return (int)length;
}
#else
libre_peer *libre_peer_make(unsigned minimum, unsigned maximum) {
  (void)minimum, (void)maximum;
  return NULL;
}
void libre_peer_free(libre_peer *self) { (void)self; }
void libre_peer_put(libre_peer *self, uint16_t sequence, uint32_t timestamp, const uint8_t *payload, size_t length) {
  (void)self, (void)sequence, (void)timestamp, (void)payload, (void)length;
}
int libre_peer_get(libre_peer *self, uint8_t *payload, size_t capacity, uint32_t *timestamp) {
  (void)self, (void)payload, (void)capacity, (void)timestamp;
  return 0;
}
#endif
