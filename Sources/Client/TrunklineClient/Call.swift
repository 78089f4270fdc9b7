public import AppProtocol
import Bytes
public import ClientMachines
public import Foundation
public import Observation

/// One call, as the app shows it. Nothing on it blocks: a method asks, and the properties follow when it is done.
@MainActor @Observable
public final class Call: Identifiable {
  public enum State: Hashable, Sendable, CustomStringConvertible {
    case ringing
    /// The tap, or the number, is on its way.
    case connecting
    /// The other side's telephone rings.
    case calling
    /// Seconds since the gateway connected it.
    case connected(seconds: Int)
    case held
    case ended(EndReason)

    public var description: String {
      switch self {
      case .ringing: "ringing"
      case .connecting: "connecting"
      case .calling: "calling"
      case .connected(let seconds): "\(seconds / 60):\(seconds % 60 < 10 ? "0" : "")\(seconds % 60)"
      case .held: "on hold"
      case .ended(let reason): reason.text
      }
    }
  }

  /// Whom the call is with.
  public struct Peer: Hashable, Sendable, CustomStringConvertible {
    public var handle: Handle
    /// The name, else the number.
    public var description: String { handle.n ?? handle.h }
  }

  public enum Direction: Sendable { case incoming, outgoing }

  public nonisolated let id: UUID
  public let direction: Direction
  public internal(set) var peer: Peer
  public internal(set) var account: String?
  public internal(set) var state: State
  public internal(set) var isMuted = false
  public internal(set) var isHeld = false
  public internal(set) var isHeldByPeer = false
  /// What may be offered to the user; what is not there is not to be had.
  public internal(set) var capabilities: CallCapabilities?
  public let startedAt = Date()
  /// By the gateway's clock.
  public internal(set) var connectedAt: Date?
  public internal(set) var endedAt: Date?
  public internal(set) var endReason: EndReason?
  /// Why it could not be made, where the phone or the gateway said so.
  public internal(set) var error: PhoneError?
  /// The gateway's word on how it sounds.
  public internal(set) var quality: Quality?
  /// Each second while it lives.
  public internal(set) var statistics = ClientMedia.Statistics()
  public internal(set) var codec: String?

  @ObservationIgnored let identifier: Identifier
  @ObservationIgnored private weak var phone: Phone?
  @ObservationIgnored private var readers: [UUID: AsyncStream<State>.Continuation] = [:]

  init(_ identifier: Identifier, _ direction: Direction, _ peer: Handle, _ phone: Phone) {
    (self.identifier, self.direction, self.peer, self.phone) = (identifier, direction, Peer(handle: peer), phone)
    id = identifier.uuid
    state = direction == .incoming ? .ringing : .connecting
  }

  /// Each state from now on, the end last; a slow reader misses steps, never the end.
  public var states: AsyncStream<State> {
    let (stream, continuation) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
    continuation.yield(state)
    guard endReason == nil else {
      continuation.finish()
      return stream
    }
    let reader = UUID()
    readers[reader] = continuation
    continuation.onTermination = { [weak self] _ in Task { @MainActor in self?.readers[reader] = nil } }
    return stream
  }

  public func answer() { phone?.wish(self, .answer) }
  public func decline() { phone?.wish(self, .end) }
  public func end() { phone?.wish(self, .end) }
  public func mute(_ isOn: Bool) { phone?.wish(self, .mute(isOn)) }
  public func hold(_ isOn: Bool) { phone?.wish(self, .hold(isOn)) }
  /// 0 to 9, A to D, * and #; others are left out.
  public func send(digits: String) {
    let legal = digits.uppercased().filter { "0123456789ABCD*#".contains($0) }
    if !legal.isEmpty { phone?.wish(self, .digits(String(legal.prefix(64)))) }
  }
  /// The other side is sent to this number, and this call ends.
  public func transfer(to number: String) { phone?.wish(self, .transfer(to: Handle(k: .phone, h: number))) }
  /// Both other sides talk with each other, and these calls end.
  public func transfer(with other: Call) { phone?.wish(self, .join(other.identifier)) }

  // MARK: what the engine tells

  func take(_ info: CallInfo) {
    peer = Peer(handle: info.peer)
    (account, capabilities, quality, codec) = (info.account, info.capabilities, info.quality, info.codec)
    (isMuted, isHeld, isHeldByPeer) = (info.isMuted, info.isHeld, info.isHeldByPeer)
    connectedAt = info.connectedAt.map { Date(timeIntervalSince1970: Double($0) / 1_000) }
    if info.refusal == .emergency { error = .emergency }
    if info.refusal == .auth { error = .loggedOut }
    if info.refusal == .tooMany { error = .tooManyCalls }
    if info.lacksMicrophone { error = .noMicrophone }
    if info.state == .ended {
      endReason = info.reason ?? .localEnd
      endedAt = Date()
    }
    move(info)
  }

  private func move(_ info: CallInfo) {
    let next: State =
      switch info.state {
      case .ringing: .ringing
      case .answering, .starting, .ready: .connecting
      case .progress: .calling
      case .connected: info.isHeld ? .held : .connected(seconds: seconds)
      case .ended: .ended(endReason ?? .localEnd)
      }
    guard next != state else { return }
    state = next
    for reader in readers.values {
      reader.yield(next)
      if endReason != nil { reader.finish() }
    }
    if endReason != nil { readers = [:] }
  }

  func take(_ statistics: ClientMedia.Statistics) {
    self.statistics = statistics
    guard case .connected(let shown) = state, shown != seconds else { return }
    state = .connected(seconds: seconds)
    for reader in readers.values { reader.yield(state) }
  }

  private var seconds: Int { connectedAt.map { max(0, Int(Date().timeIntervalSince($0))) } ?? 0 }
}

extension Identifier {
  public var uuid: UUID {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
  public init(_ uuid: UUID) {
    self = withUnsafeBytes(of: uuid.uuid) { bytes in
      let (high, low) = bytes.loadUnaligned(as: (UInt64, UInt64).self)
      return Identifier(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
    }
  }
}

extension EndReason {
  /// For the user.
  public var text: String {
    switch self {
    case .remoteHangup, .localEnd: "ended"
    case .callerCancelled: "missed"
    case .answeredElsewhere: "answered on another device"
    case .declinedElsewhere: "declined on another device"
    case .busyElsewhere: "busy on another device"
    case .unanswered: "no answer"
    case .busy: "busy"
    case .declined: "declined"
    case .mediaTimeout, .mediaFailed: "no audio could be set up"
    case .networkLost: "connection lost"
    case .trunkLost, .trunkFailed: "the telephone network failed"
    case .notFound: "number not in service"
    case .forbidden: "not allowed"
    case .codec: "no common codec"
    case .auth: "not logged in"
    case .overload: "the service is busy, try again"
    case .server, .unknown: "call failed"
    case .gatewayRestart: "the service was restarted"
    case .appRestart: "the app was restarted"
    case .diverted: "forwarded"
    case .dnd: "do not disturb"
    case .blocked: "blocked"
    }
  }
}
