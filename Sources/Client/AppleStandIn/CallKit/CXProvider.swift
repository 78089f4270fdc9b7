public import Dispatch
public import Foundation

/// The app's access to the call screen: the app reports calls, and the delegate gets actions on its queue (R18).
///
/// A provider belongs to the process that made it, and does nothing once that was killed. An app has one.
open class CXProvider: NSObject, @unchecked Sendable {  // state is behind `lock`; the delegate is called on its queue only
  let process: AppProcess
  private let lock = NSLock()
  private var stored: CXProviderConfiguration
  private weak var delegate: (any CXProviderDelegate)?
  private var hadDelegate = false
  private var delegateQueue = DispatchQueue.main

  public init(configuration: CXProviderConfiguration) {
    stored = configuration.copied
    process = .current
    super.init()
    process.made(self)
  }

  public var configuration: CXProviderConfiguration {
    get { lock.withLock { stored.copied } }
    set {
      lock.withLock { stored = newValue.copied }
      process.send(.provider(ProviderFacts(newValue)))
    }
  }

  /// The delegate is weak (R19); a queue of nil is the main queue (R18).
  public func setDelegate(_ delegate: (any CXProviderDelegate)?, queue: DispatchQueue?) {
    lock.withLock {
      self.delegate = delegate
      hadDelegate = delegate != nil
      delegateQueue = queue ?? .main
    }
    process.uses(queue ?? .main)
    if delegate != nil { process.send(.hasDelegate) }
  }

  /// Ends the provider's calls; the app needs another provider for new ones.
  public func invalidate() { process.invalidated(self) }

  public var pendingTransactions: [CXTransaction] { process.pendingTransactions }

  public func pendingCallActions(of callActionClass: AnyClass, withCall callUUID: UUID) -> [CXCallAction] {
    pendingTransactions.flatMap(\.actions).compactMap { $0 as? CXCallAction }
      .filter { $0.callUUID == callUUID && type(of: $0) == callActionClass && !$0.isComplete }
  }

  // MARK: for its process

  var queue: DispatchQueue { lock.withLock { delegateQueue } }
  var hasDelegate: Bool { lock.withLock { delegate != nil } }

  /// Calls the delegate on its queue. A missing or released delegate is a violation (R19).
  func notify(_ body: @escaping @Sendable (CXProvider, any CXProviderDelegate) -> Void) {
    process.post(on: queue) { [weak self] in
      guard let self else { return }
      let (delegate, had) = lock.withLock { (self.delegate, hadDelegate) }
      if let delegate { return body(self, delegate) }
      process.send(
        .violation(
          .r19, had ? "the provider's delegate was released: it is weak" : "the provider has no delegate for the action"))
    }
  }
}

extension CXProviderConfiguration {
  fileprivate var copied: CXProviderConfiguration { copy() as? CXProviderConfiguration ?? self }
}
