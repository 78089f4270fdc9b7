import CallFlow
import GatewayCore
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIP
import TrunklineSIPDialogs

/// The whole gateway while every message of its carrier also comes in broken copies, before and after itself: calls of both
/// directions with hold, hang-up and CANCEL. Nothing traps, each call has one record, nothing is left, the next OPTIONS is
/// answered.
@Suite struct HostileTrafficTests {
  @Test(arguments: 1...12) func `broken copies of every message leave no call, no leg and no second record`(seed: UInt64) throws {
    let world = World(seed: seed)
    var mutator = Mutator(state: seed &* 0x9E37_79B9_7F4A_7C15)
    let flow = Flow(transport: .udp, local: World.gatewayAddress, remote: World.carrierAddress)
    var broken = 0
    world.carrier.loses = { bytes in
      for _ in 0..<3 {
        let copy = mutator.mutate(bytes)
        broken += 1
        let delay = Duration.milliseconds(Int(mutator.next() % 11))
        world.after(delay) { world.signal(.received(copy, flow, trunk: "carrier")) }
      }
      return false
    }
    world.app("phone") { $0.answersAfter = .milliseconds(100) }
    for round in 0..<4 {
      let leg = world.carrier.call()
      world.run(.milliseconds(round == 3 ? 60 : 2_000))
      if round == 1 { world.carrier.handle(.command(.modify(leg))) }
      world.run(.seconds(1))
      if round == 3 { world.carrier.cancel(leg) } else { world.carrier.hangUp(leg) }
      world.run(.seconds(2))
    }
    world.carrier.loses = { _ in false }
    // calls that a broken INVITE opened have no peer: they ring out, or their 200 gets no ACK
    world.run(.seconds(200))
    for summary in world.machine.summaries { world.give(.hangUp(summary.call)) }
    world.run(.seconds(120))
    #expect(broken >= 24)
    #expect(world.machine.summaries.isEmpty)
    #expect(Set(world.records.map(\.call)).count == world.records.count, "one record each")
    // a broken INVITE that arrives first replaces the complete one: such a call is refused and has no record
    #expect(!world.records.isEmpty)
    let left = world.userAgent.statistics
    #expect(left.legs == 0 && left.serverTransactions == 0 && left.clientTransactions == 0, "\(left)")
    #expect(world.media.open.isEmpty, "media sessions are left")
    var output = GatewayCore.Output()
    let text =
      "OPTIONS sip:a@198.51.100.9 SIP/2.0\r\nVia: SIP/2.0/UDP 203.0.113.7:5060;branch=z9hG4bKlast;rport\r\nFrom: <sip:a@b>;tag=1\r\n"
      + "To: <sip:a@b>\r\nCall-ID: last\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
    world.core.handle(
      .sip(.received(Array(text.utf8), flow, trunk: "carrier")), at: world.now, into: &output
    ) { world.media.reserve($0) }
    var answer: [UInt8]?
    if case .sendSIP(let message) = output.effects.first { answer = message.bytes }
    #expect(answer.flatMap { try? Message($0) }?.statusCode == 200)
  }
}

/// Breaks real messages: long tokens, numbers that overflow, header lines doubled, moved and smuggled, control bytes, lengths
/// that lie.
private struct Mutator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state = state &+ 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  private mutating func below(_ count: Int) -> Int { count > 0 ? Int(next() % UInt64(count)) : 0 }

  mutating func mutate(_ message: [UInt8]) -> [UInt8] {
    guard !message.isEmpty else { return message }
    var out = message
    let at = below(out.count)
    switch below(10) {
    case 0: out.insert(contentsOf: [UInt8](repeating: out[at], count: 1 + below(20_000)), at: at)
    case 1: out.insert(contentsOf: Array("99999999999999999999".utf8), at: at)
    case 2: out[at] = UInt8(truncatingIfNeeded: next())
    case 3: for _ in 0..<8 { out[below(out.count)] = UInt8(below(32)) }
    case 4: out.removeSubrange(at..<min(out.count, at + 1 + below(40)))
    case 5: out = Array(out[..<at])
    case 6:
      let lines = out.split(separator: 10, omittingEmptySubsequences: false)
      let line = Array(lines[below(lines.count)]) + [10]
      out.insert(contentsOf: line, at: (out[..<at].lastIndex(of: 10) ?? -1) + 1)
    case 7: out.insert(contentsOf: Array("\r\n\r\nBYE sip:x SIP/2.0\r\n".utf8), at: at)
    case 8: out.insert(contentsOf: Array(["\r\n ", "\t:", " \u{0}", "\r", "\"", ";tag=", "<", "%0d%0a"][below(8)].utf8), at: at)
    default:
      out = Array(
        String(decoding: out, as: UTF8.self).replacing(
          "Content-Length: ", with: ["Content-Length: 9", "Content-Length: -", "l: 3\r\nContent-Length: "][below(3)]
        ).utf8)
    }
    return out
  }
}
