import AudioCodecs
import RTP

/// Which payloads may not be what the talker sent. Random octets cannot be told from audio for certain, but an encoder's
/// packets look alike: the first octet of Opus (mode, bandwidth, frame length, channels, layout) stays for seconds. A packet
/// that looks like none before is refused, as if lost, until a second one like it comes; so is G.711 of broken milliseconds. A
/// mode change of the encoder costs one packet that way, and only the first time; decoding one wrong packet costs four, as the
/// decoder's gain falls by 22 dB a packet at most. G.711 of another length than the packet before is played under `BurstGuard`.
struct Suspicion {
  private var source: SSRC?
  /// Marks that were seen twice, −1 where there is none yet: the first octet of Opus, the length of G.711.
  private var known = SIMD4<Int16>(repeating: -1)
  private var oldest = 0
  private var candidate: Int16 = -1
  /// The mark of the last decoded packet.
  private var lastDecoded: Int16 = -1
  private var packetsLeft = 0
  /// A mark that became known lately, and how many packets of it in a row are still played under `BurstGuard`.
  private var probationer: Int16 = -1
  private var probation = 0
  private static let probationPackets = 25

  /// Judges a packet on arrival.
  mutating func accepts(_ payload: Span<UInt8>, _ ssrc: SSRC, _ encoding: AudioCodecs.AudioEncoding) -> Bool {
    let mark = Self.mark(payload, encoding)
    guard ssrc == source, mark != candidate, !any(known .== mark) else { return true }
    if encoding == .opus ? OpusPacket.isPause(payload) : payload.count.isMultiple(of: 80) { return true }
    candidate = mark
    return false
  }

  mutating func stored(_ payload: Span<UInt8>, _ ssrc: SSRC, _ encoding: AudioCodecs.AudioEncoding) {
    guard encoding != .opus || !OpusPacket.isPause(payload) else { return }
    let isFirst = ssrc != source
    if isFirst { (source, known, oldest) = (ssrc, SIMD4(repeating: -1), 0) }
    candidate = -1
    let mark = Self.mark(payload, encoding)
    guard !any(known .== mark) else { return }
    if !isFirst { (probationer, probation) = (mark, Self.probationPackets) }
    known[oldest] = mark
    oldest = (oldest + 1) % 4
  }

  /// Judges a packet when it is decoded, in the order of play-out.
  mutating func isSuspect(_ payload: Span<UInt8>, _ encoding: AudioCodecs.AudioEncoding) -> Bool {
    let mark = Self.mark(payload, encoding)
    if encoding != .opus, lastDecoded >= 0, mark != lastDecoded { packetsLeft = max(packetsLeft, 1) }
    lastDecoded = mark
    if probation > 0 {
      guard mark != probationer else {
        probation -= 1
        return true
      }
      // It did not last: unknown again.
      known.replace(with: -1, where: known .== probationer)
      probation = 0
    }
    guard packetsLeft > 0 else { return false }
    packetsLeft -= 1
    return true
  }

  /// Audio was made up where the encoder's went on: G.722's predictor and CELT's of the bands' levels take three packets to be where
  /// the encoder's are, and may be too loud until then.
  mutating func lostItsWay() { packetsLeft = 3 }

  private static func mark(_ payload: Span<UInt8>, _ encoding: AudioCodecs.AudioEncoding) -> Int16 {
    guard !payload.isEmpty else { return -1 }
    return encoding == .opus ? Int16(payload[0]) : Int16(clamping: payload.count)
  }
}

/// Whether the talker pauses, and what the pause sounds like.
struct Pause {
  /// What is missing is no loss.
  private(set) var isOn = false
  /// By comfort noise of the far end, not by its codec.
  private(set) var isDescribed = false
  var noise = ReceivedNoise()
  private var timestamp = RTPTimestamp(raw: 0)

  mutating func described(_ payload: Span<UInt8>, _ timestamp: RTPTimestamp) {
    noise.describe(payload)
    (isOn, isDescribed, self.timestamp) = (true, true, timestamp)
  }

  /// An empty packet of the codec.
  mutating func began() { (isOn, isDescribed) = (true, false) }

  /// Audio was played up to `timestamp`; audio from before the noise ends no pause.
  mutating func played(upTo timestamp: RTPTimestamp) {
    if isOn, !isDescribed || timestamp.distance(from: self.timestamp) > 0 { (isOn, isDescribed) = (false, false) }
  }
}
