import Logging
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIP
import TrunklineSIPDialogs
import TrunklineSIPTransport

/// One machine without I/O: what arrives and what is due go in, messages and events come out.
final class Ping {
  private let loop: EventLoop
  private let server: SocketAddress
  private let random = RandomSource { UInt64.random(in: .min ... .max) }
  private var agent: UserAgent
  private var output = UserAgent.Output()
  private var sockets: SIPSockets?
  private var timer: EventLoop.TimerID?
  private var code = 0

  init(_ server: SocketAddress) throws {
    self.server = server
    loop = try EventLoop(name: "sip")
    agent = UserAgent(random: random)
    let network = IPNetwork(server.ip.description).map { [$0] } ?? []
    sockets = try SIPSockets(
      loop: loop, udp: [SocketAddress(.loopback, 0)], tcp: [], trunks: AllowList([(name: "server", peers: network)]),
      logger: Logger(label: "sip")
    ) { [unowned self] in handle($0) }
    timer = loop.addTimer("transactions") { [unowned self] in handle(.timer) }
  }

  /// Sends OPTIONS; returns the code of the final response, 408 if none arrives, 503 if it cannot be sent.
  func run() -> Int {
    guard let flow = sockets?.flow(.udp, toward: server) else { return 503 }
    let peer = TrunkPeer(name: "server", domain: "\(server)", flow: flow)
    let options = OutboundRequest(
      trunk: peer, method: .options, uri: "sip:\(server)", to: "sip:\(server)", callID: random.text(16))
    handle(.command(.request(RequestID(1), options)))
    loop.run()
    sockets?.close()
    return code
  }

  private func handle(_ input: UserAgent.Input) {
    agent.handle(input, at: loop.now, into: &output)
    for message in output.messages { sockets?.send(message) }
    for case .requestAnswered(_, let outcome) in output.events {
      code = outcome.code
      loop.stop()
    }
    output.removeAll()
    if let timer { loop.setTimer(timer, at: agent.nextDeadline) }
  }
}
