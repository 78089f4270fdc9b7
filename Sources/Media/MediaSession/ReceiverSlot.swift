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
  /// Of receivers that are gone.
  private var past = PlayoutStatistics()

  init() {}
  deinit {
    receiver?.deinitialize(count: 1)
    receiver?.deallocate()
  }

  var isEmpty: Bool { receiver == nil }
  var encoding: AudioEncoding? { receiver?.pointee.encoding }
  /// Of the last `pull`.
  var tickPreference: TickPreference { receiver?.pointee.tickPreference ?? .none }
  /// Of all receivers there were.
  var statistics: PlayoutStatistics { receiver?.pointee.statistics ?? past }

  /// Does nothing if there is one. libopus refuses nothing but parameters, and ours are constant.
  mutating func make(_ encoding: AudioEncoding, policy: DelayPolicy = DelayPolicy()) {
    guard receiver == nil else { return }
    do throws(OpusError) {
      let made = try AudioReceiver(encoding: encoding, policy: policy, statistics: past)
      let memory = UnsafeMutablePointer<AudioReceiver>.allocate(capacity: 1)
      memory.initialize(to: made)
      receiver = memory
    } catch {}
  }

  mutating func free() {
    guard let receiver else { return }
    past = statistics
    receiver.deinitialize(count: 1)
    receiver.deallocate()
    self.receiver = nil
  }

  func reset() { if let receiver { receiver.pointee.reset() } }

  /// One tick of audio into `frame`; false if there is none to be heard. HOT
  @inline(__always)
  func pull(into frame: UnsafeMutablePointer<Int16>, at now: Instant) -> Bool {
    guard let receiver else { return false }
    var samples = MutableSpan<Int16>(_unsafeStart: frame, count: Frame.samples)
    return receiver.pointee.pull(into: &samples, at: now) != .silent
  }

  /// Nil without a receiver. HOT
  @inline(__always)
  func insert(_ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant) -> Insertion? {
    guard let receiver else { return nil }
    return receiver.pointee.insert(header, payload: Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self)), at: now)
  }

  func comfortNoise(_ header: RTPHeader, _ payload: UnsafeRawBufferPointer, at now: Instant) {
    guard let receiver else { return }
    receiver.pointee.comfortNoise(header, payload: Span<UInt8>(_unsafeElements: payload.bindMemory(to: UInt8.self)), at: now)
  }

  func skip(_ header: RTPHeader, at now: Instant) { if let receiver { receiver.pointee.skip(header, at: now) } }
}
