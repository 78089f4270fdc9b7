import Bytes

/// `hist.list`: the user's calls over all devices, those that ended last first. It changes nothing; a repeat is answered again.
public struct HistoryList: Hashable, Sendable, Codable {
  /// The `next` of the page before; nil: the first page.
  public var before: Int?
  public var limit: Int?
  public init(before: Int? = nil, limit: Int? = nil) { (self.before, self.limit) = (before, limit) }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    before = try values.optionalNumber(.before, in: Limits.sequence)
    limit = try values.optionalNumber(.limit, in: Limits.historyPage)
  }
}

/// The `hist` of the `ok` of `hist.list`.
public struct HistoryPage: Hashable, Sendable, Codable {
  /// Those that ended last first.
  public var calls: [HistoryEntry]
  /// `before` of the next page; nil: this is the last one.
  public var next: Int?
  /// A page.
  public init(calls: [HistoryEntry], next: Int? = nil) { (self.calls, self.next) = (calls, next) }
}

/// One call of a user, as the device that asks sees it.
public struct HistoryEntry: Hashable, Sendable, Codable {
  /// How it came out. One that this version does not know is read as `failed`.
  public enum Outcome: String, Sendable, Codable, CaseIterable {
    /// This device had it.
    case answered
    /// Another of the user's devices had it.
    case answeredElsewhere
    /// No device answered.
    case missed
    /// This user gave up before the other side answered.
    case cancelled
    /// The user, or for an outgoing call the other side, did not want it; or was busy.
    case declined
    /// See ``declined``.
    case busy
    /// It was diverted because no device answered.
    case diverted
    /// The user's directory blocks the caller: nothing rang.
    case blocked
    /// No device wanted to be disturbed.
    case filtered
    /// By a fault.
    case failed

    public init(from decoder: any Decoder) throws {
      self = Outcome(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .failed
    }
  }
  /// Grows with each call that ended.
  public var id: Int
  /// The call, as its record names it.
  public var call: Identifier
  /// In or out.
  public var dir: CallSnapshot.Direction
  /// The other side; `n` is what the user's directory calls it.
  public var peer: Handle
  /// Milliseconds since 1970.
  public var start: Int64
  /// Milliseconds since 1970; nil: it was never connected.
  public var connect: Int64?
  /// Milliseconds since 1970.
  public var end: Int64
  /// How it came out, for the device that asks.
  public var outcome: Outcome
  /// Why it ended.
  public var reason: EndReason
  /// The user's device that had it.
  public var device: String?
  /// The user's account that it belongs to.
  public var acct: String?
  /// A call.
  public init(
    id: Int, call: Identifier, dir: CallSnapshot.Direction, peer: Handle, start: Int64, connect: Int64? = nil, end: Int64,
    outcome: Outcome, reason: EndReason, device: String? = nil, acct: String? = nil
  ) {
    (self.id, self.call, self.dir, self.peer, self.start) = (id, call, dir, peer, start)
    (self.connect, self.end, self.outcome, self.reason) = (connect, end, outcome, reason)
    (self.device, self.acct) = (device, acct)
  }
}

/// `hist.resolve`: what the user's directory calls these.
public struct HistoryResolve: Hashable, Sendable, Codable {
  public var handles: [String]
  public init(handles: [String]) { self.handles = handles }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    guard let handles = try values.optionalList(.handles) else { throw values.problem(.handles, "a list of handles") }
    self.handles = handles
  }
}

/// `hist.changed`: a call is in the history that was not, or (0) all of it is gone.
public struct HistoryChanged: Hashable, Sendable, Codable {
  /// The newest entry.
  public var id: Int
  public init(id: Int) { self.id = id }
}
