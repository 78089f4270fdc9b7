import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

@Suite struct ServerTransactionTests {
  private let key = ServerKey(trunk: "carrier", branch: "z9hG4bKc1", sentBy: "203.0.113.7:5060", method: "INVITE")
  private let merge = MergeKey(callID: "call-1", fromTag: "77", sequence: 1, called: "+1555")

  /// One transaction with the number 1.
  private func begun(_ method: Method = .invite, on source: Flow = udp, via: String = "SIP/2.0/UDP 203.0.113.7:5060;rport") throws
    -> ServerTransactions
  {
    let message = try Message(Array(request(method.name, via: via).utf8))
    let reply = try #require(Reply(message, source: source, trunk: "carrier"))
    var servers = ServerTransactions()
    servers.begin(1, key: key, method: method, merge: method == .invite ? merge : nil, reply: reply, leg: leg1)
    return servers
  }

  @Test func `inputs of a transaction that does not exist change nothing`() {
    var (servers, step) = (ServerTransactions(), Step.at(0))
    holds(!servers.respond(1, 200, [1], &step) && !servers.receivedAck(1, &step))
    servers.fired(1, .g, &step)
    servers.fired(1, .end, &step)
    servers.connectionLost(to: somePeer)
    #expect(step.isQuiet && servers.isEmpty && servers.reply(1) == nil && servers.invite(1) == nil)
    #expect(servers.transaction(of: key) == nil && !servers.isMerged(merge))
    servers.receivedAgain(1, from: udp, &step)
    #expect(step.isQuiet && step.counters.retransmissionsReceived == 1)
  }

  @Test func `the INVITE again gets the last provisional response, and before the first none`() throws {
    var (servers, step) = (try begun(), Step.at(0))
    servers.receivedAgain(1, from: udp, &step)
    #expect(step.sent.isEmpty)
    holds(servers.respond(1, 180, Array("180".utf8), &step) && servers.respond(1, 183, Array("183".utf8), &step))
    servers.receivedAgain(1, from: udp, &step)
    #expect(step.sent.map { $0.prefix(3) } == ["180", "183", "183"] && step.due.isEmpty)
    #expect(servers.invite(1)?.isProceeding == true && servers.invite(1)?.leg == leg1)
  }

  @Test func `a refusal is sent again by G, doubled up to T2, until the ACK; I ends it`() throws {
    var (servers, step) = (try begun(), Step.at(0))
    holds(servers.respond(1, 486, Array("486".utf8), &step))
    holds(!servers.respond(1, 200, [1], &step), "the final response was sent")
    #expect(step.due == ["500 server 1 g", "32000 server 1 end"] && servers.reply(1) == nil)
    for (at, next) in [(500, 1_500), (1_500, 3_500), (3_500, 7_500), (7_500, 11_500)] {
      step = Step.at(at, after: step)
      servers.fired(1, .g, &step)
      #expect(step.sent.count == 1 && step.due.contains("\(next) server 1 g"))
    }
    holds(servers.receivedAck(1, &step) && servers.receivedAck(1, &step), "repeated ACKs are absorbed")
    #expect(step.due == ["12500 server 1 end"])
    let sent = step.sent.count
    servers.receivedAgain(1, from: udp, &step)
    servers.fired(1, .g, &step)
    #expect(step.sent.count == sent && servers.isMerged(merge))
    servers.fired(1, .end, &step)
    #expect(servers.isEmpty && step.timers.count == 0)
  }

  @Test func `a 2xx leaves ACK and retransmission to the leg, and absorbs the INVITE until L`() throws {
    var (servers, step) = (try begun(), Step.at(0))
    holds(servers.respond(1, 200, Array("200".utf8), &step))
    servers.receivedAgain(1, from: udp, &step)
    holds(!servers.receivedAck(1, &step))
    #expect(step.sent.count == 1 && step.due == ["32000 server 1 end"])
  }

  @Test func `another request ends at once on a stream, and by J on UDP`() throws {
    for transport in [TransportProtocol.tcp, .udp] {
      var (servers, step) = (try begun(.bye, on: flow(transport)), Step.at(0))
      holds(!servers.receivedAck(1, &step) && servers.invite(1) == nil)
      holds(servers.respond(1, 200, [1], &step))
      #expect(servers.isEmpty == (transport == .tcp) && step.due == (transport == .tcp ? [] : ["32000 server 1 end"]))
    }
  }

  @Test func `with rport a response follows the source of the request that came again`() throws {
    var (servers, step) = (try begun(), Step.at(0))
    holds(servers.respond(1, 180, Array("180".utf8), &step))
    servers.receivedAgain(1, from: flow(.udp, "203.0.113.7:40000"), &step)
    #expect(step.sent.last == "180 203.0.113.7:40000")
  }

  @Test func `after its connection was lost a response goes to the port in Via; another connection changes nothing`() throws {
    var (servers, step) = (try begun(on: tcp, via: "SIP/2.0/TCP 203.0.113.7:5070"), Step.at(0))
    servers.connectionLost(to: somePeer)
    #expect(servers.reply(1)?.flow == tcp)
    servers.connectionLost(to: tcp.remote)
    servers.connectionLost(to: tcp.remote)
    holds(servers.respond(1, 180, Array("180".utf8), &step))
    #expect(step.sent == ["180 203.0.113.7:5070"])
  }

  @Test func `the end of an older transaction leaves the keys of a later one`() throws {
    var (servers, step) = (try begun(), Step.at(0))
    let reply = try #require(servers.reply(1))
    servers.begin(2, key: key, method: .invite, merge: merge, reply: reply, leg: nil)
    servers.fired(1, .end, &step)
    #expect(servers.count == 1 && servers.transaction(of: key) == 2 && servers.isMerged(merge))
  }
}
