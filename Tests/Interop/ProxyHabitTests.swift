import Foundation
import Testing
import TrunklineBytes

extension Interop {
  /// What proxies and load balancers before a trunk do: they fork to several numbers of ours, and go on over another connection.
  @Suite(.enabled(if: Surroundings.missing == nil, "\(Surroundings.missing ?? "")"), .serialized) struct ProxyHabitTests {
    @Test
    func `two numbers of ours that one proxy forks to are two callees, and each rings; the same number twice is one request`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let alice = try await Peers.phone(gateway, ["--calls", "1"])
      let bob = try await Peers.phone(gateway, user: "bob", device: "d2", ["--calls", "1"])
      let trunk = try RawTrunk(gateway)
      let first = trunk.request("INVITE", sdp: RawTrunk.offer())
      var second = first
      second.branch += "fork"
      second.lines = first.lines.map {
        $0.hasPrefix("INVITE ")
          ? $0.replacingOccurrences(of: "+15551230001", with: "+15551230002")
          : $0.replacingOccurrences(of: first.branch, with: second.branch)
      }
      trunk.send(first.text)
      trunk.send(second.text)
      _ = try await alice.event("call.offer")
      _ = try await bob.event("call.offer")
      // the same request of the first callee on another way
      var merged = first
      merged.branch += "way"
      merged.lines = first.lines.map { $0.replacingOccurrences(of: first.branch, with: merged.branch) }
      #expect(trunk.ask(merged)?.code == 482)
      for invite in [first, second] {
        var cancel = invite
        (cancel.method, cancel.body) = ("CANCEL", "")
        cancel.lines = invite.lines.filter { !$0.hasPrefix("Content-Type") }.map {
          $0.replacingOccurrences(of: "INVITE ", with: "CANCEL ").replacingOccurrences(of: "1 INVITE", with: "1 CANCEL")
        }
        trunk.send(cancel.text)
      }
      #expect(try await alice.finish(within: 10) == 0, "\(alice.text)")
      #expect(try await bob.finish(within: 10) == 0, "\(bob.text)")
      _ = try await gateway.records(2)
      #expect(gateway.endReasons == ["callerCancelled", "callerCancelled"])
      try await gateway.finish()
    }

    @Test(arguments: ["OPTIONS", "UPDATE", "INVITE"])
    func `a request over another connection moves the call there: our BYE reaches a trunk that has closed the first`(
      by method: String
    )
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "1"])
      let trunk = try Peers.python("trunk", "moving_trunk.py", ["--sip", "\(gateway.sip)", "--by", method], gateway)
      #expect(try await trunk.event("answered", within: 15)["code"] as? Int == 200)
      _ = try await phone.event("call.connected")
      trunk.type("move")
      #expect(try await trunk.event("moved")["code"] as? Int == 200)
      phone.type("end")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(try await trunk.finish(within: 20) == 0, "\(trunk.text)")
      #expect(trunk.text.contains("\"bye\""))
      _ = try await gateway.records(1)
      #expect(gateway.endReasons == ["localEnd"])
      try await gateway.finish()
    }
  }
}
