import Bytes
import SIPDialogs

/// Which connections of guests there may be: peers that no list names, and that have not answered a challenge yet.
///
/// At most `Limits.connectionsPerGuest` of one address (IPv6: of one /64), and never more than half of a trunk's share of the table:
/// the other half is kept for who has authenticated. When the guests' half is full, the oldest connection of the address that has
/// most gives way to an address that has fewer, so that earlier connections keep no address out.
enum GuestTable {
  struct Guest {
    var flow: Flow
    /// The end of its life as a guest: the earlier, the older.
    var until: Instant
  }

  enum Verdict: Equatable {
    case admitted
    /// After this one has been closed.
    case admittedFor(Flow)
    /// The address has as many as it may.
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
