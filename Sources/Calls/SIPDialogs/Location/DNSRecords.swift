public import TrunklineBytes

/// A query to the domain name system.
public struct DNSQuestion: Hashable, Sendable, CustomStringConvertible {
  public enum Kind: String, Hashable, Sendable, CaseIterable { case naptr = "NAPTR", srv = "SRV", a = "A", aaaa = "AAAA" }
  /// Lower case, without the dot at the end.
  public let name: String
  public let kind: Kind

  public init(_ name: String, _ kind: Kind) {
    let lower = name.lowercased()
    self.name = lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    self.kind = kind
  }
  public var description: String { "\(name) \(kind.rawValue)" }
}

/// RFC 2782.
public struct SRVRecord: Hashable, Sendable {
  public var priority: UInt16
  public var weight: UInt16
  public var port: UInt16
  public var target: String
  public init(priority: UInt16, weight: UInt16, port: UInt16, target: String) {
    (self.priority, self.weight, self.port, self.target) = (priority, weight, port, target)
  }
}

/// RFC 3403.
public struct NAPTRRecord: Hashable, Sendable {
  public var order: UInt16
  public var preference: UInt16
  public var flags: String
  public var service: String
  public var replacement: String
  public init(order: UInt16, preference: UInt16, flags: String, service: String, replacement: String) {
    (self.order, self.preference, self.flags) = (order, preference, flags)
    (self.service, self.replacement) = (service, replacement)
  }
}

/// The outcome of a query.
public enum DNSAnswer: Hashable, Sendable {
  case naptr([NAPTRRecord], timeToLive: Duration)
  case srv([SRVRecord], timeToLive: Duration)
  case addresses([IPAddress], timeToLive: Duration)
  /// The name servers report that the name or record does not exist.
  case none
  /// No answer, or an unusable one: the last good one stays valid, and without one no caller waits for it.
  case failed
}
