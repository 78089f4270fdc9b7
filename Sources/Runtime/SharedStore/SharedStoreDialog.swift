import Logging
import RESP
import TrunklineBytes
import TrunklinePlatform

/// A connection that is being made, until its first commands are answered; then its owner has it.
final class SharedStoreDialog {
  enum Outcome {
    /// The connection is open and belongs to the owner, who must set `handler`.
    case answered(SharedStoreLink, [RESPValue])
    case failed(String)
  }
  let address: RedisServers.Address
  let deadline: Instant
  private let expected: Int
  private var replies: [RESPValue] = []
  private var link: SharedStoreLink?
  private var then: ((Outcome) -> Void)?

  init(_ address: RedisServers.Address, expected: Int, deadline: Instant, then: @escaping (Outcome) -> Void) {
    (self.address, self.expected, self.deadline, self.then) = (address, expected, deadline, then)
  }

  var isOver: Bool { then == nil }

  /// Connects, once the host's name is resolved.
  func begin(
    _ target: SocketAddress, _ commands: [RESPCommand], tls: TLSSession?, bounds: RESPReader.Bounds, loop: EventLoop
  ) {
    guard !isOver else { return }
    do {
      let link = try SharedStoreLink(target, tls: tls, bounds: bounds, loop: loop) { [weak self] in self?.handle($0) }
      self.link = link
      for command in commands { link.send(command) }
    } catch {
      finish(.failed("\(error)"))
    }
  }

  func flush() { link?.flush() }

  func fail(_ why: String) { finish(.failed(why)) }

  /// Closes without an outcome.
  func cancel() {
    then = nil
    link?.close()
  }

  private func handle(_ event: SharedStoreLink.Event) {
    switch event {
    case .closed(let why): finish(.failed(why))
    case .value(let value):
      replies.append(value)
      guard replies.count == expected, let link else { return }
      finish(.answered(link, replies))
    }
  }

  private func finish(_ outcome: Outcome) {
    guard let then else { return }
    self.then = nil
    if case .failed = outcome { link?.close() }
    link = nil
    then(outcome)
  }
}

extension SharedStoreDialog {
  /// Resolves the host's name, begins TLS if it is configured, and sends the commands; a failure becomes the outcome.
  func connect(_ commands: [RESPCommand], tls: TLSFiles?, bounds: RESPReader.Bounds, loop: EventLoop, logger: Logger) {
    let address = address
    HostLookup.find(address.host, address.port, for: .sharedStore, by: deadline, loop: loop, logger: logger) {
      [weak self] found in
      guard let self, !isOver else { return }
      guard let target = found.first else { return fail("its name \(address.host) has no address") }
      var session: TLSSession?
      if let tls {
        do throws(TLSFailure) {
          let context = try TLSContext(client: TLSClientSettings(identity: tls, host: address.host))
          session = TLSSession(context, isServer: false, host: address.host, verifying: TLSPeer(host: address.host))
        } catch {
          return fail("\(error)")
        }
        guard session != nil else { return fail("no memory for TLS") }
      }
      begin(target, commands, tls: session, bounds: bounds, loop: loop)
    }
  }
}
