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
/// The fields that a relayed packet uses come first and together: with hundreds of calls none of them is in a near cache when the
/// next packet comes, and each further cache line costs as much as a hundred instructions.
public struct MediaSession: ~Copyable {
  public let id: MediaSessionID
  // `legSlots` slots, initialised where the bit in `legsUsed` is set; freed in deinit. They move only when a leg is added.
  private var legStorage: UnsafeMutablePointer<AppLeg>
  private(set) var legsUsed: UInt32 = 0
  /// Ticks still to be skipped.
  var skippedTicks = 0
  /// Index of the leg that has the call, or −1.
  var winner = -1
  /// The band of decoders and encoders.
  var band = AudioBand.narrowband
  // Two frames of scratch; freed in deinit.
  let frame: UnsafeMutablePointer<Int16>

  var isLocked = false
  var isEarly = false
  var connectedAt: Instant?
  /// The last check for silence, and the first one after the process was last stopped.
  var silenceCheckedAt: Instant?
  var uninterruptedSince = Instant.zero
  var isMuted = false
  var isHeld = false
  var isClosed = false
  /// The other half of a diverted call, which hears this trunk.
  var bridge: MediaSessionID?
  /// The band of the other half's trunk, if known.
  var bridgeBand: AudioBand?
  /// The call's group: its trunks hear each other.
  var group: MediaGroupID?
  /// The announcement that the trunk hears in place of an app.
  var playback: Playback?
  /// Receives a copy of both directions' audio.
  var tap: AudioTap?
  /// The program's stream in place of an app.
  var stream: AudioStream?
  /// `playoutActive` was received, maybe before the connect.
  var isPlaying = false
  var playoutAssumedAt = Instant.distantFuture
  var nextQuality = Instant.distantFuture
  /// The highest Opus complexity that the thread has time for.
  private(set) var complexityCeiling = 10
  private(set) var setup: MediaSessionSetup
  var trunk: TrunkLeg
  var downlink = Downlink()
  var uplink = Uplink()
  private var legSlots = 1
  var random: SplitMix64
  let cname: ContiguousArray<UInt8>

  public init(id: MediaSessionID, setup: MediaSessionSetup) {
    (self.id, self.setup) = (id, setup)
    random = SplitMix64(seed: setup.random.next())
    cname = ContiguousArray(setup.random.text(16, alphabet: "abcdefghijklmnopqrstuvwxyz234567").utf8)
    legStorage = .allocate(capacity: 1)
    frame = .allocate(capacity: 2 * Frame.capacity)
    frame.initialize(repeating: 0, count: 2 * Frame.capacity)
    let numbers = setup.random.next()
    trunk = TrunkLeg(
      ssrc: UInt32(truncatingIfNeeded: numbers), sequence: UInt16(truncatingIfNeeded: numbers >> 32),
      timestamp: UInt32(truncatingIfNeeded: setup.random.next()))
  }

  deinit {
    for index in 0..<legSlots where legsUsed & 1 << UInt32(index) != 0 { (legStorage + index).deinitialize(count: 1) }
    legStorage.deallocate()
    frame.deallocate()
  }

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
    downlink.encoder?.limitComplexity(to: ceiling)
    uplink.encoder?.limitComplexity(to: ceiling)
  }

  /// The app legs by slot; only those for which `hasLeg` is true may be accessed. To mutate through it, copy it into a local
  /// first: an l-value path that begins at the session aborts the compiler's thread sanitizer pass
  /// (docs/design/tests-and-benches.md, Sanitizers).
  @inline(__always) var legs: UnsafeMutablePointer<AppLeg> { legStorage }

  /// The slot of a leg, to be passed with its packets; nil for an unknown one.
  public func index(of leg: AppLegID) -> Int? {
    for index in 0..<Limits.appLegs where hasLeg(index) && legs[index].id == leg { return index }
    return nil
  }

  @inline(__always) func hasLeg(_ index: Int) -> Bool {
    index >= 0 && index < Limits.appLegs && legsUsed & 1 << UInt32(truncatingIfNeeded: index) != 0
  }

  /// Puts a leg into the first free slot; there are at most `Limits.appLegs`, in memory that doubles as needed: a leg uses 1.3 KB
  /// and most calls have one. Without effect if all are used. Slots keep their numbers; earlier pointers into `legs` become
  /// invalid.
  mutating func insert(_ leg: consuming AppLeg) {
    guard let free = (0..<Limits.appLegs).first(where: { !hasLeg($0) }) else { return }
    if free >= legSlots {
      let more = UnsafeMutablePointer<AppLeg>.allocate(capacity: 2 * legSlots)
      // All slots are used: the memory is full.
      more.moveInitialize(from: legStorage, count: legSlots)
      legStorage.deallocate()
      (legStorage, legSlots) = (more, 2 * legSlots)
    }
    (legs + free).initialize(to: leg)
    legsUsed |= 1 << UInt32(free)
  }

  /// Frees the slot of an existing leg.
  mutating func removeSlot(_ index: Int) {
    (legs + index).deinitialize(count: 1)
    legsUsed &= ~(1 << UInt32(index))
  }

  /// Whether trunk audio reaches the winner, or the other half of a diverted call.
  var isDownlinkOpen: Bool { connectedAt != nil || isEarly || bridge != nil }

  /// Moves the trunk leg to these sockets: the old ones' address was removed. Streams, keys and the agreement stay.
  public mutating func moveTrunk(to route: PacketRoute, control: PacketRoute) {
    (setup.trunkRoute, setup.trunkControlRoute) = (route, control)
  }

  /// NTP time of `now` (RFC 3550 §4).
  func wallClock(_ now: Instant) -> NTPTimestamp { NTPTimestamp(unixNanoseconds: (now + setup.wallClockOffset).nanoseconds) }

  /// Statistics as of now; also in `quality` and `closed` events.
  public mutating func statistics() -> MediaStatistics {
    let legs = legs
    var out = MediaStatistics()
    out.trunkEncoding = trunk.isSet ? trunk.encoding : nil
    out.band = isCoding ? band : nil
    trunkStatistics(&out.fromTrunk)
    out.fromApp.sentPackets = trunk.stream.packets
    out.fromApp.sentBytes = trunk.stream.bytes
    if hasLeg(winner) {
      out.appEncoding = legs[winner].payloadType == 255 ? nil : legs[winner].encoding
      out.srtpProfile = legs[winner].profileName
      appStatistics(&out.fromApp, legs[winner])
      out.fromTrunk.sentPackets = legs[winner].stream.packets
      out.fromTrunk.sentBytes = legs[winner].stream.bytes
    }
    return out
  }
}
