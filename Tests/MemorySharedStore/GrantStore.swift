import Bytes
import CallFlow
import Cluster

/// What login tokens grant, as a shared store has it.
struct GrantStore: Sendable {
  private(set) var rows: [String: (grant: SharedGrant, place: Int64)] = [:]
  private var place: Int64 = 0
  private var epoch = ""

  mutating func put(_ grants: [SharedGrant], at now: Instant) -> SharedStoreReply {
    var (count, later) = (0, [SharedGrant]())
    for grant in grants {
      if let row = rows[grant.user]?.grant, !grant.isLater(than: row) {
        if (row.issuedAt, row.rank) != (grant.issuedAt, grant.rank) { later.append(row) }
        continue
      }
      guard rows[grant.user] != nil || rows.count < Limits.grants else { continue }
      place += 1
      rows[grant.user] = (grant, place)
      count += 1
    }
    if count > 0, epoch.isEmpty { epoch = "\(now.nanoseconds)" }
    return .grantsPut(count, later: later)
  }

  func read(since: Int64) -> SharedStoreReply {
    var page = GrantPage()
    let later = rows.values.filter { $0.place > since }.sorted { $0.place < $1.place }
    page.rows = later.prefix(Limits.grantsPerRead).map(\.grant)
    (page.place, page.hasMore) = (later.prefix(Limits.grantsPerRead).last?.place ?? since, later.count > page.rows.count)
    (page.epoch, page.last) = (epoch, place)
    return .grants(page)
  }
}
