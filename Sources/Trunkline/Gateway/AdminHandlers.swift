import AppServer
import Control
import Foundation
import Telemetry

/// The handlers of the admin port. `AdminRow` maps requests to them.
struct AdminHandlers: Sendable {
  let health: HealthHandlers
  let asker: Asker
  /// The status page's files by path.
  let site: [String: AdminResponse]
  let status: StatusBoard
  let calls: CallHandlers
  let traces: TraceHandlers
  let devices: DeviceHandlers
  let logs: LogHandlers
  let recent: RecentCalls
  let locations: LocationHandlers
  let events: EventHandlers
  let directory: DirectoryHandlers
  /// Makes the server request more of streamed answers; any thread.
  let wake: @Sendable () -> Void

  var trunks: TrunkHandlers { TrunkHandlers(asker: asker, wake: wake) }
  var nodes: NodeHandlers { NodeHandlers(asker: asker) }

  /// `AdminRow.all` for these handlers. Rows that are not answered at once run on the thread `pages`: the port's own thread
  /// always reads, sends, and reports the health of the process, whatever is requested.
  var routes: AdminRoutes {
    AdminRoutes(
      AdminRow.all.map { row in
        AdminRoutes.Row(row.route, sink: row.sink?(self)) { [self] request, answer in
          guard !row.isAtOnce else { return run(row, request, answer) }
          guard let share = asker.begin(for: request.client) else { return answer(APIError.tooManyAtOnce.response) }
          asker.run(for: request.client) {
            run(row, request) { response in
              answer(response)
              withExtendedLifetime(share) {}
            }
          }
        }
      })
  }

  private func run(_ row: AdminRow, _ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    do {
      try row.page(self, request, answer)
    } catch {
      answer((error as? APIError ?? APIError(.server, "\(error)")).response)
    }
  }

  /// A file of the status page.
  func file(_ path: String) throws(APIError) -> AdminResponse {
    guard let response = site[path] else { throw APIError(.unknownPage, "no such file of the status page") }
    return response
  }

  /// `/healthz`, `/readyz` or `/metrics`.
  func health(_ path: String, _ answer: AdminRequest.Answer) throws(APIError) {
    guard let page = health.page(path) else { throw APIError(.unknownPage, "no such page") }
    answer(AdminResponse(page.status, contentType: page.contentType, body: page.body))
  }
}

extension APIError {
  /// Control's queue is full.
  static let busy = APIError(.overload, "the gateway is too busy to answer")
  static let tooManyAtOnce = APIError(.tooMany, "16 requests of this token are under way: wait for their answers")
}

extension AdminRequest {
  /// A required field of the query.
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
