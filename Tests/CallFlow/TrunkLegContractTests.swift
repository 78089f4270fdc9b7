import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// Every trunk leg supports the same operations, whatever its role.
@Suite struct TrunkLegContractTests {
  enum Role: CaseIterable {
    case caller, dialled, diversion, transfer

    static let outbound: [Role] = [.dialled, .diversion, .transfer]
  }

  private static let phone = Surroundings.phone
  private static let number = "+15558880000"

  /// Two trunks on every route; numbers of the second are called if the first fails.
  private func world(_ role: Role, _ configure: (inout Routing.Trunk) -> Void = { _ in }) -> Surroundings {
    Surroundings { _, routing in
      routing.trunks[0].rules.allowsTransfer = true
      routing.trunks[0].signalsHold = true
      configure(&routing.trunks[0])
      var spare = routing.trunks[0]
      spare.name = "spare"
      routing.trunks.append(spare)
      let choices = [routing.trunks[0].name, "spare"].enumerated().map {
        Routing.TrunkChoice(trunk: $0.element, priority: $0.offset + 1)
      }
      routing.outbound = [.init(prefix: "+", choices: choices)]
      if role == .diversion {
        routing.users[0].diversions = Diversions([.unreached: .init(.number(Self.number, showsCaller: false))])
      }
    }
  }

  /// An INVITE of ours that waits for its final response.
  private func invited(_ role: Role, _ world: Surroundings) throws -> LegID {
    switch role {
    case .caller: throw Unfit()
    case .dialled:
      let call = CallID(random: .seeded(5))
      try world.started(call)
      world.openOutgoingGate(call)
    case .diversion: world.invite(sdp: caller)
    case .transfer:
      let (leg, _) = try world.connected()
      let referral = Referral(target: .init(number: Self.number), uri: "sip:\(Self.number)@x", replaces: nil, referredBy: nil)
      world.feed(.sip(.referReceived(leg, referral)))
    }
    return try #require(world.outgoingLeg)
  }

  private let caller = Surroundings.trunkSDP(port: 6_900)

  /// A leg in a connected call.
  private func connected(_ role: Role, _ world: Surroundings) throws -> LegID {
    if role == .caller { return try world.connected().0 }
    let leg = try invited(role, world)
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP())))
    if role == .diversion { world.feed(.sip(.acknowledged(.inbound(1), sdp: nil))) }
    return leg
  }

  private struct Unfit: Error {}

  /// The parameters that the leg's media thread got last.
  private func media(_ role: Role, _ world: Surroundings) -> TrunkLegParameters? {
    let session = role == .diversion ? world.session : world.firstSession
    for action in world.actions.reversed() {
      if case .media(.setTrunk(session, let parameters)) = action { return parameters }
    }
    return nil
  }

  // MARK: offers

  @Test(arguments: Role.allCases) func `a re-INVITE moves media, holds and resumes; one that cannot be used changes nothing`(
    role: Role
  ) throws {
    let world = world(role)
    let leg = try connected(role, world)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(port: 7_000, direction: "sendonly"))))
    #expect(world.trunkReceived.last == "200 re-INVITE")
    #expect(media(role, world)?.remote.port == 7_000 && media(role, world)?.sends == false)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(port: 7_002))))
    #expect(media(role, world)?.remote.port == 7_002 && media(role, world)?.sends == true)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(formats: "18"))))
    #expect(world.trunkReceived.last == "488 re-INVITE" && media(role, world)?.remote.port == 7_002)
  }

  @Test(arguments: Role.allCases) func `a re-INVITE without an offer gets ours, and its ACK the answer`(role: Role) throws {
    let world = world(role)
    let leg = try connected(role, world)
    world.feed(.sip(.reinviteReceived(leg, sdp: nil)))
    #expect(world.trunkReceived.last == "200 re-INVITE")
    world.feed(.sip(.acknowledged(leg, sdp: Surroundings.trunkSDP(port: 7_004))))
    #expect(media(role, world)?.remote.port == 7_004)
  }

  @Test(arguments: Role.allCases) func `an offer of ours goes out when it may, and its answer counts`(role: Role) throws {
    let world = world(role)
    let leg = try connected(role, world)
    world.feed(.sip(.offerWanted(leg)))
    #expect(world.trunkReceived.last == "re-INVITE sendrecv")
    world.feed(.sip(.offerAnswered(leg, sdp: Surroundings.trunkSDP(port: 7_006))))
    #expect(media(role, world)?.remote.port == 7_006)
    world.feed(.sip(.offerWanted(leg)))
    world.feed(.sip(.offerRefused(leg, code: 488)))
    #expect(media(role, world)?.remote.port == 7_006 && world.machine.summaries.count == 1)
  }

  /// No app can hold a call that was diverted to a number.
  @Test(arguments: [Role.caller, .dialled, .transfer]) func `an app's hold is signalled`(role: Role) throws {
    let world = world(role)
    let leg = try connected(role, world)
    let call = try #require(world.machine.summaries.first?.call)
    world.request(Self.phone, .callHold(CallHold(on: true)), call: call)
    #expect(world.trunkReceived.last == "modify")
    world.feed(.sip(.offerWanted(leg)))
    #expect(world.trunkReceived.last == "re-INVITE sendonly")
  }

  // MARK: our INVITE

  @Test(arguments: Role.outbound) func `a description in a 183 is the answer should the 200 repeat none`(role: Role) throws {
    let world = world(role)
    let leg = try invited(role, world)
    world.feed(.sip(.progress(leg, code: 183, sdp: Surroundings.trunkSDP(port: 7_100))))
    world.feed(.sip(.answered(leg, sdp: nil)))
    #expect(media(role, world)?.remote.port == 7_100 && world.machine.summaries.first?.state == .connected)
  }

  @Test(arguments: Role.outbound) func `an offer before the 200, by UPDATE, is answered`(role: Role) throws {
    let world = world(role)
    let leg = try invited(role, world)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(port: 7_102))))
    #expect(world.trunkReceived.last == "491 re-INVITE", "nothing has been answered yet")
    world.feed(.sip(.progress(leg, code: 183, sdp: Surroundings.trunkSDP(port: 7_100))))
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(port: 7_102))))
    #expect(world.trunkReceived.last == "200 re-INVITE")
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP(port: 7_100))))
    #expect(media(role, world)?.remote.port == 7_102)
  }

  @Test(arguments: Role.outbound) func `a trunk that fails is followed by the next one of the route`(role: Role) throws {
    let world = world(role)
    let first = try invited(role, world)
    world.feed(.sip(.failed(first, code: 503, cause: nil, byTransport: false)))
    world.feed(.sip(.legClosed(first)))
    let second = try #require(world.outgoingLeg)
    #expect(second != first)
    world.feed(.sip(.answered(second, sdp: Surroundings.trunkSDP(port: 7_200))))
    #expect(media(role, world)?.remote.port == 7_200 && world.machine.summaries.first?.state == .connected)
  }

  @Test(arguments: Role.outbound) func `with early media there is no next trunk, nor after a refusal by the callee`(
    role: Role
  ) throws {
    for (sdp, code) in [(Surroundings.trunkSDP(), 503), (nil, 486)] as [(String?, Int)] {
      let world = world(role)
      let leg = try invited(role, world)
      world.feed(.sip(.progress(leg, code: 183, sdp: sdp)))
      world.feed(.sip(.failed(leg, code: code, cause: nil, byTransport: false)))
      #expect(world.outgoingLeg == leg)
    }
  }

  @Test(arguments: Role.outbound) func `INVITEs without an offer take the 200's and answer it in the ACK`(role: Role) throws {
    let world = world(role) { $0.offersLate = true }
    let leg = try invited(role, world)
    #expect(world.invites.last?.sdp == nil)
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP(port: 7_300))))
    #expect(world.trunkReceived.contains("ACK with SDP") && media(role, world)?.remote.port == 7_300)
  }

  @Test(arguments: Role.allCases) func `SRTP is agreed on with keys in the descriptions`(role: Role) throws {
    let world = world(role) {
      $0.srtp = .optional
      $0.sendsKeysInClear = true
    }
    let key = "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + String(repeating: "A", count: 40) + "\r\n"
    if role == .caller {
      _ = try world.ringing(sdp: Surroundings.trunkSDP() + key)
    } else {
      let leg = try invited(role, world)
      let offered = try #require(
        world.invites.last?.sdp?.split(separator: "\r\n").first { $0.contains("AES_CM_128_HMAC_SHA1_80") })
      let tag = try #require(offered.split(separator: ":").dropFirst().first?.split(separator: " ").first)
      world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP() + key.replacing("crypto:1", with: "crypto:\(tag)"))))
    }
    #expect(media(role, world)?.protection != nil)
  }

  // MARK: digits, silence, the end

  @Test(arguments: Role.allCases) func `digits by INFO go one after the other`(role: Role) throws {
    let world = world(role) { $0.sendsDigitsByInfo = true }
    let leg = try connected(role, world)
    if role == .diversion {
      for digit in ["1", "2"] as [Character] { world.feed(.sip(.digit(.inbound(1), digit, milliseconds: 100))) }
    } else {
      let call = try #require(world.machine.summaries.first?.call)
      world.request(Self.phone, .callDTMF(CallDTMF(digits: "12")), call: call)
    }
    #expect(world.trunkReceived.filter { $0.hasPrefix("INFO") } == ["INFO 1"])
    world.feed(.sip(.digitSent(leg, code: 200)))
    #expect(world.trunkReceived.filter { $0.hasPrefix("INFO") } == ["INFO 1", "INFO 2"])
  }

  @Test(arguments: Role.allCases) func `a silent leg is asked until it is back, and ends the call without an answer`(role: Role)
    throws
  {
    let world = world(role)
    let leg = try connected(role, world)
    let session = try #require(role == .diversion ? world.session : world.firstSession)
    world.feed(.media(.trunkSilent(session)))
    #expect(world.trunkReceived.last == "OPTIONS")
    world.feed(.sip(.pingAnswered(leg, alive: true)))
    world.feed(.media(.trunkBack(session)))
    world.pass(.seconds(60))
    #expect(world.trunkReceived.count { $0 == "OPTIONS" } == 1)
    world.feed(.media(.trunkSilent(session)))
    world.feed(.sip(.pingAnswered(leg, alive: false)))
    world.expectRecord(.trunkLost)
  }

  @Test(arguments: Role.allCases) func `BYE, a lost session and a leg that is gone end the call once`(role: Role) throws {
    for step in 0..<3 {
      let world = world(role)
      let leg = try connected(role, world)
      let event: UserAgent.Event = [.byeReceived(leg, nil), .sessionLost(leg, .expired), .legClosed(leg)][step]
      world.feed(.sip(event))
      world.feed(.sip(.legClosed(leg)))
      world.expectRecord(step == 0 ? .remoteHangup : .trunkLost)
    }
  }
}
