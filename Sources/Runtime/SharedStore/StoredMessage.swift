import AppSessions
import CallModel
import Cluster
import TrunklineAppProtocol
import TrunklineBytes

/// A message of a channel.
struct StoredMessage: StoredValue {
  enum Kind: String, Codable { case wake, came, replaced, revoked, lost, dead, grants, directories, history }
  var format = Cluster.Limits.format
  /// The sender that the message names.
  var sender: String
  var kind: Kind
  var user: String
  var device: String?
  var call: CallID?
  var wake: CallWake?
  /// Of `replaced` a session, of `dead` an incarnation.
  var subject: String?
  var whereabouts: StoredWhereabouts?
  /// Of the history.
  var row: Int64?
  /// As in a lease.
  var end: Int64?

  enum CodingKeys: String, CodingKey {
    case format = "v"
    case sender = "f"
    case kind = "k"
    case user = "u"
    case device = "d"
    case call
    case wake = "c"
    case subject = "s"
    case whereabouts = "w"
    case row = "n"
    case end = "e"
  }

  init(_ message: ClusterMessage, from: Incarnation, until end: Int64? = nil) {
    self.end = end
    sender = from.description
    switch message {
    case .wake(let key, let wake):
      (kind, user, device) = (.wake, key.user, key.device)
      self.wake = wake
    case .came(let location):
      (kind, user, device) = (.came, location.device.user, location.device.device)
      whereabouts = StoredWhereabouts(location)
    case .replaced(let key, let session): (kind, user, device, subject) = (.replaced, key.user, key.device, session.text)
    case .revoked(let key): (kind, user, device) = (.revoked, key.user, key.device)
    case .lost(let call, let user): (kind, self.user, self.call) = (.lost, user, call)
    case .dead(let other): (kind, user, subject) = (.dead, "", other.description)
    case .grants: (kind, user) = (.grants, "")
    case .directories: (kind, user) = (.directories, "")
    case .history(let user, let row): (kind, self.user, self.row) = (.history, user, row)
    }
  }

  var value: (ClusterMessage, Incarnation)? {
    guard let from = Incarnation(sender), let message else { return nil }
    return (message, from)
  }

  private var message: ClusterMessage? {
    let key = device.map { DeviceKey(user: user, device: $0) }
    return switch kind {
    case .wake: key.flatMap { key in wake.map { .wake(key, $0) } }
    case .came: key.flatMap { whereabouts?.value($0) }.map { .came($0) }
    case .replaced: key.flatMap { key in subject.map { .replaced(key, SessionID($0)) } }
    case .revoked: key.map { .revoked($0) }
    case .lost: call.map { .lost($0, user: user) }
    case .dead: subject.flatMap { Incarnation($0) }.map { .dead($0) }
    case .grants: .grants
    case .directories: .directories
    case .history: row.flatMap { isPlausible($0) ? .history(user: user, row: $0) : nil }
    }
  }
}
