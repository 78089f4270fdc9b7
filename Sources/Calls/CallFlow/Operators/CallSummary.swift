public import CallModel
public import TrunklineAppProtocol

/// One live call for the admin endpoint.
public struct CallSummary: Sendable, Codable, Equatable {
  public struct Device: Sendable, Codable, Equatable {
    public var device: String
    /// pushed, notReached (no push was accepted), offered, ringing, prepared or winner.
    public var state: String
    public var ice: Bool
    public var dtls: Bool
    public var ready: Bool
  }
  public var call: CallID
  public var sipCallId: String?
  public var direction: CallDirection
  public var state: CallState
  public var trunk: String
  public var from: String
  public var to: String
  public var user: String
  /// Milliseconds since 1970 of each stage reached.
  public var times: [String: Int64]
  public var devices: [Device]
  /// Held by the app, held by the trunk, muted by the app.
  public var held: Bool
  public var heldByTrunk: Bool
  public var muted: Bool
  /// The side that sends nothing though the call is connected: an app that is neither held nor muted for 5 s, a trunk for 20 s.
  public var silent: CallSide?
  /// The other calls of its group; nil: it is in none.
  public var group: [CallID]?
  /// The call's named parameters; nil: none.
  public var parameters: CallParameters?
  /// The streams received from each side, as in the record, from the newest statistics of the media thread (each 5 s); nil
  /// before.
  public var fromTrunk: CallRecord.Stream?
  public var fromApp: CallRecord.Stream?
  /// Statistics from the device that has the call; nil before its first `stats`.
  public var appStats: AppStats?
}

/// docs/reference/protocol.md, Call states at the gateway. Incoming: parked, ringing, answering, diverting, connected. Outgoing: starting,
/// ready, progress, connected.
public enum CallState: String, Sendable, Codable, CaseIterable {
  case parked, ringing, answering, diverting, starting, ready, progress, connected
  /// Over for all parties; its record waits for the final statistics.
  case ended
}

/// Counters and gauges; counters only grow.
public struct CallStatistics: Sendable, Equatable {
  /// Calls by state now.
  public var states: [CallState: Int] = [:]
  /// Calls since the start, by trunk.
  public var started: [CallDirection: [String: Int]] = [:]
  public var incoming: Int { started[.incoming, default: [:]].values.reduce(0, +) }
  public var outgoing: Int { started[.outgoing, default: [:]].values.reduce(0, +) }
  /// INVITEs with Replaces that took over a call: neither a new call nor a refusal.
  public var replaced = 0
  /// Records by end reason and side.
  public var ended: [EndReason: [CallSide: Int]] = [:]
  /// Trunk legs that were answered before the media gate was open: 0 by construction.
  public var answeredWithoutMedia = 0
  /// 180s and INVITEs sent without the journal's confirmation.
  public var journalLate = 0
  /// Records written without the final statistics of the media thread.
  public var recordsWithoutMedia = 0
  /// `call.wake` to devices at other nodes: sent; the device connected; the device was pushed to instead.
  public var wakesSent = 0
  public var wakesCome = 0
  public var wakesFallenBack = 0
  public var tombstones = 0
  public init() {}
}
