public import Foundation

public typealias CXCallDirectoryPhoneNumber = Int64
public let CXCallDirectoryPhoneNumberMax: CXCallDirectoryPhoneNumber = Int64.max - 1

#if !canImport(Darwin)
  /// Foundation on Linux has no such class.
  open class NSExtensionContext: NSObject {
    public override init() {}
    open func completeRequest(returningItems items: [Any]?, completionHandler: ((Bool) -> Void)? = nil) {
      completionHandler?(false)
    }
    open func cancelRequest(withError error: any Error) {}
  }
#endif

public protocol CXCallDirectoryExtensionContextDelegate: NSObjectProtocol {
  func requestFailed(for extensionContext: CXCallDirectoryExtensionContext, withError error: any Error)
}

/// One request to load, with Apple's names. Its entries go to the manager that made the context; a context that a test made sends
/// them nowhere. Its methods are open, so that a test or a bench can count an extension's calls.
open class CXCallDirectoryExtensionContext: NSExtensionContext {
  public weak var delegate: (any CXCallDirectoryExtensionContextDelegate)?
  private let host: CXCallDirectoryManager?
  private let identifier: String
  private let request: CallDirectorySystem.RequestID

  public override init() {
    (host, identifier, request) = (nil, "", .init(raw: 0))
    super.init()
  }
  init(_ host: CXCallDirectoryManager, _ identifier: String, _ request: CallDirectorySystem.RequestID) {
    (self.host, self.identifier, self.request) = (host, identifier, request)
    super.init()
  }

  /// Must be read before the first entry.
  open var isIncremental: Bool { host?.change { $0.isIncremental(identifier, request) } ?? false }

  open func addBlockingEntry(withNextSequentialPhoneNumber phoneNumber: CXCallDirectoryPhoneNumber) {
    host?.change { $0.add(identifier, request, blocked: phoneNumber) }
  }
  open func removeBlockingEntry(withPhoneNumber phoneNumber: CXCallDirectoryPhoneNumber) {
    host?.change { $0.remove(identifier, request, phoneNumber, from: .blocking) }
  }
  open func removeAllBlockingEntries() {
    host?.change { $0.remove(identifier, request, nil, from: .blocking) }
  }
  open func addIdentificationEntry(withNextSequentialPhoneNumber phoneNumber: CXCallDirectoryPhoneNumber, label: String) {
    host?.change { $0.add(identifier, request, identified: phoneNumber, label: label) }
  }
  open func removeIdentificationEntry(withPhoneNumber phoneNumber: CXCallDirectoryPhoneNumber) {
    host?.change { $0.remove(identifier, request, phoneNumber, from: .identification) }
  }
  open func removeAllIdentificationEntries() {
    host?.change { $0.remove(identifier, request, nil, from: .identification) }
  }
  /// `completion`: true if the system ended the request before.
  open func completeRequest(completionHandler completion: ((Bool) -> Void)? = nil) {
    guard let host else { return completion?(false) ?? () }
    host.finish(self, identifier, request, completion: completion)
  }
  open override func cancelRequest(withError error: any Error) { host?.cancel(identifier, request) }
}

/// The principal class of an extension.
open class CXCallDirectoryProvider: NSObject {
  public override init() {}
  open func beginRequest(with context: CXCallDirectoryExtensionContext) {}
}
