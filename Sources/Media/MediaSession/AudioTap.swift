import Synchronization
public import TrunklineBytes
public import TrunklineRTP

/// The header of a tapped frame.
public struct TappedFrame: Sendable, Equatable {
  /// The direction: `trunkToApp` is audio from the trunk, `appToTrunk` audio that is sent to the trunk.
  public var direction: AudioDirection
  /// The band: the frame has 160 or 320 samples.
  public var band: AudioBand
  /// The time of the tick that produced it. Frames of one direction come 20 ms apart, give or take the ticks' moves; without
  /// audio (a hold) there is a gap.
  public var at: Instant

  public init(_ direction: AudioDirection, _ band: AudioBand, at: Instant) {
    (self.direction, self.band, self.at) = (direction, band, at)
  }
}

/// Carries a call's audio out of its media thread, or into it: a bounded ring of 20 ms frames with one writer and one reader,
/// which may be on different threads.
///
/// The writer never waits: a frame that finds the ring full is dropped and counted, and the reader sees a gap between two times.
/// Neither end locks, allocates or makes a system call, and no thread is woken: the reader polls.
///
///     let tap = AudioTap()                                   // 340 KB
///     media.send(.tap(session, tap))                         // writes from now on
///     while tap.pop({ frame, samples in … }) {}              // the reader, now and then
public final class AudioTap: Sendable {
  /// Capacity in frames.
  public let capacity: Int
  private let written = Atomic<Int>(0)
  private let read = Atomic<Int>(0)
  private let lost = Atomic<Int>(0)
  private let missed = Atomic<Int>(0)
  // `capacity` heads, and `capacity` frames of `Frame.capacity` samples; freed in deinit. A slot belongs to the writer until
  // `written` has passed it, and to the reader until `read` has.
  nonisolated(unsafe) private let heads: UnsafeMutablePointer<TappedFrame>
  nonisolated(unsafe) private let samples: UnsafeMutablePointer<Int16>

  /// `frames` is clamped to `Limits.tapFrames`.
  public init(frames: Int) {
    capacity = min(max(frames, Limits.tapFrames.lowerBound), Limits.tapFrames.upperBound)
    heads = .allocate(capacity: capacity)
    heads.initialize(repeating: TappedFrame(.trunkToApp, .narrowband, at: .zero), count: capacity)
    samples = .allocate(capacity: capacity * Frame.capacity)
    samples.initialize(repeating: 0, count: capacity * Frame.capacity)
  }

  /// For a recorder, whose thread may wait for a disk.
  public convenience init() { self.init(frames: Limits.recorderFrames) }

  deinit {
    heads.deallocate()
    samples.deallocate()
  }

  /// Frames dropped because the ring was full. Any thread.
  public var dropped: Int { lost.load(ordering: .relaxed) }
  /// How often the reader found the ring empty. Any thread.
  public var misses: Int { missed.load(ordering: .relaxed) }
  /// Frames in the ring. Any thread.
  public var count: Int { written.load(ordering: .acquiring) &- read.load(ordering: .acquiring) }

  /// The writer: appends a frame of `frame.band.samplesPerTick` samples. False: the ring is full. HOT
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

  /// The reader: passes the oldest frame, valid until `body` returns. False: the ring is empty. HOT
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

/// Both directions of a call's audio, for an external program in place of an app.
///
/// At each tick from the trunk the media thread writes a frame into `heard`, of silence if the trunk sends none. At each tick to
/// the trunk it reads one from `said`; without one the trunk hears the noise of a pause.
public final class AudioStream: Sendable {
  public let heard: AudioTap
  public let said: AudioTap
  public init() { (heard, said) = (AudioTap(frames: Limits.streamFrames), AudioTap(frames: Limits.streamFrames)) }
}
