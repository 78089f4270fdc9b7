import AppleStandIn
import CommandSupport
import Foundation
import Synchronization
import TrunklineBytes

/// The phone of `trunkline-lab handset`: the model on the real clock, for an app in another process.
final class HandsetPhone: Sendable {
  /// Receives each new line of the log; on any thread, one at a time.
  typealias Report = @Sendable (LogLine) -> Void

  private struct State {
    var model: PhoneModel
    var app: UnixSocket?
    /// True if the app's process is to be opened once it has launched.
    var opensOnLaunch = false
    var reported = 0
    /// Each is signalled once, at the next step.
    var waiters: [DispatchSemaphore] = []
  }

  private let content: Mutex<State>
  private let launcher: AppLauncher?
  private let report: Report
  private let started = DispatchTime.now()
  private let timers = DispatchQueue(label: "handset")

  init(_ rules: SystemRules, token: [UInt8], launcher: AppLauncher?, report: @escaping Report) {
    let random = RandomSource { UInt64.random(in: .min ... .max) }
    content = Mutex(State(model: PhoneModel(rules, random: random, epoch: Date(), token: token)))
    (self.launcher, self.report) = (launcher, report)
  }

  private var now: Instant { Instant(nanoseconds: Int64(DispatchTime.now().uptimeNanoseconds - started.uptimeNanoseconds)) }
  /// Time since the phone's start.
  var uptime: Duration { now - .zero }
  /// A copy of the model.
  var state: PhoneModel { content.withLock { $0.model } }

  /// Waits until `condition` holds; false if it does not within `time`.
  func wait(_ time: Duration, until condition: (PhoneModel) -> Bool) -> Bool {
    let deadline = DispatchTime.now() + time.inSeconds
    while true {
      let step = DispatchSemaphore(value: 0)
      let holds = content.withLock { content in
        if condition(content.model) { return true }
        content.waiters.append(step)
        return false
      }
      if holds { return true }
      guard step.wait(timeout: deadline) == .timedOut else { continue }
      return content.withLock { content in
        content.waiters.removeAll { $0 === step }
        return condition(content.model)
      }
    }
  }

  // MARK: steps

  func give(_ input: SystemMachine.Input) { step { $0.handle(input, at: $1) } }

  func step(_ body: (inout PhoneModel, Instant) -> [PhoneRequest]) { change { body(&$0.model, $1) } }

  /// Requests are performed in the step that made them, so that messages keep their order.
  private func change(_ body: (inout State, Instant) -> [PhoneRequest]) {
    let due = content.withLock { content in
      for request in body(&content, now) { perform(request, &content.app) }
      for line in content.model.log[content.reported...] { report(line) }
      content.reported = content.model.log.count
      for waiter in content.waiters { waiter.signal() }
      content.waiters = []
      return content.model.nextTimeout
    }
    guard let due else { return }
    timers.asyncAfter(deadline: .now() + .nanoseconds(max(0, Int((due - now).nanoseconds)))) { [weak self] in self?.runTimers() }
  }

  private func runTimers() {
    if let due = content.withLock({ $0.model.nextTimeout }), due <= now { step { $0.timeout(at: $1) } }
  }

  private func perform(_ request: PhoneRequest, _ app: inout UnixSocket?) {
    switch request {
    case .launch: start()
    case .kill:
      launcher?.kill()
      app?.end()
      app = nil
    case .send(let message):
      guard let app else { return }
      if let line = MessageLines.line(message) { app.write(line) } else { complain("a push of more than 64 KiB is dropped") }
    }
  }

  private func start() {
    guard let launcher else { return complain("a push waits: start the app with APPLE_STAND_IN set") }
    do {
      try launcher.start()
    } catch {
      complain("the app cannot be started: \(error)")
    }
  }

  // MARK: the app's process

  /// Serves one connection at a time; blocks the calling thread until the app disconnects.
  func serve(_ socket: UnixSocket) {
    let isSecond = content.withLock { content in
      if content.app == nil { content.app = socket }
      return content.app !== socket
    }
    if isSecond { return complain("a second process connects; an app has one: refused") }
    var lines = MessageLines()
    while true {
      let bytes = socket.read()
      guard !bytes.isEmpty else { break }
      guard let messages = try? lines.append(bytes, as: AppMessage.self) else {
        complain("a line of the app is longer than \(MessageLines.limit) bytes: its connection is closed")
        break
      }
      for message in messages { receive(message, from: socket) }
    }
    gone(socket)
  }

  private func receive(_ message: AppMessage, from socket: UnixSocket) {
    // Checked within the step: a message may be read before its process ends and handled after that.
    var opens = false
    change { content, now in
      guard content.app === socket else { return [] }
      if case .launched = message { (opens, content.opensOnLaunch) = (content.opensOnLaunch, false) }
      return content.model.receive(message, at: now)
    }
    if opens { give(.foreground(true)) }
  }

  private func gone(_ socket: UnixSocket) {
    change { content, now in
      guard content.app === socket else { return [] }
      content.app = nil
      return content.model.exited(at: now)
    }
  }

  // MARK: the person

  func open() {
    if state.machine.isRunning { return give(.foreground(true)) }
    content.withLock { content in
      content.opensOnLaunch = true
      start()
    }
  }

  func kill() {
    change { content, now in
      perform(.kill, &content.app)
      return content.model.exited(at: now)
    }
  }
}
