import TrunklineBytes

/// The number of connections an address may have, and how many it may open per second. IPv6 counts by /64, which is what one
/// customer has, and by /48, the most that one usually gets; both must have room.
///
/// Memory: an entry for each address that has a connection or had one within the last seconds, at most `Limits.addresses`.
struct Admission {
  private struct Group: Hashable {
    var prefix: UInt64
    var kind: UInt8
  }
  private struct Entry {
    var connections = 0
    var attempts: TokenBucket
  }

  private let perAddress: Int
  private let boundsAttempts: Bool
  private var entries: [Group: Entry] = [:]
  private var swept = Instant.zero

  /// - Parameter boundsAttempts: false if a new connection replaces the idlest: then an address that opens many takes slots from
  ///   itself alone, and a program at the same address (a tunnel, a proxy) must get through.
  init(perAddress: Int, boundsAttempts: Bool = true) { (self.perAddress, self.boundsAttempts) = (perAddress, boundsAttempts) }

  /// Counts a connection of this address, or returns why it is refused. A refused one counts as an attempt.
  mutating func admit(_ address: IPAddress, at now: Instant) -> ConnectionRefusal? {
    let groups = groups(address)
    for (group, factor) in groups {
      guard makeRoom(group, factor: factor, now) else { return .tooMany }
      guard !boundsAttempts || entries[group]?.attempts.consume(at: now) == true else { return .tooFast }
      guard let entry = entries[group], entry.connections < perAddress * factor else { return .tooManyFromAddress }
    }
    for (group, _) in groups { entries[group]?.connections += 1 }
    return nil
  }

  /// A counted connection was closed. Its entry is removed with the last one once its bucket is full again.
  mutating func release(_ address: IPAddress, at now: Instant) {
    for (group, _) in groups(address) {
      guard var entry = entries[group] else { continue }
      entry.connections -= 1
      entries[group] = entry.connections <= 0 && entry.attempts.isFull(at: now) ? nil : entry
    }
  }

  private func groups(_ address: IPAddress) -> [(Group, factor: Int)] {
    switch address.family {
    case .v4: [(Group(prefix: address.low, kind: 32), 1)]
    case .v6:
      [(Group(prefix: address.high, kind: 64), 1), (Group(prefix: address.high >> 16, kind: 48), Limits.addressesPerSite)]
    }
  }

  private mutating func makeRoom(_ group: Group, factor: Int, _ now: Instant) -> Bool {
    if entries[group] != nil { return true }
    if entries.count >= Limits.addresses {
      guard now - swept >= .seconds(1) else { return false }
      swept = now
      entries = entries.filter { element in
        let attempts = element.value.attempts
        return element.value.connections > 0 || !attempts.isFull(at: now)
      }
      guard entries.count < Limits.addresses else { return false }
    }
    let burst = Double(max(4 * perAddress, Limits.attemptBurst) * factor)
    entries[group] = Entry(attempts: TokenBucket(perSecond: burst / 8, burst: burst, at: now))
    return true
  }
}
