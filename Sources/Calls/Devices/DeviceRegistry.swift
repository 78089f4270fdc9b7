public import AppSessions
public import PushPolicy
public import TrunklineAppProtocol

/// All devices, how to wake them, and which must not be woken. No clock, no disk: every change that a store must hold is returned
/// as a `DeviceChange`. Owned by one thread; a look-up costs a dictionary access.
///
/// | event | bindings | the device |
/// |---|---|---|
/// | `put` with push | that of its (kind, topic) replaced; the same token of any other device removed | made, seen |
/// | `put` with prefs | – | made, seen |
/// | `seen` (it connected) | – | its description and time, if known |
/// | `delete` (logout, `device.del`) | all removed | removed, unless revoked |
/// | `revoke` | all removed | stays, marked: refuses `put` until `allow` |
/// | `unregistered(before)` (410) | removed if registered earlier | removed with its last binding |
/// | `tokenMismatch` | unusable until `put` again | – |
///
/// A device is kept while it has a binding, a preference or a revocation.
///
///     let changes = try registry.put(put, by: key, info: info, at: unixMilliseconds)
///     for destination in registry.targets(of: "alice") { push(destination.key, destination.target) }
public struct DeviceRegistry: Sendable {
  private var devices: [DeviceKey: Device] = [:]
  /// In the order of their first registration.
  private var ofUser: [String: [DeviceKey]] = [:]
  /// Users with a device, in order: all of them can be scanned in steps.
  public private(set) var users = OrderedKeys<String>()
  private var owners: [Token: DeviceKey] = [:]
  /// Users that the cluster's store reported, by the time of their last change or use.
  private var learnt = RecencyQueue<String>()
  private let most: Int
  /// When the last search of a full table for stale devices began, milliseconds since 1970.
  private var staleLookedFor: Int64 = .min / 2
  /// The last user that this search has seen; nil: it is over.
  private var staleLookedAfter: String?
  /// The defaults of an APNs registration without topic or env, and the services that can be pushed to.
  public var defaults = Defaults()

  public struct Defaults: Sendable {
    public var topic: String?
    public var environment: PushTarget.Environment
    /// Registrations that none of these can push to are refused. Nil: none is.
    public var providers: PushProviders?
    public init(topic: String? = nil, environment: PushTarget.Environment = .production, providers: PushProviders? = nil) {
      (self.topic, self.environment, self.providers) = (topic, environment, providers)
    }
  }

  /// The key by which a service knows an app. The topic does not count: a token works for one app only.
  private struct Token: Hashable {
    var service: PushService
    var text: String
    init(_ target: PushTarget) { (service, text) = (target.service, target.token.exposed) }
  }

  /// - Parameter stored: the store's content. Of two devices with the same token the later registration wins.
  public init(_ stored: [Device] = []) { self.init(stored, most: Limits.devices) }

  init(_ stored: [Device], most: Int) {
    self.most = most
    for device in stored.sorted(by: { $0.newestRegistration < $1.newestRegistration }) {
      var device = device
      device.bindings = Array(device.bindings.sorted { $0.registeredAt < $1.registeredAt }.suffix(Limits.bindingsPerDevice))
      for binding in device.bindings { _ = removeToken(binding.target, for: device.key) }
      set(device)
    }
  }

  // MARK: look-ups

  public var count: Int { devices.count }
  /// Every device, by user and then in the order of registration.
  public var all: [Device] {
    var (out, walk) = ([Device](), users.walk(after: nil))
    while let user = walk.next() { out += devices(of: user) }
    return out
  }
  public func devices(of user: String) -> [Device] { (ofUser[user] ?? []).compactMap { devices[$0] } }
  public subscript(_ key: DeviceKey) -> Device? { devices[key] }
  public func isRevoked(_ key: DeviceKey) -> Bool { devices[key]?.revokedAt != nil }
  /// By the user's preferences on the device; true for an unknown device.
  public func wantsCalls(_ key: DeviceKey) -> Bool { devices[key]?.wantsCalls ?? true }

  /// The devices that a call of this user may wake: those that ring, are not revoked and have a registration that works.
  /// - Parameter account: only devices logged in to it; nil: all.
  public func targets(of user: String, account: String? = nil) -> [PushDestination] {
    devices(of: user).compactMap { device in
      guard device.wantsCalls, account.map({ device.accounts.contains($0) }) ?? true, let target = device.target else {
        return nil
      }
      return PushDestination(key: device.key, target: target, accounts: device.accounts)
    }
  }

  /// Accepts the cluster's entry of a device that has connected here, unless this node's last change is as late. Clocks of nodes
  /// differ: the next change here must be later than that one, and `put` and `revoke` ensure it once they know that entry.
  public mutating func learn(_ stored: Device) {
    if let known = devices[stored.key] {
      guard known.lastChange < stored.lastChange else { return }
    } else {
      guard devices.count < most else { return }
    }
    restore(stored)
  }

  private mutating func restore(_ stored: Device) {
    var device = stored
    device.bindings = Array(device.bindings.sorted { $0.registeredAt < $1.registeredAt }.suffix(Limits.bindingsPerDevice))
    for binding in device.bindings { _ = removeToken(binding.target, for: device.key) }
    set(device)
  }

  /// Replaces what is known here of a user's devices by the cluster's entries, except for a later change of the last minute: it
  /// may not have reached the store. A change by another node whose clock is ahead does not count as such. A full table drops the
  /// least recently used user.
  public mutating func learn(_ stored: [Device], of user: String, at now: Int64) {
    let stored = stored.filter { $0.key.user == user }.prefix(Limits.devicesPerUser + Limits.revokedPerUser)
    let mine = devices(of: user).filter { abs(now - $0.lastChange) < Limits.storeLagMilliseconds }
    for device in devices(of: user) where !mine.contains(device) { _ = remove(device.key) }
    for device in stored {
      if let known = devices[device.key], known.lastChange >= device.lastChange { continue }
      if devices.count >= most, devices[device.key] == nil { forgetOther(than: user) }
      restore(device)
    }
    if ofUser[user] == nil { learnt.remove(user) } else { learnt.touch(user) }
  }

  private mutating func forgetOther(than user: String) {
    var other = learnt.popOldest()
    if other == user { other = learnt.popOldest() }
    guard let other = other ?? ofUser.keys.first(where: { $0 != user }) else { return }
    for key in ofUser[other] ?? [] { _ = remove(key) }
  }

  // MARK: requests of apps

  /// `device.put`. All of it is applied or nothing.
  public mutating func put(
    _ put: DevicePut, by key: DeviceKey, info: DeviceInfo? = nil, at now: Int64
  ) throws(DeviceError) -> [DeviceChange] {
    if isRevoked(key) { throw .revoked }
    let target = try put.push.map { push throws(DeviceError) in try self.target(push) }
    var changes: [DeviceChange] = []
    var device: Device
    if let known = devices[key] {
      device = known
    } else {
      changes += try makeRoom(for: key.user, at: now)
      device = Device(key: key, at: now)
    }
    if let target {
      device.bindings.removeAll { binding in
        let isSameTopic = binding.target.service == target.service && binding.target.topic == target.topic
        return isSameTopic || Token(binding.target) == Token(target)
      }
      guard device.bindings.count < Limits.bindingsPerDevice else { throw .tooManyBindings(limit: Limits.bindingsPerDevice) }
      device.bindings.append(PushBinding(target, registeredAt: now))
    }
    device.rings = put.prefs?.ring ?? device.rings
    device.doNotDisturb = put.prefs?.dnd ?? device.doNotDisturb
    device.lastSeen = max(device.lastSeen + 1, now)
    if let info { device.update(info) }
    if let target { changes += removeToken(target, for: key) }
    return changes + keep(device)
  }

  /// The app logged out, or the system revoked its token: no push may reach it.
  public mutating func delete(_ key: DeviceKey) -> [DeviceChange] {
    guard var device = devices[key] else { return [] }
    guard device.revokedAt != nil else { return remove(key) }
    device.bindings = []
    return keep(device)
  }

  /// The device connected. Changes only a known device.
  public mutating func seen(_ key: DeviceKey, info: DeviceInfo, at now: Int64) -> [DeviceChange] {
    guard var device = devices[key] else { return [] }
    if learnt.contains(key.user) { learnt.touch(key.user) }
    let before = device
    device.update(info)
    device.lastSeen = max(device.lastSeen, now)
    devices[key] = device
    var stored = device
    // Ten thousand devices that reconnect at once must not cost ten thousand writes.
    if device.lastSeen - before.lastSeen < Limits.lastSeenMilliseconds { stored.lastSeen = before.lastSeen }
    return stored == before ? [] : [.stored(device)]
  }

  // MARK: requests of operators

  /// Revokes one device of a user, or all known ones: no push from now on.
  /// - Throws: `.unknown` if no device fits.
  public mutating func revoke(user: String, device: String? = nil, at now: Int64) throws(DeviceError) -> [DeviceChange] {
    let keys = device.map { [DeviceKey(user: user, device: $0)] } ?? ofUser[user] ?? []
    let known = keys.compactMap { devices[$0] }
    guard !known.isEmpty else { throw .unknown }
    var changes: [DeviceChange] = []
    for var device in known {
      device.bindings = []
      device.revokedAt = device.revokedAt ?? max(now, device.lastSeen)
      changes += keep(device)
    }
    let revoked = devices(of: user).filter { $0.revokedAt != nil }.sorted { ($0.revokedAt ?? 0) < ($1.revokedAt ?? 0) }
    for old in revoked.dropLast(Limits.revokedPerUser) { changes += remove(old.key) }
    return changes
  }

  /// A device that never registered can be revoked, too: its login token may still be valid.
  public mutating func revoke(connected key: DeviceKey, at now: Int64) -> [DeviceChange] {
    if devices[key] == nil { set(Device(key: key, at: now)) }
    return (try? revoke(user: key.user, device: key.device, at: now)) ?? []
  }

  /// Cancels a revocation; the app registers again when it connects.
  public mutating func allow(_ key: DeviceKey) throws(DeviceError) -> [DeviceChange] {
    guard var device = devices[key], device.revokedAt != nil else { throw .unknown }
    // A later change than the revocation, wherever both are stored.
    device.lastSeen = max(device.lastSeen, (device.revokedAt ?? 0) + 1)
    device.revokedAt = nil
    return keep(device)
  }

  // MARK: reports of push services

  /// Handles the end of a push, as far as it concerns the registration.
  public mutating func finished(_ report: PushReport) -> [DeviceChange] {
    switch report.outcome {
    case .unregistered(let before): unregistered(report.target, before: before)
    case .tokenMismatch: tokenMismatch(report.target)
    case .accepted, .failed: []
    }
  }

  /// - Parameter before: milliseconds since 1970; a registration that is not older stays. Nil: whatever its age.
  public mutating func unregistered(_ target: PushTarget, before: Int64?) -> [DeviceChange] {
    guard let key = owners[Token(target)], var device = devices[key] else { return [] }
    guard let index = device.bindings.firstIndex(where: { Token($0.target) == Token(target) }) else { return [] }
    if let before, device.bindings[index].registeredAt >= before { return [] }
    device.bindings.remove(at: index)
    return keep(device)
  }

  /// Only the registration exactly as it was when the push was sent: one that was renewed since may be right.
  public mutating func tokenMismatch(_ target: PushTarget) -> [DeviceChange] {
    guard let key = owners[Token(target)], var device = devices[key] else { return [] }
    guard let index = device.bindings.firstIndex(where: { $0.target == target && $0.isUsable }) else { return [] }
    device.bindings[index].isUsable = false
    return keep(device)
  }
}

// MARK: the tables

extension DeviceRegistry {
  private func target(_ push: DevicePut.Push) throws(DeviceError) -> PushTarget {
    guard let service = PushService(kind: push.kind.rawValue) else { throw .kind(push.kind.rawValue) }
    guard let environment = push.env.map({ PushTarget.Environment(rawValue: $0) }) ?? defaults.environment else {
      throw .environment(push.env ?? "")
    }
    do {
      let topic = push.topic ?? (service.provider.hasEnvironments ? defaults.topic : nil) ?? ""
      let sealKey = push.sealKey.map { CallerSealing.key($0) }
      let target = try PushTarget(service, token: push.token, environment: environment, topic: topic, sealKey: sealKey).checked()
      try defaults.providers?.check(target)
      return target
    } catch {
      throw .token(service, error)
    }
  }

  /// Makes room for another device of this user: at the limit one without a registration, or long unseen, is removed.
  private mutating func makeRoom(for user: String, at now: Int64) throws(DeviceError) -> [DeviceChange] {
    let known = devices(of: user).filter { $0.revokedAt == nil }
    if known.count >= Limits.devicesPerUser {
      let idle = known.filter { $0.target == nil || now - $0.lastSeen > Limits.staleMilliseconds }
      guard let leaving = idle.min(by: { $0.lastSeen < $1.lastSeen }) else { throw .tooManyDevices(limit: Limits.devicesPerUser) }
      return remove(leaving.key)
    }
    return devices.count >= most ? try forgetStale(at: now) : []
  }

  /// The table is full: devices not seen for `Limits.staleMilliseconds` are removed. A registration searches some users only, the
  /// next one goes on behind them; all are searched once a minute at most.
  private mutating func forgetStale(at now: Int64) throws(DeviceError) -> [DeviceChange] {
    if staleLookedAfter == nil {
      guard abs(now - staleLookedFor) >= Limits.staleLookMilliseconds else { throw .full }
      staleLookedFor = now
    }
    var walk = users.walk(after: staleLookedAfter)
    var stale: [DeviceKey] = []
    for _ in 0..<Limits.usersPerStaleLook where stale.isEmpty {
      staleLookedAfter = walk.next()
      guard let user = staleLookedAfter else { break }
      stale = devices(of: user).filter { now - $0.lastSeen > Limits.staleMilliseconds && $0.revokedAt == nil }.map(\.key)
    }
    guard !stale.isEmpty else { throw .full }
    return stale.flatMap { remove($0) }
  }

  /// A token belongs to the device that registered it last: its former owner logged out, or lost its app to another user.
  private mutating func removeToken(_ target: PushTarget, for key: DeviceKey) -> [DeviceChange] {
    guard let owner = owners[Token(target)], owner != key, var device = devices[owner] else { return [] }
    device.bindings.removeAll { Token($0.target) == Token(target) }
    return keep(device)
  }

  private mutating func keep(_ device: Device) -> [DeviceChange] {
    guard device.isWorthKeeping else { return remove(device.key) }
    set(device)
    return [.stored(device)]
  }

  private mutating func set(_ device: Device) {
    if let old = devices[device.key] {
      for binding in old.bindings { owners[Token(binding.target)] = nil }
    } else {
      if ofUser[device.key.user] == nil { users.insert(device.key.user) }
      ofUser[device.key.user, default: []].append(device.key)
    }
    for binding in device.bindings { owners[Token(binding.target)] = device.key }
    devices[device.key] = device
  }

  private mutating func remove(_ key: DeviceKey) -> [DeviceChange] {
    guard let device = devices.removeValue(forKey: key) else { return [] }
    for binding in device.bindings { owners[Token(binding.target)] = nil }
    ofUser[key.user]?.removeAll { $0 == key }
    if ofUser[key.user]?.isEmpty ?? false {
      ofUser[key.user] = nil
      users.remove(key.user)
      learnt.remove(key.user)
    }
    return [.removed(key)]
  }
}

extension Device {
  fileprivate var newestRegistration: Int64 { bindings.map(\.registeredAt).max() ?? .min }
  /// The time of the last change by the device, its user or an operator.
  fileprivate var lastChange: Int64 { max(lastSeen, revokedAt ?? .min, newestRegistration) }
}
