import TrunklineBytes
import TrunklineSIP

/// RFC 3261 §17.2.3: branch, sent-by and method, and the trunk, so that no trunk can touch another's. The key has no source
/// port.
struct ServerKey: Hashable {
  var trunk: String
  /// The branch, or its substitute for RFC 2543 peers.
  var branch: String
  var sentBy: String
  /// INVITE for its ACK and CANCEL too.
  var method: String
}

/// Requests with the same values that arrived over different paths are one merged request (RFC 3261 §8.2.2.2). The rule is for
/// one user agent: each number of ours counts as one, so a proxy that forks to two of them calls both.
struct MergeKey: Hashable {
  var callID: String
  var fromTag: String
  var sequence: UInt32
  var called: String
}

/// The INVITE and non-INVITE server machines of RFC 3261 §17.2 with RFC 6026.
///
/// | phase | INVITE again | ACK | final 2xx | final 3xx–6xx | end |
/// |---|---|---|---|---|---|
/// | proceeding | last provisional again | ignored | accepted, L | completed, G and H | – |
/// | accepted | absorbed | to the leg | – | – | L |
/// | completed | final again | confirmed, I | – | – | H (J for others) |
/// | confirmed | absorbed | absorbed | – | – | I |
struct ServerTransaction {
  enum Phase { case proceeding, accepted, completed, confirmed }

  let key: ServerKey
  let method: Method
  let mergeKey: MergeKey?
  let isReliable: Bool
  /// The request asked for rport.
  let isSymmetric: Bool
  /// The INVITE's leg; nil if it was refused before there was one.
  var leg: LegID?
  var phase = Phase.proceeding
  /// The data that responses are made of; nil once the final one is sent.
  var reply: Reply?
  /// Where the last response went.
  var flow: Flow
  var lastResponse: [UInt8]?
  /// The next interval of timer G.
  var interval = Interval.t1
}
