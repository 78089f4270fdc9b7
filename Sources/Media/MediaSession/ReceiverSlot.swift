import AudioCodecs
import Bytes
import JitterBuffer
import RTP

/// Where a direction's `AudioReceiver` is, as long as something is to be decoded: 34 KB that a relayed call does without, and one
/// pointer where there is none, so that what a relayed packet touches lies closer together.
///
/// | event | receiver |
/// |---|---|
/// | a command after which packets are decoded (lock, connect that keeps, mute, hold, another codec, bridge) | made, by `make` |
/// | relaying begins: at a command, or at a tick in a pause | freed, its counts are kept |
/// | a packet, any other tick | as it is: nothing is allocated |
///
/// Making one allocates and clears its 34 KB.
struct ReceiverSlot: ~Copyable {
  // Owned: initialised where there is one, freed by `free` and deinit.
  private(set) var receiver: UnsafeMutablePointer<AudioReceiver>?
  /// Of the encoding before, until the next `pull`; owned in the same way.
  private var former: UnsafeMutablePointer<AudioReceiver>?
  /// After it: the first audio begins softly.
  private var fadesIn = false
  /// Of receivers that are gone.
  private var past = PlayoutStatistics()
  /// For those to come, too.
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
  /// Of the last `pull`.
  var tickPreference: TickPreference { receiver?.pointee.tickPreference ?? .none }
  /// Of all receivers there were.
  var statistics: PlayoutStatistics { receiver?.pointee.statistics ?? past }

  /// Does nothing if there is one. libopus refuses nothing but parameters, and ours are constant.
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

  /// Another encoding, of the same stream's audio: what was to be played fades out in the next frame.
  mutating func retire() {
    guard let receiver else { return }
    past = statistics
    freeFormer()
    (former, self.receiver, fadesIn) = (receiver, nil, true)
  }

  private mutating func freeFormer() {
    former?.deinitialize(count: 1)
    former?.deallocate()
    former = nil
  }

  /// Of another band from the next frame on. libopus refuses nothing but parameters, and ours are constant.
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

  /// One tick of audio into `frame`; false if there is none to be heard. HOT
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

  /// The last frame of the encoding before, going over into what is in `frame`, or into silence.
  private mutating func fadeOut(into frame: UnsafeMutablePointer<Int16>, _ band: AudioBand, over hasAudio: Bool, at now: Instant)
    -> Bool
  {
    guard let former else { return hasAudio }
    let before = former.pointee.band
    let capacity = Frame.capacity
    // Two of them: of more than 1 KB the system may make an allocation.
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

  /// Another source may take the place of the present one at once.
  func release(at now: Instant) { if let receiver { receiver.pointee.releaseSource(at: now) } }

  func comfortNoise(_ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant) {
    guard let receiver else { return }
    receiver.pointee.comfortNoise(header, payload: Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self)), at: now)
  }

  func skip(_ header: RTPHeader, at now: Instant) { if let receiver { receiver.pointee.skip(header, at: now) } }
}
