import AppSessions
import CallModel
import Cluster
import Devices
import Foundation
import JSONWebToken
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

// Values as JSON with `v`, the format. Names are short: of an idle device nothing else is in the shared store. Unknown fields are
// ignored; a value that is not JSON, is longer than `Cluster.Limits.valueBytes` or has a format that we do not read is nil, and
// the reader counts it.

/// A value as it is in the shared store.
protocol StoredValue: Codable { var v: Int { get } }

enum ValueCoding {
  static func encode(_ value: some StoredValue) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    // encoding these values cannot fail
    return (try? encoder.encode(value)).map { [UInt8]($0) } ?? []
  }

  static func decode<Value: StoredValue>(
    _ type: Value.Type, _ bytes: [UInt8], limit: Int = Cluster.Limits.valueBytes,
    formats: ClosedRange<Int> = Cluster.Limits.oldestFormat...Cluster.Limits.format
  ) -> Value? {
    guard bytes.count <= limit, nesting(bytes) <= depth, let value = try? JSONDecoder().decode(type, from: Data(bytes)),
      formats.contains(value.v)
    else { return nil }
    return value
  }

  /// The nesting limit: Foundation's parser is recursive.
  private static let depth = 16

  /// The most brackets that are open at once, including those in strings: no value of ours comes near the limit.
  private static func nesting(_ bytes: [UInt8]) -> Int {
    var (open, most, isText, isEscaped) = (0, 0, false, false)
    for byte in bytes {
      if isText {
        if isEscaped { isEscaped = false } else if byte == 92 { isEscaped = true } else if byte == 34 { isText = false }
        continue
      }
      switch byte {
      case 34: isText = true
      case 91, 123:
        open += 1
        most = max(most, open)
      case 93, 125: open -= 1
      default: break
      }
    }
    return most
  }
}

/// Bounds times since 1970, in milliseconds, and counts, so that later arithmetic does not overflow.
private func isPlausible(_ numbers: Int64?...) -> Bool {
  numbers.allSatisfy { $0.map { (0...Int64(1) << 53).contains($0) } ?? true }
}

/// Whether the text has no control characters: it is shown on terminals.
private func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 32 && $0 != 127 } }

/// Whether the text can be part of a URI and cannot end it: it is written into a Contact, and sent to apps.
private func isWord(_ text: String) -> Bool {
  text.utf8.count <= 512 && text.utf8.allSatisfy { (33...126).contains($0) && !"<>\"".utf8.contains($0) }
}

struct StoredLease: StoredValue {
  var v = Cluster.Limits.format
  /// Read by the scripts too.
  var i: String
  var url: String
  var sip: String
  var admin: String?
  var drains: Bool?
  var refuses: Bool?
  var calls: Int?
  var sessions: Int?
  var version: String?
  /// The newest and the oldest format that the node reads; `v` is what it writes.
  var format: Int?
  var oldest: Int?
  var configuration: String?
  /// Trunks in trouble.
  var down: [String: String]?
  /// `NodeLease.staleGrants`, hexadecimal.
  var stale: String?
  /// Seconds since 1970: the lease is invalid afterwards, even if an old value is restored.
  var e: Int64?

  init(_ lease: NodeLease, until end: Int64? = nil) {
    e = end
    (i, url, sip, version) = (lease.incarnation.description, lease.url, lease.sip, lease.version)
    admin = lease.admin
    down = lease.troubles.isEmpty ? nil : lease.troubles
    stale = lease.staleGrants == 0 ? nil : String(lease.staleGrants, radix: 16)
    (drains, refuses) = (lease.isDraining ? true : nil, lease.refuses ? true : nil)
    (calls, sessions, configuration) = (lease.calls, lease.sessions, lease.configuration)
    (v, format, oldest) = (lease.format, lease.reads.upperBound, lease.reads.lowerBound)
  }

  var value: NodeLease? {
    let (first, last) = (oldest ?? v, format ?? v)
    guard let incarnation = Incarnation(i), isPlausible(incarnation.started, calls.map(Int64.init), sessions.map(Int64.init)),
      isWord(url), isWord(sip), isWord(admin ?? ""), isPlain(version ?? ""), isPlain(configuration ?? ""), first <= last
    else { return nil }
    var lease = NodeLease(
      incarnation, url: url, sip: sip, version: version ?? "", format: v, reads: first...last,
      configuration: configuration ?? "")
    (lease.isDraining, lease.refuses) = (drains ?? false, refuses ?? false)
    (lease.calls, lease.sessions) = (calls ?? 0, sessions ?? 0)
    (lease.admin, lease.troubles) = (admin, down ?? [:])
    lease.staleGrants = stale.flatMap { UInt64($0, radix: 16) } ?? 0
    return lease
  }
}

/// The script prepends `"t":since,`.
struct StoredWhereabouts: StoredValue {
  var v = Cluster.Limits.format
  var i: String
  /// Session; read by the scripts too.
  var s: String
  var bg: Bool?
  var caps: [String]?
  var a: [String]?

  init(_ location: Whereabouts) {
    (i, s, bg) = (location.incarnation.description, location.session.text, location.state == .bg ? true : nil)
    caps = location.caps.isEmpty ? nil : location.caps.sorted()
    a = location.accounts == ["default"] ? nil : location.accounts
  }

  func value(_ device: DeviceKey) -> Whereabouts? {
    guard let incarnation = Incarnation(i) else { return nil }
    return Whereabouts(
      device, at: incarnation, session: SessionID(s), state: bg == true ? .bg : .fg, caps: Set(caps ?? []),
      accounts: a ?? ["default"])
  }
}

/// The script prepends `"n":rank,`.
struct StoredCallLocation: StoredValue {
  var v = Cluster.Limits.format
  var n: Int64?
  var i: String
  var d: CallDirection

  init(_ location: CallLocation) { (i, d) = (location.incarnation.description, location.direction) }

  func value(_ call: CallID) -> CallLocation? {
    guard let incarnation = Incarnation(i), let n else { return nil }
    return CallLocation(call, at: incarnation, d, rank: n)
  }
}

/// The field's name is the call's id, and the entry's own user is not written twice: a live call must cost less than 0.9 KB.
struct StoredEntry: StoredValue {
  var v = Cluster.Limits.format
  /// The trunk side's Call-ID, trunk, from, to, start, connect, legs.
  var s: String?
  var d: CallDirection
  var t: String
  var f: String
  var o: String
  var b: Int64
  var k: Int64?
  var l: [OrphanedLeg]?
  var u: [String]
  /// The user of the line, if it is not the first of `u`; empty: it has none.
  var w: String?

  init(_ entry: CallEntry) {
    let line = entry.line
    (s, d, t, f, o) = (line.sipCallId, line.direction, line.trunk, line.from, line.to)
    (b, k, l, u) = (line.start, line.connect, line.legs, entry.users)
    w = line.user == entry.users.first ? nil : line.user ?? ""
  }

  func value(_ call: CallID) -> CallEntry? {
    guard isPlausible(b, k), (l ?? []).allSatisfy(\.isWellFormed) else { return nil }
    let user = w.map { $0.isEmpty ? nil : $0 } ?? u.first
    var line = JournalEntry(call: call, sipCallId: s, direction: d, trunk: t, from: f, to: o, user: user, start: b, connect: k)
    line.legs = l
    return CallEntry(line, users: u)
  }
}

/// A device and its push bindings. Here, and in the devices' own file, tokens are in clear text: the shared store is as
/// confidential as that file.
struct StoredDevice: StoredValue {
  struct Binding: Codable {
    var s: String
    var t: String
    var e: PushTarget.Environment?
    var o: String?
    var k: Data?
    var at: Int64
    var off: Bool?

    init(_ binding: PushBinding) {
      let target = binding.target
      (s, t, at) = (target.service.rawValue, target.token.exposed, binding.registeredAt)
      (e, o) = (target.environment == .production ? nil : target.environment, target.topic.isEmpty ? nil : target.topic)
      (k, off) = (target.sealKey.map { Data($0) }, binding.isUsable ? nil : true)
    }

    /// Nil: a service that this version does not know, or a binding that no app could have registered; the others are kept.
    var value: PushBinding? {
      guard let service = PushService(rawValue: s), isPlausible(at) else { return nil }
      // an invalid key seals nothing, and to check it here would cost more than all the rest
      let bare = PushTarget(service, token: t, environment: e ?? .production, topic: o ?? "")
      guard (try? bare.checked()) != nil else { return nil }
      let target = PushTarget(service, token: t, environment: bare.environment, topic: bare.topic, sealKey: k.map { [UInt8]($0) })
      return PushBinding(target, registeredAt: at, isUsable: off != true)
    }
  }
  var v = Cluster.Limits.format
  var p: String?
  var m: String?
  var os: String?
  var sdk: String?
  var a: [String]?
  var silent: Bool?
  var dnd: Bool?
  var f: Int64
  var l: Int64
  /// Revoked; read by the scripts too.
  var x: Int64?
  var b: [Binding]?

  init(_ device: Device) {
    (p, m, os, sdk) = (device.platform, device.model, device.os, device.sdk)
    a = device.accounts == ["default"] ? nil : device.accounts
    (silent, dnd) = (device.rings ? nil : true, device.doNotDisturb ? true : nil)
    (f, l, x) = (device.firstSeen, device.lastSeen, device.revokedAt)
    b = device.bindings.isEmpty ? nil : device.bindings.map(Binding.init)
  }

  func value(_ key: DeviceKey) -> Device? {
    guard isPlausible(f, l, x) else { return nil }
    var device = Device(key: key, accounts: a ?? ["default"], at: f)
    (device.platform, device.model, device.os, device.sdk) = (p, m, os, sdk)
    (device.rings, device.doNotDisturb) = (silent != true, dnd == true)
    (device.lastSeen, device.revokedAt) = (l, x)
    device.bindings = (b ?? []).compactMap(\.value)
    return device
  }
}

extension Device {
  /// The time of the last change: of two values the later stays.
  var lastChange: Int64 { max(lastSeen, revokedAt ?? .min) }
}

/// `"t":`, the token's `iat`, and `"s":`, when a token last named it, come first: a script reads them there.
struct StoredGrant: StoredValue {
  var v = Cluster.Limits.format
  var t: Int64?
  var s: Int64?
  /// The claim; nil: erased.
  var g: TokenGrant?

  init(_ grant: SharedGrant) { g = grant.grant }

  func value(_ user: String) -> SharedGrant? {
    guard let t, let s, isPlausible(t, s), !user.isEmpty, user.utf8.count <= JSONWebToken.Limits.claimBytes, isPlain(user) else {
      return nil
    }
    var grant = g
    grant?.issuedAt = t
    return SharedGrant(user: user, grant: grant, issuedAt: t, seen: s)
  }
}

struct StoredEnd: StoredValue {
  var v = Cluster.Limits.format
  var u: [String]
  /// As in `call.gone`.
  var over: CallOver
  init(_ tombstone: RemoteTombstone) { (u, over) = (tombstone.users, tombstone.over) }
  var value: RemoteTombstone { RemoteTombstone(users: u, over) }
}

/// A message of a channel.
struct StoredMessage: StoredValue {
  enum Kind: String, Codable { case wake, came, replaced, revoked, lost, dead, grants, directories, history }
  var v = Cluster.Limits.format
  /// The sender that the message names.
  var f: String
  var k: Kind
  var u: String
  var d: String?
  var call: CallID?
  /// JSON as text.
  var c: String?
  var s: String?
  var w: StoredWhereabouts?
  /// A row's number.
  var n: Int64?
  /// As in a lease.
  var e: Int64?

  init(_ message: ClusterMessage, from: Incarnation, until end: Int64? = nil) {
    e = end
    f = from.description
    switch message {
    case .wake(let key, let call, let content):
      (k, u, d) = (.wake, key.user, key.device)
      (self.call, c) = (call, String(decoding: content, as: UTF8.self))
    case .came(let location): (k, u, d, w) = (.came, location.device.user, location.device.device, StoredWhereabouts(location))
    case .replaced(let key, let session): (k, u, d, s) = (.replaced, key.user, key.device, session.text)
    case .revoked(let key): (k, u, d) = (.revoked, key.user, key.device)
    case .lost(let call, let user): (k, u, self.call) = (.lost, user, call)
    case .dead(let other): (k, u, s) = (.dead, "", other.description)
    case .grants: (k, u) = (.grants, "")
    case .directories: (k, u) = (.directories, "")
    case .history(let user, let row): (k, u, n) = (.history, user, row)
    }
  }

  var value: (ClusterMessage, Incarnation)? {
    guard let from = Incarnation(f) else { return nil }
    if k == .lost { return call.map { (.lost($0, user: u), from) } }
    if k == .dead { return s.flatMap { Incarnation($0) }.map { (.dead($0), from) } }
    if k == .grants { return (.grants, from) }
    if k == .directories { return (.directories, from) }
    if k == .history { return n.flatMap { isPlausible($0) ? (.history(user: u, row: $0), from) : nil } }
    guard let d else { return nil }
    let key = DeviceKey(user: u, device: d)
    switch k {
    case .wake:
      guard let call, let content = c.map({ Array($0.utf8) }), content.count <= Cluster.Limits.wakeBytes else { return nil }
      return (.wake(key, call: call, content: content), from)
    case .came: return w?.value(key).map { (.came($0), from) }
    case .replaced: return s.map { (.replaced(key, SessionID($0)), from) }
    case .revoked: return (.revoked(key), from)
    case .lost, .dead, .grants, .directories, .history: return nil
    }
  }
}
