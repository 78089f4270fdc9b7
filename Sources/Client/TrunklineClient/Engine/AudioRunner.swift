import Bytes
import ClientMachines
import Dispatch
import Synchronization

/// Runs the phases of the audio device on a queue of its own, one after the other: a device that never returns must hold up neither the call
/// screen nor a push's report.
final class AudioRunner: Sendable {
  private let device: any AudioDevice
  private let handle: AudioHandle
  private let time: Duration
  private let queue = DispatchQueue(label: "trunkline.audio", qos: .userInteractive)
  private let deadlines = DispatchQueue(label: "trunkline.audio.deadlines")

  /// - Parameter time: a phase that takes longer has failed.
  init(_ device: any AudioDevice, _ handle: AudioHandle, time: Duration) {
    (self.device, self.handle, self.time) = (device, handle, time)
  }

  /// - Parameter done: called once, on a queue of the runner's: false if the device refused, or has not returned in time. What it says
  ///   later is not heard; the phases after it still run once it has returned, so that a late start is released.
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
      // too late: the result is no longer used
      if !answer.give(isDone), request == .start || request == .restart, isDone { device.stop() }
    }
    deadlines.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: time.nanoseconds))) { _ = answer.give(false) }
  }

  private static func void(_: Void) -> Bool { true }

  /// The first caller.
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
