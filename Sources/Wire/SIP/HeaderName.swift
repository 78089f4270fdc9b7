/// The known headers; one row each. A new header is a row here and a file in `Headers`.
///
/// Every other field is `.other` and keeps its spelling in the message.
public enum HeaderName: UInt8, Hashable, Sendable, CaseIterable {
  case via, from, to, callID, cseq, contact, maxForwards, route, recordRoute, contentLength, contentType, contentEncoding,
    contentDisposition, require, proxyRequire, supported, unsupported, allow, accept, reason, wwwAuthenticate,
    proxyAuthenticate, authorization, proxyAuthorization, pAssertedIdentity, privacy, diversion, retryAfter, expires,
    server, userAgent, replaces, alertInfo, warning, timestamp, sessionExpires, minSE, referTo, subject, event, allowEvents,
    minExpires, identity, rseq, rack, historyInfo, referredBy, subscriptionState, infoPackage, date, pPreferredIdentity,
    pCalledPartyID, serviceRoute, trunklineTrunk, other

  /// Canonical spelling and compact form (RFC 3261 §7.3.3).
  var row: (name: StaticString, compact: UInt8?) {
    switch self {
    case .via: ("Via", UInt8(ascii: "v"))
    case .from: ("From", UInt8(ascii: "f"))
    case .to: ("To", UInt8(ascii: "t"))
    case .callID: ("Call-ID", UInt8(ascii: "i"))
    case .cseq: ("CSeq", nil)
    case .contact: ("Contact", UInt8(ascii: "m"))
    case .maxForwards: ("Max-Forwards", nil)
    case .route: ("Route", nil)
    case .recordRoute: ("Record-Route", nil)
    case .contentLength: ("Content-Length", UInt8(ascii: "l"))
    case .contentType: ("Content-Type", UInt8(ascii: "c"))
    case .contentEncoding: ("Content-Encoding", UInt8(ascii: "e"))
    case .contentDisposition: ("Content-Disposition", nil)
    case .require: ("Require", nil)
    case .proxyRequire: ("Proxy-Require", nil)
    case .supported: ("Supported", UInt8(ascii: "k"))
    case .unsupported: ("Unsupported", nil)
    case .allow: ("Allow", nil)
    case .accept: ("Accept", nil)
    case .reason: ("Reason", nil)
    case .wwwAuthenticate: ("WWW-Authenticate", nil)
    case .proxyAuthenticate: ("Proxy-Authenticate", nil)
    case .authorization: ("Authorization", nil)
    case .proxyAuthorization: ("Proxy-Authorization", nil)
    case .pAssertedIdentity: ("P-Asserted-Identity", nil)
    case .pCalledPartyID: ("P-Called-Party-ID", nil)
    case .privacy: ("Privacy", nil)
    case .diversion: ("Diversion", nil)
    case .retryAfter: ("Retry-After", nil)
    case .expires: ("Expires", nil)
    case .server: ("Server", nil)
    case .userAgent: ("User-Agent", nil)
    case .replaces: ("Replaces", nil)
    case .alertInfo: ("Alert-Info", nil)
    case .warning: ("Warning", nil)
    case .timestamp: ("Timestamp", nil)
    case .sessionExpires: ("Session-Expires", UInt8(ascii: "x"))
    case .minSE: ("Min-SE", nil)
    case .referTo: ("Refer-To", UInt8(ascii: "r"))
    case .subject: ("Subject", UInt8(ascii: "s"))
    case .event: ("Event", UInt8(ascii: "o"))
    case .allowEvents: ("Allow-Events", UInt8(ascii: "u"))
    case .minExpires: ("Min-Expires", nil)
    case .identity: ("Identity", UInt8(ascii: "y"))
    case .rseq: ("RSeq", nil)
    case .rack: ("RAck", nil)
    case .historyInfo: ("History-Info", nil)
    case .referredBy: ("Referred-By", UInt8(ascii: "b"))
    case .subscriptionState: ("Subscription-State", nil)
    case .infoPackage: ("Info-Package", nil)
    case .date: ("Date", nil)
    case .pPreferredIdentity: ("P-Preferred-Identity", nil)
    case .serviceRoute: ("Service-Route", nil)
    case .trunklineTrunk: ("X-Trunkline-Trunk", nil)
    case .other: ("", nil)
    }
  }

  /// The row of a name, case-insensitively or in its compact form; `.other` for a name without a row.
  public init(_ name: String) {
    let bytes = Array(name.utf8)
    self = HeaderIndex.shared.find(bytes.span, ByteRange(from: 0, to: bytes.count))
  }

  /// As written on the wire.
  public var text: String { row.name.description }

  /// Whether a message may hold this field only once, with one value (RFC 3261 §7.3.1, §20).
  public var isSingle: Bool {
    switch self {
    case .from, .to, .callID, .cseq, .maxForwards, .contentLength, .contentType, .expires, .replaces, .retryAfter,
      .sessionExpires,
      .minSE, .rseq, .rack:
      true
    default: false
    }
  }
}

/// Finds the row of a name: one bucket per length and first letter's low bits, then one comparison.
struct HeaderIndex: Sendable {
  static let shared = HeaderIndex()
  private var buckets: [[HeaderName]]
  private var compact: [HeaderName]

  init() {
    buckets = Array(repeating: [], count: 32 * 32)
    compact = Array(repeating: .other, count: 32)
    for name in HeaderName.allCases where name != .other {
      let row = name.row
      let first = UnsafeBufferPointer(start: row.name.utf8Start, count: row.name.utf8CodeUnitCount)[0]
      buckets[(row.name.utf8CodeUnitCount & 31) * 32 + Int(first & 31)].append(name)
      if let letter = row.compact { compact[Int(letter & 31)] = name }
    }
  }

  func find(_ bytes: Span<UInt8>, _ range: ByteRange) -> HeaderName {
    guard !range.isEmpty, range.upper <= bytes.count else { return .other }
    let first = bytes[range.lower].lowered
    if range.count == 1 { return first &- 97 < 26 ? compact[Int(first & 31)] : .other }
    guard range.count < 32 else { return .other }
    for name in buckets[range.count * 32 + Int(first & 31)] where matches(bytes, range, name.row.name) { return name }
    return .other
  }

  private func matches(_ bytes: Span<UInt8>, _ range: ByteRange, _ literal: StaticString) -> Bool {
    let text = UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount)
    guard text.count == range.count else { return false }
    for index in 0..<text.count where bytes[range.lower &+ index].lowered != text[index].lowered { return false }
    return true
  }
}
