import Dispatch

/// Runs the engine on a queue of its own, which is also the delegate queue of PushKit and CallKit: a delegate enters the engine synchronously, in
/// its own turn. (`DispatchSerialQueue` as an executor is not in Linux's Dispatch.)
final class EngineExecutor: SerialExecutor {
  let queue = DispatchQueue(label: "trunkline.phone", qos: .userInteractive)
  private static let mark = DispatchSpecificKey<ObjectIdentifier>()

  init() { queue.setSpecific(key: Self.mark, value: ObjectIdentifier(self)) }

  /// This code runs on the queue.
  var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.mark) == ObjectIdentifier(self) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
  func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
