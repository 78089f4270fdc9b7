import Bytes

/// The app's side of an app leg, for our own phone: full ICE, DTLS client, one audio section. Mirror of `AppNegotiation`.
///
///     var leg = AppClientNegotiation(endpoint: endpoint, sessionID: random.next())
///     let (sdp, gateway) = try leg.answer(to: offer.sdp)         // call.offer → call.prepare
///     start.sdp = leg.makeOffer()                                // call.start, media.restart
///     let gateway = try leg.apply(answer: ok.sdp)
public struct AppClientNegotiation: Sendable {
  /// Set anew for an ICE restart.
  public var endpoint: SecureEndpoint
  /// What the last completed exchange settled.
  public private(set) var settled: AppMedia?
  private var history: DescriptionHistory
  private var hasOffered = false

  /// `sessionID` is random. A client usually wants no `opusPlaybackRateHz`.
  public init(endpoint: SecureEndpoint, sessionID: UInt64) {
    self.endpoint = endpoint
    history = DescriptionHistory(sessionID: sessionID)
  }

  private var reader: SecureAudioReader { SecureAudioReader(peerRole: .passive, acceptsLite: true, codecs: endpoint.codecs) }

  /// Our offer: `a=setup:actpass`, as RFC 5763 §5 asks of an offerer; the gateway answers `passive`.
  public mutating func makeOffer() -> String {
    hasOffered = true
    let writer = SecureAudioWriter(
      endpoint: endpoint, isLite: false, setup: .actpass,
      formats: endpoint.codecs.map { .init(codec: $0, payloadType: $0.offeredPayloadType) }, event48: SecureAudioWriter.event48,
      event8: SecureAudioWriter.event8, mid: "0")
    return history.write(writer.description([writer.section()], bundled: true, sessionID: history.sessionID))
  }

  /// Takes the gateway's answer.
  public mutating func apply(answer text: String) throws(NegotiationError) -> AppMedia {
    guard hasOffered else { throw .noOffer }
    let media = try reader.read(.answer, SecureAudioReader.parse(text), at: 0)
    settled = media
    return media
  }

  /// Answers the gateway's offer as DTLS client with its first codec that we have.
  public mutating func answer(to text: String) throws(NegotiationError) -> (sdp: String, media: AppMedia) {
    let description = try SecureAudioReader.parse(text)
    let index = try reader.chooseSection(description)
    let media = try reader.read(.offer, description, at: index)
    settled = media
    let writer = SecureAudioWriter(
      endpoint: endpoint, isLite: false, setup: .active, formats: [.init(codec: media.codec, payloadType: media.payloadType)],
      event48: media.codec == .opus ? media.telephoneEvent48 : nil, event8: media.telephoneEvent8, mid: media.mid,
      transport: description.media[index].transport, direction: media.direction)
    return (history.write(writer.answer(to: description, at: index, history.sessionID)), media)
  }
}
