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
#include <string.h>

// The library's own type is its own allocation: the peer is that pointer.
libre_peer *libre_peer_make(unsigned minimum, unsigned maximum) {
  struct jbuf *buffer = NULL;
  return jbuf_alloc(&buffer, minimum, maximum) == 0 ? (libre_peer *)buffer : NULL;
}
void libre_peer_free(libre_peer *self) { mem_deref(self); }

// As baresip does it: the packet is a reference-counted mbuf.
void libre_peer_put(libre_peer *self, uint16_t sequence, uint32_t timestamp, const uint8_t *payload, size_t length) {
  struct rtp_header header = {0};
  header.ver = 2;
  header.seq = sequence;
  header.ts = timestamp;
  header.ssrc = 1;
  struct mbuf *packet = mbuf_alloc(length);
  if (!packet) return;
  mbuf_write_mem(packet, payload, length);
  mbuf_set_pos(packet, 0);
  jbuf_put((struct jbuf *)self, &header, packet);
  mem_deref(packet);
}

int libre_peer_get(libre_peer *self, uint8_t *payload, size_t capacity, uint32_t *timestamp) {
  struct rtp_header header = {0};
  void *memory = NULL;
  if (jbuf_get((struct jbuf *)self, &header, &memory) != 0 || !memory) return 0;
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
