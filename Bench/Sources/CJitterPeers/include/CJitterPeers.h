#pragma once
#include <stddef.h>
#include <stdint.h>

/// Two jitter buffers of the store-and-hand-out kind: they decide when a packet is played, and leave decoding and concealment to the
/// caller. Both copy the payload on the way in, as ours does. Where a library was not installed when this was built, make returns NULL.

typedef struct speex_peer speex_peer;
typedef struct libre_peer libre_peer;

/// speexdsp's JitterBuffer, in units of samples at 8 kHz, packets of `samples` with an octet each. `margin` samples are always waited for (its
/// default is 0).
speex_peer *speex_peer_make(int samples, int margin);
void speex_peer_free(speex_peer *self);
void speex_peer_put(speex_peer *self, uint16_t sequence, uint32_t timestamp, const uint8_t *payload, size_t length);
/// One tick of as many samples as a packet has: the payload's length if there is a packet, 0 to conceal a loss, -1 to insert audio (more delay is wanted).
int speex_peer_get(speex_peer *self, int samples, uint8_t *payload, size_t capacity, uint32_t *timestamp);

/// libre's jbuf. `minimum` and `maximum` are its bounds in packets; baresip's defaults are 5 and 10.
libre_peer *libre_peer_make(unsigned minimum, unsigned maximum);
void libre_peer_free(libre_peer *self);
void libre_peer_put(libre_peer *self, uint16_t sequence, uint32_t timestamp, const uint8_t *payload, size_t length);
/// One tick: the payload's length, or 0 if there is none.
int libre_peer_get(libre_peer *self, uint8_t *payload, size_t capacity, uint32_t *timestamp);
