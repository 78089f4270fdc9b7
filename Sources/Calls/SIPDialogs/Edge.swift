import TrunklineBytes
import TrunklineSIP

/// A proxy of ours between the trunks and this gateway.
public enum Edge {
  /// The name of the peer that all edges are to the transport; X-Trunkline-Trunk names the trunk of a request. No trunk may have
  /// this name.
  public static let peer = "(edge)"
}

/// Requests of an edge. X-Trunkline-Trunk is trusted from an edge only: the transport recognises edges by their source, and an
/// edge removes the header that others wrote.
extension UserAgent {
  /// The trunk of a request. From an edge: that of its dialog, or the one that the edge names, or `Edge.peer` if neither is
  /// known. From any other peer: that peer's trunk.
  func sender(of message: Message, from peer: String) -> String {
    guard peer == Edge.peer else { return peer }
    if let tag = (try? message.to)??.tag {
      return legs.leg(of: DialogKey(callID: message.callID, localTag: message.text(tag)))?.trunk ?? peer
    }
    let names = message.trunklineTrunks
    return names.count == 1 && trunks.isKnown(names[0]) ? names[0] : peer
  }

  /// Refuses an edge's INVITE that names no known trunk.
  mutating func refuseUnnamed(_ request: Request) {
    switch request.message.trunklineTrunks.count {
    case 0: refuse(request, .trunkMissing, code: 403, reason: "X-Trunkline-Trunk Missing")
    case 1: refuse(request, .trunkUnknown, code: 403, reason: "X-Trunkline-Trunk Unknown")
    default: refuse(request, .trunkTwice, code: 403, reason: "X-Trunkline-Trunk Twice")
    }
  }
}
