import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Refusals that keep no state, and the requests that are served all the same.
@Suite struct OverloadTests {
  @Test(arguments: [RefusalReason.cpu, .delay, .memory, .ports, .calls])
  func `under overload an INVITE gets 503 with Retry-After and leaves nothing behind`(reason: RefusalReason) {
    var wire = Wire()
    wire.input(.overloaded(reason))
    for n in 0..<3 {
      let replies = wire.receive(request("INVITE", branch: "z9hG4bK\(n)", callID: "c\(n)", sdp: offer))
      #expect(replies.map(\.statusCode) == [503])
      #expect(replies.first?.value(.retryAfter) == "30")
      // the ACK of a stateless refusal finds no transaction, and is dropped
      let tag = replies.first?.toTag
      #expect(wire.receive(request("ACK", branch: "z9hG4bK\(n)", callID: "c\(n)", toTag: tag)).isEmpty)
    }
    #expect(wire.isEmpty)
    #expect(wire.events().map(\.name) == Array(repeating: "refused \(reason) invite", count: 3))
    #expect(wire.agent.statistics.refused[reason] == 3)
    wire.input(.overloaded(nil))
    #expect(wire.receive(request("INVITE", sdp: offer)).map(\.statusCode) == [100])
  }

  @Test func `a refused INVITE that comes again gets the same answer`() {
    var wire = Wire()
    wire.input(.overloaded(.cpu))
    let answers = (0..<2).map { _ in wire.receive(request("INVITE", sdp: offer)).first?.toTag }
    #expect(answers[0] != nil && answers[0] == answers[1])
  }

  @Test func `under overload calls go on: retransmissions, CANCEL, ACK, re-INVITE, BYE and OPTIONS are served`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: TrunkRules())
    wire.receive(request("INVITE", branch: "z9hG4bKearly", callID: "early", sdp: offer))
    _ = wire.events()
    wire.input(.overloaded(.memory))
    #expect(
      wire.receive(request("INVITE", branch: "z9hG4bKearly", callID: "early", sdp: offer)).map(\.statusCode) == [100],
      "came again")
    #expect(wire.receive(request("OPTIONS", branch: "z9hG4bKo")).map(\.statusCode) == [200])
    #expect(wire.receive(request("CANCEL", branch: "z9hG4bKearly", callID: "early")).map(\.statusCode) == [200, 487])
    let again = request("INVITE", branch: "z9hG4bKre", from: "77", toTag: tag, cseq: 8, sdp: offer)
    #expect(wire.receive(again).map(\.statusCode) == [100])
    wire.command(.answerReinvite(leg, sdp: answer))
    #expect(wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag, cseq: 8)).isEmpty)
    #expect(wire.receive(request("BYE", branch: "z9hG4bKbye", toTag: tag, cseq: 9)).map(\.statusCode) == [200])
    let names = wire.events().map(\.name)
    #expect(names.contains("cancelled") && names.contains("reinvite") && names.contains("bye"))
    #expect(!names.contains { $0.hasPrefix("refused") })
  }

  @Test func `an attended transfer of a call that runs is no new load`() throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: TrunkRules(allowsTransfer: true))
    wire.input(.overloaded(.cpu))
    let replaces = "Replaces: call-1;to-tag=\(tag);from-tag=77"
    #expect(
      wire.receive(request("INVITE", branch: "z9hG4bKr", callID: "r", extra: [replaces], sdp: offer)).map(\.statusCode) == [100])
    #expect(wire.agent.legs[leg] != nil)
  }

  @Test func `a table full of refusals leaves room for calls in progress`() throws {
    var (wire, _, tag, _) = try Wire.confirmed(rules: TrunkRules())
    wire.receive(request("INVITE", branch: "z9hG4bKx", callID: "x", extra: ["Require: x"], sdp: offer))
    wire.addServerTransactions(TrunklineSIPDialogs.Limits.serverTransactions)
    #expect(wire.receive(request("INVITE", branch: "z9hG4bKy", callID: "y", sdp: offer)).map(\.statusCode) == [503])
    #expect(wire.receive(request("BYE", branch: "z9hG4bKbye", toTag: tag, cseq: 9)).map(\.statusCode) == [200])
  }

  @Test func `a flood of refused INVITEs costs no memory`() {
    var wire = Wire()
    wire.input(.overloaded(.delay))
    for n in 0..<20_000 { wire.receive(request("INVITE", branch: "z9hG4bK\(n)", callID: "c\(n)", sdp: offer)) }
    #expect(wire.isEmpty)
    #expect(wire.agent.statistics.refused[.delay] == 20_000)
  }
}
