import BenchKit
import Foundation
import TrunklineBytes
import TrunklineSIP
import TrunklineSIPDialogs

/// `bench-sip`: what a message and a call cost the control thread. Parsing allocates one array for the fields and holds the bytes.
@main struct BenchSIP {
  nonisolated static func main() {
    Bench.main("sip", about: "what a call costs the SIP user agent: parsing, setting up, tearing down.") { bench in
      try parseRows(bench)
      try callRows(bench)
      try EventRows.rows(bench)
      try NumberRows.rows(bench)
    }
  }

  /// An INVITE of a carrier's session border controller: 942 bytes, 18 fields, SDP.
  static let invite: [UInt8] = {
    let sdp =
      "v=0\r\no=- 20518 0 IN IP4 203.0.113.7\r\ns=-\r\nc=IN IP4 203.0.113.7\r\nt=0 0\r\nm=audio 41000 RTP/AVP 0 8 101\r\n"
      + "a=rtpmap:0 PCMU/8000\r\na=ptime:20\r\n"
    let head = [
      "INVITE sip:+15551230001@198.51.100.9:5060;user=phone SIP/2.0",
      "Via: SIP/2.0/UDP 203.0.113.7:5060;rport;branch=z9hG4bK0g04430050bgj18o8cp0.1", "Record-Route: <sip:203.0.113.7:5060;lr>",
      "Max-Forwards: 68", "From: \"Alice Smith\" <sip:+15557654321@carrier.example;user=phone>;tag=SDhh8c901-4af3",
      "To: <sip:+15551230001@198.51.100.9;user=phone>", "Call-ID: SDhh8c901-e8f8b7b2a4@203.0.113.7", "CSeq: 2 INVITE",
      "Contact: <sip:+15557654321@203.0.113.7:5060>", "P-Asserted-Identity: <sip:+15557654321@carrier.example>", "Privacy: none",
      "Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, PRACK, UPDATE", "Supported: 100rel, timer",
      "Session-Expires: 1800;refresher=uac", "Min-SE: 90", "User-Agent: Carrier SBC 9.1", "Content-Type: application/sdp",
      "Content-Length: \(sdp.utf8.count)",
    ].map { $0 + "\r\n" }.joined()
    let rest = 942 - head.utf8.count - 2 - sdp.utf8.count
    return Array((head.replacing("SBC 9.1", with: "SBC 9.1" + String(repeating: "x", count: max(0, rest))) + "\r\n" + sdp).utf8)
  }()

  static func parseRows(_ bench: Bench) throws {
    bench.require(invite.count == 942, "the INVITE has \(invite.count) bytes instead of 942")
    let work = BenchWork("ours") { loop in
      let bytes = invite
      loop.run { _ in
        guard let message = try? Message(bytes), let envelope = try? message.checked() else { return 0 }
        return UInt64(envelope.cseq.number) &+ UInt64(message.fields.count) &+ UInt64(envelope.via.port ?? 0)
      }
    }
    try bench.compare(
      "parse and check an INVITE of 942 bytes", operations: 20_000, ours: work, goal: .atMost(2_500), oursMayAllocate: true)
  }

  /// A call comes in, rings, is answered, acknowledged and ended by the caller: seven messages in and out, at the user agent.
  static func callRows(_ bench: Bench) throws {
    let work = BenchWork("ours") { loop in
      var caller = CallBench()
      loop.run { index in caller.call(index) }
    }
    try bench.compare(
      "a call set up and torn down at the user agent", operations: 1_000, ours: work, goal: .atMost(120_000),
      oursMayAllocate: true)
    try bench.compare(
      "calls set up and torn down at the user agent", as: .perSecond(unit: "calls/s"), operations: 1_000, ours: work,
      goal: .atLeast(2_000), oursMayAllocate: true)
  }
}

/// One user agent under a steady stream of calls, 2 ms apart, with its timers served.
struct CallBench {
  private var agent = UserAgent(random: .seeded(1))
  private var output = UserAgent.Output()
  private var now = Instant.zero
  private let flow = Flow(
    transport: .udp, local: SocketAddress(IPAddress(198, 51, 100, 9), 5_060),
    remote: SocketAddress(IPAddress(203, 0, 113, 7), 5_060))
  /// The INVITE in three parts, between which Call-ID and branch stand: what the caller's side costs is not measured.
  private static let parts: [[UInt8]] = {
    let text = String(decoding: BenchSIP.invite, as: UTF8.self)
    let (branch, callID) = ("bgj18o8cp0.1", "SDhh8c901-e8f8b7b2a4@203.0.113.7")
    let first = text.components(separatedBy: branch)
    let second = first[1].components(separatedBy: callID)
    return [first[0], second[0], second[1]].map { Array($0.utf8) }
  }()
  private static let answer =
    "v=0\r\no=- 2 2 IN IP4 198.51.100.9\r\ns=-\r\nc=IN IP4 198.51.100.9\r\nt=0 0\r\nm=audio 6000 RTP/AVP 0\r\n"

  private mutating func handle(_ input: UserAgent.Input) { agent.handle(input, at: now, into: &output) }

  private static func request(_ method: String, _ branch: String, _ callID: String, tag: String, _ sequence: Int) -> [UInt8] {
    Array(
      ("\(method) sip:trunkline@198.51.100.9:5060 SIP/2.0\r\nVia: SIP/2.0/UDP 203.0.113.7:5060;rport;branch=\(branch)\r\n"
        + "Max-Forwards: 68\r\nFrom: \"Alice Smith\" <sip:+15557654321@carrier.example;user=phone>;tag=SDhh8c901-4af3\r\n"
        + "To: <sip:+15551230001@198.51.100.9;user=phone>;tag=\(tag)\r\nCall-ID: \(callID)\r\nCSeq: \(sequence) \(method)\r\n"
        + "Content-Length: 0\r\n\r\n").utf8)
  }

  /// - Returns: bytes and events of the call, for the result's hash.
  mutating func call(_ index: Int) -> UInt64 {
    now = now + .milliseconds(2)
    handle(.timer)
    output.removeAll()
    let callID = "c\(index)@203.0.113.7"
    var invite = Self.parts[0]
    invite.reserveCapacity(1_024)
    invite += "i\(index)".utf8
    invite += Self.parts[1]
    invite += callID.utf8
    invite += Self.parts[2]
    handle(.received(invite, flow, trunk: "carrier"))
    guard case .inviteReceived(let leg, _)? = output.events.first else { return 0 }
    handle(.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)))
    handle(.command(.answer(leg, sdp: Self.answer)))
    guard let bytes = output.messages.last?.bytes, let ok = try? Message(bytes), let tag = try? ok.to?.tag else { return 0 }
    handle(.received(Self.request("ACK", "z9hG4bKa\(index)", callID, tag: ok.text(tag), 2), flow, trunk: "carrier"))
    handle(.received(Self.request("BYE", "z9hG4bKb\(index)", callID, tag: ok.text(tag), 3), flow, trunk: "carrier"))
    let sum = output.messages.reduce(UInt64(output.events.count)) { $0 &+ UInt64($1.bytes.count) }
    output.removeAll()
    return sum
  }
}
