import AppSessions
import HTTP
import Logging
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform
import WebServer

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The app thread's work: feeds the session machine and performs its actions.
final class AppLoop: WebSocketDelegate {
  private struct Asked {
    var answer: HTTPRequest.Answer
    /// The request of `GET /v1/directory`.
    var request: HTTPRequest?
  }

  private let events: AppServer.EventHandler
  private let pages: StaticPages
  private let isReady: @Sendable () -> Bool
  private let directory: AppServer.DirectoryHandler?
  private let keysWanted: @Sendable () -> Void
  private var origins: Set<String>
  private var nodeOrigins: NodeOrigins
  private var machine: SessionMachine
  private var output = SessionMachine.Output()
  private var batch: [AppRequest] = []
  /// Events that control has not accepted yet, oldest first.
  private var waiting: [SessionEvent] = []
  private unowned let sender: any WebSocketSender
  private let orders: Mailbox<AppRequest>
  private let lostCommands: LostCommands
  private let figures: SessionFigures
  /// HTTP requests that wait for control's answer; the session machine bounds them.
  private var asked: [HTTPRequestID: Asked] = [:]
  private var nextRequest: UInt64 = 0
  private let logger: Logger

  init(
    _ settings: AppServer.Settings, sender: any WebSocketSender, requests orders: Mailbox<AppRequest>, lostCommands: LostCommands,
    figures: SessionFigures, logger: Logger, events: @escaping AppServer.EventHandler
  ) {
    (self.sender, self.orders, self.lostCommands, self.figures) = (sender, orders, lostCommands, figures)
    (self.events, self.logger, isReady) = (events, logger, settings.isReady)
    origins = Set(settings.origins.map(WebOrigin.canonical))
    (directory, keysWanted) = (settings.directory, settings.keysWanted)
    pages = StaticPages(pages: settings.pages, isSecure: settings.tls != nil)
    nodeOrigins = NodeOrigins(own: settings.sessions.cluster?.url)
    machine = SessionMachine(
      settings: settings.sessions, random: .system, directoryVersions: settings.directoryVersions)
  }

  func step(_ now: Instant) -> Instant? {
    machine.setWallClock(unixMilliseconds: WallClock.nowMilliseconds(), at: now)
    orders.drain(into: &batch)
    // A command that fitted is newer than one that did not.
    var hasNodes = false
    for order in batch {
      switch order {
      case .command(let command):
        if case .nodes(let nodes) = command {
          hasNodes = true
          nodeOrigins.replace(nodes)
        }
        feed(.command(command), now)
      case .reconfigure(let settings, let origins):
        self.origins = Set(origins.map(WebOrigin.canonical))
        machine.reconfigure(settings, at: now, into: &output)
        runActions()
      case .keys(let verifier, let fetchedAt): machine.replaceKeys(verifier, fetchedAt: fetchedAt)
      }
    }
    batch.removeAll(keepingCapacity: true)
    let lost = lostCommands.drain()
    for device in lost.devices { feed(.commandLost(device), now) }
    for id in lost.welcomes { feed(.welcomeLost(id), now) }
    for (device, session) in lost.replaced { feed(.command(.replace(device, session)), now) }
    if let nodes = lost.nodes, !hasNodes {
      nodeOrigins.replace(nodes)
      feed(.command(.nodes(nodes)), now)
    }
    for id in lost.requests { feed(.command(.httpAnswer(id, .err(Failure(.overload)))), now) }
    if lost.drains { feed(.command(.drain), now) }
    if let next = machine.nextDeadline, next <= now { feed(.timer, now) }
    offerWaiting()
    publish()
    let next = machine.nextDeadline
    return waiting.isEmpty ? next : min(next ?? .distantFuture, now + .milliseconds(Limits.retryMilliseconds))
  }

  private func feed(_ input: SessionMachine.Input, _ now: Instant = MonotonicClock.now()) {
    machine.handle(input, at: now, into: &output)
    runActions()
  }

  /// Sends, pings and closes; the machine may be called again from here (congestion), so the output is copied first.
  private func runActions() {
    while !output.actions.isEmpty || !output.events.isEmpty {
      let now = output
      output.removeAll()
      for action in now.actions {
        switch action {
        case .send(let id, let bytes): sender.send(WebSocketID(id), bytes)
        case .ping(let id): sender.ping(WebSocketID(id))
        case .close(let id, let code): sender.close(WebSocketID(id), code.rawValue)
        case .httpAnswer(let id, let status, let body):
          asked.removeValue(forKey: id)?.answer(HTTPResponse(status, contentType: "application/json", body: body))
        case .httpLogin(let id, let device, let accounts):
          guard let asked = asked.removeValue(forKey: id), let request = asked.request else { continue }
          directory?(device, accounts, request, asked.answer)
        case .httpRefused(let id, let failure): asked.removeValue(forKey: id)?.answer(APIError(failure).response)
        case .httpRedirect(let id, let location):
          asked.removeValue(forKey: id)?.answer(
            HTTPResponse(307, contentType: "application/json", headers: [("Location", location)], body: Array("{}".utf8)))
        }
      }
      if now.wantsKeys { keysWanted() }
      for login in now.refusedLogins { log(login) }
      for request in now.refusedRequests {
        logger.warning(
          "an app's request was refused",
          metadata: [
            "user": "\(request.device.user)", "device": "\(request.device.device)", "request": "\(request.type.rawValue)",
            "why": "\(request.why)",
          ])
      }
      for event in now.events { if !waiting.isEmpty || !events(event) { waiting.append(event) } }
    }
  }

  /// A client that may send a `hello` may send many: the metric counts all of them, the log only as many as its rates allow.
  private func log(_ login: RefusedLogin) {
    var metadata: Logger.Metadata = ["reason": "\(login.refusal.rawValue)", "why": "\(login.why)"]
    if let address = login.address { metadata["address"] = "\(address)" }
    if let user = login.user { metadata["user"] = "\(user)" }
    if let device = login.device { metadata["device"] = "\(device)" }
    logger.notice("login refused", metadata: metadata)
  }

  private func offerWaiting() {
    var handled = 0
    while handled < waiting.count, events(waiting[handled]) { handled += 1 }
    waiting.removeFirst(handled)
  }

  private func publish() {
    figures.publish(
      .init(
        stats: machine.stats, connected: machine.connectedCount, resumable: machine.resumableCount, waitingEvents: waiting.count))
  }

  func webSocketOpened(_ id: WebSocketID, from address: IPAddress) { feed(.opened(ConnectionID(id), address)) }
  func webSocketAlive(_ id: WebSocketID) { feed(.alive(ConnectionID(id))) }
  func webSocketClosed(_ id: WebSocketID, _ code: UInt16?) {
    feed(.closed(ConnectionID(id), code.map(CloseCode.init(rawValue:))))
  }
  func webSocketReceived(_ id: WebSocketID, _ bytes: [UInt8]) {
    // Control is far behind: sockets that add work are closed, and their clients reconnect later.
    if waiting.count >= Limits.waitingEvents { return feed(.congested(ConnectionID(id))) }
    feed(.frame(ConnectionID(id), bytes))
  }
  func webSocketCongested(_ id: WebSocketID) {
    // Called from `send`, inside `runActions`: its loop handles the added output.
    machine.handle(.congested(ConnectionID(id)), at: MonotonicClock.now(), into: &output)
  }
  /// A page's request shows nothing of who sends it.
  func trusts(_ request: HTTPRequest) -> Bool { false }
  func requestReceived(_ request: HTTPRequest, answer: @escaping HTTPRequest.Answer) {
    if request.path == "/v1/ready", ["GET", "HEAD"].contains(request.method) { return answer(readiness(request)) }
    if request.path == "/v1/directory", directory != nil { return directoryAsked(request, answer) }
    guard let text = Self.rejectedCall(request) else {
      return answer(pages.answer(request, connects: nodeOrigins.sources))
    }
    guard let origin = request.origin, allows(origin: WebOrigin.canonical(origin)) else {
      return rejectReceived(request, text, answer: answer)
    }
    if request.method == "OPTIONS" { return answer(.preflight(for: origin)) }
    rejectReceived(request, text) { answer($0.readable(by: origin)) }
  }

  /// The session machine checks whose token it is; control decides whether the device may act.
  private func directoryAsked(_ request: HTTPRequest, _ answer: @escaping HTTPRequest.Answer) {
    guard request.method == "GET" else { return answer(APIError(.badMethod, "GET").response) }
    machine.setWallClock(unixMilliseconds: WallClock.nowMilliseconds(), at: MonotonicClock.now())
    feed(.httpLogin(wait(Asked(answer: answer, request: request)), bearer: Self.bearer(request)))
  }

  private func wait(_ asked: Asked) -> HTTPRequestID {
    nextRequest += 1
    self.asked[HTTPRequestID(nextRequest)] = asked
    return HTTPRequestID(nextRequest)
  }

  private static func bearer(_ request: HTTPRequest) -> String? {
    request.authorization.flatMap { $0.exposed.hasPrefix("Bearer ") ? String($0.exposed.dropFirst(7)) : nil }
  }

  /// `POST /v1/calls/<text>/reject`.
  private func rejectReceived(
    _ request: HTTPRequest, _ text: String, answer: @escaping HTTPRequest.Answer
  ) {
    guard request.method == "POST" else {
      return answer(HTTPResponse(405, contentType: "application/json", headers: [("Allow", "POST")], body: Array("{}".utf8)))
    }
    guard request.body.count <= Limits.rejectBytes else { return answer(.text(413, "at most \(Limits.rejectBytes) bytes")) }
    guard let call = Identifier(text) else { return answer(.text(404, "not a call's id")) }
    feed(.httpReject(wait(Asked(answer: answer)), call: call, bearer: Self.bearer(request), body: request.body))
  }

  /// For load balancers, and for a page whose WebSocket failed: shows which of its headers reached the gateway. The reason for
  /// not being ready is shown at the admin port only: anyone may ask this one.
  private func readiness(_ request: HTTPRequest) -> HTTPResponse {
    let readiness = Readiness(
      ready: isReady(), host: String(request.host.prefix(256)),
      page: request.origin.map { origin in
        let own = ["http", "https"].contains { WebOrigin(origin) == WebOrigin(scheme: $0, host: request.host) }
        return own || allows(origin: WebOrigin.canonical(origin))
      })
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return HTTPResponse(
      readiness.ready ? 200 : 503, contentType: "application/json",
      headers: [("Cache-Control", "no-store"), ("Access-Control-Allow-Origin", "*"), ("Vary", "Origin")],
      body: Array((try? encoder.encode(readiness)) ?? Data("{}".utf8)))
  }

  private struct Readiness: Encodable {
    var ready: Bool
    /// As received: a proxy may have replaced the page's host.
    var host: String
    /// Whether a page of the request's origin may connect; nil: the request names no origin.
    var page: Bool?
  }

  /// The call of `/v1/calls/<id>/reject`.
  private static func rejectedCall(_ request: HTTPRequest) -> String? {
    let parts = request.target.segments
    guard parts.count == 4, parts[0].raw == "v1", parts[1].raw == "calls", parts[3].raw == "reject" else { return nil }
    return parts[2].text
  }
  /// - Parameter origin: in the canonical spelling of `WebOrigin`.
  func allows(origin: String) -> Bool { origins.contains(origin) || nodeOrigins.pages.contains(origin) }
}

extension APIError {
  /// The answer to a device's HTTP request.
  init(_ failure: Failure) {
    let code: Code =
      switch failure.code {
      case .auth: .unauthorized
      case .revoked: .revoked
      case .overload, .tooMany: .overload
      default: .server
      }
    self.init(code, failure.msg ?? failure.code.rawValue)
  }
}

extension ConnectionID {
  fileprivate init(_ id: WebSocketID) { self.init(id.number) }
}

extension WebSocketID {
  /// The session machine returns only ids that it was given.
  fileprivate init(_ id: ConnectionID) { self.init(number: id.number) }
}
