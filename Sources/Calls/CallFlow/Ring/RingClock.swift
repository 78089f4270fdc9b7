import TrunklineBytes

/// How long a call rings: its window, and what it waits for within it. For a number that we call only the window counts.
///
/// | state | input | → |
/// |---|---|---|
/// | any | `ring` | a new window; for a rule, until a device has to ring |
/// | any | `deviceRang` | no device has to ring any more |
/// | any | `awaitReconnect`: a device without a socket | waits for its reconnect, and for those before it |
/// | any | `checkReconnect` | waits until then |
/// | any | `verify` | waits for the verifier: offers are held |
/// | any | `verified` | does not |
/// | any | `close`: answered, diverted, over | closed: waits for nothing |
struct RingClock {
  /// When the window ends; nil: nothing rings.
  private(set) var until: Instant?
  /// Connected devices are offered the call after the verifier's answer, or after its deadline.
  private(set) var isVerifying = false
  private var unreached: Instant?
  private var vanished: Instant?
  private var verification: Instant?

  mutating func ring(until deadline: Instant, unreached: Instant? = nil) {
    until = deadline
    self.unreached = unreached ?? self.unreached
  }
  mutating func deviceRang() { unreached = nil }
  mutating func awaitReconnect(until deadline: Instant) { vanished = max(vanished ?? deadline, deadline) }
  mutating func checkReconnect(at deadline: Instant) { vanished = deadline }
  mutating func verify(until deadline: Instant) { (isVerifying, verification) = (true, deadline) }
  mutating func verified() { (isVerifying, verification) = (false, nil) }
  mutating func close() { self = RingClock() }

  mutating func stop(_ timer: CallTimer) {
    switch timer {
    case .ring: until = nil
    case .unreached: unreached = nil
    case .vanished: vanished = nil
    default: verification = nil
    }
  }
  var next: DueTimer? {
    .earliest(
      DueTimer(.ring, until), DueTimer(.unreached, unreached), DueTimer(.vanished, vanished),
      DueTimer(.verification, verification))
  }
}
