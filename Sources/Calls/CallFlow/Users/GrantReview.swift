import TrunklineBytes

/// The check of all grants by the rules that the configuration has for them, in steps: after a reload with other rules, and at the
/// start. Until a step reaches a user, the grant that was accepted by the earlier rules stays.
///
/// | state | event | does |
/// |---|---|---|
/// | any | `begin` | the first user is next, now |
/// | running | `checked` up to a user | the users after it are next, after `Limits.grantReviewPause` |
/// | running | `checked` all | idle |
struct GrantReview {
  /// When the next step is due; nil: idle.
  private(set) var nextStep: Instant?
  /// The last user that was checked; nil: none yet.
  private(set) var last: String?

  mutating func begin(at now: Instant) { (nextStep, last) = (now, nil) }

  mutating func checked(_ last: String?, at now: Instant) {
    nextStep = last == nil ? nil : now + Limits.grantReviewPause
    self.last = last
  }
}
