import TrunklineBytes
import TrunklineSRTP

/// One DTLS association: a leg gets a new one when its fingerprint or session changes.
public struct HandshakeKey: Hashable, Sendable {
  public let session: MediaSessionID
  public let leg: AppLegID
  public let association: UInt32
  public init(session: MediaSessionID, leg: AppLegID, association: UInt32) {
    (self.session, self.leg, self.association) = (session, leg, association)
  }
}

/// A session's request to the runner of its DTLS handshakes: the `dtls` thread, or a script in tests.
public enum HandshakeRequest: Sendable {
  /// The fingerprint of the certificate in the peer's description; may come before or after the handshake.
  case expect(HandshakeKey, algorithm: String, fingerprint: [UInt8])
  /// ICE validated an address of a peer that is the DTLS server: the association begins with our ClientHello, once.
  case start(HandshakeKey)
  /// One datagram from an address that ICE validated. Without `start` the first one of a key begins the association, as server.
  case datagram(HandshakeKey, [UInt8])
  /// The association is no longer needed.
  case end(HandshakeKey)

  public var key: HandshakeKey {
    switch self {
    case .expect(let key, _, _), .start(let key), .datagram(let key, _), .end(let key): key
    }
  }
}

/// The result of a handshake step.
public enum HandshakeResult: Sendable {
  /// Datagrams to send to the leg.
  case flight(HandshakeKey, [[UInt8]])
  /// The handshake is complete **and** the certificate is the expected one.
  case completed(HandshakeKey, SRTPKeyMaterial)
  case failed(HandshakeKey, AppLegFailure)

  public var key: HandshakeKey {
    switch self {
    case .flight(let key, _), .completed(let key, _), .failed(let key, _): key
    }
  }
}

/// An address of a leg that passed an authenticated check: its packets belong to this leg from now on, whichever leg had it
/// before.
public struct AppBinding: Sendable {
  public var leg: AppLegID
  public var route: PacketRoute
  public var address: SocketAddress
}

/// The SSRC of a leg's stream, after an authentic packet: packets with it from an unchecked address are tried with the leg's
/// keys.
public struct AppSource: Sendable {
  public var leg: AppLegID
  public var ssrc: UInt32
}

/// Why a session dropped a packet; the raw value is the metric's label.
public enum MediaDrop: UInt8, Sendable, CaseIterable {
  case malformed, unexpectedSource, unknownPayloadType, beforeTrunk, beforeLock, noKeys, badTag, replayed, badIntegrity,
    unvalidatedAddress
  case duplicate, tooLarge, batchFull, held
  /// More SSRCs than an SRTP receiver can protect from replays.
  case tooManySources
  /// No payload; a sequence number far off; a payload that the codec cannot decode; more packets than `PacketBudget` allows.
  case empty, outOfSequence, undecodable, overBudget
  /// Another source than the one that is played.
  case otherSource

  public var name: String {
    switch self {
    case .malformed: "malformed"
    case .unexpectedSource: "unexpected_source"
    case .unknownPayloadType: "unknown_payload_type"
    case .beforeTrunk: "before_trunk"
    case .beforeLock: "before_lock"
    case .noKeys: "no_keys"
    case .badTag: "bad_tag"
    case .replayed: "replayed"
    case .badIntegrity: "bad_integrity"
    case .unvalidatedAddress: "unvalidated_address"
    case .duplicate: "duplicate"
    case .tooLarge: "too_large"
    case .batchFull: "batch_full"
    case .held: "held"
    case .tooManySources: "too_many_sources"
    case .empty: "empty"
    case .outOfSequence: "out_of_sequence"
    case .undecodable: "undecodable"
    case .overBudget: "over_budget"
    case .otherSource: "other_source"
    }
  }
}

/// The effects of calls into a session; the caller owns it, empties it, and uses it for all sessions of a thread.
public struct MediaOutput: ~Copyable {
  public var packets: OutgoingBatch
  public var events: [MediaEvent] = []
  public var handshakes: [HandshakeRequest] = []
  public var bindings: [AppBinding] = []
  public var sources: [AppSource] = []
  /// SSRCs of which an SRTP receiver keeps the highest index only, and trunk sources replaced by a closer one, since the caller
  /// last read these counts.
  public var retiredSources: UInt64 = 0
  public var sourceTakeovers: UInt64 = 0
  // `MediaDrop.allCases.count` counts since the caller last read them; freed in deinit.
  private let drops: UnsafeMutablePointer<UInt64>

  public init(packetCapacity: Int = 256) {
    packets = OutgoingBatch(capacity: packetCapacity)
    drops = .allocate(capacity: MediaDrop.allCases.count)
    drops.initialize(repeating: 0, count: MediaDrop.allCases.count)
  }
  deinit { drops.deallocate() }

  @inline(__always) mutating func drop(_ reason: MediaDrop) {
    let drops = drops  // a local: see `MediaSession.legs`
    drops[Int(reason.rawValue)] &+= 1
  }

  /// Packets dropped for `reason` since the last call.
  public mutating func drainDrops(_ reason: MediaDrop) -> UInt64 {
    defer { drops[Int(reason.rawValue)] = 0 }
    return drops[Int(reason.rawValue)]
  }
}
