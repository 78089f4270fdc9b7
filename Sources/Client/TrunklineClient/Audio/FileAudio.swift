import AudioCodecs
public import Bytes
import Dispatch
import Foundation
import RTP
import Synchronization

/// An audio device of samples: says what it is given once the call is connected, keeps what it hears. For bots, tests and machines without a sound card.
/// A thread of its own stands for the audio unit's.
public final class FileAudio: AudioDevice {
  /// What was heard, and when; sample 0 of `samples` is `since`.
  public struct Heard: Sendable {
    /// Mono, at the device's rate; silence where nothing was played.
    public var samples: [Int16] = []
    /// The device's monotonic clock.
    public var since: Instant?
    /// When the first sample of the source was taken.
    public var spokenSince: Instant?
    /// When the first audible sample was played.
    public var firstAudio: Instant?
    /// Nothing was heard.
    public init() {}
  }
  /// Keeps what lies between two frames; noncopyable converters need a box.
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

  /// Seconds kept at most.
  public static let longestHeard = 600
  private let state: Mutex<State>
  /// Of `source`, and of what is kept.
  private let band: AudioBand
  private let keepsHeard: Bool
  private let heardFirst: (@Sendable (Instant) -> Void)?

  /// - Parameters:
  ///   - source: mono samples; silence after them.
  ///   - sampleRateHz: of the source and of what is kept: 8 000 for what was recorded on a telephone line; anything else is taken
  ///     as 16 000.
  ///   - repeats: over and over.
  ///   - keepsHeard: what is played is kept for ``drainReceived()``, up to ``longestHeard``.
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

  /// What was heard since the last call of this, and the source from its beginning for the next call.
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

  /// The source is taken and what comes is kept, 20 ms at a time, on a thread of its own. False without a handle.
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

  /// Ends that; the source continues from here at the next start.
  public func stop() { state.withLock { $0.isRunning = false } }

  /// Ends that, and forgets the handle.
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
      // a thread that was not scheduled for long does not catch up all of it
      if now - due > .milliseconds(200) { due = now }
      MonotonicTime.sleep(until: due)
    }
  }

  private func exchange(_ handle: AudioHandle, _ now: Instant, _ state: inout State) {
    var frame = [Int16](repeating: 0, count: band.samplesPerTick)
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
    var played = [Int16](repeating: 0, count: AudioBand.wideband.samplesPerTick)
    var room = played.mutableSpan
    handle.played.read(into: &room)
    keep(converted(played, state.played, from: .wideband, to: band), now, &state)
  }

  private func converted(_ frame: [Int16], _ converter: Converter, from: AudioBand, to: AudioBand) -> [Int16] {
    guard from != to else { return frame }
    return [Int16](unsafeUninitializedCapacity: BandConverter.count(frame.count, from: from, to: to)) { room, count in
      frame.withUnsafeBufferPointer { frame in
        guard let source = frame.baseAddress, let target = room.baseAddress else { return }
        count = converter.converter.convert(source, frame.count, from: from, to: to, into: target)
      }
    }
  }

  private func keep(_ played: [Int16], _ now: Instant, _ state: inout State) {
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
