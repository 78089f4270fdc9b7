import Dispatch
public import Foundation
import TrunklineBytes

/// A phone in this process: an app's real delegate code runs on it, and a test plays the person and the network.
///
/// ```swift
/// let iphone = StandInPhone(.strict, clock: .virtual)
/// iphone.launch { MyApp() }  // makes its CXProvider and PKPushRegistry
/// iphone.push(#"{"call":"…"}"#)
/// iphone.tap(.answer)
/// iphone.advance(.seconds(7))
/// let broken = iphone.violations  // [] or ["R1: …"]
/// ```
/// Objects that the app makes in `launch`, in callbacks and in tasks started there belong to this phone; those made elsewhere
/// belong to the phone that launched last. With a virtual clock each call returns when the delegates' queues have run all work
/// that it caused, so that the next timer sees their answers. A call waits for work that an app moves to its own queues only
/// after `alsoDrains(_:)`.
///
/// Any thread but a delegate's: inside a callback a call returns before its effects.
public final class StandInPhone: @unchecked Sendable {  // mutable state is guarded by `access`
  public enum Clock: Sendable {
    /// Time passes only in `advance`.
    case virtual
    /// Time passes by itself; timers run on a queue of the phone.
    case real
  }

  let access = NSLock()
  var model: PhoneModel
  var now = Instant.zero
  var process: AppProcess?
  private var extensionProcess: AppProcess?
  private var main: (@Sendable () -> Any)?
  /// The result of the app's start; it lives as long as its process.
  private var root: Any?
  private var launchIsDue = false
  private var deliveries = 0
  /// Ended processes, one per launch: their objects may still call them.
  private var dead: [AppProcess] = []
  private var extraQueues: [DelegateQueue] = []
  private let clock: Clock
  private let started = DispatchTime.now()
  let timers = DispatchQueue(label: "stand-in phone")

  /// `date`: the phone's date at its start; `seed`: seeds the random choice of R3.
  public init(_ rules: SystemRules = .strict, clock: Clock = .virtual, seed: UInt64 = 1, date: Date = Date()) {
    self.clock = clock
    let token = (0..<32).map { UInt8(truncatingIfNeeded: seed &* 31 &+ $0) }
    model = PhoneModel(rules, random: .seeded(seed), epoch: date, token: token)
  }

  deinit { process?.die() }

  // MARK: the app

  /// The user opens the app; `main` starts it, and runs again for each later process. Its result lives as long as the process.
  /// It runs on the caller's thread, or on the thread of the push that starts it again.
  public func launch(_ main: @escaping @Sendable () -> Any) {
    if isRunning { kill() }
    access.withLock { self.main = main }
    start()
    give(.foreground(true))
  }

  /// The app is installed, but does not run: the first push starts it.
  public func install(_ main: @escaping @Sendable () -> Any) { access.withLock { self.main = main } }

  /// The app's process ends at once. Its objects get no callbacks, and their calls are ignored and counted.
  public func kill() {
    died()
    change { $0.exited(at: $1) }
  }

  /// Number of calls by ended processes: from timers and tasks that would have ended with a real process.
  public var ignoredCalls: Int { access.withLock { dead }.reduce(0) { $0 + $1.ignoredCalls } }

  /// Runs code as the app's notification service extension does (R15).
  public func notificationExtension<T>(_ body: () throws -> T) rethrows -> T {
    let made = makeProcess()
    access.withLock { extensionProcess = made }
    defer {
      pump()
      made.drain()
      access.withLock { extensionProcess = nil }
    }
    return try AppProcess.$isExtension.withValue(true) { try AppProcess.$running.withValue(made, operation: body) }
  }

  /// Runs code as the app's process does: for what a test reads from `AVAudioSession.sharedInstance()` and the like.
  public func inApp<T>(_ body: () throws -> T) rethrows -> T {
    defer { pump() }
    return try AppProcess.$running.withValue(access.withLock { process }, operation: body)
  }

  private func makeProcess() -> AppProcess {
    AppProcess { [weak self] sender, message in self?.receive(message, from: sender) }
  }

  /// With a real clock several threads may see that the app is due: one of them starts it.
  private func start(onlyIfDue: Bool = false) {
    if !onlyIfDue { died() }
    let made = makeProcess()
    let removed = access.withLock { () -> (@Sendable () -> Any)? in
      guard let main, !onlyIfDue || launchIsDue && process == nil else { return nil }
      process = made
      launchIsDue = false
      return main
    }
    guard let main = removed else { return }
    made.receive(.unlockedOnce(access.withLock { model.machine.isUnlockedOnce }))
    CurrentPhone.install(made)
    let root = AppProcess.$running.withValue(made, operation: main)
    access.withLock { self.root = root }
    step { $0.receive(.launched(process: 0), at: $1) }
    pump()
  }

  private func died() {
    let (old, oldRoot) = access.withLock {
      defer { (process, root) = (nil, nil) }
      return (process, root)
    }
    guard let old else { return }
    old.die()
    access.withLock { dead.append(old) }
    withExtendedLifetime(oldRoot) {}
  }

  // MARK: steps

  /// A message from the app, on any thread. Its effects are posted before this returns, and so in order.
  /// A message of a process that has ended is ignored: a call that it reports would stay on the screen.
  private func receive(_ message: AppMessage, from sender: AppProcess) {
    step { [self] model, now in
      guard sender === process || sender === extensionProcess else {
        sender.countIgnoredCall()
        return []
      }
      return model.receive(message, at: now)
    }
  }

  func give(_ input: SystemMachine.Input) { change { $0.handle(input, at: $1) } }

  func change(_ body: (inout PhoneModel, Instant) -> [PhoneRequest]) {
    step(body)
    pump()
  }

  private func step(_ body: (inout PhoneModel, Instant) -> [PhoneRequest]) {
    let (killed, oldRoot): (AppProcess?, Any?) = access.withLock {
      if clock == .real { now = Instant(nanoseconds: Int64(DispatchTime.now().uptimeNanoseconds - started.uptimeNanoseconds)) }
      var killed: AppProcess?
      for order in body(&model, now) {
        deliveries += 1
        switch order {
        case .launch: launchIsDue = true
        case .kill: (killed, process) = (process, nil)
        case .send(.extensionPushed(let id, let error)):
          (extensionProcess ?? process)?.receive(.extensionPushed(id, error: error))
        case .send(let message): process?.receive(message)
        }
      }
      guard killed != nil else { return (nil, nil) }
      defer { root = nil }
      return (killed, root)
    }
    if let killed {
      killed.die()
      access.withLock { dead.append(killed) }
    }
    withExtendedLifetime(oldRoot) {}  // releases the app's objects outside the lock: their deinitializers may call the phone
    if clock == .real { timers.async { [weak self] in self?.runTimers() } }
  }

  /// Runs until the queues are idle: the effects of a callback may cause another.
  private func pump() {
    var seen = -1
    while true {
      start(onlyIfDue: true)
      let (count, current, queues) = access.withLock { (deliveries, process, extraQueues) }
      if clock == .real || count == seen { return }
      seen = count
      current?.drain()
      for queue in queues { queue.drain() }
    }
  }

  /// Adds a queue of the app to those that calls wait for, besides those that the app gave to the surface.
  public func alsoDrains(_ queue: DispatchQueue) { access.withLock { extraQueues.append(DelegateQueue(queue)) } }

  // MARK: time

  public var date: Date { access.withLock { model.date(at: now) } }
  /// Time since the phone's start.
  public var uptime: Duration { access.withLock { now - .zero } }

  /// Virtual time passes: timer by timer, each with all its effects before the next one. `.zero` waits for the effects of what a
  /// test has done.
  public func advance(_ time: Duration) {
    guard clock == .virtual else { return }
    pump()
    let end = access.withLock { now + time }
    while let due = access.withLock({ model.nextTimeout }), due <= end {
      access.withLock { now = max(now, due) }
      change { $0.timeout(at: $1) }
    }
    access.withLock { now = end }
  }

  private func runTimers() {
    start(onlyIfDue: true)
    let now = Instant(nanoseconds: Int64(DispatchTime.now().uptimeNanoseconds - started.uptimeNanoseconds))
    guard let due = access.withLock({ model.nextTimeout }) else { return }
    guard due > now else { return step { $0.timeout(at: $1) } }
    timers.asyncAfter(deadline: .now() + .nanoseconds(Int((due - now).nanoseconds))) { [weak self] in self?.runDueTimers() }
  }
  private func runDueTimers() {
    let now = Instant(nanoseconds: Int64(DispatchTime.now().uptimeNanoseconds - started.uptimeNanoseconds))
    if let due = access.withLock({ model.nextTimeout }), due <= now { step { $0.timeout(at: $1) } }
  }
}
