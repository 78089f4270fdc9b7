import Testing

@testable import TrunklineSIPTrace

/// Secrets are unreadable, everything else and every length is as it was.
@Suite struct MaskTests {
  private func masked(_ text: String) -> String {
    var bytes = Array(text.replacingOccurrences("\n", "\r\n").utf8)
    let count = bytes.count
    SecretMask.apply(to: &bytes)
    #expect(bytes.count == count)
    return String(decoding: bytes, as: UTF8.self).replacingOccurrences("\r\n", "\n")
  }

  @Test(arguments: [
    (
      "Authorization: Digest username=\"bob\", realm=\"r\", nonce=\"abc\", uri=\"sip:r\", response=\"0123\", cnonce=\"z\", nc=00000001, opaque=\"o\"",
      "Authorization: Digest username=\"bob\", realm=\"r\", nonce=\"xxx\", uri=\"sip:r\", response=\"xxxx\", cnonce=\"x\", nc=00000001, opaque=\"x\""
    ),
    (
      "PROXY-authorization \t: digest response = abc , Nonce=\"a\\\"b\",realm=r",
      "PROXY-authorization \t: digest response = xxx , Nonce=\"xxxx\",realm=r"
    ),
    (
      "Authorization: Digest realm=\"r\",\n nonce=\n \"abc\",\n\tresponse=\"def\"",
      "Authorization: Digest realm=\"r\",\n nonce=\n \"xxx\",\n\tresponse=\"xxx\""
    ),
    ("Authorization:\n Basic QWxhZGRpbg==\n more", "Authorization:\n Basic xxxxxxxxxxxx\n xxxx"),
    ("Authorization: Bearer ab.cd=", "Authorization: Bearer xxxxxx"),
    (
      "WWW-Authenticate: Digest realm=\"r\", nonce=\"abc\", algorithm=MD5",
      "WWW-Authenticate: Digest realm=\"r\", nonce=\"xxx\", algorithm=MD5"
    ),
    ("Authentication-Info: nextnonce=\"abc\", rspauth=\"d\"", "Authentication-Info: nextnonce=\"xxx\", rspauth=\"x\""),
    ("Identity: eyJh.eyJi.sig;info=<https://x>", "Identity: " + String(repeating: "x", count: 30)),
    ("y : abc", "y : xxx"),
    ("To: <sip:bob:secret@host:5060>;tag=1", "To: <sip:bob:xxxxxx@host:5060>;tag=1"),
    ("Contact: <sip:bob@host:5060>;q=1", "Contact: <sip:bob@host:5060>;q=1"),
    ("Subject: nonce=\"abc\"", "Subject: nonce=\"abc\""),
  ])
  func `a header's secret is covered, and nothing else`(_ line: String, _ wanted: String) {
    #expect(
      masked("OPTIONS sip:a SIP/2.0\n\(line)\nCSeq: 1 OPTIONS\n\n") == "OPTIONS sip:a SIP/2.0\n\(wanted)\nCSeq: 1 OPTIONS\n\n")
  }

  @Test func `keys and passwords of a session description are covered`() {
    let text = """
      INVITE sip:a SIP/2.0
      Content-Type: application/sdp

      v=0
      m=audio 4000 RTP/SAVP 0
      k=base64:abc
      a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj|2^20|1:4 KDR=1
      a=ICE-PWD:asd88fgpdd777uzjYhagZg
      a=key-mgmt:mikey AQAF
      a=ptime:20

      """
    let out = masked(text)
    for secret in ["abc", "d0Rmdm", "asd88", "AQAF"] { #expect(!out.contains(secret)) }
    for rest in ["a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x", "m=audio 4000 RTP/SAVP 0", "a=ptime:20", "a=ICE-PWD:x"] {
      #expect(out.contains(rest))
    }
  }

  @Test(arguments: [
    ("INFO", "application/dtmf-relay", "Signal=5\nDuration=160", "Signal=x\nDuration=xxx"),
    ("INFO", "application/dtmf", "D", "x"),
    (
      "INFO", "application/vnd.nortelnetworks.digits", "p=Digit-Collection\ny=Digit-Collection\nd=*",
      "p=Digit-Collection\ny=Digit-Collection\nd=x"
    ),
    ("INFO", "text/plain", "Signal: #", "Signal: x"),
    ("NOTIFY", "application/kpml-response+xml", "<kpml-response digits=\"12\"/>", "<kpml-response digits=\"xx\"/>"),
    ("NOTIFY", "application/telephone-event", "7", "x"),
    ("MESSAGE", "text/plain", "call 555", "call 555"),
    ("INFO", "application/sdp", "m=audio 4000", "m=audio 4000"),
  ])
  func `dialled digits are covered`(_ method: String, _ type: String, _ body: String, _ wanted: String) {
    #expect(masked("\(method) sip:1@a SIP/2.0\nContent-Type: \(type)\nCSeq: 5 X\n\n\(body)").hasSuffix("CSeq: 5 X\n\n\(wanted)"))
  }

  @Test func `bytes that are no message are taken as they come`() {
    var state: UInt64 = 7
    for _ in 0..<400 {
      var bytes: [UInt8] = (0..<64).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return [13, 10, 32, 58, 61, 34, 92, 97][Int(state >> 60) % 8]
      }
      bytes = Array("Authorization: Digest nonce=".utf8) + bytes + Array("a=crypto:".utf8)
      let count = bytes.count
      SecretMask.apply(to: &bytes)
      #expect(bytes.count == count)
    }
    var none: [UInt8] = []
    SecretMask.apply(to: &none)
    #expect(none.isEmpty)
  }
}

extension String {
  /// Without Foundation.
  fileprivate func replacingOccurrences(_ old: String, _ new: String) -> String {
    var out: [UInt8] = []
    let (bytes, from, to) = (Array(utf8), Array(old.utf8), Array(new.utf8))
    var index = 0
    while index < bytes.count {
      if bytes[index...].starts(with: from) {
        out += to
        index += from.count
      } else {
        out.append(bytes[index])
        index += 1
      }
    }
    return String(decoding: out, as: UTF8.self)
  }
}
