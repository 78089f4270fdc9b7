import AppProtocol
import AppSessions
import Bytes
import JSONWebToken

/// Numbers and limits that login tokens carry: kept in the directory, and handed to the store.
extension CallMachine {
  mutating func granted(_ grant: TokenGrant, _ key: DeviceKey, _ session: SessionID, _ turn: inout Turn) {
    // the file has said who this is
    if routing.directory.isListed(key.user) { return }
    func refuse(_ index: Int) {
      let fault = TokenGrant.Fault("numbers[\(index)]", "\(grant.numbers[index]) is another user's here")
      turn.app(.refuse(session, Failure(.auth, msg: fault.description, fatal: true)))
    }
    if let index = grant.numbers.firstIndex(where: { !routing.directory.isFree($0, for: key.user) }) { return refuse(index) }
    do throws(UserGrants.Fault) {
      granted(try routing.directory.grants.take(grant, of: key.user, at: turn.wallNow), &turn)
    } catch {
      switch error {
      case .taken(let index): refuse(index)
      case .full: turn.app(.refuse(session, Failure(.overload, msg: "no room for what the token grants", fatal: true)))
      }
    }
  }

  /// Those of the old routing that the new one allows.
  mutating func replace(_ new: Routing, _ turn: inout Turn) {
    let grants = routing.directory.grants
    routing = new
    routing.directory.grants = grants
    if !grants.isEmpty, new.userSource == nil { granted(routing.directory.grants.keep(new.directory.grantRules), &turn) }
  }

  func granted(_ changes: [UserGrants.Change], _ turn: inout Turn) {
    if !changes.isEmpty { turn.output.actions.append(.grants(changes)) }
  }
}

extension CallMachine.Input {
  /// Comes before anything runs.
  var isOfStore: Bool {
    switch self {
    case .devices, .grants, .blocked: true
    default: false
    }
  }
}
