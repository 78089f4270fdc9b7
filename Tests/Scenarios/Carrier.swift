import TrunklineBytes
import TrunklineSIP
import TrunklineSIPDialogs

/// The trunk's far end: a separate user agent, driven by the test.
final class Carrier {
  unowned let world: World
  var agent: UserAgent = {
    var agent = UserAgent(random: .seeded(1 << 40))
    var unused = UserAgent.Output()
    agent.handle(.rules(["gateway": TrunkRules(trustsIdentity: true)]), at: .zero, into: &unused)
    return agent
  }()
  var events: [UserAgent.Event] = []
  /// What an INVITE of the gateway gets: codes with their delays; 200 and 183 carry SDP.
  var answers: [(after: Duration, code: Int)] = [(.milliseconds(20), 180), (.milliseconds(500), 200)]
  /// Messages of the carrier that get lost on the way.
  var loses: ([UInt8]) -> Bool = { _ in false }
  /// The direction in its own offers.
  var direction = "sendrecv"
  /// The descriptions of its 200 and of its own re-INVITEs, if not the usual one.
  var answerSDP: String?
  var offers: String?
  /// An edge between the carrier and the gateway.
  var isEdge = false
  private var nextLeg: UInt64 = 1

  init(_ world: World) { self.world = world }

  static func sdp(_ formats: String = "0 8 101", direction: String = "sendrecv", port: Int = 6_000) -> String {
    [
      "v=0", "o=- 1 1 IN IP4 203.0.113.7", "s=-", "c=IN IP4 203.0.113.7", "t=0 0", "m=audio \(port) RTP/AVP \(formats)",
      "a=rtpmap:101 telephone-event/8000", "a=\(direction)",
    ].joined(separator: "\r\n") + "\r\n"
  }

  /// Calls the gateway; returns the leg to hang up, cancel or re-invite.
  @discardableResult
  func call(
    _ number: String = World.number, sdp: String = sdp(), isPrivate: Bool = false, headers: [(name: String, value: String)] = [],
    over transport: TransportProtocol = .udp
  ) -> LegID {
    let leg = LegID.outbound(nextLeg)
    nextLeg += 1
    let flow = Flow(transport: transport, local: World.carrierAddress, remote: World.gatewayAddress)
    let peer = TrunkPeer(name: "gateway", domain: World.gatewayAddress.description, flow: flow)
    handle(
      .command(
        .invite(
          leg,
          OutboundInvite(
            trunk: peer, to: number, from: "+15550000042", isPrivate: isPrivate, assertedIdentity: "+15550000042", sdp: sdp,
            extraHeaders: headers + (isEdge ? [("X-Trunkline-Trunk", "carrier")] : [])))))
    return leg
  }

  func hangUp(_ leg: LegID) { handle(.command(.bye(leg, nil))) }
  /// Callers whose final response was lost on its way hang up at some time.
  func giveUpUnanswered() { for leg in (1..<nextLeg).map({ LegID.outbound($0) }) where final(leg) == nil { cancel(leg) } }
  /// Ends a call as a caller does that hangs up: before the final response by CANCEL.
  func giveUp(_ leg: LegID) { final(leg) == nil ? cancel(leg) : hangUp(leg) }
  func cancel(_ leg: LegID) { handle(.command(.cancel(leg, nil))) }

  func receive(_ bytes: [UInt8], _ flow: Flow = Flow(transport: .udp, local: World.carrierAddress, remote: World.gatewayAddress))
  {
    if let message = try? Message(bytes), message.statusCode == 302 {
      redirect = message.field(.contact).map { message.text($0.value) }
    }
    handle(.received(bytes, flow, trunk: "gateway"))
  }

  func handle(_ input: UserAgent.Input) {
    var output = UserAgent.Output()
    agent.handle(input, at: world.now, into: &output)
    if case .timer = input { Invariants.timer(agent.nextDeadline, world.now, "the carrier's user agent") }
    for message in output.messages where !loses(message.bytes) {
      if let ground = world.ground { ground.answer(message.bytes, message.flow) } else { deliver(message.bytes) }
    }
    events += output.events
    react(output.events)
  }

  /// Delivers to the gateway, without any loss.
  func deliver(_ bytes: [UInt8]) {
    world.after(world.sipDelay) { [world, isEdge] in
      Invariants.look(at: bytes, fromGateway: false, world)
      let flow = Flow(transport: .udp, local: World.gatewayAddress, remote: World.carrierAddress)
      world.signal(.received(bytes, flow, trunk: isEdge ? Edge.peer : "carrier"))
    }
  }

  private func react(_ events: [UserAgent.Event]) {
    for event in events {
      switch event {
      case .inviteReceived(let leg, _): answer(leg)
      case .reinviteReceived(let leg, let sdp):
        // mirrors the direction that is offered, and offers its own if none is
        let offered = ["sendonly": "recvonly", "recvonly": "sendonly", "inactive": "inactive"].first {
          sdp?.contains("a=\($0.key)") == true
        }
        handle(.command(.answerReinvite(leg, sdp: Self.sdp(direction: offered?.value ?? direction))))
      case .offerWanted(let leg): handle(.command(.offer(leg, sdp: offers ?? Self.sdp(direction: direction))))
      default: break
      }
    }
  }

  private func answer(_ leg: LegID) {
    for (delay, code) in answers {
      world.after(delay) { [self] in
        switch code {
        case ..<200: handle(.command(.respondProvisional(leg, code: code, reason: nil, sdp: code == 183 ? Self.sdp() : nil)))
        case 200: handle(.command(.answer(leg, sdp: answerSDP ?? Self.sdp())))
        default: handle(.command(.refuse(leg, code: code, reason: nil, cause: nil, retryAfter: nil)))
        }
      }
    }
  }

  /// The Contact of the newest 302.
  var redirect: String?

  /// The final response to a call of the carrier; nil if none came.
  func final(_ leg: LegID) -> Int? {
    for event in events {
      switch event {
      case .answered(leg, _): return 200
      case .failed(leg, let code, _, _): return code
      default: continue
      }
    }
    return nil
  }
  /// The description in the 200 to a call of the carrier, and in the last INVITE of the gateway.
  func answered(_ leg: LegID) -> String? {
    for event in events { if case .answered(leg, let sdp) = event { return sdp } }
    return nil
  }
  var offered: String? {
    for event in events.reversed() { if case .inviteReceived(_, let invite) = event { return invite.sdp } }
    return nil
  }
  func cause(_ leg: LegID) -> String? {
    for event in events { if case .failed(leg, _, let cause, _) = event { return cause?.description } }
    return nil
  }
  var inboundLeg: LegID? {
    for event in events.reversed() { if case .inviteReceived(let leg, _) = event { return leg } }
    return nil
  }
  func heardBye(_ leg: LegID) -> Bool { events.contains { if case .byeReceived(leg, _) = $0 { true } else { false } } }
  func wasCancelled(_ leg: LegID) -> Bool { events.contains { if case .cancelled(leg, _) = $0 { true } else { false } } }
}
