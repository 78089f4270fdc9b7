import AppSessions
public import CallModel
public import Cluster
public import Devices
public import TrunklineBytes

/// The data of a shared store, and the effect of each request on it, on virtual time. The reference for every shared store: one
/// request is atomic.
public struct SharedStoreStore: Sendable {
  private struct Held<Value: Sendable>: Sendable {
    var value: Value
    var ends: Instant
  }
  private struct Starter: Sendable, Equatable {
    var device: DeviceKey
    var incarnation: Incarnation
  }
  private struct Claim: Hashable, Sendable {
    var call: CallID
    var incarnation: Incarnation
  }
  /// In the order of insertion: a cursor is the number of the last entry read.
  private struct Entries: Sendable {
    var numberOf: [CallID: UInt64] = [:]
    var inOrder: [(number: UInt64, entry: CallEntry)] = []
  }

  private var leases: [String: Held<NodeLease>] = [:]
  public private(set) var whereabouts: [String: [String: Whereabouts]] = [:]
  private var entered: [DeviceKey: Int64] = [:]
  public private(set) var devices: [String: [String: Device]] = [:]
  public private(set) var calls: [String: [CallID: CallLocation]] = [:]
  private var hours: [String: [Instant]] = [:]
  private var entries: [Incarnation: Entries] = [:]
  private var reaping: [Claim: Held<Incarnation>] = [:]
  private var starts: [CallID: Held<Starter>] = [:]
  private var tombstones: [CallID: Held<RemoteTombstone>] = [:]
  public private(set) var trunks: [String: [Incarnation: Int]] = [:]
  private var leaders: [SingleTask: Held<Incarnation>] = [:]
  public private(set) var records: [CallID: [UInt8]] = [:]
  private var histories = HistoryStore()
  private var directories = DirectoryStore()
  private var grants = GrantStore()
  private var rank: Int64 = 0
  private var number: UInt64 = 0

  /// Messages that a request published, which the caller delivers. `to` nil: all nodes.
  public var published: [(message: ClusterMessage, to: String?)] = []

  public init() {}

  // MARK: for tests

  /// Names of the parts of directories that have not expired at this time.
  public func directoryParts(at time: Instant) -> Set<String> { directories.names(at: time) }
  public func liveLeases(at now: Instant) -> [NodeLease] {
    leases.values.filter { $0.ends > now }.map(\.value).sorted { $0.incarnation < $1.incarnation }
  }
  public func leader(of task: SingleTask, at now: Instant) -> Incarnation? {
    leaders[task].flatMap { $0.ends > now ? $0.value : nil }
  }
  public func calls(of incarnation: Incarnation) -> Set<CallID> { Set(entries[incarnation]?.numberOf.keys.map { $0 } ?? []) }
  public func tombstone(of call: CallID, at now: Instant) -> RemoteTombstone? {
    tombstones[call].flatMap { $0.ends > now ? $0.value : nil }
  }
  public var grantRows: [String: SharedGrant] { grants.values }
  /// As a shard of a Redis Cluster that is flushed: the leases are in another one.
  public mutating func loseGrants() { grants = GrantStore() }
  public var deviceCount: Int { whereabouts.values.reduce(0) { $0 + $1.count } }

  // MARK: requests

  public mutating func apply(_ request: SharedStoreRequest, at now: Instant) -> SharedStoreReply {
    switch request {
    case .renew(let lease, let length): return renew(lease, length, now)
    case .endLease(let incarnation):
      if leases[incarnation.node]?.value.incarnation == incarnation { leases[incarnation.node] = nil }
    case .enter, .update, .leave, .locate, .leaveCall, .register, .consumeQuota: return applyToUser(request, at: now)
    case .put, .remove, .reaped, .entries, .claimReaping, .claimStart, .putTombstone, .tombstone, .entry:
      return applyToCall(request, at: now)
    case .admit(let trunk, let most, let incarnation):
      guard (trunks[trunk]?.values.reduce(0, +) ?? 0) < most else { return .granted(false) }
      trunks[trunk, default: [:]][incarnation, default: 0] += 1
      return .granted(true)
    case .share(let trunk, let count, let incarnation):
      trunks[trunk, default: [:]][incarnation] = count > 0 ? count : nil
    case .lead(let task, let incarnation):
      if let held = leaders[task], held.ends > now, held.value != incarnation { return .granted(false, holder: held.value) }
      leaders[task] = Held(value: incarnation, ends: now + Limits.leadership)
      return .granted(true, holder: incarnation)
    case .resign(let task, let incarnation): if leaders[task]?.value == incarnation { leaders[task] = nil }
    case .publish(let message, let node): published.append((message, node))
    case .broadcast(let message): published.append((message, nil))
    case .append(let call, let record):
      guard records[call] == nil else { return .granted(false) }
      records[call] = record
      return .granted(true)
    case .record(let call): return .record(records[call])
    case .addHistory, .history, .forgetHistory: return histories.apply(request, whereabouts, at: now)
    case .directories, .directoryHead, .directoryParts, .stageDirectoryParts, .commitDirectory,
      .expireDirectoryParts:
      return directories.apply(request, at: now)
    case .putGrants(let rows): return grants.put(rows, at: now)
    case .grants(let since): return grants.read(since: since)
    }
    return .done
  }

  private mutating func applyToUser(_ request: SharedStoreRequest, at now: Instant) -> SharedStoreReply {
    switch request {
    case .enter(let location, let since): return enter(location, since, now)
    case .update(let location):
      guard whereabouts[location.device.user]?[location.device.device]?.session == location.session else { return .done }
      whereabouts[location.device.user]?[location.device.device] = location
    case .leave(let key, let session):
      guard whereabouts[key.user]?[key.device]?.session == session else { return .done }
      whereabouts[key.user]?[key.device] = nil
      entered[key] = nil
      if whereabouts[key.user]?.isEmpty ?? false { whereabouts[key.user] = nil }
    case .locate(let user, let location): return locate(user, location)
    case .leaveCall(let user, let call):
      calls[user]?[call] = nil
      if calls[user]?.isEmpty ?? false { calls[user] = nil }
    case .register(let user, let changes):
      for change in changes { register(user, change) }
      while devices[user]?.count ?? 0 > Limits.devicesPerUser, let oldest = devices[user]?.min(by: Self.isOlder)?.key {
        devices[user]?[oldest] = nil
      }
    case .consumeQuota(let user, let most):
      hours[user]?.removeAll { now - $0 >= .seconds(3_600) }
      guard (hours[user]?.count ?? 0) < most else { return .granted(false) }
      hours[user, default: []].append(now)
      return .granted(true)
    default: preconditionFailure("a request that is of no user")
    }
    return .done
  }

  private mutating func applyToCall(_ request: SharedStoreRequest, at now: Instant) -> SharedStoreReply {
    switch request {
    case .put(let entry, let incarnation): put(entry, incarnation)
    case .remove(let call, let incarnation):
      guard let number = entries[incarnation]?.numberOf.removeValue(forKey: call) else { return .done }
      entries[incarnation]?.inOrder.removeAll { $0.number == number }
    case .reaped(let call, let incarnation, let reaper):
      reaping[Claim(call: call, incarnation: incarnation)] = Held(value: reaper, ends: now + Limits.reaped)
      return apply(.remove(call, at: incarnation), at: now)
    case .entries(let incarnation, let cursor): return read(incarnation, cursor)
    case .claimReaping(let call, let of, let by): return claim(Claim(call: call, incarnation: of), by, now)
    case .claimStart(let call, let device, let incarnation):
      let starter = Starter(device: device, incarnation: incarnation)
      if let held = starts[call], held.ends > now {
        return .granted(held.value == starter, holder: held.value == starter ? nil : held.value.incarnation)
      }
      starts[call] = Held(value: starter, ends: now + Limits.startClaim)
      return .granted(true)
    case .putTombstone(let call, let tombstone): tombstones[call] = Held(value: tombstone, ends: now + Limits.tombstone)
    case .tombstone(let call): return .tombstone(tombstone(of: call, at: now))
    case .entry(let call, let incarnation):
      let found =
        entries[incarnation]?.numberOf[call] == nil ? nil : entries[incarnation]?.inOrder.first { $0.entry.line.call == call }
      return .entries(found.map { [$0.entry] } ?? [], next: 0)
    default: preconditionFailure("a request that is of no call")
    }
    return .done
  }

  private mutating func renew(_ lease: NodeLease, _ length: Duration, _ now: Instant) -> SharedStoreReply {
    let node = lease.incarnation.node
    let hadLease = leases[node].map { $0.ends > now && $0.value.incarnation == lease.incarnation } ?? false
    let isTaken = leases[node].map { $0.ends > now && $0.value.incarnation != lease.incarnation } ?? false
    if !isTaken { leases[node] = Held(value: lease, ends: now + length) }
    return .nodes(leases.values.filter { $0.ends > now }.map(\.value), hadLease: hadLease, clock: now.nanoseconds / 1_000_000)
  }

  private mutating func enter(_ location: Whereabouts, _ since: Int64?, _ now: Instant) -> SharedStoreReply {
    let (key, user) = (location.device, location.device.user)
    let before = whereabouts[user]?[key.device]
    let known = before == nil ? 0 : entered[key] ?? 0
    if let since, known > since, before?.session != location.session {
      return .entered(before: before, calls: locations(of: user), device: devices[user]?[key.device], since: since, isOlder: true)
    }
    let own = before?.session == location.session && known > 0 ? known : since ?? (now.nanoseconds / 1_000_000 + 1)
    whereabouts[user, default: [:]][key.device] = location
    entered[key] = own
    while whereabouts[user]?.count ?? 0 > Limits.whereaboutsPerUser,
      let other = whereabouts[user]?.keys.filter({ $0 != key.device }).min()
    {
      whereabouts[user]?[other] = nil
    }
    return .entered(before: before, calls: locations(of: user), device: devices[user]?[key.device], since: own)
  }

  private func locations(of user: String) -> [CallLocation] {
    guard let locations = calls[user] else { return [] }
    return locations.values.sorted { $0.rank < $1.rank }
  }

  private mutating func locate(_ user: String, _ location: CallLocation?) -> SharedStoreReply {
    if var location {
      let before = calls[user]?[location.call]
      rank += 1
      if before == nil, calls[user]?.count ?? 0 >= Limits.callsPerUser, let oldest = locations(of: user).first?.call {
        calls[user]?[oldest] = nil
      }
      location.rank = before?.incarnation == location.incarnation ? before!.rank : rank
      calls[user, default: [:]][location.call] = location
    }
    var located = LocatedUser(user)
    located.whereabouts = (whereabouts[user] ?? [:]).values.sorted { $0.device.device < $1.device.device }
    located.devices = (devices[user] ?? [:]).values.sorted { $0.key.device < $1.key.device }
    located.calls = locations(of: user)
    return .located(located)
  }

  private mutating func register(_ user: String, _ change: DeviceChange) {
    switch change {
    case .stored(let device) where device.key.user == user:
      let before = devices[user]?[device.key.device]
      if let before, before.newest > device.newest { return }
      devices[user, default: [:]][device.key.device] = device
    case .removed(let key) where key.user == user:
      if devices[user]?[key.device]?.revokedAt == nil { devices[user]?[key.device] = nil }
    default: break
    }
  }

  private static func isOlder(_ a: (key: String, value: Device), _ b: (key: String, value: Device)) -> Bool {
    (a.value.newest, a.key) < (b.value.newest, b.key)
  }

  private mutating func put(_ entry: CallEntry, _ incarnation: Incarnation) {
    let call = entry.line.call
    if let known = entries[incarnation]?.numberOf[call] {
      guard let location = entries[incarnation]?.inOrder.firstIndex(where: { $0.number == known }) else { return }
      entries[incarnation]?.inOrder[location].entry = entry
      return
    }
    number += 1
    entries[incarnation, default: Entries()].numberOf[call] = number
    entries[incarnation]?.inOrder.append((number, entry))
  }

  private func read(_ incarnation: Incarnation, _ cursor: UInt64) -> SharedStoreReply {
    let rest = entries[incarnation]?.inOrder.drop { $0.number <= cursor } ?? []
    let page = rest.prefix(Limits.entriesPerRead)
    return .entries(page.map(\.entry), next: page.count < rest.count ? page.last?.number ?? 0 : 0)
  }

  private mutating func claim(_ claim: Claim, _ by: Incarnation, _ now: Instant) -> SharedStoreReply {
    if let held = reaping[claim], held.ends > now { return .granted(held.value == by, holder: held.value) }
    reaping[claim] = Held(value: by, ends: now + Limits.reapClaim)
    return .granted(true, holder: by)
  }
}

extension Device {
  fileprivate var newest: Int64 { max(lastSeen, revokedAt ?? 0) }
}
