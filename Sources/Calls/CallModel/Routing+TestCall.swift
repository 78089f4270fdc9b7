import TrunklineAppProtocol
import TrunklineBytes
import TrunklineRTP
import TrunklineSIPDialogs

/// A test call has a trunk that is in no configuration in place of a carrier.
extension Routing {
  /// Its name in records, metrics and events; no trunk of the configuration has this name.
  public static let testTrunk = "preflight"

  /// Its RTP goes to the port that it comes from. Decoded and encoded, as over a trunk, so that the result shows whether there is
  /// sound.
  package static let test: Trunk = {
    let here = SocketAddress(.loopback, 0)
    let peer = TrunkPeer(name: testTrunk, domain: testTrunk, flow: Flow(transport: .udp, local: here, remote: here))
    return Trunk(name: testTrunk, peer: peer, codecs: [.g722], rules: TrunkRules(reliability: .off, sessionTimer: nil))
  }()
}

extension CallRecord {
  /// A device tested its connection to the gateway: no number was called.
  public var isTest: Bool { trunk == Routing.testTrunk }
}
