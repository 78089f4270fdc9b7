#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// WebRTC's NetEQ with its own PCMU, G.722 and Opus decoders, on a clock that the caller sets. From Debian's libtgowt-dev; where that was not
/// installed when this was built, `neteq_make` returns NULL.
typedef struct neteq neteq;

/// Totals since the first packet, in samples at the output rate.
typedef struct {
  uint64_t output, concealed, silent_concealed, inserted, removed;
  uint64_t packets_discarded, fec_packets, flushes;
} neteq_totals;

/// 1 if NetEQ was built in.
int neteq_available(void);
/// Payload type 0 is PCMU, 9 G.722, 111 Opus mono. The delay never falls below the minimum (0: as NetEQ likes).
neteq *neteq_make(int sample_rate_hz, int minimum_delay_ms);
void neteq_free(neteq *self);
/// 0, or -1 if refused.
int neteq_insert(neteq *self, int payload_type, uint16_t sequence, uint32_t timestamp, const uint8_t *payload, size_t length,
                 int64_t now_microseconds);
/// 10 ms of audio: how many samples (at most `capacity`), or -1.
int neteq_pull(neteq *self, int16_t *samples, int capacity, int64_t now_microseconds);
neteq_totals neteq_statistics(const neteq *self);
/// The RTP timestamp of the last sample pulled; 0 if there is none yet.
int neteq_playout_timestamp(const neteq *self, uint32_t *timestamp);

#ifdef __cplusplus
}
#endif
