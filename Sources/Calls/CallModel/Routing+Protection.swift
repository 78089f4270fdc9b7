import Trunking
import TrunklineBytes
internal import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIPDialogs
import TrunklineSRTP

/// SRTP with keys in the description (RFC 4568): every reader of the signalling has the keys, so it needs TLS unless
/// `sendsKeysInClear` is set.
extension Routing.Trunk {
  public enum SRTPRule: String, Sendable, CaseIterable {
    case off
    /// RTP or SRTP; we offer RTP/AVP with keys beside it.
    case optional
    /// SRTP only; we offer RTP/SAVP.
    case required
  }

  /// The negotiation of offer and answer with this trunk's peer over `flow`.
  package func negotiation(local: SocketAddress, over flow: Flow?, random: RandomSource) -> TrunkNegotiation {
    var protection = TrunkNegotiation.Protection.off
    if maySendKeys(over: flow) {
      switch srtp {
      case .off: break
      case .optional: protection = .optional(random)
      case .required: protection = .required(random)
      }
    }
    var local = local
    if let advertised = rules.advertised?.address, advertised.family == local.ip.family { local.ip = advertised }
    var negotiation = TrunkNegotiation(
      local: local, codecs: codecs, sessionID: random.next(), protection: protection)
    negotiation.refusesLocal = !(flow?.local.ip.isLoopback ?? false)
    negotiation.ownAddresses = ownAddresses
    return negotiation
  }

  package func maySendKeys(over flow: Flow?) -> Bool { sendsKeysInClear || flow?.transport == .tls }

  /// The peer with the servers that a call may use: all, or only those over TLS where SRTP is required and keys are not sent in
  /// clear. Nil: none is left.
  package func callable(_ peer: TrunkPeer) -> TrunkPeer? {
    guard srtp == .required, !sendsKeysInClear else { return peer }
    var targets = ([peer.target] + peer.further).filter { $0.flow.transport == .tls }
    guard !targets.isEmpty else { return nil }
    var out = peer
    out.target = targets.removeFirst()
    out.further = targets
    return out
  }

  /// The least secure flow that an offer of ours may use: one without TLS, if a server has one.
  package var leastSecureFlow: Flow? {
    guard let peer else { return nil }
    return ([peer.target] + peer.further).map(\.flow).first { $0.transport != .tls } ?? peer.flow
  }
}

extension TrunkProtection {
  /// Nil for keys whose length is not their suite's.
  package init?(_ agreed: MediaProtection) {
    guard let profile = SRTPProfile(suite: agreed.suite.rawValue),
      let ours = SRTPMasterKey(agreed.ours.bytes.exposed, for: profile),
      let theirs = SRTPMasterKey(agreed.theirs.bytes.exposed, for: profile)
    else { return nil }
    self.init(profile: profile, ours: ours, theirs: theirs, identifierBytes: agreed.theirs.identifierBytes)
  }
}
