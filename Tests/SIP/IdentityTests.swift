import Testing

@testable import TrunklineSIP

@Suite struct IdentityTests {
  @Test(arguments: [
    ("eyJh.eyJi.sig-_9;info=<https://cert.example/a.cer>;alg=ES256;ppt=shaken", true, "shaken"),
    ("eyJh.eyJi.sig ; info=<https://c> ; ppt=\"Shaken\"", true, "shaken"),
    ("..sig;info=<https://c>", true, nil), ("eyJh.eyJi.sig;info=<https://c>;ppt=div", true, "div"),
    ("eyJh.eyJi.sig;ppt=shaken", false, "shaken"), ("eyJh.eyJi.sig;info=https://c;ppt=shaken", false, "shaken"),
    ("eyJh.eyJi;info=<https://c>;ppt=shaken", false, "shaken"), ("eyJh..sig;info=<https://c>;ppt=shaken", false, "shaken"),
    ("eyJh.eyJi.;info=<https://c>;ppt=shaken", false, "shaken"), ("ey\"h.eyJi.sig;info=<https://c>;ppt=shaken", false, "shaken"),
    ("eyJh.eyJi.sig;info=<https://c>;alg=none;ppt=shaken", false, "shaken"), ("", false, nil), (";;;=;", false, nil),
  ])
  func `an Identity field is a token, an info URI and a type`(_ text: String, _ isWellFormed: Bool, _ type: String?) {
    let identity = SignedIdentity(text)
    #expect(identity.isWellFormed == isWellFormed && identity.type == type && identity.text == text)
  }

  @Test func `several fields are taken, four at most, and none that is too long`() throws {
    let long = "y: " + String(repeating: "a", count: 5_000) + "\r\n"
    let fields = (0..<6).map { "Identity: a.b.c\($0);info=<https://c>;ppt=shaken\r\n" }.joined()
    let head = "INVITE sip:1@h SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nDate: Sat, 13 Nov 2010 23:29:00 GMT\r\n"
    let message = try Message(Array((head + long + fields + "\r\n").utf8))
    #expect(message.identities.map(\.text) == (0..<4).map { "a.b.c\($0);info=<https://c>;ppt=shaken" })
    #expect(message.date == "Sat, 13 Nov 2010 23:29:00 GMT")
  }
}
