import Dispatch

/// Runs the engine on a queue of its own, which is also the delegate queue of PushKit and CallKit: a delegate enters the engine synchronously, in
/// its own turn. (`DispatchSerialQueue` as an executor is not in Linux's Dispatch.)
final class EngineExecutor: SerialExecutor {
  let queue = DispatchQueue(label: "trunkline.phone", qos: .userInteractive)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
  func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
