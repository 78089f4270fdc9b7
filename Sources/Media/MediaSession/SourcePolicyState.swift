import TrunklineBytes

/// Decides which source addresses of RTP a trunk leg accepts (docs/design/media-plane.md).
///
/// | policy | accepted | sent to |
/// |---|---|---|
/// | `signalledIP` | one port of the SDP's address or of `media_peers`, learnt from 5 agreeing packets in 1 s | the SDP address |
/// | `strict` | the SDP's address and port | the SDP address |
/// | `symmetric` | one source, learnt as above, of `peers`, `media_peers`, the signalling or SDP address | the learnt source |
///
/// Until a source is learnt, the first allowed one is a candidate and its packets are accepted, so that no audio is lost while
/// learning; one closer to the trunk replaces it at once. Under `symmetric` a closer one also replaces the learnt source, from
/// its fifth agreeing packet on.
///
/// A learnt source that has sent nothing for `Limits.sourceSilence` may have moved behind its NAT: another port of the same
/// address is learnt instead under the same rule, five agreeing packets in a second, which are dropped until then. `strict`
/// learns nothing.
struct SourcePolicyState {
  enum Verdict { case accepted, rejected, replaced }
  /// How close to the trunk a source is.
  private enum Proximity: Comparable {
    case stranger
    /// An address that only the SDP names.
    case described
    /// An address of `peers` or `media_peers`; under `signalledIP` also another port of the SDP's address.
    case listed
    /// An address of the trunk's SIP signalling.
    case signalling
    /// The SDP's address and port; under `symmetric` only if the address is one of the two above.
    case exact
  }

  private(set) var policy: SourcePolicy
  private(set) var signalled: SocketAddress
  /// The only accepted source, once learnt; reset by a new signalled address.
  private(set) var learnt: SocketAddress?
  /// The time of its last packet.
  private var learntReceivedAt = Instant.zero
  private var candidate: SocketAddress?
  private var candidateSince = Instant.zero
  private var agreeing = 0
  private var mediaPeers: [IPNetwork]
  private var peers: [IPNetwork]
  private var signalling: [IPAddress]

  init(_ parameters: TrunkLegParameters) {
    (policy, signalled, mediaPeers) = (parameters.sourcePolicy, parameters.remote, parameters.mediaPeers)
    (peers, signalling) = (parameters.peers, parameters.signalling)
  }

  /// A re-INVITE that moves the media restarts learning; any other keeps the learnt source.
  mutating func apply(_ parameters: TrunkLegParameters) {
    let moved = parameters.remote != signalled || parameters.sourcePolicy != policy
    policy = parameters.sourcePolicy
    signalled = parameters.remote
    mediaPeers = parameters.mediaPeers
    peers = parameters.peers
    signalling = parameters.signalling
    if moved { (learnt, candidate, agreeing) = (nil, nil, 0) }
  }

  /// The destination of our RTP.
  var destination: SocketAddress { policy == .symmetric ? learnt ?? signalled : signalled }

  /// HOT: the usual packet costs one comparison.
  @inline(__always) mutating func classify(_ source: SocketAddress, at now: Instant) -> Verdict {
    guard let learnt else { return learn(source, at: now) }
    guard learnt == source else { return challenge(learnt, by: source, at: now) }
    learntReceivedAt = now
    return .accepted
  }

  /// False for a source whose packets need not be decrypted. HOT
  @inline(__always) func mayAccept(_ source: SocketAddress, at now: Instant) -> Bool {
    learnt == source || isCloser(source) || mayHaveMoved(to: source, at: now)
  }

  /// Whether the learnt source is silent, and this is another port of its address.
  private func mayHaveMoved(to source: SocketAddress, at now: Instant) -> Bool {
    guard let learnt, policy != .strict, source.ip == learnt.ip else { return false }
    return now - learntReceivedAt >= Limits.sourceSilence
  }

  /// RTCP is accepted from any port of an address that RTP may come from (`strict`: the signalled port + 1).
  func allowsControl(_ source: SocketAddress) -> Bool {
    switch policy {
    case .strict: source.ip == signalled.ip && source.port == signalled.port &+ 1
    case .signalledIP, .symmetric: source.ip == (learnt ?? signalled).ip || proximity(source, policy) > .stranger
    }
  }

  /// The setting that would accept packets from `source`; for the log.
  func allowance(for source: SocketAddress) -> String {
    if policy == .strict, source.ip == signalled.ip { return "rtp_source: signalled_ip" }
    if let learnt, proximity(source, policy) > .stranger {
      return source.ip == learnt.ip
        ? "silence of the learnt port for a second" : "a re-INVITE with the new address: a source is learnt once"
    }
    let peer = "media_peers: [\(source.ip)]"
    return policy != .symmetric && proximity(source, .symmetric) > .stranger ? "rtp_source: symmetric or \(peer)" : peer
  }

  /// Allowed, and closer than the learnt source if there is one.
  private func isCloser(_ source: SocketAddress) -> Bool {
    guard let learnt else { return proximity(source, policy) > .stranger }
    return policy == .symmetric && proximity(source, policy) > proximity(learnt, policy)
  }

  private mutating func learn(_ source: SocketAddress, at now: Instant) -> Verdict {
    let proximity = proximity(source, policy)
    guard proximity > .stranger else { return .rejected }
    if let candidate, candidate != source, now - candidateSince < Limits.learningWindow {
      // A closer one replaces it; any other rival waits for the window's end.
      guard proximity > self.proximity(candidate, policy) else { return .rejected }
    }
    if agrees(source, at: now) { (learnt, learntReceivedAt) = (source, now) }
    return .accepted
  }

  /// A single packet of a closer address does not interrupt the audio: five must agree.
  private mutating func challenge(_ learnt: SocketAddress, by source: SocketAddress, at now: Instant) -> Verdict {
    guard isCloser(source) || mayHaveMoved(to: source, at: now), agrees(source, at: now) else { return .rejected }
    self.learnt = source
    learntReceivedAt = now
    return .replaced
  }

  /// Makes the source the candidate and counts its packet; true from the fifth within the window on.
  private mutating func agrees(_ source: SocketAddress, at now: Instant) -> Bool {
    if candidate != source || now - candidateSince >= Limits.learningWindow {
      candidate = source
      candidateSince = now
      agreeing = 0
    }
    agreeing += 1
    return agreeing >= Limits.agreeingPackets
  }

  private func proximity(_ source: SocketAddress, _ policy: SourcePolicy) -> Proximity {
    func isListed(_ networks: [IPNetwork]) -> Bool { networks.contains { $0.contains(source.ip) } }
    switch policy {
    case .strict: return source == signalled ? .exact : .stranger
    case .signalledIP:
      if source == signalled { return .exact }
      return source.ip == signalled.ip || isListed(mediaPeers) ? .listed : .stranger
    case .symmetric:
      let isSignalling = signalling.contains(source.ip)
      guard isSignalling || isListed(mediaPeers) || isListed(peers) else {
        return source.ip == signalled.ip ? .described : .stranger
      }
      return source == signalled ? .exact : isSignalling ? .signalling : .listed
    }
  }
}
