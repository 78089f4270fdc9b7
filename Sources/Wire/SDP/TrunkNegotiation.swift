public import TrunklineBytes
public import TrunklineRTP

/// Offer and answer (RFC 3264) of one trunk leg: one audio section, plain RTP or SRTP with keys in the description (RFC 4568).
///
/// A value per leg, for its life: it numbers our descriptions (`o=` version, RFC 3264 §8) and keeps the agreed order of sections.
/// A failed call leaves it unchanged.
///
///     var negotiation = TrunkNegotiation(local: address, codecs: [.pcmu, .pcma], sessionID: random.next())
///     let (sdp, media) = try negotiation.answer(to: inviteBody)          // inbound
///     let offer = negotiation.makeOffer()                                // outbound, late offer, hold
///     let media = try negotiation.apply(answer: okBody)
public struct TrunkNegotiation: Sendable {
  /// The section at one index: our audio, or another one that is disabled.
  private enum Section: Hashable, Sendable {
    case audio(transport: String, mid: String?)
    case off(MediaDescription)
  }

  /// The destination of the peer's RTP; set it before the next offer or answer to move media.
  public var local: SocketAddress
  /// Refuses media to this machine and to addresses that only it may reach: loopback, link-local, metadata services, our own
  /// address. Set whenever the peer is another machine.
  public var refusesLocal = false
  /// With `refusesLocal`: the machine's further addresses, which its own ports use.
  public var ownAddresses: Set<IPAddress> = []
  /// Plain RTP, SRTP, or either.
  public let protection: Protection
  /// In our order of preference.
  public let codecs: [AudioEncoding]
  /// The result of the last completed exchange.
  public private(set) var agreed: TrunkMedia?
  private var history: DescriptionHistory
  private var sections: [Section]
  private var formats: TrunkFormats
  private var offeredDirection = MediaDirection.sendReceive
  /// Our keys, one for each suite: unchanged until the peer changes its own.
  private var ownKeys: [CryptoSuite: MediaKey] = [:]
  private var offeredKeys: [CryptoAttribute] = []

  fileprivate static let plain = "RTP/AVP"
  fileprivate static let secure = "RTP/SAVP"

  /// `codecs` without Opus is a telephone trunk; `sessionID` is random.
  public init(
    local: SocketAddress, codecs: [AudioEncoding] = [.pcmu, .pcma], sessionID: UInt64, protection: Protection = .off
  ) {
    (self.local, self.codecs, self.protection) = (local, codecs, protection)
    formats = TrunkFormats(codecs: codecs)
    history = DescriptionHistory(sessionID: sessionID)
    sections = [.audio(transport: protection.transport, mid: nil)]
  }

  /// Whether audio is protected, and the source of our keys, which must be cryptographic.
  public enum Protection: Sendable {
    case off
    /// We offer RTP/AVP with keys, which peers that do not support them ignore; offers may be of either kind.
    case optional(RandomSource)
    /// We offer RTP/SAVP; a plain offer is refused.
    case required(RandomSource)

    fileprivate var random: RandomSource? {
      switch self {
      case .off: nil
      case .optional(let random), .required(let random): random
      }
    }
    fileprivate var isRequired: Bool { if case .required = self { true } else { false } }
    fileprivate var transport: String { isRequired ? secure : plain }
  }

  // MARK: Our offer

  /// Our offer: all codecs, after an exchange the agreed one first under its payload type, so that hold does not change it.
  /// `direction` is ours.
  public mutating func makeOffer(direction: MediaDirection = .sendReceive) -> String {
    offeredDirection = direction
    offeredKeys = makeKeys()
    // Silence suppression only if the peer has shown that it supports comfort noise.
    let listed = formats.offer(first: agreed?.codec, noise: agreed?.comfortNoisePayloadType)
    return write(listed, packetTime: 20, direction: direction, keys: offeredKeys)
  }

  /// A line for each suite, the agreed one first. Tags stay with their suites, so that an unchanged offer has unchanged lines.
  private mutating func makeKeys() -> [CryptoAttribute] {
    guard let random = protection.random else { return [] }
    if let current = agreed?.protection { ownKeys[current.suite] = current.ours }
    var keys: [CryptoAttribute] = []
    for (index, suite) in CryptoSuite.offered.enumerated() {
      let key = ownKeys[suite] ?? MediaKey(random.bytes(suite.keyBytes + suite.saltBytes))
      ownKeys[suite] = key
      let position = suite == agreed?.protection?.suite ? 0 : keys.count
      keys.insert(CryptoAttribute(tag: index + 1, suite: suite, key: key), at: position)
    }
    return keys
  }

  /// Applies the peer's answer to our offer: its first codec that we offered counts. `noOffer` without an offer of ours.
  public mutating func apply(answer text: String) throws(NegotiationError) -> TrunkMedia {
    guard let offered = formats.offered else { throw .noOffer }
    let description = try SessionDescription.read(text)
    let index = sections.firstIndex { if case .audio = $0 { true } else { false } } ?? 0
    guard let section = description.media.indices.contains(index) ? description.media[index] : description.media.first,
      section.kind == "audio"
    else { throw .noAudio }
    guard !section.isOff else { throw .audioRefused }
    let protection = try agreedKeys(section)
    let answered = section.audioFormats
    let common = answered.lazy.compactMap { format in format.codec.map { (format, $0) } }
      .first { pair in offered.contains { $0.format == .audio(pair.1) } }
    guard let (format, codec) = common else { throw .noCommonCodec }
    var media = try media(of: section, in: description, as: format, codec: codec, formats: answered)
    media.direction = media.direction.limited(to: offeredDirection)
    media.protection = protection
    media.incoming = formats.answered(with: answered)
    agreed = media
    return media
  }

  /// The one line of an answer: tag and suite of one of ours (RFC 4568 §5.1.3). nil: plain RTP, if allowed.
  private func agreedKeys(_ section: MediaDescription) throws(NegotiationError) -> MediaProtection? {
    let mayBe = Self.isPlain(section.transport) || (Self.isSecure(section.transport) && protection.random != nil)
    guard mayBe else { throw .transportProfile(section.transport) }
    for theirs in section.cryptoAttributes {
      guard let ours = offeredKeys.first(where: { $0.tag == theirs.tag && $0.suite == theirs.suite }) else { continue }
      return MediaProtection(suite: theirs.suite, ours: ours.key, theirs: theirs.key)
    }
    if Self.isSecure(section.transport) { throw .noUsableKey }
    if protection.isRequired { throw .notProtected }
    return nil
  }

  // MARK: The peer's offer

  /// Answers the peer's offer with one codec: the first of ours that it has. Sections that we do not accept get port 0.
  /// `direction` limits ours, for a leg that we hold.
  public mutating func answer(to text: String, direction: MediaDirection = .sendReceive) throws(NegotiationError)
    -> (sdp: String, media: TrunkMedia)
  {
    try answer(to: .read(text), direction: direction)
  }

  public mutating func answer(to description: SessionDescription, direction: MediaDirection = .sendReceive)
    throws(NegotiationError) -> (sdp: String, media: TrunkMedia)
  {
    let choice = try choose(description)
    let (index, format, codec, line) = (choice.index, choice.format, choice.codec, choice.key)
    var media = try media(of: description.media[index], in: description, as: format, codec: codec, formats: choice.formats)
    media.direction = media.direction.limited(to: direction)
    var keys: [CryptoAttribute] = []
    if let line, let own = ownKey(for: line) {
      keys = [CryptoAttribute(tag: line.tag, suite: line.suite, key: own)]
      media.protection = MediaProtection(suite: line.suite, ours: own, theirs: line.key)
    }
    sections = description.media.enumerated().map { position, other in
      position == index ? .audio(transport: other.transport, mid: other.mid) : .off(other.refusal)
    }
    media.incoming = formats.answering(choice.formats)
    agreed = media
    var listed = TrunkFormats.Listed(
      audio: [NumberedFormat(format.payloadType, .audio(codec))], noise: media.comfortNoisePayloadType)
    if let event = choice.formats.event(beside: codec) {
      listed.events = [NumberedFormat(event.payloadType, .telephoneEvent(clockRateHz: event.clockRateHz))]
    }
    let sdp = write(listed, packetTime: media.packetTimeMilliseconds, direction: media.direction, keys: keys)
    return (sdp, media)
  }

  /// Whether an offer can be answered, without answering it: returns the address of its media, which may be of the other family
  /// than `local`.
  public func destination(of offer: SessionDescription) throws(NegotiationError) -> IPAddress {
    let choice = try choose(offer)
    return try remote(of: offer.media[choice.index], in: offer)
  }

  /// Our key for the peer's: a new one if the peer has changed its own (RFC 4568 §7.1.4).
  private mutating func ownKey(for line: CryptoAttribute) -> MediaKey? {
    guard let random = protection.random else { return nil }
    if let current = agreed?.protection {
      if current.theirs == line.key, current.suite == line.suite { return current.ours }
      ownKeys = [:]
    }
    let key = ownKeys[line.suite] ?? MediaKey(random.bytes(line.suite.keyBytes + line.suite.saltBytes))
    ownKeys[line.suite] = key
    return key
  }

  private struct Choice {
    var index: Int
    var format: AudioFormat
    var codec: AudioEncoding
    var key: CryptoAttribute?
    /// All formats of its section.
    var formats: [AudioFormat]
  }

  /// The first enabled audio section of a transport that we accept with a common codec, protected ones before plain ones; else
  /// throws the most specific reason.
  private func choose(_ description: SessionDescription) throws(NegotiationError) -> Choice {
    var reason = NegotiationError.noAudio
    var plain: Choice?
    for (index, section) in description.media.enumerated() where section.kind == "audio" && !section.isOff {
      let line = protection.random == nil ? nil : section.cryptoAttributes.first
      if let refusal = refusal(of: section, line) {
        if reason == .noAudio { reason = refusal }
        continue
      }
      let formats = section.audioFormats
      let common = codecs.lazy.compactMap { codec in formats.first { $0.codec == codec }.map { ($0, codec) } }.first
      guard let (format, codec) = common else {
        reason = .noCommonCodec
        continue
      }
      let choice = Choice(index: index, format: format, codec: codec, key: line, formats: formats)
      if line != nil { return choice }
      if plain == nil { plain = choice }
    }
    guard let plain else { throw reason }
    return plain
  }

  private func refusal(of section: MediaDescription, _ line: CryptoAttribute?) -> NegotiationError? {
    if Self.isSecure(section.transport), protection.random != nil { return line == nil ? .noUsableKey : nil }
    guard Self.isPlain(section.transport) else { return .transportProfile(section.transport) }
    return protection.isRequired && line == nil ? .notProtected : nil
  }

  // MARK: Both

  /// RTP/AVPF is plain RTP with early feedback, of which we send none.
  private static func isPlain(_ transport: String) -> Bool { transport == plain || transport == "RTP/AVPF" }
  private static func isSecure(_ transport: String) -> Bool { transport == secure || transport == "RTP/SAVPF" }

  private func media(
    of section: MediaDescription, in description: SessionDescription, as format: AudioFormat, codec: AudioEncoding,
    formats: [AudioFormat]
  ) throws(NegotiationError) -> TrunkMedia {
    let ip = try remote(of: section, in: description)
    let held = ip.isUnspecified
    guard held || ip.family == local.ip.unmapped.family else { throw .unusableAddress(ip.description) }
    let theirs = description.direction(of: section)
    let event = formats.event(beside: codec)
    var media = TrunkMedia(
      remote: SocketAddress(ip, section.port), codec: codec, payloadType: format.payloadType,
      telephoneEventPayloadType: event?.payloadType, packetTimeMilliseconds: section.packetTimeMilliseconds,
      direction: MediaDirection(sends: theirs.receives && !held, receives: theirs.sends))
    media.telephoneEventClockRateHz = event?.clockRateHz
    media.comfortNoisePayloadType = formats.first { $0.isComfortNoise && $0.clockRateHz == codec.clockRateHz }?.payloadType
    media.control = section.controlAddress(beside: ip).flatMap { held || !isReachable($0.ip) ? nil : $0 }
    if codec == .opus { media.opus = OpusParameters(format) }
    media.wantsVoIPMetrics = section.wantsVoIPMetrics || description.wantsVoIPMetrics
    return media
  }

  /// The address of its media; unspecified if it requests none, the old form of hold (RFC 3264 §8.4).
  private func remote(of section: MediaDescription, in description: SessionDescription) throws(NegotiationError) -> IPAddress {
    guard let connection = description.connection(of: section) else { throw .unusableAddress("(no c= line)") }
    guard let ip = connection.address?.unmapped, !ip.isMulticast, section.port != 0, ip.isUnspecified || isReachable(ip) else {
      throw .unusableAddress(connection.text)
    }
    return ip
  }

  /// Applies to the RTCP address in `a=rtcp` (RFC 3605) as well.
  private func isReachable(_ ip: IPAddress) -> Bool {
    !refusesLocal || !(ip.isPrivileged || ip == local.ip.unmapped || ownAddresses.contains(ip))
  }

  private mutating func write(
    _ listed: TrunkFormats.Listed, packetTime: Int, direction: MediaDirection, keys: [CryptoAttribute]
  ) -> String {
    let media = sections.map { section -> MediaDescription in
      guard case .audio(let transport, let mid) = section else {
        if case .off(let refused) = section { return refused }
        return MediaDescription(kind: "audio", port: 0, transport: Self.plain, formats: ["0"])
      }
      var attributes = keys.map { Attribute("crypto", $0.text) }
      for format in listed.all { attributes += format.attributes }
      attributes += [Attribute("ptime", String(packetTime)), Attribute(direction.rawValue)]
      if let mid { attributes.append(Attribute("mid", mid)) }
      let payloadTypes = listed.all.map(\.payloadType)
      return MediaDescription(
        kind: "audio", port: local.port, transport: transport, formats: payloadTypes.map { String($0) }, attributes: attributes)
    }
    return history.write(
      SessionDescription(
        origin: .init(sessionID: history.sessionID, version: 0, address: local.ip.description), connection: Connection(local.ip),
        media: media))
  }
}

extension NumberedFormat {
  fileprivate var attributes: [Attribute] {
    switch format {
    case .audio(let codec):
      let parameters = codec.row.formatParameters
      let map = Attribute("rtpmap", "\(payloadType) \(codec.row.rtpmap)")
      return parameters.isEmpty ? [map] : [map, Attribute("fmtp", "\(payloadType) \(parameters.joined(separator: ";"))")]
    case .comfortNoise: return [Attribute("rtpmap", "\(payloadType) CN/8000")]
    case .telephoneEvent(let clock):
      return [Attribute("rtpmap", "\(payloadType) telephone-event/\(clock)"), Attribute("fmtp", "\(payloadType) 0-15")]
    }
  }
}

extension MediaDescription {
  /// The section as an answer refuses it: port 0, all identifying attributes kept (RFC 3264 §6).
  var refusal: MediaDescription {
    var attributes: [Attribute] = []
    if let mid, mid.utf8.count <= Limits.echoedBytes { attributes.append(Attribute("mid", mid)) }
    attributes.append(Attribute(MediaDirection.inactive.rawValue))
    return MediaDescription(
      // The grammar requires a format, even if the offer has none.
      kind: kind, port: 0, transport: transport, formats: [formats.first ?? "0"], connection: Connection(.any),
      attributes: attributes)
  }
}
