import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

extension EndReason {
  /// `Reason` of our CANCEL or BYE: 16 is a normal end (Q.850 §2.2.5).
  var causeSent: ReasonValue? {
    switch self {
    case .localEnd: .q850(16)
    case .unanswered: .q850(19)
    default: refusal()?.q850.map { .q850($0) }
    }
  }
}

extension Routing.Trunk {
  /// The parameters of a leg of this trunk for the media thread.
  func parameters(of media: TrunkMedia) -> TrunkLegParameters {
    var out = TrunkLegParameters(
      remote: media.remote, encoding: media.codec, payloadType: media.payloadType,
      telephoneEventPayloadType: media.telephoneEventPayloadType, packetTimeMilliseconds: media.packetTimeMilliseconds,
      sends: media.direction.sends, receives: media.direction.receives, sourcePolicy: sourcePolicy, mediaPeers: mediaPeers,
      comfortNoisePayloadType: media.comfortNoisePayloadType)
    out.incoming = media.incoming
    out.telephoneEventClockRateHz = media.telephoneEventClockRateHz
    (out.peers, out.signalling) = (peers, calledFrom.isEmpty ? servers : calledFrom)
    out.digits = digits
    out.remoteControl = media.control
    out.wantsVoIPMetrics = media.wantsVoIPMetrics
    out.holdAudio = holdAudio
    out.opus = OpusPreferences(media.opus)
    out.protection = media.protection.flatMap { TrunkProtection($0) }
    return out
  }
  /// The servers that an INVITE of ours may go to.
  private var servers: [IPAddress] {
    guard let peer else { return [] }
    return ([peer.target] + peer.further).flatMap { [$0.flow, $0.large].compactMap { $0?.remote.ip } }
  }
}

/// A snapshot of the statistics that a session's thread has counted.
final class Measured: Sendable {
  let statistics: MediaStatistics
  init(_ statistics: MediaStatistics) { self.statistics = statistics }
}
