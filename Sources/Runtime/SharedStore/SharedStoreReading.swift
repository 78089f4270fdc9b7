import AppSessions
import CallModel
import Cluster
import Devices
import RESP
import TrunklineBytes

// Replies of Redis → `SharedStoreReply`. Values that cannot be read are left out and counted.

extension SharedStoreCommand {
  /// Nil: the value is not a reply to this request.
  func read(_ value: RESPValue, _ leases: inout LeaseReading) -> SharedStoreReply? {
    switch reading {
    case .done: return .done
    case .isOne: return value.number.map { .granted($0 == 1) }
    case .claim(let shows):
      guard let parts = value.elements, parts.count == 2, let granted = parts[0].number else { return nil }
      let text = claim(parts[1])
      let holder = text?.split(separator: "\n", maxSplits: 1).first.flatMap { Incarnation(String($0)) }
      return .granted(granted == 1, holder: granted == 1 && shows == .ifRefused ? nil : holder)
    case .nodes: return value.elements.flatMap { Self.nodes($0, &leases) }
    case .entered(let device): return value.elements.flatMap { entered($0, device) }
    case .located(let user): return value.elements.flatMap { located($0, user) }
    case .entries(let incarnation): return value.elements.flatMap { entries($0, incarnation) }
    case .entry(let call, let incarnation):
      var dropped = 0
      let entry = Self.one(value, &dropped) { self.entry(call, $0, of: incarnation) }
      return .entries(entry.map { [$0] } ?? [], next: 0, dropped: dropped)
    case .tombstone(let call):
      var dropped = 0
      let found = Self.one(value, &dropped) { bytes in
        isGenuine(bytes, at: { $0.over(call) }) ? ValueCoding.decode(StoredEnd.self, bytes)?.value : nil
      }
      return .tombstone(found, dropped: dropped)
    case .record: return .record(value.content)
    case .added: return value.elements.flatMap(Self.added)
    case .count: return value.number.map { .count(Int($0)) }
    case .history(let user):
      return Self.values(value) { _, bytes in isGenuine(bytes, at: { $0.ofUser(user, "history") }, counted: "n") ? bytes : nil }
    case .directoryHead(let scope):
      guard let parts = value.elements, parts.count == 3, let now = version(parts[1]), let clock = version(parts[2]) else {
        return nil
      }
      let head = parts[0].content.flatMap { $0.isEmpty ? nil : opened(lines: $0, at: { $0.directoryHeads }, field: scope) }
      return .directoryHead(head, version: now, clock: clock)
    case .directoryParts(let names):
      guard let values = value.elements, values.count == names.count else { return nil }
      return .directoryParts(
        zip(names, values).compactMap { name, value in
          guard let bytes = value.content, bytes.count <= Cluster.Limits.valueBytes else { return nil }
          return opened(lines: bytes, at: { $0.directoryPart(name) }).map { DirectoryPiece(name, $0) }
        })
    case .directories: return value.elements.flatMap(Self.directories)
    case .grants: return value.elements.flatMap(grants)
    case .grantsPut:
      guard let parts = value.elements, parts.count == 2, let count = parts[0].number else { return nil }
      var dropped = 0
      return .grantsPut(Int(count), others: grantRows(parts[1], &dropped), dropped: dropped)
    case .committed:
      guard let parts = value.elements, parts.count == 3, let outcome = parts[0].number.flatMap(CommitOutcome.init),
        let now = version(parts[1]), let last = version(parts[2])
      else { return nil }
      return .committed(outcome, version: now, last: last)
    }
  }

  /// The content without its signature; nil: it does not have our signature.
  private func opened(lines: [UInt8], at key: (SharedStoreKeys) -> String, field: String = "") -> [UInt8]? {
    guard let keys else { return lines }
    return keys.opened(lines: lines, at: key(keys), field: field)
  }

  /// Whether a value has our signature, for the key in which it is stored.
  private func isGenuine(
    _ value: [UInt8], at key: (SharedStoreKeys) -> String, field: String = "", counted: Character? = nil
  ) -> Bool {
    keys.map { $0.isGenuine(value, at: key($0), field: field, counted: counted) } ?? true
  }

  /// The owner of a claim; nil: it does not have our signature.
  private func claim(_ value: RESPValue) -> String? {
    guard let keys, case .script(_, let names, _) = form, let name = names.first else { return value.text }
    return value.content.flatMap { keys.opened(lines: $0, at: name) }.map { String(decoding: $0, as: UTF8.self) }
  }

  private static func values(_ value: RESPValue, _ read: (Int, [UInt8]) -> [UInt8]?) -> SharedStoreReply? {
    guard let parts = value.elements, parts.count == 2, let values = parts[0].elements, let number = version(parts[1]) else {
      return nil
    }
    let all = values.enumerated().compactMap { index, value in
      value.content.flatMap { $0.count <= Cluster.Limits.valueBytes ? read(index, $0) : nil }
    }
    return .values(all, number)
  }

  private static func added(_ parts: [RESPValue]) -> SharedStoreReply? {
    guard parts.count == 2, let text = parts[0].text, let values = parts[1].elements else { return nil }
    let locations = values.prefix(Cluster.Limits.whereaboutsPerUser).compactMap { value in
      value.content.flatMap { ValueCoding.decode(StoredWhereabouts.self, $0) }.flatMap { Incarnation($0.incarnation) }
    }
    guard !text.isEmpty else { return .added(nil, at: []) }
    return version(parts[0]).map { .added($0, at: Set(locations)) }
  }

  private static func directories(_ parts: [RESPValue]) -> SharedStoreReply? {
    guard parts.count == 4, let epoch = parts[0].text, let last = version(parts[1]), let rows = parts[2].elements,
      let more = parts[3].number
    else { return nil }
    var out = DirectoryVersions()
    out.epoch = String(epoch.prefix(Limits.epochBytes))
    out.last = last
    out.hasMore = more == 1
    for index in stride(from: 0, to: rows.count - 1, by: 2) {
      guard let scope = rows[index].text, let version = version(rows[index + 1]) else { continue }
      out.versions.append((scope, version))
    }
    return .directories(out)
  }

  private func grants(_ parts: [RESPValue]) -> SharedStoreReply? {
    guard parts.count == 5, let epoch = parts[0].text, let last = version(parts[1]), let position = version(parts[2]),
      let more = parts[4].number
    else { return nil }
    var out = GrantPage()
    out.position = position
    out.epoch = String(epoch.prefix(Limits.epochBytes))
    out.last = last
    out.hasMore = more == 1
    out.rows = grantRows(parts[3], &out.dropped)
    return .grants(out)
  }

  private func grantRows(_ value: RESPValue, _ dropped: inout Int) -> [SharedGrant] {
    Self.fields(value, limit: Cluster.Limits.grantsPerRead, dropped: &dropped) { user, bytes in
      guard let lines = keys?.grantLines(bytes, of: user) else { return nil }
      let held = lines.held.split(separator: 32).map { String(decoding: $0, as: UTF8.self) }
      return ValueCoding.decode(StoredGrant.self, lines.token)?.value(user)?.with(numbers: Set(held))
    }
  }

  private static func nodes(_ parts: [RESPValue], _ leases: inout LeaseReading) -> SharedStoreReply? {
    guard parts.count >= 3, let had = parts[0].number, let values = parts[1].elements,
      let clock = parts[2].text.flatMap({ Int64($0) })
    else { return nil }
    let (read, dropped) = leases.read(values)
    return .nodes(read, hadLease: had == 1, clock: clock, dropped: dropped)
  }

  private func entered(_ parts: [RESPValue], _ key: DeviceKey) -> SharedStoreReply? {
    guard parts.count == 5, let since = parts[3].text.flatMap({ Int64($0) }), let older = parts[4].number else { return nil }
    var dropped = 0
    let before: Whereabouts? = Self.one(parts[0], &dropped) { whereabouts(key, $0) }
    let device: Device? = Self.one(parts[2], &dropped) { self.device(key, $0) }
    let calls = locations(parts[1], key.user, &dropped)
    return .entered(before: before, calls: calls, device: device, since: since, isOlder: older == 1, dropped: dropped)
  }

  private func whereabouts(_ key: DeviceKey, _ value: [UInt8]) -> Whereabouts? {
    guard isGenuine(value, at: { $0.ofUser(key.user, "where") }, field: key.device, counted: "t") else { return nil }
    return ValueCoding.decode(StoredWhereabouts.self, value)?.value(key)
  }

  private func device(_ key: DeviceKey, _ value: [UInt8]) -> Device? {
    guard isGenuine(value, at: { $0.ofUser(key.user, "devices") }, field: key.device) else { return nil }
    return ValueCoding.decode(StoredDevice.self, value)?.value(key)
  }

  private func located(_ parts: [RESPValue], _ user: String) -> SharedStoreReply? {
    guard parts.count == 3 else { return nil }
    var out = LocatedUser(user)
    out.whereabouts = Self.fields(parts[0], limit: Cluster.Limits.whereaboutsPerUser, dropped: &out.dropped) { name, bytes in
      whereabouts(DeviceKey(user: user, device: name), bytes)
    }.sorted { $0.device.device < $1.device.device }
    out.devices = Self.fields(parts[1], limit: Cluster.Limits.devicesPerUser, dropped: &out.dropped) { name, bytes in
      device(DeviceKey(user: user, device: name), bytes)
    }.sorted { $0.key.device < $1.key.device }
    out.calls = locations(parts[2], user, &out.dropped)
    return .located(out)
  }

  private func locations(_ value: RESPValue, _ user: String, _ dropped: inout Int) -> [CallLocation] {
    Self.fields(value, limit: Cluster.Limits.callsPerUser, dropped: &dropped) { name, bytes in
      guard isGenuine(bytes, at: { $0.ofUser(user, "calls") }, field: name, counted: "n") else { return nil }
      return Identifier(name).flatMap { call in ValueCoding.decode(StoredCallLocation.self, bytes)?.value(call) }
    }.sorted { $0.rank < $1.rank }
  }

  private func entry(_ call: CallID, _ value: [UInt8], of incarnation: Incarnation) -> CallEntry? {
    guard isGenuine(value, at: { $0.calls(of: incarnation) }, field: call.description) else { return nil }
    return ValueCoding.decode(StoredEntry.self, value)?.value(call)
  }

  private func entries(_ parts: [RESPValue], _ incarnation: Incarnation) -> SharedStoreReply? {
    guard parts.count == 2, let next = parts[0].text.flatMap({ UInt64($0) }) else { return nil }
    var dropped = 0
    let entries = Self.fields(parts[1], limit: .max, dropped: &dropped) { name, bytes -> CallEntry? in
      Identifier(name).flatMap { call in entry(call, bytes, of: incarnation) }
    }
    return .entries(entries, next: next, dropped: dropped)
  }

  private static func one<Value>(_ value: RESPValue, _ dropped: inout Int, _ read: ([UInt8]) -> Value?) -> Value? {
    if value.isNull { return nil }
    let out = value.content.flatMap(read)
    if out == nil { dropped += 1 }
    return out
  }

  /// The fields of a hash, names and values alternating.
  private static func fields<Value>(_ value: RESPValue, limit: Int, dropped: inout Int, _ read: (String, [UInt8]) -> Value?)
    -> [Value]
  {
    let parts = value.elements ?? []
    var out: [Value] = []
    for index in stride(from: 0, to: parts.count - 1, by: 2) {
      guard out.count < limit, let name = parts[index].text, let bytes = parts[index + 1].content, let read = read(name, bytes)
      else {
        dropped += 1
        continue
      }
      out.append(read)
    }
    return out
  }
}

/// A version or a row's number, bounded so that later arithmetic does not overflow.
private func version(_ value: RESPValue) -> Int64? {
  value.text.flatMap { Int64($0) }.flatMap { (0...1 << 53).contains($0) ? $0 : nil }
}
