import Testing
import TrunklineSIP

/// The RFC 4475 messages at the parser: accepted, or the status code they owe. What the user agent does with them is in
/// Tests/SIPDialogs.
@Suite struct TortureTests {
  @Test(arguments: ["esc01", "intmeth", "inv2543", "longreq", "lwsdisp", "semiuri", "wsinv", "noreason", "bext01", "sdp01"])
  func `a legal message is read`(name: String) throws {
    _ = try Message(try torture(name)).checked()
  }

  @Test(arguments: [
    ("badinv01", 400), ("badvers", 505), ("clerr", 400), ("ltgtruri", 400), ("mcl01", 400), ("multi01", 400), ("ncl", 400),
    ("scalar02", 400), ("trws", 400),
  ])
  func `an illegal message is refused with its code`(name: String, status: Int) throws {
    let message = try Message(try torture(name))
    let error = #expect(throws: ParseError.self) { try message.checked() }
    #expect(error?.status == status)
  }

  @Test func `the short tortuous INVITE gives its values`() throws {
    let message = try Message(try torture("wsinv"))
    let envelope = try message.checked()
    #expect(message.method == .invite)
    #expect(envelope.to.tag.map(message.text) == "1918181833n")
    #expect(envelope.from.tag.map(message.text) == "98asjd8")
    #expect(message.displayName(of: envelope.from) == "J Rosenberg \\\"")
    #expect(envelope.maxForwards == 68)
    #expect(envelope.cseq.number == 9)
    let vias = try message.vias
    #expect(vias.map { message.text($0.host) } == ["192.0.2.2", "spindle.example.com", "192.168.255.111"])
    #expect(vias.map { $0.branch.map(message.text) } == ["390skdjuw", "z9hG4bK9ikj8", "z9hG4bK30239"])
    #expect(
      try message.routes.map { message.text($0.uri.whole) } == ["sip:services.example.com;lr;unknownwith=value;unknown-no-value"])
    let contact = try #require(try message.contacts.first)
    #expect(message.displayName(of: contact) == "Quoted string \"\"")
    #expect(message.parameter("q", of: contact).map(message.text) == "0.33")
    #expect(
      message.unknownField("newfangledheader").map { message.text($0.value) } == "newfangled value   continued newfangled value")
  }

  @Test func `odd characters stay what they are`() throws {
    let message = try Message(try torture("intmeth"))
    let envelope = try message.checked()
    #expect(message.method == .other)
    #expect(message.methodName == "!interesting-Method0123456789_*+`.%indeed'~")
    #expect(envelope.requestURI.map { message.text($0.user) } == "1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*")
    #expect(envelope.requestURI.map { message.text($0.password) } == "&it+has=1,weird!*pas$wo~d_too.(doesn't-it)")
    #expect(message.displayName(of: envelope.to) == "BEL:\u{7} NUL:\0 DEL:\u{7f}")
  }

  @Test func `escapes are undone once`() throws {
    let message = try Message(try torture("esc01"))
    let uri = try #require(try message.checked().requestURI)
    #expect(message.text(uri.host) == "example.net")
    #expect(percentDecoded(message.bytes.slice(uri.user)) == Array("sips:user@example.com".utf8))
    let contact = try #require(try message.contacts.first)
    #expect(message.text(contact.uri.parameters) == ";%6C%72;n%61me=v%61lue%25%34%31")
    #expect(!contact.uri.isLooseRoute)
    #expect(percentDecoded("v%61lue%25%34%31%".utf8) == Array("value%41%".utf8))
  }

  @Test func `a semicolon before the at sign belongs to the user`() throws {
    let message = try Message(try torture("semiuri"))
    let uri = try #require(try message.checked().requestURI)
    #expect(message.text(uri.user) == "user;par=u%40example.net")
    #expect(message.text(uri.host) == "example.com")
  }
}
