public import AppSessions

/// Settings of the call machine that hold for the process.
public struct CallConfiguration: Sendable {
  /// docs/reference/protocol.md names each of these.
  public struct Timers: Sendable, Equatable {
    /// How long an incoming call rings.
    public var ring: Duration = .seconds(45)
    /// How long an outgoing call may ring before it is given up (RFC 3261 §16.6 Timer C).
    public var outgoingRing: Duration = .seconds(180)
    /// 180 at the latest this long after the first accepted push; nil: only at the first `call.ringing`.
    public var early180: Duration? = .seconds(2)
    /// A connected device that has not acked its offer after this is pushed to.
    public var offerAck: Duration = .milliseconds(1_500)
    public var mediaGateWarm: Duration = .seconds(10)
    public var mediaGateCold: Duration = .seconds(20)
    /// From `call.start` to an open gate.
    public var mediaGateOutgoing: Duration = .seconds(5)
    /// The part of the device's own answer timeout that is left for its own work.
    public var answerMargin: Duration = .seconds(5)
    /// How long a webhook may take to route a call.
    public var route: Duration = .seconds(1)
    /// How long 180 or INVITE wait for the journal.
    public var journal: Duration = .milliseconds(100)
    /// `media.active` is treated as sent this long after `call.connected`.
    public var mediaActive: Duration = .seconds(10)
    /// From a silent app leg to `networkLost`.
    public var appLegGrace: Duration = .seconds(30)
    /// OPTIONS to a silent trunk: given up after this, repeated at this interval while it stays silent and answers.
    public var trunkPing: Duration = .seconds(20)
    public var longestCall: Duration = .seconds(4 * 3600)
    /// How long an ended call's reason is known.
    public var tombstone: Duration = .seconds(120)
    /// How long the record waits for the final statistics of the media thread.
    public var finalStatistics: Duration = .milliseconds(800)
    /// How long a call waits for the verifier of its Identity before the devices are offered it, unverified.
    public var verification: Duration = .seconds(1)
    /// `call.dtmf{kind: softPause}`.
    public var softPause: Duration = .seconds(2)
    public init() {}
  }
  public struct Bounds: Sendable, Equatable {
    /// Calls at a time; more are refused with 503 or `overload`.
    public var calls = 1_000
    public var callsPerUser = 8
    public init() {}
  }

  public var timers = Timers()
  public var bounds = Bounds()
  /// The final response once every device declined; a 6xx ends forking upstream.
  public var declineCode = 486
  /// Maximum average bit rate of Opus from apps, in bit/s, while the trunk is telephone band, and while it is wideband.
  public var opusBitrate = 28_000
  public var opusBitrateWide = 40_000
  /// How devices are woken; nil: they are not.
  public var push: PushSettings?
  /// Identity header fields of type `shaken` are given to a verifier.
  public var verifiesIdentity = false
  /// There are other nodes; false: this one is alone, and queries no cluster.
  public var isClustered = false
  /// Which events are published outside the gateway.
  public var events = GatewayEvent.Rules()
  /// What is recorded; nil: nothing can be.
  public var recording: RecordingRules?
  /// Seconds in Retry-After of a 503.
  public var retryAfterSeconds = 30

  public init() {}
}

/// What pushes contain beside the call itself; nil in the configuration: there are no pushes.
public struct PushSettings: Sendable {
  /// Where a woken app connects: `wss://…`.
  public var gateway: String
  /// The same as `SessionSettings.wakeTokens`, which verifies them.
  public var wakes: WakeTokens
  public init(gateway: String, wakes: WakeTokens) { (self.gateway, self.wakes) = (gateway, wakes) }
}
