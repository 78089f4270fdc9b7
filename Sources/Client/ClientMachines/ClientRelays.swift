import TrunklineBytes
import TrunklineTURN

/// The path to the gateway over TURN servers, for one generation of a call's ICE: which server is tried when, and which one has
/// our allocation.
///
/// | event | effect |
/// |---|---|
/// | `start` | connects to the first server, and to the next one 300 ms later while no server has an allocation |
/// | a server fails, or takes 8 s | the next server at once |
/// | a server answers 300 | the alternate server that it names is tried, once |
/// | a server allocates | `ready`; the other connections are closed |
/// | the server with our allocation fails | `lost`, then the next untried server, unless media already uses the relay |
/// | no server is left | `exhausted` |
/// | `close` | all connections are closed; later inputs have no effect |
struct ClientRelays: Sendable {
  enum Event: Sendable, Equatable {
    /// The relayed address, which becomes a candidate of ours.
    case ready(SocketAddress)
    case lost(SocketAddress, String)
    case exhausted
  }
  private struct Attempt: Sendable {
    let number: Int
    let server: TURNServer
    var client: TURNClient
    var framing: TURNFraming?
    let givenUpAt: Instant
  }

  private(set) var events: [Event] = []
  /// The relayed address of our allocation.
  private(set) var relayed: SocketAddress?
  private var waiting: [TURNServer]
  private var attempts: [Attempt] = []
  private var startsNextAt: Instant?
  private var isStarted = false
  private var isClosed = false
  /// Media uses the relay: after its failure ICE finds the next path, and no other server is tried.
  private var isInUse = false
  private var nextNumber: Int
  private let peers: [IPAddress]
  private let random: RandomSource
  private var turnOutput = TURNClient.Output()

  /// - Parameters:
  ///   - peers: candidates of the gateway.
  ///   - firstNumber: the number of the first connection; there are `Limits.relayConnections` at most.
  init(_ servers: [TURNServer], peers: [SocketAddress], firstNumber: Int, random: RandomSource) {
    // UDP first, as a stream delays packets after a loss
    waiting = Array(
      (servers.filter { $0.transport == .udp } + servers.filter { $0.transport != .udp }).prefix(Limits.relayServers))
    var addresses: [IPAddress] = []
    for peer in peers where !addresses.contains(peer.ip.unmapped) { addresses.append(peer.ip.unmapped) }
    (self.peers, nextNumber, self.random) = (addresses, firstNumber, random)
  }

  func has(_ number: Int) -> Bool { attempts.contains { $0.number == number } }
  mutating func drainEvents() -> [Event] {
    defer { events.removeAll(keepingCapacity: true) }
    return events
  }

  var nextDeadline: Instant? {
    var due = startsNextAt
    func consider(_ other: Instant?) { if let other { due = min(due ?? other, other) } }
    for attempt in attempts {
      consider(attempt.client.nextDeadline)
      if relayed == nil { consider(attempt.givenUpAt) }
    }
    return due
  }

  mutating func start(at now: Instant, into output: inout ClientMedia.Output) {
    guard !isStarted, !isClosed else { return }
    isStarted = true
    startNext(now, &output)
  }

  private mutating func startNext(_ now: Instant, _ output: inout ClientMedia.Output) {
    startsNextAt = nil
    guard relayed == nil, !isClosed else { return }
    guard !waiting.isEmpty else {
      if attempts.isEmpty { events.append(.exhausted) }
      return
    }
    connect(waiting.removeFirst(), now, &output)
    if !waiting.isEmpty { startsNextAt = now + Limits.relayStagger }
  }

  private mutating func connect(_ server: TURNServer, _ now: Instant, _ output: inout ClientMedia.Output) {
    let isStream = server.transport != .udp
    // an IPv4 allocation if any peer has an IPv4 address
    let family: IPAddress.Family = peers.isEmpty || peers.contains { $0.family == .v4 } ? .v4 : .v6
    var client = TURNClient(
      username: server.username, password: server.password, isStream: isStream, family: family, random: random)
    for peer in peers where peer.family == family { client.permit(peer, at: now, into: &turnOutput) }
    attempts.append(
      Attempt(
        number: nextNumber, server: server, client: client, framing: isStream ? TURNFraming() : nil,
        givenUpAt: now + Limits.relaySetup))
    output.connect(nextNumber, server)
    nextNumber += 1
  }

  // MARK: connections

  mutating func opened(_ number: Int, at now: Instant, into output: inout ClientMedia.Output) {
    guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
    attempts[index].client.start(at: now, into: &turnOutput)
    drain(index, now, &output)
  }

  mutating func closed(_ number: Int, _ why: String, at now: Instant, into output: inout ClientMedia.Output) {
    guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
    remove(index, because: why, now, &output)
  }

  /// Handles bytes of a connection: a datagram, or a piece of a stream. `body` gets each packet of a peer as a slice of the
  /// received bytes.
  mutating func received(
    _ number: Int, _ bytes: [UInt8], at now: Instant, into output: inout ClientMedia.Output,
    body: (SocketAddress, ArraySlice<UInt8>) -> Void
  ) {
    guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
    do throws(TURNFailure) {
      guard attempts[index].framing != nil else { return handle(bytes, from: index, now, &output, body) }
      try attempts[index].framing?.append(bytes)
      while let index = attempts.firstIndex(where: { $0.number == number }), let message = try attempts[index].framing?.next() {
        handle(message, from: index, now, &output, body)
      }
    } catch {
      guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
      output.disconnect(number)
      remove(index, because: "\(error)", now, &output)
    }
  }

  private mutating func handle(
    _ message: [UInt8], from index: Int, _ now: Instant, _ output: inout ClientMedia.Output,
    _ body: (SocketAddress, ArraySlice<UInt8>) -> Void
  ) {
    let payload = message.withUnsafeBytes { attempts[index].client.receive($0, at: now, into: &turnOutput) }
    if let payload { return body(payload.peer, message[payload.octets]) }
    drain(index, now, &output)
  }

  // MARK: time

  mutating func handleTimeout(at now: Instant, into output: inout ClientMedia.Output) {
    for number in attempts.map(\.number) {
      guard let index = attempts.firstIndex(where: { $0.number == number }) else { continue }
      if relayed == nil, attempts[index].givenUpAt <= now {
        output.disconnect(number)
        remove(index, because: "\(TURNFailure.noAnswer)", now, &output)
      } else {
        attempts[index].client.handleTimeout(at: now, into: &turnOutput)
        drain(index, now, &output)
      }
    }
    if let due = startsNextAt, due <= now { startNext(now, &output) }
  }

  // MARK: events of a server

  private mutating func drain(_ index: Int, _ now: Instant, _ output: inout ClientMedia.Output) {
    let number = attempts[index].number
    for message in turnOutput.messages { output.relay(message, over: number) }
    let events = turnOutput.events
    turnOutput.messages.removeAll(keepingCapacity: true)
    turnOutput.events.removeAll(keepingCapacity: true)
    for event in events {
      switch event {
      case .allocated(let address): chosen(number, address, now, &output)
      case .refused: break
      case .failed(let why):
        guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
        output.disconnect(number)
        let server = attempts[index].server
        if case .tryAlternate(let address?) = why, server.alternate == nil {
          attempts.remove(at: index)
          return connect(server.at(address), now, &output)
        }
        remove(index, because: "\(why)", now, &output)
      }
    }
  }

  private mutating func chosen(_ number: Int, _ address: SocketAddress, _ now: Instant, _ output: inout ClientMedia.Output) {
    guard relayed == nil else { return }
    relayed = address
    startsNextAt = nil
    for other in attempts where other.number != number { output.disconnect(other.number) }
    attempts.removeAll { $0.number != number }
    events.append(.ready(address))
  }

  private mutating func remove(_ index: Int, because why: String, _ now: Instant, _ output: inout ClientMedia.Output) {
    attempts.remove(at: index)
    if let address = relayed {
      relayed = nil
      events.append(.lost(address, why))
    }
    if !isInUse { startNext(now, &output) }
  }

  // MARK: media

  /// Media uses a pair over this relay from now on.
  mutating func bind(_ peer: SocketAddress, at now: Instant, into output: inout ClientMedia.Output) {
    guard relayed != nil, !attempts.isEmpty else { return }
    isInUse = true
    attempts[0].client.bind(peer, at: now, into: &turnOutput)
    drain(0, now, &output)
  }

  func send(_ bytes: UnsafeRawBufferPointer, to peer: SocketAddress, into output: inout ClientMedia.Output) {
    guard relayed != nil, let attempt = attempts.first else { return }
    output.relay(over: attempt.number) { attempt.client.write(bytes, to: peer, into: &$0) }
  }

  /// Releases the allocation, and closes all connections.
  mutating func close(at now: Instant, into output: inout ClientMedia.Output) {
    isClosed = true
    startsNextAt = nil
    relayed = nil
    for index in attempts.indices {
      attempts[index].client.close(at: now, into: &turnOutput)
      for message in turnOutput.messages { output.relay(message, over: attempts[index].number) }
      turnOutput.messages.removeAll(keepingCapacity: true)
      output.disconnect(attempts[index].number)
    }
    attempts = []
  }
}
