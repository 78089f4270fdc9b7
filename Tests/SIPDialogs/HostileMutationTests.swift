import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Real messages of a running call, each broken in a named way: no trap, the call untouched, no table grown, the next OPTIONS
/// answered. (`sip-dialog` of Scripts/fuzz does the same without names; its seeds are in Tests/Fuzzing/corpus.)
@Suite struct HostileMutationTests {
  struct Mutation: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let apply: @Sendable (String) -> [UInt8]
    init(_ name: String, _ apply: @escaping @Sendable (String) -> [UInt8]) { (testDescription, self.apply) = (name, apply) }
    /// Replaces one text by another.
    init(_ name: String, _ old: String, _ new: String) { self.init(name) { Array($0.replacing(old, with: new).utf8) } }
    /// Adds a line before Call-ID.
    init(_ name: String, line: String) { self.init(name, "Call-ID:", line + "\r\nCall-ID:") }
  }

  static let long = String(repeating: "a", count: 60_000)
  static let mutations: [Mutation] = [
    .init("long branch", "branch=z9hG4bK", "branch=z9hG4bK" + long),
    .init("long Call-ID", "Call-ID: ", "Call-ID: " + long),
    .init("long tag", ";tag=77", ";tag=" + long),
    .init("long method") { Array(String(repeating: "M", count: 50_000).utf8) + Array($0.utf8) },
    .init("long header name", line: long + ": x"),
    .init("long display name", "\"Bob\"", "\"" + long + "\""),
    .init("20,000 headers", line: String(repeating: "X: y\r\n", count: 20_000) + "X: y"),
    .init("5,000 Via", line: String(repeating: "Via: SIP/2.0/UDP a;branch=b\r\n", count: 5_000) + "Via: SIP/2.0/UDP a"),
    .init("5,000 routes", line: "Record-Route: " + Array(repeating: "<sip:a;lr>", count: 5_000).joined(separator: ",")),
    .init("CSeq 2^31", "CSeq: ", "CSeq: 2147483648"),
    .init("CSeq 2^32", "CSeq: ", "CSeq: 4294967296"),
    .init("CSeq of 300 digits", "CSeq: ", "CSeq: " + String(repeating: "9", count: 300)),
    .init("CSeq negative", "CSeq: ", "CSeq: -"),
    .init("CSeq of another method", "CSeq: ", "CSeq: 1 PUBLISH\r\nX: "),
    .init("RSeq and RAck overflow", line: "RSeq: 99999999999\r\nRAck: 99999999999 99999999999 INVITE"),
    .init(
      "Session-Expires overflow", line: "Session-Expires: 99999999999999999999;refresher=uac\r\nMin-SE: 18446744073709551616"),
    .init("Max-Forwards overflow", line: "Max-Forwards: 99999999999999999999"),
    .init("port overflow", "203.0.113.7:5060", "203.0.113.7:99999"),
    .init("a blank before a colon", "Call-ID:", "Call-ID \t :"),
    .init("a folded line before the first header", "Via:", " folded\r\nVia:"),
    .init("a smuggled second message", line: "X: y\r\n\r\nBYE sip:x SIP/2.0"),
    .init("lone CR", line: "X: a\rBYE: b"),
    .init("lone LF", line: "X: a\nContent-Length: 0"),
    .init("NUL in a value", line: "X: a\u{0}b"),
    .init("NUL in a name", "Call-ID", "Call\u{0}-ID"),
    .init("control bytes", line: "X: \u{1}\u{7}\u{b}\u{1b}\u{7f}"),
    .init("bytes that are no UTF-8") { Array($0.utf8).flatMap { $0 == UInt8(ascii: "=") ? [0xFF, 0xC0, 0x80, $0] : [$0] } },
    .init("two Call-IDs", line: "i: another"),
    .init("two From", line: "f: <sip:x@y>;tag=other"),
    .init("two To", line: "t: <sip:x@y>;tag=other"),
    .init("two CSeq", line: "CSeq: 77 BYE"),
    .init("Content-Length too long", "Content-Length: ", "Content-Length: 9"),
    .init("Content-Length overflow", "Content-Length: ", "Content-Length: 99999999999999999999"),
    .init("Content-Length negative", "Content-Length: ", "Content-Length: -"),
    .init("two Content-Lengths", line: "l: 3"),
    .init("no Content-Length", "Content-Length: ", "X: "),
    .init("quotes that do not end", "\"Bob\"", "\"Bob"),
    .init("brackets that do not end", "<sip:+15557654321@203.0.113.7>", "<sip:+15557654321@203.0.113.7"),
    .init("escapes that do not end", "sip:+15551230001", "sip:%2%%%"),
    .init("IPv6 that does not end", "SIP/2.0/UDP 203.0.113.7", "SIP/2.0/UDP [2001:db8::"),
    .init("no version", " SIP/2.0", ""),
    .init("another version", " SIP/2.0", " SIP/7.0"),
    .init("deep multipart") { text in
      var body = "v=0\r\n"
      for depth in 0..<200 {
        body = "--b\(depth)\r\nContent-Type: multipart/mixed;boundary=b\(depth - 1)\r\n\r\n\(body)\r\n--b\(depth)--\r\n"
      }
      let head = text.prefix(upTo: text.range(of: "Content-Length")?.lowerBound ?? text.endIndex)
      return Array(
        (head.replacing("application/sdp", with: "multipart/mixed;boundary=b199")
          + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)").utf8)
    },
    .init("a boundary of nothing", "application/sdp", "multipart/mixed;boundary="),
    .init("a body of 60,000 lines") { Array($0.utf8) + Array(String(repeating: "a=x\r\n", count: 12_000).utf8) },
    .init("cut in the middle") { Array($0.utf8.prefix($0.utf8.count / 2)) },
    .init("nothing at all") { _ in [] },
    .init("only line ends") { _ in Array(repeating: 10, count: 5_000) },
  ]
  private static let methods = ["INVITE", "ACK", "BYE", "CANCEL", "PRACK", "UPDATE", "INFO", "REFER", "NOTIFY", "OPTIONS"]

  @Test(arguments: mutations) func `a call survives whatever is made of its messages`(mutation: Mutation) throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: TrunkRules(trustsIdentity: true, allowsTransfer: true))
    for reliable in [false, true] {
      for (number, method) in Self.methods.enumerated() {
        for toTag in [nil, tag] {
          // a tag other than the caller's, so that a BYE that is still complete belongs to no dialog
          let text = request(
            method, branch: "z9hG4bKm\(number)\(toTag == nil)\(reliable)", callID: toTag == nil ? "new\(number)" : "call-1",
            from: "77", toTag: toTag == nil ? nil : tag + "x",
            cseq: 20 + number, sdp: offer)
          let flow = reliable ? Flow(transport: .tcp, local: gatewayAddress, remote: carrierAddress) : udp
          wire.input(.received(mutation.apply(text), flow, trunk: "carrier"))
          let response = mutation.apply(text.replacing("\(method) sip:+15551230001@198.51.100.9 SIP/2.0", with: "SIP/2.0 200 OK"))
          wire.input(.received(response, flow, trunk: "carrier"))
        }
      }
    }
    #expect(wire.agent.legs[leg]?.value.phase == .confirmed, "the call that runs is untouched")
    #expect(wire.receive(request("OPTIONS", branch: "z9hG4bKafter", callID: "after")).map(\.statusCode) == [200])
    for event in wire.events() {
      if case .inviteReceived(let new, _) = event {
        wire.command(.refuse(new, code: 480, reason: nil, cause: nil, retryAfter: nil))
      }
    }
    wire.command(.bye(leg, nil))
    _ = wire.advance(.seconds(120))
    #expect(wire.isEmpty, "\(wire.agent.statistics)")
  }
}
