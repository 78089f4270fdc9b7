import TrunklineBytes

/// A session description (RFC 8866), as far as a gateway for audio needs it: lines of unknown type, `b=`, `i=`, `k=`, `r=` and
/// the like are dropped when read; attributes are all kept in order.
public struct SessionDescription: Hashable, Sendable {
  /// The fields of `o=`. Some systems write invalid ones (`(null)`, one missing): then they are zero, and nothing else is
  /// affected.
  public struct Origin: Hashable, Sendable {
    public var username: String
    public var sessionID: UInt64
    public var version: UInt64
    public var address: String
    public init(username: String = "-", sessionID: UInt64, version: UInt64, address: String) {
      (self.username, self.sessionID, self.version, self.address) = (username, sessionID, version, address)
    }
  }

  public var origin: Origin
  public var name: String
  /// The `c=` of the session, for sections without their own.
  public var connection: Connection?
  public var attributes: [Attribute]
  public var media: [MediaDescription]

  public init(
    origin: Origin, name: String = "-", connection: Connection? = nil, attributes: [Attribute] = [],
    media: [MediaDescription] = []
  ) {
    (self.origin, self.name, self.connection, self.attributes, self.media) = (origin, name, connection, attributes, media)
  }

  /// The address of a section: its own `c=`, else the session's.
  public func connection(of section: MediaDescription) -> Connection? { section.connection ?? connection }

  /// The direction of a section: its own, else the session's, else sendrecv (RFC 8866 §6.7).
  public func direction(of section: MediaDescription) -> MediaDirection {
    section.attributes.direction ?? attributes.direction ?? .sendReceive
  }

  /// The identification tags of the first `a=group:BUNDLE` (RFC 9143 §7).
  public var bundle: [String]? {
    for value in attributes.values("group") {
      let parts = value.split(separator: " ")
      if parts.first == "BUNDLE" { return parts.dropFirst().map(String.init) }
    }
    return nil
  }
}

/// One `m=` section.
public struct MediaDescription: Hashable, Sendable {
  /// `audio`, `video`, `application`…
  public var kind: String
  /// 0: the section is switched off, or `a=bundle-only`.
  public var port: UInt16
  /// Such as `RTP/AVP` or `UDP/TLS/RTP/SAVPF`.
  public var transport: String
  /// Payload types, or what the transport defines.
  public var formats: [String]
  public var connection: Connection?
  public var attributes: [Attribute]

  public init(
    kind: String, port: UInt16, transport: String, formats: [String], connection: Connection? = nil, attributes: [Attribute] = []
  ) {
    (self.kind, self.port, self.transport, self.formats) = (kind, port, transport, formats)
    (self.connection, self.attributes) = (connection, attributes)
  }

  public var mid: String? { attributes.value("mid") }
  public var isBundleOnly: Bool { attributes.has("bundle-only") }
  /// Port 0 without `a=bundle-only`.
  public var isOff: Bool { port == 0 && !isBundleOnly }
}

/// An address of `c=`.
public struct Connection: Hashable, Sendable {
  /// As written, without TTL and count.
  public var text: String
  /// nil for a host name.
  public var address: IPAddress?

  public init(_ address: IPAddress) { (text, self.address) = (address.description, address) }
  init(text: String) { (self.text, address) = (text, IPAddress(text)) }
}

/// `a=name` or `a=name:value`.
public struct Attribute: Hashable, Sendable {
  public var name: String
  public var value: String?
  public init(_ name: String, _ value: String? = nil) { (self.name, self.value) = (name, value) }
}

/// Which sides send, from the point of view of the description's author (RFC 8866 §6.7).
public enum MediaDirection: String, Hashable, Sendable, CaseIterable {
  case sendReceive = "sendrecv"
  case sendOnly = "sendonly"
  case receiveOnly = "recvonly"
  case inactive

  public var sends: Bool { self == .sendReceive || self == .sendOnly }
  public var receives: Bool { self == .sendReceive || self == .receiveOnly }

  public init(sends: Bool, receives: Bool) {
    self = sends ? (receives ? .sendReceive : .sendOnly) : (receives ? .receiveOnly : .inactive)
  }

  /// The same from the peer's point of view.
  public var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }
  /// The intersection of both.
  public func limited(to other: MediaDirection) -> MediaDirection {
    MediaDirection(sends: sends && other.sends, receives: receives && other.receives)
  }
}

extension [Attribute] {
  /// The first value of that name; nil also if the attribute has no value.
  public func value(_ name: String) -> String? { first { $0.name == name && $0.value != nil }?.value }
  public func values(_ name: String) -> [String] { compactMap { $0.name == name ? $0.value : nil } }
  public func has(_ name: String) -> Bool { contains { $0.name == name } }

  /// The last direction attribute, if any.
  var direction: MediaDirection? {
    last { $0.value == nil && MediaDirection(rawValue: $0.name) != nil }.flatMap { MediaDirection(rawValue: $0.name) }
  }
}

/// Parses digits only, as SDP requires: no sign, no space.
func number<Value: FixedWidthInteger>(_ text: some StringProtocol, as type: Value.Type = Value.self) -> Value? {
  number(digits: text.utf8)
}

func number<Value: FixedWidthInteger>(digits: some Sequence<UInt8>, as type: Value.Type = Value.self) -> Value? {
  var (value, count): (UInt64, Int) = (0, 0)
  for byte in digits {
    guard byte >= 48, byte <= 57, count < 20 else { return nil }
    let (tens, isOver) = value.multipliedReportingOverflow(by: 10)
    let (sum, isMore) = tens.addingReportingOverflow(UInt64(byte &- 48))
    guard !isOver, !isMore else { return nil }
    value = sum
    count = count + 1
  }
  return count > 0 ? Value(exactly: value) : nil
}
