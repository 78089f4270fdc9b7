import BenchKit
import Glibc

/// Sends calls to the gateways over UDP from its own address: a carrier, or an edge before the nodes that names the trunk and
/// follows a redirect, as Deploy's Kamailio does.
final class Carrier {
  final class Call {
    let id = randomHex(20)
    let number: String
    let began = monotonicNanoseconds()
    fileprivate(set) var final = 0
    fileprivate(set) var redirects = 0
    /// When a BYE arrived, whichever party caused it.
    fileprivate(set) var byeAt: UInt64?
    fileprivate(set) var endedAt: UInt64?
    /// The app has declined the call meanwhile, or we have cancelled it.
    var isCancelled = false
    fileprivate var port: UInt16
    fileprivate var uri: String
    fileprivate var branch = "z9hG4bK" + randomHex(16)
    fileprivate var to = ""

    fileprivate init(_ number: String, _ port: UInt16) {
      (self.number, self.port) = (number, port)
      uri = "sip:\(number)@127.0.0.1:\(port)"
    }
  }

  let host: String
  let port: UInt16
  private let reactor: Reactor
  private let fd: Int32
  /// The header in which an edge names the trunk.
  private let trunkHeader: String
  private(set) var calls: [String: Call] = [:]
  /// Calls are ended as soon as they are answered.
  var hangsUp = false
  var onFinal: (Call) -> Void = { _ in }
  var onBye: (Call) -> Void = { _ in }
  private var buffer = [UInt8](repeating: 0, count: 65_536)

  init(_ reactor: Reactor, host: String, isEdgeOf trunk: String? = nil) throws {
    (self.reactor, self.host) = (reactor, host)
    trunkHeader = trunk.map { "X-Trunkline-Trunk: \($0)\r\n" } ?? ""
    (fd, port) = try bound(SOCK_DGRAM, host)
    reactor.add(fd, .read) { [unowned self] in ready() }
  }

  deinit {
    reactor.remove(fd)
    close(fd)
  }

  func call(_ number: String, to port: UInt16) -> Call {
    let call = Call(number, port)
    calls[call.id] = call
    invite(call)
    return call
  }

  func forget() { calls = [:] }

  func cancel(_ call: Call) {
    guard call.final == 0, !call.isCancelled else { return }
    call.isCancelled = true
    send(head(call, "CANCEL", 1, to: target(call)) + "Content-Length: 0\r\n\r\n", call.port)
  }

  func hangUp(_ call: Call) {
    send(head(call, "BYE", 2, to: call.to, branch: "z9hG4bK" + randomHex(16)) + "Content-Length: 0\r\n\r\n", call.port)
  }

  // MARK: requests

  private func target(_ call: Call) -> String { "<sip:\(call.number)@\(host)>" }

  private func head(_ call: Call, _ method: String, _ sequence: Int, to: String, branch: String? = nil) -> String {
    "\(method) \(call.uri) SIP/2.0\r\nVia: SIP/2.0/UDP \(host):\(port);branch=\(branch ?? call.branch)\r\n"
      + "Max-Forwards: 70\r\nFrom: <sip:+15550009999@\(host)>;tag=\(call.id)\r\nTo: \(to)\r\nCall-ID: \(call.id)\r\n"
      + "CSeq: \(sequence) \(method)\r\n"
  }

  private func invite(_ call: Call) {
    let sdp = "v=0\r\no=c 1 1 IN IP4 \(host)\r\ns=-\r\nc=IN IP4 \(host)\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n"
    send(
      head(call, "INVITE", 1, to: target(call)) + trunkHeader
        + "Contact: <sip:c@\(host):\(port)>\r\nContent-Type: application/sdp\r\nContent-Length: \(sdp.utf8.count)\r\n\r\n\(sdp)",
      call.port)
  }

  private func send(_ text: String, _ port: UInt16) {
    var address = loopbackAddress(port)
    let bytes = Array(text.utf8)
    _ = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(fd, bytes, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  // MARK: received messages

  private func ready() {
    while true {
      var from = sockaddr_in()
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let count = withUnsafeMutablePointer(to: &from) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { recvfrom(fd, &buffer, buffer.count, 0, $0, &length) }
      }
      guard count > 0 else { return }
      take(String(decoding: buffer[..<count], as: UTF8.self), UInt16(bigEndian: from.sin_port))
    }
  }

  private func take(_ text: String, _ source: UInt16) {
    let lines = text.components("\r\n")
    func value(_ name: String) -> String {
      lines.first { $0.hasPrefix(name + ": ") }.map { String($0.dropFirst(name.utf8.count + 2)) } ?? ""
    }
    let call = calls[value("Call-ID")]
    guard lines[0].hasPrefix("SIP/2.0 "), let status = Int(lines[0].dropFirst(8).prefix(3)) else {
      guard !lines[0].hasPrefix("ACK") else { return }
      let kept = lines.filter { line in ["Via", "From", "To", "Call-ID", "CSeq"].contains { line.hasPrefix($0 + ": ") } }
      send((["SIP/2.0 200 OK"] + kept + ["Content-Length: 0", "", ""]).joined(separator: "\r\n"), source)
      if lines[0].hasPrefix("BYE"), let call, call.byeAt == nil {
        call.byeAt = monotonicNanoseconds()
        onBye(call)
      }
      return
    }
    guard let call, status >= 200 else { return }
    if value("CSeq").hasSuffix("BYE") { call.endedAt = call.endedAt ?? monotonicNanoseconds() }
    guard value("CSeq").hasSuffix("INVITE"), value("Via").contains(call.branch) else { return }
    // The ACK of a refusal belongs to the INVITE's transaction: the same branch.
    send(
      head(call, "ACK", 1, to: value("To"), branch: status < 300 ? "z9hG4bK" + randomHex(16) : nil)
        + "Content-Length: 0\r\n\r\n", call.port)
    guard call.final == 0 else { return }
    if status == 302, let contact = value("Contact").split(separator: "<").last?.split(separator: ">").first,
      let port = contact.split(separator: "@").last?.split(separator: ";").first?.split(separator: ":").last.flatMap({
        UInt16($0)
      })
    {
      call.redirects += 1
      (call.uri, call.port, call.branch) = (String(contact), port, "z9hG4bK" + randomHex(16))
      return invite(call)
    }
    (call.final, call.to) = (status, value("To"))
    call.endedAt = status < 300 ? nil : monotonicNanoseconds()
    if status < 300, hangsUp { hangUp(call) }
    onFinal(call)
  }
}

extension String {
  fileprivate func components(_ separator: String) -> [Substring] {
    split(separator: separator, omittingEmptySubsequences: false)
  }
}
