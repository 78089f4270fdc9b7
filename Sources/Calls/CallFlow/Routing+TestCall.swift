import AppProtocol
import Bytes
import RTP
import SIPDialogs

/// In place of a carrier a test call has a trunk that is in no configuration.
extension Routing {
  /// What records, metrics and events call it; no trunk of the configuration has this name.
  public static let testTrunk = "preflight"

  /// Its RTP goes to the port that it comes from. Decoded and encoded, as over a trunk, so that it is heard whether there is sound.
  static let test: Trunk = {
    let here = SocketAddress(.loopback, 0)
    let peer = TrunkPeer(name: testTrunk, domain: testTrunk, flow: Flow(transport: .udp, local: here, remote: here))
    return Trunk(name: testTrunk, peer: peer, codecs: [.g722], rules: TrunkRules(reliability: .off, sessionTimer: nil))
  }()
}

extension CallRecord {
  /// A device has tested its way to the gateway: no callee exists.
  public var isTest: Bool { trunk == Routing.testTrunk }
}

extension Call {
  var isTest: Bool { trunk.name == Routing.testTrunk }
}
