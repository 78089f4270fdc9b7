public import TrunklineAppProtocol

/// An event of a call, a device or a trunk, for the operator's systems. The store makes a CloudEvent of it
/// (docs/integrate/events.md).
public struct GatewayEvent: Sendable, Equatable {
  public enum Kind: String, Sendable, Codable, CaseIterable {
    case callStarted = "call.started"
    case callRinging = "call.ringing"
    /// A device has answered an incoming call; it is connected once both sides have media.
    case callAnswered = "call.answered"
    case callConnected = "call.connected"
    case callHeld = "call.held"
    case callResumed = "call.resumed"
    /// The other calls of its group changed; it is no longer in a group.
    case callGrouped = "call.grouped"
    case callUngrouped = "call.ungrouped"
    case callTransferred = "call.transferred"
    case callDiverted = "call.diverted"
    /// Off by default: digits are PINs and card numbers.
    case callDigits = "call.digits"
    /// Audio quality became poor, or good again.
    case callQuality = "call.quality"
    /// A recording is closed, which may be after the call's end.
    case callRecorded = "call.recorded"
    /// With the whole record; the store makes it from that.
    case callEnded = "call.ended"
    case deviceRegistered = "device.registered"
    /// A push service no longer accepts the device's token.
    case deviceRefused = "device.refused"
    case deviceRevoked = "device.revoked"
    case trunkUp = "trunk.up"
    case trunkDown = "trunk.down"
  }

  /// Which events the machine makes. Off: events have no reader.
  public struct Rules: Sendable, Equatable {
    public var isOn = false
    public var hasDigits = false
    public init(isOn: Bool = false, hasDigits: Bool = false) { (self.isOn, self.hasDigits) = (isOn, hasDigits) }
  }

  public enum Facts: Sendable, Equatable {
    case call(CallEventFacts)
    case device(DeviceFacts)
    case trunk(TrunkFacts)
  }

  public var kind: Kind
  /// Milliseconds since 1970.
  public var at: Int64
  public var facts: Facts

  public init(_ kind: Kind, at: Int64, _ facts: Facts) { (self.kind, self.at, self.facts) = (kind, at, facts) }

  /// Events of one subject are delivered in order: a call, a user's device, or a trunk.
  public var subject: String {
    switch facts {
    case .call(let call): call.call.description
    case .device(let device): "\(device.user)/\(device.device)"
    case .trunk(let trunk): trunk.trunk
    }
  }
}

/// A call at the time of an event: its parties, and the subject of the event.
public struct CallEventFacts: Sendable, Equatable, Encodable {
  public var call: CallID
  public var sipCallId: String?
  public var direction: CallDirection
  public var trunk: String
  public var from: String
  public var to: String
  public var user: String?
  /// The device that has the call.
  public var device: String?
  /// Of a call between users: the other user's call.
  public var peer: CallRecord.Peer?
  /// The side that holds or resumes.
  public var by: CallSide?
  public var transfer: CallRecord.Transfer?
  public var diversion: CallRecord.Diversion?
  public var digits: Digits?
  public var quality: Quality?
  public var recording: Recording?
  /// The other calls of its group.
  public var group: [CallID]?
  /// The call's named parameters.
  public var parameters: CallParameters?

  public init(
    call: CallID, sipCallId: String? = nil, direction: CallDirection, trunk: String, from: String, to: String,
    user: String? = nil,
    device: String? = nil
  ) {
    (self.call, self.sipCallId, self.direction, self.trunk) = (call, sipCallId, direction, trunk)
    (self.from, self.to, self.user, self.device) = (from, to, user, device)
  }

  public struct Digits: Sendable, Equatable, Encodable {
    public var digits: String
    public var from: CallSide

    package init(digits: String, from: CallSide) {
      (self.digits, self.from) = (digits, from)
    }
  }
  public struct Quality: Sendable, Equatable, Encodable {
    public enum Level: String, Sendable, Encodable { case good, poor }
    /// `silence`: that side sends nothing.
    public enum Cause: String, Sendable, Encodable { case loss, jitter, delay, silence }
    public var level: Level
    public var cause: Cause?
    /// The silent side; nil for a score.
    public var side: CallSide?
    /// The lower score of the two directions, ITU-T G.107, 1 to 4.5.
    public var mos: Double?

    package init(level: Level, cause: Cause? = nil, side: CallSide? = nil, mos: Double? = nil) {
      (self.level, self.cause, self.side, self.mos) = (level, cause, side, mos)
    }
  }
}

public struct DeviceFacts: Sendable, Equatable, Encodable {
  public var user: String
  public var device: String
  public var platform: String?
  public init(user: String, device: String, platform: String? = nil) {
    (self.user, self.device, self.platform) = (user, device, platform)
  }
}

public struct TrunkFacts: Sendable, Equatable, Encodable {
  public var trunk: String
  /// Why it is down.
  public var why: String?
  public init(trunk: String, why: String? = nil) { (self.trunk, self.why) = (trunk, why) }
}

extension GatewayEvent.Kind {
  /// The event of a call's stage; nil: it is not published.
  package init?(_ stage: CallStage) {
    switch stage {
    case .start: self = .callStarted
    case .ringing: self = .callRinging
    case .answered: self = .callAnswered
    case .connected: self = .callConnected
    case .heldByTrunk, .heldByApp: self = .callHeld
    case .resumedByTrunk, .resumedByApp: self = .callResumed
    case .ungrouped: self = .callUngrouped
    case .transferred: self = .callTransferred
    case .diverting: self = .callDiverted
    case .trunkSilent, .trunkBack, .appSilent, .appBack: self = .callQuality
    default: return nil
    }
  }
}
