public import TrunklineBytes

/// Options of `LoadGenerator`: every client is one user with one telephone number, one WebSocket session and one call.
public struct LoadOptions: Sendable {
  public struct Client: Sendable {
    public var token: String
    public var device: String
    public var number: String
    /// The address to connect to; nil: ``LoadOptions/url``.
    public var url: String?
    public init(token: String, device: String, number: String) {
      (self.token, self.device, self.number) = (token, device, number)
    }
  }

  /// A state of the carrier's network, for packets that it sends.
  public struct Network: Sendable, Equatable {
    public var lossPercent = 0.0, jitterMilliseconds = 0.0, reorderPercent = 0.0
    public init() {}

    /// Reads `loss,jitter,reorder` in percent, milliseconds and percent; nil for other texts.
    public init?(_ text: String) {
      let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) ?? -1 }
      guard numbers.count == 3, numbers.allSatisfy({ (0...1000).contains($0) }) else { return nil }
      (lossPercent, jitterMilliseconds, reorderPercent) = (numbers[0], numbers[1], numbers[2])
    }
  }

  public var url = "ws://127.0.0.1:8080/v1/connect"
  public var gateway = SocketAddress(.loopback, 5060)
  /// Address of the carrier's SIP port: the `uri` of the gateway's trunk.
  public var listen = SocketAddress(.loopback, 5080)
  /// Address of the apps' media sockets.
  public var mediaAddress = IPAddress.loopback
  public var clients: [Client] = []
  /// How long all calls stay up together.
  public var hold = Duration.seconds(60)
  public var callsPerSecond = 10.0
  /// Share of the calls that apps place, in percent, 0…100.
  public var outgoingPercent = 50
  /// Calls whose speech is kept, decoded and scored.
  public var sampled = 4
  /// States of the carrier's network, one after the other while the calls are held; empty: a good network.
  public var networks: [Network] = []
  /// Apps speak the carrier's PCMU, which the gateway relays, instead of Opus.
  public var relays = false
  /// The carrier speaks G.722 if the gateway accepts it, and apps Opus of 16 kHz.
  public var isWide = false
  /// The gateway may refuse calls for lack of capacity: they are counted, and are not failures.
  public var mayBeRefused = false
  public init() {}
}

/// The result of a run.
public struct LoadResult: Codable, Sendable {
  /// One direction of all calls, counted at its receiver, while all calls were up.
  public struct Direction: Codable, Sendable {
    /// RTP packets that the sending peer sent, from the first to the last of every call.
    public var sent: UInt64 = 0
    /// Packets withheld by the sending peer's bad network.
    public var withheld: UInt64 = 0
    /// Packets refused by the sending peer's own kernel.
    public var unsent: UInt64 = 0
    public var received: UInt64 = 0
    /// Missing sequence numbers: sent by the gateway and not received here.
    public var lost: UInt64 = 0
    public var reordered: UInt64 = 0
    /// SRTP packets that did not verify.
    public var refused: UInt64 = 0
    /// Transit time of each packet relative to the fastest one of its call, in milliseconds, while all calls were up.
    public var latenessP50 = 0.0, latenessP99 = 0.0, latenessMax = 0.0
    public init() {}
  }

  /// One connected call: packets sent, and those missing at the receiver by sequence number.
  public struct Call: Codable, Sendable {
    public var id: String
    public var sentByTrunk: UInt64, missedByApp: UInt64
    public var sentByApp: UInt64, missedByTrunk: UInt64
  }

  /// The received audio of one sampled call.
  public struct Score: Codable, Sendable {
    public var call: String
    public var direction: String
    public var delayMilliseconds: Double
    public var levelDecibels: Double
    public var heardShare: Double
    public var similarity: Double
    /// Clipped part of the call's first word.
    public var clippedStartMilliseconds: Int
    public var heardSpeech: Bool

    public static let clippedLimitMilliseconds = 20
    /// True if the speech arrived, from its first sound on.
    public var isGood: Bool { heardSpeech && clippedStartMilliseconds <= Self.clippedLimitMilliseconds }
  }

  public var asked = 0
  public var connected = 0
  /// Calls that the gateway refused for lack of capacity, and the p99 time to its answer in milliseconds.
  public var refused = 0
  public var refusedAfterP99 = 0.0
  public var calls: [Call] = []
  public var ended = 0
  public var heldSeconds = 0.0
  /// Time from INVITE or `call.start` until both ends are connected.
  public var setUpP50 = 0.0, setUpP99 = 0.0
  public var trunkToApp = Direction()
  public var appToTrunk = Direction()
  /// Lateness of this process's own 1 ms steps while all calls were up; beyond 1 ms at p99 the figures show little about the
  /// gateway.
  public var ownLatenessP50 = 0.0, ownLatenessP99 = 0.0, ownLatenessMax = 0.0
  public var ownCPUSeconds = 0.0
  /// Scores of both directions of each sampled call that lasted 3.5 s or longer.
  public var scores: [Score] = []
  /// Call id → the end that its record should contain: reason and side.
  public var expectedEnds: [String: String] = [:]
  /// Calls that did not go as planned, in words.
  public var problems: [String] = []

  public static let ownLatenessLimitMilliseconds = 1.0
  /// The machine did not let this process keep time: measure again with less other load.
  public var isVoid: Bool { ownLatenessP99 > Self.ownLatenessLimitMilliseconds }
  public init() {}
}
