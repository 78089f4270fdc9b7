import AppServer
import CallFlow
import Control
import Platform
import Trunking

/// Trunks on the admin port.
///
///     GET  /v1/trunks                 {"trunks":[…]}, in the configuration's order
///     GET  /v1/trunks/NAME            one trunk, `TrunkStatus`
///     POST /v1/trunks/NAME/disable    no new calls over it, those that run go on; until `enable` or a restart
///     POST /v1/trunks/NAME/enable
struct TrunkPages: Sendable {
  let inbox: Inbox

  func handle(_ request: AdminRequest, _ rest: [String], _ answer: @escaping @Sendable (AdminResponse) -> Void) {
    let rest = rest.map { $0.removingPercentEncoding ?? $0 }
    switch (request.method, rest.count) {
    case ("GET", 0):
      struct Body: Encodable { var trunks: [TrunkStatus] }
      ask(answer) { .json(200, Body(trunks: $0)) }
    case ("GET", 1):
      ask(answer) { trunks in trunks.first { $0.trunk == rest[0] }.map { .json(200, $0) } ?? Self.unknown }
    case ("POST", 2) where ["disable", "enable"].contains(rest[1]):
      let (inbox, isDisabled) = (inbox, rest[1] == "disable")
      ask(answer) { trunks in
        guard trunks.contains(where: { $0.trunk == rest[0] && $0.why != .removed }) else { return Self.unknown }
        guard inbox.post(.setTrunk(rest[0], isDisabled: isDisabled)) else { return .text(503, "busy") }
        return .text(200, isDisabled ? "disabled until it is enabled or the gateway restarts" : "enabled")
      }
    default: answer(.text(405, "GET /v1/trunks, GET /v1/trunks/NAME, POST /v1/trunks/NAME/disable, POST /v1/trunks/NAME/enable"))
    }
  }

  private static let unknown = AdminResponse.text(404, "no such trunk")

  private func ask(
    _ answer: @escaping @Sendable (AdminResponse) -> Void, _ render: @escaping @Sendable ([TrunkStatus]) -> AdminResponse
  ) {
    let isAsked = inbox.machine { machine in answer(render(machine.trunkStatuses(at: MonotonicClock.now()))) }
    if !isAsked { answer(.text(503, "busy")) }
  }
}
