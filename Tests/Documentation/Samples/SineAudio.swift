import Foundation
import Synchronization
import TrunklineCallKit

/// A device that says a tone and hears nothing: what an audio unit's callback does, 20 ms at a time.
final class SineAudio: AudioDevice {
  private struct State {
    var handle: AudioHandle?
    var run = 0
  }
  private let state = Mutex(State())

  func configure(_ handle: AudioHandle) -> Bool {
    state.withLock { $0.handle = handle }
    return true
  }

  func start() -> Bool {
    let run = next()
    let thread = Thread { [self] in while exchange(run) { Thread.sleep(forTimeInterval: 0.02) } }
    thread.start()
    return true
  }

  private func exchange(_ run: Int) -> Bool {
    guard let handle = state.withLock({ $0.run == run ? $0.handle : nil }) else { return false }
    let tone = (0..<320).map { Int16(8_000 * sin(2 * Double.pi * 440 * Double($0) / Double(AudioHandle.sampleRateHz))) }
    handle.captured.write(tone.span)
    handle.played.drain()
    return true
  }

  func stop() { _ = next() }
  func release() { state.withLock { $0.handle = nil } }

  /// The thread of an older run ends by itself.
  private func next() -> Int {
    state.withLock { state in
      state.run += 1
      return state.run
    }
  }
}
