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

  func list(_ answer: @escaping RouteTable.Answer) {
    struct Body: Encodable { var trunks: [TrunkStatus] }
    ask(answer) { .json(200, Body(trunks: $0)) }
  }

  func show(_ request: AdminRequest, _ answer: @escaping RouteTable.Answer) {
    let name = request.argument("trunk")
    ask(answer) { trunks in trunks.first { $0.trunk == name }.map { .json(200, $0) } ?? Self.unknown }
  }

  func set(_ request: AdminRequest, isDisabled: Bool, _ answer: @escaping RouteTable.Answer) {
    let (name, inbox) = (request.argument("trunk"), inbox)
    ask(answer) { trunks in
      guard trunks.contains(where: { $0.trunk == name && $0.why != .removed }) else { return Self.unknown }
      guard inbox.post(.setTrunk(name, isDisabled: isDisabled)) else { return APIError.busy.response }
      return .text(200, isDisabled ? "disabled until it is enabled or the gateway restarts" : "enabled")
    }
  }

  private static let unknown = APIError(.unknownTrunk, "no such trunk").response

  private func ask(
    _ answer: @escaping RouteTable.Answer, _ render: @escaping @Sendable ([TrunkStatus]) -> AdminResponse
  ) {
    let isAsked = inbox.machine { machine in answer(render(machine.trunkStatuses(at: MonotonicClock.now()))) }
    if !isAsked { answer(APIError.busy.response) }
  }
}
