import Configuration
import TrunklineBytes
import TrunklineSIPDialogs

/// The addresses that peers of a listener or a trunk get from us: a line of the log for each, so that an operator sees them
/// before the first call.
struct PeersView: Hashable {
  /// `listener` or `trunk`.
  var kind: String
  /// A listener's transport and address, or a trunk's name.
  var of: String
  /// Host and port in Via and Contact.
  var signalling: String
  /// The address in SDP; empty for a listener.
  var media = ""
}

extension Settings {
  /// One view for each listener.
  func views(udp: [SocketAddress], tcp: [SocketAddress], tls: [SocketAddress]) -> [PeersView] {
    let all = udp.map { (TransportProtocol.udp, $0) } + tcp.map { (.tcp, $0) } + tls.map { (.tls, $0) }
    return all.map { transport, address in
      let host = listen.advertised.first { $0.transport == transport && $0.address == address }?.host
      let own = address.ip.isUnspecified ? "the address on the way to the peer" : "\(address)"
      return PeersView(
        kind: "listener", of: "\(transport) \(address)", signalling: host.map { "\($0.host):\($0.port ?? address.port)" } ?? own)
    }
  }
}

extension Settings.Trunk {
  /// One of the trunk's peers, and our transport to it. Nil while none is known.
  func example(_ located: [SocketAddress]?) -> (TransportProtocol, SocketAddress)? {
    let peer = located?.first ?? serverAddress ?? peers.first.map { SocketAddress($0.address, 5060) }
    return peer.map { (uri?.transport ?? (uri?.isSecure == true ? .tls : .udp), $0) }
  }
}
