import TrunklineAudioCodecs
import TrunklineBytes
import TrunklinePlatform
import TrunklineRTP
import TrunklineSIPDialogs

/// A carrier for developers: places calls into a gateway or answers the calls it sends, speaks, records, plays digits, on request
/// on a bad network. One event loop thread; `run` returns when its calls are over.
public final class SimulatedCarrier: Sendable {
  public struct Options: Sendable {
    public var listen = SocketAddress(.loopback, 5080)
    public var gateway = SocketAddress(.loopback, 5060)
    public var transport = TransportProtocol.udp
    /// Stateless codecs in order of preference.
    public var codecs: [AudioEncoding] = [.pcmu, .pcma]
    /// Dials this number, one call after the other, `calls` of them or one; nil waits for calls.
    public var call: String?
    /// Time from the end of a placed call to the next one.
    public var gap = Duration.zero
    public var from = "+15557770001"
    public var credentials: Credentials?
    /// SRTP with keys in the description (RFC 4568), over any transport: a simulated carrier has no secrets.
    public var srtp = SRTPRule.off
    /// How long it rings before it answers.
    public var answerAfter = Duration.zero
    /// Speaks while it rings: 183 with SDP instead of 180.
    public var isEarly = false
    /// Refuses with this code instead of answering.
    public var refuse: Int?
    /// Hangs up this long after the answer; nil waits for the peer.
    public var talk: Duration?
    public var digits = ""
    public var samples: [Int16]?
    public var repeats = false
    public var lossPercent = 0.0, jitterMilliseconds = 0.0, reorderPercent = 0.0
    /// Ends after this many calls; nil continues.
    public var calls: Int?
    public init() {}
  }

  public enum SRTPRule: String, Sendable, CaseIterable { case off, optional, required }

  /// The result of one call.
  public struct CallReport: Sendable {
    public var leg: String
    public var wasAnswered = false
    public var code: Int?
    public var spoken: [Int16] = []
    public var heard: [Int16] = []
    /// When the first sample was spoken, and when the first sample of `heard` was received, for alignment with the peer.
    public var spokenSince: Instant?
    public var heardSince: Instant?
    public var sent: UInt64 = 0, received: UInt64 = 0, lost: UInt64 = 0
    public var jitterMilliseconds = 0.0
    public var digits = ""
    /// The SRTP profile of its media; nil for plain RTP.
    public var profile: String?
    /// Packets whose tag was wrong.
    public var refused: UInt64 = 0
  }

  private let state: LoopBound<CarrierLoop>

  /// Binds its sockets; throws with the address that is in use.
  public init(_ options: Options, random: RandomSource = .system, emit: @escaping (PeerEvent) -> Void) throws {
    let carrier = try CarrierLoop(options, random: random, emit: emit)
    state = LoopBound(carrier, to: carrier.loop)
  }

  /// Any thread: hangs up, then `run` returns.
  public func stop() { state.post { $0.stop() } }

  /// Runs on the calling thread until its calls are over or `stop`.
  public func run() {
    state.post { $0.begin() }
    state.value.run()
  }

  /// The first thousand calls that are over; once `run` has returned.
  public var reports: [CallReport] { state.value.reports }
}
