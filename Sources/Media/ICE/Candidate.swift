import TrunklineBytes
import TrunklineSTUN

/// The type of a candidate (RFC 8445 §5.1.2.1), with its recommended type preference.
public enum CandidateKind: String, Sendable {
  case host
  case peerReflexive = "prflx"
  case serverReflexive = "srflx"
  case relayed = "relay"

  public var typePreference: UInt32 {
    switch self {
    case .host: 126
    case .peerReflexive: 110
    case .serverReflexive: 100
    case .relayed: 0
    }
  }
}

/// A transport address with its type and priority. UDP, component 1 (RTP with rtcp-mux).
public struct Candidate: Hashable, Sendable {
  public let address: SocketAddress
  public let kind: CandidateKind
  public let priority: UInt32

  /// A candidate from a description.
  public init(_ address: SocketAddress, _ kind: CandidateKind, priority: UInt32) {
    (self.address, self.kind, self.priority) = (address, kind, priority)
  }
  /// A candidate of our own; a higher `preference` is tried first among those of one kind.
  public init(_ address: SocketAddress, _ kind: CandidateKind = .host, preference: UInt16 = .max) {
    self.init(address, kind, priority: Self.priority(kind, preference: preference))
  }

  /// RFC 8445 §5.1.2.1 for component 1.
  public static func priority(_ kind: CandidateKind, preference: UInt16) -> UInt32 {
    kind.typePreference << 24 | UInt32(preference) << 8 | 255
  }
}

/// The addresses that we send from and to.
public struct CandidatePair: Hashable, Sendable {
  public let local: SocketAddress
  public let remote: SocketAddress
  public init(local: SocketAddress, remote: SocketAddress) { (self.local, self.remote) = (local, remote) }
}

/// One pair on the check list and the result of its checks.
struct CheckPair: Sendable {
  /// One Binding transaction: retransmissions carry the same id and the same attributes.
  struct Transaction: Sendable {
    let id: TransactionID
    let nominates: Bool
    let isControlling: Bool
    let startedAt: Instant
    var sends = 0
    var interval = Limits.firstRetransmission
    var dueAt: Instant
  }

  let pair: CandidatePair
  let remoteKind: CandidateKind
  let priority: UInt64
  /// PRIORITY of our checks: that of our candidate if the peer learned it as peer-reflexive (RFC 8445 §7.1.1).
  let reflexivePriority: UInt32
  var isWaiting = true
  /// The peer checked this pair: our check is sent before the others (RFC 8445 §7.3.1.4).
  var isTriggered = false
  var isValid = false
  var hasFailed = false
  /// While we are controlled: the peer sent USE-CANDIDATE here.
  var isNominatedByPeer = false
  var transaction: Transaction?

  init(local: Candidate, remote: Candidate, isControlling: Bool) {
    pair = CandidatePair(local: local.address, remote: remote.address)
    remoteKind = remote.kind
    let (g, d) = isControlling ? (local.priority, remote.priority) : (remote.priority, local.priority)
    priority = UInt64(min(g, d)) << 32 + 2 * UInt64(max(g, d)) + (g > d ? 1 : 0)
    reflexivePriority = CandidateKind.peerReflexive.typePreference << 24 | local.priority & 0xff_ffff
  }
}

extension IPAddress {
  /// Whether a packet from one can reach the other at all: same family, both or neither loopback, both or neither link-local.
  func canReach(_ other: IPAddress) -> Bool {
    unmapped.family == other.unmapped.family && isLoopback == other.isLoopback && isLinkLocal == other.isLinkLocal
  }
}
