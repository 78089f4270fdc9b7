import TrunklineBytes
import TrunklineRTP

/// Writes the audio section of an app leg, for the gateway and for the app.
struct SecureAudioWriter {
  struct Format: Hashable, Sendable {
    var codec: AudioEncoding
    var payloadType: UInt8
  }

  var endpoint: SecureEndpoint
  var isLite: Bool
  var setup: SetupRole
  var formats: [Format]
  var event48: UInt8?
  var event8: UInt8?
  var mid: String?
  var transport = "UDP/TLS/RTP/SAVPF"
  var direction = MediaDirection.sendReceive

  static let event48 = UInt8(110)
  static let event8 = UInt8(126)

  func section() -> MediaDescription {
    let address = endpoint.candidates.first
    let events = [(event48, 48_000), (event8, 8_000)].compactMap { type, clock in type.map { ($0, clock) } }
    let payloadTypes = formats.map(\.payloadType) + events.map(\.0)
    return MediaDescription(
      kind: "audio", port: address?.port ?? 9, transport: transport, formats: payloadTypes.map { String($0) },
      connection: Connection(address?.ip ?? .any),
      attributes: transportAttributes() + codecAttributes(events) + streamAttributes())
  }

  private func transportAttributes() -> [Attribute] {
    var out = endpoint.candidates.prefix(Limits.candidates).enumerated().map { index, address in
      Attribute("candidate", CandidateAttribute(host: address, index: index).text)
    }
    if !out.isEmpty { out.append(Attribute("end-of-candidates")) }
    out += [
      Attribute("ice-ufrag", endpoint.ufrag), Attribute("ice-pwd", endpoint.password), Attribute("ice-options", "trickle"),
      Attribute("fingerprint", endpoint.fingerprint.text), Attribute("setup", setup.rawValue),
    ]
    if let mid { out.append(Attribute("mid", mid)) }
    return out + [Attribute(direction.rawValue), Attribute("rtcp-mux")]
  }

  private func codecAttributes(_ events: [(UInt8, Int)]) -> [Attribute] {
    var out: [Attribute] = []
    for format in formats {
      out.append(Attribute("rtpmap", "\(format.payloadType) \(format.codec.row.rtpmap)"))
      var parameters = format.codec.row.formatParameters
      guard !parameters.isEmpty else { continue }
      if format.codec == .opus { parameters.insert(contentsOf: endpoint.opus.text, at: parameters.count - 1) }
      out.append(Attribute("fmtp", "\(format.payloadType) \(parameters.joined(separator: ";"))"))
    }
    for (payloadType, clock) in events {
      out += [Attribute("rtpmap", "\(payloadType) telephone-event/\(clock)"), Attribute("fmtp", "\(payloadType) 0-15")]
    }
    return out + [Attribute("ptime", "20")]
  }

  private func streamAttributes() -> [Attribute] {
    guard direction.sends else { return [] }
    let stream = "\(endpoint.cname) audio0"
    return [
      Attribute("msid", stream), Attribute("ssrc", "\(endpoint.ssrc) cname:\(endpoint.cname)"),
      Attribute("ssrc", "\(endpoint.ssrc) msid:\(stream)"),
    ]
  }

  /// The whole description around the sections; `bundled` adds the bundle group with our `mid`.
  func description(_ media: [MediaDescription], bundled: Bool, sessionID: UInt64) -> SessionDescription {
    var attributes: [Attribute] = []
    if bundled, let mid { attributes.append(Attribute("group", "BUNDLE \(mid)")) }
    if isLite { attributes.append(Attribute("ice-lite")) }
    attributes.append(Attribute("msid-semantic", " WMS *"))
    let address = endpoint.candidates.first?.ip ?? .any
    return SessionDescription(
      origin: .init(sessionID: sessionID, version: 0, address: address.description), attributes: attributes, media: media)
  }
}

/// Numbers the descriptions of one side: the version grows when, and only when, the text changes (RFC 3264 §8).
struct DescriptionHistory: Sendable {
  let sessionID: UInt64
  private var version: UInt64 = 0
  private var last: SessionDescription?

  init(sessionID: UInt64) { self.sessionID = sessionID >> 1 }  // fits a signed 64-bit number (RFC 9429 §5.2.1)

  mutating func write(_ description: SessionDescription) -> String {
    var description = description
    description.origin.version = version
    if description != last {
      version += 1
      description.origin.version = version
      last = description
    }
    return description.text
  }
}
