import PhoneNumbers
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineRTP
import TrunklineSIPDialogs

/// Calls between users (`routes.users: direct`). Each is two calls, one of the caller and one of the called user, with the rules
/// of an outgoing and of an incoming call. A trunk that is in no configuration, `direct`, replaces a carrier.
extension Routing {
  /// Its name in records, metrics and events; no trunk of the configuration has this name.
  public static let directTrunk = "direct"

  /// Opus first, so that it is relayed untouched. An app's hold is signalled to the other app.
  package static let direct: Trunk = {
    let here = SocketAddress(.loopback, 0)
    let peer = TrunkPeer(name: directTrunk, domain: directTrunk, flow: Flow(transport: .udp, local: here, remote: here))
    return Trunk(
      name: directTrunk, peer: peer, codecs: [.opus, .g722, .pcmu, .pcma], prefersRelay: true,
      rules: TrunkRules(reliability: .off, sessionTimer: nil), signalsHold: true)
  }()

  /// The callee of a call by an app, or by a program for a user.
  package struct Destination {
    /// As dialled, E.164 if that is known; the id of a user without a number.
    package var number: String
    /// The number to call over a trunk; nil: a user, named by its id.
    package var dialled: DialledNumber?
    /// The callee is a user, named by its id.
    package var isUser: Bool { dialled == nil }
    package var isEmergency: Bool { dialled?.kind == .emergency }

    package init(number: String, dialled: DialledNumber? = nil) {
      (self.number, self.dialled) = (number, dialled)
    }
  }

  /// A number as dialled, or the id of a user if users are connected directly; nil: neither. Throws what is wrong with a number.
  package func destination(_ to: Handle, by user: String) throws(NumberRefusal) -> Destination? {
    if to.k == .phone {
      let number = try dialled(to.h, by: user)
      // as its user's settings write it
      return Destination(number: (connectsUsers ? directory.owner(of: number.text)?.number : nil) ?? number.text, dialled: number)
    }
    guard connectsUsers, let called = self.user(to.h) else { return nil }
    return Destination(number: called.numbers.first ?? called.id)
  }

  /// The route to another user; nil: no user has the number, or trunks carry such calls.
  package func directRule(_ to: Destination) -> OutboundRule? {
    guard connectsUsers, to.isUser || isOwn(to.number) else { return nil }
    return OutboundRule(prefix: to.number, trunk: Self.directTrunk)
  }

  /// The target of a call between users.
  package func directRoute(called number: String) -> InboundRoute? {
    if let owner = directory.owner(of: number) { return InboundRoute(user: owner.user, number: owner.number) }
    return directory.contains(number) ? InboundRoute(user: number, number: number) : nil
  }
}
