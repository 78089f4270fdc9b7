import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// The trunk legs of a call, one or two, and the check whether a silent peer still exists.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | one leg | `add` | two | – |
/// | two | `removeSecond` | one | the leg |
/// | one | `removeSecond` | one | nil |
/// | any | `replace`: another leg has the call | one | the previous legs |
/// | no ping due | `pinged` | due at the deadline | – |
/// | due | `pingStopped`, if no leg is silent | not due | – |
struct TrunkLegs: RandomAccessCollection {
  private var legs: [TrunkLeg]
  private var ping: Instant?

  init(_ first: TrunkLeg) { legs = [first] }

  var startIndex: Int { 0 }
  var endIndex: Int { legs.count }
  subscript(index: Int) -> TrunkLeg {
    _read { yield legs[index] }
    _modify { yield &legs[index] }
  }
  /// The index of the second leg; nil: there is none.
  var second: Int? { legs.count > 1 ? 1 : nil }
  func index(of id: LegID) -> Int? { legs.firstIndex { $0.id == id } }
  func index(of session: MediaSessionID) -> Int? { legs.firstIndex { $0.session == session } }

  mutating func add(_ leg: TrunkLeg) { legs.append(leg) }
  mutating func removeSecond() -> TrunkLeg? { legs.count > 1 ? legs.removeLast() : nil }
  mutating func replace(with next: TrunkLeg) { legs = [next] }

  /// A silent peer is pinged again, or has not answered, at the deadline.
  mutating func pinged(until deadline: Instant) { ping = deadline }
  mutating func pingStopped() { if !legs.contains(where: \.isSilent) { ping = nil } }
  /// The deadline has passed, or the call has ended.
  mutating func stop() { ping = nil }
  var next: DueTimer? { DueTimer(.trunkPing, ping) }
}
