import Testing
import TrunklineSIP

@Suite struct MessageTests {
  @Test func `a carrier's INVITE gives every typed value`() throws {
    let message = try Message(carrierInvite)
    let envelope = try message.checked()
    #expect(message.fields.count == 17)
    #expect(envelope.via.wantsRport && envelope.via.rport == nil && envelope.via.port == 5060)
    #expect(message.text(envelope.via.transport) == "UDP")
    #expect(envelope.requestURI?.port == 5060)
    #expect(envelope.requestURI?.parameter("user", in: message.bytes).map(message.text) == "phone")
    #expect(message.displayName(of: envelope.from) == "Alice \"A\" Smith")
    #expect(envelope.to.tag == nil)
    #expect(envelope.cseq.number == 2 && envelope.cseq.method == .invite)
    #expect(message.callID == "SDhh8c901-e8f8b7b2a4@203.0.113.7")
    let asserted = try message.assertedIdentities
    #expect(asserted.map(\.uri.scheme) == [.sip, .tel])
    #expect(asserted.map { message.text($0.uri.user) } == ["+15557654321", "+15557654321"])
    #expect(try message.recordRoutes.first?.uri.isLooseRoute == true)
    #expect(try message.tokens(.supported) == ["100rel", "timer"])
    #expect(message.privacy == ["none"])
    guard case .sdp(let sdp) = try message.sessionBody else { return #expect(Bool(false), "no SDP") }
    #expect(sdp.hasPrefix("v=0\r\n") && sdp.hasSuffix("a=ptime:20\r\n"))
  }

  @Test func `compact names, odd case and folding name the same headers`() throws {
    let bytes = message([
      "OPTIONS sip:a@b SIP/2.0", "v: SIP/2.0/TCP [2001:db8::1]:5070;branch=z9hG4bKx;received=2001:db8::2;rport=99",
      "F: <sip:c@d>;tag=1",
      "T: <sip:a@b>", "i: x", "cSEQ:", "\t7", "  OPTIONS", "L: 0", "k: a,b", "K:  c",
    ])
    let message = try Message(bytes, onStream: true)
    let envelope = try message.checked()
    #expect(envelope.cseq.number == 7)
    #expect(message.text(envelope.via.host) == "[2001:db8::1]" && envelope.via.port == 5070 && envelope.via.rport == 99)
    #expect(envelope.via.received.map(message.text) == "2001:db8::2")
    #expect(try message.tokens(.supported) == ["a", "b", "c"])
  }

  @Test func `every header name is found in canonical spelling and in capitals`() throws {
    for name in HeaderName.allCases where name != .other {
      for spelling in [name.text, name.text.uppercased(), name.text.lowercased()] {
        let message = try Message(message(["SIP/2.0 200 OK", "\(spelling): 1"]))
        #expect(message.fields.first?.name == name, "\(spelling)")
      }
    }
    #expect(try Message(message(["SIP/2.0 200 OK", "X-Via: 1", "Vi: 2"])).fields.map(\.name) == [.other, .other])
  }

  @Test func `a name-addr with and without brackets keeps parameters apart`() throws {
    func read(_ text: String) throws -> (NameAddress, Message) {
      let message = try Message(message(["SIP/2.0 200 OK", "From: \(text)"]))
      return (try #require(try message.from), message)
    }
    let (bare, m1) = try read("sip:alice@example.com:5062;tag=x;y")
    #expect(m1.text(bare.uri.whole) == "sip:alice@example.com:5062" && bare.tag.map(m1.text) == "x")
    let (named, m2) = try read("Alice Smith <sips:alice@example.com;transport=tcp?a=b>;tag=x")
    #expect(m2.displayName(of: named) == "Alice Smith" && named.uri.scheme == .sips)
    #expect(m2.text(named.uri.parameters) == ";transport=tcp" && m2.text(named.uri.headers) == "a=b")
    let (tel, m3) = try read("<tel:+1-555-1234;phone-context=example.com>")
    #expect(tel.uri.scheme == .tel && m3.text(tel.uri.user) == "+1-555-1234")
    let (hostOnly, m4) = try read("<sip:example.com>;tag=\"q\"")
    #expect(hostOnly.uri.user.isEmpty && m4.text(hostOnly.uri.host) == "example.com")
    for bad in [
      "\"open <sip:a@b>", "<sip:a@b", "<sip:@b>", "sip:a@b,sip:c@d", "<>", "sip:", "<sip:a@b>;tag=", "<sip:a@b:99999>",
      "<sip:a@[::1>",
    ] {
      #expect(throws: ParseError.self, "\(bad)") { try read(bad) }
    }
  }

  @Test func `reasons are read with quotes and survive faults`() throws {
    let message = try Message(
      message([
        "BYE sip:a@b SIP/2.0", "Reason: Q.850 ;cause=16 ;text=\"Normal, \\\"clear\\\"\", SIP;cause=200", "Reason: =;=",
      ]))
    #expect(message.reasons == [.q850(16, "Normal, \"clear\""), .sip(200)])
    #expect(message.reasons.first?.description == "Q.850;cause=16;text=\"Normal, \\\"clear\\\"\"")
  }

  @Test func `challenges are read in one field or several`() throws {
    let message = try Message(
      message([
        "SIP/2.0 401 Unauthorized",
        "WWW-Authenticate: Digest realm=\"a, b\", nonce=\"n\\\"1\", algorithm=SHA-256, qop=\"auth,auth-int\", "
          + "Digest realm=r,nonce=x==,stale=TRUE",
        "WWW-Authenticate: Basic realm=\"z\"",
      ]))
    let values = try message.authentication(.wwwAuthenticate)
    #expect(values.map(\.scheme) == ["Digest", "Digest", "Basic"])
    #expect(values[0]["realm"] == "a, b" && values[0]["nonce"] == "n\"1" && values[0]["qop"] == "auth,auth-int")
    #expect(values[1]["nonce"] == "x==" && values[1]["stale"] == "TRUE")
  }

  @Test func `Accept decides for application/sdp`() throws {
    func accepts(_ lines: [String]) throws -> Bool {
      try Message(message(["OPTIONS sip:a@b SIP/2.0"] + lines)).accepts("application/sdp")
    }
    #expect(try accepts([]))
    #expect(try accepts(["Accept: text/plain, application/SDP;level=1"]))
    #expect(try accepts(["Accept: application/*"]))
    #expect(try accepts(["Accept: */*"]))
    #expect(try !accepts(["Accept: text/plain"]))
    #expect(try !accepts(["Accept:"]))
  }

  @Test func `SDP is found in a multipart body`() throws {
    let body =
      "--b1\r\nContent-Type: application/isup\r\n\r\n\u{1}\u{2}\r\n--b1\r\n"
      + "Content-Disposition: session\r\ncontent-type : application/sdp\r\n\r\nv=0\r\ns=-\r\n\r\n--b1--\r\n"
    let message = try Message(
      message(
        ["INVITE sip:a@b SIP/2.0", "Content-Type: multipart/mixed;boundary=\"b1\"", "Content-Length: \(body.utf8.count)"],
        body: body))
    #expect(try message.sessionBody == .sdp("v=0\r\ns=-\r\n"))
    let open = try Message(
      SIPTests.message(["INVITE sip:a@b SIP/2.0", "Content-Type: multipart/mixed;boundary=b1"], body: "--b1\r\n"))
    #expect(throws: ParseError.self) { try open.sessionBody }
  }

  @Test(arguments: ["", "\r\n", "\r\n--b1", "\r\n--b1\r\n"]) func `the last delimiter of a multipart body may be missing or cut`(
    _ end: String
  ) throws {
    let body = "--b1\r\nContent-Type: application/sdp\r\n\r\nv=0\r\ns=-" + end
    let message = try Message(
      SIPTests.message(["INVITE sip:a@b SIP/2.0", "Content-Type: multipart/mixed;boundary=b1"], body: body))
    guard case .sdp(let text) = try message.sessionBody else {
      Issue.record("no SDP")
      return
    }
    #expect(text.hasPrefix("v=0\r\ns=-") && !text.contains("b1"))
  }

  @Test func `a body ends where Content-Length says`() throws {
    let message = try Message(message(["SIP/2.0 200 OK", "Content-Length: 3"], body: "abcdef"))
    #expect(message.text(message.body) == "abc" && message.defect == nil)
    #expect(try Message(SIPTests.message(["SIP/2.0 200 OK"], body: "abcdef")).body.count == 6)
    #expect(try Message(SIPTests.message(["SIP/2.0 200 OK"]), onStream: true).defect?.rule == .contentLength)
  }

  @Test(arguments: [
    "", "\r\n\r\n", "INVITE", "INVITE sip:a@b\r\n\r\n", "SIP/2.0 99 x\r\n\r\n", "SIP/2.0 2000 x\r\n\r\n",
    "INVITE sip:a@b SIP/2.0\r\nTo: x",
    "<<< >>> SIP/2.0\r\n\r\n",
  ])
  func `what is no message at all throws at once`(text: String) {
    #expect(throws: ParseError.self) { try Message(Array(text.utf8)) }
  }

  @Test func `a lone line feed or a line without colon is a defect that leaves Via readable`() throws {
    for line in ["To: a\nVia: smuggled", "no colon here", ": empty name"] {
      let message = try Message(
        message(["INVITE sip:a@b SIP/2.0", "Via: SIP/2.0/UDP h;branch=z9hG4bK1", line, "CSeq: 1 INVITE"]))
      #expect(message.defect?.status == 400, "\(line)")
      #expect(try message.vias.count == 1)
    }
  }

  @Test func `limits are hit by name`() throws {
    let many = message(["OPTIONS sip:a@b SIP/2.0"] + Array(repeating: "X: 1", count: Limits.fields + 1))
    #expect(throws: ParseError.self) { try Message(many) }
    let long = message(["OPTIONS sip:a@b SIP/2.0", "X: " + String(repeating: "a", count: Limits.fieldBytes + 1)])
    #expect(try Message(long).defect?.rule == .fieldTooLong)
    #expect(throws: ParseError.self) { try Message([UInt8](repeating: 65, count: Limits.messageBytes + 1)) }
    let routes = try Message(
      message(["OPTIONS sip:a@b SIP/2.0", "Route: " + Array(repeating: "<sip:a;lr>", count: 200).joined(separator: ",")]))
    #expect(throws: ParseError.self) { try routes.routes }
    #expect(throws: ParseError.self) { try routes.values(of: .route) }
  }

  @Test func `body parts and challenge parameters have their limits`() throws {
    let part = "--b\r\n\r\nx\r\n"
    func parts(_ count: Int) throws -> SessionBody {
      let body = String(repeating: part, count: count) + "--b--\r\n"
      return try Message(message(["INVITE sip:a@b SIP/2.0", "Content-Type: multipart/mixed;boundary=b"], body: body)).sessionBody
    }
    #expect(try parts(Limits.bodyParts) == .other("multipart/mixed"))
    #expect(throws: ParseError.self) { try parts(Limits.bodyParts + 1) }
    let long = (0...Limits.parameters).map { "p\($0)=1" }.joined(separator: ",")
    let challenge = try Message(message(["SIP/2.0 401 x", "WWW-Authenticate: Digest \(long)"]))
    #expect(throws: ParseError.self) { try challenge.authentication(.wwwAuthenticate) }
  }
}
