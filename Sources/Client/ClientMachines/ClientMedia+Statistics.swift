extension ClientMedia {
  /// Counters since the call began.
  public struct Statistics: Sendable, Equatable {
    /// RTP packets that left.
    public var sentPackets: UInt64 = 0
    /// RTP packets that were received and accepted.
    public var receivedPackets: UInt64 = 0
    /// Their payload, in bytes.
    public var receivedBytes: UInt64 = 0
    /// RTP packets that were never received (RFC 3550 §6.4.1).
    public var lostPackets: UInt64 = 0
    /// Interarrival jitter (RFC 3550 §6.4.1).
    public var jitterMilliseconds = 0.0
    /// Audio that was concealed for missing packets.
    public var concealedMilliseconds: UInt64 = 0
    /// SRTP packets refused: bad tag or replay.
    public var refusedPackets: UInt64 = 0
    /// The delay that the jitter buffer adds now.
    public var bufferDelayMilliseconds = 0.0
    /// The round trip to the gateway, by RTCP; nil until a report was received.
    public var roundTripMilliseconds: Double?
    /// The loss on the way to the gateway, 0 to 1, by its last report; nil until one was received.
    public var reportedLossFraction: Double?
    /// Meter, in dBov, of the loudest 20 ms lately: the level falls by 11 dB a second. Before muting; −127: silence.
    public var microphoneLevel = -127.0
    /// As `microphoneLevel`, for the played audio.
    public var speakerLevel = -127.0
    /// Keys that the remote party pressed.
    public var digits = ""
    /// All counters are zero.
    public init() {}
  }

  // `mutating`: see `nextDeadline`.
  /// Gathered from the parts: read it at most a few times a second.
  public var statistics: Statistics {
    mutating get {
      var statistics = Statistics()
      (statistics.sentPackets, statistics.receivedPackets) = (sent.packets, received.packets)
      (statistics.receivedBytes, statistics.lostPackets) = (received.bytes, received.lost)
      (statistics.jitterMilliseconds, statistics.digits) = (received.jitterMilliseconds, received.digits)
      (statistics.concealedMilliseconds, statistics.bufferDelayMilliseconds) =
        (played.concealedMilliseconds, played.bufferDelayMilliseconds)
      statistics.refusedPackets = keys.refusedPackets
      statistics.roundTripMilliseconds = reports.roundTripMilliseconds
      statistics.reportedLossFraction = reports.reportedLossFraction
      (statistics.microphoneLevel, statistics.speakerLevel) = (captured.level, played.level)
      return statistics
    }
  }
}
