import AppSessions
public import CallModel
public import TrunklineBytes

// What operators can query of this node without a request to the shared store.

extension ClusterMachine {
  /// A call here that has a journal entry; nil: there is none.
  public func ownEntry(of call: CallID) -> CallEntry? { calls.entry(of: call) }

  /// Calls here that have a journal entry, in the order of their ids, at most `most` after `last` (nil: from the first). Reads no
  /// other calls.
  public func ownEntries(after last: CallID?, most: Int) -> [CallEntry] { calls.entries(after: last, most: most) }

  /// Devices of a user with a socket here, and the user's calls here, without ranks and registrations.
  public func ownLocations(of user: String) -> LocatedUser {
    var out = LocatedUser(user)
    out.whereabouts = devices.devices(of: user).map(\.whereabouts)
    out.calls = calls.calls(of: user).sorted { EntryKey($0) < EntryKey($1) }.compactMap { call in
      calls.direction(of: call).map { CallLocation(call, at: incarnation, $0) }
    }
    return out
  }
}
