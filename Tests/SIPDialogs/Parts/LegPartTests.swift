import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

private func dialog(_ number: Int = 1, localTag: String = "ours") -> Dialog {
  Dialog(
    callID: "call-\(number)", localTag: localTag, localParty: "", remoteParty: "", remoteTarget: "sip:a@203.0.113.7",
    localSequence: 1)
}

@Suite struct LegTableTests {
  private func leg(_ id: LegID, _ dialog: Dialog, on flow: Flow = udp) -> Leg {
    Leg(orphan: id, trunk: "carrier", flow: flow, dialog: dialog, credentials: nil)
  }

  @Test func `a leg that does not exist is not made by an input`() {
    var legs = LegTable()
    legs[leg1]?.value.end()
    legs.connectionLost(to: somePeer)
    #expect(legs[leg1] == nil && legs.close(leg1) == nil && legs.isEmpty && legs.leg(of: dialog().key) == nil)
  }

  @Test func `a dialog finds its leg until that is closed; an ID is used once`() {
    var legs = LegTable()
    legs.open(leg(leg1, dialog()))
    legs.open(leg(leg1, dialog(2)))
    #expect(legs.count == 1 && legs.id(of: dialog().key) == leg1 && legs.id(of: dialog(2).key) == nil)
    let later = LegID.inbound(2)
    legs.open(leg(later, dialog()))
    #expect(legs.close(leg1)?.id == leg1 && legs.close(leg1) == nil && legs.id(of: dialog().key) == later)
    #expect(legs.close(later) != nil && legs.isEmpty)
  }

  @Test func `a lost connection moves the legs on it, and what they send again, to the peer's listening port`() {
    var legs = LegTable()
    legs.open(leg(leg1, dialog(), on: tcp))
    let other = LegID.inbound(2)
    legs.open(leg(other, dialog(2), on: flow(.tcp, "203.0.113.8:34000")))
    var step = Step.at(0)
    let answer = UnacknowledgedAnswer.Answer(
      bytes: Array("200".utf8), flow: tcp, sequence: 1, wantsAnswer: false, isReinvite: false)
    legs[leg1]?.value.answer.start(answer, of: leg1, &step)
    for _ in 0..<2 { legs.connectionLost(to: tcp.remote) }
    #expect(legs[leg1]?.value.flow == flow(.tcp) && legs[other]?.value.flow.remote.port == 34_000)
    legs[leg1]?.value.answer.fired(of: leg1, &step)
    #expect(step.sent == ["200 203.0.113.7:5060"])
  }
}

@Suite struct LegPathTests {
  private let second = flow(.tcp, "203.0.113.7:34001")

  @Test func `requests on another flow are followed, on another transport not`() {
    var path = LegPath(tcp)
    holds(!path.follow(tcp) && !path.follow(flow(.udp)) && path.follow(second) && !path.follow(second))
    #expect(path.flow == second && !path.hasMoved)
  }

  @Test func `after a lost connection the first flow counts, or its listening port if it was lost, too`() {
    for isFirstLost in [false, true] {
      var path = LegPath(tcp)
      _ = path.follow(second)
      if isFirstLost { holds(!path.connectionLost(to: tcp.remote) { _ in flow(.tcp) }) }
      holds(path.connectionLost(to: second.remote) { $0 })
      #expect(path.flow == (isFirstLost ? flow(.tcp) : tcp))
      holds(!path.connectionLost(to: second.remote) { $0 }, "again: not its connection")
    }
  }

  @Test func `a datagram's flow has no connection to lose`() {
    var path = LegPath(udp)
    holds(!path.connectionLost(to: udp.remote) { _ in tcp } && path.flow == udp)
    path.move(to: flow(.udp, "203.0.113.9:5060"))
    #expect(path.hasMoved && path.flow.remote.description == "203.0.113.9:5060")
  }
}

@Suite struct EarlyDialogTests {
  @Test func `an unknown tag has nothing, and a request of it is in order`() {
    var early = EarlyDialogs()
    holds(!early.acknowledge("a", response: 1) && early.received("a", sequence: 5) && early.received("a", sequence: 5))
    early.described("a", as: "sdp")
    #expect(early.nextRequest("a") == nil && early.sdp("a") == nil && early.sequences("a") == nil && !early.has("a"))
  }

  @Test func `reliable responses are accepted one after the other, in each dialog`() {
    var early = EarlyDialogs()
    holds(early.open("a", dialog()) && early.open("b", dialog()) && early.open("a", dialog(2)))
    holds(early.acknowledge("a", response: 7) && !early.acknowledge("a", response: 7) && !early.acknowledge("a", response: 9))
    holds(early.acknowledge("a", response: 8) && early.acknowledge("b", response: 20))
    #expect(early.nextRequest("a")?.callID == "call-1" && early.nextRequest("a")?.localSequence == 3)
    #expect(early.sequences("b")?.local == 1)
  }

  @Test func `the peer's CSeq only grows, and further forks are refused`() {
    var early = EarlyDialogs()
    for n in 0..<Limits.forks { holds(early.open("\(n)", dialog())) }
    holds(!early.open("more", dialog()) && early.open("0", dialog()))
    holds(early.received("0", sequence: 4) && !early.received("0", sequence: 4) && !early.received("0", sequence: 3))
    #expect(early.sequences("0")?.remote == 4)
    early.removeAll()
    #expect(early.tags.isEmpty)
  }
}

@Suite struct ServerSelectionTests {
  private let large = flow(.tcp, "203.0.113.7:5060")
  private let second = flow(.udp, "203.0.113.8:5060")
  private func selection() -> ServerSelection {
    ServerSelection(
      TrunkPeer(name: "t", domain: "d", target: TrunkTarget(udp, large: large), further: [TrunkTarget(second)]))
  }

  @Test func `a leg without servers has no next one`() {
    var servers = ServerSelection()
    #expect(!servers.hasNext && servers.next(answered: false) == nil)
    #expect(servers.connection(bytes: 9_000, from: udp, refusing: DatagramOnlyServers(), at: .zero) == nil)
  }

  @Test func `a large message tries the connection, then the datagram, then the next server`() {
    var servers = selection()
    #expect(servers.connection(bytes: 100, from: udp, refusing: DatagramOnlyServers(), at: .zero) == nil)
    #expect(servers.connection(bytes: 9_000, from: udp, refusing: DatagramOnlyServers(), at: .zero) == large)
    let again = servers.next(answered: false)
    #expect(again?.flow == udp && again?.refusedConnection == true)
    #expect(servers.connection(bytes: 9_000, from: udp, refusing: DatagramOnlyServers(), at: .zero) == nil)
    let next = servers.next(answered: false)
    #expect(next?.flow == second && next?.refusedConnection == false && !servers.hasNext && servers.next(answered: true) == nil)
  }

  @Test func `a 503 on the connection goes to the next server`() {
    var servers = selection()
    _ = servers.connection(bytes: 9_000, from: udp, refusing: DatagramOnlyServers(), at: .zero)
    #expect(servers.next(answered: true)?.flow == second)
  }

  @Test func `a server that refused a connection gets large requests by UDP for ten minutes`() {
    var refusing = DatagramOnlyServers()
    refusing.refused(large.remote, at: .zero)
    var servers = selection()
    #expect(servers.connection(bytes: 9_000, from: udp, refusing: refusing, at: .zero + .seconds(599)) == nil && servers.hasNext)
    #expect(servers.connection(bytes: 9_000, from: udp, refusing: refusing, at: .zero + .seconds(600)) == large)
    for n in 0..<UInt16(2_000) { refusing.refused(SocketAddress(IPAddress(203, 0, 113, 9), n), at: .zero) }
    #expect(refusing.count == Limits.datagramOnlyServers)
    refusing.refused(somePeer, at: .zero + .seconds(700))
    #expect(refusing.count == 1 && !refusing.mayAccept(somePeer, at: .zero + .seconds(701)))
  }
}
