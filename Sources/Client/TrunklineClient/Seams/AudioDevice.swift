import Synchronization

/// Microphone and loudspeaker, in four phases (AUD-4). All calls come on one queue, in this order; a phase that returns false, or not
/// within 3 s, is told to the call, which fails. `release` may come at any time and implies `stop`.
///
/// | phase | bound to | what it does |
/// |---|---|---|
/// | `configure` | the answer or start action, before audio is activated | takes the handle; sets nothing that would change the route later |
/// | `start` | `didActivate`, or 1 s after a call is heard without it | the unit runs: it fills `handle.captured` and empties `handle.played` |
/// | `stop` | `didDeactivate`, hold; and before another `start`, when the route's sample rate changes | the unit stops; `start` may follow |
/// | `release` | the last call's end | everything is given back; `configure` may follow |
public protocol AudioDevice: Sendable {
  /// Takes the handle and makes ready. False: this call cannot be taken.
  func configure(_ handle: AudioHandle) -> Bool
  /// Captures and plays from now on. False: the device does not run, and the call fails.
  func start() -> Bool
  /// Captures and plays no more; ``start()`` may follow.
  func stop()
  /// Gives everything back, also while it runs.
  func release()
}

/// What the audio unit's thread and the media thread share: two rings of samples at 16 kHz, whatever the band of the call is.
public final class AudioHandle: Sendable {
  /// Of both rings, mono, 16 bits signed.
  public static let sampleRateHz = 16_000
  /// From the microphone: written by the unit, read by the media thread.
  public let captured = AudioRing(capacity: 8_192)
  /// To the loudspeaker: written by the media thread, read by the unit.
  public let played = AudioRing(capacity: 8_192)
  /// What is captured now is heard by the other side: a device that plays a file begins it then.
  public var isConnected: Bool { connected.load(ordering: .relaxed) }
  let connected = Atomic<Bool>(false)
  let burst = Atomic<Int>(0)
  /// Two empty rings.
  public init() {}

  /// A unit that takes samples in bursts of its own size says so: as many more are kept ready to be played. Any thread.
  public func expectBursts(of samples: Int) { burst.store(min(max(samples, 0), Self.longestBurst), ordering: .relaxed) }
  private static let longestBurst = 2_048
}

/// No microphone and no loudspeaker: what comes is thrown away, what goes is silence.
public final class NoAudio: AudioDevice {
  private let file = FileAudio([], keepsHeard: false)
  /// A device of silence.
  public init() {}
  /// Always true.
  public func configure(_ handle: AudioHandle) -> Bool { file.configure(handle) }
  /// Silence is captured from now on, at the pace of an audio unit.
  public func start() -> Bool { file.start() }
  /// Ends that.
  public func stop() { file.stop() }
  /// Forgets the handle.
  public func release() { file.release() }
}
