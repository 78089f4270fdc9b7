import Foundation
import TrunklineBytes
import TrunklinePlatform

/// State of the stand-in's thread: accepts connections, reports verdicts, sends pushes to apps.
final class SandboxServer {
  private let loop: EventLoop
  private let context: TLSContext
  private let service: TCPListener
  private let apps: TCPListener
  private let report: PushSandbox.Report
  private var rules: SandboxRules
  private var answers: [SandboxAnswer]
  private var next = 0
  private var connections: [Int32: SandboxConnection] = [:]
  private var waiting: [Int32: WaitingApp] = [:]
  /// Pushes that `reorder` holds back until the next push to the token.
  private var held: [String: SandboxPush] = [:]
  private var later: [(at: Instant, run: () -> Void)] = []
  private var timer: EventLoop.TimerID?

  init(
    loop: EventLoop, identity: TLSIdentity, service: TCPListener, apps: TCPListener, options: PushSandbox.Options,
    report: @escaping PushSandbox.Report
  ) {
    (self.loop, self.service, self.apps, self.report) = (loop, service, apps, report)
    context = TLSContext(sharing: identity.context)
    (rules, answers) = (options.rules, options.answers)
  }

  func run() {
    timer = loop.addTimer("answers") { [unowned self] in runLater() }
    do {
      try loop.register(service.fd, .readable) { [unowned self] _ in acceptService() }
      try loop.register(apps.fd, .readable) { [unowned self] _ in acceptApp() }
    } catch {
      report("cannot listen: \(error)")
    }
    loop.run()
    for fd in [service.fd, apps.fd] + connections.keys + waiting.keys { loop.unregister(fd) }
  }

  private func acceptService() {
    while let socket = try? service.accept() {
      guard connections.count < Limits.connections,
        let connection = SandboxConnection(
          socket, context, loop: loop, requested: { [unowned self] in requested($0, $1) },
          closed: { [unowned self] in connections[$0] = nil }, refused: { [report] in report("no TLS: \($0)") })
      else { continue }
      connections[socket.fd] = connection
    }
  }

  private func acceptApp() {
    while let socket = try? apps.accept() {
      guard waiting.count < Limits.connections else { continue }
      let app = WaitingApp(socket, loop: loop) { [unowned self] in waiting[$0] = nil }
      waiting[socket.fd] = app
    }
  }

  // MARK: requests

  private func requested(_ connection: SandboxConnection, _ request: ReceivedRequest) {
    let milliseconds = WallClock.nowMilliseconds()
    let now = milliseconds / 1_000
    let isToken = request.headers[":path"] == "/token"
    switch isToken ? .real : nextAnswer() {
    case .real: finish(rules.judge(request, at: now), request, on: connection)
    case .status(let status): finish(SandboxRules.forced(status, request, milliseconds: milliseconds), request, on: connection)
    case .goAway:
      report("\(Self.name(request)): connection closed with GOAWAY")
      connection.goAway()
    case .drop:
      report("\(Self.name(request)): stream reset without an answer")
      connection.reset(request.stream)
    case .delay(let milliseconds):
      let outcome = rules.judge(request, at: now)
      after(milliseconds) { [unowned self, weak connection] in
        if let connection { finish(outcome, request, on: connection) }
      }
    case .reorder:
      var outcome = rules.judge(request, at: now)
      if let push = outcome.push, held[push.token] == nil, held.count < Limits.keptPushes {
        held[push.token] = push
        outcome.push = nil
      }
      finish(outcome, request, on: connection)
    }
  }

  private func nextAnswer() -> SandboxAnswer {
    guard !answers.isEmpty else { return .real }
    defer { next += 1 }
    return answers[min(next, answers.count - 1)]
  }

  private func finish(_ outcome: SandboxRules.Outcome, _ request: ReceivedRequest, on connection: SandboxConnection) {
    let reason = outcome.status == 200 ? "" : " " + String(decoding: outcome.body.prefix(120), as: UTF8.self)
    report("\(Self.name(request)): \(outcome.status)\(reason)")
    connection.answer(request.stream, outcome)
    guard let push = outcome.push else { return }
    deliver(push)
    if let earlier = held.removeValue(forKey: push.token) { deliver(earlier) }
  }

  private func deliver(_ push: SandboxPush) {
    var count = 0
    for app in waiting.values where app.token == push.token && app.send(push) { count += 1 }
    report(count == 0 ? "no app is waiting for …\(push.token.suffix(6)): dropped" : "delivered to …\(push.token.suffix(6))")
  }

  private static func name(_ request: ReceivedRequest) -> String {
    let path = request.headers[":path"] ?? ""
    // the same id twice is a second attempt at one push
    let id = request.headers["apns-id"].map { " \($0)" } ?? ""
    return path.hasPrefix("/3/device/") ? "apns …\(path.suffix(6))\(id)" : path == "/token" ? "oauth" : "fcm"
  }

  // MARK: later

  private func after(_ milliseconds: Int, _ run: @escaping () -> Void) {
    later.append((loop.now + .milliseconds(milliseconds), run))
    arm()
  }

  private func runLater() {
    let due = later.filter { $0.at <= loop.now }
    later.removeAll { $0.at <= loop.now }
    for item in due { item.run() }
    arm()
  }

  private func arm() {
    if let timer { loop.setTimer(timer, at: later.map(\.at).min()) }
  }
}
