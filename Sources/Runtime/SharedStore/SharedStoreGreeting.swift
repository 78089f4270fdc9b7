import RESP

/// The commands that a new connection sends before the first request, and the checks of their answers. Pure.
struct SharedStoreGreeting {
  /// Why a shared store is not usable; one line that says what to do.
  struct Problem: Error, Hashable {
    var text: String
    init(_ text: String) { self.text = text }
  }
  /// What the answers of a usable shared store contain.
  struct Found {
    var digests: [SharedStoreScript: String] = [:]
    /// The same over all connections until the shared store is flushed.
    var marker = ""
    /// A setting that an operator should change, though it works.
    var warning: String?
  }

  let username: String?
  let password: String?
  let clientName: String

  /// Precedes the other commands where a password is set; its answer is one value.
  var login: [RESPCommand] {
    guard let password else { return [] }
    var command = RESPCommand("AUTH")
    if let username { command.add(username) }
    command.add(password)
    return [command]
  }
  private var name: RESPCommand { RESPCommand("CLIENT", "SETNAME", clientName) }

  /// - Parameters:
  ///   - marker, trial: keys of this shard.
  ///   - fresh: a random text.
  func commands(marker: String, trial: String, channel: String, fresh: String) -> [RESPCommand] {
    login + [name, RESPCommand("INFO")] + SharedStoreScript.allCases.map { RESPCommand("SCRIPT", "LOAD", $0.source) } + [
      RESPCommand("EVAL", SharedStoreScript.mark, "1", marker, fresh),
      RESPCommand("EVAL", SharedStoreScript.rights, "1", trial, channel),
    ]
  }

  /// Answered with one value for each channel.
  func subscription(_ channels: [String]) -> [RESPCommand] {
    var subscribe = RESPCommand("SUBSCRIBE")
    for channel in channels { subscribe.add(channel) }
    return login + [name, subscribe]
  }

  func problem(ofLogin replies: [RESPValue]) -> Problem? {
    guard password != nil, case .error(let why)? = replies.first else { return nil }
    if why.contains("without any password") {
      return nil  // the server requires no password; then ours is not needed, and is not a reason to stay away
    }
    return Problem("Redis refuses the password (\(why)): check username and password_file of cluster.shared_store")
  }

  func found(_ replies: [RESPValue], isCluster: Bool) throws(Problem) -> Found {
    if let problem = problem(ofLogin: replies) { throw problem }
    let replies = Array(replies.dropFirst(login.count + 1))
    let count = SharedStoreScript.allCases.count
    guard replies.count == count + 3 else { throw Problem("its replies are not those of Redis") }
    var found = Found()
    try checkInformation(replies[0], isCluster: isCluster, &found)
    for (script, reply) in zip(SharedStoreScript.allCases, replies[1...]) {
      guard let digest = reply.text else { throw problem(reply, "SCRIPT LOAD") }
      found.digests[script] = digest
    }
    guard let marker = replies[count + 1].text else { throw problem(replies[count + 1], "EVAL") }
    found.marker = marker
    guard let refused = replies[count + 2].elements else { throw problem(replies[count + 2], "EVAL") }
    let commands = Array(Set(refused.compactMap(\.text))).sorted()
    guard commands.isEmpty else {
      throw Problem("its user has no right to \(commands.joined(separator: ", ")): \(Self.seeRule)")
    }
    return found
  }

  private func checkInformation(_ reply: RESPValue, isCluster: Bool, _ found: inout Found) throws(Problem) {
    guard let text = reply.text else { throw problem(reply, "INFO") }
    var fields: [Substring: Substring] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      guard let colon = line.firstIndex(of: ":") else { continue }
      fields[line[..<colon]] = line[line.index(after: colon)...]
    }
    if fields["redis_mode"] == "sentinel" {
      throw Problem("this is a Sentinel: write shared_store: { sentinels: [HOST:PORT, …], name: NAME }")
    }
    if fields["redis_mode"] == "cluster", !isCluster {
      throw Problem("this is a node of a Redis Cluster: write shared_store: { cluster: [HOST:PORT, …] }")
    }
    if let version = fields["redis_version"], !Self.isNewEnough(version) {
      throw Problem("Redis \(version) is too old: 6.2 or later is needed, or Valkey 7.2")
    }
    if fields["loading"] == "1" { throw Problem("Redis is still loading its data") }
    if let role = fields["role"], role != "master" {
      throw Problem("it is a replica, which refuses writes: configure the primary, or its Sentinels")
    }
    if let policy = fields["maxmemory_policy"], policy != "noeviction", fields["maxmemory"] != "0" {
      found.warning = "maxmemory-policy \(policy) lets Redis delete registrations when memory is short: set noeviction"
    }
  }

  private static let seeRule = "see the rule in docs/design/cluster-shared-store.md"

  private static func isNewEnough(_ version: Substring) -> Bool {
    let parts = version.split(separator: ".").map { Int($0) ?? 0 }
    guard let major = parts.first else { return true }
    return major > 6 || major == 6 && (parts.count > 1 ? parts[1] : 0) >= 2
  }

  private func problem(_ reply: RESPValue, _ command: String) -> Problem {
    guard case .error(let why) = reply else { return Problem("its reply to \(command) is not one of Redis") }
    if why.hasPrefix("NOAUTH") { return Problem("Redis requires a password: set password_file of cluster.shared_store") }
    if why.hasPrefix("NOPERM") {
      return Problem("its user has no right to \(command) (\(why)): \(Self.seeRule)")
    }
    return Problem("\(command): \(why)")
  }
}
