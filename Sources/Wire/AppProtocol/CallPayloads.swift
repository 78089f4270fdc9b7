import TrunklineBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Actions that an app may offer its user in a call; an absent one is not available.
public struct CallCapabilities: Hashable, Sendable, Codable {
  /// The call can be put on hold.
  public var hold: Bool?
  /// The call can be in a group with others of the same device: each hears the others.
  public var group: Bool?
  /// Keys can be sent.
  public var dtmf: Bool?
  /// The call can be transferred.
  public var transfer: Bool?
  /// Capabilities of a call; nil: absent, which means no.
  public init(hold: Bool? = nil, group: Bool? = nil, dtmf: Bool? = nil, transfer: Bool? = nil) {
    (self.hold, self.group, self.dtmf, self.transfer) = (hold, group, dtmf, transfer)
  }
}

public struct CallOffer: Hashable, Sendable, Codable {
  public struct PSTN: Hashable, Sendable, Codable {
    public var trunk: String
    public var privacy: Bool
    public var attest: String?
    /// Earlier callees, before the call was diverted to this user, the latest first.
    public var diverted: [Handle]?
    /// Identity header fields (RFC 8224) as received from the trunk. The gateway has not verified them: `attest` contains a
    /// verifier's result.
    public var identity: [String]?
    public init(
      trunk: String, privacy: Bool = false, attest: String? = nil, diverted: [Handle]? = nil, identity: [String]? = nil
    ) {
      (self.trunk, self.privacy, self.attest, self.diverted, self.identity) = (trunk, privacy, attest, diverted, identity)
    }
  }
  public var from: Handle
  public var to: Handle
  public var acct: String
  public var video: Bool
  /// The gateway's offer.
  public var sdp: String
  public var gen: Int
  /// When it stops ringing, milliseconds since 1970; a hint.
  public var exp: Int64
  public var pstn: PSTN?
  public var caps: CallCapabilities?
  public var parameters: CallParameters?
  public init(
    from: Handle, to: Handle, acct: String, video: Bool = false, sdp: String, gen: Int, exp: Int64, pstn: PSTN? = nil,
    caps: CallCapabilities? = nil, parameters: CallParameters? = nil
  ) {
    (self.from, self.to, self.acct, self.video, self.sdp) = (from, to, acct, video, sdp)
    (self.gen, self.exp, self.pstn, self.caps, self.parameters) = (gen, exp, pstn, caps, parameters)
  }
}

/// `call.wake`: the payload of a push, sent through the socket of a device at another node than the call's.
public struct CallWake: Hashable, Sendable, Codable {
  /// Version of the payload: 1.
  public var v: Int
  /// `call`.
  public var t: String
  public var call: Identifier
  /// Seconds since 1970 at which the ring window ends.
  public var exp: Int64
  public var acct: String
  /// Absent: the caller withholds the number, or it did not fit.
  public var from: Handle?
  /// The called number of the user. Absent, as `parameters`: it did not fit.
  public var to: Handle?
  public var parameters: CallParameters?
  public var video: Bool
  /// The node of the call: a further socket is opened there with `hello{wake}`.
  public var gw: String
  public var wake: String
  public init(
    call: Identifier, exp: Int64, acct: String = "default", from: Handle? = nil, video: Bool = false, gw: String, wake: String
  ) {
    (v, t) = (1, "call")
    (self.call, self.exp, self.acct, self.from, self.video) = (call, exp, acct, from, video)
    (self.gw, self.wake) = (gw, wake)
  }
  public init(from decoder: any Decoder) throws {
    let box = try decoder.container(keyedBy: CodingKeys.self)
    v = try box.decode(Int.self, forKey: .v)
    t = try box.text(.t)
    guard t == "call" else { throw box.problem(.t, "call") }
    call = try box.decode(Identifier.self, forKey: .call)
    exp = try box.decode(Int64.self, forKey: .exp)
    acct = try box.text(.acct)
    from = try box.decodeIfPresent(Handle.self, forKey: .from)
    (to, parameters) = (
      try? box.decodeIfPresent(Handle.self, forKey: .to), try? box.decodeIfPresent(CallParameters.self, forKey: .parameters)
    )
    video = try box.decodeIfPresent(Bool.self, forKey: .video) ?? false
    gw = try box.text(.gw, limit: Limits.urlCharacters)
    wake = try box.text(.wake, limit: Limits.tokenCharacters)
  }
  /// Reads a push's payload; nil if it is invalid.
  public init?(json: [UInt8]) {
    guard let read = try? JSONDecoder().decode(Self.self, from: Data(json)) else { return nil }
    self = read
  }
}

/// One call of the snapshot in `welcome`: the content of `call.offer` plus the state.
public struct CallSnapshot: Hashable, Sendable, Codable {
  public enum Direction: String, Sendable, Codable {
    case incoming = "in"
    case outgoing = "out"
  }
  public enum State: String, Sendable, Codable, CaseIterable {
    case ringing, answering, starting, ready, progress, connected, held
  }
  public var call: Identifier
  public var dir: Direction
  public var state: State
  public var from: Handle
  public var to: Handle
  public var acct: String
  public var video: Bool
  /// The gateway's offer (incoming) or its answer (outgoing).
  public var sdp: String?
  public var gen: Int
  /// When the call reached this state, milliseconds since 1970.
  public var at: Int64
  public var exp: Int64?
  public var pstn: CallOffer.PSTN?
  public var caps: CallCapabilities?
  /// The other calls of its group; absent outside of groups.
  public var group: [Identifier]?
  /// The call is translated; absent: it is not.
  public var translate: CallTranslate?
  /// For the device that has the call: whether the gateway mutes it, as the app or a program requested.
  public var muted: Bool?
  public var parameters: CallParameters?
  public init(
    call: Identifier, dir: Direction, state: State, from: Handle, to: Handle, acct: String, video: Bool = false, sdp: String?,
    gen: Int,
    at: Int64, exp: Int64? = nil, pstn: CallOffer.PSTN? = nil, caps: CallCapabilities? = nil
  ) {
    (self.call, self.dir, self.state, self.from, self.to, self.acct) = (call, dir, state, from, to, acct)
    (self.video, self.sdp, self.gen, self.at, self.exp) = (video, sdp, gen, at, exp)
    (self.pstn, self.caps) = (pstn, caps)
  }
}

/// `call.ringing`: the app's time measurements from the push until now (docs/reference/protocol.md, Incoming). A field that is
/// not a whole number within `Limits.appStepMilliseconds` is read as absent: a measurement never prevents ringing.
public struct CallRinging: Hashable, Sendable, Codable {
  public var pushMs: Int?
  public var reportMs: Int?
  public var openMs: Int?
  public init(pushMs: Int? = nil, reportMs: Int? = nil, openMs: Int? = nil) {
    (self.pushMs, self.reportMs, self.openMs) = (pushMs, reportMs, openMs)
  }
  public init(from decoder: any Decoder) throws {
    self.init()
    guard let values = try? decoder.container(keyedBy: CodingKeys.self) else { return }
    func step(_ key: CodingKeys) -> Int? { try? values.optionalNumber(key, in: Limits.appStepMilliseconds) }
    (pushMs, reportMs, openMs) = (step(.pushMs), step(.reportMs), step(.openMs))
  }
}

public struct CallUnavailable: Hashable, Sendable, Codable {
  public enum Why: String, Sendable, Codable { case dnd, blocked, filtered, busyOther, noPermission }
  public var why: Why?
  public init(why: Why? = nil) { self.why = why }
}

/// `call.prepare`: the app's answer to the offer `gen`, sent while ringing.
public struct CallPrepare: Hashable, Sendable, Codable {
  public var sdp: String
  public var gen: Int
  public init(sdp: String, gen: Int = 1) { (self.sdp, self.gen) = (sdp, gen) }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    sdp = try values.decode(String.self, forKey: .sdp)
    gen = try values.generation(.gen) ?? 1
  }
}

public struct CallAnswer: Hashable, Sendable, Codable {
  /// Only if no answer was prepared.
  public var sdp: String?
  public var gen: Int?
  /// Milliseconds since the tap.
  public var ageMs: Int?
  /// Milliseconds left on the system's answer action.
  public var timeoutMs: Int?
  public init(sdp: String? = nil, gen: Int? = nil, ageMs: Int? = nil, timeoutMs: Int? = nil) {
    (self.sdp, self.gen, self.ageMs, self.timeoutMs) = (sdp, gen, ageMs, timeoutMs)
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    sdp = try values.decodeIfPresent(String.self, forKey: .sdp)
    gen = try values.generation(.gen)
    ageMs = try values.optionalNumber(.ageMs, in: 0...Limits.spanMilliseconds)
    timeoutMs = try values.optionalNumber(.timeoutMs, in: 0...Limits.spanMilliseconds)
  }
}

public struct CallReject: Hashable, Sendable, Codable {
  public enum Scope: String, Sendable, Codable { case all, device }
  /// `mediaFailed`: the user did not decline; the device cannot handle the call, for example without a microphone.
  public enum Reason: String, Sendable, Codable { case busy, declined, mediaFailed }
  public var scope: Scope
  public var reason: Reason
  public init(scope: Scope = .all, reason: Reason = .declined) { (self.scope, self.reason) = (scope, reason) }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    scope = try values.decodeIfPresent(Scope.self, forKey: .scope) ?? .all
    reason = try values.decodeIfPresent(Reason.self, forKey: .reason) ?? .declined
  }
}

/// `call.end`. A reason that this version does not know is read as `localEnd`.
public struct CallEnd: Hashable, Sendable, Codable {
  public enum Reason: String, Sendable, Codable { case localEnd, mediaFailed, appRestart }
  public var reason: Reason
  public init(reason: Reason = .localEnd) { self.reason = reason }
  public init(from decoder: any Decoder) throws {
    // a later version's reason must not keep a call alive that its user has ended
    let text = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(String.self, forKey: .reason)
    reason = text.flatMap(Reason.init) ?? .localEnd
  }
}

public struct CallStart: Hashable, Sendable, Codable {
  /// One of the user's numbers; absent = the first.
  public var from: Handle?
  public var to: Handle
  public var acct: String?
  public var video: Bool?
  /// The app's offer.
  public var sdp: String
  public var gen: Int?
  /// The number is withheld from the callee (RFC 3323); the trunk still knows it.
  public var privacy: Bool?
  /// Identity header fields (RFC 8224) for the INVITE, made by the user's own service: at most 4 of 4,096 bytes.
  public var identity: [String]?
  /// For an emergency call: the caller's location, as a PIDF-LO document (RFC 4119), at most 8,192 bytes.
  public var location: String?
  /// For the INVITE, in header fields that the trunk's `parameters` lists, or for the called user.
  public var parameters: CallParameters?
  public init(
    from: Handle? = nil, to: Handle, acct: String? = nil, video: Bool? = nil, sdp: String, gen: Int? = 1, privacy: Bool? = nil,
    identity: [String]? = nil, location: String? = nil, parameters: CallParameters? = nil
  ) {
    (self.from, self.to, self.acct, self.video, self.sdp, self.gen) = (from, to, acct, video, sdp, gen)
    (self.privacy, self.identity, self.location, self.parameters) = (privacy, identity, location, parameters)
  }
}

public struct CallConnected: Hashable, Sendable, Codable {
  public var at: Int64
  public var codec: String
  public init(at: Int64, codec: String) { (self.at, self.codec) = (at, codec) }
}

public struct CallUpdate: Hashable, Sendable, Codable {
  public var from: Handle?
  public var video: Bool?
  public var caps: CallCapabilities?
  public init(from: Handle? = nil, video: Bool? = nil, caps: CallCapabilities? = nil) {
    (self.from, self.video, self.caps) = (from, video, caps)
  }
}

/// The `d` of `call.cancel`, `call.ended` and `call.gone`.
public struct CallOver: Hashable, Sendable, Codable {
  public enum Side: String, Sendable, Codable { case trunk, app, gateway }
  public var reason: EndReason
  public var by: Side?
  /// Milliseconds since 1970.
  public var at: Int64?
  public var sip: Int?
  /// Statistics of the gateway's stream to the device.
  public var stats: StreamStats?
  /// For a test call: statistics of the device's stream to the gateway.
  public var received: StreamStats?
  public init(_ reason: EndReason, by: Side? = nil, at: Int64? = nil, sip: Int? = nil, stats: StreamStats? = nil) {
    (self.reason, self.by, self.at, self.sip, self.stats) = (reason, by, at, sip, stats)
  }
}

public struct CallProgress: Hashable, Sendable, Codable {
  public enum Stage: String, Sendable, Codable { case trying, ringing, early, queued, divertedPstn }
  public var stage: Stage
  public var at: Int64
  public init(_ stage: Stage, at: Int64) { (self.stage, self.at) = (stage, at) }
}

public struct CallHold: Hashable, Sendable, Codable {
  public var on: Bool
  public init(on: Bool) { self.on = on }
}

public struct CallHeld: Hashable, Sendable, Codable {
  /// The other party, this app, or the gateway, for an operator's program.
  public enum Side: String, Sendable, Codable { case remote, local, gateway }
  public var by: Side
  public var on: Bool
  public init(by: Side, on: Bool) { (self.by, self.on) = (by, on) }
}

public struct CallMute: Hashable, Sendable, Codable {
  public enum Mode: String, Sendable, Codable { case input, track }
  public var on: Bool
  public var mode: Mode?
  public init(on: Bool, mode: Mode? = nil) { (self.on, self.mode) = (on, mode) }
}

/// `call.muted`: the gateway has muted or unmuted the app, for an operator's program.
public struct CallMuted: Hashable, Sendable, Codable {
  public var on: Bool
  public init(on: Bool) { self.on = on }
}

/// `call.dtmf`: digits to send as telephone events (RFC 4733).
public struct CallDTMF: Hashable, Sendable, Codable {
  public enum Kind: String, Sendable, Codable { case tone, softPause, hardPause }
  public var digits: String
  public var durMs: Int
  public var gapMs: Int
  public var kind: Kind
  /// Ends a hard pause.
  public var `continue`: Bool?
  public init(digits: String, durMs: Int = 160, gapMs: Int = 80, kind: Kind = .tone) {
    (self.digits, self.durMs, self.gapMs, self.kind) = (digits, durMs, gapMs, kind)
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    `continue` = try values.decodeIfPresent(Bool.self, forKey: .continue)
    kind = try values.decodeIfPresent(Kind.self, forKey: .kind) ?? .tone
    digits = try values.decodeIfPresent(String.self, forKey: .digits) ?? ""
    let legal = digits.utf8.allSatisfy { "0123456789ABCD*#".utf8.contains($0) }
    guard legal, Limits.digits.contains(digits.utf8.count) || (digits.isEmpty && `continue` == true) else {
      throw values.problem(.digits, "1 to 64 of 0-9, A-D, * and #")
    }
    durMs = try values.optionalNumber(.durMs, in: Limits.digitMilliseconds) ?? 160
    gapMs = try values.optionalNumber(.gapMs, in: Limits.digitGapMilliseconds) ?? 80
  }
}

/// `call.digit`: one digit received from the trunk.
public struct CallDigit: Hashable, Sendable, Codable {
  public var digit: String
  public var durMs: Int
  public init(digit: String, durMs: Int) { (self.digit, self.durMs) = (digit, durMs) }
}

/// `call.transfer`: to another number, or to another call of the same user on the same trunk.
public struct CallTransfer: Hashable, Sendable, Codable {
  public enum Mode: String, Sendable, Codable { case blind, attended }
  public var target: Handle?
  public var withCall: Identifier?
  public var mode: Mode
  public init(target: Handle? = nil, withCall: Identifier? = nil, mode: Mode = .blind) {
    (self.target, self.withCall, self.mode) = (target, withCall, mode)
  }
}

/// `call.transferred`: progress of a transfer; `done` and `failed` are final.
public struct CallTransferred: Hashable, Sendable, Codable {
  /// Progress of a transfer.
  public enum Status: String, Sendable, Codable {
    /// In progress.
    case trying
    /// The new party's telephone rings.
    case ringing
    /// The other parties are connected; this call ends.
    case done
    /// The transfer failed; this call continues.
    case failed
  }
  /// Progress of the transfer.
  public var status: Status
  /// The SIP status that caused it.
  public var sip: Int?
  /// A step of a transfer.
  public init(_ status: Status, sip: Int? = nil) { (self.status, self.sip) = (status, sip) }
}
