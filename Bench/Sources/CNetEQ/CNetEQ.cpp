#include "CNetEQ.h"

#if HAVE_NETEQ
#include <algorithm>
#include <memory>

#include "api/audio/audio_frame.h"
#include "api/audio_codecs/audio_decoder_factory_template.h"
#include "api/audio_codecs/g711/audio_decoder_g711.h"
#include "api/audio_codecs/g722/audio_decoder_g722.h"
#include "api/audio_codecs/opus/audio_decoder_opus.h"
#include "api/neteq/neteq.h"
#include "modules/audio_coding/neteq/default_neteq_factory.h"
#include "rtc_base/logging.h"
#include "system_wrappers/include/clock.h"

namespace {
class CallersClock : public webrtc::Clock {
 public:
  webrtc::Timestamp CurrentTime() override { return webrtc::Timestamp::Micros(microseconds); }
  webrtc::NtpTime ConvertTimestampToNtpTime(webrtc::Timestamp) override { return webrtc::NtpTime(); }
  int64_t microseconds = 0;
};
}  // namespace

struct neteq {
  CallersClock clock;
  std::unique_ptr<webrtc::NetEq> engine;
  webrtc::AudioFrame frame;
};

int neteq_available(void) { return 1; }

neteq *neteq_make(int sample_rate_hz, int minimum_delay_ms) {
  rtc::LogMessage::LogToDebug(rtc::LS_NONE);
  rtc::LogMessage::SetLogToStderr(false);
  auto *self = new neteq;
  webrtc::NetEq::Config config;
  config.sample_rate_hz = sample_rate_hz;
  config.min_delay_ms = minimum_delay_ms;
  // Debian's library was built without Opus in the built-in factory; the decoder itself is there.
  const auto decoders =
      webrtc::CreateAudioDecoderFactory<webrtc::AudioDecoderG711, webrtc::AudioDecoderG722, webrtc::AudioDecoderOpus>();
  self->engine = webrtc::DefaultNetEqFactory().CreateNetEq(config, decoders, &self->clock);
  self->engine->RegisterPayloadType(0, webrtc::SdpAudioFormat("pcmu", 8000, 1));
  // RFC 3551 §4.5.2: its RTP clock says 8000, its audio is of 16 kHz.
  self->engine->RegisterPayloadType(9, webrtc::SdpAudioFormat("G722", 8000, 1));
  self->engine->RegisterPayloadType(111, webrtc::SdpAudioFormat("opus", 48000, 2));
  return self;
}

void neteq_free(neteq *self) { delete self; }

int neteq_insert(neteq *self, int payload_type, uint16_t sequence, uint32_t timestamp, const uint8_t *payload, size_t length,
                 int64_t now_microseconds) {
  self->clock.microseconds = now_microseconds;
  webrtc::RTPHeader header;
  header.payloadType = static_cast<uint8_t>(payload_type);
  header.sequenceNumber = sequence;
  header.timestamp = timestamp;
  header.ssrc = 1;
  return self->engine->InsertPacket(header, rtc::ArrayView<const uint8_t>(payload, length));
}

int neteq_pull(neteq *self, int16_t *samples, int capacity, int64_t now_microseconds) {
  self->clock.microseconds = now_microseconds;
  bool muted = false;
  if (self->engine->GetAudio(&self->frame, &muted) != webrtc::NetEq::kOK) return -1;
  const int count = std::min<int>(capacity, static_cast<int>(self->frame.samples_per_channel_));
  const int16_t *data = self->frame.data();
  std::copy(data, data + count, samples);
  return count;
}

neteq_totals neteq_statistics(const neteq *self) {
  const auto lifetime = self->engine->GetLifetimeStatistics();
  const auto state = self->engine->GetOperationsAndState();
  neteq_totals totals = {};
  totals.output = lifetime.total_samples_received;
  totals.concealed = lifetime.concealed_samples;
  totals.silent_concealed = lifetime.silent_concealed_samples;
  totals.inserted = lifetime.inserted_samples_for_deceleration;
  totals.removed = lifetime.removed_samples_for_acceleration;
  totals.packets_discarded = lifetime.packets_discarded;
  totals.fec_packets = lifetime.fec_packets_received;
  totals.flushes = state.packet_buffer_flushes;
  return totals;
}

int neteq_playout_timestamp(const neteq *self, uint32_t *timestamp) {
  const auto value = self->engine->GetPlayoutTimestamp();
  if (!value) return 0;
  *timestamp = *value;
  return 1;
}

#else

struct neteq {};
int neteq_available(void) { return 0; }
neteq *neteq_make(int, int) { return nullptr; }
void neteq_free(neteq *) {}
int neteq_insert(neteq *, int, uint16_t, uint32_t, const uint8_t *, size_t, int64_t) { return -1; }
int neteq_pull(neteq *, int16_t *, int, int64_t) { return -1; }
neteq_totals neteq_statistics(const neteq *) { return {}; }
int neteq_playout_timestamp(const neteq *, uint32_t *) { return 0; }

#endif
