import TrunklineBytes

/// The subscriptions that a REFER of the peer and one of ours create in a dialog (RFC 3515); one of each at a time.
///
/// The peer's:
///
/// | state | REFER | `accept` | `refuse` | `notify` 1xx | `notify` 2xx–6xx | 481 to our NOTIFY |
/// |---|---|---|---|---|---|---|
/// | none | unanswered | – | – | – | – | – |
/// | unanswered | `isBusy`: 491 | subscribed | none | – | – | none |
/// | subscribed | `isBusy`: 491 | – | – | CSeq of the REFER | CSeq of the REFER; none | none |
///
/// Ours:
///
/// | state | REFER 2xx | NOTIFY 1xx | NOTIFY 2xx–6xx, `terminated` | nothing |
/// |---|---|---|---|---|
/// | asked | waiting, `Interval.referSilence` | waiting, `Interval.referProgress` | over | REFER's own timer |
/// | waiting | – | once: `Interval.referProgress` | over | over, outcome unknown |
struct ReferSubscriptions {
  private struct Received {
    /// Of the REFER; nil once it is accepted.
    var transaction: UInt64?
    /// CSeq of the REFER, the `id` of its event (RFC 3515 §2.4.6).
    let sequence: UInt32
  }
  private struct Sent {
    /// CSeq of the REFER, of its first try if a challenge was answered: a NOTIFY whose `id` is earlier belongs to another
    /// subscription (RFC 3515 §2.4.6).
    let sequence: UInt32
    var wasNotified = false
  }

  private var received: Received?
  private var sent: Sent?

  // MARK: the peer's REFER

  var isBusy: Bool { received != nil }
  /// The transaction of a REFER without a response.
  var unanswered: UInt64? { received?.transaction }

  mutating func receive(_ transaction: UInt64, sequence: UInt32) {
    if received == nil { received = Received(transaction: transaction, sequence: sequence) }
  }

  mutating func accept() { received?.transaction = nil }
  mutating func refuse() { if unanswered != nil { received = nil } }
  /// The peer has ended the subscription.
  mutating func unsubscribed() { received = nil }

  /// The `id` of the event of a NOTIFY; nil: there is no subscription.
  mutating func notify(_ code: Int) -> UInt32? {
    guard let refer = received, refer.transaction == nil else { return nil }
    if code >= 200 { received = nil }
    return refer.sequence
  }

  // MARK: our REFER

  var isOpen: Bool { sent != nil }

  /// False: another one has no outcome yet.
  mutating func begin(sequence: UInt32) -> Bool {
    guard sent == nil else { return false }
    sent = Sent(sequence: sequence)
    return true
  }

  /// The REFER got a 2xx. A NOTIFY may overtake it, even the last one.
  func accepted(of leg: LegID, _ step: inout Step) {
    guard let sent, !sent.wasNotified else { return }
    step.timers.schedule(.leg(leg, .refer), at: step.now + Interval.referSilence)
  }

  /// Whether a NOTIFY belongs to this subscription.
  func isOurs(_ eventID: UInt32?) -> Bool { sent.map { refer in eventID.map { $0 >= refer.sequence } ?? true } ?? false }

  mutating func notified(isOver: Bool, of leg: LegID, _ step: inout Step) {
    guard let refer = sent else { return }
    if isOver { return end(of: leg, &step) }
    guard !refer.wasNotified else { return }
    sent?.wasNotified = true
    step.timers.schedule(.leg(leg, .refer), at: step.now + Interval.referProgress)
  }

  /// Refused, or without an outcome for too long.
  mutating func end(of leg: LegID, _ step: inout Step) {
    sent = nil
    step.timers.cancel(.leg(leg, .refer))
  }
}
