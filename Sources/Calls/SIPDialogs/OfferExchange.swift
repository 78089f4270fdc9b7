import TrunklineBytes
import TrunklineSIP

/// An offer of the peer that waits for `answerReinvite`: a re-INVITE, an UPDATE, or a PRACK with one.
struct PeerOffer {
  var transaction: UInt64
  var method: Method
  var sequence: UInt32
  var isLateOffer: Bool
  var target: String?
  var session: SessionAgreement?
}

/// The offers of both sides inside a dialog: one at a time (RFC 3261 §14.1, RFC 3264 §4).
///
/// | state | the peer's offer | `begin` ours | `claim` a wanted offer | over by |
/// |---|---|---|---|---|
/// | idle | the peer's is open | ours is open | true, once | – |
/// | the peer's is open | busy | a re-INVITE: no. An UPDATE that refreshes: yes | false | `closePeerOffer` |
/// | ours is open | 491 to an offer | no | false | `accepted`, `failed` |
/// | the 2xx to our INVITE held an offer | 491 to an offer | as for the peer's | false | `acknowledged` |
/// | waiting out a glare | as in idle | a re-INVITE: no. An UPDATE: yes | false | `glareOver` |
///
/// `retry` waits out a glare up to `Limits.offerTries` times; an accepted offer begins the count again. A repeated end changes
/// nothing.
struct OfferExchange {
  enum Kind { case reinvite, update }

  private(set) var peerOffer: PeerOffer?
  /// The 2xx to an INVITE without offer: its ACK waits for our answer.
  private(set) var awaitsAcknowledgement = false
  private var ours: Kind?
  private var isWanted = false
  private var isRefreshWanted = false
  private(set) var isWaitingOutGlare = false
  private var tries = 0

  /// An offer of ours has no answer. An UPDATE that only refreshes is none.
  var hasOpenOffer: Bool { ours == .reinvite || awaitsAcknowledgement }
  /// No offer of either side is open.
  var isIdle: Bool { peerOffer == nil && ours == nil && !awaitsAcknowledgement }
  var isOurOfferOpen: Bool { ours != nil }
  /// A 422 to our INVITE may be answered with a longer session.
  var mayRaise: Bool { tries < Limits.sessionRaises }

  // MARK: the peer's

  mutating func received(_ offer: PeerOffer) { peerOffer = offer }

  /// Answered, refused, cancelled, or overtaken by the end of its dialog: returned once.
  mutating func closePeerOffer() -> PeerOffer? {
    defer { peerOffer = nil }
    return peerOffer
  }

  // MARK: ours

  mutating func want() { isWanted = true }
  /// The leg ends.
  mutating func wantNothing() { isWanted = false }

  /// True, once: the offer that was requested may be made now.
  mutating func claim() -> Bool {
    guard isWanted, isIdle, !isWaitingOutGlare else { return false }
    isWanted = false
    return true
  }

  /// False: it may not be sent now.
  mutating func begin(_ kind: Kind) -> Bool {
    guard kind == .update ? ours == nil : isIdle && !isWaitingOutGlare else { return false }
    ours = kind
    return true
  }

  mutating func accepted() { (ours, tries) = (nil, 0) }
  /// Refused, without a response, or replaced.
  mutating func failed() { ours = nil }
  /// The INVITE is sent again with a longer session.
  mutating func raised() { tries += 1 }

  /// Makes the offer again after a delay. False: it was tried often enough.
  mutating func retry(_ kind: Kind, after delay: Duration, of leg: LegID, _ step: inout Step) -> Bool {
    guard tries < Limits.offerTries else {
      tries = 0
      return false
    }
    tries += 1
    if kind == .reinvite { isWanted = true } else { isRefreshWanted = true }
    isWaitingOutGlare = true
    step.timers.schedule(.leg(leg, .glare), at: step.now + delay)
    return true
  }

  /// The wait is over. True: a refresh is due.
  mutating func glareOver() -> Bool {
    guard isWaitingOutGlare else { return false }
    defer { isRefreshWanted = false }
    isWaitingOutGlare = false
    return isRefreshWanted
  }

  mutating func awaitAcknowledgement() { awaitsAcknowledgement = true }
  mutating func acknowledged() { awaitsAcknowledgement = false }
}
