import BenchKit
import Foundation
import Glibc
import Synchronization
import TrunklineCallKit

/// A microphone that says a sentence over and over, and a loudspeaker; a thread of its own stands for the audio unit's, which allocates nothing.
final class TimedAudio: AudioDevice, @unchecked Sendable {
  // Unchecked: `samples` is written before the first thread starts.
  static let threadName = "bench-audio"
  private let samples: [Int16]
  private let marks: Marks
  private let state = Mutex<(handle: AudioHandle?, run: Int, isRunning: Bool)>((nil, 0, false))
  /// Samples louder than a whisper that were played.
  private let heard = Atomic<Int>(0)
  var loudSamples: Int { heard.load(ordering: .relaxed) }

  init(_ samples: [Int16], _ marks: Marks) { (self.samples, self.marks) = (samples, marks) }

  func configure(_ handle: AudioHandle) -> Bool {
    state.withLock { $0.handle = handle }
    return true
  }

  func start() -> Bool {
    marks.note("audioStarted")
    let (handle, run) = state.withLock { state in
      (state.run, state.isRunning) = (state.run + 1, true)
      return (state.handle, state.run)
    }
    guard let handle else { return false }
    let thread = Thread { [self] in
      ThreadFigures.nameThread(Self.threadName)
      loop(handle, run)
    }
    thread.start()
    return true
  }

  func stop() { state.withLock { $0.isRunning = false } }
  func release() { state.withLock { ($0.isRunning, $0.handle) = (false, nil) } }

  private func loop(_ handle: AudioHandle, _ run: Int) {
    var (captured, played) = ([Int16](repeating: 0, count: 320), [Int16](repeating: 0, count: 320))
    var position = 0
    var due = timespec()
    clock_gettime(CLOCK_MONOTONIC, &due)
    while state.withLock({ $0.isRunning && $0.run == run }) {
      for index in 0..<320 where !samples.isEmpty {
        captured[index] = handle.isConnected ? samples[position] : 0
        if handle.isConnected { position = (position + 1) % samples.count }
      }
      handle.captured.write(captured.span)
      var room = played.mutableSpan
      if handle.played.read(into: &room) {
        marks.note("firstSample")
        var loud = 0
        for index in 0..<320 where abs(Int(played[index])) > 300 { loud += 1 }
        heard.add(loud, ordering: .relaxed)
      }
      due.tv_nsec += 20_000_000
      if due.tv_nsec >= 1_000_000_000 { (due.tv_sec, due.tv_nsec) = (due.tv_sec + 1, due.tv_nsec - 1_000_000_000) }
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nil)
    }
  }
}
