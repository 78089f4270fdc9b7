public import Foundation
import Synchronization

/// Apple's manager over a `CallDirectorySystem`. An extension's provider runs on the thread that requests the reload, and
/// callbacks run on the thread that causes them, so that a test needs no waiting. Thread-safe. Tests make their own; apps use
/// `sharedInstance`.
open class CXCallDirectoryManager: NSObject, @unchecked Sendable {
  public enum EnabledStatus: Int, Sendable { case unknown = 0, disabled, enabled }
  public typealias Completion = @Sendable ((any Error)?) -> Void

  /// What iOS holds while an extension loads. Only the loading thread uses its objects.
  private struct Running: @unchecked Sendable {
    let provider: CXCallDirectoryProvider
    let context: CXCallDirectoryExtensionContext
    let completion: Completion?
  }
  private struct State: Sendable {
    var system: CallDirectorySystem
    var providers: [String: @Sendable () -> CXCallDirectoryProvider] = [:]
    var running: [String: Running] = [:]
    var settingsOpened = 0
  }
  private let state: Mutex<State>

  public static let sharedInstance = CXCallDirectoryManager()

  public override convenience init() { self.init(rules: CallDirectoryRules()) }
  public init(rules: CallDirectoryRules) {
    state = Mutex(State(system: CallDirectorySystem(rules)))
    super.init()
  }

  // MARK: Apple's

  public func reloadExtension(withIdentifier identifier: String, completionHandler completion: Completion? = nil) {
    let begun = state.withLock { state -> Result<Running, CallDirectorySystem.Failure> in
      guard let provider = state.providers[identifier] else { return .failure(.init(.noExtensionFound)) }
      do throws(CallDirectorySystem.Failure) {
        let request = try state.system.begin(identifier)
        let context = CXCallDirectoryExtensionContext(self, identifier, request)
        let running = Running(provider: provider(), context: context, completion: completion)
        state.running[identifier] = running
        return .success(running)
      } catch {
        return .failure(error)
      }
    }
    switch begun {
    case .success(let running): running.provider.beginRequest(with: running.context)
    case .failure(let failure): completion?(CXErrorCodeCallDirectoryManagerError.error(failure.code))
    }
  }

  public func getEnabledStatusForExtension(
    withIdentifier identifier: String, completionHandler completion: @escaping @Sendable (EnabledStatus, (any Error)?) -> Void
  ) {
    do throws(CallDirectorySystem.Failure) {
      let status = try state.withLock { state throws(CallDirectorySystem.Failure) in try state.system.status(identifier) }
      completion(EnabledStatus(rawValue: status.rawValue) ?? .unknown, nil)
    } catch {
      completion(.unknown, CXErrorCodeCallDirectoryManagerError.error(error.code))
    }
  }

  public func openSettings(completionHandler completion: Completion? = nil) {
    state.withLock { $0.settingsOpened += 1 }
    completion?(nil)
  }

  // MARK: the test's

  /// How often the settings were opened.
  public var settingsOpened: Int { state.withLock { $0.settingsOpened } }

  /// Installs an extension on the telephone; `provider` makes its principal class for each request.
  public func install(
    _ identifier: String, _ status: CallDirectorySystem.Status = .enabled,
    provider: @escaping @Sendable () -> CXCallDirectoryProvider
  ) {
    state.withLock {
      $0.system.install(identifier, status)
      $0.providers[identifier] = provider
    }
  }

  /// The system under this manager: to set a status, inject a code, look a number up.
  @discardableResult
  public func change<Value>(_ body: (inout CallDirectorySystem) -> Value) -> Value where Value: Sendable {
    state.withLock { body(&$0.system) }
  }

  /// iOS ends the extension while it loads: error 2 for the app, and `requestFailed` for the extension's delegate.
  public func interrupt(_ identifier: String) {
    let ended = state.withLock { state in
      state.system.interrupt(identifier).map { (failure: $0, running: state.running.removeValue(forKey: identifier)) }
    }
    guard let ended else { return }
    let error = CXErrorCodeCallDirectoryManagerError.error(ended.failure.code)
    if let running = ended.running { running.context.delegate?.requestFailed(for: running.context, withError: error) }
    ended.running?.completion?(error)
  }

  // MARK: the context's

  func finish(
    _ context: CXCallDirectoryExtensionContext, _ identifier: String, _ request: CallDirectorySystem.RequestID,
    completion: ((Bool) -> Void)?
  ) {
    let (outcome, order, running) = state.withLock { state in
      let outcome = state.system.complete(identifier, request)
      let running = outcome == .expired ? nil : state.running.removeValue(forKey: identifier)
      return (outcome, state.system.rules.afterFailure, running)
    }
    switch outcome {
    case .stored:
      completion?(false)
      running?.completion?(nil)
    case .expired: completion?(true)
    case .failed(let failure):
      let error = CXErrorCodeCallDirectoryManagerError.error(failure.code)
      if order == .completionThenDelegate { completion?(false) }
      context.delegate?.requestFailed(for: context, withError: error)
      if order == .delegateThenCompletion { completion?(false) }
      running?.completion?(error)
    }
  }

  func cancel(_ identifier: String, _ request: CallDirectorySystem.RequestID) {
    let (outcome, running) = state.withLock { state in
      let outcome = state.system.cancel(identifier, request)
      return (outcome, outcome == .expired ? nil : state.running.removeValue(forKey: identifier))
    }
    guard case .failed(let failure) = outcome else { return }
    running?.completion?(CXErrorCodeCallDirectoryManagerError.error(failure.code))
  }
}
