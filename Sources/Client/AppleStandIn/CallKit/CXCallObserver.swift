public import Dispatch
public import Foundation

/// Is notified of every change of a call.
public protocol CXCallObserverDelegate: NSObjectProtocol {
  func callObserver(_ callObserver: CXCallObserver, callChanged call: CXCall)
}

/// The calls of this app. CallKit reports those of other apps, too; a stand-in has one app.
open class CXCallObserver: NSObject, @unchecked Sendable {  // mutable state is behind `lock`
  private let process: AppProcess
  private let lock = NSLock()
  private weak var delegate: (any CXCallObserverDelegate)?
  private var queue = DispatchQueue.main

  public convenience override init() { self.init(.current) }
  init(_ process: AppProcess) {
    self.process = process
    super.init()
    process.observes(self)
  }

  public var calls: [CXCall] { process.calls.map { CXCall($0) } }

  /// The delegate is weak; a queue of nil is the main queue.
  public func setDelegate(_ delegate: (any CXCallObserverDelegate)?, queue: DispatchQueue?) {
    lock.withLock { (self.delegate, self.queue) = (delegate, queue ?? .main) }
    process.uses(queue ?? .main)
  }

  func changed(_ facts: CallFacts) {
    process.post(on: lock.withLock { queue }) { [weak self] in
      guard let self, let delegate = lock.withLock({ self.delegate }) else { return }
      delegate.callObserver(self, callChanged: CXCall(facts))
    }
  }
}
