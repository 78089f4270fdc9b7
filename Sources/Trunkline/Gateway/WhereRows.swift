import AppProtocol
import AppSessions
import Bytes
import CallFlow
import Cluster
import SIPDialogs

/// The cluster as the answering node sees it, for rows that name a node.
struct ClusterView: Sendable {
  /// How the answering node stands to the shared store.
  var state: SharedStoreState
  var own: Incarnation
  /// By name, the answering one first.
  var nodes: [SeenNode]

  init(_ sight: ClusterSight) { (state, own, nodes) = (sight.state, sight.settings.incarnation, sight.sortedNodes) }

  /// Of an incarnation: as `trunkline nodes list` has it; `gone`: no node has its lease, and its values in the shared store are ignored.
  func liveness(_ incarnation: Incarnation) -> String {
    nodes.first { $0.lease.incarnation == incarnation }?.liveness.rawValue ?? "gone"
  }
}

/// A device of a user: where its socket is, and how it is woken. Times are milliseconds since 1970.
struct DeviceLocation: Codable, Sendable, Equatable {
  var device: String
  /// Where its socket is; nil: nowhere.
  var node: String?
  var liveness: String?
  var session: String?
  /// `fg` or `bg`.
  var state: String?
  var caps: [String]?
  /// Of its session, else of its registration.
  var accounts: [String]
  /// It has registered, or said what it wants, and may be pushed to unless it was revoked.
  var registered: Bool
  var push: [DeviceSummary.Push]
  /// Whether calls ring here, by its user's word.
  var rings: Bool
  var dnd: Bool
  /// The last word of it.
  var lastSeen: Int64?
  var revokedAt: Int64?
}

/// A live call of a user.
struct UserCall: Codable, Sendable, Equatable {
  var call: String
  var node: String
  var liveness: String
  var direction: CallDirection
}

/// `GET /v1/where?user=U`.
struct UserLocations: Codable, Sendable, Equatable {
  var user: String
  /// Who answers, and how it stands to the shared store.
  var asked: String
  var sharedStore: String
  /// The shared store did not answer: this is what the asked node alone knows.
  var partial: Bool
  var devices: [DeviceLocation]
  var calls: [UserCall]
}

extension UserLocations {
  /// - Parameters:
  ///   - found: what the shared store has; nil: it did not answer.
  ///   - mine: devices and calls at the asked node, which knows best of them.
  ///   - registered: devices as the asked node's registry has them, used where the shared store did not answer.
  init(_ user: String, _ found: LocatedUser?, mine: LocatedUser, registered: [DeviceSummary], _ view: ClusterView) {
    (self.user, asked, sharedStore) = (user, view.own.node, view.state.rawValue)
    partial = found == nil
    let locations = (found?.whereabouts.filter { $0.incarnation != view.own } ?? []) + mine.whereabouts
    let known = found?.devices.map { DeviceSummary($0) } ?? registered
    var rows: [String: DeviceLocation] = [:]
    for device in known { rows[device.device] = DeviceLocation(device) }
    for location in locations {
      var row = rows[location.device.device] ?? DeviceLocation(location.device.device)
      (row.node, row.liveness, row.session) = (
        location.incarnation.node, view.liveness(location.incarnation), location.session.text
      )
      (row.state, row.caps, row.accounts) = (location.state.rawValue, location.caps.sorted(), location.accounts)
      rows[row.device] = row
    }
    devices = rows.values.sorted { $0.device < $1.device }
    calls = ((found?.calls.filter { $0.incarnation != view.own } ?? []) + mine.calls).map { call in
      UserCall(
        call: call.call.description, node: call.incarnation.node, liveness: view.liveness(call.incarnation),
        direction: call.direction)
    }
  }
}

extension DeviceLocation {
  init(_ device: String) {
    (self.device, accounts, registered, push, rings, dnd) = (device, [], false, [], true, false)
  }

  init(_ device: DeviceSummary) {
    self.init(device.device)
    (accounts, push, rings, dnd) = (device.accounts, device.push, device.rings, device.dnd)
    (lastSeen, revokedAt) = (device.lastSeen, device.revokedAt)
    registered = device.firstSeen != nil
  }
}

/// A live call, as its node has told the shared store. No credentials, no tags.
struct ClusterCall: Codable, Sendable, Equatable {
  struct Leg: Codable, Sendable, Equatable {
    /// `ringing`: an INVITE of the peer without final response; `calling`: one of ours; `confirmed`.
    var phase: OrphanedLeg.Phase
    var trunk: String
    var transport: String?
    /// Addresses of the node and of its next hop.
    var local: String?
    var remote: String?
  }
  var call: String
  var node: String
  var liveness: String
  /// Where a device reaches the node, and where an edge does.
  var url: String
  var sip: String
  /// Where its admin API is, if it says so.
  var admin: String?
  var direction: CallDirection
  /// `ringing` until it is connected, either way.
  var state: String
  var trunk: String
  var from: String
  var to: String
  /// Whose devices may show it.
  var users: [String]
  var start: Int64
  var connect: Int64?
  /// Call-ID of the trunk leg.
  var sipCallId: String?
  var legs: [Leg]

  init(_ entry: CallEntry, at node: SeenNode) {
    let line = entry.line
    (call, self.node, liveness) = (line.call.description, node.lease.incarnation.node, node.liveness.rawValue)
    (url, sip, admin, direction) = (node.lease.url, node.lease.sip, node.lease.admin, line.direction)
    (state, trunk, from, to) = (line.connect == nil ? "ringing" : "connected", line.trunk, line.from, line.to)
    (users, start, connect, sipCallId) = (entry.users, line.start, line.connect, line.sipCallId)
    legs = (line.legs ?? []).map { leg in
      let flow = leg.flow
      return Leg(
        phase: leg.phase, trunk: leg.trunk, transport: flow?.transport.rawValue, local: flow.map { "\($0.local)" },
        remote: flow.map { "\($0.remote)" })
    }
  }
}

/// `GET /v1/where?call=ID`: one of `live`, or what is known of its end.
struct CallWhere: Codable, Sendable, Equatable {
  var call: String
  var asked: String
  var sharedStore: String
  var partial: Bool
  var live: ClusterCall?
  /// Why it ended, for two minutes.
  var over: CallOver?
  /// Its record, where records are streamed, for a day.
  var record: CallRecord?
}

/// `GET /v1/cluster/calls`.
struct ClusterCalls: Codable, Sendable, Equatable {
  var asked: String
  var sharedStore: String
  var partial: Bool
  var calls: [ClusterCall]
  /// `?after=` of the next page; nil: this was the last.
  var next: String?
}
