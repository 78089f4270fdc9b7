import Bytes
import Glibc
import Logging
import Platform
import SIPDialogs

/// TCP and TLS: taking, making, using and ending connections.
extension SIPSockets {
  func accept(_ listener: TCPListener, _ transport: TransportProtocol) {
    for _ in 0..<Limits.acceptsPerTurn {
      let socket: TCPSocket
      do throws(SystemError) {
        guard let next = try listener.accept() else { return }
        socket = next
      } catch {
        return shed(listener, error)
      }
      guard let trunk = trunkOrStranger(socket.remoteAddress, transport) else { continue }  // closed as `socket` goes
      guard let local = socket.localAddress, hasRoom(trunk) else {
        counts.drops[.connectionLimit].increment()
        continue
      }
      var session: TLSSession?
      if transport == .tls {
        session = serverTLS.flatMap { TLSSession($0, isServer: true) }
        guard session != nil else {
          counts.drops[.handshake].increment()
          continue
        }
      }
      add(
        TCPConnection(
          accepted: socket, flow: Flow(transport: transport, local: local, remote: socket.remoteAddress), trunk: trunk,
          tls: session,
          at: loop.now))
    }
  }

  /// Without descriptors the connection would stay in the backlog and wake the loop for ever: the reserve takes it and closes it.
  private func shed(_ listener: TCPListener, _ error: SystemError) {
    guard error.isOutOfDescriptors else { return logger.error("\(error)") }
    counts.drops[.descriptors].increment()
    if reserve >= 0 { Glibc.close(reserve) }
    _ = try? listener.accept()
    reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)
    if mayTell(&shedTold) { logger.error("SIP connection refused: \(error)") }
  }

  private func hasRoom(_ trunk: String) -> Bool {
    connections.count < Limits.connections
      && connections.values.reduce(0) { $0 + ($1.trunk == trunk ? 1 : 0) } < Limits.connectionsPerTrunk
  }

  func sendTCP(_ message: Output.Message) {
    // the flow's own connection, else any other with that peer, else a new one
    var flow = message.flow
    if connections[flow] == nil, let other = connections.first(where: { Self.serves($0.key, flow) })?.key { flow = other }
    if connections[flow] == nil {
      guard connect(flow) else { return fail(flow) }
    }
    guard connections[flow]?.append(message.bytes) == true else {
      counts.drops[.slowReader].increment()
      return end(flow, .failed)
    }
    guard connections[flow]?.isConnecting == false else { return }
    step(flow) { $0.write(at: loop.now) }
  }

  private static func serves(_ connection: Flow, _ wanted: Flow) -> Bool {
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
        TLSSession(
          tls.context, isServer: false, host: tls.settings.host, verifying: tls.settings.verifies ? tls.settings.host : nil)
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
    counts.connections.set(Int64(connections.count))
    armDeadline(connection.deadline)
    return true
  }

  private func connectionReady(_ flow: Flow, _ events: IOEvents) {
    if events.contains(.writable) || connections[flow]?.isConnecting == true {
      step(flow) { $0.write(at: loop.now) }
    }
    guard let trunk = connections[flow]?.trunk, events.contains(.readable) || events.hasFailure else { return }
    var messages: [[UInt8]] = []
    step(flow) { connection in
      connection.read(
        into: buffer, at: loop.now, message: { messages.append($0) },
        broken: { bytes in
          counts.drops[.framing].increment()
          messages.append(bytes)
        })
    }
    for bytes in messages {
      count(bytes, isOurs: false, flow.transport)
      tap(bytes, flow, false, trunk)
      deliver(.received(bytes, flow, trunk: trunk))
    }
  }

  /// One step of a connection, and what follows from it.
  private func step(_ flow: Flow, _ body: (inout TCPConnection) -> TCPConnection.Outcome) {
    guard var connection = connections.removeValue(forKey: flow) else { return }  // not copied while it is changed
    let before = connection.interest
    var outcome = body(&connection)
    if outcome == .goesOn, connection.hasUnsent, !connection.isConnecting { outcome = connection.write(at: loop.now) }
    connections[flow] = connection
    if outcome != .goesOn { return end(flow, outcome) }
    if connection.interest != before { try? loop.modify(connection.socket.fd, connection.interest) }
    armDeadline(connection.deadline)
  }

  private static func failure(_ flow: Flow) -> TransportMetrics.Failure { flow.transport == .tls ? .tls : .tcp }

  private func end(_ flow: Flow, _ outcome: TCPConnection.Outcome) {
    if let why = connections[flow]?.tlsFailure, outcome != .goesOn {
      counts.drops[.handshake].increment()
      if mayTell(&handshakeTold) { logger.notice("TLS failed", metadata: ["flow": "\(flow)", "why": "\(why)"]) }
    }
    remove(flow)
    counts.failures[Self.failure(flow)].increment(by: outcome == .failed ? 1 : 0)
    fail(flow)  // also an orderly close: transactions on it must not wait for an answer that cannot come
  }

  func remove(_ flow: Flow) {
    guard let connection = connections.removeValue(forKey: flow) else { return }
    loop.unregister(connection.socket.fd)
    counts.connections.set(Int64(connections.count))
  }

  func closeLate() {
    for (flow, connection) in connections where connection.deadline <= loop.now {
      if connection.isLate { counts.drops[.framing].increment() }
      if connection.isHandshaking, !connection.isConnecting { counts.drops[.handshake].increment() }
      step(flow) { $0.expired(at: loop.now) }
    }
    armed = .distantFuture
    armDeadline(connections.values.map(\.deadline).min() ?? .distantFuture)
  }

  /// Brings the timer forward if need be; one that fires early looks at all connections and sets itself anew.
  private func armDeadline(_ deadline: Instant) {
    guard let deadlineTimer, deadline < armed else { return }
    armed = deadline
    loop.setTimer(deadlineTimer, at: deadline)
  }
}
