public import Foundation
public import Observation
public import TrunklineAppProtocol
import TrunklineBytes
public import TrunklineClientMachines

/// One call, as the app shows it. Nothing on it blocks: a method sends a request, and the properties change when it is done.
///
/// The object is the same from the first ring to the end, and observable: a view that reads a property is drawn again when it changes.
@MainActor @Observable
public final class Call: Identifiable {
  /// The state of a call. ``description`` is a word for a screen, in English.
  public enum State: Hashable, Sendable, CustomStringConvertible {
    /// It rings here.
    case ringing
    /// The tap, or the number, is being sent.
    case connecting
    /// The callee's telephone rings.
    case calling
    /// Seconds since this device was notified that the gateway had connected it.
    case connected(seconds: Int)
    /// On hold by this side. ``Call/isHeldByPeer`` is the peer's hold.
    case held
    /// For two and a half seconds no packet has come from the gateway, so that there is no audio: the phone searches for another
    /// path. The call continues.
    case reconnecting
    /// The call has ended, with the reason. No state follows.
    case ended(EndReason)

    /// "ringing", "connecting", "1:07", "on hold", "busy".
    public var description: String {
      switch self {
      case .ringing: "ringing"
      case .connecting: "connecting"
      case .calling: "calling"
      case .connected(let seconds): "\(seconds / 60):\(seconds % 60 < 10 ? "0" : "")\(seconds % 60)"
      case .held: "on hold"
      case .reconnecting: "reconnecting"
      case .ended(let reason): reason.text
      }
    }
  }

  /// The peer of the call.
  public struct Peer: Hashable, Sendable, CustomStringConvertible {
    /// The number or address; its `n` is the name, if the gateway sent one.
    public var handle: Handle
    /// The name, else the number.
    public var description: String { handle.n ?? handle.h }
  }

  /// Which side started the call.
  public enum Direction: Sendable {
    /// The peer started it.
    case incoming
    /// This side started it: ``Phone/call(_:from:account:location:parameters:)-(String,_,_,_,_)``.
    case outgoing
  }

  /// The UUID of this call in CallKit, in the gateway and in its record.
  public nonisolated let id: UUID
  /// Which side started the call.
  public let direction: Direction
  /// The peer. A pushed call may lack its name and number until the gateway is reached.
  public internal(set) var peer: Peer
  /// The user's account that it belongs to; nil until the gateway has named it.
  public internal(set) var account: String?
  /// The user's number that was called; its `n` is a name for it, if there is one. Nil: for an outgoing call, or not known yet.
  public internal(set) var called: Handle?
  /// Parameters of an incoming call by name: header fields that its trunk's `parameters` lists, and the routing webhook's. Those
  /// from a carrier are not trustworthy: any caller may have written them.
  public internal(set) var parameters: [String: String] = [:]
  /// The verification result for the caller's number (RFC 8588): "A", "B" or "C"; nil: it was not verified.
  public internal(set) var attestation: String?
  /// The numbers that the call was diverted from before it reached this user, the latest first.
  public internal(set) var divertedFrom: [Handle] = []
  /// The state of the call.
  public internal(set) var state: State
  /// The peer does not hear this microphone. Follows ``mute(_:)`` and the system's own button.
  public internal(set) var isMuted = false
  /// On hold by this side: neither hears the other.
  public internal(set) var isHeld = false
  /// On hold by the peer.
  public internal(set) var isHeldByPeer = false
  /// The operations that may be offered to the user; others are not available.
  public internal(set) var capabilities: CallCapabilities?
  /// Calls with the same number are mixed; nil: it is in no group.
  public internal(set) var group: Int?
  /// When this process first received it, by the device's clock.
  public let startedAt = Date()
  /// When it was connected, by the gateway's clock; nil: never, or not yet.
  public internal(set) var connectedAt: Date?
  /// When this device was notified of its end, by the device's clock.
  public internal(set) var endedAt: Date?
  /// How it ended; nil before the end.
  public internal(set) var endReason: EndReason?
  /// Why it could not be made, if the phone or the gateway gave an error.
  public internal(set) var error: PhoneError?
  /// The gateway's rating of the audio.
  public internal(set) var quality: Quality?
  /// Updated each second until the end; `microphoneLevel` and `speakerLevel` are for meters.
  public internal(set) var statistics = ClientMedia.Statistics()
  /// Faults of its audio that this device measures, each with a sentence for the user; none while the call is on hold or
  /// reconnecting.
  public internal(set) var warnings: [CallWarning] = []
  /// The audio codec by its RTP name, "opus" or "PCMU", once it is connected.
  public internal(set) var codec: String?

  @ObservationIgnored let identifier: Identifier
  @ObservationIgnored private var judge = CallWarnings()
  @ObservationIgnored private var connectedSince: ContinuousClock.Instant?
  @ObservationIgnored private weak var phone: Phone?
  @ObservationIgnored private var readers: [UUID: AsyncStream<State>.Continuation] = [:]

  init(_ identifier: Identifier, direction: Direction, peer: Handle, phone: Phone) {
    (self.identifier, self.direction, self.peer, self.phone) = (identifier, direction, Peer(handle: peer), phone)
    id = identifier.uuid
    state = direction == .incoming ? .ringing : .connecting
  }

  /// Each state from now on, the end last; a slow reader misses intermediate states, never the end.
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

  /// Answers the call. Where CallKit shows calls, the request goes through CallKit, as for the system's button.
  public func answer() { phone?.act(self, .answer) }
  /// Declines a ringing call; the user's other devices stop ringing too.
  public func decline() { phone?.act(self, .end) }
  /// Ends the call, in any state. Has no effect on an ended call.
  public func end() { phone?.act(self, .end) }
  /// Silences the microphone, or opens it. The microphone is silent here at once.
  public func mute(_ isOn: Bool) { phone?.act(self, .mute(isOn)) }
  /// Puts on hold, or resumes; before a resume the active call is held.
  public func hold(_ isOn: Bool) { phone?.act(self, .hold(isOn)) }
  /// Sends 0 to 9, A to D, * and #; other characters are left out.
  public func send(digits: String) {
    let legal = digits.uppercased().filter { "0123456789ABCD*#".contains($0) }
    if !legal.isEmpty { phone?.act(self, .digits(String(legal.prefix(64)))) }
  }
  /// Transfers the peer to this number, and ends this call.
  public func transfer(to number: String) { phone?.act(self, .transfer(to: Handle(k: .phone, h: number))) }
  /// Connects the two peers with each other, and ends both calls.
  public func transfer(with other: Call) { phone?.act(self, .join(other.identifier)) }

  /// Mixes the audio of all peers from now on: of this call, of `other`, and of all calls in a group with either, up to five.
  /// Both must be connected and allow it (``capabilities``); a held call is resumed. If the gateway refuses, nothing changes.
  public func merge(with other: Call) { phone?.act(self, .group(other.identifier)) }
  /// Takes the call out of its group: its peer hears only this side again. The latest of the merged calls stays active, with
  /// those that are still in a group with it; the others are held.
  public func leaveGroup() { phone?.act(self, .group(nil)) }
  /// Reports that this device translates speech: until it is called with nil for both, a mute silences only the microphone, so
  /// that the peer still hears the translation. Languages are tags such as `en-GB`. If CallKit translates, it reports it itself.
  public func translate(from local: String?, to remote: String?) {
    let isOn = local != nil || remote != nil
    phone?.act(self, .translate(CallTranslate(on: isOn, local: local, remote: remote, engine: isOn ? .custom : nil)))
  }

  // MARK: updates from the engine

  func update(_ info: CallInfo) {
    peer = Peer(handle: info.peer)
    account = info.account
    capabilities = info.capabilities
    quality = info.quality
    codec = info.codec
    group = info.group
    called = info.details.called
    parameters = info.details.parameters?.values ?? [:]
    attestation = info.details.pstn?.attest
    divertedFrom = info.details.pstn?.diverted ?? []
    isMuted = info.isMuted
    isHeld = info.isHeld
    isHeldByPeer = info.isHeldByPeer
    connectedAt = info.connectedAt.map { Date(timeIntervalSince1970: Double($0) / 1_000) }
    if info.refusal == .emergency { error = .emergency }
    if info.refusal == .callerNumber { error = .callerNumber }
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
    if info.state == .connected, connectedSince == nil { connectedSince = .now }
    let next: State =
      switch info.state {
      case .ringing: .ringing
      case .answering, .starting, .ready: .connecting
      case .progress: .calling
      case .connected: info.isReconnecting ? .reconnecting : info.isHeld ? .held : .connected(seconds: seconds)
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

  func update(_ statistics: ClientMedia.Statistics) {
    self.statistics = statistics
    guard case .connected = state else {
      judge = CallWarnings()
      if !warnings.isEmpty { warnings = [] }
      return
    }
    judge.judge(statistics, .init(expectsAudio: !isHeldByPeer, sendsAudio: !isMuted && !isHeldByPeer))
    if warnings != judge.current {
      warnings = judge.current
      phone?.engine?.logger.note(
        warnings.isEmpty ? .info : .warning, .callWarnings, call: identifier,
        [.init("causes", warnings.isEmpty ? "none" : warnings.map(\.cause.rawValue).joined(separator: ","))])
    }
    guard case .connected(let shown) = state, shown != seconds else { return }
    state = .connected(seconds: seconds)
    for reader in readers.values { reader.yield(state) }
  }

  /// Independent of wall clocks: the device's may differ by years from the gateway's.
  private var seconds: Int { connectedSince.map { max(0, Int((ContinuousClock.now - $0) / .seconds(1))) } ?? 0 }
}

extension Identifier {
  /// The same 128 bits as Foundation's type.
  public var uuid: UUID {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
  /// The same 128 bits of Foundation's type.
  public init(_ uuid: UUID) {
    self = withUnsafeBytes(of: uuid.uuid) { bytes in
      let (high, low) = bytes.loadUnaligned(as: (UInt64, UInt64).self)
      return Identifier(high: UInt64(bigEndian: high), low: UInt64(bigEndian: low))
    }
  }
}

extension EndReason {
  /// A few English words for the user. An app with other languages switches over the cases.
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
