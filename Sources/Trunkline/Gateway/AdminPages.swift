import AppServer
import Control
import Foundation
import Telemetry

/// What the admin port answers. Which request is answered by what: `AdminRow`.
struct AdminPages: Sendable {
  let health: HealthPages
  let inbox: Inbox
  let calls: CallPages
  let traces: TracePages
  let devices: DevicePages
  let logs: LogPages
  let recent: RecentCalls
  let cluster: ClusterSide?
  let events: EventPages
  let directory: DirectoryPages

  var trunks: TrunkPages { TrunkPages(inbox: inbox) }
  var nodes: NodePages { NodePages(inbox: inbox) }
  var places: WherePages { WherePages(inbox: inbox, cluster: cluster) }

  /// `AdminRow.all` for these pages.
  var routes: RouteTable {
    RouteTable(
      AdminRow.all.map { row in
        RouteTable.Row(row.route, sink: row.sink?(self)) { request, answer in
          do {
            try row.page(self, request, answer)
          } catch {
            answer((error as? APIError ?? APIError(.server, "\(error)")).response)
          }
        }
      })
  }

  /// `/healthz`, `/readyz` or `/metrics`.
  func health(_ path: String, _ answer: RouteTable.Answer) throws(APIError) {
    guard let page = health.page(path) else { throw APIError(.unknownPage, "no such page") }
    answer(AdminResponse(page.status, contentType: page.contentType, body: page.body))
  }
}

extension APIError {
  /// Control does not take the question.
  static let busy = APIError(.overload, "the gateway is too busy to answer")
}

extension AdminRequest {
  /// A field of the query that the operation cannot do without.
  func needed(_ name: String) throws(APIError) -> String {
    guard let value = try queryValue(name) else { throw APIError(.badRequest, "\(name)= is missing in the query") }
    return value
  }
}

extension AdminResponse {
  static func json(_ status: Int, _ value: some Encodable) -> AdminResponse {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else { return APIError(.server, "cannot encode").response }
    return AdminResponse(status, contentType: "application/json", body: [UInt8](data))
  }
}
