import AppServer
import JSONWebToken

/// One operation of the admin API. A request's handler, the scope that it needs, 404, 405 and `Allow` follow from these rows;
/// `AdminRouteTests` compares docs/reference/admin-api.yaml with them.
struct AdminRow: Sendable {
  /// Throws `APIError`s.
  typealias Page = @Sendable (AdminHandlers, AdminRequest, @escaping RouteTable.Answer) throws -> Void
  let route: Route
  let page: Page
  /// Answered on the port's own thread, in microseconds; every other row runs on the thread `pages`.
  let isAtOnce: Bool
  /// For an import: consumes the body as it arrives.
  var sink: (@Sendable (AdminHandlers) -> RouteTable.Sink)?

  static let all: [AdminRow] = process + calls + trunks + cluster + devices + people + traces

  /// Operations of the process.
  private static let process: [AdminRow] = [
    AdminRow(Route("getStatusPage", .get, "/", nil), isAtOnce: true) { try $2($0.file("/")) },
    AdminRow(Route("getStatusFile", .get, "/status/{file}", nil), isAtOnce: true) {
      try $2($0.file("/status/\($1.argument("file"))"))
    },
    AdminRow(Route("getSharedFile", .get, "/ui/{file}", nil), isAtOnce: true) { try $2($0.file("/ui/\($1.argument("file"))")) },
    AdminRow(Route("getHealth", .get, "/healthz", nil), isAtOnce: true) { try $0.health("/healthz", $2) },
    AdminRow(Route("getReadiness", .get, "/readyz", .read), isAtOnce: true) { try $0.health("/readyz", $2) },
    get("getMetrics", "/metrics", .read) { try $0.health("/metrics", $2) },
    get("listEvents", "/v1/events", .read) { $0.events.answer($1, $2) },
    get("getStatus", "/v1/status", .read) { try $0.status.answer($1, $2) },
    get("getHour", "/v1/hour", .read) { $2(.json(200, $0.recent.hour())) },
    get("getLogLevels", "/v1/log/levels", .read) { $2($0.logs.list()) },
    post("setLogLevel", "/v1/log/levels/{module}/{level}", .admin) { $2($0.logs.set($1)) },
  ]

  private static let calls: [AdminRow] = [
    get("listCalls", "/v1/calls", .read) { $0.calls.list($1, $2) },
    post("makeCall", "/v1/calls", .calls) { $0.calls.make($1, $2) },
    get("getCall", "/v1/calls/{call}", .read) { $0.calls.show($1, $2) },
    act("hangUpCall", .hangup), act("holdCall", .hold), act("muteCall", .mute), act("sendDigits", .digits),
    act("playFile", .play), act("recordCall", .record), act("streamCall", .stream), act("transferCall", .transfer),
  ]

  private static let trunks: [AdminRow] = [
    get("listTrunks", "/v1/trunks", .read) { $0.trunks.list($1, $2) },
    get("getTrunk", "/v1/trunks/{trunk}", .read) { $0.trunks.show($1, $2) },
    post("disableTrunk", "/v1/trunks/{trunk}/disable", .admin) { $0.trunks.set($1, isDisabled: true, $2) },
    post("enableTrunk", "/v1/trunks/{trunk}/enable", .admin) { $0.trunks.set($1, isDisabled: false, $2) },
  ]

  private static let cluster: [AdminRow] = [
    get("listNodes", "/v1/nodes", .read) { $0.nodes.list($1, $2) },
    get("getNode", "/v1/nodes/{node}", .read) { $0.nodes.show($1, $2) },
    post("drainNode", "/v1/nodes/{node}/drain", .admin) { $0.nodes.drain($1, $2) },
    post("forgetNode", "/v1/nodes/{node}/forget", .admin) { $0.nodes.forget($1, $2) },
    post("restoreGrants", "/v1/grants/restore", .admin) { $0.nodes.restoreGrants($1, $2) },
    get("getLocations", "/v1/where", .read) { try $0.locations.find($1, $2) },
    get("listClusterCalls", "/v1/cluster/calls", .read) { try $0.locations.calls($1, $2) },
  ]

  private static let devices: [AdminRow] = [
    get("listDevices", "/v1/devices", .read) { try $0.devices.list($1, $2) },
    post("revokeDevices", "/v1/devices/revoke", .users) { try $0.devices.revoke($1, $2) },
    post("allowDevice", "/v1/devices/allow", .users) { try $0.devices.allow($1, $2) },
    post("testPush", "/v1/push/test", .users) { try $0.devices.test($1, $2) },
  ]

  /// Operations on names and numbers of people.
  private static let people: [AdminRow] = [
    get("listDirectories", "/v1/directory", .users) { $0.directory.list($1, $2) },
    write("replaceDirectory", .put, replaces: true), write("changeDirectory", .post, replaces: false),
    AdminRow(Route("emptyDirectory", .delete, "/v1/directory/{scope}", .users)) { $0.directory.empty($1, $2) },
    AdminRow(Route("eraseUser", .delete, "/v1/users/{user}/data", .users)) { $0.directory.erase($1, $2) },
  ]

  /// Operations on traces of calls' signalling, with numbers.
  private static let traces: [AdminRow] = [
    post("startTrace", "/v1/traces", .admin) { try $0.traces.start($1, $2) },
    // reading removes the bytes from the trace: a HEAD would lose them
    AdminRow(Route("readTrace", .get, "/v1/traces/{trace}", .admin, answersHead: false)) { $0.traces.read($1, $2) },
    post("stopTrace", "/v1/traces/{trace}/stop", .admin) { $0.traces.stop($1, $2) },
  ]

  private init(_ route: Route, isAtOnce: Bool = false, _ page: @escaping Page) {
    (self.route, self.isAtOnce, self.page) = (route, isAtOnce, page)
  }

  private static func write(_ operation: String, _ method: Route.Method, replaces: Bool) -> AdminRow {
    var row = AdminRow(Route(operation, method, "/v1/directory/{scope}", .users, acceptsImports: true)) {
      $0.directory.write($1, replaces: replaces, $2)
    }
    row.sink = { pages in { pages.directory.sink($0, replaces: replaces) } }
    return row
  }
  private static func get(_ operation: String, _ path: String, _ scope: APIScope?, _ page: @escaping Page) -> AdminRow {
    AdminRow(Route(operation, .get, path, scope), page)
  }
  private static func post(_ operation: String, _ path: String, _ scope: APIScope, _ page: @escaping Page) -> AdminRow {
    AdminRow(Route(operation, .post, path, scope), page)
  }
  private static func act(_ operation: String, _ action: CallHandlers.Action) -> AdminRow {
    post(operation, "/v1/calls/{call}/\(action.rawValue)", .calls) { $0.calls.act(action, $1, $2) }
  }
}
