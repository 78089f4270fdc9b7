import Bytes

/// Offer and answer (RFC 3264) of one trunk leg: plain RTP, one audio section, G.711 and telephone-event.
///
/// A value per leg, for its life: it numbers our descriptions (`o=` version, RFC 3264 §8) and keeps the order of sections that
/// the two sides agreed on. A failed call leaves it as it was.
///
///     var negotiation = TrunkNegotiation(local: address, codecs: [.pcmu, .pcma], sessionID: random.next())
///     let (sdp, media) = try negotiation.answer(to: inviteBody)          // inbound
///     let offer = negotiation.makeOffer()                                // outbound, late offer, hold
///     let media = try negotiation.apply(answer: okBody)
public struct TrunkNegotiation: Sendable {
  /// What became of the section at one place: our audio, or another one that is off.
  private enum Section: Hashable, Sendable {
    case audio(transport: String, mid: String?)
    case off(MediaDescription)
  }

  /// Where the peer's RTP shall come; set it before the next offer or answer to move media.
  public var local: SocketAddress
  /// No media to this machine and what only it may reach: loopback, link-local, metadata services, our own address. Set wherever the
  /// peer is another machine.
  public var refusesLocal = false
  /// In our order of preference.
  public let codecs: [AudioCodecName]
  /// What the last completed exchange settled.
  public private(set) var settled: TrunkMedia?
  private var history: DescriptionHistory
  private var sections: [Section] = [.audio(transport: Self.plain, mid: nil)]
  private var offered: [OfferedFormat]?
  private var offeredDirection = MediaDirection.sendReceive

  private struct OfferedFormat: Hashable, Sendable {
    var codec: AudioCodecName
    var payloadType: UInt8
  }
  private static let plain = "RTP/AVP"
  private static let telephoneEvent: UInt8 = 101

  /// `codecs` without Opus is a telephone trunk; `sessionID` is random.
  public init(local: SocketAddress, codecs: [AudioCodecName] = [.pcmu, .pcma], sessionID: UInt64) {
    (self.local, self.codecs) = (local, codecs)
    history = DescriptionHistory(sessionID: sessionID)
  }

  /// The same side toward another peer: a call that goes on in a new dialog (RFC 3891).
  public mutating func reset() {
    sections = [.audio(transport: Self.plain, mid: nil)]
    (offered, settled) = (nil, nil)
  }

  // MARK: our offer

  /// Our offer: all codecs, after an exchange the settled one first under its payload type, so that hold does not change it.
  /// `direction` is ours.
  public mutating func makeOffer(direction: MediaDirection = .sendReceive) -> String {
    var formats = codecs.map { OfferedFormat(codec: $0, payloadType: $0.offeredPayloadType) }
    var event = Self.telephoneEvent
    if let settled {
      event = settled.telephoneEventPayloadType ?? event
      formats.removeAll { $0.codec == settled.codec || $0.payloadType == settled.payloadType || $0.payloadType == event }
      formats.insert(OfferedFormat(codec: settled.codec, payloadType: settled.payloadType), at: 0)
    }
    offered = formats
    offeredDirection = direction
    // Silence suppression only with a peer that has shown that it knows comfort noise.
    let events = events(beside: formats, first: event)
    return write(formats, events: events, noise: settled?.comfortNoisePayloadType, packetTime: 20, direction: direction)
  }

  /// Takes the peer's answer to our offer: its first codec that we offered counts. `noOffer` without an offer of ours.
  public mutating func apply(answer text: String) throws(NegotiationError) -> TrunkMedia {
    guard let offered else { throw .noOffer }
    let description = try parse(text)
    let index = sections.firstIndex { if case .audio = $0 { true } else { false } } ?? 0
    guard let section = description.media.indices.contains(index) ? description.media[index] : description.media.first,
      section.kind == "audio"
    else { throw .noAudio }
    guard !section.isOff else { throw .audioRefused }
    guard Self.isPlain(section.transport) else { throw .transportProfile(section.transport) }
    let formats = section.audioFormats
    guard let format = formats.first(where: { format in offered.contains { $0.codec == format.codec } }),
      let codec = format.codec
    else { throw .noCommonCodec }
    var media = try media(of: section, in: description, format, codec, formats)
    media.direction = media.direction.limited(to: offeredDirection)
    self.offered = nil
    settled = media
    return media
  }

  // MARK: the peer's offer

  /// Answers the peer's offer with one codec: the first of ours that it has. Sections that we do not take get port 0.
  /// `direction` limits ours, for a leg that we hold.
  public mutating func answer(to text: String, direction: MediaDirection = .sendReceive) throws(NegotiationError)
    -> (sdp: String, media: TrunkMedia)
  {
    let description = try parse(text)
    let (index, format, codec) = try choose(description)
    let section = description.media[index]
    var media = try media(of: section, in: description, format, codec, section.audioFormats)
    media.direction = media.direction.limited(to: direction)
    sections = description.media.enumerated().map { place, other in
      place == index ? .audio(transport: other.transport, mid: other.mid) : .off(other.refusal)
    }
    offered = nil
    settled = media
    let formats = [OfferedFormat(codec: codec, payloadType: format.payloadType)]
    let sdp = write(
      formats, events: media.telephoneEventPayloadType.map { [($0, codec.clockRateHz)] } ?? [], noise: media.comfortNoisePayloadType,
      packetTime: media.packetTimeMilliseconds, direction: media.direction)
    return (sdp, media)
  }

  /// The first audio section that is on, plain RTP and shares a codec; else the most telling reason.
  private func choose(_ description: SessionDescription) throws(NegotiationError) -> (Int, AudioFormat, AudioCodecName) {
    var reason = NegotiationError.noAudio
    for (index, section) in description.media.enumerated() where section.kind == "audio" && !section.isOff {
      guard Self.isPlain(section.transport) else {
        if reason == .noAudio { reason = .transportProfile(section.transport) }
        continue
      }
      let formats = section.audioFormats
      for codec in codecs {
        if let format = formats.first(where: { $0.codec == codec }) { return (index, format, codec) }
      }
      reason = .noCommonCodec
    }
    throw reason
  }

  // MARK: both

  private func parse(_ text: String) throws(NegotiationError) -> SessionDescription {
    do { return try SessionDescription(parsing: text) } catch { throw .malformed(error) }
  }

  /// RTP/AVPF is plain RTP with early feedback, of which we send none.
  private static func isPlain(_ transport: String) -> Bool { transport == plain || transport == "RTP/AVPF" }

  private func media(
    of section: MediaDescription, in description: SessionDescription, _ format: AudioFormat, _ codec: AudioCodecName,
    _ formats: [AudioFormat]
  ) throws(NegotiationError) -> TrunkMedia {
    guard let connection = description.connection(of: section) else { throw .unusableAddress("(no c= line)") }
    guard let ip = connection.address?.unmapped, !ip.isMulticast, section.port != 0 else {
      throw .unusableAddress(connection.text)
    }
    // RFC 3264 §8.4: an unspecified address is the old way to say "send me nothing"
    let held = ip.isUnspecified
    guard held || !refusesLocal || !(ip.isPrivileged || ip == local.ip.unmapped) else { throw .unusableAddress(connection.text) }
    guard held || ip.family == local.ip.unmapped.family else { throw .unusableAddress(connection.text) }
    let theirs = description.direction(of: section)
    let event = formats.first { $0.isTelephoneEvent && $0.clockRateHz == codec.clockRateHz }
    var media = TrunkMedia(
      remote: SocketAddress(ip, section.port), codec: codec, payloadType: format.payloadType,
      telephoneEventPayloadType: event?.payloadType, packetTimeMilliseconds: section.packetTimeMilliseconds,
      direction: MediaDirection(sends: theirs.receives && !held, receives: theirs.sends))
    media.comfortNoisePayloadType = formats.first { $0.isComfortNoise && $0.clockRateHz == codec.clockRateHz }?.payloadType
    media.control = section.controlAddress(beside: ip).flatMap { held ? nil : $0 }
    media.wantsVoIPMetrics = section.wantsVoIPMetrics || description.wantsVoIPMetrics
    return media
  }

  /// telephone-event runs on the clock of the audio beside it (RFC 4733 §2.1): one type for each clock of ours.
  private func events(beside formats: [OfferedFormat], first event: UInt8) -> [(payloadType: UInt8, clock: UInt32)] {
    guard let clock = formats.first?.codec.clockRateHz else { return [] }
    let others = Set(formats.map(\.codec.clockRateHz)).subtracting([clock]).sorted()
    let taken = formats.map(\.payloadType) + [event]
    let free = (Self.telephoneEvent...127).filter { !taken.contains($0) }
    return [(event, clock)] + zip(free, others).map { ($0, $1) }
  }

  private mutating func write(_ formats: [OfferedFormat], events: [(payloadType: UInt8, clock: UInt32)], noise: UInt8?, packetTime: Int, direction: MediaDirection)
    -> String
  {
    let media = sections.map { section -> MediaDescription in
      guard case .audio(let transport, let mid) = section else {
        if case .off(let refused) = section { return refused }
        return MediaDescription(kind: "audio", port: 0, transport: Self.plain, formats: ["0"])
      }
      var attributes: [Attribute] = []
      for format in formats {
        attributes.append(Attribute("rtpmap", "\(format.payloadType) \(format.codec.rtpmap)"))
        if format.codec == .opus {
          attributes.append(Attribute("fmtp", "\(format.payloadType) minptime=10;useinbandfec=1;stereo=0"))
        }
      }
      if let noise { attributes.append(Attribute("rtpmap", "\(noise) CN/8000")) }
      for (payloadType, clock) in events {
        attributes += [
          Attribute("rtpmap", "\(payloadType) telephone-event/\(clock)"), Attribute("fmtp", "\(payloadType) 0-15"),
        ]
      }
      attributes += [Attribute("ptime", String(packetTime)), Attribute(direction.rawValue)]
      if let mid { attributes.append(Attribute("mid", mid)) }
      let payloadTypes = formats.map(\.payloadType) + [noise].compactMap { $0 } + events.map(\.payloadType)
      return MediaDescription(
        kind: "audio", port: local.port, transport: transport, formats: payloadTypes.map { String($0) }, attributes: attributes)
    }
    return history.write(
      SessionDescription(
        origin: .init(sessionID: history.sessionID, version: 0, address: local.ip.description), connection: Connection(local.ip),
        media: media))
  }
}

extension MediaDescription {
  /// The section as an answer refuses it: port 0, everything that identifies it kept (RFC 3264 §6).
  var refusal: MediaDescription {
    var attributes: [Attribute] = []
    if let mid, mid.utf8.count <= Limits.echoedBytes { attributes.append(Attribute("mid", mid)) }
    attributes.append(Attribute(MediaDirection.inactive.rawValue))
    return MediaDescription(
      kind: kind, port: 0, transport: transport, formats: Array(formats.prefix(1)), connection: Connection(.any),
      attributes: attributes)
  }
}
