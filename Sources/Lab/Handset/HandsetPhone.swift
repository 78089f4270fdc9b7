import AppleStandIn
import CommandSupport
import Foundation
import TrunklineBytes

/// The phone of `trunkline-lab handset`: the model on the real clock, for an app in another process.
final class HandsetPhone: @unchecked Sendable {  // mutable state is guarded by `changed`
  /// Receives each new line of the log; on any thread, one at a time.
  typealias Report = @Sendable (LogLine) -> Void

  private let changed = NSCondition()
  private var model: PhoneModel
  private var app: UnixSocket?
  /// True if the app's process is to be opened once it has launched.
  private var opensOnLaunch = false
  private var reported = 0
  private let launcher: AppLauncher?
  private let report: Report
  private let started = DispatchTime.now()
  private let timers = DispatchQueue(label: "handset")

  init(_ rules: SystemRules, token: [UInt8], launcher: AppLauncher?, report: @escaping Report) {
    let random = RandomSource { UInt64.random(in: .min ... .max) }
    model = PhoneModel(rules, random: random, epoch: Date(), token: token)
    (self.launcher, self.report) = (launcher, report)
  }

  private var now: Instant { Instant(nanoseconds: Int64(DispatchTime.now().uptimeNanoseconds - started.uptimeNanoseconds)) }
  /// Time since the phone's start.
  var uptime: Duration { now - .zero }
  /// A copy of the model.
  var state: PhoneModel { locked { model } }

  private func locked<T>(_ body: () -> T) -> T {
    changed.lock()
    defer { changed.unlock() }
    return body()
  }

  /// Waits until `condition` holds; false if it does not within `time`.
  func wait(_ time: Duration, until condition: (PhoneModel) -> Bool) -> Bool {
    let deadline = Date(timeIntervalSinceNow: time.inSeconds)
    return locked {
      while !condition(model) {
        if !changed.wait(until: deadline) { return condition(model) }
      }
      return true
    }
  }

  // MARK: steps

  func give(_ input: SystemMachine.Input) { step { $0.handle(input, at: $1) } }

  /// Requests are performed in the step that made them, so that messages keep their order.
  func step(_ body: (inout PhoneModel, Instant) -> [PhoneRequest]) {
    locked {
      for request in body(&model, now) { perform(request) }
      for line in model.log[reported...] { report(line) }
      reported = model.log.count
      changed.broadcast()
    }
    let due = locked { model.nextTimeout }
    guard let due else { return }
    timers.asyncAfter(deadline: .now() + .nanoseconds(max(0, Int((due - now).nanoseconds)))) { [weak self] in self?.runTimers() }
  }

  private func runTimers() {
    if let due = locked({ model.nextTimeout }), due <= now { step { $0.timeout(at: $1) } }
  }

  private func perform(_ request: PhoneRequest) {
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
    let isAccepted = locked {
      if app == nil { app = socket }
      return app !== socket
    }
    if isAccepted { return complain("a second process connects; an app has one: refused") }
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
    var isCurrent = false
    step { model, now in
      isCurrent = app === socket
      return isCurrent ? model.receive(message, at: now) : []
    }
    guard isCurrent, case .launched = message, locked({ opensOnLaunch }) else { return }
    locked { opensOnLaunch = false }
    give(.foreground(true))
  }

  private func gone(_ socket: UnixSocket) {
    step { model, now in
      guard app === socket else { return [] }
      app = nil
      return model.exited(at: now)
    }
  }

  // MARK: the person

  func open() {
    if state.machine.isRunning { return give(.foreground(true)) }
    locked {
      opensOnLaunch = true
      start()
    }
  }

  func kill() {
    step { model, now in
      perform(.kill)
      return model.exited(at: now)
    }
  }
}
