public import Bytes

/// A question to the domain name system.
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

/// What became of a question.
public enum DNSAnswer: Hashable, Sendable {
  case naptr([NAPTRRecord], timeToLive: Duration)
  case srv([SRVRecord], timeToLive: Duration)
  case addresses([IPAddress], timeToLive: Duration)
  /// The name servers say that there is no such name or record.
  case none
  /// No answer, or one that says nothing: the last good one continues to count, and where there is none, nothing waits for it.
  case failed
}
