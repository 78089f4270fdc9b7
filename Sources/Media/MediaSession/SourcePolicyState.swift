import Bytes

/// Decides which source addresses a trunk leg's RTP is taken from (design.md, Limits and safety).
///
/// | policy | taken | sent to |
/// |---|---|---|
/// | `signalledIP` | one port of the signalled address or of `media_peers`, learnt from 5 agreeing packets in 1 s | the SDP address |
/// | `strict` | the signalled address and port | the SDP address |
/// | `symmetric` | one source, learnt as above from any address | the learnt source |
///
/// Until a source is learnt, the first allowed one is a candidate and its packets are taken, so that no word is lost while
/// learning.
struct SourcePolicyState {
  enum Verdict { case accepted, rejected }

  private(set) var policy: SourcePolicy
  private(set) var signalled: SocketAddress
  /// The one source, once learnt; reset by a new signalled address.
  private(set) var learnt: SocketAddress?
  private var candidate: SocketAddress?
  private var candidateSince = Instant.zero
  private var agreeing = 0
  private var peers: [IPNetwork]

  init(_ parameters: TrunkLegParameters) {
    (policy, signalled, peers) = (parameters.sourcePolicy, parameters.remote, parameters.mediaPeers)
  }

  /// A re-INVITE that moves the media starts learning anew; one that does not keeps what was learnt.
  mutating func apply(_ parameters: TrunkLegParameters) {
    let moved = parameters.remote != signalled || parameters.sourcePolicy != policy
    (policy, signalled, peers) = (parameters.sourcePolicy, parameters.remote, parameters.mediaPeers)
    if moved { (learnt, candidate, agreeing) = (nil, nil, 0) }
  }

  /// Where our RTP goes.
  var destination: SocketAddress { policy == .symmetric ? learnt ?? signalled : signalled }

  /// HOT: the usual packet costs one comparison.
  @inline(__always) mutating func judge(_ source: SocketAddress, at now: Instant) -> Verdict {
    if let learnt { return learnt == source ? .accepted : .rejected }
    return learn(source, at: now)
  }

  /// RTCP is taken from the address RTP may come from, whatever the port (`strict`: the signalled port + 1).
  func allowsControl(_ source: SocketAddress) -> Bool {
    switch policy {
    case .strict: source.ip == signalled.ip && source.port == signalled.port &+ 1
    case .signalledIP, .symmetric: source.ip == (learnt ?? signalled).ip || isAllowed(source)
    }
  }

  /// The setting that would take packets from `source`; for the log.
  func allowance(for source: SocketAddress) -> String {
    if policy == .strict, source.ip == signalled.ip { return "rtp_source: signalled_ip" }
    if learnt != nil { return "a re-INVITE with the new address: a source is learnt once" }
    return "media_peers: [\(source.ip)] or rtp_source: symmetric"
  }

  private mutating func learn(_ source: SocketAddress, at now: Instant) -> Verdict {
    guard isAllowed(source) else { return .rejected }
    if let candidate, candidate == source || now - candidateSince < Limits.learningWindow {
      // The signalled address takes over from a candidate that is not it; any other rival waits for the window's end.
      guard candidate == source || source == signalled else { return .rejected }
      if candidate != source { begin(source, at: now) }
    } else {
      begin(source, at: now)
    }
    if now - candidateSince >= Limits.learningWindow { begin(source, at: now) }
    agreeing += 1
    if agreeing >= Limits.agreeingPackets { learnt = source }
    return .accepted
  }

  private mutating func begin(_ source: SocketAddress, at now: Instant) {
    (candidate, candidateSince, agreeing) = (source, now, 0)
  }

  private func isAllowed(_ source: SocketAddress) -> Bool {
    switch policy {
    case .strict: source == signalled
    case .signalledIP: source.ip == signalled.ip || peers.contains { $0.contains(source.ip) }
    case .symmetric: true
    }
  }
}
