import AppSessions
import CallFlow
import CallModel
import Cluster
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// The cluster as the answering node knows it, for rows that name a node.
struct ClusterView: Sendable {
  /// The answering node's connection to the shared store.
  var state: SharedStoreState
  var own: Incarnation
  /// By name, the answering one first.
  var nodes: [SeenNode]

  init(_ sight: ClusterSight) { (state, own, nodes) = (sight.state, sight.settings.incarnation, sight.sortedNodes) }

  /// An incarnation's liveness as in `trunkline nodes list`; `gone`: no node has its lease, and its entries in the shared store
  /// do not count.
  func liveness(_ incarnation: Incarnation) -> String {
    nodes.first { $0.lease.incarnation == incarnation }?.liveness.rawValue ?? "gone"
  }
}

/// A device of a user: the node of its socket, and how it is woken. Times are milliseconds since 1970.
struct DeviceLocation: Codable, Sendable, Equatable {
  var device: String
  /// The node of its socket; nil: it is not connected.
  var node: String?
  var liveness: String?
  var session: String?
  /// `fg` or `bg`.
  var state: String?
  var caps: [String]?
  /// The accounts of its session, else of its registration.
  var accounts: [String]
  /// It has registered or sent its settings, and may get pushes unless it was revoked.
  var registered: Bool
  var push: [DeviceSummary.Push]
  /// Whether calls ring here, as its user has set.
  var rings: Bool
  var dnd: Bool
  /// When the device was last connected or changed.
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
  /// The answering node, and its connection to the shared store.
  var asked: String
  var sharedStore: String
  /// The shared store did not answer: only the answering node's own data.
  var partial: Bool
  var devices: [DeviceLocation]
  var calls: [UserCall]
}

extension UserLocations {
  /// - Parameters:
  ///   - found: the shared store's data; nil: it did not answer.
  ///   - mine: devices and calls at the answering node, whose data has precedence.
  ///   - registered: devices of the answering node's registry, used if the shared store did not answer.
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

/// A live call, as its node has written it to the shared store. Without credentials and tags.
struct ClusterCall: Codable, Sendable, Equatable {
  struct Leg: Codable, Sendable, Equatable {
    /// `ringing`: the peer's INVITE has no final response; `calling`: ours has none; `confirmed`.
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
  /// The node's URL for devices, and its SIP address for edges.
  var url: String
  var sip: String
  /// The URL of its admin API, if it states one.
  var admin: String?
  var direction: CallDirection
  /// `ringing` until it is connected, in both directions.
  var state: String
  var trunk: String
  var from: String
  var to: String
  /// Users whose devices may show it.
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

/// `GET /v1/where?call=ID`: a call that is `live`, or the known facts of its end.
struct CallWhere: Codable, Sendable, Equatable {
  var call: String
  var asked: String
  var sharedStore: String
  var partial: Bool
  var live: ClusterCall?
  /// Why it ended; kept for two minutes.
  var over: CallOver?
  /// Its record, if records are streamed; kept for a day.
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
