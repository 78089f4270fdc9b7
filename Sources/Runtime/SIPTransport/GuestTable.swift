import TrunklineBytes
import TrunklineSIPDialogs

/// Admits connections of guests: peers that are not listed and have not answered a challenge yet.
///
/// At most `Limits.connectionsPerGuest` of one address (IPv6: of one /64), and at most half of a trunk's share of the table: the
/// other half is kept for authenticated peers. When the guests' half is full, the address with most connections loses its oldest
/// one to an address that has fewer, so that early connections do not keep others out.
enum GuestTable {
  struct Guest {
    var flow: Flow
    /// When its time as a guest ends: the earlier, the older the connection.
    var until: Instant
  }

  enum Verdict: Equatable {
    case admitted
    /// Admitted after this connection has been closed.
    case admittedFor(Flow)
    /// The address has its maximum of connections.
    case addressFull
    case tableFull
  }

  static func verdict(on newcomer: IPAddress, among guests: [Guest]) -> Verdict {
    let bySource = Dictionary(grouping: guests) { $0.flow.remote.ip.subscriber }
    let own = bySource[newcomer.subscriber]?.count ?? 0
    guard own < Limits.connectionsPerGuest else { return .addressFull }
    guard guests.count >= Limits.connectionsPerTrunk / 2 else { return .admitted }
    let most = bySource.values.map(\.count).max() ?? 0
    let oldest = bySource.values.filter { $0.count == most }.joined().min { $0.until < $1.until }
    guard most > own, let oldest else { return .tableFull }
    return .admittedFor(oldest.flow)
  }
}
