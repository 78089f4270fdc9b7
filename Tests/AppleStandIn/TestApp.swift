import AppleStandIn
import Foundation

/// An app's delegates, written as for iOS: reports each push, answers and ends calls, and notes its callbacks.
final class TestApp: NSObject, CXProviderDelegate, PKPushRegistryDelegate, CXCallObserverDelegate, @unchecked Sendable {
  /// The behaviour that a test sets, and the app's notes; behind `lock`, as callbacks run on a queue.
  struct Behaviour {
    var reports = true
    var fulfils = true
    /// Reports from another thread than the delegate's.
    var reportsElsewhere = false
    var setsDelegate = true
  }

  let queue = DispatchQueue(label: "calls")
  let provider: CXProvider
  let registry: PKPushRegistry
  let controller: CXCallController
  private let behaviour: Behaviour
  private let notes: Notes
  private var action: CXAction?

  init(_ notes: Notes, _ behaviour: Behaviour = Behaviour()) {
    (self.notes, self.behaviour) = (notes, behaviour)
    let configuration = CXProviderConfiguration()
    configuration.supportedHandleTypes = [.phoneNumber]
    configuration.maximumCallGroups = 2
    provider = CXProvider(configuration: configuration)
    registry = PKPushRegistry(queue: queue)
    controller = CXCallController(queue: queue)
    super.init()
    if behaviour.setsDelegate { provider.setDelegate(self, queue: queue) }
    registry.delegate = self
    registry.desiredPushTypes = [.voIP]
    controller.callObserver.setDelegate(self, queue: queue)
  }

  func report(_ call: UUID, _ number: String, type: CXHandle.HandleType = .phoneNumber) {
    let update = CXCallUpdate()
    update.remoteHandle = CXHandle(type: type, value: number)
    provider.reportNewIncomingCall(with: call, update: update) { [notes] error in
      notes.add("reported \((error as? CXErrorCodeIncomingCallError).map { "\($0.code)" } ?? "ok")")
    }
  }

  // MARK: PKPushRegistryDelegate

  func pushRegistry(_ registry: PKPushRegistry, didUpdate pushCredentials: PKPushCredentials, for type: PKPushType) {
    notes.add("token \(pushCredentials.token.count)")
  }
  func pushRegistry(
    _ registry: PKPushRegistry, didReceiveIncomingPushWith payload: PKPushPayload, for type: PKPushType,
    completion: @escaping @Sendable () -> Void
  ) {
    notes.add("push")
    let call = (payload.dictionaryPayload["call"] as? String).flatMap { UUID(uuidString: $0) } ?? UUID()
    let number = payload.dictionaryPayload["from"] as? String ?? "+1555"
    if behaviour.reports {
      if behaviour.reportsElsewhere {
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [self] in
          report(call, number)
          done.signal()
        }
        done.wait()
      } else {
        report(call, number)
      }
    }
    completion()
  }

  // MARK: CXProviderDelegate

  func providerDidReset(_ provider: CXProvider) { notes.add("reset") }
  func providerDidBegin(_ provider: CXProvider) { notes.add("begin") }
  func provider(_ provider: CXProvider, perform action: CXAnswerCallAction) { perform(action, "answer") }
  func provider(_ provider: CXProvider, perform action: CXEndCallAction) { perform(action, "end") }
  func provider(_ provider: CXProvider, perform action: CXSetHeldCallAction) { perform(action, "hold \(action.isOnHold)") }
  func provider(_ provider: CXProvider, perform action: CXSetMutedCallAction) { perform(action, "mute \(action.isMuted)") }
  func provider(_ provider: CXProvider, perform action: CXStartCallAction) {
    perform(action, "start \(action.handle.value) video=\(action.isVideo) \(action.uuid)")
  }
  func provider(_ provider: CXProvider, timedOutPerforming action: CXAction) { notes.add("timed out") }
  func provider(_ provider: CXProvider, didActivate audioSession: AVAudioSession) { notes.add("activate") }
  func provider(_ provider: CXProvider, didDeactivate audioSession: AVAudioSession) { notes.add("deactivate") }

  private func perform(_ action: CXAction, _ text: String) {
    notes.add(text, isOnQueue: DispatchQueue.getSpecific(key: notes.key) == true)
    self.action = action
    if behaviour.fulfils { action.fulfill() }
  }
  /// Fulfils the last action, on the app's queue.
  func completeLast() { queue.sync { action?.fulfill() } }

  // MARK: CXCallObserverDelegate

  func callObserver(_ callObserver: CXCallObserver, callChanged call: CXCall) {
    notes.add("call connected=\(call.hasConnected) held=\(call.isOnHold) ended=\(call.hasEnded)")
  }
}

/// The callbacks of an app, across its processes.
final class Notes: @unchecked Sendable {  // behind `lock`
  let key = DispatchSpecificKey<Bool>()
  private let lock = NSLock()
  private var lines: [String] = []
  private var offQueue: [String] = []
  private var waiters: [(text: String, signal: DispatchSemaphore)] = []
  private weak var stored: TestApp?

  func add(_ line: String, isOnQueue: Bool = true) {
    let due = lock.withLock {
      lines.append(line)
      if !isOnQueue { offQueue.append(line) }
      return waiters.filter { $0.text == line }
    }
    for waiter in due { waiter.signal.signal() }
  }
  var all: [String] { lock.withLock { lines } }
  /// Without the observer's lines.
  var calls: [String] { all.filter { !$0.hasPrefix("call ") } }
  var elsewhere: [String] { lock.withLock { offQueue } }
  var app: TestApp? {
    get { lock.withLock { stored } }
    set { lock.withLock { stored = newValue } }
  }
  /// A start function that keeps the app alive for the test.
  func start(_ behaviour: TestApp.Behaviour = .init()) -> @Sendable () -> Any {
    { [self] in
      let made = TestApp(self, behaviour)
      made.queue.setSpecific(key: key, value: true)
      app = made
      return made
    }
  }
  /// For the real clock: false after a minute.
  func wait(for line: String) -> Bool {
    let signal = DispatchSemaphore(value: 0)
    let isThere = lock.withLock {
      waiters.append((line, signal))
      return lines.contains(line)
    }
    return isThere || signal.wait(timeout: .now() + 60) == .success
  }
}
