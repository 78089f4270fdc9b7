import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

/// The composition of a tick's samples.
public enum PullResult: UInt8, Sendable {
  /// Received audio only.
  case played
  /// At least partly decoded from the copy in a later packet (Opus FEC).
  case repaired
  /// At least partly made up.
  case concealed
  /// No audio was ever received, or none for so long that only silence is left.
  case silent
  /// The talker pauses: at least partly comfort noise, as the far end described it or as the codec generates it.
  case noise
}

/// The receiving half of an audio leg: packets of one codec in, exactly 20 ms of audio of one band per tick out (160 samples at 8
/// kHz, or 320 at 16), whatever the network did. Joins jitter buffer, decoder, FEC repair, concealment, and time-scale
/// modification.
///
/// A stream that arrives complete and in time is played as its decoder decodes it, sample for sample, save for stretches that
/// `statistics` count. The receiver does not judge whether audio is plausible.
///
///     var receiver = try AudioReceiver(encoding: .opus)
///     _ = receiver.insert(header, payload: payload, at: now)         // as packets come
///     let result = receiver.pull(into: &samples, at: now)            // every 20 ms
///
/// Allocates at set-up and when the band changes (50 KB, with Opus 68 KB; wideband 12 KB more). One thread at a time; no input
/// can make it trap.
public struct AudioReceiver: ~Copyable {
  public let encoding: AudioEncoding
  /// The band of the samples that `pull` returns.
  public private(set) var band: AudioBand
  /// The counts so far.
  public var statistics: PlayoutStatistics { buffer.statistics }

  /// As of the last `pull`: whether the next ticks should come later or earlier than every 20 ms, so that neither packets wait
  /// nor audio is stretched for it.
  public private(set) var tickPreference = TickPreference.none

  private var buffer: PlayoutBuffer
  private var decoder: AudioDecoder
  private var decoded: DecodedAudio
  /// Set for a while after a change of the band.
  private var former: FormerDecoder?
  /// RTP clock units in a millisecond.
  private let unitsPerMillisecond: Int
  /// Samples in 1/8 ms.
  private var scale: Int
  private var tick: Int
  private var hasAudio = false
  /// Consecutive made-up samples.
  private var madeUp = 0
  /// Made-up samples while no packet came, not yet counted: the next packet decides whether they replaced lost audio. Without one
  /// the stream had ended.
  private var unsettled = 0
  /// Samples that the last packet counted as concealed, while the next may still show that the sender's clock had stood still.
  private var unconfirmed = 0
  private var loudness: SpeechLoudness
  private var pause = Pause()
  private var stretching = Stretching()
  private var start = StreamStart()
  /// Length of the newest packet, and the greatest common divisor of packet and tick in samples: the step of the offsets between
  /// them.
  private var packetUnits = 0
  private var grain: Int
  /// From a delay error of this size on, 60 ms, a slightly audible cut is better than the delay.
  private var urgent: Int { 480 &* scale }
  /// A tick, the longest packet, and space for stretching.
  private static func capacity(_ band: AudioBand) -> Int {
    4 * band.samplesPerTick + band.sampleRateHz / 1000 * TrunklineAudioCodecs.Limits.packetMilliseconds
  }
  /// After this many made-up samples, 200 ms, the peer counts as silent, and concealment is no longer counted.
  private var silentAfter: Int { 1600 &* scale }
  private var shortestLag: Int { TimeScale.shortestLag &* scale }

  /// - Parameters:
  ///   - band: wideband only for codecs that support it; others stay narrowband.
  ///   - statistics: the counts to continue from: those of the stream's previous receiver.
  /// - Throws: only if libopus refuses its parameters.
  public init(
    encoding: AudioEncoding, band: AudioBand = .narrowband, policy: DelayPolicy = DelayPolicy(),
    statistics: PlayoutStatistics = PlayoutStatistics()
  ) throws(OpusError) {
    let row = encoding.row
    self.encoding = encoding
    self.band = min(band, encoding.band)
    (tick, scale) = (self.band.samplesPerTick, self.band.sampleRateHz / 8_000)
    grain = tick
    loudness = SpeechLoudness(self.band)
    unitsPerMillisecond = Int(row.clockRateHz) / 1000
    var policy = policy
    policy.codec = row.impairment
    buffer = PlayoutBuffer(
      clockRateHz: row.clockRateHz, carriesRepair: row.carriesRepair, bridgesLosses: row.isStateless,
      octetsPerUnit: row.octetsPerUnit, policy: policy, statistics: statistics)
    decoded = DecodedAudio(capacity: Self.capacity(self.band))
    decoder = try AudioDecoder(encoding: encoding, band: self.band)
  }

  /// Changes the band from the next tick on; without effect if the codec does not support it. Audio that is already decoded is
  /// converted. For some packets the previous band's decoder is heard, until the new one has adapted; one frame is blended.
  public mutating func setBand(_ band: AudioBand) throws(OpusError) {
    let (band, before) = (min(band, encoding.band), self.band)
    guard band != before else { return }
    var other = try AudioDecoder(continuing: decoder, band: band)
    swap(&decoder, &other)
    var former = FormerDecoder(other)
    var converted = DecodedAudio(capacity: Self.capacity(band))
    decoded.modify { samples, count in
      let even = count & ~1
      if let room = converted.free.baseAddress { converted.append(former.convert(samples, even, to: band, into: room)) }
      return 0
    }
    decoded = converted
    self.former = consume former
    self.band = band
    (tick, scale) = (band.samplesPerTick, band.sampleRateHz / 8_000)
    madeUp = BandConverter.count(madeUp, from: before, to: band)
    unsettled = BandConverter.count(unsettled, from: before, to: band)
    unconfirmed = BandConverter.count(unconfirmed, from: before, to: band)
    loudness.band = band
    measure(packetUnits)
  }

  /// RTP clock units, rounded down to whole ones.
  @inline(__always) private func units(_ samples: Int) -> Int { samples &* unitsPerMillisecond / (8 &* scale) }
  @inline(__always) private func samples(_ units: Int) -> Int { units &* 8 &* scale / unitsPerMillisecond }
  /// In samples at 8 kHz, as statistics count.
  @inline(__always) private func counts(_ samples: Int) -> UInt64 { UInt64(truncatingIfNeeded: samples / scale) }
  /// At most one packet's samples.
  private func samplesOfPacket(_ units: Int) -> Int {
    min(samples(units), 8 * scale * TrunklineAudioCodecs.Limits.packetMilliseconds)
  }

  /// Mouth to ear without the jitter buffer, in milliseconds.
  public mutating func setPath(milliseconds: Double) { buffer.setPath(milliseconds: milliseconds) }

  /// Stores one decrypted audio packet of this stream. Empty and impossible payloads are counted and refused.
  /// - Parameter format: its coding, if that is another one that shares the decoder (`AudioEncoding.sharesDecoder`); others are
  ///   refused.
  // HOT
  public mutating func insert(_ header: RTPHeader, payload: Span<UInt8>, encoding format: AudioEncoding? = nil, at now: Instant)
    -> Insertion
  {
    let format = format ?? encoding
    guard format.sharesDecoder(with: encoding), let duration = decoder.duration(payload) else {
      buffer.statistics.damaged &+= 1
      return .refused
    }
    let repairs = encoding == .opus && OpusPacket.carriesRepair(payload)
    if duration != packetUnits { measure(duration) }
    start.came(at: now)
    let insertion = buffer.insert(
      header, payload: payload, duration: duration, carriesRepair: repairs, format: format.rawValue, at: now)
    // Another source or timeline: the previous one had ended, so none of its audio was lost.
    if insertion == .resynchronised { (unsettled, unconfirmed) = (0, 0) }
    // Nothing was lost in a pause through which the sender's clock stood still, either.
    if buffer.consumeStandstill() {
      buffer.statistics.concealedSamples &-= counts(unconfirmed)
      if unconfirmed == 0 { unsettled = 0 }
      unconfirmed = 0
    }
    return insertion
  }

  /// Adapts to packets of another length.
  private mutating func measure(_ duration: Int) {
    packetUnits = duration
    var (common, other) = (max(1, samples(duration)), tick)
    while other > 0 { (common, other) = (other, common % other) }
    grain = common
  }

  /// Handles comfort noise of the same RTP stream (RFC 3389): the talker pauses, and audio missing until the next packet is not a
  /// loss.
  public mutating func comfortNoise(_ header: RTPHeader, payload: Span<UInt8>, at now: Instant) {
    skip(header, at: now)
    // Overtaken by audio that was already played.
    guard !hasAudio || buffer.nextTimestamp.distance(from: header.timestamp) <= 0 else { return }
    pause.described(payload, header.timestamp)
  }

  /// Registers a packet of the same RTP stream that is not audio (telephone-event), so that its number does not count as a loss.
  public mutating func skip(_ header: RTPHeader, at now: Instant) {
    _ = buffer.insert(header, payload: Span(), duration: 0, at: now)
  }

  /// Signalling announced that the source may change: another source is played at once.
  public mutating func releaseSource(at now: Instant) { buffer.releaseSource(at: now) }

  /// Fills `samples` (`band.samplesPerTick`) with the next 20 ms.
  // HOT
  public mutating func pull(into samples: inout MutableSpan<Int16>, at now: Instant) -> PullResult {
    var result = PullResult.played
    if !hasAudio, start.mustWait(at: now, grain: grain / scale) { conceal(tick, into: &result) }
    // Opus repairs losses from copies: the next repair needs the delay that would be given up in a pause.
    buffer.isPause = encoding != .opus && loudness.isPause
    while decoded.count < tick { fetch(into: &result, at: now) }
    adjust(at: now)
    // Delay is only measured while audio is played, not in a pause or after the stream stopped.
    if result == .played || result == .repaired, !buffer.isDelayUnconfirmed {
      buffer.statistics.ticks &+= 1
      buffer.statistics.delaySumMilliseconds += delayMilliseconds(at: now)
    }
    decoded.pop(into: &samples)
    if result == .played { buffer.statistics.playedSamples &+= counts(tick) }
    return result
  }

  /// Appends the next piece of the timeline to the decoded audio.
  private mutating func fetch(into result: inout PullResult, at now: Instant) {
    let (line, missing) = (buffer.nextTimestamp, buffer.statistics.missing)
    switch buffer.fetch(at: now) {
    case .packet(let packet):
      play(packet, into: &result)
      // The timestamps skipped audio and the numbers did not: the talker had paused, nothing was lost.
      let leftOut = buffer.nextTimestamp.distance(from: line) &- packet.duration
      if leftOut > 0, missing == buffer.statistics.missing { unsettled = max(0, unsettled &- samples(leftOut)) }
      settle()
    case .repair(let units, let packet):
      settle()
      let free = decoded.free
      var room = free.mutableSpan
      let wanted = samplesOfPacket(units) / (20 * scale) * (20 * scale)
      let payload = packet.payload
      let length = decoder.repair(wanted, from: payload.span, into: &room)
      guard length > 0 else { return conceal(wanted, into: &result) }
      if former != nil { lead(.repair, payload: payload.span, into: free, length: length) }
      advance(length)
      buffer.statistics.repairedSamples &+= counts(length)
      if result == .played { result = .repaired }
    case .lost(let units):
      settle()
      conceal(samplesOfPacket(units), behind: 0, into: &result)
    case .pause: wait(into: &result, isPause: true)
    case .empty: wait(into: &result, isPause: pause.isOn)
    }
  }

  /// Counts audio that was made up while no packet came as lost or late.
  @inline(__always) private mutating func settle() {
    buffer.statistics.concealedSamples &+= counts(unsettled)
    unconfirmed = unsettled
    unsettled = 0
  }

  private mutating func play(_ packet: FetchedPacket, into result: inout PullResult) {
    let payload = packet.payload
    if encoding == .opus, OpusPacket.isPause(payload.span) {
      pause.began()
      return makeNoise(samplesOfPacket(packet.duration), into: &result)
    }
    let free = decoded.free
    var room = free.mutableSpan
    let length = decoder.decode(payload.span, as: AudioEncoding(rawValue: packet.format), into: &room)
    guard length > 0 else {
      buffer.statistics.damaged &+= 1
      return conceal(samplesOfPacket(packet.duration), into: &result)
    }
    if former != nil { lead(.packet, payload: payload.span, into: free, length: length) }
    advance(length)
    pause.played(upTo: buffer.nextTimestamp)
    madeUp = 0
    hasAudio = true
  }

  /// Appends received audio that was written to `decoded.free`.
  private mutating func advance(_ length: Int) {
    loudness.measure(UnsafeMutableBufferPointer(rebasing: decoded.free.prefix(length)))
    decoded.append(length)
  }

  /// Appends made-up audio that was written to `decoded.free`.
  private mutating func advanceConcealed(_ length: Int) {
    loudness.pass(length)
    decoded.append(length)
  }

  /// No packet can be played: makes up the rest of the tick.
  private mutating func wait(into result: inout PullResult, isPause: Bool) {
    let before = decoded.count
    guard before < tick else { return }
    let wanted = tick &- before
    if isPause {
      makeNoise(wanted, into: &result)
    } else {
      conceal(wanted, behind: units(wanted), isWait: true, into: &result)
    }
    buffer.madeUp(units(decoded.count &- before))
  }

  /// Appends at least `wanted` samples of noise for a pause.
  private mutating func makeNoise(_ wanted: Int, into result: inout PullResult) {
    let length = roundedUp(wanted)
    guard hasAudio || pause.isDescribed else { return conceal(length, into: &result) }
    let room = UnsafeMutableBufferPointer(rebasing: decoded.free.prefix(length))
    if pause.isDescribed { pause.fill(room, band) } else { fill(room) }
    advanceConcealed(length)
    madeUp &+= length
    buffer.statistics.noiseSamples &+= counts(length)
    if result == .played || result == .silent { result = .noise }
  }

  /// Appends at least `wanted` made-up samples; silence if the stream stopped long ago or never began.
  /// - Parameters:
  ///   - behind: units between the buffer's position and the packet that the made-up audio may lead into; nil: none.
  ///   - isWait: no packet is stored; whether audio was lost is not known yet.
  private mutating func conceal(_ wanted: Int, behind units: Int? = nil, isWait: Bool = false, into result: inout PullResult) {
    let length = roundedUp(wanted)
    let room = UnsafeMutableBufferPointer(rebasing: decoded.free.prefix(length))
    if !hasAudio || madeUp >= silentAfter {
      room.update(repeating: 0)
      advanceConcealed(length)
      if result != .concealed { result = .silent }
      return
    }
    fill(room, behind: length == wanted ? units : nil)
    advanceConcealed(length)
    madeUp &+= length
    if isWait { unsettled &+= length } else { buffer.statistics.concealedSamples &+= counts(length) }
    result = .concealed
  }

  /// Rounds up to the 2.5 ms steps in which Opus makes up audio.
  private func roundedUp(_ wanted: Int) -> Int {
    let step = 20 &* scale
    return min(max(step, (wanted &+ step &- 1) / step &* step), decoded.capacity &- decoded.count)
  }

  /// Lets the decoder make up audio; fills the rest with silence.
  private mutating func fill(_ room: UnsafeMutableBufferPointer<Int16>, behind units: Int? = nil) {
    var samples = room.mutableSpan
    let made: Int
    if let units, let next = buffer.packet(behind: units) {
      let payload = next.payload
      made = decoder.conceal(room.count, before: payload.span, as: AudioEncoding(rawValue: next.format), into: &samples)
    } else {
      made = decoder.conceal(room.count, into: &samples)
    }
    for index in made..<max(made, room.count) { room[index] = 0 }
    if former != nil { lead(.conceal, payload: Span(), into: room, length: room.count) }
  }

  /// After a change of the band: replaces `length` new samples by those of the previous band's decoder.
  private mutating func lead(
    _ source: FormerDecoder.Source, payload: Span<UInt8>, into target: UnsafeMutableBufferPointer<Int16>, length: Int
  ) {
    guard let base = target.baseAddress else { return }
    former?.lead(source, payload: payload, into: base, length: length, band: band)
    if former?.isDone == true { former = nil }
  }

  /// Adjusts the buffered delay to the policy, one pitch period at a time.
  private mutating func adjust(at now: Instant) {
    tickPreference = hasAudio ? .stay : .none
    guard hasAudio, madeUp == 0 else { return }
    let pending = units(decoded.count &- tick)
    let decision = buffer.decide(at: now, pending: pending, tick: unitsPerMillisecond &* Frame.milliseconds)
    let delay = start.isFirst ? delayMilliseconds(at: now) : 0
    tickPreference = start.preference(decision.tickShift, delayMilliseconds: delay, grain: grain / scale)
    switch decision.adjustment {
    case .none: break
    case .shrink(let units):
      let surplus = cut(samples(units), of: samples(Int(0 &- decision.tickShift)))
      guard surplus >= shortestLag else { return }
      if stretching.mayShrink(surplus / scale, isPause: decoded.isQuieter(than: loudness.pauseLevel)) {
        shrink(upTo: surplus, at: now)
      }
    case .grow(let units): grow(samples(units))
    }
  }

  /// How many of `surplus` samples may be removed. `excess` is how long the tightest packet waits beyond its need. Delay is
  /// removed in steps of the common frame length, and the last step only if a margin is left: otherwise packets with varying
  /// delay would have it inserted and removed again. Ticks correct the rest.
  private func cut(_ surplus: Int, of excess: Int) -> Int {
    let isShort = surplus >= grain && excess < surplus &+ Limits.cutMarginMilliseconds &* 8 &* scale
    return isShort ? surplus &- grain : surplus
  }

  private mutating func grow(_ shortfall: Int) {
    let before = decoded.count
    let (capacity, band, isUrgent) = (decoded.capacity, band, shortfall >= urgent)
    decoded.modify { samples, count in
      count + TimeScale.grow(samples, count: count, capacity: capacity, band: band, urgent: isUrgent)
    }
    buffer.statistics.insertedSamplesForDeceleration &+= counts(decoded.count &- before)
  }

  private mutating func shrink(upTo surplus: Int, at now: Instant) {
    guard surplus >= shortestLag else { return }
    // A cut of a whole period needs two of them, and a tick must remain.
    var result = PullResult.played
    while decoded.count < tick &+ min(surplus, tick), buffer.nextIsReady {
      let had = decoded.count
      fetch(into: &result, at: now)
      // A pause of the talker is not filled ahead of time.
      guard decoded.count > had else { break }
    }
    let limit = min(surplus, decoded.count &- tick)
    let (before, band, isUrgent) = (decoded.count, band, surplus > urgent)
    decoded.modify { samples, count in
      count - TimeScale.shrink(samples, count: count, limit: limit, band: band, urgent: isUrgent)
    }
    buffer.statistics.removedSamplesForAcceleration &+= counts(before &- decoded.count)
  }

  /// The delay that the jitter buffer adds now beyond the fastest packet, in milliseconds.
  public func delayMilliseconds(at now: Instant) -> Double {
    hasAudio ? max(0, buffer.playoutDelayMilliseconds(at: now, pending: units(decoded.count))) : 0
  }
  /// The RTP timestamp of the sample that is played next.
  public var nextTimestamp: RTPTimestamp {
    RTPTimestamp(raw: buffer.nextTimestamp.raw &- UInt32(truncatingIfNeeded: units(decoded.count)))
  }
  /// Packets stored.
  public var depth: Int { buffer.depth }

  /// Drops stream and measurements and keeps the counts: for another peer, or a restart.
  public mutating func reset() {
    buffer.reset()
    decoder.reset()
    decoded.removeAll()
    madeUp = 0
    unsettled = 0
    unconfirmed = 0
    hasAudio = false
    start = StreamStart()
    tickPreference = .none
    loudness = SpeechLoudness(band)
    pause = Pause()
    former = nil
  }
}
