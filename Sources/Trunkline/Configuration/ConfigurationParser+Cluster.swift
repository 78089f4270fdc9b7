import CallModel
import Trunking
import TrunklineBytes
import TrunklineSIPDialogs

/// `cluster.edges` and the other sections of the file.
extension ConfigurationParser {
  /// Applies `edges` to the other sections of the file.
  func apply(_ edges: Settings.Edges, to out: inout Settings) {
    out.listen.appProxies += edges.http
    guard let sip = edges.sip else { return }
    for index in out.trunks.indices { out.trunks[index].routing.settings?.go(through: sip.server, uri: sip.uri) }
  }

  func checkCluster(_ configuration: Settings) {
    guard let edges = configuration.cluster?.edges else { return }
    let path = "cluster.edges"
    if edges.peers.isEmpty, !isWritten(path + ".peers"), edges.sip != nil {
      problem(
        at: path + ".sip", "needs peers, too: SIP from an unlisted address is dropped, and so would be the answers of this edge")
    }
    for (index, trunk) in configuration.trunks.enumerated() where trunk.name == Edge.peer {
      problem(at: "trunks[\(index)].name", "\"\(Edge.peer)\" is the name of the edges: give the trunk another name")
    }
    guard let sip = edges.sip else { return }
    if sip.server.isSecure {
      problem(at: path + ".sip", "TLS toward an edge is not served: write ;transport=tcp, and keep it in a network of your own")
    }
    if let address = sip.server.address, !edges.peers.isEmpty, !edges.peers.contains(where: { $0.contains(address) }) {
      problem(at: path + ".sip", "\(address) is not in cluster.edges.peers: its answers would be dropped")
    }
    let (transport, listen) = (sip.server.transport, configuration.listen)
    if transport == .udp, listen.sipUDP.isEmpty { problem(at: path + ".sip", "needs listen.sip.udp") }
    if transport == .tcp, listen.sipTCP.isEmpty { problem(at: path + ".sip", "needs listen.sip.tcp") }
  }
}
