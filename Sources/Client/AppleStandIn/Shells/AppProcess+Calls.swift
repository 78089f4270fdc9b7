import Dispatch
import Foundation
import TrunklineBytes

/// Reports, requests and actions of an app.
extension AppProcess {
  func report(
    _ call: Identifier, _ update: CXCallUpdate, by provider: CXProvider, completion: @escaping @Sendable ((any Error)?) -> Void
  ) {
    if !provider.hasDelegate { send(.violation(.r31, "a call is reported before the provider has a delegate")) }
    let (registry, isHandling) = lock.withLock {
      state.reports[call, default: []].append(completion)
      defer { state.handled = nil }
      return (state.registry, state.handled != nil || !state.pushes.isEmpty)
    }
    // R22 covers reports of pushes: others may come from any thread
    let isOnQueue = !isHandling || isOn(provider.queue) || registry.map { isOn($0.queue) } == true
    send(.report(call, SystemMachine.Caller(update), isOnQueue: isOnQueue))
  }

  func request(
    _ transaction: CXTransaction, on queue: DispatchQueue, completion: @escaping @Sendable ((any Error)?) -> Void
  ) {
    func refuse(_ code: CXErrorCodeRequestTransactionError.Code) {
      post(on: queue) { completion(CXErrorCodeRequestTransactionError(code)) }
    }
    guard lock.withLock({ state.provider != nil }) else { return refuse(.unknownCallProvider) }
    var actions: [(request: SystemMachine.Request, action: CXAction)] = []
    for action in transaction.actions {
      guard let request = SystemMachine.Request(action) else { return refuse(.invalidAction) }
      actions.append((request, action))
    }
    let id = lock.withLock {
      state.next += 1
      state.requests[state.next] = Requested(actions: actions, queue: queue, completion: completion)
      return state.next
    }
    send(.request(id, actions.map(\.request)))
  }

  func reportFromExtension(_ payload: [AnyHashable: Any], completion: (@Sendable ((any Error)?) -> Void)?) {
    let values = Dictionary(payload.compactMap { key, value in (key as? String).map { ($0, value) } }) { $1 }
    let data = JSONSerialization.isValidJSONObject(values) ? try? JSONSerialization.data(withJSONObject: values) : nil
    let id = lock.withLock {
      state.next += 1
      state.extensionPushes[state.next] = completion
      return state.next
    }
    send(.extensionPush(id, payload: String(decoding: data ?? Data("{}".utf8), as: UTF8.self), isExtension: Self.isExtension))
  }

  func completed(_ action: CXAction, id: Int, isFulfilled: Bool, date: Date?) {
    lock.withLock { state.pending[id] = nil }
    send(.complete(id, isFulfilled: isFulfilled, at: date))
  }

  // MARK: from the phone

  func reported(_ call: Identifier, _ error: Int?) {
    let (completion, queue) = lock.withLock {
      let first = state.reports[call]?.isEmpty == false ? state.reports[call]?.removeFirst() : nil
      if state.reports[call]?.isEmpty == true { state.reports[call] = nil }
      return (first, state.provider?.queue)
    }
    guard let completion else { return }
    let code = error.map { CXErrorCodeIncomingCallError.Code(rawValue: $0) ?? .unknown }
    post(on: queue ?? .main) { completion(code.map { CXErrorCodeIncomingCallError($0) }) }
  }

  func requested(_ transaction: Int, error: Int?) {
    let requested = lock.withLock {
      let requested = state.requests.removeValue(forKey: transaction)
      if error == nil { state.accepted += requested?.actions ?? [] }
      return requested
    }
    guard let requested else { return }
    let code = error.map { CXErrorCodeRequestTransactionError.Code(rawValue: $0) ?? .unknown }
    post(on: requested.queue) { requested.completion(code.map { CXErrorCodeRequestTransactionError($0) }) }
  }

  func extensionPushed(_ push: Int, error: Int?) {
    guard let completion = lock.withLock({ state.extensionPushes.removeValue(forKey: push) }) else { return }
    let code = error.map { CXErrorCodeNotificationServiceExtensionError.Code(rawValue: $0) ?? .unknown }
    post(on: .main) { completion(code.map { CXErrorCodeNotificationServiceExtensionError($0) }) }
  }

  /// The delegate gets a new object; if the app requested the action, with the uuid of the requested one.
  func perform(_ id: Int, _ request: SystemMachine.Request, until: Date) {
    let (provider, original) = lock.withLock {
      let index = state.accepted.firstIndex { $0.request == request }
      return (state.provider, index.map { state.accepted.remove(at: $0).action })
    }
    guard let provider else {
      return post(on: .main) { [self] in send(.violation(.r30, "the CXProvider was released: keep it as long as the app runs")) }
    }
    let action = request.action(of: original)
    action.deliver(by: self, id: id, until: until)
    let transaction = CXTransaction(action: action)
    lock.withLock { state.pending[id] = transaction }
    provider.notify { provider, delegate in
      if !delegate.provider(provider, execute: transaction) { action.perform(provider, delegate) }
    }
  }

  func timedOut(_ id: Int) {
    let (provider, transaction) = lock.withLock { (state.provider, state.pending.removeValue(forKey: id)) }
    guard let provider, let action = transaction?.actions.first else { return }
    provider.notify { $1.provider($0, timedOutPerforming: action) }
  }
}
