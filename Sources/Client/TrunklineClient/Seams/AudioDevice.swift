import Synchronization

/// Microphone and loudspeaker, in four phases. All calls are made on one queue, in this order; if a phase returns false,
/// or does not return within 3 s, the call fails. `release` may be called at any time and implies `stop`.
///
/// | phase | bound to | what it does |
/// |---|---|---|
/// | `configure` | the answer or start action, before audio is activated | stores the handle; changes nothing that would change the route later |
/// | `start` | `didActivate`, or 1 s after a call is heard without it | the unit runs: it fills `handle.captured` and empties `handle.played` |
/// | `stop` | `didDeactivate`, hold; and before another `start`, when the route's sample rate changes | the unit stops; `start` may follow |
/// | `release` | the last call's end | all resources are released; `configure` may follow |
public protocol AudioDevice: Sendable {
  /// Stores the handle and prepares the device. False: this call cannot have audio.
  func configure(_ handle: AudioHandle) -> Bool
  /// Captures and plays from now on. False: the device does not run, and the call fails.
  func start() -> Bool
  /// Stops capturing and playing; ``start()`` may follow.
  func stop()
  /// Releases all resources, also while it runs.
  func release()
}

/// The rings that the audio unit's thread and the media thread share: samples at 16 kHz, for any band of the call.
public final class AudioHandle: Sendable {
  /// Rate of both rings; samples are mono, 16 bits signed.
  public static let sampleRateHz = 16_000
  /// From the microphone: written by the unit, read by the media thread.
  public let captured = AudioRing(capacity: 8_192)
  /// To the loudspeaker: written by the media thread, read by the unit.
  public let played = AudioRing(capacity: 8_192)
  /// True once the peer hears captured audio: a device that plays a file starts it then.
  public var isConnected: Bool { connected.load(ordering: .relaxed) }
  let connected = Atomic<Bool>(false)
  let burst = Atomic<Int>(0)
  /// Two empty rings.
  public init() {}

  /// Called by a unit that reads samples in bursts of its own size: as many more are kept ready to be played. Any thread.
  public func expectBursts(of samples: Int) { burst.store(min(max(samples, 0), Self.longestBurst), ordering: .relaxed) }
  private static let longestBurst = 2_048
}

/// No microphone and no loudspeaker: received audio is discarded, silence is sent.
public final class NoAudio: AudioDevice {
  private let file = FileAudio([], keepsHeard: false)
  /// A device of silence.
  public init() {}
  /// Always true.
  public func configure(_ handle: AudioHandle) -> Bool { file.configure(handle) }
  /// Captures silence from now on, at the pace of an audio unit.
  public func start() -> Bool { file.start() }
  /// Stops.
  public func stop() { file.stop() }
  /// Drops the handle.
  public func release() { file.release() }
}
