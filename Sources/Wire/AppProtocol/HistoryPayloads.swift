import TrunklineBytes

/// `hist.list`: the user's calls on all devices, the most recently ended first. It changes nothing; a repeat is answered again.
public struct HistoryList: Hashable, Sendable, Codable {
  /// The `next` of the previous page; nil: the first page.
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
  /// The most recently ended first.
  public var calls: [HistoryEntry]
  /// `before` of the next page; nil: this is the last one.
  public var next: Int?
  /// A page.
  public init(calls: [HistoryEntry], next: Int? = nil) { (self.calls, self.next) = (calls, next) }
}

/// One call of a user, as seen by the requesting device.
public struct HistoryEntry: Hashable, Sendable, Codable {
  /// The outcome. A value that this version does not know is read as `failed`.
  public enum Outcome: String, Sendable, Codable, CaseIterable {
    /// This device had the call.
    case answered
    /// Another of the user's devices had the call.
    case answeredElsewhere
    /// No device answered.
    case missed
    /// This user hung up before the call was answered.
    case cancelled
    /// The user declined, or for an outgoing call the callee; or the line was busy.
    case declined
    /// See ``declined``.
    case busy
    /// It was diverted because no device answered.
    case diverted
    /// The user's directory blocks the caller: no device rang.
    case blocked
    /// Do not disturb: no device rang.
    case filtered
    /// A fault.
    case failed

    public init(from decoder: any Decoder) throws {
      self = Outcome(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .failed
    }
  }
  /// Increases with each ended call.
  public var id: Int
  /// The call's identifier in its record.
  public var call: Identifier
  /// Incoming or outgoing.
  public var dir: CallSnapshot.Direction
  /// The other party; `n` is its name in the user's directory.
  public var peer: Handle
  /// Milliseconds since 1970.
  public var start: Int64
  /// Milliseconds since 1970; nil: it was never connected.
  public var connect: Int64?
  /// Milliseconds since 1970.
  public var end: Int64
  /// The outcome for the requesting device.
  public var outcome: Outcome
  /// Why it ended.
  public var reason: EndReason
  /// The user's device that had the call.
  public var device: String?
  /// The user's account of the call.
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

/// `hist.resolve`: requests the names of these handles in the user's directory.
public struct HistoryResolve: Hashable, Sendable, Codable {
  public var handles: [String]
  public init(handles: [String]) { self.handles = handles }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    guard let handles = try values.optionalList(.handles) else { throw values.problem(.handles, "a list of handles") }
    self.handles = handles
  }
}

/// `hist.changed`: a call was added to the history, or (0) the history was erased.
public struct HistoryChanged: Hashable, Sendable, Codable {
  /// The newest entry.
  public var id: Int
  public init(id: Int) { self.id = id }
}
