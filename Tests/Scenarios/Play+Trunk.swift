import CallFlow
import CallModel
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// The trunk's end of a play, and its media threads: the caller's leg, and the one to a number that the call is diverted to.
extension Play {
  /// A leg that the gateway made.
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

  static let gateway = TrunkPeer(
    name: "gateway", domain: "198.51.100.9:5060",
    flow: Flow(transport: .udp, local: World.carrierAddress, remote: World.gatewayAddress))

  static func routing(_ rules: [DiversionTrigger: Diversions.Rule], asks: Bool) -> Routing {
    let webhook = Webhook(url: "https://crm.example/route", key: Redacted([1, 2, 3]))
    var alice = Routing.User(id: "alice", numbers: [World.number])
    alice.diversions = Diversions(rules)
    var bob = Routing.User(id: "bob", numbers: ["+15551230009"])
    let back = [DiversionTrigger.unreached, .noAnswer, .busy, .declined, .mediaFailed].map {
      ($0, Diversions.Rule(.user("alice")))
    }
    bob.diversions = Diversions(Dictionary(uniqueKeysWithValues: back))
    let rules = TrunkRules(allowsTransfer: true)
    return Routing(
      trunks: [.init(name: "carrier", peer: carrier, rules: rules, signalsHold: true)], users: [alice, bob],
      inbound: [.init(trunk: "carrier", target: asks ? .hook(.init(webhook)) : .users)],
      outbound: [.init(prefix: "+", trunk: "carrier")])
  }

  /// What the trunk's end hears of the gateway.
  mutating func received(_ event: UserAgent.Event) {
    switch event {
    case .progress(leg, let code, _): if code > 100 { trunk.append("\(code)") }
    case .answered(leg, _):
      trunk.append("200")
      finals += 1
      isAnswered = true
    case .failed(leg, let code, _, _):
      trunk.append("\(code)")
      finals += 1
    case .byeReceived(leg, _): trunk.append("BYE")
    case .inviteReceived(let leg, let invite):
      trunk.append("INVITE \(invite.to.number)")
      numbersCalled += 1
      number = Number(leg: leg)
    case .cancelled(number?.leg, _): numberLeft("CANCEL number", in: .invited)
    case .byeReceived(number?.leg, _): numberLeft("BYE number", in: .answered)
    case .offerWanted(let leg): trunkDoes(.offer(leg, sdp: Carrier.sdp(direction: "sendonly")))
    case .reinviteReceived(let leg, let sdp):
      let isHold = sdp?.contains("a=sendonly") == true
      trunkDoes(.answerReinvite(leg, sdp: Carrier.sdp(direction: isHold ? "recvonly" : "sendrecv")))
    case .referProgress(_, let code, _): trunk.append("NOTIFY \(code ?? 0)")
    case .ackTimedOut, .sessionLost: strays.append("\(event)")
    default: break
    }
  }

  private mutating func numberLeft(_ text: String, in phase: Number.Phase) {
    guard let number else { return }
    trunk.append(number.phase == phase ? text : "\(text) of a leg that is \(number.phase)")
    self.number?.phase = .over
  }

  mutating func perform(_ command: MediaCommand) {
    if closes[command.session] != 0 { mediaAfterEnd += 1 }
    switch command {
    case .setAppRemote(_, let leg, let remote, _, _):
      if let index = devices.firstIndex(where: { $0.name == remote.ufrag }) { devices[index].leg = (leg, remote.generation) }
    case .play(let session, let audio): if audio == nil { playing.remove(session) } else { playing.insert(session) }
    case .bridge(_, let to, _): if closes[to] != 0 { mediaAfterEnd += 1 }
    case .close(let session):
      closes[session, default: 0] += 1
      playing.remove(session)
      later(.media(.closed(session, MediaStatistics())))
    default: break
    }
  }

  // MARK: steps

  /// Audio flows between the caller and another party.
  var isTalking: Bool { isAnswered && !isOver && !trunk.contains("BYE") }
  var winner: Int? { devices.firstIndex { $0.hasWon && $0.connection != nil && $0.terminals.isEmpty } }

  /// An app's hold and the caller's own meet on the wire.
  mutating func glare() {
    guard let winner, let call else { return }
    cross {
      $0.send(.callHold(CallHold(on: true)), winner, call: call)
      $0.trunkDoes(.modify($0.leg))
    }
  }

  /// The caller hangs up, or gives up, while the number answers.
  mutating func hangUpCrossesAnswer() {
    cross {
      $0.trunkDoes($0.finals == 0 ? .cancel($0.leg, nil) : .bye($0.leg, nil))
      $0.numberAnswers()
    }
  }

  mutating func refer() {
    isReferred = true
    trunkDoes(.refer(leg, to: "sip:\(Play.mobile)@198.51.100.9", replaces: nil))
  }

  mutating func numberRings(early: Bool) {
    guard let leg = number?.leg else { return }
    number?.hasRung = true
    trunkDoes(.respondProvisional(leg, code: early ? 183 : 180, reason: nil, sdp: early ? Carrier.sdp() : nil))
  }

  mutating func numberAnswers() {
    guard let leg = number?.leg else { return }
    number?.phase = .answered
    trunkDoes(.answer(leg, sdp: Carrier.sdp()))
  }

  mutating func numberRefuses(_ code: Int) {
    guard let leg = number?.leg else { return }
    number?.phase = .over
    trunkDoes(.refuse(leg, code: code, reason: nil, cause: nil, retryAfter: nil))
  }

  mutating func numberHangsUp() {
    guard let leg = number?.leg else { return }
    number?.phase = .over
    trunkDoes(.bye(leg, nil))
  }

  mutating func recordingEnds() {
    guard let session = playing.popFirst() else { return }
    feed(.media(.played(session)))
    if !isOver { strays.append("the recording is over and the call is not") }
  }
}
