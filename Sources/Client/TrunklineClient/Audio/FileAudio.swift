public import Bytes
import Dispatch
import Foundation
import Synchronization

/// An audio device of samples: says what it is given once the call is connected, keeps what it hears. For bots, tests and machines without a sound card.
/// A thread of its own stands for the audio unit's.
public final class FileAudio: AudioDevice {
  /// What was heard, and when; sample 0 of `samples` is `since`.
  public struct Heard: Sendable {
    /// Mono at 8 kHz; silence where nothing was played.
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
  private struct State {
    var source: [Int16]
    var repeats: Bool
    var position = 0
    var heard = Heard()
    var handle: AudioHandle?
    var runs = 0
    var isRunning = false
  }

  /// Samples kept at most: ten minutes.
  public static let longestHeard = AudioHandle.sampleRateHz * 600
  static let frame = 160
  private let state: Mutex<State>
  private let keepsHeard: Bool
  private let heardFirst: (@Sendable (Instant) -> Void)?

  /// - Parameters:
  ///   - source: mono samples at 8 kHz; silence after them.
  ///   - repeats: over and over.
  ///   - keepsHeard: what is played is kept for ``takeHeard()``, up to ``longestHeard``.
  ///   - heardFirst: called on the device's thread when the first sound of a call is played.
  public init(
    _ source: [Int16] = [], repeats: Bool = false, keepsHeard: Bool = true, heardFirst: (@Sendable (Instant) -> Void)? = nil
  ) {
    self.heardFirst = heardFirst
    state = Mutex(State(source: source, repeats: repeats))
    self.keepsHeard = keepsHeard
  }

  /// What was heard since the last call of this, and the source from its beginning for the next call.
  public func takeHeard() -> Heard {
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

  /// Ends that; the source goes on from here at the next start.
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
    var frame = [Int16](repeating: 0, count: Self.frame)
    for index in 0..<Self.frame where handle.isConnected {
      if state.position >= state.source.count {
        guard state.repeats, !state.source.isEmpty else { break }
        state.position = 0
      }
      frame[index] = state.source[state.position]
      state.position += 1
    }
    if state.heard.spokenSince == nil, handle.isConnected { state.heard.spokenSince = now }
    handle.captured.write(frame.span)
    var played = [Int16](repeating: 0, count: Self.frame)
    var room = played.mutableSpan
    handle.played.read(into: &room)
    keep(played, now, &state)
  }

  private func keep(_ played: [Int16], _ now: Instant, _ state: inout State) {
    if state.heard.firstAudio == nil, played.contains(where: { abs(Int($0)) > 300 }) {
      state.heard.firstAudio = now
      heardFirst?(now)
    }
    guard keepsHeard else { return }
    let since = state.heard.since ?? now
    state.heard.since = since
    let offset = Int((now - since).nanoseconds / 125_000)
    guard offset + played.count <= Self.longestHeard else { return }
    if state.heard.samples.count < offset + played.count {
      state.heard.samples += [Int16](repeating: 0, count: offset + played.count - state.heard.samples.count)
    }
    for (index, sample) in played.enumerated() { state.heard.samples[offset + index] = sample }
  }
}
