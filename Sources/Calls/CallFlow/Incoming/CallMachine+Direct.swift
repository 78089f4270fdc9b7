import CallModel
import TrunklineSIPDialogs

/// Connects the two calls of a call between users.
extension CallMachine {
  /// Passes the commands for one leg to the other as events, until no command is left.
  mutating func connectDirectLegs(_ step: inout Step) {
    while !step.directCommands.isEmpty {
      for event in direct.events(of: step.directCommands.removeFirst()) { handle(event, &step) }
    }
  }

  /// The id of a new leg of ours that is to be invited.
  mutating func nextLegID(over trunk: Routing.Trunk) -> LegID {
    let number = makeNumber()
    return trunk.name == Routing.directTrunk ? .direct(number, isOutbound: true) : .outbound(number)
  }

  /// The caller as the called side sees it: a number of the user's, or its id toward another user where it has none.
  func callerNumber(of user: String, wanted: String?, account: String?, calling to: Routing.Destination) -> String? {
    routing.callerNumber(of: user, wanted: wanted, account: account)
      ?? (wanted == nil && routing.directRule(to) != nil && routing.user(user) != nil ? user : nil)
  }

  /// Stores the other call in the record of each.
  mutating func introduce(_ call: inout Call, over leg: LegID) {
    guard leg.isDirect, let caller = calls.id(of: leg.directPeer), let user = calls[caller]?.users.owner else { return }
    call.parties.meet(.init(call: caller, user: user))
    calls.change(caller) { $0.parties.meet(.init(call: call.id, user: call.users.owner)) }
  }
}
