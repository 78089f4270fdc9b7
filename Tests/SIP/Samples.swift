import Foundation

/// A file of Tests/Vectors/sip-rfc4475 (source in SOURCE.md there).
func torture(_ name: String) throws -> [UInt8] {
  let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(
    path: "Vectors/sip-rfc4475")
  return Array(try Data(contentsOf: folder.appending(path: name + ".dat")))
}

/// Lines joined by CRLF, an empty line, the body.
func message(_ lines: [String], body: String = "") -> [UInt8] {
  Array((lines.map { $0 + "\r\n" }.joined() + "\r\n" + body).utf8)
}

/// An INVITE as a carrier's session border controller sends it: 18 fields with SDP.
let carrierInvite: [UInt8] = {
  let sdp =
    "v=0\r\no=- 20518 0 IN IP4 203.0.113.7\r\ns=-\r\nc=IN IP4 203.0.113.7\r\nt=0 0\r\nm=audio 41000 RTP/AVP 0 8 101\r\n"
    + "a=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=ptime:20\r\n"
  return message(
    [
      "INVITE sip:+15551230001@198.51.100.9:5060;user=phone SIP/2.0",
      "Via: SIP/2.0/UDP 203.0.113.7:5060;rport;branch=z9hG4bK0g04430050bgj18o8cp0.1",
      "Record-Route: <sip:203.0.113.7:5060;lr;ftag=SDhh8c901-4af3>",
      "Max-Forwards: 68",
      "From: \"Alice \\\"A\\\" Smith\" <sip:+15557654321@carrier.example;user=phone>;tag=SDhh8c901-4af3",
      "To: <sip:+15551230001@198.51.100.9;user=phone>",
      "Call-ID: SDhh8c901-e8f8b7b2a4@203.0.113.7",
      "CSeq: 2 INVITE",
      "Contact: <sip:+15557654321@203.0.113.7:5060;transport=udp>",
      "P-Asserted-Identity: \"Alice\" <sip:+15557654321@carrier.example;user=phone>, <tel:+15557654321>",
      "Privacy: none",
      "Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, PRACK, UPDATE",
      "Supported: 100rel, timer",
      "Session-Expires: 1800;refresher=uac",
      "Min-SE: 90",
      "User-Agent: Carrier SBC 9.1",
      "Content-Type: application/sdp",
      "Content-Length: \(sdp.utf8.count)",
    ], body: sdp)
}()
