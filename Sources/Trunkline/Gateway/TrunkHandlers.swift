import AppServer
import CallFlow
import Control
import Trunking
import TrunklinePlatform

/// Trunks on the admin port.
///
///     GET  /v1/trunks                 {"trunks":[…]}, in the configuration's order
///     GET  /v1/trunks/NAME            one trunk, `TrunkStatus`
///     POST /v1/trunks/NAME/disable    stops new calls, running ones continue; until `enable` or a restart
///     POST /v1/trunks/NAME/enable
struct TrunkHandlers: Sendable {
  let asker: Asker
  /// Makes the server request more of streamed answers; any thread.
  let wake: @Sendable () -> Void

  func list(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    PagedList("trunks", asker, client: request.client, wake: wake) { found in
      guard case .trunks(let page) = found else { return nil }
      return PagedList.Page(page.trunks, next: page.next.map { .trunks(from: $0) })
    }.answer(.trunks(from: 0), answer)
  }

  func show(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    ask(request, answer) { answer(.json(200, $0)) }
  }

  func set(_ request: AdminRequest, isDisabled: Bool, _ answer: @escaping AdminRequest.Answer) {
    ask(request, answer) { [asker] trunk in
      guard trunk.why != .removed else { return answer(Self.unknown) }
      asker.ask(.operation(.setTrunk(trunk.trunk, isDisabled: isDisabled)), for: request.client) { done in
        guard done != nil else { return answer(APIError.busy.response) }
        answer(.text(200, isDisabled ? "disabled until it is enabled or the gateway restarts" : "enabled"))
      }
    }
  }

  private static let unknown = APIError(.unknownTrunk, "no such trunk").response

  private func ask(
    _ request: AdminRequest, _ answer: @escaping AdminRequest.Answer, _ then: @escaping @Sendable (TrunkStatus) -> Void
  ) {
    asker.ask(.trunk(request.argument("trunk")), for: request.client) { found in
      guard case .trunk(let trunk)? = found else { return answer(APIError.busy.response) }
      guard let trunk else { return answer(Self.unknown) }
      then(trunk)
    }
  }
}
