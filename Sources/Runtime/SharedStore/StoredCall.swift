import CallModel
import Cluster
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// The script prepends `"n":rank,`.
struct StoredCallLocation: StoredValue {
  var format = Cluster.Limits.format
  var rank: Int64?
  var incarnation: String
  var direction: CallDirection

  enum CodingKeys: String, CodingKey {
    case format = "v"
    case rank = "n"
    case incarnation = "i"
    case direction = "d"
  }

  init(_ location: CallLocation) { (incarnation, direction) = (location.incarnation.description, location.direction) }

  func value(_ call: CallID) -> CallLocation? {
    guard let incarnation = Incarnation(incarnation), let rank else { return nil }
    return CallLocation(call, at: incarnation, direction, rank: rank)
  }
}

/// The field's name is the call's id, and the entry's own user is not written twice: a live call must cost less than 0.9 KB.
struct StoredEntry: StoredValue {
  var format = Cluster.Limits.format
  /// The Call-ID of the trunk's side.
  var sipCallID: String?
  var direction: CallDirection
  var trunk: String
  var from: String
  var to: String
  var start: Int64
  var connect: Int64?
  var legs: [OrphanedLeg]?
  var users: [String]
  /// The user of the line, if it is not the first of `users`; empty: it has none.
  var lineUser: String?

  enum CodingKeys: String, CodingKey {
    case format = "v"
    case sipCallID = "s"
    case direction = "d"
    case trunk = "t"
    case from = "f"
    case to = "o"
    case start = "b"
    case connect = "k"
    case legs = "l"
    case users = "u"
    case lineUser = "w"
  }

  init(_ entry: CallEntry) {
    let line = entry.line
    (sipCallID, direction, trunk, from, to) = (line.sipCallId, line.direction, line.trunk, line.from, line.to)
    (start, connect, legs, users) = (line.start, line.connect, line.legs, entry.users)
    lineUser = line.user == entry.users.first ? nil : line.user ?? ""
  }

  func value(_ call: CallID) -> CallEntry? {
    guard isPlausible(start, connect), (legs ?? []).allSatisfy(\.isWellFormed) else { return nil }
    let user = lineUser.map { $0.isEmpty ? nil : $0 } ?? users.first
    var line = JournalEntry(
      call: call, sipCallId: sipCallID, direction: direction, trunk: trunk, from: from, to: to, user: user, start: start,
      connect: connect)
    line.legs = legs
    return CallEntry(line, users: users)
  }
}

/// The end of a call, for devices that connect late.
struct StoredEnd: StoredValue {
  var format = Cluster.Limits.format
  var users: [String]
  /// As in `call.gone`.
  var over: CallOver

  enum CodingKeys: String, CodingKey {
    case format = "v"
    case users = "u"
    case over
  }

  init(_ tombstone: RemoteTombstone) { (users, over) = (tombstone.users, tombstone.over) }
  var value: RemoteTombstone { RemoteTombstone(users: users, over) }
}
