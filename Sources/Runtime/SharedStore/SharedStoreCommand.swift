import AppSessions
import CallModel
import Cluster
import Devices
import RESP
import TrunklineBytes

/// A `SharedStoreRequest` as a command of Redis, and how its reply is read.
struct SharedStoreCommand: Sendable {
  enum Form: Sendable {
    /// A command by its name.
    case plain(RESPCommand)
    /// A script on keys, with arguments.
    case script(SharedStoreScript, keys: [String], arguments: [[UInt8]])
  }
  /// How the reply becomes a `SharedStoreReply`.
  enum Reading: Sendable {
    case done
    case isOne
    case claim(showsHolder: ClaimHolder)
    case nodes
    case entered(DeviceKey)
    case located(String)
    case entries(Incarnation)
    case entry(CallID, Incarnation)
    case tombstone(CallID)
    case record
    case added
    case count
    case history(String)
    case directoryHead(String)
    case directoryParts([String])
    case directories
    case grants
    case grantsPut
    case committed
  }
  enum ClaimHolder: Sendable { case always, ifRefused }

  /// The command's name in metrics and logs.
  var name: String
  /// The text between braces in its keys, which chooses the slot. Nil: any node of a Redis Cluster can run it.
  var tag: String?
  var form: Form
  var reading: Reading
  /// Whether it may be repeated after an earlier command of its slot was: a node's changes of a key keep the order of its
  /// requests.
  var mayRepeat = true
  /// The renewal of our lease.
  var isOfLease: Bool { name == SharedStoreScript.renew.rawValue }
  /// Its values are longer than a reader accepts.
  var isTooLong = false
  /// The keys that sign its values, and the request that is repeated if a forged value competed with it.
  var keys: SharedStoreKeys?
  var request: SharedStoreRequest?

  /// - Parameter digest: of a script in the shared store; nil sends the script itself.
  func command(digest: (SharedStoreScript) -> String?) -> RESPCommand {
    switch form {
    case .plain(let command): return command
    case .script(let script, let keys, let arguments):
      var command: RESPCommand
      if let digest = digest(script) {
        command = RESPCommand("EVALSHA", digest)
      } else {
        command = RESPCommand("EVAL", script.source)
      }
      command.add(Int64(keys.count))
      for key in keys { command.add(key) }
      for argument in arguments { command.add(argument) }
      return command
    }
  }

  /// The bytes of its values: a value that is longer than a reader accepts is not written.
  var valueBytes: Int {
    switch form {
    case .plain(let command): command.byteCount
    case .script(_, _, let arguments): arguments.map(\.count).max() ?? 0
    }
  }
}

func bytes(_ text: some CustomStringConvertible) -> [UInt8] { Array(text.description.utf8) }
func milliseconds(_ duration: Duration) -> [UInt8] { bytes(max(1, duration.milliseconds)) }

extension SharedStoreCommand {
  /// - Parameters:
  ///   - node: the sender, in messages.
  ///   - forged: stored values without our signature, by field: if one is still unchanged, it is overwritten.
  init(_ request: SharedStoreRequest, _ keys: SharedStoreKeys, from node: Incarnation, over forged: [String: [UInt8]] = [:]) {
    self.init(request, keys, node: node, forged: forged)
    self.keys = keys
    if keys.seal != nil, forged.isEmpty { self.request = request }
  }

  private init(_ request: SharedStoreRequest, _ keys: SharedStoreKeys, node: Incarnation, forged: [String: [UInt8]]) {
    let removed = forged[""] ?? []
    switch request {
    case .renew(let lease, let length):
      self.init(
        script: .renew, tag: SharedStoreKeys.nodes,
        keys: [keys.key(SharedStoreKeys.nodes, "names"), keys.lease(of: lease.incarnation)],
        arguments: [
          bytes(SharedStoreKeys.escaped(lease.incarnation.node)), bytes(lease.incarnation),
          keys.sealed(
            ValueCoding.encode(StoredLease(lease, until: keys.seal?.end)), at: keys.lease(of: lease.incarnation)),
          milliseconds(length), bytes(keys.key(SharedStoreKeys.nodes, "lease:")), bytes(Limits.namesPerRead), removed,
        ], reading: .nodes)
    case .endLease(let incarnation):
      self.init(
        script: .endLease, tag: SharedStoreKeys.nodes,
        keys: [keys.key(SharedStoreKeys.nodes, "names"), keys.lease(of: incarnation)],
        arguments: [bytes(SharedStoreKeys.escaped(incarnation.node)), bytes(incarnation)], reading: .done)
    case .enter, .update, .leave, .locate, .leaveCall, .register, .consumeQuota:
      self.init(ofUser: request, keys, forged)
    case .put, .remove, .entries, .entry, .claimReaping, .reaped, .claimStart, .putTombstone, .tombstone:
      self.init(ofCall: request, keys, removed)
    case .admit(let trunk, let most, let incarnation):
      let tag = SharedStoreKeys.trunk(trunk)
      self.init(
        script: .admit, tag: tag, keys: [keys.key(tag, "calls")], arguments: [bytes(incarnation), bytes(most)], reading: .isOne)
    case .share(let trunk, let count, let incarnation):
      let tag = SharedStoreKeys.trunk(trunk)
      let key = keys.key(tag, "calls")
      let command =
        count > 0 ? RESPCommand("HSET", key, "\(incarnation)", "\(count)") : RESPCommand("HDEL", key, "\(incarnation)")
      self.init(plain: "share", tag: tag, command: command)
    case .lead, .resign: self.init(ofTask: request, keys, removed)
    case .publish(let message, let to): self.init(message, keys, channel: keys.channel(to: to), from: node, name: "publish")
    case .broadcast(let message): self.init(message, keys, channel: keys.everybody, from: node, name: "broadcast")
    case .append(let call, let record):
      let tag = SharedStoreKeys.records
      self.init(
        script: .append, tag: tag, keys: [keys.key(tag), keys.key(tag, call.description)],
        arguments: [record, milliseconds(Limits.recordMark), bytes(Limits.records)], reading: .isOne)
      mayRepeat = false
    case .addHistory, .history, .forgetHistory: self.init(ofHistory: request, keys)
    case .directories, .directoryHead, .directoryParts, .stageDirectoryParts, .commitDirectory,
      .expireDirectoryParts:
      self.init(ofDirectory: request, keys)
    case .putGrants, .grants: self.init(ofGrants: request, keys, forged)
    case .record(let call):
      let tag = SharedStoreKeys.records
      self.init(
        script: .record, tag: tag, keys: [keys.key(tag), keys.key(tag, call.description)], arguments: [], reading: .record)
    }
  }

  private init(ofTask request: SharedStoreRequest, _ keys: SharedStoreKeys, _ removed: [UInt8]) {
    switch request {
    case .lead(let task, let incarnation):
      let tag = SharedStoreKeys.task(task)
      self.init(
        script: .claim, tag: tag, keys: [keys.key(tag)],
        arguments: [
          keys.sealed(lines: bytes(incarnation), at: keys.key(tag)), milliseconds(Cluster.Limits.leadership), bytes(1), removed,
        ],
        reading: .claim(showsHolder: .always), name: "lead")
    case .resign(let task, let incarnation):
      let tag = SharedStoreKeys.task(task)
      self.init(
        script: .release, tag: tag, keys: [keys.key(tag)], arguments: [keys.sealed(lines: bytes(incarnation), at: keys.key(tag))],
        reading: .done, name: "resign")
    default: preconditionFailure("a request that is of no task")
    }
  }

  private init(ofUser request: SharedStoreRequest, _ keys: SharedStoreKeys, _ forged: [String: [UInt8]]) {
    func key(_ user: String, _ rest: String) -> String { keys.ofUser(user, rest) }
    func value(_ location: Whereabouts) -> [UInt8] {
      let user = location.device.user
      return Array(
        keys.sealed(ValueCoding.encode(StoredWhereabouts(location)), at: key(user, "where"), field: location.device.device)
          .dropFirst())
    }
    switch request {
    case .enter(let location, let since):
      let user = location.device.user
      self.init(
        script: .enter, tag: SharedStoreKeys.user(user), keys: [key(user, "where"), key(user, "calls"), key(user, "devices")],
        arguments: [
          bytes(location.device.device), bytes(location.session), value(location), bytes(Cluster.Limits.whereaboutsPerUser),
          bytes(since ?? 0), forged[""] ?? [],
        ], reading: .entered(location.device))
    case .update(let location):
      let user = location.device.user
      self.init(
        script: .update, tag: SharedStoreKeys.user(user), keys: [key(user, "where")],
        arguments: [bytes(location.device.device), bytes(location.session), value(location)], reading: .done)
    case .leave(let device, let session):
      self.init(
        script: .leave, tag: SharedStoreKeys.user(device.user), keys: [key(device.user, "where")],
        arguments: [bytes(device.device), bytes(session)],
        reading: .done)
    case .locate(let user, let location):
      let value =
        location.map { location in
          Array(
            keys.sealed(
              ValueCoding.encode(StoredCallLocation(location)), at: key(user, "calls"), field: location.call.description
            )
            .dropFirst())
        } ?? []
      self.init(
        script: .locate, tag: SharedStoreKeys.user(user), keys: [key(user, "where"), key(user, "devices"), key(user, "calls")],
        arguments: [
          location.map { bytes($0.call) } ?? [], location.map { bytes($0.incarnation) } ?? [], value,
          bytes(Cluster.Limits.callsPerUser),
        ], reading: .located(user))
    case .leaveCall(let user, let call):
      self.init(
        plain: "leaveCall", tag: SharedStoreKeys.user(user), command: RESPCommand("HDEL", key(user, "calls"), call.description))
    case .register(let user, let changes): self.init(registering: changes, of: user, keys, forged)
    case .consumeQuota(let user, let most):
      self.init(
        script: .consumeQuota, tag: SharedStoreKeys.user(user), keys: [key(user, "hour")],
        arguments: [bytes(most), milliseconds(Limits.hour)], reading: .isOne)
      mayRepeat = false
    default: preconditionFailure("a request that is of no user")
    }
  }

  private init(
    registering changes: [DeviceChange], of user: String, _ keys: SharedStoreKeys, _ forged: [String: [UInt8]]
  ) {
    let devices = keys.ofUser(user, "devices")
    var arguments = [bytes(Cluster.Limits.devicesPerUser)]
    for change in changes {
      switch change {
      case .stored(let device) where device.key.user == user:
        arguments += [
          bytes(device.key.device), bytes(device.lastChange),
          keys.sealed(
            bytes("{\"w\":\(device.lastChange),") + ValueCoding.encode(StoredDevice(device)).dropFirst(), at: devices,
            field: device.key.device),
          forged[device.key.device] ?? [],
        ]
      case .removed(let device) where device.user == user:
        arguments += [bytes(device.device), [], [], forged[device.device] ?? []]
      default: break
      }
    }
    self.init(script: .register, tag: SharedStoreKeys.user(user), keys: [devices], arguments: arguments, reading: .done)
  }

  private init(ofCall request: SharedStoreRequest, _ keys: SharedStoreKeys, _ removed: [UInt8]) {
    func sealed(_ claim: String, at key: String) -> [UInt8] { keys.sealed(lines: bytes(claim), at: key) }
    switch request {
    case .put(let entry, let incarnation):
      let tag = SharedStoreKeys.incarnation(incarnation)
      let call = entry.line.call.description
      var command = RESPCommand("HSET", keys.calls(of: incarnation), call)
      command.add(keys.sealed(ValueCoding.encode(StoredEntry(entry)), at: keys.calls(of: incarnation), field: call))
      self.init(plain: "put", tag: tag, command: command)
    case .remove(let call, let incarnation):
      let tag = SharedStoreKeys.incarnation(incarnation)
      self.init(plain: "remove", tag: tag, command: RESPCommand("HDEL", keys.key(tag, "calls"), call.description))
    case .entries(let incarnation, let cursor):
      let tag = SharedStoreKeys.incarnation(incarnation)
      // a scan may return somewhat more than COUNT
      let count = Cluster.Limits.entriesPerRead / 2
      let command = RESPCommand("HSCAN", keys.key(tag, "calls"), "\(cursor)", "COUNT", "\(count)")
      self.init(plain: "entries", tag: tag, command: command, reading: .entries(incarnation))
    case .entry(let call, let incarnation):
      let tag = SharedStoreKeys.incarnation(incarnation)
      self.init(
        plain: "entry", tag: tag, command: RESPCommand("HGET", keys.key(tag, "calls"), call.description),
        reading: .entry(call, incarnation))
    case .claimReaping(let call, let incarnation, let reaper):
      let tag = SharedStoreKeys.incarnation(incarnation)
      self.init(
        script: .claim, tag: tag, keys: [keys.key(tag, "reap:\(call)")],
        arguments: [
          sealed("\(reaper)", at: keys.key(tag, "reap:\(call)")), milliseconds(Cluster.Limits.reapClaim), bytes(0),
          removed,
        ], reading: .claim(showsHolder: .always), name: "claimReaping")
    case .reaped(let call, let incarnation, let reaper):
      let tag = SharedStoreKeys.incarnation(incarnation)
      self.init(
        script: .reaped, tag: tag, keys: [keys.key(tag, "calls"), keys.key(tag, "reap:\(call)")],
        arguments: [
          bytes(call.description), sealed("\(reaper)", at: keys.key(tag, "reap:\(call)")),
          milliseconds(Cluster.Limits.reaped),
        ], reading: .done)
    case .claimStart(let call, let device, let incarnation):
      let tag = SharedStoreKeys.call(call.description)
      self.init(
        script: .claim, tag: tag, keys: [keys.key(tag, "start")],
        arguments: [
          sealed("\(incarnation)\n\(device.user)\n\(device.device)", at: keys.key(tag, "start")),
          milliseconds(Cluster.Limits.startClaim), bytes(0), removed,
        ], reading: .claim(showsHolder: .ifRefused), name: "claimStart")
    case .tombstone(let call):
      let tag = SharedStoreKeys.call(call.description)
      self.init(plain: "tombstone", tag: tag, command: RESPCommand("GET", keys.key(tag, "over")), reading: .tombstone(call))
    case .putTombstone(let call, let tombstone):
      let tag = SharedStoreKeys.call(call.description)
      var command = RESPCommand("SET", keys.key(tag, "over"))
      command.add(keys.sealed(ValueCoding.encode(StoredEnd(tombstone)), at: keys.over(call)))
      command.add("PX")
      command.add(Cluster.Limits.tombstone.milliseconds)
      self.init(plain: "putTombstone", tag: tag, command: command)
    default: preconditionFailure("a request that is of no call")
    }
  }

  private init(_ message: ClusterMessage, _ keys: SharedStoreKeys, channel: String, from node: Incarnation, name: String) {
    var command = RESPCommand("PUBLISH", channel)
    let content = keys.sealed(ValueCoding.encode(StoredMessage(message, from: node, until: keys.seal?.end)), at: channel)
    command.add(content)
    self.init(name: name, tag: nil, form: .plain(command), reading: .done, mayRepeat: false)
    isTooLong = content.count > Cluster.Limits.messageBytes
  }

  init(plain name: String, tag: String, command: RESPCommand, reading: Reading = .done) {
    self.init(name: name, tag: tag, form: .plain(command), reading: reading)
    isTooLong = valueBytes > Cluster.Limits.valueBytes
  }

  init(
    script: SharedStoreScript, tag: String, keys: [String], arguments: [[UInt8]], reading: Reading, name: String? = nil
  ) {
    self.init(
      name: name ?? script.rawValue, tag: tag, form: .script(script, keys: keys, arguments: arguments), reading: reading)
    isTooLong = valueBytes > Cluster.Limits.valueBytes
  }
}
