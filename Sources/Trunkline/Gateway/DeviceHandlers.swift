import AppServer
import AppSessions
import CallFlow
import Control
import Devices
import Foundation
import PushPolicy
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// Devices and pushes on the admin port.
///
///     GET  /v1/devices?user=U&device=D      {"devices":[…]}; both may be left out
///     POST /v1/devices/revoke?user=U        no push and no session from now on, for every device of U; &device=D: for one
///     POST /v1/devices/allow?user=U&device=D
///     POST /v1/push/test?user=U&device=D    {"results":[…]}: one push to each device, or to D, and the service's answer
struct DeviceHandlers: Sendable {
  let asker: Asker
  let push: PushComponent
  /// Makes the server request more of the answers that are streams; any thread.
  let wake: @Sendable () -> Void
  /// The URL where a woken app connects; and the source of tokens that open no call.
  let gateway: @Sendable () -> String?
  let wakes: WakeTokens

  func list(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) throws(APIError) {
    let filter = DeviceFilter(user: try request.queryValue("user"), device: try request.queryValue("device"))
    PagedList("devices", asker, client: request.client, wake: wake) { found in
      guard case .devices(let page) = found else { return nil }
      let rows = page.rows.sorted { ($0.key.user, $0.key.device) < ($1.key.user, $1.key.device) }
      return PagedList.Page(rows.map(\.summary), next: page.next.map { .devices(filter, after: $0) })
    }.answer(
      .devices(filter, after: nil), ifEmpty: filter.device.map { _ in APIError(.unknownDevice, "no such device") }, answer)
  }

  func revoke(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) throws(APIError) {
    perform(.revoke(user: try request.needed("user"), device: try request.queryValue("device")), request, answer)
  }

  func allow(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) throws(APIError) {
    perform(
      .allow(DeviceKey(user: try request.needed("user"), device: try request.needed("device"))), request, answer)
  }

  private func perform(_ operation: ControlOperation, _ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    asker.ask(.operation(operation), for: request.client) { done in
      switch done {
      case .operation(.deviceRefused(let error)):
        answer(APIError(error == .unknown ? .unknownDevice : .badState, error.text).response)
      case .operation: answer(.text(200, "done"))
      default: answer(APIError.busy.response)
      }
    }
  }

  // MARK: push test

  struct Result: Codable, Sendable {
    var user: String
    var device: String
    var service: PushService
    var environment: PushTarget.Environment
    var topic: String
    var accepted: Bool
    /// The service's HTTP status and reason.
    var status: Int?
    var reason: String
    var apnsId: String?
    var attempts: Int
    var ms: Int64
    /// What to do about a failure.
    var advice: String?
  }

  func test(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) throws(APIError) {
    let (user, device) = (try request.needed("user"), try request.queryValue("device"))
    guard let gateway = gateway() else {
      throw APIError(.badState, "the configuration has no push section: add one, then send SIGHUP")
    }
    let (push, wakes) = (push, wakes)
    asker.ask(.pushTargets(user: user), for: request.client) { found in
      guard case .pushTargets(let rows)? = found else { return answer(APIError.busy.response) }
      let known = rows.filter { (device ?? $0.key.device) == $0.key.device }
      let able = known.compactMap { row in row.target.map { (row.key, $0) } }
      guard !known.isEmpty else {
        return answer(
          APIError(
            .unknownDevice, "no device registered: the app has sent no device.put with a push token since it was installed"
          ).response)
      }
      guard !able.isEmpty else {
        return answer(
          APIError(
            .badState,
            "no registration to push to: revoked, or of the wrong environment until the app registers again (trunkline devices list)"
          ).response)
      }
      let collector = Collector(able.count, answer)
      for (key, target) in able {
        let call = Identifier(random: .system)
        let deadline = WallClock.nowMilliseconds() / 1_000 + PushComponent.testWindow.components.seconds
        let wake = wakes.token(Wake(call: call, device: key, firstUseBefore: MonotonicClock.now() + PushComponent.testWindow))
        var content = CallPush(
          call: call, deadline: deadline, handleKind: .generic, handle: "push test", name: "Push test", gateway: gateway,
          wake: wake)
        content.sealCaller(for: target, .system)
        push.test(PushKey(call: call, user: key.user, device: key.device), target, content) { collector.add($0) }
      }
    }
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
        ms: report.elapsed.milliseconds, advice: PushAdvice.text(report))
      let all = results.withLock { results in
        results.append(result)
        return results.count == count ? results : nil
      }
      if let all { answer(.json(200, Body(results: all.sorted { $0.device < $1.device }))) }
    }
  }
}
