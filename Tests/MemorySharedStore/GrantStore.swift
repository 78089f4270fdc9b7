import CallModel
import Cluster
import TrunklineBytes

/// Grants of login tokens in a shared store.
struct GrantStore: Sendable {
  private struct Row: Sendable {
    /// The grant as it was put, with all numbers that the token claims.
    var grant: SharedGrant
    /// Those of the numbers that the user has.
    var held: [String]
    var position: Int64 = 0
    var value: SharedGrant { grant.with(numbers: Set(held)) }
  }
  private var rows: [String: Row] = [:]
  private var owners: [String: String] = [:]
  private var position: Int64 = 0
  private var epoch = ""

  /// The grants with only the numbers that the users have.
  var values: [String: SharedGrant] { rows.mapValues(\.value) }

  mutating func put(_ grants: [SharedGrant], at now: Instant) -> SharedStoreReply {
    var (count, shown) = (0, [String]())
    for grant in grants {
      let held = put(grant, &count)
      if held == grant.canonicalNumbers { continue }
      for user in [grant.user] + grant.canonicalNumbers.compactMap({ owners[$0] }) where !shown.contains(user) {
        shown.append(user)
      }
    }
    if count > 0, epoch.isEmpty { epoch = "\(now.nanoseconds)" }
    return .grantsPut(count, others: shown.prefix(Limits.grantsPerRead).compactMap { rows[$0]?.value })
  }

  /// The numbers that the user has; nil: the row was refused.
  private mutating func put(_ grant: SharedGrant, _ count: inout Int) -> [String]? {
    let (row, user, named) = (rows[grant.user], grant.user, grant.canonicalNumbers)
    var new = Row(grant: grant, held: [])
    var losers: [String] = []
    if let row, row.grant.issuedAt == grant.issuedAt, (row.grant.grant == nil) == (grant.grant == nil) {
      new.held = row.held.filter(named.contains)
      if grant.seen <= row.grant.seen { new.grant = row.grant }
      if new.held == row.held, new.grant == row.grant { return new.held }
    } else if let row, row.grant.issuedAt > grant.issuedAt || row.grant.issuedAt == grant.issuedAt && row.grant.grant == nil {
      return nil
    } else {
      guard row != nil || rows.count < Limits.grants else { return nil }
      for number in named {
        guard let other = owners[number], other != user else {
          new.held.append(number)
          continue
        }
        guard (grant.issuedAt, user) > (rows[other]?.grant.issuedAt ?? 0, other) else { continue }
        new.held.append(number)
        if !losers.contains(other) { losers.append(other) }
      }
    }
    for number in row?.held ?? [] where owners[number] == user { owners[number] = nil }
    for number in new.held { owners[number] = user }
    write(user, new)
    for other in losers {
      guard var row = rows[other] else { continue }
      row.held.removeAll { owners[$0] != other }
      write(other, row)
    }
    count += 1
    return new.held
  }

  private mutating func write(_ user: String, _ row: Row) {
    position += 1
    rows[user] = row
    rows[user]?.position = position
  }

  func read(since: Int64) -> SharedStoreReply {
    var page = GrantPage()
    let later = rows.values.filter { $0.position > since }.sorted { $0.position < $1.position }
    page.rows = later.prefix(Limits.grantsPerRead).map(\.value)
    (page.position, page.hasMore) = (later.prefix(Limits.grantsPerRead).last?.position ?? since, later.count > page.rows.count)
    (page.epoch, page.last) = (epoch, position)
    return .grants(page)
  }
}
