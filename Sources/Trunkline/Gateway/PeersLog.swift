import Configuration
import Logging
import TrunklineBytes
import TrunklinePlatform

/// The log's lines about the addresses that peers see. On the control thread.
final class PeersLog {
  private let settings: Settings
  private let sip: SIPComponent
  private let network: NetworkComponent
  private let media: MediaComponent
  private let loop: EventLoop
  private let logger: Logger
  /// The last lines, so that none is repeated, and each view gets only a few lines however fast the network changes.
  private var logged: [String: StateNews<PeersView?>] = [:]

  init(
    _ settings: Settings, sip: SIPComponent, network: NetworkComponent, media: MediaComponent, loop: EventLoop, logger: Logger
  ) {
    (self.settings, self.sip, self.network, self.media) = (settings, sip, network, media)
    (self.loop, self.logger) = (loop, logger)
  }

  /// Logs each view that has changed since its last line.
  /// - Parameter located: the servers that DNS found for each trunk.
  func update(_ trunks: [Settings.Trunk], located: [String: [SocketAddress]]) {
    for view in views(trunks, located) {
      guard logged["\(view.kind) \(view.of)", default: StateNews(said: nil)].line(of: view, at: loop.now) != nil else { continue }
      var metadata: Logger.Metadata = [view.kind: "\(view.of)", "signalling": "\(view.signalling)"]
      if !view.media.isEmpty { metadata["media"] = "\(view.media)" }
      logger.notice("peers see", metadata: metadata)
    }
  }

  private func views(_ trunks: [Settings.Trunk], _ located: [String: [SocketAddress]]) -> [PeersView] {
    let sockets = sip.sockets
    let listeners = settings.views(udp: sockets.udpAddresses, tcp: sockets.tcpAddresses, tls: sockets.tlsAddresses)
    let advertised = settings.advertisedAddresses(network.plan)
    return listeners
      + trunks.compactMap { trunk in
        guard let (transport, remote) = trunk.example(located[trunk.name]), let flow = sockets.flow(transport, toward: remote)
        else { return nil }
        let host = trunk.routing.rules.advertised
        guard let media = host?.address ?? self.media.plane.address(advertisedTo: remote.ip) else { return nil }
        return PeersView(
          kind: "trunk", of: trunk.name, signalling: advertised.hostPort(flow, trunk: host), media: "\(media)")
      }
  }
}
