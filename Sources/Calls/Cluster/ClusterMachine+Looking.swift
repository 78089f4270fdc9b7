import AppSessions
public import CallFlow
public import TrunklineBytes

// What operators can query of this node without a request to the shared store.

extension ClusterMachine {
  /// A call here that has a start line; nil: there is none.
  public func ownEntry(of call: CallID) -> CallEntry? { calls[call]?.entry }

  /// Calls here that have a start line, in the order of their ids, at most `most` after `last` (nil: from the first). Reads no
  /// other calls.
  public func ownEntries(after last: CallID?, most: Int) -> [CallEntry] {
    var (out, walk) = ([CallEntry](), entryOrder.walk(after: last.map { EntryKey($0) }))
    while out.count < most, let key = walk.next() { if let entry = calls[key.call]?.entry { out.append(entry) } }
    return out
  }

  /// Devices of a user with a socket here, and the user's calls here, without ranks and registrations.
  public func ownLocations(of user: String) -> LocatedUser {
    var out = LocatedUser(user)
    out.whereabouts = (devicesOfUser[user] ?? []).sorted().compactMap { devices[DeviceKey(user: user, device: $0)]?.whereabouts }
    out.calls = (callsOfUser[user] ?? []).sorted(by: Self.isBefore).compactMap { call in
      calls[call].map { CallLocation(call, at: incarnation, $0.direction) }
    }
    return out
  }

  private static func isBefore(_ a: CallID, _ b: CallID) -> Bool { (a.high, a.low) < (b.high, b.low) }
}
