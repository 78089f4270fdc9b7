import TrunklineAppProtocol
import TrunklineBytes

/// The answer of an incoming call: the offer until the call is on the screen, the user's tap until the call is connected.
///
/// | state | `offered` | `claimOffer` | `tap` | `settled` |
/// |---|---|---|---|---|
/// | rings | an offer waits | the offer, once | tapped; `deadline`, if the system has one | – |
/// | tapped | an offer waits; `input` answers once it is claimed | the offer, once | false | no deadline |
struct Answering: Sendable {
  typealias Offer = (sdp: String, generation: Int)

  private(set) var tappedAt: Instant?
  /// The phone's own deadline, before the system's, so that the end has its reason.
  private(set) var deadline: Instant?
  /// The offer, until the call is on the screen and `call.ringing` can be sent.
  private var offer: Offer?

  var hasOffer: Bool { offer != nil }

  mutating func offered(_ offer: Offer) { self.offer = offer }

  mutating func claimOffer() -> Offer? {
    defer { offer = nil }
    return offer
  }

  /// False: it was tapped before.
  /// - Parameter timeout: the time until the system gives up.
  mutating func tap(timeout: Duration?, at now: Instant) -> Bool {
    guard tappedAt == nil else { return false }
    tappedAt = now
    deadline = timeout.map { now + max(.zero, $0 - Limits.answerMargin) }
    return true
  }

  /// The tap with its age, as it is sent now; nil: there was none.
  func input(at now: Instant) -> ClientCall.Input? {
    guard let tappedAt else { return nil }
    let left = deadline.map { max(0, Int(($0 + Limits.answerMargin - now).milliseconds)) }
    return .answer(ageMilliseconds: Int((now - tappedAt).milliseconds), timeoutMilliseconds: left)
  }

  /// The call is connected or its deadline was reached.
  mutating func settled() { deadline = nil }

  mutating func ended() { offer = nil }
}
