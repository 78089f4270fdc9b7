import AppServer
import AppSessions
import Bytes
import CallFlow
import Control
import Devices
import Foundation
import Platform
import PushPolicy
import Synchronization

/// Devices and pushes on the admin port.
///
///     GET  /v1/devices?user=U&device=D      {"devices":[…]}; both may be left out
///     POST /v1/devices/revoke?user=U        no push and no session from now on, for every device of U; &device=D: for one
///     POST /v1/devices/allow?user=U&device=D
///     POST /v1/push/test?user=U&device=D    {"results":[…]}: one push to each device, or to D, and what the service said
struct DevicePages: Sendable {
  let inbox: Inbox
  let push: PushSide
  /// Where the app that is woken connects, and a token that opens no call.
  let gateway: @Sendable () -> String?
  let wakes: WakeTokens

  func handle(_ request: AdminRequest, _ parts: [String], _ answer: @escaping @Sendable (AdminResponse) -> Void) {
    let query = Self.fields(request.query)
    switch (request.method, parts) {
    case ("GET", ["devices"]): list(query["user"], query["device"], answer)
    case ("POST", ["devices", "revoke"]):
      guard let user = query["user"] else { return answer(.text(400, "user=U is missing")) }
      command(answer) { .revoke(user: user, device: query["device"], $0) }
    case ("POST", ["devices", "allow"]):
      guard let user = query["user"], let device = query["device"] else {
        return answer(.text(400, "user=U&device=D is missing"))
      }
      command(answer) { .allow(DeviceKey(user: user, device: device), $0) }
    case ("POST", ["push", "test"]):
      guard let user = query["user"] else { return answer(.text(400, "user=U is missing")) }
      test(user, query["device"], answer)
    default: answer(.text(405, "GET /v1/devices, POST /v1/devices/revoke, POST /v1/devices/allow, POST /v1/push/test"))
    }
  }

  private func list(_ user: String?, _ device: String?, _ answer: @escaping @Sendable (AdminResponse) -> Void) {
    struct Body: Encodable { var devices: [DeviceSummary] }
    let isAsked = inbox.machine { machine in
      let rows = machine.deviceSummaries.filter { (user ?? $0.user) == $0.user && (device ?? $0.device) == $0.device }
      if device != nil, rows.isEmpty { return answer(.text(404, "no such device")) }
      answer(.json(200, Body(devices: rows)))
    }
    if !isAsked { answer(.text(503, "busy")) }
  }

  private func command(
    _ answer: @escaping @Sendable (AdminResponse) -> Void, _ make: (@escaping @Sendable (DeviceError?) -> Void) -> DeviceCommand
  ) {
    let command = make { error in answer(error.map { .text($0 == .unknown ? 404 : 409, $0.text) } ?? .text(200, "done")) }
    if !inbox.post(.devices(command)) { answer(.text(503, "busy")) }
  }

  // MARK: push test

  struct Result: Codable, Sendable {
    var user: String
    var device: String
    var service: PushService
    var environment: PushTarget.Environment
    var topic: String
    var accepted: Bool
    /// The service's HTTP status and word.
    var status: Int?
    var reason: String
    var apnsId: String?
    var attempts: Int
    var ms: Int64
    /// What to do about it.
    var advice: String?
  }

  private func test(_ user: String, _ device: String?, _ answer: @escaping @Sendable (AdminResponse) -> Void) {
    guard let gateway = gateway() else {
      return answer(.text(409, "the configuration has no push section: add one, then send SIGHUP"))
    }
    let (push, wakes) = (push, wakes)
    let isAsked = inbox.machine { machine in
      let known = machine.pushTargets(of: user).filter { (device ?? $0.key.device) == $0.key.device }
      let able = known.compactMap { row in row.target.map { (row.key, $0) } }
      guard !known.isEmpty else {
        return answer(.text(404, "no device registered: the app has sent no device.put with a push token since it was installed"))
      }
      guard !able.isEmpty else {
        return answer(
          .text(
            409,
            "no registration to push to: revoked, or of the wrong environment until the app registers again (trunkline devices list)"
          ))
      }
      let collector = Collector(able.count, answer)
      for (key, target) in able {
        let call = Identifier(random: .system)
        let deadline = WallClock.nowMilliseconds() / 1_000 + PushSide.testWindow.components.seconds
        let wake = wakes.token(Wake(call: call, device: key, firstUseBefore: MonotonicClock.now() + PushSide.testWindow))
        var content = CallPush(
          call: call, deadline: deadline, handleKind: .generic, handle: "push test", name: "Push test", gateway: gateway,
          wake: wake)
        content.sealCaller(for: target, .system)
        push.test(PushKey(call: call, user: key.user, device: key.device), target, content) { collector.add($0) }
      }
    }
    if !isAsked { answer(.text(503, "busy")) }
  }

  /// Answers once every push has ended.
  private final class Collector: Sendable {
    private let results = Mutex<[Result]>([])
    private let count: Int
    private let answer: @Sendable (AdminResponse) -> Void

    init(_ count: Int, _ answer: @escaping @Sendable (AdminResponse) -> Void) { (self.count, self.answer) = (count, answer) }

    func add(_ report: PushReport) {
      struct Body: Encodable { var results: [Result] }
      let target = report.target
      let result = Result(
        user: report.key.user, device: report.key.device, service: target.service, environment: target.environment,
        topic: target.topic,
        accepted: report.outcome == .accepted, status: report.status, reason: report.reason,
        apnsId: target.service == .apns ? PushMachine.identifier(of: report.key).description : nil, attempts: report.attempts,
        ms: report.took.milliseconds, advice: PushAdvice.text(report))
      let all = results.withLock { results in
        results.append(result)
        return results.count == count ? results : nil
      }
      if let all { answer(.json(200, Body(results: all.sorted { $0.device < $1.device }))) }
    }
  }

  /// `a=1&b=x%20y`; the first of a name counts.
  static func fields(_ query: String) -> [String: String] {
    var out: [String: String] = [:]
    for pair in query.split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1).map { $0.replacing("+", with: " ").removingPercentEncoding ?? "" }
      if parts.count == 2, !parts[1].isEmpty, out[parts[0]] == nil { out[parts[0]] = parts[1] }
    }
    return out
  }
}
