import Bytes
import SIP

/// A proxy of ours between the trunks and this gateway.
public enum Edge {
  /// As whose peers edges are known to the transport: which trunk a request is of, X-Trunkline-Trunk says. No trunk may have this name.
  public static let peer = "(edge)"
}

/// What comes from an edge. The header is believed from there alone: the transport tells by the source, and the edge takes away what others
/// wrote.
extension UserAgent {
  /// The trunk of a request: that of its dialog, or the one that the edge names; of all others the trunk whose peer has sent it. `Edge.peer`
  /// where an edge's says nothing of use.
  func sender(of message: Message, from peer: String) -> String {
    guard peer == Edge.peer else { return peer }
    if let tag = (try? message.to)??.tag {
      let leg = dialogs[DialogKey(callID: message.callID, localTag: message.text(tag))]
      return leg.flatMap { legs[$0]?.value.trunk } ?? peer
    }
    let names = message.trunklineTrunks
    return names.count == 1 && trunkRules[names[0]] != nil ? names[0] : peer
  }

  /// An INVITE of an edge that is of no trunk.
  mutating func refuseUnnamed(_ request: Request) {
    switch request.message.trunklineTrunks.count {
    case 0: refuse(request, .trunkMissing, code: 403, reason: "X-Trunkline-Trunk Missing")
    case 1: refuse(request, .trunkUnknown, code: 403, reason: "X-Trunkline-Trunk Unknown")
    default: refuse(request, .trunkTwice, code: 403, reason: "X-Trunkline-Trunk Twice")
    }
  }
}
