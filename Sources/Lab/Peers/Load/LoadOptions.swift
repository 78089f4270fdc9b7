public import Bytes

/// What `LoadGenerator` does: every client is one user with one telephone number, one WebSocket session and one call.
public struct LoadOptions: Sendable {
  public struct Client: Sendable {
    public var token: String
    public var device: String
    public var number: String
    /// Where it connects; nil: at ``LoadOptions/url``.
    public var url: String?
    public init(token: String, device: String, number: String) {
      (self.token, self.device, self.number) = (token, device, number)
    }
  }

  /// A state of the carrier's network, for what it sends.
  public struct Network: Sendable, Equatable {
    public var lossPercent = 0.0, jitterMilliseconds = 0.0, reorderPercent = 0.0
    public init() {}

    /// From `loss,jitter,reorder` in percent, milliseconds and percent; nil for anything else.
    public init?(_ text: String) {
      let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) ?? -1 }
      guard numbers.count == 3, numbers.allSatisfy({ (0...1000).contains($0) }) else { return nil }
      (lossPercent, jitterMilliseconds, reorderPercent) = (numbers[0], numbers[1], numbers[2])
    }
  }

  public var url = "ws://127.0.0.1:8080/v1/connect"
  public var gateway = SocketAddress(.loopback, 5060)
  /// Where the carrier's SIP listens: what the gateway's trunk names as `uri`.
  public var listen = SocketAddress(.loopback, 5080)
  /// Where the apps' media sockets are.
  public var mediaAddress = IPAddress.loopback
  public var clients: [Client] = []
  /// How long all calls stay up together.
  public var hold = Duration.seconds(60)
  public var callsPerSecond = 10.0
  /// This share of the calls is made by apps, 0…100.
  public var outgoingPercent = 50
  /// Calls whose speech is kept, decoded and scored.
  public var sampled = 4
  /// The carrier's network goes through these while the calls are held; none is a good network.
  public var networks: [Network] = []
  /// Apps speak the carrier's PCMU, which the gateway relays, instead of Opus.
  public var relays = false
  /// The carrier speaks G.722 where the gateway takes it, and apps Opus of 16 kHz.
  public var isWide = false
  /// The gateway may refuse calls for want of room: they are counted, and no failure.
  public var mayBeRefused = false
  public init() {}
}

/// What a run came to.
public struct LoadResult: Codable, Sendable {
  /// One direction of all calls, counted where it is heard, while all calls were up.
  public struct Direction: Codable, Sendable {
    /// RTP packets the sending peer sent, from the first to the last of every call.
    public var sent: UInt64 = 0
    /// Of those, withheld by the sending peer's bad network.
    public var withheld: UInt64 = 0
    /// Refused by the sending peer's own kernel.
    public var unsent: UInt64 = 0
    public var received: UInt64 = 0
    /// Sequence numbers that never came: what the gateway sent and we did not get.
    public var lost: UInt64 = 0
    public var reordered: UInt64 = 0
    /// SRTP packets that did not verify.
    public var refused: UInt64 = 0
    /// Transit of each packet beyond the fastest one of its call, in milliseconds, while all calls were up.
    public var latenessP50 = 0.0, latenessP99 = 0.0, latenessMax = 0.0
    public init() {}
  }

  /// One connected call, for a look at each: sent and, by sequence number, missing where it is heard.
  public struct Call: Codable, Sendable {
    public var id: String
    public var sentByTrunk: UInt64, missedByApp: UInt64
    public var sentByApp: UInt64, missedByTrunk: UInt64
  }

  /// What one sampled call heard.
  public struct Score: Codable, Sendable {
    public var call: String
    public var direction: String
    public var delayMilliseconds: Double
    public var levelDecibels: Double
    public var heardShare: Double
    public var similarity: Double
    /// Of the call's first word.
    public var clippedStartMilliseconds: Int
    public var heardSpeech: Bool

    public static let clippedLimitMilliseconds = 20
    /// The speech arrived, from its first sound on.
    public var isGood: Bool { heardSpeech && clippedStartMilliseconds <= Self.clippedLimitMilliseconds }
  }

  public var asked = 0
  public var connected = 0
  /// Calls that the gateway had no room for, and the time to its answer at p99 in milliseconds.
  public var refused = 0
  public var refusedAfterP99 = 0.0
  public var calls: [Call] = []
  public var ended = 0
  public var heldSeconds = 0.0
  /// INVITE or `call.start` to connected, both ends.
  public var setUpP50 = 0.0, setUpP99 = 0.0
  public var trunkToApp = Direction()
  public var appToTrunk = Direction()
  /// How late this process's own 1 ms steps were while all calls were up; beyond 1 ms at p99 the figures say little about the
  /// gateway.
  public var ownLatenessP50 = 0.0, ownLatenessP99 = 0.0, ownLatenessMax = 0.0
  public var ownCPUSeconds = 0.0
  /// Of both directions of each sampled call that lasted 3.5 s or longer.
  public var scores: [Score] = []
  /// Call id → how it should have ended in its record: reason and side.
  public var expectedEnds: [String: String] = [:]
  /// Calls that did not go as planned, in words.
  public var problems: [String] = []

  public static let ownLatenessLimitMilliseconds = 1.0
  /// The machine did not let this process keep time: measure again with less beside it.
  public var isVoid: Bool { ownLatenessP99 > Self.ownLatenessLimitMilliseconds }
  public init() {}
}
