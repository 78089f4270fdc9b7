import Dispatch
import Synchronization
import TrunklineBytes
import TrunklineClientMachines

/// Runs the phases of the audio device on its own queue, one after the other: a device that never returns must delay neither the
/// call screen nor a push's report.
final class AudioRunner: Sendable {
  private let device: any AudioDevice
  private let handle: AudioHandle
  private let time: Duration
  private let queue = DispatchQueue(label: "trunkline.audio", qos: .userInteractive)
  private let deadlines = DispatchQueue(label: "trunkline.audio.deadlines")

  /// - Parameter time: time limit of a phase; a longer one has failed.
  init(_ device: any AudioDevice, _ handle: AudioHandle, time: Duration) {
    (self.device, self.handle, self.time) = (device, handle, time)
  }

  /// - Parameter done: called once, on a queue of the runner: false if the device refused, or did not return in time. A later
  ///   result is ignored; the next phases still run once it has returned, so that a late start is released.
  func run(_ request: AudioRequest, _ done: @escaping @Sendable (Bool) -> Void) {
    let answer = Answer(done)
    queue.async { [device, handle] in
      let isDone =
        switch request {
        case .configure: device.configure(handle)
        case .start: device.start()
        case .restart: Self.void(device.stop()) && device.start()
        case .stop: Self.void(device.stop())
        case .release: Self.void(device.release())
        }
      // too late: the request has already failed
      if !answer.give(isDone), request == .start || request == .restart, isDone { device.stop() }
    }
    deadlines.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: time.nanoseconds))) { _ = answer.give(false) }
  }

  private static func void(_: Void) -> Bool { true }

  /// Reports the first of result and timeout.
  private final class Answer: Sendable {
    private let done: Mutex<(@Sendable (Bool) -> Void)?>
    init(_ done: @escaping @Sendable (Bool) -> Void) { self.done = Mutex(done) }
    func give(_ isDone: Bool) -> Bool {
      let drained = done.withLock { done in
        defer { done = nil }
        return done
      }
      drained?(isDone)
      return drained != nil
    }
  }
}
