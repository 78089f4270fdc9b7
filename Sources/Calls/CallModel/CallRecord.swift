public import TrunklineAppProtocol
public import TrunklineBytes
public import TrunklineSIPDialogs

extension Handle {
  /// The caller that withholds its number.
  package static let anonymous = Handle(k: .generic, h: "anonymous")
}

/// A call's UUID: the same value in `call.offer`, CallKit, journal and record.
public typealias CallID = Identifier

public enum CallDirection: String, Sendable, Codable, CaseIterable {
  case incoming = "in"
  case outgoing = "out"
}

/// The side whose act or fault ended a call.
public typealias CallSide = CallOver.Side

/// What the store keeps of a call from before its first 180 or INVITE until its record; written again with each change of the
/// data that closes its legs. A killed process leaves these behind: the next start closes the legs and turns each line into a
/// record `gatewayRestart`.
public struct JournalEntry: Sendable, Codable, Equatable {
  public var call: CallID
  public var sipCallId: String?
  public var direction: CallDirection
  public var trunk: String
  public var from: String
  public var to: String
  public var user: String?
  /// Milliseconds since 1970.
  public var start: Int64
  /// When it was connected; nil before.
  public var connect: Int64?
  /// The trunk legs; nil in a journal of an earlier version.
  public var legs: [OrphanedLeg]?

  /// The caller's number must not be written anywhere.
  public var withholdsCaller: Bool { direction == .incoming && from == Handle.anonymous.h }

  public init(
    call: CallID, sipCallId: String?, direction: CallDirection, trunk: String, from: String, to: String, user: String?,
    start: Int64, connect: Int64? = nil
  ) {
    (self.call, self.sipCallId, self.direction, self.trunk) = (call, sipCallId, direction, trunk)
    (self.from, self.to, self.user, self.start, self.connect) = (from, to, user, start, connect)
  }
}

/// The one line that states how a call went. Times are milliseconds since 1970.
public struct CallRecord: Sendable, Codable, Equatable {
  public struct End: Sendable, Codable, Equatable {
    public var reason: EndReason
    public var by: CallSide
    /// The final SIP status that was sent or received for the INVITE; 200 for a call that was connected; nil if no INVITE was
    /// sent.
    public var sip: Int?
    /// A short text for people: what exactly failed.
    public var detail: String?
    public init(_ reason: EndReason, by: CallSide, sip: Int? = nil, detail: String? = nil) {
      (self.reason, self.by, self.sip, self.detail) = (reason, by, sip, detail)
    }
  }
  /// The stream received from one side.
  public struct Stream: Sendable, Codable, Equatable {
    public var packets: UInt64
    public var sent: UInt64
    public var lost: UInt64
    /// 0 to 1.
    public var loss: Double
    public var late: UInt64
    public var dropped: UInt64
    public var jitterMs: Double
    public var bufferMs: Double
    public var concealedMs: UInt64
    public var repairedMs: UInt64
    public var rttMs: Double?
    /// ITU-T G.107 estimate, 1 to 4.5.
    public var mos: Double?
    /// RFC 3611 §4.7.2: density of lost and late packets inside bursts and between them (0 to 1), and their mean lengths; nil if
    /// there were none.
    public var bursts: Bursts?
    /// Levels of speech and of the noise between the words, in dBov.
    public var levelDb: Double?
    public var noiseDb: Double?
    /// Received packets that were not played; nil if there were none.
    public var unheard: Unheard?
  }
  /// Received packets of streams that were not played.
  public struct Unheard: Sendable, Codable, Equatable {
    /// Packets of payload types that were not negotiated, and the last of these types.
    public var packets: UInt64
    public var payloadType: UInt8?
    /// Packets of further sources beside the one that was played.
    public var otherSources: UInt64
  }
  public struct Bursts: Sendable, Codable, Equatable {
    public var density: Double
    public var ms: Double
    public var gapDensity: Double
    public var gapMs: Double
    /// G.107's burst ratio; 1 is random loss.
    public var ratio: Double
  }
  public struct Codecs: Sendable, Codable, Equatable {
    public var trunk: String?
    public var app: String?

    package init(trunk: String? = nil, app: String? = nil) {
      (self.trunk, self.app) = (trunk, app)
    }
  }

  public var call: CallID
  /// Call-ID of the trunk leg.
  public var sipCallId: String?
  public var direction: CallDirection
  public var trunk: String
  public var from: String
  public var to: String
  public var user: String?
  /// Other users whose devices rang: beside the user's, or before the call was diverted.
  public var otherUsers: [String]?
  /// The user's account to which the call belongs.
  public var account: String?
  /// The device that answered, or that started the call.
  public var device: String?
  /// How many devices were offered the call.
  public var devices: Int
  /// When the call reached each stage for the first time.
  public var times: [String: Int64]
  public var end: End
  /// Milliseconds from 200 to the end; 0 if never connected.
  public var connectedMs: Int64
  public var codecs: Codecs
  /// Audio band between decoder and encoder; nil if all of it was relayed.
  public var band: Band?
  public enum Band: String, Sendable, Codable { case narrow, wide }
  /// DTLS-SRTP profile of the app leg.
  public var srtp: String?
  /// SRTP profile of the trunk leg; nil for plain RTP.
  public var trunkSrtp: String?
  public var fromTrunk: Stream?
  /// For a call that was diverted to a number: the stream from there.
  public var fromApp: Stream?
  /// What the app measured from the push to `call.ringing`: on the device that answered; if none did, on the first that reported
  /// any.
  public var ring: Ring?
  public struct Ring: Sendable, Codable, Equatable {
    public var device: String
    public var pushMs: Int?
    public var reportMs: Int?
    public var openMs: Int?

    package init(device: String, pushMs: Int? = nil, reportMs: Int? = nil, openMs: Int? = nil) {
      (self.device, self.pushMs, self.reportMs, self.openMs) = (device, pushMs, reportMs, openMs)
    }
  }
  /// Statistics from the device that had the call.
  public var appStats: AppStats?
  /// Diversions of the call because no device answered, in order.
  public var diversions: [Diversion]?
  public struct Diversion: Sendable, Codable, Equatable {
    public var why: DiversionTrigger
    public var user: String?
    public var number: String?
    public var recording: String?
    public var code: Int?
    /// The trunk and the Call-ID of the leg to `number`.
    public var trunk: String?
    public var sipCallId: String?
    public init(_ why: DiversionTrigger) { self.why = why }
  }

  /// For a call between users: the other user's call, which has its own record.
  public var peer: Peer?
  public struct Peer: Sendable, Codable, Equatable {
    public var call: CallID
    /// The caller, or the first callee.
    public var user: String
    public init(call: CallID, user: String) { (self.call, self.user) = (call, user) }
  }

  /// Transfers that were requested, in order; at most the last eight.
  public var transfers: [Transfer]?
  public struct Transfer: Sendable, Codable, Equatable {
    /// `trunk`: a REFER, or an INVITE with Replaces. `app`: `call.transfer`.
    public var by: CallSide
    /// The target number; nil for an INVITE with Replaces, and for another call of the user's.
    public var number: String?
    /// Referred-By of a REFER, as written.
    public var referredBy: String?
    /// The trunk and the Call-ID of the new leg; nil if the peer makes it.
    public var trunk: String?
    public var sipCallId: String?
    /// The final status; nil if the call ended before.
    public var sip: Int?

    package init(
      by: CallSide, number: String? = nil, referredBy: String? = nil, trunk: String? = nil, sipCallId: String? = nil,
      sip: Int? = nil
    ) {
      (self.by, self.number, self.referredBy, self.trunk, self.sipCallId, self.sip) = (
        by, number, referredBy, trunk, sipCallId, sip
      )
    }
  }

  /// The call's named parameters (docs/reference/protocol.md, Parameters).
  public var parameters: CallParameters?

  /// The URL of the stream that had the call, without its query.
  public var stream: String?
  /// Files of the call's recordings, in order.
  public var recordings: [String]?

  /// The record of a call whose process died, from its journal entry. The time of the end is not known: the record uses `now`, the
  /// next start, and `connectedMs` is the most that it can have been.
  public init(orphan line: JournalEntry, at now: Int64) {
    var times = [CallStage.start.rawValue: line.start, CallStage.ended.rawValue: now]
    times[CallStage.connected.rawValue] = line.connect
    self.init(
      call: line.call, sipCallId: line.sipCallId, direction: line.direction, trunk: line.trunk, from: line.from, to: line.to,
      user: line.user, device: nil, devices: 0, times: times,
      end: End(
        .gatewayRestart, by: .gateway,
        sip: line.connect != nil ? 200 : line.legs?.first?.phase == .ringing && line.direction == .incoming ? 503 : nil),
      connectedMs: line.connect.map { max(0, now - $0) } ?? 0, codecs: Codecs())
  }

  package init(
    call: CallID, sipCallId: String?, direction: CallDirection, trunk: String, from: String, to: String, user: String?,
    device: String?,
    devices: Int, times: [String: Int64], end: End, connectedMs: Int64, codecs: Codecs, srtp: String? = nil,
    fromTrunk: Stream? = nil,
    fromApp: Stream? = nil
  ) {
    (self.call, self.sipCallId, self.direction, self.trunk) = (call, sipCallId, direction, trunk)
    (self.from, self.to, self.user, self.device, self.devices) = (from, to, user, device, devices)
    (self.times, self.end, self.connectedMs, self.codecs) = (times, end, connectedMs, codecs)
    (self.srtp, self.fromTrunk, self.fromApp) = (srtp, fromTrunk, fromApp)
  }
}
