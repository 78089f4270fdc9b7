import Dispatch
import Foundation

/// Callbacks for one dispatch queue, in order. `drain` waits for them, or runs them if the caller is on the queue itself.
final class DelegateQueue: @unchecked Sendable {  // `waiting` and `isRunning` are guarded by `lock`
  private static let key = DispatchSpecificKey<ObjectIdentifier>()

  let queue: DispatchQueue
  private let lock = NSLock()
  private var waiting: [@Sendable () -> Void] = []
  private var isRunning = false

  init(_ queue: DispatchQueue) {
    self.queue = queue
    queue.setSpecific(key: Self.key, value: ObjectIdentifier(queue))
  }

  /// True if the calling thread runs this queue's work.
  var isCurrent: Bool {
    DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(queue) || (queue === DispatchQueue.main && Thread.isMainThread)
  }

  func post(_ body: @escaping @Sendable () -> Void) {
    lock.withLock { waiting.append(body) }
    queue.async { [self] in run() }
  }

  /// Returns when all callbacks posted so far have run. Inside one of its own callbacks it returns at once: the callback must
  /// return first.
  func drain() {
    if !isCurrent { return queue.sync { run() } }
    if !lock.withLock({ isRunning }) { run() }
  }

  private func run() {
    while true {
      let body: (@Sendable () -> Void)? = lock.withLock {
        isRunning = !waiting.isEmpty
        return waiting.isEmpty ? nil : waiting.removeFirst()
      }
      guard let body else { return }
      body()
    }
  }
}
