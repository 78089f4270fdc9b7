import Foundation
import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

let gatewayAddress = SocketAddress("198.51.100.9:5060")!
let carrierAddress = SocketAddress("203.0.113.7:5060")!
let udp = Flow(transport: .udp, local: gatewayAddress, remote: carrierAddress)
let tcp = Flow(transport: .tcp, local: gatewayAddress, remote: SocketAddress("203.0.113.7:33000")!)
let offer = "v=0\r\no=- 1 1 IN IP4 203.0.113.7\r\ns=-\r\nm=audio 4000 RTP/AVP 0\r\n"
let answer = "v=0\r\no=- 2 2 IN IP4 198.51.100.9\r\ns=-\r\nm=audio 6000 RTP/AVP 0\r\n"

extension Duration {
  static func ms(_ value: Int) -> Duration { .milliseconds(value) }
}

/// One user agent, and a carrier as plain text that the test plays itself.
struct Wire {
  var agent: UserAgent
  var now = Instant(nanoseconds: 1_000_000_000)
  var output = UserAgent.Output()
  var flow = udp

  init(seed: UInt64 = 1, own: OwnAddresses = OwnAddresses(), advertised: AdvertisedAddresses = AdvertisedAddresses()) {
    agent = UserAgent(configuration: .init(own: own, advertised: advertised), random: .seeded(seed))
  }

  /// Passes a message to the agent; returns the agent's messages, parsed.
  @discardableResult
  mutating func receive(_ text: String, on flow: Flow? = nil, trunk: String = "carrier") -> [Message] {
    input(.received(Array(text.utf8), flow ?? self.flow, trunk: trunk))
  }

  @discardableResult
  mutating func input(_ input: UserAgent.Input) -> [Message] {
    output.messages.removeAll()
    agent.handle(input, at: now, into: &output)
    // a deadline that stays in the past stops the loop that waits for it, or makes it spin
    if case .timer = input { #expect(agent.nextDeadline.map { $0 > now } ?? true) }
    return output.messages.compactMap { try? Message($0.bytes) }
  }

  @discardableResult
  mutating func command(_ command: UserAgent.Command) -> [Message] { input(.command(command)) }

  /// Advances the time, timer by timer; returns the sent messages with their times in milliseconds from here.
  mutating func advance(_ duration: Duration) -> [(ms: Int64, message: Message)] {
    let (start, end) = (now, now + duration)
    var sent: [(ms: Int64, message: Message)] = []
    while let deadline = agent.nextDeadline, deadline <= end {
      now = max(now, deadline)
      sent += input(.timer).map { ((now - start).milliseconds, $0) }
    }
    now = end
    return sent
  }

  /// The events since the last call.
  mutating func events() -> [UserAgent.Event] {
    defer { output.events.removeAll() }
    return output.events
  }

  var isEmpty: Bool {
    agent.legs.isEmpty && agent.servers.isEmpty && agent.clients.isEmpty && agent.nextDeadline == nil
  }

  /// Adds so many server transactions of other requests.
  mutating func addServerTransactions(_ count: Int) {
    guard let message = try? Message(Array(request("INVITE").utf8)), let reply = Reply(message, source: udp, trunk: "other")
    else {
      return
    }
    for n in 0..<UInt64(count) {
      let key = ServerKey(trunk: "other", branch: "\(n)", sentBy: "other", method: "INVITE")
      agent.servers.begin(1_000_000 + n, key: key, method: .invite, merge: nil, reply: reply, leg: nil)
    }
  }

  /// Adds so many client transactions of other requests.
  mutating func addClientTransactions(_ count: Int) {
    var step = Step()
    for n in 0..<UInt64(count) {
      let key = ClientKey(branch: "\(n)", method: .options)
      agent.clients.begin(1_000_000 + n, ClientTransaction(.ping, key, leg: nil, trunk: "other", over: udp, request: []), &step)
    }
  }
}

/// A request as a carrier writes it.
func request(
  _ method: String, uri: String = "sip:+15551230001@198.51.100.9", branch: String = "z9hG4bKc1", callID: String = "call-1",
  from: String = "77",
  toTag: String? = nil, cseq: Int = 1, via: String = "SIP/2.0/UDP 203.0.113.7:5060;rport", extra: [String] = [],
  sdp: String? = nil
) -> String {
  var lines = ["\(method) \(uri) SIP/2.0", "Via: \(via);branch=\(branch)"]
  lines.append("From: \"Bob\" <sip:+15557654321@203.0.113.7>;tag=\(from)")
  lines.append("To: <sip:+15551230001@198.51.100.9>\(toTag.map { ";tag=" + $0 } ?? "")")
  lines += ["Call-ID: \(callID)", "CSeq: \(cseq) \(method)"]
  if method == "INVITE" { lines.append("Contact: <sip:bob@203.0.113.7:5060>") }
  lines += extra
  if sdp != nil { lines.append("Content-Type: application/sdp") }
  lines.append("Content-Length: \(sdp?.utf8.count ?? 0)")
  return lines.map { $0 + "\r\n" }.joined() + "\r\n" + (sdp ?? "")
}

/// A response to a request of the agent.
func reply(_ request: Message, _ code: Int, tag: String? = "peer", extra: [String] = [], sdp: String? = nil) -> String {
  var lines = ["SIP/2.0 \(code) \(reasonPhrase(code))"]
  for field in request.fields where [.via, .from, .callID, .cseq].contains(field.name) {
    lines.append("\(field.name.text): \(request.text(field.value))")
  }
  let hasTag = (try? request.to)??.tag != nil
  lines.append(
    "To: \(request.field(.to).map { request.text($0.value) } ?? "")\(hasTag || tag == nil ? "" : ";tag=" + (tag ?? ""))")
  lines += extra
  if sdp != nil { lines.append("Content-Type: application/sdp") }
  lines.append("Content-Length: \(sdp?.utf8.count ?? 0)")
  return lines.map { $0 + "\r\n" }.joined() + "\r\n" + (sdp ?? "")
}

extension Message {
  func value(_ name: HeaderName) -> String? { field(name).map { text($0.value) } }
  var toTag: String? { (try? to)??.tag.map(text) }
  var fromTag: String? { (try? from)??.tag.map(text) }
  var branch: String? { (try? topVia)?.branch.map(text) }
  var uri: String { if case .request(_, _, let uri) = startLine { text(uri) } else { "" } }
}

extension UserAgent.Event {
  /// A short text for comparisons.
  var name: String {
    switch self {
    case .inviteReceived: "invite"
    case .cancelled: "cancelled"
    case .acknowledged(_, let sdp): sdp == nil ? "ack" : "ack+sdp"
    case .ackTimedOut: "ackTimedOut"
    case .progress(_, let code, _): "progress \(code)"
    case .answered: "answered"
    case .failed(_, let code, _, let byTransport): "failed \(code)\(byTransport ? " transport" : "")"
    case .reinviteReceived(_, let sdp): sdp == nil ? "reinvite-" : "reinvite"
    case .byeReceived: "bye"
    case .pingAnswered(_, let alive): "ping \(alive)"
    case .legClosed: "closed"
    case .targetFailed(_, let flow, let code, _): "next after \(flow.remote) \(code)"
    case .challengeRefused(let trunk, let realm): "challenge refused \(trunk) \(realm)"
    case .requestAnswered(_, let outcome): "outcome \(outcome.code)\(outcome.byTransport ? " transport" : "")"
    case .provisionallyAnswered(_, let sdp): sdp == nil ? "prack" : "prack+sdp"
    case .provisionalTimedOut: "provisionalTimedOut"
    case .offerWanted: "offerWanted"
    case .addressMoved: "addressMoved"
    case .addressLost: "addressLost"
    case .offerAnswered(_, let sdp): sdp == nil ? "offerAnswered" : "offerAnswered+sdp"
    case .offerRefused(_, let code): "offerRefused \(code)"
    case .sessionLost(_, .expired): "expired"
    case .sessionLost(_, .refreshFailed(let code)): "refreshFailed \(code)"
    case .digit(_, let digit, let milliseconds): "digit \(digit) \(milliseconds)"
    case .digitSent(_, let code): "digitSent \(code)"
    case .referReceived: "refer"
    case .referAnswered(_, let code): "referAnswered \(code)"
    case .referProgress(_, let code, let isFinal): "referProgress \(code.map(String.init) ?? "unknown")\(isFinal ? " final" : "")"
    case .refused(let reason, let invite, _): "refused \(reason)\(invite == nil ? "" : " invite")"
    }
  }
}

func torture(_ name: String) throws -> [UInt8] {
  let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(
    path: "Vectors/sip-rfc4475")
  return Array(try Data(contentsOf: folder.appending(path: name + ".dat")))
}
