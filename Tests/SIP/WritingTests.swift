import Testing
import TrunklineBytes
import TrunklineSIP

@Suite struct WritingTests {
  @Test func `what was read is written, and reads the same again`() throws {
    for name in ["esc01", "intmeth", "inv2543", "longreq", "lwsdisp", "semiuri", "wsinv", "noreason"] {
      let once = try Message(try torture(name)).written()
      let message = try Message(once)
      #expect(message.written() == once, "\(name)")
      let original = try Message(try torture(name))
      #expect(message.fields.map(\.name) == original.fields.map(\.name))
      #expect(message.fields.map { message.text($0.value) } == original.fields.map { original.text($0.value) })
      #expect(message.text(message.body) == original.text(original.body))
    }
  }

  @Test func `written values are read back unchanged`() throws {
    let random = RandomSource.seeded(42)
    let alphabet = Array("ab\"\\ <>;,=@:%éß\u{7}\r\n+1".unicodeScalars)
    func text(_ count: Int) -> String {
      var out = ""
      for _ in 0..<count { out.unicodeScalars.append(alphabet[Int(random.next() % UInt64(alphabet.count))]) }
      return out
    }
    for round in 0..<2_000 {
      let display = text(Int(random.next() % 12))
      let user = "u" + text(Int(random.next() % 12))
      let reason = ReasonValue(protocolName: "Q.850", cause: Int(random.next() % 128), text: text(8))
      var writer = MessageWriter(method: "INVITE", uri: "sip:\(percentEncodedUser(user))@example.com")
      writer.field(.via, "SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK\(round);rport")
      writer.field(.from, "\(quotedString(display)) <sip:\(percentEncodedUser(user))@example.com>;tag=\(round)")
      writer.field(.to, "<sip:b@example.com>")
      writer.field(.callID, "c\(round)")
      writer.field(.cseq, "\(round) INVITE")
      writer.field(.reason, reason.description)
      writer.field(named: "X-Free", text(20))
      writer.field(named: "bad name", "never")
      let message = try Message(writer.finish(body: "v=0\r\n"))
      let envelope = try message.checked()
      let visible = String(String.UnicodeScalarView(display.unicodeScalars.filter { $0.value >= 32 && $0.value != 127 }))
      #expect(message.displayName(of: envelope.from) ?? "" == visible, "round \(round)")
      #expect(envelope.requestURI.map { percentDecoded(message.bytes.slice($0.user)) } == Array(user.utf8), "round \(round)")
      #expect(message.reasons.first?.cause == reason.cause)
      #expect(message.fields.count == 9, "round \(round): a value has added a field")
      let again = message.written()
      #expect(try Message(again).written().elementsEqual(again) == true)
    }
  }

  @Test func `a line break in a value can not add a field`() throws {
    var writer = MessageWriter(status: 200, reason: "OK\r\nX: 1")
    writer.field(named: "Subject", "a\r\nVia: SIP/2.0/UDP evil")
    let message = try Message(writer.finish())
    #expect(message.fields.map(\.name) == [.subject, .contentLength])
  }
}
