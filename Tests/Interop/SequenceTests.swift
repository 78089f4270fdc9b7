import Foundation
import Testing

extension Interop {
  /// The sequences of the app protocol, message by message, with aiortc and sipp. `PushTests` has those with a push, for both
  /// push services; `FaultTests` has handover.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct SequenceTests {
    private static let prepared = ["> call.ringing", "> call.prepare", "< ok", "> media.ready"]

    @Test
    func `INC-7, ANS-1: sequence 1: a connected app is offered the call, prepares while it rings, answers, and is not pushed to`()
      async throws
    {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let killed = try await service.killedPhone(gateway, device: "d1", [])
      let phone = try await Peers.phone(gateway, ["--trace", "--calls", "1"])
      let caller = try Peers.caller(gateway, "call", ["-d", "500"])
      _ = try await phone.event("media", within: 15) { $0["state"] as? String == "connected" }
      phone.type("answer")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      phone.expect(
        ["> hello auth", "< welcome", "< call.offer"] + Self.prepared
          + ["> call.answer", "< ok won", "< call.connected", "> media.active", "< call.ended remoteHangup"])
      let times = try #require(try await gateway.records(1).first?["times"] as? [String: Int])
      expect(times, ["start", "offered", "deviceRinging", "answered", "gateOpen", "connected"])
      expect(times, ["mediaReady", "gateOpen"])
      #expect(try gateway.sum("trunkline_push_requests_total") == 0, "a push for a connected app in the foreground")
      killed.signal(SIGTERM)
      _ = try? await killed.finish(within: 5)
      try await gateway.finish()
      try await service.stop()
    }

    @Test(arguments: PushServiceUnderTest.Kind.allCases)
    func `INC-8, ANS-1: sequence 3: the tap came before the connection, the call is connected from the snapshot`(
      kind: PushServiceUnderTest.Kind
    ) async throws {
      // The first push finds the service unavailable: one retry inside the ring window, with the same id.
      let service = try await PushServiceUnderTest(kind, answers: "503,real")
      let gateway = try await service.gateway()
      let phone = try await service.killedPhone(
        gateway, ["--no-prepare", "--answer-after", "0", "--age", "2500", "--calls", "1", "--start-after", "0.3"])
      let caller = try Peers.caller(gateway, "call", ["-d", "500"])
      try await service.deliver(to: phone)
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000)) \(gateway.process.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      phone.expect([
        "> hello wake", "< welcome", "> call.ringing", "> call.answer", "< ok won", "> media.ready", "< call.connected",
        "> media.active", "< call.ended remoteHangup",
      ])
      let times = try #require(try await gateway.records(1).first?["times"] as? [String: Int])
      expect(
        times, ["start", "pushed", "pushAccepted", "woken", "deviceRinging", "answered", "mediaReady", "gateOpen", "connected"])
      if kind == .standIn {
        #expect(service.attempts.count == 2 && Set(service.attempts).count == 1, "\(service.text)")
        #expect(try gateway.sum("trunkline_push_requests_total") == 2)
      }
      #expect(try gateway.sum("trunkline_pushes_total", "accepted") == 1)
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `END-2: sequences 3 and 4: the snapshot lacks the call that was tapped: its reason comes right after welcome`()
      async throws
    {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway(["timers: { early180: 100ms }"])
      let phone = try await service.killedPhone(gateway, ["--answer-after", "0", "--start-after", "1.5"])
      let caller = try Peers.caller(gateway, "cancel", ["-d", "200"])
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      _ = try await phone.event("call.gone") { $0["reason"] as? String == "callerCancelled" }
      #expect(phone.wire.prefix(3) == ["> hello wake", "< welcome", "< call.gone callerCancelled"], "\(phone.wire)")
      phone.type("quit")
      try await phone.finish(within: 10)
      #expect(try gateway.sum("trunkline_push_requests_total") == 1)
      try await gateway.finish()
      try await service.stop()
    }

    @Test(arguments: [("fail", "mediaFailed"), ("wait", "mediaTimeout")])
    func `ANS-2, ANS-5: sequence 5: media fails after the tap: the app is notified, the trunk gets 480 with its cause`(
      what: String, reason: String
    ) async throws {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway(["timers: { media_gate_cold: 2s }"])
      let phone = try await service.killedPhone(gateway, ["--no-ice", "--answer-after", "0", "--calls", "1"])
      let log = gateway.folder + "/messages.log"
      let caller = try Peers.caller(gateway, "refused_480", ["-trace_msg", "-message_file", log])
      _ = try await phone.event("answered", within: 15) { $0["won"] as? Bool == true }
      if what == "fail" { phone.type("fail") }
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      phone.expect(
        ["> hello wake", "< welcome", "> call.ringing", "> call.prepare", "> call.answer", "< ok won"]
          + (what == "fail" ? ["> media.fail ice"] : []) + ["< call.ended \(reason)"])
      let messages = try String(contentsOfFile: log, encoding: .utf8)
      #expect(messages.contains("SIP/2.0 480") && messages.contains("Reason: Q.850;cause=41"), "\(messages.suffix(1_500))")
      #expect(!messages.contains("SIP/2.0 200"), "nobody pays for silence")
      let end = try #require(try await gateway.records(1).first?["end"] as? [String: Any])
      #expect(end["reason"] as? String == reason && end["sip"] as? Int == 480)
      try await gateway.finish()
      try await service.stop()
    }

    @Test(arguments: ["early", "ringing"])
    func `OUT-3, OUT-4: sequence 6: the INVITE follows the media, progress comes as it is, early audio is heard`(stage: String)
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let phone = try await Peers.phone(gateway, ["--trace", "--calls", "1"])
      let trunk = try await Peers.trunk(
        gateway, ["--calls", "1", "--answer-after", "1.5"] + (stage == "early" ? ["--early"] : []))
      phone.type("call +15557654321")
      _ = try await phone.event("call.connected", within: 15)
      _ = try await phone.event("first_sound")
      phone.type("end")
      #expect(try await trunk.finish(within: 15) == 0, "\(trunk.text)")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      phone.expect([
        "> hello auth", "< welcome", "> call.start", "< ok", "> media.ready", "< call.progress trying",
        "< call.progress \(stage)",
        "< call.connected", "> media.active", "> call.end localEnd",
      ])
      phone.expect(["> call.end localEnd", "< call.ended localEnd"])
      let names = phone.events.compactMap { $0["event"] as? String }.filter { ["first_sound", "call.connected"].contains($0) }
      if stage == "early" { #expect(names.first == "first_sound", "early media plays before the answer") }
      let times = try #require(try await gateway.records(1).first?["times"] as? [String: Int])
      expect(times, ["start", "mediaReady", "gateOpen", "inviteSent", "connected"])
      try await gateway.finish()
    }

    @Test func `sequence 6: 486 is call.ended{busy}`() async throws {
      let gateway = try await GatewayUnderTest()
      let carrier = try await Peers.callee(gateway, "busy")
      let phone = try await Peers.phone(gateway, ["--trace", "--call", "+15557654321", "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
      phone.expect(["> call.start", "< ok", "> media.ready", "< call.ended busy"])
      try await gateway.finish()
    }

    @Test func `ACC-1: a number's account is in offer and push, and only devices that are logged in to it ring`() async throws {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway([
        "users: [ { id: alice, numbers: [ { number: \"+15551230001\", account: work }, \"+15551230003\" ] } ]"
      ])
      let home = try await service.killedPhone(gateway, accounts: ["home"], [])
      let office = try await service.killedPhone(gateway, device: "office", accounts: ["work", "home"], [])
      let both = try await Peers.phone(gateway, accounts: ["home", "work"])
      for (count, number, account) in [(1, "+15551230001", "work"), (2, "+15551230003", "default")] {
        let caller = try Peers.caller(gateway, "cancel", to: number, ["-d", "300"])
        #expect(try await caller.finish(within: 15) == 0, "\(caller.text.suffix(6_000))")
        let offers = both.events.filter { $0["event"] as? String == "call.offer" }
        #expect(offers.count == count && offers.last?["acct"] as? String == account, "\(offers)")
      }
      #expect(try await office.event("pushed")["acct"] as? String == "work")
      #expect(try await home.event("pushed")["acct"] as? String == "default", "not for the account it is not logged in to")
      for phone in [home, office, both] {
        phone.type("quit")
        _ = try? await phone.finish(within: 10)
      }
      try await gateway.finish()
      try await service.stop()
    }

    @Test
    func
      `INV: sequence 8: of two devices that answer at once, one by a push, one has the call; a third that wakes late is notified`()
      async throws
    {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let warm = try await Peers.phone(gateway, ["--trace", "--calls", "1"])
      let woken = try await service.killedPhone(gateway, ["--calls", "1"])
      let late = try await service.killedPhone(gateway, device: "tablet", ["--start-after", "5"])
      let caller = try Peers.caller(gateway, "call", ["-d", "3000"])
      for phone in [warm, woken] { _ = try await phone.event("media", within: 20) { $0["state"] as? String == "connected" } }
      for phone in [warm, woken] { phone.type("answer") }
      #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))")
      for phone in [warm, woken] { #expect(try await phone.finish(within: 10) == 0, "\(phone.text)") }
      let winners = [warm, woken].filter { $0.wire.contains("< ok won") }
      let losers = [warm, woken].filter { !$0.wire.contains("< ok won") }
      #expect(winners.count == 1 && losers.count == 1, "\(warm.wire) \(woken.wire)")
      winners.first?.expect(["> call.answer", "< ok won", "< call.connected", "> media.active", "< call.ended remoteHangup"])
      // Its answer crossed the cancellation, or came after it: either way it is notified once that the call was answered
      // elsewhere.
      let ends = losers.first?.wire.filter { ["< err answeredElsewhere", "< call.cancel answeredElsewhere"].contains($0) } ?? []
      #expect(ends.count == 1 && losers.first?.wire.contains("< call.connected") == false, "\(losers.first?.wire ?? [])")
      _ = try await late.event("call.gone", within: 15) { $0["reason"] as? String == "answeredElsewhere" }
      late.type("quit")
      try await late.finish(within: 10)
      let record = try #require(try await gateway.records(1).first)
      #expect(record["device"] as? String == (winners.first === warm ? "d1" : "cell"))
      #expect(try gateway.sum("trunkline_pushes_total", "accepted") == 2, "one for each device that was away")
      try await gateway.finish()
      try await service.stop()
    }
  }
}

/// Expects the stages of a record in this order.
func expect(_ times: [String: Int], _ stages: [String], _ location: SourceLocation = #_sourceLocation) {
  let found = stages.compactMap { times[$0] }
  #expect(found.count == stages.count && found == found.sorted(), "\(stages): \(times)", sourceLocation: location)
}

extension Spawned {
  /// The trace of `app_phone.py --trace`: what it sent (>) and received (<), in order.
  var wire: [String] { events.filter { $0["event"] as? String == "wire" }.compactMap { $0["line"] as? String } }

  /// Expects these messages in this order, with any others between them.
  func expect(_ wanted: [String], _ location: SourceLocation = #_sourceLocation) {
    var rest = wire[...]
    for line in wanted {
      guard let index = rest.firstIndex(of: line) else {
        Issue.record("\(name): \(line) is missing or too early in \(wire)", sourceLocation: location)
        return
      }
      rest = rest[(index + 1)...]
    }
  }
}

extension PushServiceUnderTest {
  /// The `apns-id` of every request that the stand-in received, in order.
  var attempts: [String] {
    text.split(separator: "\n").filter { $0.hasPrefix("apns ") }.compactMap { line in
      line.split(separator: " ").dropFirst(2).first.map { String($0.filter { $0 != ":" }) }
    }
  }
}
