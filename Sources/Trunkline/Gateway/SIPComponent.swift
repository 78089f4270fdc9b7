import CommandSupport
import Configuration
import Control
import Logging
import TrunklineBytes
import TrunklinePlatform
import TrunklineResolver
import TrunklineSIPDialogs
import TrunklineSIPTrace
import TrunklineSIPTransport

extension SIPSockets: SIPOutput {}
extension Resolver: NameOutput {}

/// The SIP side of the control thread: the sockets with their TLS, the questions to name servers, and the copies of messages for
/// traces and a capture server.
final class SIPComponent {
  let sockets: SIPSockets
  let resolver: Resolver
  private let hep: HEPOutlet?
  private let settings: Settings
  private let logs: Logs

  /// Binds the listeners. Messages and answers of name servers go to `control`, once it is set.
  /// - Parameter absent: addresses of listeners that the machine does not have now.
  init(
    _ settings: Settings, loop: EventLoop, absent: Set<IPAddress>, traces: TraceCollector, control: ControlReference, logs: Logs
  ) throws {
    (self.settings, self.logs) = (settings, logs)
    sockets = try SIPSockets(
      loop: loop, udp: settings.listen.sipUDP, tcp: settings.listen.sipTCP, tls: settings.listen.sipTLS,
      trunks: settings.allowList, logger: logs.logger("sip")
    ) { [control] input in control.control?.handle(input) }
    let outlet = try settings.hep.map {
      try HEPOutlet(to: $0.address, captureID: $0.captureID, key: $0.key?.exposed ?? [], logger: logs.logger("hep"))
    }
    hep = outlet
    resolver = try Resolver(loop: loop, servers: settings.dns.servers, logger: logs.logger("dns")) { [control] question, answer in
      control.control?.resolved(question, answer)
    }
    setTLS(trunks: settings.clientTLS)
    sockets.networkChanged(absent: absent)
    sockets.tap = {
      traces.saw($0, $1, isOurs: $2, trunk: $3)
      outlet?.saw($0, $1, isOurs: $2, trunk: $3)
    }
  }

  /// The real addresses of all listeners.
  var bound: [SocketAddress] { sockets.udpAddresses + sockets.tcpAddresses + sockets.tlsAddresses }

  /// This node's address for edges and other nodes.
  func nodeAddress(_ plan: NetworkPlan) -> String {
    settings.nodeAddress(udp: sockets.udpAddresses, tcp: sockets.tcpAddresses, plan)
  }

  /// Reads the files of the listener of the start and of these trunks.
  func setTLS(trunks: [String: TLSClientSettings]) { sockets.setTLS(server: settings.listen.sipServer, trunks: trunks) }

  func useNameServers(_ servers: [SocketAddress]) {
    do { try resolver.restart(servers: servers) } catch { logs.logger("dns").error("\(error)") }
  }

  var metrics: [MetricFamily] { sockets.metrics + resolver.metrics + (hep?.metrics ?? []) }

  /// On the control thread, in its last step.
  func close() {
    resolver.close()
    sockets.close()
  }

  /// Ends the thread `hep`, after the control thread.
  func stop() { hep?.stop() }
}
