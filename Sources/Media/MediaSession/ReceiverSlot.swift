import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

/// Owns a direction's `AudioReceiver` while packets are decoded: 34 KB that a relayed call does not need. Without a receiver it
/// is one pointer, so that a relayed packet accesses less memory.
///
/// | event | receiver |
/// |---|---|
/// | a command after which packets are decoded (lock, connect that keeps, mute, hold, another codec, bridge) | made, by `make` |
/// | relaying begins: at a command, or at a tick in a pause | freed, its counts are kept |
/// | a packet, any other tick | unchanged: nothing is allocated |
///
/// `make` allocates and clears the 34 KB.
struct ReceiverSlot: ~Copyable {
  // Owned: initialised while there is a receiver, freed by `free` and deinit.
  private(set) var receiver: UnsafeMutablePointer<AudioReceiver>?
  /// The receiver of the previous encoding, until the next `pull`; owned in the same way.
  private var former: UnsafeMutablePointer<AudioReceiver>?
  /// After the previous encoding: the first audio fades in.
  private var fadesIn = false
  /// The counts of freed receivers.
  private var past = PlayoutStatistics()
  /// Kept for later receivers, too.
  private var path: Double?

  init() {}
  deinit {
    receiver?.deinitialize(count: 1)
    receiver?.deallocate()
    former?.deinitialize(count: 1)
    former?.deallocate()
  }

  var isEmpty: Bool { receiver == nil }
  var encoding: AudioEncoding? { receiver?.pointee.encoding }
  /// The tick preference of the last `pull`.
  var tickPreference: TickPreference { receiver?.pointee.tickPreference ?? .none }
  /// The counts of all receivers so far.
  var statistics: PlayoutStatistics { receiver?.pointee.statistics ?? past }

  /// Does nothing if there is a receiver. libopus refuses only bad parameters, and ours are constant.
  mutating func make(_ encoding: AudioEncoding, _ band: AudioBand, policy: DelayPolicy = DelayPolicy()) {
    guard receiver == nil else { return }
    do throws(OpusError) {
      var made = try AudioReceiver(encoding: encoding, band: band, policy: policy, statistics: past)
      if let path { made.setPath(milliseconds: path) }
      let memory = UnsafeMutablePointer<AudioReceiver>.allocate(capacity: 1)
      memory.initialize(to: made)
      receiver = memory
    } catch {}
  }

  /// Mouth to ear without the jitter buffer.
  mutating func setPath(milliseconds: Double) {
    path = milliseconds
    receiver?.pointee.setPath(milliseconds: milliseconds)
  }

  /// The stream's audio has another encoding: the queued audio of the old one fades out in the next frame.
  mutating func retire() {
    guard let receiver else { return }
    past = statistics
    freeFormer()
    former = receiver
    self.receiver = nil
    fadesIn = true
  }

  private mutating func freeFormer() {
    former?.deinitialize(count: 1)
    former?.deallocate()
    former = nil
  }

  /// Changes the band from the next frame on. libopus refuses only bad parameters, and ours are constant.
  func setBand(_ band: AudioBand) {
    do throws(OpusError) { try receiver?.pointee.setBand(band) } catch {}
  }

  mutating func free() {
    freeFormer()
    fadesIn = false
    guard let receiver else { return }
    past = statistics
    receiver.deinitialize(count: 1)
    receiver.deallocate()
    self.receiver = nil
  }

  func reset() { if let receiver { receiver.pointee.reset() } }

  /// One tick of audio into `frame`; false if it is silent. HOT
  @inline(__always)
  mutating func pull(into frame: UnsafeMutablePointer<Int16>, _ band: AudioBand, at now: Instant) -> Bool {
    guard let receiver else { return former == nil ? false : fadeOut(into: frame, band, over: false, at: now) }
    var samples = MutableSpan<Int16>(_unsafeStart: frame, count: band.samplesPerTick)
    let hasAudio = receiver.pointee.pull(into: &samples, at: now) != .silent
    if former != nil { return fadeOut(into: frame, band, over: hasAudio, at: now) }
    if fadesIn, hasAudio {
      fadesIn = false
      for k in samples.indices { samples[k] = Int16(truncatingIfNeeded: Int(samples[k]) &* k / samples.count) }
    }
    return hasAudio
  }

  /// Cross-fades the last frame of the previous encoding into the audio in `frame`, or into silence.
  private mutating func fadeOut(into frame: UnsafeMutablePointer<Int16>, _ band: AudioBand, over hasAudio: Bool, at now: Instant)
    -> Bool
  {
    guard let former else { return hasAudio }
    let before = former.pointee.band
    let capacity = Frame.capacity
    // Two buffers: the system may allocate one of more than 1 KB.
    let heard = withUnsafeTemporaryAllocation(of: Int16.self, capacity: capacity) { last in
      withUnsafeTemporaryAllocation(of: Int16.self, capacity: capacity) { converted in
        guard let last = last.baseAddress, let converted = converted.baseAddress else { return false }
        last.initialize(repeating: 0, count: capacity)
        var pulled = MutableSpan<Int16>(_unsafeStart: last, count: before.samplesPerTick)
        guard former.pointee.pull(into: &pulled, at: now) != .silent else { return false }
        var interpolator = BandInterpolator()
        interpolator.convert(last, before.samplesPerTick, from: before, to: band, into: converted)
        let count = band.samplesPerTick
        for k in 0..<count {
          let mixed = Int(converted[k]) &* (count &- k) &+ (hasAudio ? Int(frame[k]) &* k : 0)
          frame[k] = Int16(truncatingIfNeeded: mixed / count)
        }
        return true
      }
    }
    freeFormer()
    if hasAudio { fadesIn = false }
    return heard || hasAudio
  }

  /// Nil without a receiver. HOT
  @inline(__always)
  func insert(_ header: RTPHeader, _ payload: UnsafeRawBufferPointer, _ encoding: AudioEncoding, at now: Instant) -> Insertion? {
    guard let receiver else { return nil }
    let octets = Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self))
    return receiver.pointee.insert(header, payload: octets, encoding: encoding, at: now)
  }

  /// Another source may replace the current one at once.
  func release(at now: Instant) { if let receiver { receiver.pointee.releaseSource(at: now) } }

  func comfortNoise(_ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant) {
    guard let receiver else { return }
    receiver.pointee.comfortNoise(header, payload: Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self)), at: now)
  }

  func skip(_ header: RTPHeader, at now: Instant) { if let receiver { receiver.pointee.skip(header, at: now) } }
}
