#include "CJitterPeers.h"

#if HAVE_SPEEXDSP
#include <speex/speex_jitter.h>
#include <string.h>

// The library's own type is its own allocation: the peer is that pointer.
speex_peer *speex_peer_make(int samples, int margin) {
  JitterBuffer *buffer = jitter_buffer_init(samples);
  spx_int32_t value = margin;
  jitter_buffer_ctl(buffer, JITTER_BUFFER_SET_MARGIN, &value);
  return (speex_peer *)buffer;
}
void speex_peer_free(speex_peer *self) { jitter_buffer_destroy((JitterBuffer *)self); }

void speex_peer_put(speex_peer *self, uint16_t sequence, uint32_t timestamp, const uint8_t *payload, size_t length) {
  JitterBufferPacket packet = {0};
  packet.data = (char *)payload;
  packet.len = (spx_uint32_t)length;
  packet.timestamp = timestamp;
  packet.span = (spx_uint32_t)length;
  packet.sequence = sequence;
  jitter_buffer_put((JitterBuffer *)self, &packet);
}

int speex_peer_get(speex_peer *self, int samples, uint8_t *payload, size_t capacity, uint32_t *timestamp) {
  JitterBufferPacket packet = {0};
  packet.data = (char *)payload;
  packet.len = (spx_uint32_t)capacity;
  spx_int32_t offset = 0;
  const int result = jitter_buffer_get((JitterBuffer *)self, &packet, samples, &offset);
  jitter_buffer_tick((JitterBuffer *)self);
  if (result == JITTER_BUFFER_INSERTION) return -1;
  if (result != JITTER_BUFFER_OK) return 0;
  *timestamp = packet.timestamp;
  return (int)packet.len;
}
#else
speex_peer *speex_peer_make(int samples, int margin) {
  (void)samples, (void)margin;
  return NULL;
}
void speex_peer_free(speex_peer *self) { (void)self; }
void speex_peer_put(speex_peer *self, uint16_t sequence, uint32_t timestamp, const uint8_t *payload, size_t length) {
  (void)self, (void)sequence, (void)timestamp, (void)payload, (void)length;
}
int speex_peer_get(speex_peer *self, int samples, uint8_t *payload, size_t capacity, uint32_t *timestamp) {
  (void)self, (void)samples, (void)payload, (void)capacity, (void)timestamp;
  return 0;
}
#endif
