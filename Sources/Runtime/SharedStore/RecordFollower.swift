import Logging
import RESP
import TrunklineBytes
public import TrunklinePlatform

/// Reads the cluster's stream of records and waits for more. Runs on the thread that calls `run`, which returns at the end only.
///
///     let follower = try RecordFollower(settings, from: .now)
///     try follower.run { entry in print(entry.id, entry.record.count); return true }
///
/// Once it was reached, a shared store that is lost is tried again for ever, after the last entry handled; Sentinels and Cluster
/// are queried at each attempt.
public final class RecordFollower {
  public enum Start: Hashable, Sendable {
    /// The oldest record in the stream, which keeps about the last 1,000,000.
    case beginning
    /// Records added after the first connection.
    case now
    /// An entry's id, `1790000000000-0`.
    case after(String)
  }
  public struct Entry: Hashable, Sendable {
    /// By the shared store's clock; later entries have greater ones.
    public var id: String
    /// A line of JSON.
    public var record: [UInt8]
  }
  /// Why the follower ends; the description says what to do.
  public enum Failure: Error, Hashable, CustomStringConvertible {
    /// Not reached at the first attempt.
    case unreachable(String)
    case refused(String)
    public var description: String {
      switch self {
      case .unreachable(let why), .refused(let why): why
      }
    }
  }

  private let settings: SharedStoreSettings
  private let key: String
  private let greeting: SharedStoreGreeting
  private let loop: EventLoop
  private let logger = Logger(label: "records") { _ in SwiftLogNoOpLogHandler() }
  private var position: String?
  private var handler: (Entry) -> Bool = { _ in false }
  private var dialog: SharedStoreDialog?
  private var link: SharedStoreLink?
  private var deadline = Instant.distantFuture
  private var timer: EventLoop.TimerID?
  private var wasReached = false
  private var failure: Failure?
  private var tries = 0
  /// Entries without a record of ours, which were skipped.
  public private(set) var strangers = 0

  public init(_ settings: SharedStoreSettings, from start: Start) throws(SystemError) {
    self.settings = settings
    key = SharedStoreKeys(prefix: settings.prefix).key(SharedStoreKeys.records)
    greeting = SharedStoreGreeting(
      username: settings.username, password: settings.password?.exposed, clientName: "trunkline-records")
    loop = try EventLoop(name: "records")
    position =
      switch start {
      case .beginning: "0-0"
      case .now: nil
      case .after(let id): id
      }
  }

  /// Runs until the handler returns false. Throws if the shared store cannot be reached at the first attempt, or refuses the
  /// login or a command.
  public func run(_ handler: @escaping (Entry) -> Bool) throws(Failure) {
    self.handler = handler
    timer = loop.addTimer("records") { [unowned self] in lookAtTime() }
    loop.addFlush { [unowned self] in
      dialog?.flush()
      link?.flush()
      if let timer { loop.setTimer(timer, at: deadline == .distantFuture ? nil : deadline) }
    }
    connect()
    if failure == nil { loop.run() }
    drop()
    if let failure { throw failure }
  }

  // MARK: connecting

  private func connect() {
    switch settings.servers {
    case .redis(let address): attach(address)
    case .sentinels(let addresses, let name): askSentinel(Array(addresses.prefix(Limits.addresses)), name, asked: 0, last: "")
    case .cluster(let addresses): attachAny(Array(addresses.prefix(Limits.addresses)), asked: 0, last: "")
    }
  }

  private func askSentinel(_ addresses: [RedisServers.Address], _ name: String, asked: Int, last: String) {
    guard asked < addresses.count else { return lost("no Sentinel returned the primary; \(last)") }
    let question = RESPCommand("SENTINEL", "get-master-addr-by-name", name)
    open(addresses[asked], greeting.login + [question]) { [unowned self] outcome in
      var why = "\(addresses[asked]) does not know \(name)"
      switch outcome {
      case .failed(let text): why = "\(addresses[asked]): \(text)"
      case .answered(let link, let replies):
        link.close()
        let parts = replies.last?.elements ?? []
        if parts.count == 2, let host = parts[0].text, let port = parts[1].text.flatMap({ UInt16($0) }) {
          return attach(RedisServers.Address(host, port))
        }
      }
      askSentinel(addresses, name, asked: asked + 1, last: why)
    }
  }

  /// Any node of a Redis Cluster names the stream's node in a MOVED reply.
  private func attachAny(_ addresses: [RedisServers.Address], asked: Int, last: String) {
    guard asked < addresses.count else { return lost("no node of the Redis Cluster answers; \(last)") }
    attach(addresses[asked]) { [unowned self] why in attachAny(addresses, asked: asked + 1, last: why) }
  }

  private func attach(_ address: RedisServers.Address, redirections: Int = 0, orElse: ((String) -> Void)? = nil) {
    // The stream is read in any case: a node that does not have it answers with MOVED at once.
    let commands =
      greeting.login + [
        RESPCommand("CLIENT", "SETNAME", greeting.clientName), RESPCommand("XREVRANGE", key, "+", "-", "COUNT", "1"),
      ]
    open(address, commands) { [unowned self] outcome in
      switch outcome {
      case .failed(let why): (orElse ?? lost)("\(address): \(why)")
      case .answered(let link, let replies):
        if let moved = moved(replies.last), redirections < Limits.redirections {
          link.close()
          return attach(moved, redirections: redirections + 1)
        }
        if let problem = problem(replies) {
          link.close()
          return refused("\(address): \(problem)")
        }
        let newest = replies.last?.elements?.last?.elements?.first?.text
        position = position ?? newest ?? "0-0"
        attached(link, address)
      }
    }
  }

  private func problem(_ replies: [RESPValue]) -> String? {
    if greeting.problem(ofLogin: replies) != nil, case .error(let why)? = replies.first {
      return
        "Redis refuses the password (\(why)): check --user and --password-file, or user and password_file of cluster.shared_store"
    }
    guard case .error(let why)? = replies.last else { return nil }
    if why.hasPrefix("NOAUTH") {
      return "Redis requires a password: use --password-file, or set password_file of cluster.shared_store"
    }
    if why.hasPrefix("NOPERM") { return "its user may not read \(key) (\(why)): it needs +xread +xrevrange on ~\(key)" }
    return why
  }

  private func moved(_ reply: RESPValue?) -> RedisServers.Address? {
    guard case .error(let why)? = reply, why.hasPrefix("MOVED ") else { return nil }
    return why.split(separator: " ").last.flatMap { RedisServers.Address(String($0)) }
  }

  private func open(
    _ address: RedisServers.Address, _ commands: [RESPCommand], then: @escaping (SharedStoreDialog.Outcome) -> Void
  ) {
    deadline = loop.now + Limits.greeting
    let dialog = SharedStoreDialog(address, expected: commands.count, deadline: deadline) { [unowned self] outcome in
      self.dialog = nil
      then(outcome)
    }
    self.dialog = dialog
    dialog.connect(commands, tls: settings.tls, bounds: RESP.Limits.reply, loop: loop, logger: logger)
  }

  // MARK: reading

  private func attached(_ link: SharedStoreLink, _ address: RedisServers.Address) {
    self.link = link
    wasReached = true
    tries = 0
    link.handler = { [unowned self] event in
      switch event {
      case .closed(let why): lost("\(address): \(why)")
      case .value(let value): read(value, address)
      }
    }
    ask()
  }

  private func ask() {
    link?.send(
      RESPCommand(
        "XREAD", "COUNT", "\(Limits.followed)", "BLOCK", "\(Limits.followTime.milliseconds)", "STREAMS", key, position ?? "$"))
    deadline = loop.now + Limits.followTime + Limits.greeting
  }

  private func read(_ value: RESPValue, _ address: RedisServers.Address) {
    if case .error(let why) = value {
      // UNBLOCKED, MOVED, LOADING …: another node has the stream now.
      return why.hasPrefix("NOPERM") ? refused("\(address): \(problem([value]) ?? why)") : lost("\(address): \(why)")
    }
    for entry in value.elements?.first?.elements?.last?.elements ?? [] {
      guard let parts = entry.elements, parts.count == 2, let id = parts[0].text else { continue }
      position = id
      let fields = parts[1].elements ?? []
      guard let name = fields.firstIndex(of: .bytes(Array("record".utf8))), name % 2 == 0, name + 1 < fields.count,
        let record = fields[name + 1].content, !record.contains(10)
      else {
        strangers += 1
        continue
      }
      guard handler(Entry(id: id, record: record)) else {
        drop()
        return loop.stop()
      }
    }
    ask()
  }

  // MARK: ends

  private func lookAtTime() {
    guard loop.now >= deadline else { return }
    if let dialog { return dialog.fail("it does not answer") }
    if link != nil { return lost("it stopped answering") }
    deadline = .distantFuture
    connect()
  }

  private func lost(_ why: String) {
    drop()
    guard wasReached else {
      failure = .unreachable("\(why); check that Redis runs, and that this is its address")
      return loop.stop()
    }
    tries += 1
    deadline = loop.now + min(Limits.retry.upperBound, Limits.retry.lowerBound * (1 << min(tries, 6)))
  }

  private func refused(_ why: String) {
    drop()
    failure = .refused(why)
    loop.stop()
  }

  private func drop() {
    dialog?.cancel()
    link?.close()
    dialog = nil
    link = nil
    deadline = .distantFuture
  }
}
