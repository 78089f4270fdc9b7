import AppServer
import JSONWebToken

/// One operation of the admin API. A request's handler, the scope that it needs, 404, 405 and `Allow` follow from these rows;
/// `AdminRouteTests` compares docs/reference/admin-api.yaml with them.
struct AdminRow: Sendable {
  /// Throws `APIError`s.
  typealias Page = @Sendable (AdminHandlers, AdminRequest, @escaping AdminRequest.Answer) throws -> Void
  let route: AdminRoute
  let page: Page
  /// Answered on the port's own thread, in microseconds; every other row runs on the thread `pages`.
  let isAtOnce: Bool
  /// For an import: consumes the body as it arrives.
  var sink: (@Sendable (AdminHandlers) -> AdminRoutes.Sink)?

  static let all: [AdminRow] = process + calls + trunks + cluster + devices + people + traces

  /// Operations of the process.
  private static let process: [AdminRow] = [
    AdminRow(AdminRoute("getStatusPage", .get, "/", nil), isAtOnce: true) { try $2($0.file("/")) },
    AdminRow(AdminRoute("getStatusFile", .get, "/status/{file}", nil), isAtOnce: true) {
      try $2($0.file("/status/\($1.argument("file"))"))
    },
    AdminRow(AdminRoute("getSharedFile", .get, "/ui/{file}", nil), isAtOnce: true) {
      try $2($0.file("/ui/\($1.argument("file"))"))
    },
    AdminRow(AdminRoute("getHealth", .get, "/healthz", nil), isAtOnce: true) { try $0.health("/healthz", $2) },
    AdminRow(AdminRoute("getReadiness", .get, "/readyz", .read), isAtOnce: true) { try $0.health("/readyz", $2) },
    get("getMetrics", at: "/metrics", .read) { try $0.health("/metrics", $2) },
    get("listEvents", at: "/v1/events", .read) { $0.events.answer($1, $2) },
    get("getStatus", at: "/v1/status", .read) { try $0.status.answer($1, $2) },
    get("getHour", at: "/v1/hour", .read) { $2(.json(200, $0.recent.hour())) },
    get("getLogLevels", at: "/v1/log/levels", .read) { $2($0.logs.list()) },
    post("setLogLevel", at: "/v1/log/levels/{module}/{level}", .admin) { $2($0.logs.set($1)) },
  ]

  private static let calls: [AdminRow] = [
    get("listCalls", at: "/v1/calls", .read) { $0.calls.list($1, $2) },
    post("makeCall", at: "/v1/calls", .calls) { $0.calls.make($1, $2) },
    get("getCall", at: "/v1/calls/{call}", .read) { $0.calls.show($1, $2) },
    act("hangUpCall", .hangup), act("holdCall", .hold), act("muteCall", .mute), act("sendDigits", .digits),
    act("playFile", .play), act("recordCall", .record), act("streamCall", .stream), act("transferCall", .transfer),
  ]

  private static let trunks: [AdminRow] = [
    get("listTrunks", at: "/v1/trunks", .read) { $0.trunks.list($1, $2) },
    get("getTrunk", at: "/v1/trunks/{trunk}", .read) { $0.trunks.show($1, $2) },
    post("disableTrunk", at: "/v1/trunks/{trunk}/disable", .admin) { $0.trunks.set($1, isDisabled: true, $2) },
    post("enableTrunk", at: "/v1/trunks/{trunk}/enable", .admin) { $0.trunks.set($1, isDisabled: false, $2) },
  ]

  private static let cluster: [AdminRow] = [
    get("listNodes", at: "/v1/nodes", .read) { $0.nodes.list($1, $2) },
    get("getNode", at: "/v1/nodes/{node}", .read) { $0.nodes.show($1, $2) },
    post("drainNode", at: "/v1/nodes/{node}/drain", .admin) { $0.nodes.drain($1, $2) },
    post("forgetNode", at: "/v1/nodes/{node}/forget", .admin) { $0.nodes.forget($1, $2) },
    post("restoreGrants", at: "/v1/grants/restore", .admin) { $0.nodes.restoreGrants($1, $2) },
    get("getLocations", at: "/v1/where", .read) { try $0.locations.find($1, $2) },
    get("listClusterCalls", at: "/v1/cluster/calls", .read) { try $0.locations.calls($1, $2) },
  ]

  private static let devices: [AdminRow] = [
    get("listDevices", at: "/v1/devices", .read) { try $0.devices.list($1, $2) },
    post("revokeDevices", at: "/v1/devices/revoke", .users) { try $0.devices.revoke($1, $2) },
    post("allowDevice", at: "/v1/devices/allow", .users) { try $0.devices.allow($1, $2) },
    post("testPush", at: "/v1/push/test", .users) { try $0.devices.test($1, $2) },
  ]

  /// Operations on names and numbers of people.
  private static let people: [AdminRow] = [
    get("listDirectories", at: "/v1/directory", .users) { $0.directory.list($1, $2) },
    write("replaceDirectory", .put, replaces: true), write("changeDirectory", .post, replaces: false),
    AdminRow(AdminRoute("emptyDirectory", .delete, "/v1/directory/{scope}", .users)) { $0.directory.empty($1, $2) },
    AdminRow(AdminRoute("eraseUser", .delete, "/v1/users/{user}/data", .users)) { $0.directory.erase($1, $2) },
  ]

  /// Operations on traces of calls' signalling, with numbers.
  private static let traces: [AdminRow] = [
    post("startTrace", at: "/v1/traces", .admin) { try $0.traces.start($1, $2) },
    // reading removes the bytes from the trace: a HEAD would lose them
    AdminRow(AdminRoute("readTrace", .get, "/v1/traces/{trace}", .admin, answersHead: false)) { $0.traces.read($1, $2) },
    post("stopTrace", at: "/v1/traces/{trace}/stop", .admin) { $0.traces.stop($1, $2) },
  ]

  private init(_ route: AdminRoute, isAtOnce: Bool = false, _ page: @escaping Page) {
    (self.route, self.isAtOnce, self.page) = (route, isAtOnce, page)
  }

  private static func write(_ operation: String, _ method: AdminRoute.Method, replaces: Bool) -> AdminRow {
    var row = AdminRow(AdminRoute(importing: operation, method, "/v1/directory/{scope}", .users)) {
      $0.directory.write($1, replaces: replaces, $2)
    }
    row.sink = { pages in { pages.directory.sink($0, replaces: replaces) } }
    return row
  }
  private static func get(_ operation: String, at path: String, _ scope: APIScope?, _ page: @escaping Page) -> AdminRow {
    AdminRow(AdminRoute(operation, .get, path, scope), page)
  }
  private static func post(_ operation: String, at path: String, _ scope: APIScope, _ page: @escaping Page) -> AdminRow {
    AdminRow(AdminRoute(operation, .post, path, scope), page)
  }
  private static func act(_ operation: String, _ action: CallHandlers.Action) -> AdminRow {
    post(operation, at: "/v1/calls/{call}/\(action.rawValue)", .calls) { $0.calls.act(action, $1, $2) }
  }
}
