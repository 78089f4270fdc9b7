import TrunklineBytes
import TrunklineRTP

/// Reads the audio section of an app leg's description (docs/reference/protocol.md, "Media on the app leg") and refuses an
/// insecure one. Gateway and phone differ in two points only.
struct SecureAudioReader {
  /// The DTLS roles that the peer may have; the first is chosen if the choice is ours.
  var peerRoles: [SetupRole]
  var acceptsLite: Bool
  var codecs: [AudioEncoding]

  enum Kind { case offer, answer }

  /// The index of the audio section in a peer's offer: the first that is enabled, has a secure transport and shares a codec; else
  /// the first that is enabled, and reading it throws the reason.
  func chooseSection(_ description: SessionDescription) throws(NegotiationError) -> Int {
    let audio = description.media.indices.filter { description.media[$0].kind == "audio" && !description.media[$0].isOff }
    guard let first = audio.first else { throw .noAudio }
    let usable = audio.first { index in
      Self.isSecure(description.media[index].transport) && format(description.media[index].audioFormats) != nil
    }
    return usable ?? first
  }

  func read(_ kind: Kind, _ description: SessionDescription, at index: Int) throws(NegotiationError) -> AppMedia {
    guard description.media.indices.contains(index), description.media[index].kind == "audio" else { throw .noAudio }
    let section = description.media[index]
    guard !section.isOff else { throw kind == .answer ? .audioRefused : .noAudio }
    guard Self.isSecure(section.transport) else { throw .transportProfile(section.transport) }
    let attributes = Self.inherited(description, index)
    let fingerprint = try Self.fingerprint(attributes)
    if description.attributes.has("ice-lite"), !acceptsLite { throw .iceLite }
    let role = try setup(kind, attributes)
    guard attributes.has("rtcp-mux") else { throw .noRTCPMultiplexing }
    guard let ufrag = attributes.value("ice-ufrag"), let password = attributes.value("ice-pwd"),
      let credentials = ICECredentials(ufrag: String(trimmed(ufrag[...])), password: String(trimmed(password[...])))
    else { throw .noICECredentials }
    let formats = section.audioFormats
    guard let (format, codec) = format(formats) else { throw .noCommonCodec }
    if let mid = section.mid, mid.utf8.count > Limits.echoedBytes {
      throw .malformed(DescriptionError(line: 0, rule: "a=mid of more than \(Limits.echoedBytes) bytes"))
    }
    func event(_ clockRateHz: UInt32) -> UInt8? {
      formats.first { $0.isTelephoneEvent && $0.clockRateHz == clockRateHz }?.payloadType
    }
    return AppMedia(
      credentials: credentials, fingerprint: fingerprint, setup: role, isLite: description.attributes.has("ice-lite"),
      candidates: attributes.values("candidate").prefix(Limits.candidates).compactMap { CandidateAttribute($0) },
      codec: codec, payloadType: format.payloadType, telephoneEvent48: event(48_000), telephoneEvent8: event(8_000),
      packetTimeMilliseconds: section.packetTimeMilliseconds, direction: description.direction(of: section).reversed,
      mid: section.mid, opus: codec == .opus ? .init(format) : .init())
  }

  /// The peer's first format that is one of our codecs: an app that prefers G.711 gets it (relay), others put Opus first.
  private func format(_ formats: [AudioFormat]) -> (AudioFormat, AudioEncoding)? {
    for format in formats { if let codec = format.codec, codecs.contains(codec) { return (format, codec) } }
    return nil
  }

  /// RTP/SAVP(F) without the prefix is the spelling of old browsers; the fingerprint decides.
  private static func isSecure(_ transport: String) -> Bool {
    ["UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "RTP/SAVPF", "RTP/SAVP"].contains(transport)
  }

  /// The section's attributes, then for transport those of the section that carries its bundle (RFC 9143 §7.1.3: a bundle-only
  /// section has none of its own), then the session's.
  private static func inherited(_ description: SessionDescription, _ index: Int) -> [Attribute] {
    let section = description.media[index]
    var attributes = section.attributes
    if !attributes.has("ice-ufrag") && !attributes.has("fingerprint"), let mid = section.mid, let bundle = description.bundle,
      bundle.contains(mid), let tagged = bundle.first, tagged != mid,
      let carrier = description.media.first(where: { $0.mid == tagged })
    {
      let transport: Set<String> = ["ice-ufrag", "ice-pwd", "fingerprint", "setup", "rtcp-mux", "candidate"]
      attributes += carrier.attributes.filter { transport.contains($0.name) }
    }
    return attributes + description.attributes
  }

  /// The first hash that we can check. SHA-1 and older ones are refused: RFC 8122 §5 permits them only for old peers.
  private static func fingerprint(_ attributes: [Attribute]) throws(NegotiationError) -> FingerprintAttribute {
    let values = attributes.values("fingerprint")
    guard let first = values.first else { throw attributes.has("crypto") ? .keysInDescription : .noFingerprint }
    let known = values.compactMap { FingerprintAttribute($0) }
    guard let chosen = known.first(where: { $0.algorithm == .sha256 }) ?? known.first else {
      throw .unusableFingerprint(String(first.prefix { $0 != " " }))
    }
    return chosen
  }

  /// RFC 5763 §5: an offer leaves the choice (`actpass`) or states a suitable role; an answer states one. RFC 4145 §4: absent
  /// means active in an offer, passive in an answer.
  private func setup(_ kind: Kind, _ attributes: [Attribute]) throws(NegotiationError) -> SetupRole {
    let text = attributes.value("setup").map { String(trimmed($0[...])) }
    let role = text.map { SetupRole(rawValue: $0) } ?? (kind == .offer ? .active : .passive)
    if let role, peerRoles.contains(role) { return role }
    if kind == .offer, role == .actpass, let chosen = peerRoles.first { return chosen }
    throw .setupRole(text ?? "(none)")
  }
}
