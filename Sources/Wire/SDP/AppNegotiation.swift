import TrunklineBytes
import TrunklineRTP

/// Offer and answer of an app leg, one audio section (docs/reference/protocol.md, "Media on the app leg"). The gateway is
/// ICE-lite and DTLS server, or client if the app answers `passive`; the app (for our own phone) has full ICE and is the DTLS
/// client.
///
/// A value per device and call. For an ICE restart set `endpoint` with the new ufrag and password, then answer the client's new
/// offer. A failed call leaves the value unchanged.
///
///     var leg = AppNegotiation(.gateway, endpoint: endpoint, sessionID: random.next())
///     offer.sdp = leg.makeOffer()                                // call.offer
///     let media = try leg.apply(answer: prepare.sdp)             // call.prepare, call.answer
///     let (sdp, media) = try leg.answer(to: start.sdp)           // call.start, media.restart
///
///     var leg = AppNegotiation(.app, endpoint: endpoint, sessionID: random.next())
///     let (sdp, gateway) = try leg.answer(to: offer.sdp)         // call.offer → call.prepare
///     start.sdp = leg.makeOffer()                                // call.start, media.restart
///     let gateway = try leg.apply(answer: ok.sdp)
public struct AppNegotiation: Sendable {
  public enum Side: Sendable { case gateway, app }

  private let side: Side
  /// Replaced for an ICE restart.
  public var endpoint: SecureEndpoint
  /// The result of the last completed exchange.
  public private(set) var agreed: AppMedia?
  private var history: DescriptionHistory
  private var hasOffered = false

  /// `sessionID` is random.
  public init(_ side: Side, endpoint: SecureEndpoint, sessionID: UInt64) {
    (self.side, self.endpoint) = (side, endpoint)
    history = DescriptionHistory(sessionID: sessionID)
  }

  private var isLite: Bool { side == .gateway }
  private var reader: SecureAudioReader {
    SecureAudioReader(peerRoles: peerRoles, acceptsLite: !isLite, codecs: endpoint.codecs)
  }

  /// In an ICE restart the association keeps its roles if the choice is ours (RFC 8842 §5.3).
  private var peerRoles: [SetupRole] {
    if !isLite { return [.passive] }
    return agreed?.setup == .passive ? [.passive, .active] : [.active, .passive]
  }

  /// Our offer: `a=setup:actpass` as RFC 5763 §5 requires of an offerer, all codecs, mid `0`.
  public mutating func makeOffer() -> String {
    hasOffered = true
    let writer = SecureAudioWriter(
      endpoint: endpoint, isLite: isLite, setup: .actpass,
      formats: endpoint.codecs.map { .init(codec: $0, payloadType: $0.row.payloadType) }, event48: SecureAudioWriter.event48,
      event8: SecureAudioWriter.event8, mid: "0")
    return history.write(writer.description([writer.section()], bundled: true, sessionID: history.sessionID))
  }

  /// Applies the peer's answer to our offer. An app whose answer is unusable gets `err{codec}`.
  public mutating func apply(answer text: String) throws(NegotiationError) -> AppMedia {
    guard hasOffered else { throw .noOffer }
    let media = try reader.read(.answer, SessionDescription.read(text), at: 0)
    agreed = media
    return media
  }

  /// Answers the peer's offer with one codec: its first that we support. Other sections are refused at their position; header
  /// extensions and feedback are not accepted.
  public mutating func answer(to text: String) throws(NegotiationError) -> (sdp: String, media: AppMedia) {
    try answer(to: .read(text))
  }

  public mutating func answer(to description: SessionDescription) throws(NegotiationError) -> (sdp: String, media: AppMedia) {
    let index = try reader.chooseSection(description)
    let media = try reader.read(.offer, description, at: index)
    agreed = media
    let writer = SecureAudioWriter(
      endpoint: endpoint, isLite: isLite, setup: media.setup == .active ? .passive : .active,
      formats: [.init(codec: media.codec, payloadType: media.payloadType)],
      event48: media.codec.clockRateHz == 48_000 ? media.telephoneEvent48 : nil, event8: media.telephoneEvent8, mid: media.mid,
      transport: description.media[index].transport, direction: media.direction)
    return (history.write(writer.answer(to: description, at: index, history.sessionID)), media)
  }
}

extension SecureAudioWriter {
  /// The section at its position among the refused others; the bundle names it if the offer's bundle did (RFC 9143 §7.3). Refused
  /// sections repeat the transport: no RFC requires that, but aiortc rejects a description with a section without it.
  func answer(to offer: SessionDescription, at index: Int, _ sessionID: UInt64) -> SessionDescription {
    let transport = [
      Attribute("ice-ufrag", endpoint.ufrag), Attribute("ice-pwd", endpoint.password),
      Attribute("fingerprint", endpoint.fingerprint.text), Attribute("setup", setup.rawValue),
    ]
    let sections = offer.media.enumerated().map { position, other -> MediaDescription in
      guard position != index else { return section() }
      var refused = other.refusal
      refused.attributes += transport + (other.attributes.has("rtcp-mux") ? [Attribute("rtcp-mux")] : [])
      return refused
    }
    let bundled = mid.map { offer.bundle?.contains($0) ?? false } ?? false
    return description(sections, bundled: bundled, sessionID: sessionID)
  }
}
