import Glibc
import Logging
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

/// TCP and TLS: accepts, makes, uses and ends connections.
extension SIPSockets {
  func accept(_ listener: TCPListener, _ transport: TransportProtocol) {
    let began = MonotonicClock.threadCPU()
    for _ in 0..<Limits.acceptsPerStep {
      do throws(SystemError) {
        guard let socket = try listener.accept() else { break }
        accept(socket, transport)  // closed on release, unless it is kept
      } catch {
        shed(listener, error)
        break
      }
    }
    acceptBudget.spend(MonotonicClock.threadCPU() - began, at: loop.now)
    if !acceptBudget.has(at: loop.now) { pauseListeners() }
  }

  private func accept(_ socket: TCPSocket, _ transport: TransportProtocol) {
    let source = socket.remoteAddress
    guard let trunk = trunkOrStranger(source, transport) else { return }
    let isGuest = !trunks.isListed(source)
    guard mayConnect(source.ip, transport, isGuest: isGuest) else { return counts.drops[.connectionRate].increment() }
    guard let local = socket.localAddress, hasRoom(trunk) else { return counts.drops[.connectionLimit].increment() }
    if isGuest, !admitsGuest(source.ip, trunk) { return }
    var session: TLSSession?
    if transport == .tls {
      // guests leave half of the time to listed peers
      guard handshakeBudget.has(isGuest ? 0.5 : 0, at: loop.now) else { return counts.drops[.handshakeRate].increment() }
      session = serverTLS.flatMap { TLSSession($0, isServer: true) }
      guard session != nil else { return counts.drops[.handshake].increment() }
    }
    add(
      TCPConnection(
        accepted: socket, flow: Flow(transport: transport, local: local, remote: source), trunk: trunk, tls: session,
        handshakeTime: handshakeTime, isGuest: isGuest, at: loop.now))
  }

  private func mayConnect(_ source: IPAddress, _ transport: TransportProtocol, isGuest: Bool) -> Bool {
    if isGuest, !guestConnections.consume(source, at: loop.now) { return false }
    return transport == .tls ? handshakeRates.consume(source, at: loop.now) : connectionRates.consume(source, at: loop.now)
  }

  /// Whether one more connection of a guest fits; another may be closed to make room.
  private func admitsGuest(_ source: IPAddress, _ trunk: String) -> Bool {
    let guests = connections.values.compactMap { connection -> GuestTable.Guest? in
      guard connection.trunk == trunk, let until = connection.guestUntil else { return nil }
      return GuestTable.Guest(flow: connection.flow, until: until)
    }
    switch GuestTable.verdict(on: source, among: guests) {
    case .admitted: return true
    case .admittedFor(let flow):
      counts.drops[.guestTable].increment()
      end(flow, .ended)
      return true
    case .addressFull: counts.drops[.guestLimit].increment()
    case .tableFull: counts.drops[.guestTable].increment()
    }
    return false
  }

  /// The peer of a flow has answered a challenge: its connection no longer counts as a guest's. On the loop's thread.
  public func authenticated(_ flow: Flow) {
    loop.preconditionOnThread()
    guard connections[flow]?.guestUntil != nil else { return }
    connections[flow]?.authenticated(at: loop.now)
    countConnections()
  }

  /// A request had no answer on this connection. If nothing else was received on it either, the path is dead (a firewall has
  /// forgotten it): the connection is closed, and the next request opens another. On the loop's thread.
  public func wasSilent(_ flow: Flow, since: Instant) {
    loop.preconditionOnThread()
    for (own, connection) in connections where Self.serves(own, wanted: flow) && connection.receivedAt < since {
      logger.notice("SIP connection closed: a request had no answer and nothing else was received", metadata: ["flow": "\(own)"])
      end(own, .failed)
    }
  }

  func countConnections() {
    counts.connections.set(Int64(connections.count))
    counts.guests.set(connections.values.reduce(0) { $0 + ($1.guestUntil == nil ? 0 : 1) })
  }

  /// Without descriptors the connection would stay in the backlog and wake the loop for ever: the reserve descriptor accepts and
  /// closes it.
  private func shed(_ listener: TCPListener, _ error: SystemError) {
    guard error.isOutOfDescriptors else {
      return logger.error("a SIP connection was not accepted", metadata: ["about": "\(error)"])
    }
    counts.drops[.descriptors].increment()
    if reserve >= 0 { Glibc.close(reserve) }
    _ = try? listener.accept()
    reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)
    if mayLog(&shedLoggedAt) { logger.error("SIP connection refused: \(error)") }
  }

  private func hasRoom(_ trunk: String) -> Bool {
    connections.count < Limits.connections
      && connections.values.reduce(0) { $0 + ($1.trunk == trunk ? 1 : 0) } < Limits.connectionsPerTrunk
  }

  func sendTCP(_ message: UserAgent.Output.Message) {
    // the flow's own connection, else any other with that peer, else a new one
    var flow = message.flow
    if connections[flow] == nil, let other = connections.first(where: { Self.serves($0.key, wanted: flow) })?.key { flow = other }
    if connections[flow] == nil {
      // a response to an unlisted peer uses the connection of its request, or none
      guard !message.isResponse || trunks.isListed(flow.remote), connect(flow) else { return fail(flow) }
    }
    guard connections[flow]?.append(message.bytes) == true else {
      counts.drops[.slowReader].increment()
      return end(flow, .failed)
    }
    guard connections[flow]?.isConnecting == false else { return }
    step(flow) { $0.write(at: loop.now) }
  }

  private static func serves(_ connection: Flow, wanted: Flow) -> Bool {
    connection.remote == wanted.remote && connection.transport == wanted.transport
  }

  private func connect(_ flow: Flow) -> Bool {
    guard let trunk = trunks.trunk(of: flow.remote), hasRoom(trunk) else {
      counts.drops[.connectionLimit].increment()
      return false
    }
    var session: TLSSession?
    if flow.transport == .tls {
      session = clientTLS[trunk].flatMap { tls in
        let settings = tls.settings
        let peer = TLSPeer(settings.host) { refusal(of: $0, for: settings.host, expecting: settings.names) }
        return TLSSession(tls.context, isServer: false, host: settings.serverName, verifying: settings.verifies ? peer : nil)
      }
      guard session != nil else {
        counts.failures[.tls].increment()
        logger.notice("no TLS toward this trunk: its certificates could not be read", metadata: ["trunk": "\(trunk)"])
        return false
      }
    }
    do throws(SystemError) {
      let socket = try TCPSocket(connect: flow.remote, from: flow.local.ip)
      return add(TCPConnection(connecting: socket, flow: flow, trunk: trunk, tls: session, at: loop.now))
    } catch {
      counts.failures[Self.failure(flow)].increment()
      logger.notice("SIP connection failed", metadata: ["flow": "\(flow)", "error": "\(error)"])
      return false
    }
  }

  @discardableResult private func add(_ connection: TCPConnection) -> Bool {
    let flow = connection.flow
    guard connections[flow] == nil else { return false }
    do throws(SystemError) {
      try loop.register(connection.socket.fd, connection.interest) { [weak self] events in
        self?.connectionReady(flow, events)
      }
    } catch {
      logger.error("\(error)")
      return false
    }
    connections[flow] = connection
    countConnections()
    armDeadline(connection.deadline)
    return true
  }

  private func connectionReady(_ flow: Flow, _ events: IOEvents) {
    if events.contains(.writable) || connections[flow]?.isConnecting == true {
      step(flow) { $0.write(at: loop.now) }
    }
    guard let connection = connections[flow], events.contains(.readable) || events.hasFailure else { return }
    let (trunk, isGuest, isHandshake) = (connection.trunk, connection.guestUntil != nil, connection.isHandshaking)
    let began = isHandshake ? MonotonicClock.threadCPU() : .zero
    var messages: [[UInt8]] = []
    step(flow) { connection in
      connection.read(
        into: buffer, at: loop.now, message: { messages.append($0) },
        broken: { bytes in
          counts.drops[.framing].increment()
          messages.append(bytes)
        })
    }
    if isHandshake { handshakeBudget.spend(MonotonicClock.threadCPU() - began, at: loop.now) }
    for bytes in messages {
      if isGuest, !mayAsk(flow.remote.ip) {
        counts.drops[.guestRate].increment()
        continue
      }
      count(bytes, isOurs: false, flow.transport)
      tap(bytes, flow, false, trunk)
      deliver(.received(bytes, flow, trunk: trunk))
    }
  }

  /// Runs one step of a connection, and handles its outcome.
  private func step(_ flow: Flow, _ body: (inout TCPConnection) -> TCPConnection.Outcome) {
    guard var connection = connections.removeValue(forKey: flow) else { return }  // not copied while it is changed
    let before = connection.interest
    var outcome = body(&connection)
    if outcome == .continues, connection.hasUnsent, !connection.isConnecting { outcome = connection.write(at: loop.now) }
    connections[flow] = connection
    if outcome != .continues { return end(flow, outcome) }
    if connection.interest != before { try? loop.modify(connection.socket.fd, connection.interest) }
    armDeadline(connection.deadline)
  }

  private static func failure(_ flow: Flow) -> TransportMetrics.Failure { flow.transport == .tls ? .tls : .tcp }

  private func end(_ flow: Flow, _ outcome: TCPConnection.Outcome) {
    if let why = connections[flow]?.tlsFailure, outcome != .continues {
      counts.drops[.handshake].increment()
      if mayLog(&handshakeLoggedAt) { logger.notice("TLS failed", metadata: ["flow": "\(flow)", "why": "\(why)"]) }
    }
    if let fault = connections[flow]?.fault { counts.drops[fault].increment() }
    let noTLS: UserAgent.PeerFailure? = connections[flow]?.tlsFailure == nil || outcome == .continues ? nil : .noTLS
    let (peer, wasOpen) = (noTLS ?? connections[flow]?.peerFailure, connections[flow]?.isOpen == true)
    remove(flow)
    counts.failures[Self.failure(flow)].increment(by: outcome == .failed ? 1 : 0)
    fail(flow, peer, wasOpen: wasOpen)  // also an orderly close: transactions on it must not wait for an answer that cannot come
  }

  // MARK: listeners

  /// The time for accepting is used up: new connections wait in the kernel's backlog until there is more.
  private func pauseListeners() {
    guard let resumeTimer else { return }
    for listener in listeners { try? loop.modify(listener.fd, []) }
    loop.setTimer(resumeTimer, at: acceptBudget.time(of: Limits.acceptResumeShare))
  }

  func resumeListeners() {
    for listener in listeners { try? loop.modify(listener.fd, .readable) }
  }

  func remove(_ flow: Flow) {
    guard let connection = connections.removeValue(forKey: flow) else { return }
    loop.unregister(connection.socket.fd)
    countConnections()
  }

  func closeLate() {
    for (flow, connection) in connections where connection.deadline <= loop.now {
      if let lateness = connection.lateness { counts.drops[lateness].increment() }
      step(flow) { $0.expired(at: loop.now) }
    }
    armed = .distantFuture
    armDeadline(connections.values.map(\.deadline).min() ?? .distantFuture)
  }

  /// Brings the timer forward if necessary; when it fires early it checks all connections and sets itself again.
  private func armDeadline(_ deadline: Instant) {
    guard let deadlineTimer, deadline < armed else { return }
    armed = deadline
    loop.setTimer(deadlineTimer, at: deadline)
  }
}
