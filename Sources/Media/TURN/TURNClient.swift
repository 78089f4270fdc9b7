public import TrunklineBytes
import TrunklineSTUN

/// One allocation on one TURN server, client side (RFC 8656): credentials, permissions, channels, refreshes, retransmission. No
/// clock, socket or name look-up: it consumes messages and times, and produces messages and events. The owner has the connection
/// to the server.
///
/// | state | event | next |
/// |---|---|---|
/// | idle | `start` | allocating: Allocate without credentials |
/// | allocating | 401 or 438 with realm and nonce | Allocate again with credentials |
/// | allocating | success | allocated: `allocated`, permissions are requested |
/// | allocating | another error, or no answer | failed |
/// | allocated | 438 to any request | request again with the new nonce; the fourth time failed |
/// | allocated, with a channel | nothing received for 4 s | Refresh |
/// | allocated | permission refused | `refused`; failed once every peer is refused |
/// | allocated | channel refused | Send indications are still used |
/// | allocated | Refresh refused, 437 or 401 to any request, no answer | failed |
/// | any | message that answers no request, wrong integrity, data of a peer without permission, garbage | ignored |
/// | any | `close` | closed: Refresh with lifetime 0 |
///
/// Errors to requests with credentials must have our integrity, except 401 and 438, which cannot have it (RFC 8489 §9.2.5). Only
/// SHA-1 and MD5, which all servers accept without PASSWORD-ALGORITHM (§9.2.4).
public struct TURNClient: Sendable {
  public enum State: Sendable, Equatable { case idle, allocating, allocated, failed(TURNFailure), closed }
  public enum Event: Sendable, Equatable {
    /// Peers that have a permission reach us at this address of the server.
    case allocated(SocketAddress)
    /// The server does not send to this peer; its error code.
    case refused(IPAddress, UInt16)
    case failed(TURNFailure)
  }
  /// The effects of a call; the caller empties it after use. Each message is one whole message for the server.
  public struct Output: Sendable {
    public var messages: [[UInt8]] = []
    public var events: [Event] = []
    public init() {}
  }
  /// A peer's data: its octets' range in the received message.
  public struct Payload: Sendable, Equatable {
    public let peer: SocketAddress
    public let octets: Range<Int>
  }

  /// The purpose of a request; at most one of each is pending.
  enum Purpose: Hashable, Sendable { case allocate, refresh, permit(IPAddress), bind(UInt16) }
  struct Transaction: Sendable {
    let purpose: Purpose
    let id: TransactionID
    let bytes: [UInt8]
    let isAuthenticated: Bool
    /// How often this request was repeated after a challenge.
    let challenges: Int
    var sends = 1
    var interval = Limits.firstRetransmission
    var dueAt: Instant
  }
  struct Permission: Sendable {
    let ip: IPAddress
    var refusal: UInt16?
    var refreshAt: Instant?
  }
  struct Channel: Sendable {
    let number: UInt16
    let peer: SocketAddress
    var isBound = false
    var refreshAt: Instant?
  }
  struct Credentials: Sendable {
    let realm: [UInt8]
    let nonce: [UInt8]
    let key: IntegrityKey
  }

  public internal(set) var state = State.idle
  /// Our relayed address at the server.
  public internal(set) var relayed: SocketAddress?
  /// Messages that had no effect.
  public internal(set) var ignored = 0

  let username: [UInt8]
  let password: Redacted<String>
  let isStream: Bool
  let family: IPAddress.Family
  let random: RandomSource
  var credentials: Credentials?
  var transactions: [Transaction] = []
  var permissions: [Permission] = []
  var channels: [Channel] = []
  var refreshAt: Instant?
  var receivedAt = Instant.zero

  /// - Parameters:
  ///   - isStream: the connection is TCP or TLS: requests are not retransmitted, and ChannelData is padded.
  ///   - family: the address family of the peers, and so of the relayed address.
  public init(username: String, password: Redacted<String>, isStream: Bool, family: IPAddress.Family = .v4, random: RandomSource)
  {
    (self.username, self.password, self.isStream) = (Array(username.utf8), password, isStream)
    (self.family, self.random) = (family, random)
  }

  /// Requests the allocation. The connection must be open.
  public mutating func start(at now: Instant, into output: inout Output) {
    guard state == .idle else { return }
    state = .allocating
    ask(.allocate, now, &output)
  }

  /// Permits this peer to send to us, from any port; before the allocation it is queued. At most `Limits.peers`.
  public mutating func permit(_ ip: IPAddress, at now: Instant, into output: inout Output) {
    let ip = ip.unmapped
    guard permissions.count < Limits.peers, !permissions.contains(where: { $0.ip == ip }) else { return }
    permissions.append(Permission(ip: ip))
    if state == .allocated { ask(.permit(ip), now, &output) }
  }

  /// Binds a channel, which saves 32 octets per packet to this peer. Until the server has confirmed it, indications are sent.
  public mutating func bind(_ peer: SocketAddress, at now: Instant, into output: inout Output) {
    guard state == .allocated, channels.count < Limits.peers, !channels.contains(where: { $0.peer == peer }) else { return }
    let number = Limits.firstChannel + UInt16(truncatingIfNeeded: channels.count)
    channels.append(Channel(number: number, peer: peer))
    ask(.bind(number), now, &output)
  }

  /// Releases the allocation. Sent once: if the message is lost, the allocation ends with its lifetime.
  public mutating func close(at now: Instant, into output: inout Output) {
    if state == .allocated, let bytes = request(.refresh, TransactionID(random: random), isLast: true) {
      output.messages.append(bytes)
    }
    if case .failed = state { return }
    forget(.closed)
  }

  mutating func forget(_ next: State) {
    state = next
    transactions = []
    refreshAt = nil
  }

  mutating func fail(_ why: TURNFailure, _ output: inout Output) {
    forget(.failed(why))
    output.events.append(.failed(why))
  }

  // MARK: data

  /// Appends a message that carries `payload` to `peer`; false: nothing was appended, because there is no allocation, the server
  /// refuses the peer, or the payload is too long. No allocation except the target's growth.
  public func write(_ payload: UnsafeRawBufferPointer, to peer: SocketAddress, into octets: inout [UInt8]) -> Bool {
    guard state == .allocated, payload.count <= Limits.payloadBytes else { return false }
    if let channel = channels.first(where: { $0.isBound && $0.peer == peer }) {
      for word in [channel.number, UInt16(truncatingIfNeeded: payload.count)] {
        octets.append(UInt8(word >> 8))
        octets.append(UInt8(word & 255))
      }
      octets.append(contentsOf: payload)
      if isStream { octets.append(contentsOf: repeatElement(0, count: -payload.count & 3)) }
      return true
    }
    let ip = peer.ip.unmapped
    guard permissions.contains(where: { $0.ip == ip && $0.refusal == nil }) else { return false }
    let start = octets.count
    octets.append(contentsOf: repeatElement(0, count: Limits.messageBytes))
    let count = octets.withUnsafeMutableBytes { all -> Int? in
      let room = UnsafeMutableRawBufferPointer(rebasing: all[start...])
      var writer = STUNWriter(.indication, method: .send, transaction: TransactionID(random: random), into: room)
      writer.addPeer(peer)
      writer.addData(payload)
      return writer.finish()
    }
    octets.removeLast(octets.count - start - (count ?? 0))
    return count != nil
  }
}
