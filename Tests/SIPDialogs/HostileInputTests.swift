import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// A user agent with live calls that gets mutated messages of its own dialogs: nothing traps, tables stay bounded, all comes
/// to rest.
@Suite struct HostileInputTests {
  @Test func `mutated traffic of live calls neither traps nor leaves anything behind`() throws {
    #if DEBUG
      let rounds = 6_000
    #else
      let rounds = 60_000
    #endif
    var random = SplitMix64(seed: 3261)
    var wire = Wire(seed: 9)
    var corpus: [[UInt8]] = []
    var inbound: [LegID] = []
    var outbound: [LegID] = []
    let trunk = TrunkPeer(
      name: "carrier", domain: "203.0.113.7", flow: udp, credentials: Credentials(username: "u", password: "p"))
    for round in 0..<rounds {
      wire.now = wire.now + .milliseconds(Int(random.next() % 700))
      wire.input(.timer)
      switch random.next() % 24 {
      case 0: wire.receive(request("INVITE", branch: "z9hG4bKf\(round)", callID: "f\(round)", sdp: round % 3 == 0 ? nil : offer))
      case 1:
        let leg = LegID.outbound(UInt64(round))
        wire.command(.invite(leg, OutboundInvite(trunk: trunk, to: "+1555", from: "+1556", sdp: offer)))
        outbound.append(leg)
      case 2: if let leg = inbound.randomElement(using: &random) { wire.command(.answer(leg, sdp: answer)) }
      case 3:
        if let leg = inbound.randomElement(using: &random) {
          wire.command(.refuse(leg, code: 486, reason: nil, cause: nil, retryAfter: nil))
        }
      case 4: if let leg = (inbound + outbound).randomElement(using: &random) { wire.command(.bye(leg, nil)) }
      case 5: if let leg = outbound.randomElement(using: &random) { wire.command(.cancel(leg, nil)) }
      case 6: if let leg = (inbound + outbound).randomElement(using: &random) { wire.command(.ping(leg)) }
      case 7: if let leg = inbound.randomElement(using: &random) { wire.command(.answerReinvite(leg, sdp: answer)) }
      case 8...11: respond(&wire, corpus, &random)
      case 12...14: inDialog(&wire, corpus, &random)
      default:
        if let bytes = corpus.randomElement(using: &random) {
          wire.input(.received(mutated(bytes, &random), udp, trunk: "carrier"))
        }
      }
      for message in wire.output.messages { corpus.append(message.bytes) }
      if corpus.count > 200 { corpus.removeFirst(corpus.count - 200) }
      for event in wire.events() { if case .inviteReceived(let leg, _) = event { inbound.append(leg) } }
    }
    #expect(wire.agent.statistics.requestsReceived.values.reduce(0, +) > 500)
    for leg in inbound { wire.command(.refuse(leg, code: 480, reason: nil, cause: nil, retryAfter: nil)) }
    for leg in outbound { wire.command(.cancel(leg, nil)) }
    for leg in inbound + outbound { wire.command(.bye(leg, nil)) }
    _ = wire.advance(.seconds(200))
    for leg in outbound + inbound { wire.command(.bye(leg, nil)) }
    _ = wire.advance(.seconds(200))
    let left = wire.agent.legs.all.filter { $0.phase != .calling }
    #expect(left.isEmpty, "\(left.map { "\($0.id) \($0.phase)" })")
    #expect(wire.isEmpty, "\(wire.agent.statistics) \(wire.agent.step.timers.count)")
  }

  /// A response of any code to a request the agent has sent.
  private func respond(_ wire: inout Wire, _ corpus: [[UInt8]], _ random: inout SplitMix64) {
    guard let bytes = corpus.randomElement(using: &random), let sent = try? Message(bytes), sent.isRequest, sent.method != .ack
    else { return }
    let code = [100, 180, 183, 200, 200, 302, 401, 407, 481, 486, 503].randomElement(using: &random) ?? 200
    let extra = code == 401 ? ["WWW-Authenticate: Digest realm=\"r\", nonce=\"\(random.next())\", stale=true"] : []
    let tag = ["a", "b"].randomElement(using: &random)
    wire.receive(reply(sent, code, tag: tag, extra: extra + ["Contact: <sip:x@203.0.113.7>"], sdp: code == 200 ? answer : nil))
  }

  /// A request inside a dialog the agent has a tag in.
  private func inDialog(_ wire: inout Wire, _ corpus: [[UInt8]], _ random: inout SplitMix64) {
    guard let bytes = corpus.randomElement(using: &random), let sent = try? Message(bytes) else { return }
    let ours = sent.isRequest ? sent.fromTag : sent.toTag
    let theirs = (sent.isRequest ? sent.toTag : sent.fromTag) ?? "a"
    let method = ["ACK", "BYE", "INVITE", "OPTIONS", "CANCEL", "INFO"].randomElement(using: &random) ?? "BYE"
    let cseq = Int(random.next() % 4) + 1
    wire.receive(
      request(method, branch: "z9hG4bKd\(random.next())", callID: sent.callID, from: theirs, toTag: ours, cseq: cseq, sdp: offer))
  }

  private func mutated(_ bytes: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<(random.next() % 3) where !bytes.isEmpty {
      let at = Int(random.next() % UInt64(bytes.count))
      switch random.next() % 3 {
      case 0: bytes[at] = UInt8(truncatingIfNeeded: random.next())
      case 1: bytes.remove(at: at)
      default: bytes.insert("\r\n;,<>\":= ".utf8.randomElement(using: &random) ?? 0, at: at)
      }
    }
    return bytes
  }
}
