import Logging
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIP
import TrunklineSIPDialogs
import TrunklineSIPTransport

/// 14 methods × their senders, through real sockets and a real user agent: no 2xx outside policy, and strangers get no answer.
@Suite struct SecurityMatrixTests {
  static let methods = [
    "INVITE", "ACK", "CANCEL", "BYE", "OPTIONS", "REGISTER", "PRACK", "UPDATE", "INFO", "REFER", "SUBSCRIBE", "NOTIFY", "MESSAGE",
    "PUBLISH",
  ]

  enum Sender: String, CaseIterable, Sendable {
    /// On no list, and no trunk accepts unlisted peers.
    case stranger
    /// Listed.
    case trunk
    /// On no list where a trunk accepts such peers: without credentials, with wrong ones, with those of another realm or user.
    case noCredentials, wrongPassword, otherRealm, otherUser, otherScheme
  }

  @Test func `no cell of methods and senders gives a 2xx outside policy`() throws {
    let strict = try Listener(takesAny: false)
    let open = try Listener(takesAny: true)
    defer {
      strict.stop()
      open.stop()
    }
    for sender in Sender.allCases {
      let listener = sender == .stranger || sender == .trunk ? strict : open
      // each guest has its own address: none is silenced because another has sent too many requests
      let last = UInt8(20 + (Sender.allCases.firstIndex(of: sender) ?? 0))
      let peer = try Peer(sender == .trunk ? .loopback : IPAddress(127, 0, 0, last), listener)
      for (number, method) in Self.methods.enumerated() {
        for inDialog in [false, true] {
          let codes = peer.ask(
            method, "\(sender.rawValue)\(number)\(inDialog)", toTag: inDialog ? "invented" : nil, Self.header(sender, method))
          let cell = "\(method) from \(sender)\(inDialog ? " with a tag" : ""): \(codes)"
          switch sender {
          case .stranger: #expect(codes.isEmpty, "\(cell)")
          case .trunk:
            let isServed = !inDialog && ["INVITE", "OPTIONS"].contains(method)
            #expect(codes.allSatisfy { $0 >= 300 || (isServed && $0 <= 200) }, "\(cell)")
            #expect(method == "ACK" ? codes.isEmpty : !codes.isEmpty, "\(cell)")
          default:
            // CANCEL cannot be challenged (RFC 3261 §22.1), ACK is never answered
            let wanted: Set<Int> = method == "ACK" ? [] : method == "CANCEL" ? [481] : [401]
            #expect(Set(codes).isSubset(of: wanted), "\(cell)")
          }
        }
      }
    }
    #expect(strict.invites.withLock { $0 } == 1, "only the trunk's INVITE outside a dialog became a call")
    #expect(open.invites.withLock { $0 } == 0)
  }

  private static func header(_ sender: Sender, _ method: String) -> String {
    let uri = "sip:+1555@127.0.0.1"
    func digest(_ user: String, _ realm: String) -> String {
      "Authorization: Digest username=\"\(user)\", realm=\"\(realm)\", nonce=\"0000000000000001deadbeef\", uri=\"\(uri)\", qop=auth, nc=00000001, "
        + "cnonce=\"c\", response=\"0123456789abcdef0123456789abcdef\"\r\n"
    }
    switch sender {
    case .stranger, .trunk, .wrongPassword: return digest("guest", "trunkline")
    case .noCredentials: return ""
    case .otherRealm: return digest("guest", "elsewhere")
    case .otherUser: return digest("root", "trunkline")
    case .otherScheme: return "Authorization: Basic Z3Vlc3Q6c2VjcmV0\r\n"
    }
  }
}

/// SIP sockets on loopback with a user agent behind them.
private final class Listener: Sendable {
  let address: SocketAddress
  let invites = Mutex(0)
  private let loop: EventLoop
  private let sockets: LoopBound<SIPSockets>
  private let thread: NamedThread

  private final class Agent: @unchecked Sendable {
    // used on the loop's thread
    var agent = UserAgent(random: .system)
    var output = UserAgent.Output()
    var send: (UserAgent.Output.Message) -> Void = { _ in }
  }

  init(takesAny: Bool) throws {
    let loop = try EventLoop(name: "matrix")
    let agent = Agent()
    var list = AllowList([("carrier", [IPNetwork("127.0.0.1/32")!])])
    if takesAny { list.anyPeer = "guests" }
    var rules = TrunkRules()
    rules.peerCredentials = Credentials(username: "guest", password: "secret")
    let counted = Door()
    agent.agent.handle(.rules(["guests": rules, "carrier": TrunkRules(allowsTransfer: true)]), at: loop.now, into: &agent.output)
    let made = try SIPSockets(
      loop: loop, udp: [SocketAddress(.loopback, 0)], tcp: [], trunks: list,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { input in
      agent.agent.handle(input, at: loop.now, into: &agent.output)
      for message in agent.output.messages { agent.send(message) }
      for event in agent.output.events { if case .inviteReceived = event { counted.listener?.invites.withLock { $0 += 1 } } }
      agent.output.removeAll()
    }
    agent.send = { made.send($0) }
    address = made.udpAddresses[0]
    sockets = LoopBound(made, to: loop)
    self.loop = loop
    thread = try NamedThread.start(name: "matrix") { loop.run() }
    counted.listener = self
  }

  private final class Door: @unchecked Sendable { weak var listener: Listener? }

  func stop() {
    sockets.post { $0.close() }
    loop.stop()
    thread.join()
  }
}

/// One address that sends requests, beside a trusted one whose answered OPTIONS proves that all earlier requests were handled.
private final class Peer {
  private let socket: UDPSocket
  private let trusted: UDPSocket
  private let listener: Listener
  private var count = 0

  init(_ ip: IPAddress, _ listener: Listener) throws {
    socket = try UDPSocket(bind: SocketAddress(ip, 0))
    trusted = try UDPSocket(bind: SocketAddress(.loopback, 0))
    self.listener = listener
  }

  /// The status codes of all answers.
  func ask(_ method: String, _ id: String, toTag: String?, _ extra: String) -> [Int] {
    send(message(method, id, toTag, extra, from: socket.localAddress), by: socket)
    count += 1
    send(message("OPTIONS", "after\(id)\(count)", nil, "", from: trusted.localAddress), by: trusted)
    let end = MonotonicClock.now() + .seconds(5)
    var isHandled = false
    while !isHandled, MonotonicClock.now() < end { isHandled = !receive(trusted).isEmpty }
    #expect(isHandled, "the next OPTIONS was not answered")
    return receive(socket)
  }

  private func message(_ method: String, _ id: String, _ toTag: String?, _ extra: String, from own: SocketAddress) -> String {
    let sdp =
      method == "INVITE" ? "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\n" : ""
    return
      "\(method) sip:+1555@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP \(own);branch=z9hG4bK\(id);rport\r\nFrom: <sip:a@b>;tag=1\r\n"
      + "To: <sip:+1555@127.0.0.1>\(toTag.map { ";tag=" + $0 } ?? "")\r\nCall-ID: \(id)\r\nCSeq: 1 \(method)\r\nContact: <sip:a@\(own)>\r\n"
      + "Refer-To: <sip:1900@b>\r\nEvent: refer\r\nRAck: 1 1 INVITE\r\nMax-Forwards: 70\r\n\(extra)"
      + "Content-Type: application/sdp\r\nContent-Length: \(sdp.utf8.count)\r\n\r\n\(sdp)"
  }

  private func send(_ text: String, by socket: UDPSocket) {
    let isSent = (try? socket.send(Array(text.utf8), to: listener.address)) ?? false
    #expect(isSent)
  }

  private func receive(_ socket: UDPSocket) -> [Int] {
    var codes: [Int] = []
    withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { buffer in
      while let (count, _) = (try? socket.receive(into: buffer)) ?? nil {
        let text = String(decoding: buffer.prefix(count), as: UTF8.self)
        codes.append(Int(text.dropFirst(8).prefix(3)) ?? 0)
      }
    }
    return codes
  }
}
