import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineICE
import TrunklineRTP
import TrunklineSRTP

/// The runtime's parameters for a new session.
public struct MediaSessionSetup: Sendable {
  /// The sockets of this call's trunk ports.
  public var trunkRoute: PacketRoute
  public var trunkControlRoute: PacketRoute
  /// The source of SSRCs, first sequence numbers and timestamps.
  public var random: RandomSource
  /// Wall clock minus the clock of `Instant`, for the NTP times of sender reports.
  public var wallClockOffset: Duration
  /// Opus complexity 0…10; capacity is calculated with 5.
  public var opusComplexity: Int

  public init(
    trunkRoute: PacketRoute, trunkControlRoute: PacketRoute, random: RandomSource, wallClockOffset: Duration = .zero,
    opusComplexity: Int = 5
  ) {
    (self.trunkRoute, self.trunkControlRoute, self.random) = (trunkRoute, trunkControlRoute, random)
    (self.wallClockOffset, self.opusComplexity) = (wallClockOffset, opusComplexity)
  }
}

/// The two legs of one bridged call, joined: sans I/O, without clock, threads or allocation per packet.
///
/// The owner calls `handle…` for every packet and command, `tick` every 20 ms, and sends the packets in `output.packets`.
///
/// | state | trunk → app | app → trunk |
/// |---|---|---|
/// | before `lockWinner` / `openEarly` | dropped | dropped, for privacy (docs/reference/protocol.md, During the call) |
/// | `openEarly` | played | dropped |
/// | `lockWinner` | dropped | kept |
/// | `connect` | kept until `playoutActive`, or played | kept audio first, at most 1.25 × as fast, then live |
/// | `hold` | dropped | silence |
/// | `bridge` | to the other session's trunk | the audio of the other session's trunk |
/// | `group` | as before, and to the group's other trunks | the app, and the group's other trunks |
/// | `stream` | to the stream | the audio of the stream |
///
/// Audio is decoded and encoded in wideband if both ends support it (`updateBand`).
///
/// Equal encodings are relayed packet by packet. With different encodings, and while audio is kept, muted or replaced by digits,
/// it goes through an `AudioReceiver` and an encoder on the tick. A call with a tap or a stream does so in both directions.
///
/// The session joins parts with private state (docs/design/media-plane.md, The session's parts) and decides only what no part can
/// decide alone.
///
/// The fields that a relayed packet uses come first and together: with hundreds of calls none of them is in a near cache when the
/// next packet comes, and each further cache line costs as much as a hundred instructions.
public struct MediaSession: ~Copyable {
  public let id: MediaSessionID
  var apps = AppLegs()
  var skipped = SkippedTicks()
  /// The band of decoders and encoders.
  private(set) var band = AudioBand.narrowband
  // Two frames of scratch; freed in deinit.
  let frame: UnsafeMutablePointer<Int16>

  var state = SessionState()
  var partners = Partners()
  var taps = AudioTaps()
  var announcer = AnnouncementPlayer()
  var silence = SilenceWatch()
  var reporting: ReportSchedule
  /// The highest Opus complexity that the thread has time for.
  private(set) var complexityCeiling = 10
  private(set) var setup: MediaSessionSetup
  var trunk: TrunkLeg
  var downlink = Downlink()
  var uplink = Uplink()

  public init(id: MediaSessionID, setup: MediaSessionSetup) {
    (self.id, self.setup) = (id, setup)
    let seed = setup.random.next()
    reporting = ReportSchedule(seed: seed, cname: setup.random.text(16, alphabet: "abcdefghijklmnopqrstuvwxyz234567"))
    frame = .allocate(capacity: 2 * Frame.capacity)
    frame.initialize(repeating: 0, count: 2 * Frame.capacity)
    let numbers = setup.random.next()
    trunk = TrunkLeg(
      ssrc: UInt32(truncatingIfNeeded: numbers), sequence: UInt16(truncatingIfNeeded: numbers >> 32),
      timestamp: UInt32(truncatingIfNeeded: setup.random.next()))
  }

  deinit { frame.deallocate() }

  /// The better phase of a direction's tick within the 20 ms period of the caller's clock, if it differs from `current` (0…19
  /// ms): to be called once after each of its ticks.
  public mutating func preferredPhase(_ direction: AudioDirection, current: Int) -> Int? {
    let step =
      switch direction {
      case .trunkToApp: downlink.phase.step(downlink.receiver.tickPreference)
      case .appToTrunk: uplink.phase.step(uplink.receiver.tickPreference)
      }
    return step == 0 ? nil : (current &+ step &+ 20) % 20
  }

  /// Sets the highest Opus complexity that this session's thread has time for, 0…10; it applies from the next frame on, also to
  /// encoders made later, until the next call. Costs nothing when it has not changed; the configured complexity is never
  /// exceeded.
  public mutating func limitComplexity(to ceiling: Int) {
    guard ceiling != complexityCeiling else { return }
    complexityCeiling = ceiling
    downlink.encoder.limitComplexity(to: ceiling)
    uplink.encoder.limitComplexity(to: ceiling)
  }

  /// Switches receivers, encoders and kept audio to another band.
  mutating func setBand(_ next: AudioBand) {
    band = next
    downlink.receiver.setBand(next)
    uplink.receiver.setBand(next)
    downlink.firstWords.setBand(next)
    uplink.firstWords.setBand(next)
    downlink.encoder.setBand(next)
    uplink.encoder.setBand(next)
    downlink.dropSilence()
  }

  /// The slot of a leg, to be passed with its packets; nil for an unknown one.
  public func index(of leg: AppLegID) -> Int? { apps.index(of: leg) }

  /// Whether trunk audio reaches the winner, or the other half of a diverted call.
  var isDownlinkOpen: Bool { state.reachesApp || partners.bridge != nil }

  /// Moves the trunk leg to these sockets: the old ones' address was removed. Streams, keys and the agreement stay.
  public mutating func moveTrunk(to route: PacketRoute, control: PacketRoute) {
    setup.trunkRoute = route
    setup.trunkControlRoute = control
  }

  /// NTP time of `now` (RFC 3550 §4).
  func wallClock(_ now: Instant) -> NTPTimestamp { NTPTimestamp(unixNanoseconds: (now + setup.wallClockOffset).nanoseconds) }

  /// Statistics as of now; also in `quality` and `closed` events.
  public mutating func statistics() -> MediaStatistics {
    let legs = apps.slots
    var out = MediaStatistics()
    out.trunkEncoding = trunk.isSet ? trunk.encoding : nil
    out.band = isCoding ? band : nil
    trunkStatistics(&out.fromTrunk)
    out.fromApp.sentPackets = trunk.stream.packets
    out.fromApp.sentBytes = trunk.stream.bytes
    if apps.hasWinner {
      out.appEncoding = legs[apps.winner].payloadType == 255 ? nil : legs[apps.winner].encoding
      out.srtpProfile = legs[apps.winner].keys.profileName
      appStatistics(&out.fromApp, legs[apps.winner])
      out.fromTrunk.sentPackets = legs[apps.winner].stream.packets
      out.fromTrunk.sentBytes = legs[apps.winner].stream.bytes
    }
    return out
  }
}
