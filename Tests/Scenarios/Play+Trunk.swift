import AppProtocol
import Bytes
import CallFlow
import MediaSession
import PushPolicy
import SIPDialogs

/// The trunk's end of a play, and its media threads: the caller's leg, and the one to a number that the call is diverted to.
extension Play {
  /// A leg that the gateway made. The user agent reports a cancelled one as failed and then closed, also where its 200 crosses.
  struct Number {
    enum Phase { case invited, answered, over }
    let leg: LegID
    var phase = Phase.invited
    var hasRung = false
  }

  static let mobile = "+15558887777"
  static let carrier = TrunkPeer(
    name: "carrier", domain: "203.0.113.7:5060",
    flow: Flow(transport: .udp, local: World.gatewayAddress, remote: World.carrierAddress))

  static func routing(_ rules: [DiversionTrigger: Diversions.Rule], asks: Bool) -> Routing {
    let webhook = Webhook(url: "https://crm.example/route", key: Redacted([1, 2, 3]))
    var alice = Routing.User(id: "alice", numbers: [World.number])
    alice.diversions = Diversions(rules)
    var bob = Routing.User(id: "bob", numbers: ["+15551230009"])
    let back = [DiversionTrigger.unreached, .noAnswer, .busy, .declined, .mediaFailed].map {
      ($0, Diversions.Rule(.user("alice")))
    }
    bob.diversions = Diversions(Dictionary(uniqueKeysWithValues: back))
    return Routing(
      trunks: [.init(name: "carrier", peer: carrier)], users: [alice, bob],
      inbound: [.init(trunk: "carrier", target: asks ? .hook(.init(webhook)) : .users)],
      outbound: [.init(prefix: "+", trunk: "carrier")])
  }

  mutating func perform(_ command: SIPDialogs.Command) {
    switch command {
    case .respondProvisional(_, let code, _, _): trunk.append("\(code)")
    case .answer:
      trunk.append("200")
      finals += 1
      isAnswered = true
      later(.sip(.acknowledged(leg, sdp: nil)))
    case .refuse(_, let code, _, _, _):
      trunk.append("\(code)")
      finals += 1
      later(.sip(.legClosed(leg)))
    case .bye(number?.leg, _): numberLeft("BYE number", in: .answered)
    case .bye:
      trunk.append("BYE")
      later(.sip(.legClosed(leg)))
    case .invite(let leg, let invite):
      trunk.append("INVITE \(invite.to)")
      numbersCalled += 1
      number = Number(leg: leg)
    case .cancel(number?.leg, _): numberLeft("CANCEL number", in: .invited)
    default: trunk.append("\(command)")
    }
  }

  private mutating func numberLeft(_ text: String, in phase: Number.Phase) {
    guard let number else { return }
    trunk.append(number.phase == phase ? text : "\(text) of a leg that is \(number.phase)")
    self.number?.phase = .over
    if phase == .invited { later(.sip(.failed(number.leg, code: 487, cause: nil, byTransport: false))) }
    later(.sip(.legClosed(number.leg)))
  }

  mutating func perform(_ command: MediaCommand) {
    if closes[command.session] != 0 { mediaAfterEnd += 1 }
    switch command {
    case .setAppRemote(_, let leg, let remote, _, _):
      if let index = devices.firstIndex(where: { $0.name == remote.ufrag }) { devices[index].leg = (leg, remote.generation) }
    case .play(let session, _): playing.insert(session)
    case .bridge(_, let to, _): if closes[to] != 0 { mediaAfterEnd += 1 }
    case .close(let session):
      closes[session, default: 0] += 1
      playing.remove(session)
      later(.media(.closed(session, MediaStatistics())))
    default: break
    }
  }

  // MARK: steps

  mutating func numberRings(early: Bool) {
    guard let leg = number?.leg else { return }
    number?.hasRung = true
    feed(.sip(.progress(leg, code: early ? 183 : 180, sdp: early ? Carrier.sdp() : nil)))
  }

  mutating func numberAnswers() {
    guard let leg = number?.leg else { return }
    number?.phase = .answered
    feed(.sip(.answered(leg, sdp: Carrier.sdp())))
  }

  mutating func numberRefuses() {
    guard let leg = number?.leg else { return }
    number?.phase = .over
    feed(.sip(.failed(leg, code: 486, cause: nil, byTransport: false)))
    feed(.sip(.legClosed(leg)))
  }

  mutating func numberHangsUp() {
    guard let leg = number?.leg else { return }
    number?.phase = .over
    feed(.sip(.byeReceived(leg, nil)))
    feed(.sip(.legClosed(leg)))
  }

  mutating func recordingEnds() {
    guard let session = playing.popFirst() else { return }
    feed(.media(.played(session)))
    if !isOver { strays.append("the recording is over and the call is not") }
  }
}
