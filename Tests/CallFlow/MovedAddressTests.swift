import AppSessions
import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

private let phone = Surroundings.phone

/// This machine gets another address while calls run.
@Suite struct MovedAddressTests {
  private static let (old, new) = (SocketAddress(IPAddress(192, 0, 2, 1), 40_000), SocketAddress(IPAddress(192, 0, 2, 2), 40_000))

  private func restart(_ world: Surroundings, _ call: CallID, _ gen: Int) -> String {
    let restart = MediaRestart(sdp: Surroundings.appSDP(setup: "actpass"), gen: gen, cause: .net)
    guard case .mediaAnswer(let answer) = world.request(phone, .mediaRestart(restart), call: call) else { return "no answer" }
    return answer.sdp
  }
  private func isOffered(_ sdp: String?, _ address: SocketAddress) -> Bool {
    sdp?.contains(" \(address.ip) \(address.port) typ host") ?? false
  }

  @Test func `the answer to a restart has the candidates of today's addresses; while there are none, those of before`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(isOffered(restart(world, call, 2), Self.old))
    world.feed(.appCandidates([[Self.new]], of: world.machine.liveCalls))
    #expect(world.trunkReceived.last == "200" && world.received[phone]?.last == "call.connected", "nothing is said to anybody")
    var sdp = restart(world, call, 3)
    #expect(isOffered(sdp, Self.new) && !isOffered(sdp, Self.old))
    world.feed(.appCandidates([[]], of: world.machine.liveCalls))
    sdp = restart(world, call, 4)
    #expect(isOffered(sdp, Self.new))
    world.feed(.appCandidates([[Self.old, Self.new]], of: world.machine.liveCalls))
    sdp = restart(world, call, 5)
    #expect(isOffered(sdp, Self.old) && isOffered(sdp, Self.new))
  }

  @Test func `candidates are those of the call's own media thread`() throws {
    let world = Surroundings()
    world.mediaThread = 1
    let (_, call) = try world.connected()
    let other = SocketAddress(Self.new.ip, 40_001)
    world.feed(.appCandidates([[Self.new], [other]], of: world.machine.liveCalls))
    #expect(isOffered(restart(world, call, 2), other))
    world.feed(.appCandidates([[Self.old]], of: world.machine.liveCalls))
    #expect(isOffered(restart(world, call, 3), other), "a thread that is not named keeps its own")
  }

  @Test func `while it rings: a device that resumes and one that connects late are offered the current addresses`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    world.feed(.appCandidates([[Self.new]], of: world.machine.liveCalls))
    world.connect(phone, "again")
    let row = try #require(world.welcomes[SessionID("again")]?.calls.first)
    #expect(isOffered(row.sdp, Self.new) && !isOffered(row.sdp, Self.old))
    world.connect(Surroundings.tablet)
    let late = try #require(world.welcomes[SessionID(Surroundings.tablet.device)]?.calls.first)
    #expect(late.call == call && isOffered(late.sdp, Self.new) && !isOffered(late.sdp, Self.old))
    // the first offer is the one that is answered: they differ in our addresses only
    #expect(world.isOK(world.prepare(phone, call, on: "again")))
  }

  @Test func `a silent app is asked to restart as soon as there are other addresses; one whose media arrives is not`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    func asked() -> Int { world.received[phone]?.count { $0 == "media.restart" } ?? 0 }
    world.feed(.appCandidates([[Self.old]], of: world.machine.liveCalls))
    world.feed(.appCandidates([[Self.old, Self.new]], of: world.machine.liveCalls))
    #expect(asked() == 0)
    let (session, leg) = (try #require(world.session), try #require(world.legs[phone]?.0))
    world.feed(.media(.appLegSilent(session, leg)))
    #expect(asked() == 1)
    world.feed(.appCandidates([[Self.old, Self.new]], of: world.machine.liveCalls))
    #expect(asked() == 1, "they are the same")
    world.feed(.appCandidates([[Self.new]], of: world.machine.liveCalls))
    #expect(asked() == 2 && world.messages[phone]?.last == .mediaRestart(MediaRestart(gen: 2, cause: .net)))
    #expect(isOffered(restart(world, call, 2), Self.new))
    world.feed(.media(.appLegBack(session, leg)))
    world.feed(.appCandidates([[Self.old]], of: world.machine.liveCalls))
    #expect(asked() == 2)
  }

  @Test func `a trunk leg whose address went: media moves, and one re-INVITE says where`() throws {
    let world = Surroundings()
    let (leg, _) = try world.connected()
    let moved = SocketAddress(IPAddress(192, 0, 2, 2), 41_010)
    world.movedMedia = moved
    world.feed(.appCandidates([[Self.new]], of: world.machine.liveCalls))
    #expect(world.trunkReceived.last == "200", "it may be back in a moment")
    world.feed(.moveTrunkLegs(world.machine.liveCalls))
    // its signalling moves to the other address as well
    world.feed(.sip(.addressMoved(leg)))
    #expect(world.trunkReceived.suffix(2) == ["200", "modify"], "one")
    world.feed(.sip(.offerWanted(leg)))
    let offer = try #require(
      world.actions.compactMap { if case .sip(.offer(leg, let sdp)) = $0 { sdp } else { nil } }.last)
    #expect(offer.contains("c=IN IP4 192.0.2.2\r\n") && offer.contains("m=audio 41010 ") && offer.contains("a=sendrecv"))
    world.feed(.sip(.offerAnswered(leg, sdp: Surroundings.trunkSDP(port: 6_002))))
    let remote = world.actions.compactMap { if case .media(.setTrunk(_, let trunk)) = $0 { trunk.remote.port } else { nil } }
    #expect(remote.last == 6_002)
    // a later change is signalled as well
    world.feed(.sip(.addressMoved(leg)))
    #expect(world.trunkReceived.last == "modify")
  }

  @Test(arguments: [488, 501, 491]) func `a peer that refuses to learn our new address ends the call only if it falls silent`(
    code: Int
  ) throws {
    let world = Surroundings()
    let leg = try world.connected().0
    let session = try #require(world.session)
    func refuse() {
      world.feed(.sip(.addressMoved(leg)))
      world.feed(.sip(.offerWanted(leg)))
      world.feed(.sip(.offerRefused(leg, code: code)))
    }
    refuse()
    world.feed(.media(.trunkSilent(session)))
    // the peer follows the source of our packets
    world.feed(.media(.trunkBack(session)))
    world.feed(.sip(.pingAnswered(leg, alive: true)))
    world.pass(.seconds(60))
    #expect(world.records.isEmpty)
    // silent in a call whose peer knows our address and answers
    world.feed(.sip(.offerWanted(leg)))
    world.feed(.sip(.offerAnswered(leg, sdp: Surroundings.trunkSDP(port: 6_002))))
    world.feed(.media(.trunkSilent(session)))
    world.feed(.sip(.pingAnswered(leg, alive: true)))
    world.pass(.seconds(20))
    world.feed(.sip(.pingAnswered(leg, alive: true)))
    #expect(world.records.isEmpty)
    world.feed(.media(.trunkBack(session)))
    refuse()
    world.feed(.media(.trunkSilent(session)))
    world.feed(.sip(.pingAnswered(leg, alive: true)))
    world.pass(.seconds(60))
    world.expectRecord(.trunkLost, by: .trunk)
    let detail = world.records.first?.end.detail
    #expect(detail?.contains("re-INVITE") == true && detail?.contains("\(code)") == true)
  }

  @Test func `a trunk leg whose address is still there is not touched, and one that refuses to move goes on as it is`() throws {
    let world = Surroundings()
    let (leg, _) = try world.connected()
    let before = world.trunkReceived
    world.feed(.moveTrunkLegs(world.machine.liveCalls))
    #expect(world.trunkReceived == before)
    world.feed(.sip(.addressMoved(leg)))
    world.feed(.sip(.offerWanted(leg)))
    world.feed(.sip(.offerRefused(leg, code: 488)))
    #expect(world.records.isEmpty && world.trunkReceived.last == "re-INVITE sendrecv")
    world.feed(.sip(.byeReceived(leg, nil)))
    world.pass(.seconds(1))
    world.expectRecord(.remoteHangup, by: .trunk)
  }
}
