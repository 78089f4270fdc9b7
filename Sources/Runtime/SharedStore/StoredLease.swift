import Cluster

/// The lease of a node.
struct StoredLease: StoredValue {
  /// The format that the node writes.
  var format = Cluster.Limits.format
  var incarnation: String
  var url: String
  var sip: String
  var admin: String?
  var drains: Bool?
  var refuses: Bool?
  var calls: Int?
  var sessions: Int?
  var version: String?
  /// The formats that the node reads.
  var newestRead: Int?
  var oldestRead: Int?
  var configuration: String?
  /// Trunks in trouble.
  var down: [String: String]?
  /// `NodeLease.staleGrants`, hexadecimal.
  var stale: String?
  /// Seconds since 1970: the lease is invalid afterwards, even if an old value is restored.
  var end: Int64?

  /// `i` is read by the scripts too.
  enum CodingKeys: String, CodingKey {
    case format = "v"
    case incarnation = "i"
    case url, sip, admin, drains, refuses, calls, sessions, version, configuration, down, stale
    case newestRead = "format"
    case oldestRead = "oldest"
    case end = "e"
  }

  init(_ lease: NodeLease, until end: Int64? = nil) {
    self.end = end
    (incarnation, url, sip, version) = (lease.incarnation.description, lease.url, lease.sip, lease.version)
    admin = lease.admin
    down = lease.troubles.isEmpty ? nil : lease.troubles
    stale = lease.staleGrants == 0 ? nil : String(lease.staleGrants, radix: 16)
    (drains, refuses) = (lease.isDraining ? true : nil, lease.refuses ? true : nil)
    (calls, sessions, configuration) = (lease.calls, lease.sessions, lease.configuration)
    (format, newestRead, oldestRead) = (lease.format, lease.reads.upperBound, lease.reads.lowerBound)
  }

  var value: NodeLease? {
    let (first, last) = (oldestRead ?? format, newestRead ?? format)
    guard let incarnation = Incarnation(incarnation),
      isPlausible(incarnation.started, calls.map(Int64.init), sessions.map(Int64.init)),
      isWord(url), isWord(sip), isWord(admin ?? ""), isPlain(version ?? ""), isPlain(configuration ?? ""), first <= last
    else { return nil }
    var lease = NodeLease(
      incarnation, url: url, sip: sip, version: version ?? "", format: format, reads: first...last,
      configuration: configuration ?? "")
    lease.isDraining = drains ?? false
    lease.refuses = refuses ?? false
    lease.calls = calls ?? 0
    lease.sessions = sessions ?? 0
    lease.admin = admin
    lease.troubles = down ?? [:]
    lease.staleGrants = stale.flatMap { UInt64($0, radix: 16) } ?? 0
    return lease
  }
}
