public import Bytes
public import RTP
import Synchronization

/// What stands before the samples of a tapped frame.
public struct TappedFrame: Sendable, Equatable {
  /// Its source: `trunkToApp` is what the trunk said, `appToTrunk` what the trunk is given to hear.
  public var direction: AudioDirection
  /// How many samples there are: 160 or 320.
  public var band: AudioBand
  /// When the tick was that made it. Frames of one direction come 20 ms apart, give or take what the tick moves; where there was
  /// nothing to be heard (a hold) there is a gap.
  public var at: Instant

  public init(_ direction: AudioDirection, _ band: AudioBand, at: Instant) {
    (self.direction, self.band, self.at) = (direction, band, at)
  }
}

/// The way of a call's audio out of its media thread, or into it: a bounded ring of 20 ms frames with one writer and one reader, who
/// may be on different threads.
///
/// The writer never waits: what finds no room is dropped and counted, and the reader sees a gap between two times. Neither side
/// locks, allocates or makes a system call, so no thread is woken: the reader polls.
///
///     let tap = AudioTap()                                   // 340 KB
///     media.send(.tap(session, tap))                         // writes from now on
///     while tap.take({ frame, samples in … }) {}             // the reader, now and then
public final class AudioTap: Sendable {
  /// Frames that fit.
  public let capacity: Int
  private let written = Atomic<Int>(0)
  private let read = Atomic<Int>(0)
  private let lost = Atomic<Int>(0)
  private let missed = Atomic<Int>(0)
  // `capacity` heads, and `capacity` frames of `Frame.capacity` samples; freed in deinit. A slot is the writer's until `written` has passed
  // it, and the reader's until `read` has.
  nonisolated(unsafe) private let heads: UnsafeMutablePointer<TappedFrame>
  nonisolated(unsafe) private let samples: UnsafeMutablePointer<Int16>

  /// `frames` is held within `Limits.tapFrames`.
  public init(frames: Int) {
    capacity = min(max(frames, Limits.tapFrames.lowerBound), Limits.tapFrames.upperBound)
    heads = .allocate(capacity: capacity)
    heads.initialize(repeating: TappedFrame(.trunkToApp, .narrowband, at: .zero), count: capacity)
    samples = .allocate(capacity: capacity * Frame.capacity)
    samples.initialize(repeating: 0, count: capacity * Frame.capacity)
  }

  /// For a recorder, whose thread a disk holds up.
  public convenience init() { self.init(frames: Limits.recorderFrames) }

  deinit {
    heads.deallocate()
    samples.deallocate()
  }

  /// Frames that found no room. Any thread.
  public var dropped: Int { lost.load(ordering: .relaxed) }
  /// How often the reader came and found none. Any thread.
  public var misses: Int { missed.load(ordering: .relaxed) }
  /// Frames that wait. Any thread.
  public var count: Int { written.load(ordering: .acquiring) &- read.load(ordering: .acquiring) }

  /// The writer: a frame of `frame.band.samplesPerTick` samples. False: there was no room. HOT
  @discardableResult
  public func put(_ frame: TappedFrame, _ source: UnsafePointer<Int16>) -> Bool {
    let position = written.load(ordering: .relaxed)
    guard position &- read.load(ordering: .acquiring) < capacity else {
      lost.wrappingAdd(1, ordering: .relaxed)
      return false
    }
    let slot = position % capacity
    heads[slot] = frame
    (samples + slot &* Frame.capacity).update(from: source, count: frame.band.samplesPerTick)
    written.store(position &+ 1, ordering: .releasing)
    return true
  }

  /// The reader: the oldest frame, which is the ring's again when `body` returns. False: there is none. HOT
  @discardableResult
  public func pop(_ body: (TappedFrame, UnsafePointer<Int16>) -> Void) -> Bool {
    let position = read.load(ordering: .relaxed)
    guard written.load(ordering: .acquiring) &- position > 0 else {
      missed.wrappingAdd(1, ordering: .relaxed)
      return false
    }
    let slot = position % capacity
    body(heads[slot], UnsafePointer(samples + slot &* Frame.capacity))
    read.store(position &+ 1, ordering: .releasing)
    return true
  }
}

/// Both directions of a call's audio for a program that replaces an app.
///
/// The media thread writes a frame into `heard` at each tick toward the peer, of silence where the trunk says nothing, and takes one out of
/// `said` at each tick toward the trunk; without one the trunk hears the noise of a pause.
public final class AudioStream: Sendable {
  public let heard: AudioTap
  public let said: AudioTap
  public init() { (heard, said) = (AudioTap(frames: Limits.streamFrames), AudioTap(frames: Limits.streamFrames)) }
}
