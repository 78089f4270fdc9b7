import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

@Suite struct ClientTransactionTests {
  private typealias Purpose = ClientTransaction.Purpose

  /// One transaction with the number 1, begun at zero.
  private func begun(_ purpose: ClientTransaction.Purpose, _ method: Method = .invite, on flow: Flow = udp) -> (
    clients: ClientTransactions, step: Step
  ) {
    var (clients, step) = (ClientTransactions(), Step.at(0))
    let key = ClientKey(branch: "b", method: method)
    clients.begin(
      1, ClientTransaction(purpose, key, leg: leg1, trunk: "carrier", over: flow, request: Array("\(method.name)".utf8)), &step)
    step.output.removeAll()
    return (clients, step)
  }

  @Test func `inputs of a transaction that does not exist change nothing`() {
    var (clients, step) = (ClientTransactions(), Step.at(0))
    #expect(clients.received(1, 200, toTag: "t", &step) == .absorbed)
    for timer in [ClientTimer.retransmission, .end, .unreachable] { holds(clients.fired(1, timer, &step) == nil) }
    holds(clients.transportFailed(1, nil, wasOpen: true, failsOver: true, next: tcp, &step) == nil)
    clients.acknowledge(refused: 1, [1], &step)
    clients.abandon(1, &step)
    clients.limit(abandoned: 1, &step)
    clients.move(1, to: tcp)
    clients.end(1, &step)
    #expect(step.isQuiet && clients.isEmpty && clients[1] == nil && clients.open(on: udp).isEmpty)
    #expect(clients.unanswered(of: [leg1: udp]).isEmpty)
  }

  @Test func `A doubles without bound, E up to T2, and B and F end in 408`() {
    for (purpose, method, times) in [
      (Purpose.invite, Method.invite, [500, 1_500, 3_500, 7_500, 15_500, 31_500]),
      (.bye, .bye, [500, 1_500, 3_500, 7_500, 11_500]),
    ] {
      var (clients, step) = begun(purpose, method)
      for at in times {
        step = Step.at(at, after: step)
        #expect(step.due.contains("\(at) client 1 retransmission"), "\(method)")
        holds(clients.fired(1, .retransmission, &step) == nil && step.sent.count == 1)
      }
      let failure = clients.fired(1, .end, &step)
      #expect(failure?.code == 408 && failure?.byTransport == false && failure?.client.phase == .calling)
      #expect(clients.isEmpty && step.timers.count == 0 && clients.fired(1, .end, &step) == nil)
    }
  }

  @Test func `provisional responses stop A and B of an INVITE, and leave E each T2 and F`() {
    var (clients, step) = begun(.invite)
    #expect(
      clients.received(1, 100, toTag: "", &step) == .provisional && clients.received(1, 180, toTag: "t", &step) == .provisional)
    #expect(step.due.isEmpty && clients[1]?.phase == .proceeding)
    (clients, step) = begun(.bye, .bye)
    #expect(clients.received(1, 100, toTag: "", &step) == .absorbed && clients.fired(1, .retransmission, &step) == nil)
    #expect(step.due == ["4000 client 1 retransmission", "32000 client 1 end"])
    (clients, step) = begun(.reinvite)
    #expect(clients.received(1, 100, toTag: "", &step) == .absorbed && step.due == ["60000 client 1 end"])
  }

  @Test func `a 2xx is acknowledged again when it is repeated, and another fork is reported`() {
    var (clients, step) = begun(.invite)
    #expect(clients.received(1, 200, toTag: "a", &step) == .accepted && step.due == ["32000 client 1 end"])
    #expect(clients.received(1, 200, toTag: "a", &step) == .acceptedOtherwise, "its ACK waits")
    clients.acknowledge(accepted: 1, tag: "a", Array("ACK".utf8), udp, &step)
    #expect(clients.received(1, 200, toTag: "a", &step) == .absorbed && step.sent.count == 2)
    #expect(clients.received(1, 200, toTag: "b", &step) == .acceptedOtherwise && step.sent.count == 2)
    for late in [100, 486] { #expect(clients.received(1, late, toTag: "a", &step) == .absorbed) }
    #expect(step.sent.count == 2 && clients.fired(1, .end, &step) == nil && clients.isEmpty)
  }

  @Test func `a refusal is acknowledged again until D, and K ends it at once on a stream`() {
    for transport in [TransportProtocol.udp, .tcp] {
      var (clients, step) = begun(.invite, on: flow(transport))
      #expect(clients.received(1, 486, toTag: "a", &step) == .refused)
      clients.acknowledge(refused: 1, Array("ACK".utf8), &step)
      clients.acknowledge(refused: 1, Array("ACK".utf8), &step)
      #expect(step.sent.count == 1 && clients.isEmpty == (transport == .tcp))
      #expect(
        clients.received(1, 486, toTag: "a", &step) == .absorbed && clients.received(1, 200, toTag: "a", &step) == .absorbed)
      #expect(step.sent.count == (transport == .udp ? 2 : 1) && step.due == (transport == .udp ? ["33000 client 1 end"] : []))
    }
  }

  @Test func `the final response of another request counts once`() {
    var (clients, step) = begun(.ping, .options)
    #expect(clients.received(1, 200, toTag: "a", &step) == .final && clients.received(1, 500, toTag: "a", &step) == .absorbed)
    #expect(step.due == ["5000 client 1 end"] && clients.fired(1, .end, &step) == nil && clients.isEmpty)
  }

  @Test func `a refused datagram is a lost packet for 3_5 s; a BYE has all of timer F`() {
    var (clients, step) = begun(.ping, .options)
    for _ in 0..<2 { holds(clients.transportFailed(1, nil, wasOpen: false, failsOver: false, next: nil, &step) == nil) }
    #expect(step.due.contains("3500 client 1 unreachable"))
    let failure = clients.fired(1, .unreachable, &step)
    #expect(failure?.code == 503 && failure?.byTransport == true && clients.isEmpty)
    (clients, step) = begun(.bye, .bye)
    holds(clients.transportFailed(1, nil, wasOpen: false, failsOver: false, next: nil, &step) == nil)
    #expect(step.due == ["500 client 1 retransmission", "32000 client 1 end"])
    (clients, step) = begun(.invite)
    holds(clients.transportFailed(1, nil, wasOpen: false, failsOver: true, next: nil, &step)?.code == 503)
    #expect(clients.isEmpty && step.timers.count == 0)
  }

  @Test func `a request on a lost connection is sent once more, on the next flow; a connection that never opened fails`() {
    var (clients, step) = begun(.bye, .bye, on: tcp)
    let next = flow(.tcp, "203.0.113.7:5060")
    holds(clients.transportFailed(1, nil, wasOpen: true, failsOver: false, next: next, &step) == nil)
    #expect(step.sent == ["BYE 203.0.113.7:5060"] && clients.open(on: tcp).isEmpty && clients.open(on: next) == [1])
    holds(
      clients.transportFailed(1, .refused, wasOpen: true, failsOver: false, next: next, &step)?.client.peerFailure == .refused)
    (clients, step) = begun(.bye, .bye, on: tcp)
    holds(clients.transportFailed(1, nil, wasOpen: false, failsOver: false, next: nil, &step)?.byTransport == true)
  }

  @Test func `an abandoned INVITE has no leg and no retransmission, and its late responses do not keep it`() {
    var (clients, step) = begun(.invite)
    clients.limit(abandoned: 1, &step)
    #expect(clients.unanswered(of: [leg1: udp]) == [leg1: [1]])
    clients.abandon(1, movedTo: tcp, &step)
    clients.abandon(1, &step)
    #expect(clients[1]?.leg == nil && clients[1]?.flow == tcp && clients.unanswered(of: [leg1: udp]).isEmpty)
    #expect(clients.received(1, 180, toTag: "t", &step) == .provisional && step.due.isEmpty)
    clients.limit(abandoned: 1, &step)
    #expect(step.due == ["32000 client 1 end"])
  }

  @Test func `the INVITE of a dead process has had its provisional response`() {
    var (clients, step) = (ClientTransactions(), Step.at(0))
    let key = ClientKey(branch: "b", method: .invite)
    clients.adopt(1, ClientTransaction(.abandoned, key, leg: nil, trunk: "carrier", over: udp, request: []), &step)
    #expect(clients.transaction(of: key) == 1 && step.sent.isEmpty && step.due == ["32000 client 1 end"])
    holds(clients.fired(1, .retransmission, &step) == nil && step.sent.isEmpty)
  }

  @Test func `a silent connection is reported when a request on it ends without any response`() {
    var (clients, step) = begun(.ping, .options, on: tcp)
    step = Step.at(32_000, after: step)
    _ = clients.fired(1, .end, &step)
    #expect(step.output.silent.map { ($0.since - .zero).milliseconds } == [0])
  }
}
