import Dispatch
import Foundation
import TrunklineBytes

/// One launch of an app as the surface sees it: providers, registries, controllers and the audio session are bound to it when
/// they are made.
/// Its phone is a `StandInPhone` in the same process, or a handset over a socket. After its end it drops callbacks, and ignores
/// and counts calls.
///
/// Any thread. Callbacks run on the queues that their owners named, in the order of the phone's messages.
final class AppProcess: @unchecked Sendable {  // mutable state is guarded by `lock`; the phone is never called with the lock held
  /// The process whose code runs: set around an app's start and its callbacks, and inherited by its tasks.
  @TaskLocal static var running: AppProcess?
  /// True in a notification service extension (R15).
  @TaskLocal static var isExtension = false

  struct State {
    var isDead = false
    var ignored = 0
    weak var provider: CXProvider?
    weak var registry: PKPushRegistry?
    var observers: [WeakObserver] = []
    var queues: [ObjectIdentifier: DelegateQueue] = [:]
    var calls: [CallFacts] = []
    var token: [UInt8]?
    /// Pushes before the app has a registry that accepts them.
    var pushes: [(id: Int, payload: String, mustReport: Bool?)] = []
    /// The push that a delegate is handling.
    var handled: Int?
    var reports: [Identifier: [@Sendable ((any Error)?) -> Void]] = [:]
    var requests: [Int: Requested] = [:]
    var accepted: [(request: SystemMachine.Request, action: CXAction)] = []
    var extensionPushes: [Int: @Sendable ((any Error)?) -> Void] = [:]
    var pending: [Int: CXTransaction] = [:]
    var next = 0
    var isUnlockedOnce = true
    var application = Application()
  }
  /// The app's handlers for events of its own process.
  struct Application {
    var continued: (@Sendable (INStartCallIntent) -> Void)?
    var foreground: (@Sendable (Bool) -> Void)?
    var socketsDied: (@Sendable (Double) -> Void)?
    var captureIsSilent = false
  }
  struct Requested {
    var actions: [(request: SystemMachine.Request, action: CXAction)]
    var queue: DispatchQueue
    var completion: @Sendable ((any Error)?) -> Void
  }
  struct WeakObserver { weak var observer: CXCallObserver? }

  let lock = NSLock()
  var state = State()
  private let transmit: @Sendable (AppProcess, AppMessage) -> Void
  private(set) lazy var audioSession = AVAudioSession(self)

  init(transmit: @escaping @Sendable (AppProcess, AppMessage) -> Void) {
    self.transmit = transmit
    _ = audioSession
  }

  static var current: AppProcess { running ?? CurrentPhone.process }

  // MARK: to the phone

  func send(_ message: AppMessage) {
    let isDead = lock.withLock {
      if state.isDead { state.ignored += 1 }
      return state.isDead
    }
    if !isDead { transmit(self, message) }
  }
  /// For a message that the phone received after the process ended.
  func countIgnoredCall() { lock.withLock { state.ignored += 1 } }

  /// Its callbacks stop; its calls are ignored and counted.
  func die() { lock.withLock { state.isDead = true } }
  var ignoredCalls: Int { lock.withLock { state.ignored } }

  // MARK: queues

  private func delegateQueue(_ queue: DispatchQueue) -> DelegateQueue {
    lock.withLock {
      if let known = state.queues[ObjectIdentifier(queue)] { return known }
      let made = DelegateQueue(queue)
      state.queues[ObjectIdentifier(queue)] = made
      return made
    }
  }

  /// `drain` waits for this queue, too, from now on.
  func uses(_ queue: DispatchQueue) { _ = delegateQueue(queue) }

  func post(on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
    delegateQueue(queue).post { [self] in
      guard !lock.withLock({ state.isDead }) else { return }
      Self.$running.withValue(self, operation: body)
    }
  }

  /// Returns when the callbacks posted so far have run.
  func drain() {
    for queue in lock.withLock({ Array(state.queues.values) }) { queue.drain() }
  }

  func isOn(_ queue: DispatchQueue) -> Bool { delegateQueue(queue).isCurrent }

  // MARK: objects of the surface

  func made(_ provider: CXProvider) {
    let isSecond = lock.withLock {
      defer { state.provider = provider }
      return state.provider != nil
    }
    if isSecond { send(.violation(.r30, "a second CXProvider is made while the first one lives")) }
    send(.provider(ProviderFacts(provider.configuration)))
  }

  func invalidated(_ provider: CXProvider) {
    lock.withLock { if state.provider === provider { state.provider = nil } }
    send(.invalidated)
  }

  func observes(_ observer: CXCallObserver) {
    lock.withLock {
      state.observers.removeAll { $0.observer == nil }
      state.observers.append(WeakObserver(observer: observer))
    }
  }

  var calls: [CallFacts] { lock.withLock { state.calls.filter { !$0.hasEnded } } }
  var pendingTransactions: [CXTransaction] {
    lock.withLock { state.pending.sorted { $0.key < $1.key }.map(\.value) }
  }
}
