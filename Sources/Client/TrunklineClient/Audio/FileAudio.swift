import Dispatch
import Foundation
import Synchronization
import TrunklineAudioCodecs
public import TrunklineBytes
import TrunklineRTP

/// An audio device of samples: plays its source once the call is connected, keeps what it receives. For bots, tests and machines
/// without a sound card. Its own thread replaces the audio unit's.
public final class FileAudio: AudioDevice {
  /// The received audio, and when; sample 0 of `samples` is at `since`.
  public struct Heard: Sendable {
    /// Mono, at the device's rate; silence where nothing was played.
    public var samples: [Int16] = []
    /// By the device's monotonic clock.
    public var since: Instant?
    /// When the first sample of the source was read.
    public var spokenSince: Instant?
    /// When the first audible sample was played.
    public var firstAudio: Instant?
    /// No received audio.
    public init() {}
  }
  /// Keeps state between two frames; noncopyable converters need a box.
  private final class Converter {
    let converter = BandConverter()
  }
  private struct State {
    var source: [Int16]
    var repeats: Bool
    var position = 0
    var heard = Heard()
    var handle: AudioHandle?
    var runs = 0
    var isRunning = false
    let captured = Converter()
    let played = Converter()
  }

  /// Maximum of the kept audio, in seconds.
  public static let longestHeard = 600
  private let state: Mutex<State>
  /// Band of `source`, and of the kept audio.
  private let band: AudioBand
  private let keepsHeard: Bool
  private let heardFirst: (@Sendable (Instant) -> Void)?

  /// - Parameters:
  ///   - source: mono samples; silence after them.
  ///   - sampleRateHz: rate of the source and of the kept audio: 8 000 for recordings of a telephone line; any other value is
  ///     treated as 16 000.
  ///   - repeats: the source is played repeatedly.
  ///   - keepsHeard: played audio is kept for ``drainReceived()``, up to ``longestHeard``.
  ///   - heardFirst: called on the device's thread when the first sound of a call is played.
  public init(
    _ source: [Int16] = [], sampleRateHz: Int = AudioHandle.sampleRateHz, repeats: Bool = false, keepsHeard: Bool = true,
    heardFirst: (@Sendable (Instant) -> Void)? = nil
  ) {
    band = sampleRateHz == 8_000 ? .narrowband : .wideband
    self.heardFirst = heardFirst
    state = Mutex(State(source: source, repeats: repeats))
    self.keepsHeard = keepsHeard
  }

  /// Returns the audio received since the last call, and rewinds the source for the next call.
  public func drainReceived() -> Heard {
    state.withLock { state in
      defer { (state.heard, state.position) = (Heard(), 0) }
      return state.heard
    }
  }

  /// Always true.
  public func configure(_ handle: AudioHandle) -> Bool {
    state.withLock { $0.handle = handle }
    return true
  }

  /// Reads the source and keeps received audio, 20 ms at a time, on its own thread. False without a handle.
  public func start() -> Bool {
    let run = state.withLock { state -> Int? in
      guard state.handle != nil else { return nil }
      (state.isRunning, state.runs) = (true, state.runs + 1)
      return state.runs
    }
    guard let run else { return false }
    namedThread("file-audio") { [self] in loop(run) }.start()
    return true
  }

  /// Stops both; the source continues from here at the next start.
  public func stop() { state.withLock { $0.isRunning = false } }

  /// Stops both, and drops the handle.
  public func release() {
    state.withLock { state in
      state.isRunning = false
      state.handle = nil
    }
  }

  private func loop(_ run: Int) {
    var due = MonotonicTime.now()
    while true {
      let isOn = state.withLock { state -> Bool in
        guard state.isRunning, state.runs == run, let handle = state.handle else { return false }
        exchange(handle, due, &state)
        return true
      }
      guard isOn else { return }
      due = due + .milliseconds(20)
      let now = MonotonicTime.now()
      // a thread that was not scheduled for long does not catch up completely
      if now - due > .milliseconds(200) { due = now }
      MonotonicTime.sleep(until: due)
    }
  }

  private func exchange(_ handle: AudioHandle, _ now: Instant, _ state: inout State) {
    var frame = ContiguousArray<Int16>(repeating: 0, count: band.samplesPerTick)
    for index in frame.indices where handle.isConnected {
      if state.position >= state.source.count {
        guard state.repeats, !state.source.isEmpty else { break }
        state.position = 0
      }
      frame[index] = state.source[state.position]
      state.position += 1
    }
    if state.heard.spokenSince == nil, handle.isConnected { state.heard.spokenSince = now }
    handle.captured.write(converted(frame, state.captured, from: band, to: .wideband).span)
    var played = ContiguousArray<Int16>(repeating: 0, count: AudioBand.wideband.samplesPerTick)
    var room = played.mutableSpan
    handle.played.read(into: &room)
    keep(converted(played, state.played, from: .wideband, to: band), now, &state)
  }

  private func converted(
    _ frame: ContiguousArray<Int16>, _ converter: Converter, from: AudioBand, to: AudioBand
  ) -> ContiguousArray<Int16> {
    guard from != to else { return frame }
    return ContiguousArray(unsafeUninitializedCapacity: BandConverter.count(frame.count, from: from, to: to)) { room, count in
      frame.withUnsafeBufferPointer { frame in
        guard let source = frame.baseAddress, let target = room.baseAddress else { return }
        count = converter.converter.convert(source, frame.count, from: from, to: to, into: target)
      }
    }
  }

  private func keep(_ played: ContiguousArray<Int16>, _ now: Instant, _ state: inout State) {
    if state.heard.firstAudio == nil, played.contains(where: { abs(Int($0)) > 300 }) {
      state.heard.firstAudio = now
      heardFirst?(now)
    }
    guard keepsHeard else { return }
    let since = state.heard.since ?? now
    state.heard.since = since
    let offset = Int((now - since).nanoseconds) / (1_000_000_000 / band.sampleRateHz)
    guard offset + played.count <= Self.longestHeard * band.sampleRateHz else { return }
    if state.heard.samples.count < offset + played.count {
      state.heard.samples += [Int16](repeating: 0, count: offset + played.count - state.heard.samples.count)
    }
    for (index, sample) in played.enumerated() { state.heard.samples[offset + index] = sample }
  }
}
