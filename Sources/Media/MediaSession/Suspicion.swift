import AudioCodecs
import RTP

/// Which payloads may not be what the talker sent. Random octets cannot be told from audio for certain, but an encoder's
/// packets look alike: the first octet of Opus (mode, bandwidth, frame length, channels, layout) stays for seconds. A packet
/// that looks like none before is refused, as if lost, until a second one like it comes; so is G.711 of broken milliseconds. Only an
/// encoder's own change of mode or bandwidth, as in the first second of many calls, is let through, and one to CELT, of which the
/// decoder knows nothing, is doubted for two packets. Decoding one wrong packet costs four, as the decoder's gain falls by 22 dB a
/// packet at most. G.711 of another length than the packet before is played under `BurstGuard`.
struct Suspicion {
  /// Of audio: it is what was sent, for all that is known; what gets louder must go on; it may not be what was sent.
  enum Doubt { case none, some, much }

  private var source: SSRC?
  /// Marks that were seen twice, −1 where there is none yet: `OpusPacket.mark`, the length of G.711.
  private var known = SIMD4<Int16>(repeating: -1)
  private var oldest = 0
  private var candidate: Int16 = -1
  /// The mark of the last decoded packet.
  private var lastDecoded: Int16 = -1
  private var packetsLeft = 0
  /// A mark that became known lately, and how many packets of it in a row are still played under `BurstGuard`.
  private var probationer: Int16 = -1
  private var probation = 0
  private var isSwitch = false
  private static let switchPackets = 2
  private static let probationPackets = 25

  /// Judges a packet on arrival.
  mutating func accepts(_ payload: Span<UInt8>, _ ssrc: SSRC, _ encoding: AudioCodecs.AudioEncoding) -> Bool {
    let mark = Self.mark(payload, encoding)
    guard ssrc == source, mark != candidate, !any(known .== mark) else { return true }
    if encoding == .opus ? OpusPacket.isPause(payload) || switches(to: mark) : payload.count.isMultiple(of: 80) { return true }
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
    if !isFirst { begin(mark, encoding) }
    known[oldest] = mark
    oldest = (oldest + 1) % 4
  }

  private func switches(to mark: Int16) -> Bool {
    guard mark >= 0 else { return false }
    for place in 0..<4 where known[place] >= 0 && OpusPacket.isSwitch(mark, known[place]) { return true }
    return false
  }

  private mutating func begin(_ mark: Int16, _ encoding: AudioCodecs.AudioEncoding) {
    isSwitch = encoding == .opus && switches(to: mark)
    // A SILK layer is looked at by the decoder.
    guard !isSwitch || mark & 0x80 != 0 else { return }
    (probationer, probation) = (mark, isSwitch ? Self.switchPackets : Self.probationPackets)
  }

  /// Judges a packet when it is decoded, in the order of play-out.
  mutating func doubt(_ payload: Span<UInt8>, _ encoding: AudioCodecs.AudioEncoding) -> Doubt {
    let mark = Self.mark(payload, encoding)
    if encoding != .opus, lastDecoded >= 0, mark != lastDecoded { packetsLeft = max(packetsLeft, 1) }
    lastDecoded = mark
    if probation > 0 {
      guard mark != probationer else {
        probation -= 1
        return isSwitch && packetsLeft == 0 ? .some : .much
      }
      // It did not last: unknown again.
      known.replace(with: -1, where: known .== probationer)
      probation = 0
    }
    guard packetsLeft > 0 else { return .none }
    packetsLeft -= 1
    return .much
  }

  /// Audio was made up where the encoder's went on: G.722's predictor and CELT's of the bands' levels take three packets to be where
  /// the encoder's are, and may be too loud until then.
  mutating func lostItsWay() { packetsLeft = 3 }

  private static func mark(_ payload: Span<UInt8>, _ encoding: AudioCodecs.AudioEncoding) -> Int16 {
    guard !payload.isEmpty else { return -1 }
    return encoding == .opus ? OpusPacket.mark(payload) : Int16(clamping: payload.count)
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
