import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineRTP
import TrunklineSDP
import TrunklineSRTP

/// One RTP leg of the simulated carrier: speaks from a source, records received audio by RTP time, sends and receives telephone
/// events.
///
/// Received audio is placed by RTP timestamp relative to the fastest packet: an ideal receiver without a jitter buffer, so that
/// the figures show the gateway and not this peer.
final class CarrierAudio {
  struct Report: Sendable {
    var sent: UInt64 = 0
    var received: UInt64 = 0
    var lost: UInt64 = 0
    var jitterMilliseconds = 0.0
    var heard: [Int16] = []
    var spokenSince: Instant?
    var heardSince: Instant?
    var digits = ""
    /// Packets whose tag was wrong, or that arrived before there were keys.
    var refused: UInt64 = 0
    /// The SRTP profile; nil for plain RTP.
    var profile: String?
  }

  let socket: UDPSocket
  private let control: UDPSocket
  private let loop: EventLoop
  /// A stateless codec.
  private var encoding: AudioEncoding
  private var media: TrunkMedia?
  private var security: TrunkSecurity?
  private var source: SpeechSource
  private var sender: RTPSender
  private var digitSender = DigitSender()
  private var digitReceiver = DigitReceiver(clockRateHz: 8000)
  private var statistics = ReceiverStatistics(clockRateHz: 8000)
  private var arrived: [(timestamp: RTPTimestamp, at: Instant, samples: [Int16])] = []
  private var isFirst = true
  private(set) var report = Report()
  /// Called once, when the first frame above −50 dBov is received.
  var onFirstAudio: ((Instant) -> Void)?
  var onDigit: ((Character) -> Void)?

  /// Limit of kept frames: ten minutes.
  private static let frameLimit = 30_000

  /// Binds an even port and the odd one above it on `address`.
  init(
    loop: EventLoop, address: IPAddress, encoding: AudioEncoding, source: SpeechSource, impairment: Impairment,
    random: RandomSource
  )
    throws(SystemError)
  {
    (self.loop, self.encoding, self.source) = (loop, encoding, source)
    (socket, control) = try MediaPorts.bindPair(address, random)
    sender = RTPSender(socket, impairment: impairment, random: random)
    try loop.register(socket.fd, .readable) { [unowned self] _ in
      socket.receiveAll { bytes, _ in received(Array(bytes), MonotonicClock.now()) }
    }
    try loop.register(control.fd, .readable) { [unowned self] _ in control.receiveAll() }
  }

  /// Permits sending, under the keys that the descriptions agreed on.
  func start(_ media: TrunkMedia) {
    let sameEnd = self.media?.remote == media.remote
    (self.media, encoding) = (media, media.codec)
    guard let agreed = media.protection else {
      security = nil
      report.profile = nil
      return
    }
    guard let profile = SRTPProfile(suite: agreed.suite.rawValue),
      let ours = SRTPMasterKey(agreed.ours.bytes.exposed, for: profile),
      let theirs = SRTPMasterKey(agreed.theirs.bytes.exposed, for: profile)
    else { return }
    let keys = TrunkProtection(profile: profile, ours: ours, theirs: theirs, identifierBytes: agreed.theirs.identifierBytes)
    report.profile = profile.name
    do throws(SRTPError) {
      if security == nil { security = try TrunkSecurity(keys) } else { try security?.apply(keys, sameEnd: sameEnd) }
    } catch { security = nil }
  }

  func play(_ digits: String) { for digit in digits.utf8 { _ = digitSender.enqueue(digit) } }

  func close() {
    loop.unregister(socket.fd)
    loop.unregister(control.fd)
    media = nil
  }

  /// Sends the next 20 ms.
  func tick(at now: Instant) {
    sendDelayed(at: now)
    guard let media, media.direction.sends else { return }
    if let digit = digitSender.tick(), let payloadType = media.telephoneEventPayloadType {
      var payload = [UInt8](repeating: 0, count: TelephoneEvent.length)
      var room = payload.mutableSpan
      _ = digit.event.write(into: &room)
      send(sender.makePacket(payload, payloadType: payloadType, marker: digit.marker, lag: digit.timestampLag), media, now)
    } else {
      if report.spokenSince == nil { report.spokenSince = now }
      var payload = [UInt8](repeating: 0, count: encoding.row.octets(ofMilliseconds: 20))
      var room = payload.mutableSpan
      _ = encoding.encodeSamples(source.next().span, into: &room)
      send(sender.makePacket(payload, payloadType: media.payloadType, marker: isFirst), media, now)
      isFirst = false
    }
    sender.timestamp &+= 160
  }

  private func send(_ packet: [UInt8], _ media: TrunkMedia, _ now: Instant) {
    var packet = packet
    if media.protection != nil, !protect(&packet) { return }
    sender.send(packet, to: media.remote, at: now)
  }

  func sendDelayed(at now: Instant) { if let media { sender.sendDelayed(to: media.remote, at: now) } }

  /// False without keys: a leg that agreed on SRTP sends no clear packets.
  private func protect(_ packet: inout [UInt8]) -> Bool {
    guard security != nil else { return false }
    var count = packet.count
    packet += [UInt8](repeating: 0, count: SRTPProfile.allCases.map(\.overheadBytes).max() ?? 0)
    let isProtected = packet.withUnsafeMutableBytes { buffer -> Bool in
      do throws(SRTPError) { try security?.protect(buffer, count: &count, isControl: false) } catch { return false }
      return true
    }
    packet.removeLast(packet.count - count)
    return isProtected
  }

  private func unprotect(_ packet: inout [UInt8]) -> Bool {
    var count = packet.count
    let isAuthentic = packet.withUnsafeMutableBytes { buffer -> Bool in
      guard security != nil else { return false }
      do throws(SRTPError) { try security?.unprotect(buffer, count: &count, isControl: false) } catch { return false }
      return true
    }
    if isAuthentic { packet.removeLast(packet.count - count) }
    return isAuthentic
  }

  private func received(_ bytes: [UInt8], _ now: Instant) {
    var packet = bytes
    guard media?.protection == nil || unprotect(&packet) else { return report.refused += 1 }
    guard let header = try? RTPHeader(parsing: packet.span) else { return }
    _ = statistics.receive(header, at: now)
    let payload = header.payload(of: packet.span)
    if header.payloadType == media?.telephoneEventPayloadType {
      guard let event = TelephoneEvent(parsing: payload) else { return }
      if let digit = digitReceiver.receive(event, timestamp: header.timestamp, at: now) {
        report.digits.append(Character(Unicode.Scalar(digit.digit)))
        onDigit?(Character(Unicode.Scalar(digit.digit)))
      }
      return
    }
    guard payload.count > 0, arrived.count < Self.frameLimit else { return }
    var frame = [Int16](repeating: 0, count: payload.count / max(1, encoding.row.octetsPerUnit))
    var room = frame.mutableSpan
    _ = encoding.decodeSamples(payload, into: &room)
    if let onFirstAudio, LevelMeter.decibels(LevelMeter.meanSquare(frame.span)) > -50 {
      self.onFirstAudio = nil
      onFirstAudio(now)
    }
    arrived.append((header.timestamp, now, frame))
  }

  /// The figures, and the received audio on the ideal time line.
  func finish() -> Report {
    report.sent = sender.sent
    report.received = statistics.received
    report.lost = statistics.lost
    report.jitterMilliseconds = statistics.jitterMilliseconds
    // a frame is complete when its last sample has arrived: the packet's instant is the end of its 20 ms at the sender
    let recording = ReceivedAudio(arrived, clockRateHz: encoding.clockRateHz)
    report.heard = recording.samples
    report.heardSince = recording.origin
    return report
  }
}
