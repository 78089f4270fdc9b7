import TrunklineBytes

/// The legs, each found by its ID, and by its dialog until it is closed (RFC 3261 §12.2.2).
///
/// | input | a leg | no such leg |
/// |---|---|---|
/// | `open` | ignored: the ID is in use | stored, found by its dialog |
/// | `[id]` | changed in place | nothing |
/// | `id(of:)` | its ID | nil |
/// | `connectionLost` | continues on its first flow, or at the peer's listening port | nothing |
/// | `close` | removed; its dialog finds nothing, unless a later leg has the same | nil |
struct LegTable {
  private var table = BoxTable<LegID, Leg>()
  private var index: [DialogKey: LegID] = [:]

  var count: Int { table.count }
  /// Nothing is stored, in the index neither.
  var isEmpty: Bool { table.isEmpty && index.isEmpty }
  var hasRoom: Bool { table.count < Limits.legs }
  /// In any order.
  var all: [Leg] { table.compactMap { $1 } }

  /// A leg in place. Only `open` and `close` add and remove legs.
  subscript(id: LegID) -> Box<Leg>? {
    get { table[id] }
    // Inlined: a call of it would allocate its frame.
    @inline(__always) _modify { yield &table[id] }
  }

  /// The leg of a dialog.
  func id(of dialog: DialogKey) -> LegID? { index[dialog] }
  func leg(of dialog: DialogKey) -> Leg? { index[dialog].flatMap { table[$0]?.value } }

  mutating func open(_ leg: Leg) {
    guard table[leg.id] == nil else { return }
    table.insert(leg, for: leg.id)
    index[leg.dialog.key] = leg.id
  }

  mutating func close(_ id: LegID) -> Leg? {
    guard let leg = table.remove(id) else { return nil }
    if index[leg.dialog.key] == id { index[leg.dialog.key] = nil }
    return leg
  }

  /// A connection was lost, on which a peer may have sent its requests: its port cannot be connected to.
  mutating func connectionLost(to remote: SocketAddress) {
    let lost = table.compactMap { $1.path.uses(connectionTo: remote) ? $0 : nil }
    for id in lost { table[id]?.value.connectionLost(to: remote) }
  }
}
