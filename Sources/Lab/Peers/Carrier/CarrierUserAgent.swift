import Logging
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs
import TrunklineSIPTransport

/// A carrier's SIP user agent with its own sockets, run by the carrier's loop. It talks to one gateway.
final class CarrierUserAgent {
  /// Gets the user agent's events; set before the loop runs.
  var handler: (UserAgent.Event) -> Void = { _ in }
  private let loop: EventLoop
  private let gateway: SocketAddress
  private var agent: UserAgent
  private var sockets: SIPSockets?
  private var output = UserAgent.Output()
  private var timer: EventLoop.TimerID?

  /// Binds the sockets; throws with the address that is in use, as `setting`.
  init(
    loop: EventLoop, name: String, udp: SocketAddress, tcp: SocketAddress? = nil, gateway: SocketAddress, setting: String,
    random: RandomSource
  ) throws {
    (self.loop, self.gateway) = (loop, gateway)
    agent = UserAgent(configuration: .init(product: "Trunkline-\(name)"), random: random)
    let allowed = AllowList([(name: "gateway", peers: [IPNetwork(gateway.ip.description)].compactMap { $0 })])
    sockets = try SIPSockets(
      loop: loop, udp: [udp], tcp: tcp.map { [$0] } ?? [], trunks: allowed, logger: Logger(label: name),
      settings: (setting, setting)
    ) { [unowned self] in handle($0) }
    timer = loop.addTimer("calls") { [unowned self] in handle(.timer) }
  }

  func run(_ command: UserAgent.Command) { handle(.command(command)) }

  /// Sends an INVITE to the gateway; false if there is no route to it.
  func invite(
    _ leg: LegID, to: String, from: String, sdp: String, credentials: Credentials? = nil, transport: TransportProtocol = .udp
  ) -> Bool {
    guard let flow = sockets?.flow(transport, toward: gateway) else { return false }
    let peer = TrunkPeer(name: "gateway", domain: "\(gateway)", flow: flow, credentials: credentials)
    run(.invite(leg, OutboundInvite(trunk: peer, to: to, from: from, sdp: sdp)))
    return true
  }

  func close() { sockets?.close() }

  private func handle(_ input: UserAgent.Input) {
    agent.handle(input, at: loop.now, into: &output)
    for message in output.messages { sockets?.send(message) }
    let events = output.events
    output.removeAll()
    for event in events { handler(event) }
    if let timer { loop.setTimer(timer, at: agent.nextDeadline) }
  }
}
