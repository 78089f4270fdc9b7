import Foundation
import Glibc
import TrunklineBytes
import TrunklinePlatform

/// A trunk that sends any bytes a test chooses: one UDP socket on any loopback address. It answers nothing by itself.
final class RawTrunk {
  let address: SocketAddress
  private let fd: Int32
  private let gateway: SocketAddress
  private var count = 0

  convenience init(_ gateway: GatewayUnderTest, from ip: IPAddress = .loopback, port: UInt16 = 0) throws {
    try self.init(toward: gateway.sip, from: ip, port: port)
  }

  /// Toward a gateway that may not run yet: its first messages are not lost.
  init(toward sip: UInt16, at host: IPAddress = .loopback, from ip: IPAddress = .loopback, port: UInt16 = 0) throws {
    let fd = socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard fd >= 0 else { throw Spawned.Failure(description: "no socket") }
    var own = SocketAddress(ip, port)
    guard own.withSockaddr({ bind(fd, $0, $1) }) == 0 else { throw Spawned.Failure(description: "cannot bind \(ip)") }
    var name = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withUnsafeMutablePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(fd, $0, &length) }
    }
    own.port = UInt16(bigEndian: name.sin_port)
    address = own
    self.fd = fd
    gateway = SocketAddress(host, sip)
    _ = Self.stamp(fd)  // from now on the kernel stamps each datagram
  }

  deinit { close(fd) }

  func send(_ bytes: [UInt8], to other: SocketAddress? = nil) {
    _ = (other ?? gateway).withSockaddr { sendto(fd, bytes, bytes.count, 0, $0, $1) }
  }
  func send(_ text: String) { send(Array(text.utf8)) }

  /// The next datagram as text; nil if none arrived.
  func receive(within milliseconds: Int) -> String? {
    var limit = timeval(tv_sec: milliseconds / 1_000, tv_usec: milliseconds % 1_000 * 1_000)
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = recv(fd, &bytes, bytes.count, 0)
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }

  /// When the kernel received the last datagram that was read, however late this thread read it: since 1970.
  private static func stamp(_ fd: Int32) -> Duration? {
    var time = timespec()
    // SIOCGSTAMPNS: the C macro is not imported
    guard ioctl(fd, 0x8907, &time) == 0 else { return nil }
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  private static func now() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  struct Answer {
    var code: Int
    var text: String
    /// From the request's entry into the kernel to the answer's: the time of the gateway alone.
    var took = Duration.zero
    func header(_ name: String) -> String? {
      text.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
        .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
    }
    /// Where requests of the dialog go: the Contact, over the recorded route.
    var target: String? { header("Contact").map { String($0.drop { $0 != "<" }.dropFirst().prefix { $0 != ">" }) } }
    var routes: [String] {
      text.split(separator: "\r\n").filter { $0.lowercased().hasPrefix("record-route:") }.reversed().map {
        "Route:" + $0.drop { $0 != ":" }.dropFirst()
      }
    }
  }

  /// Sends a request and returns its final response, acknowledged if the request was an INVITE; nil if none arrived.
  func ask(_ request: Request, within seconds: Double = 10) -> Answer? {
    let sent = Self.now()
    send(request.text)
    let deadline = Deadline(in: seconds)
    while !deadline.isOver {
      guard let text = receive(within: 200), text.hasPrefix("SIP/2.0 ") else { continue }
      guard let code = Int(text.dropFirst(8).prefix(3)), code >= 200 else { continue }
      guard text.contains(request.branch), text.contains("Call-ID: \(request.callID)") else { continue }
      let answer = Answer(code: code, text: text, took: (Self.stamp(fd) ?? Self.now()) - sent)
      if request.method == "INVITE" { send(request.acknowledgement(of: answer)) }
      return answer
    }
    return nil
  }

  /// A request as text; a test changes what should be wrong.
  struct Request {
    var method: String
    var callID: String
    var branch: String
    var lines: [String]
    var body: String

    var text: String { (lines + ["Content-Length: \(body.utf8.count)", "", body]).joined(separator: "\r\n") }

    /// Removes the line of a header, or replaces it.
    func with(_ header: String, _ value: String?) -> Request {
      var out = self
      out.lines.removeAll { $0.lowercased().hasPrefix(header.lowercased() + ":") }
      if let value { out.lines.append("\(header): \(value)") }
      return out
    }

    fileprivate func acknowledgement(of answer: Answer) -> String {
      let uri = answer.code < 300 ? answer.target ?? "" : String(lines[0].split(separator: " ")[1])
      let sequence = lines.first { $0.hasPrefix("CSeq:") }?.split(separator: " ").dropFirst().first ?? "1"
      let same = ["Via:", "From:", "Call-ID:", "Max-Forwards:"]
      let kept = lines.dropFirst().filter { line in same.contains { line.hasPrefix($0) } }
      let own = ["To: \(answer.header("To") ?? "")", "CSeq: \(sequence) ACK", "Content-Length: 0", "", ""]
      return (["ACK \(uri) SIP/2.0"] + kept + (answer.code < 300 ? answer.routes : []) + own).joined(separator: "\r\n")
    }
  }

  func request(_ method: String, to number: String = "+15551230001", sdp: String? = nil) -> Request {
    count += 1
    let branch = "z9hG4bKraw\(address.port)x\(count)"
    let callID = "raw-\(address.port)-\(count)@127.0.0.1"
    let lines = [
      "\(method) sip:\(number)@\(gateway) SIP/2.0", "Via: SIP/2.0/UDP \(address);branch=\(branch);rport",
      "From: <sip:15550009999@\(address)>;tag=raw\(count)", "To: <sip:\(number)@\(gateway)>", "Call-ID: \(callID)",
      "CSeq: 1 \(method)", "Contact: <sip:raw@\(address)>", "Max-Forwards: 70",
    ]
    return Request(
      method: method, callID: callID, branch: branch, lines: lines + (sdp == nil ? [] : ["Content-Type: application/sdp"]),
      body: sdp ?? "")
  }

  /// A further request in the dialog that `first` opened and `answer` confirmed.
  func request(_ method: String, sequence: Int, in first: Request, _ answer: Answer, sdp: String? = nil) -> Request {
    var out = request(method, sdp: sdp).with("Call-ID", first.callID).with("CSeq", "\(sequence) \(method)")
    out = out.with("To", answer.header("To"))
    out.lines.removeAll { $0.hasPrefix("From:") }
    out.lines += first.lines.filter { $0.hasPrefix("From:") } + answer.routes
    if !answer.routes.isEmpty, let target = answer.target { out.lines[0] = "\(method) \(target) SIP/2.0" }
    out.callID = first.callID
    return out
  }

  /// The next request of a method that the gateway sends; others are left unanswered.
  func awaited(_ method: String, within seconds: Double = 10) -> String? {
    let deadline = Deadline(in: seconds)
    while !deadline.isOver {
      if let text = receive(within: 200), text.hasPrefix(method + " ") { return text }
    }
    return nil
  }

  /// Answers a request of the gateway, whose address may have changed by now.
  func reply(to request: String, _ status: String, sdp: String? = nil, at destination: SocketAddress? = nil) {
    let kept = ["via:", "from:", "call-id:", "cseq:", "record-route:"]
    var lines = ["SIP/2.0 \(status)"]
    for line in request.split(separator: "\r\n", omittingEmptySubsequences: false).dropFirst().prefix(while: { !$0.isEmpty }) {
      let name = line.lowercased()
      if kept.contains(where: name.hasPrefix) { lines.append(String(line)) }
      if name.hasPrefix("to:") { lines.append(name.contains("tag=") ? String(line) : line + ";tag=raw") }
    }
    lines.append("Contact: <sip:raw@\(address)>")
    if sdp != nil { lines.append("Content-Type: application/sdp") }
    let text = (lines + ["Content-Length: \((sdp ?? "").utf8.count)", "", sdp ?? ""]).joined(separator: "\r\n")
    send(Array(text.utf8), to: destination)
  }

  /// An offer with these payload types on a port without a listener.
  static func offer(_ formats: String = "0 8", more: [String] = []) -> String {
    ([
      "v=0", "o=raw 1 1 IN IP4 127.0.0.1", "s=-", "c=IN IP4 127.0.0.1", "t=0 0", "m=audio 9 RTP/AVP \(formats)",
    ] + more).map { $0 + "\r\n" }.joined()
  }
}
