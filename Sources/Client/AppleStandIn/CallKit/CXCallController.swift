public import Dispatch
public import Foundation

/// Requests actions for the app's own buttons, as a user could take them: start, hold, mute and end calls.
open class CXCallController: NSObject, @unchecked Sendable {  // immutable
  public let callObserver: CXCallObserver
  private let queue: DispatchQueue
  private let process: AppProcess

  public convenience override init() { self.init(queue: .main) }
  /// Completions run on `queue`.
  public init(queue: DispatchQueue) {
    (self.queue, process) = (queue, .current)
    callObserver = CXCallObserver(process)
    super.init()
    process.uses(queue)
  }

  /// Completes with nil if the request is accepted, and the provider's delegate performs it; else with an error of
  /// `CXErrorCodeRequestTransactionError` (R7).
  public func request(_ transaction: CXTransaction, completion: @escaping @Sendable ((any Error)?) -> Void) {
    process.request(transaction, on: queue, completion: completion)
  }
  public func requestTransaction(with actions: [CXAction], completion: @escaping @Sendable ((any Error)?) -> Void) {
    request(CXTransaction(actions: actions), completion: completion)
  }
  public func requestTransaction(with action: CXAction, completion: @escaping @Sendable ((any Error)?) -> Void) {
    request(CXTransaction(action: action), completion: completion)
  }

  public func request(_ transaction: CXTransaction) async throws {
    let refusal: (any Error)? = await withCheckedContinuation { continuation in
      request(transaction) { continuation.resume(returning: $0) }
    }
    if let refusal { throw refusal }
  }
  public func requestTransaction(with actions: [CXAction]) async throws { try await request(CXTransaction(actions: actions)) }
  public func requestTransaction(with action: CXAction) async throws { try await request(CXTransaction(action: action)) }
}
