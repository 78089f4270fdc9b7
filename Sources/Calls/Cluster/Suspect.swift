import TrunklineBytes

/// A node whose lease has ended.
struct Suspect: Sendable {
  enum Verdict: Sendable { case missing, cutOff, silent, dead }
  enum Due: Int, Sendable { case nothing, ringing, all }
  struct Scan: Sendable {
    var number: UInt64
    var due: Due
    var cursor: UInt64 = 0
    var isReading = false
    var isRead = false
    /// Numbers of entries that were found, that wait, and that other nodes close.
    var found = 0
    var waiting = 0
    var skipped = 0
  }

  var lease: NodeLease
  /// Silent since then.
  var silentSince: Instant
  var missingSince: Instant
  var verdict = Verdict.missing
  var isHeld = false
  var byOperator = false
  var probedAt: Instant?
  /// The pending scan of its entries; nil: none.
  var scan: Scan?
  /// The trunks of its calls: its shares of them are removed at the end.
  var trunks: Set<String> = []
  /// The entries that are closed completely.
  var done = Due.nothing
  var scanAgain: Instant?

  init(lease: NodeLease, now: Instant) { (self.lease, silentSince, missingSince) = (lease, now, now) }

  var state: SeenNode.Liveness {
    if isHeld { return .held }
    return switch verdict {
    case .missing: .missing
    case .cutOff: .cutOff
    case .silent: .silent
    case .dead: .dead
    }
  }
}
