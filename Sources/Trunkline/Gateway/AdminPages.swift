import AppServer
import Control
import Foundation
import Telemetry

/// What the admin port answers: health, metrics, and live calls.
///
///     GET  /v1/calls…              see `CallPages`, with POST
///     POST /v1/traces…             see `TracePages`
///     GET  /v1/trunks…             see `TrunkPages`, with POST
///     GET  /v1/nodes…              see `NodePages`, with POST
///     GET  /v1/where, /v1/cluster/calls   see `WherePages`
///     GET  /v1/events              see `EventPages`
///     GET  /v1/log/levels          see `LogPages`, with POST
///     GET  /v1/devices…            see `DevicePages`, with POST /v1/push/test
///     /v1/directory…, /v1/users…   see `DirectoryPages`
///     GET  /v1/hour                how the calls of the last hour came out, `RecentCalls.Hour`
///     GET  /                       the status page
struct AdminPages: Sendable {
  let pages: HealthPages
  let inbox: Inbox
  let calls: CallPages
  let traces: TracePages
  let devices: DevicePages
  let logs: LogPages
  let recent: RecentCalls
  let cluster: ClusterSide?
  let events: EventPages
  let directory: DirectoryPages

  func handle(_ request: AdminRequest, _ answer: @escaping @Sendable (AdminResponse) -> Void) {
    if let page = pages.page(request.path) {
      return answer(AdminResponse(page.status, contentType: page.contentType, body: page.body))
    }
    if request.path == "/", request.method != "POST" { return answer(StatusPage.answer) }
    let parts = request.path.split(separator: "/").map(String.init)
    if parts.starts(with: ["v1", "traces"]) { return traces.handle(request, Array(parts.dropFirst(2)), answer) }
    if parts.starts(with: ["v1", "trunks"]) {
      return TrunkPages(inbox: inbox).handle(request, Array(parts.dropFirst(2)), answer)
    }
    if parts.starts(with: ["v1", "nodes"]) {
      return NodePages(inbox: inbox).handle(request, Array(parts.dropFirst(2)), answer)
    }
    if parts == ["v1", "where"] || parts == ["v1", "cluster", "calls"] {
      return WherePages(inbox: inbox, cluster: cluster).handle(request, Array(parts.dropFirst()), answer)
    }
    if parts.first == "v1", parts.count > 1, ["devices", "push"].contains(parts[1]) {
      return devices.handle(request, Array(parts.dropFirst()), answer)
    }
    if parts.first == "v1", parts.count > 1, ["directory", "users"].contains(parts[1]) {
      return directory.handle(request, Array(parts.dropFirst()), answer)
    }
    if parts.starts(with: ["v1", "log"]) { return answer(logs.answer(request, Array(parts.dropFirst(2)))) }
    if parts == ["v1", "events"] { return answer(events.answer(request)) }
    if parts == ["v1", "hour"], request.method != "POST" { return answer(.json(200, recent.hour())) }
    if parts.starts(with: ["v1", "calls"]) { return calls.handle(request, Array(parts.dropFirst(2)), answer) }
    answer(
      APIError(
        .unknownPage,
        "no such page: / /v1/hour /healthz /readyz /metrics /v1/calls /v1/trunks /v1/nodes /v1/where /v1/cluster/calls /v1/devices /v1/directory /v1/events /v1/log/levels"
      ).response)
  }
}

extension AdminResponse {
  static func json(_ status: Int, _ value: some Encodable) -> AdminResponse {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else { return .text(500, "cannot encode") }
    return AdminResponse(status, contentType: "application/json", body: [UInt8](data))
  }
}
