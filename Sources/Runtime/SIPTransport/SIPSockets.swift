import Glibc
import Logging
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIP
import TrunklineSIPDialogs

/// The SIP sockets of the gateway: UDP, TCP and TLS listeners, and connections to trunks. Carries messages between them and a
/// `UserAgent`.
///
/// Belongs to the thread of its loop: make it before `run`, and use it only on that thread afterwards (the loop checks); others hold it as
/// `LoopBound`. Only
/// messages from addresses on the allow-list are read; all others are dropped unread and counted, and their connections are
/// closed at once. `deliver` gets whole messages (`.received`) and `.transportFailed`, never from within `send`.
///
///     let sockets = try SIPSockets(loop: loop, udp: [a], tcp: [a], trunks: list, logger: log) { input in control.handle(input) }
///     sockets.send(message)                       // from output.messages; UDP leaves at the end of the step, in one system call
///     let flow = sockets.flow(.udp, toward: remote)
///
/// A listener at all addresses answers from the address to which the request was sent: the flow's local one.
///
/// Limits: 64 connections per trunk and 1,024 in all; 512 KiB waiting per connection; 10 s to connect, 20 s for a message. Where
/// a trunk accepts any peer, an unauthenticated address has 4 connections for at most 60 s, and all of them together half of the
/// trunk's.
public final class SIPSockets {
  let loop: EventLoop
  let logger: Logger
  let deliver: (UserAgent.Input) -> Void
  let counts = TransportMetrics()
  var messageCounts = MessageCounts()
  var trunks: AllowList
  /// Called with every message received or sent, without TLS: its bytes, flow, whether it is ours, and the trunk. Must not block.
  public var tap: ([UInt8], Flow, Bool, String) -> Void = { _, _, _, _ in }
  private var udp: [UDPPort] = []
  private var tcp: [TCPListener] = []
  private var tls: [TCPListener] = []
  var serverTLS: TLSContext?
  /// By trunk.
  var clientTLS: [String: (context: TLSContext, settings: TLSClientSettings)] = [:]
  var connections: [Flow: TCPConnection] = [:]
  private var failures: [(flow: Flow, peer: UserAgent.PeerFailure?, wasOpen: Bool)] = []
  /// A nil `local`: there was no route.
  private var routes: [IPAddress: (local: IPAddress?, until: Instant)] = [:]
  /// Of listeners on loopback: whether a packet from there can reach the other address.
  private var ways: [IPAddress: (isOpen: Bool, until: Instant)] = [:]
  private var absent: Set<IPAddress> = []
  private var strangersLoggedAt = Instant.zero
  private var unsentLoggedAt = Instant.zero
  private var guestRates = SourceRates(perSource: Limits.guestMessagesPerSource, inAll: Limits.guestMessagesPerSecond)
  var guestConnections = SourceRates(perSource: Limits.guestConnectionsPerSecond, inAll: Limits.connectionsPerSecond)
  var connectionRates = SourceRates(perSource: Limits.connectionsPerSource, inAll: Limits.connectionsPerSecond)
  var handshakeRates = SourceRates(perSource: Limits.handshakesPerSource, inAll: Limits.connectionsPerSecond)
  /// Applies to connections accepted from now on; tests set a shorter one.
  var handshakeTime = Limits.handshakeTime
  var acceptBudget = TimeBudget(perSecond: Limits.acceptTime)
  var handshakeBudget = TimeBudget(perSecond: Limits.handshakeTimePerSecond)
  var shedLoggedAt = Instant.zero
  var handshakeLoggedAt = Instant.zero
  var reserve: Int32
  let buffer: UnsafeMutableRawBufferPointer  // owned; for reads from connections
  var armed = Instant.distantFuture
  var deadlineTimer: EventLoop.TimerID?
  private var failureTimer: EventLoop.TimerID?
  var resumeTimer: EventLoop.TimerID?
  private var pauseTimer: EventLoop.TimerID?
  private var pauseEnd = Instant.distantFuture
  private var isClosed = false

  /// Binds all listeners or none. A listener whose address the machine does not have yet is bound too, and receives as soon as
  /// the address exists. `settings`: the configuration's keys that errors name.
  public init(
    loop: EventLoop, udp udpAddresses: [SocketAddress], tcp tcpAddresses: [SocketAddress], tls tlsAddresses: [SocketAddress] = [],
    trunks: AllowList, logger: Logger, settings: (udp: String, tcp: String) = ("listen.sip.udp", "listen.sip.tcp"),
    deliver: @escaping (UserAgent.Input) -> Void
  ) throws(SystemError) {
    (self.loop, self.trunks, self.logger, self.deliver) = (loop, trunks, logger, deliver)
    buffer = .allocate(byteCount: Limits.readBytes, alignment: 16)
    reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)
    for address in udpAddresses { udp.append(try UDPPort(address, setting: settings.udp)) }
    for address in tcpAddresses { tcp.append(try TCPListener(bind: address, setting: settings.tcp, waitsForAddress: true)) }
    for address in tlsAddresses {
      tls.append(try TCPListener(bind: address, setting: "listen.sip.tls.address", waitsForAddress: true))
    }
    for port in udp {
      try loop.register(port.socket.fd, .readable) { [weak self] events in self?.udpReady(port, events) }
    }
    for listener in tcp {
      try loop.register(listener.fd, .readable) { [weak self] _ in self?.accept(listener, .tcp) }
    }
    for listener in tls {
      try loop.register(listener.fd, .readable) { [weak self] _ in self?.accept(listener, .tls) }
    }
    deadlineTimer = loop.addTimer("connections") { [weak self] in self?.closeLate() }
    failureTimer = loop.addTimer("failures") { [weak self] in self?.reportFailures() }
    resumeTimer = loop.addTimer("accept") { [weak self] in self?.resumeListeners() }
    pauseTimer = loop.addTimer("pauses") { [weak self] in self?.endPauses() }
    loop.addFlush { [weak self] in self?.flush() }
  }

  deinit {
    if reserve >= 0 { Glibc.close(reserve) }
    buffer.deallocate()
  }

  /// The bound addresses, with the real port if port 0 was requested.
  public var udpAddresses: [SocketAddress] { udp.map(\.socket.localAddress) }
  public var tcpAddresses: [SocketAddress] { tcp.map(\.localAddress) }
  public var tlsAddresses: [SocketAddress] { tls.map(\.localAddress) }
  var listeners: [TCPListener] { tcp + tls }
  public var metrics: [MetricFamily] { counts.families }
  /// How long datagrams have arrived faster than they are read: the datagram read now has waited in the kernel. On the loop's
  /// thread.
  public var backlog: Duration { udp.reduce(.zero) { max($0, loop.now - ($1.behindSince ?? loop.now)) } }

  /// Replaces the allow-list (SIGHUP). Open connections stay: a call may still use them.
  public func replaceTrunks(_ trunks: AllowList) {
    loop.preconditionOnThread()
    self.trunks = trunks
  }

  /// The flow of a request to `remote`: from the listener of that protocol and family, with a local address that the peer can
  /// reach. Nil without such a listener or route.
  public func flow(_ transport: TransportProtocol, toward remote: SocketAddress) -> Flow? {
    loop.preconditionOnThread()
    let bound =
      switch transport {
      case .udp: udpAddresses
      case .tcp: tcpAddresses
      case .tls: tlsAddresses
      }
    let fitting = bound.filter { $0.ip.family == remote.ip.family && !absent.contains($0.ip) && leaves($0, toward: remote) }
    guard let first = fitting.first else { return nil }
    let route = reachable(first, from: remote)?.ip
    let listener = fitting.first { $0.ip == route } ?? first
    return reachable(listener, from: remote).map { Flow(transport: transport, local: $0, remote: remote) }
  }

  /// Addresses or routes of the machine have changed: the route to each peer is looked up again. `absent`: addresses of listeners
  /// that the machine does not have now; no new message is sent from them.
  public func networkChanged(absent: Set<IPAddress>) {
    loop.preconditionOnThread()
    self.absent = absent
    routes.removeAll(keepingCapacity: true)
    ways.removeAll(keepingCapacity: true)
  }

  /// Sends a message on its flow. A failure is reported as `.transportFailed` in a later step.
  public func send(_ message: UserAgent.Output.Message) {
    loop.preconditionOnThread()
    guard !isClosed else { return }
    tap(message.bytes, message.flow, true, trunks.trunk(of: message.flow.remote) ?? "")
    switch message.flow.transport {
    case .udp:
      guard let port = udp.first(where: { Self.serves($0.socket.localAddress, local: message.flow.local) }) else {
        counts.drops[.noListener].increment()
        return fail(message.flow)
      }
      count(message.bytes, isOurs: true, .udp)
      port.send(message.bytes, message.flow, unreachable: { unreachable(port, $0, $1) }, failed: { sendFailed($0, $1) })
    case .tcp, .tls:
      count(message.bytes, isOurs: true, message.flow.transport)
      sendTCP(message)
    }
  }

  /// Closes everything; nothing is delivered afterwards.
  public func close() {
    loop.preconditionOnThread()
    guard !isClosed else { return }
    flush()
    isClosed = true
    for port in udp { loop.unregister(port.socket.fd) }
    for listener in tcp + tls { loop.unregister(listener.fd) }
    for flow in Array(connections.keys) {
      connections[flow]?.close()
      remove(flow)
    }
    if let deadlineTimer { loop.setTimer(deadlineTimer, at: nil) }
    for timer in [failureTimer, resumeTimer, pauseTimer] { if let timer { loop.setTimer(timer, at: nil) } }
    udp = []
    tcp = []
    tls = []
    failures = []
  }

  // MARK: UDP

  private func udpReady(_ port: UDPPort, _ events: IOEvents) {
    if events.hasFailure { port.drainErrors { unreachable(port, $0, $1) } }
    if events.contains(.readable) { read(port) }
  }

  private func read(_ port: UDPPort) {
    let refused = port.receive(
      at: loop.now,
      allowed: { source in trunkOrStranger(source, .udp) },
      receive: { bytes, from, own, trunk in
        // CRLF keep-alives (RFC 5626 §3.5.1 uses STUN on UDP, but peers send these) and empty datagrams
        guard bytes.count > 4 else { return counts.drops[.keepAlive].increment() }
        let spokenTo = own.map { SocketAddress($0, port.socket.localAddress.port) }
        guard let local = spokenTo ?? reachable(port.socket.localAddress, from: from) else { return }
        count(bytes, isOurs: false, .udp)
        let flow = Flow(transport: .udp, local: local, remote: from)
        tap(bytes, flow, false, trunk)
        deliver(.received(bytes, flow, trunk: trunk))
      },
      unreachable: { unreachable(port, $0, $1) })
    pause(port, after: refused)
  }

  /// Wake-ups cost time, drops do not: after datagrams of unlisted sources the socket pauses, so that the next ones are read
  /// together. A socket with more datagrams than one step reads is not paused.
  private func pause(_ port: UDPPort, after refused: Int) {
    guard let pauseTimer, let time = port.pause(after: refused) else {
      if port.isPaused { try? loop.modify(port.socket.fd, .readable) }
      port.isPaused = false
      return
    }
    if !port.isPaused { try? loop.modify(port.socket.fd, []) }
    port.isPaused = true
    guard loop.now + time < pauseEnd else { return }
    pauseEnd = loop.now + time
    loop.setTimer(pauseTimer, at: pauseEnd)
  }

  private func endPauses() {
    pauseEnd = .distantFuture
    for port in udp where port.isPaused { read(port) }
  }

  /// An ICMP error about a datagram of ours (RFC 3261 §18.4). Reported only for trunks, as we send to no other peers.
  private func unreachable(_ port: UDPPort, _ remote: SocketAddress, _ code: Int32) {
    guard trunks.trunk(of: remote) != nil, let local = reachable(port.socket.localAddress, from: remote) else { return }
    counts.failures[.udp].increment()
    fail(Flow(transport: .udp, local: local, remote: remote), UserAgent.PeerFailure(code))
  }

  private func sendFailed(_ flow: Flow, _ code: Int32) {
    // a full buffer is packet loss as usual on UDP: the transaction retransmits
    if code == EAGAIN || code == ENOBUFS { return counts.drops[.sendBuffer].increment() }
    counts.failures[.udp].increment()
    if mayLog(&unsentLoggedAt) {
      let why = SystemError("send udp to", address: flow.remote, code: code)
      logger.warning("a SIP message was not sent; it is sent again as if it had been lost", metadata: ["error": "\(why)"])
    }
    fail(flow, UserAgent.PeerFailure(code))
  }

  // MARK: both

  func count(_ bytes: [UInt8], isOurs: Bool, _ transport: TransportProtocol) {
    messageCounts.count(bytes, isOurs: isOurs, transport, in: counts.messages)
  }

  private func flush() {
    for port in udp { port.flush(unreachable: { unreachable(port, $0, $1) }, failed: { sendFailed($0, $1) }) }
  }

  /// Reports a failure in the next step, never from within `send`.
  func fail(_ flow: Flow, _ peer: UserAgent.PeerFailure? = nil, wasOpen: Bool = false) {
    guard !isClosed, failures.count < Limits.failuresPerStep, !failures.contains(where: { $0.flow == flow }) else { return }
    failures.append((flow, peer, wasOpen))
    if let failureTimer { loop.setTimer(failureTimer, at: loop.now) }
  }

  private func reportFailures() {
    let reported = failures
    failures.removeAll(keepingCapacity: true)
    for (flow, peer, wasOpen) in reported where !isClosed { deliver(.transportFailed(flow, peer, wasOpen: wasOpen)) }
  }

  func trunkOrStranger(_ source: SocketAddress, _ transport: TransportProtocol) -> String? {
    if let trunk = trunks.listed(source) { return trunk }
    guard let anyPeer = trunks.anyPeer else {
      counts.drops[.stranger].increment()
      if mayLog(&strangersLoggedAt) {
        logger.notice("SIP from unknown peer dropped: no trunk lists this address in peers", metadata: ["from": "\(source.ip)"])
      }
      return nil
    }
    guard mayAsk(source.ip) else {
      counts.drops[.guestRate].increment()
      return nil
    }
    return anyPeer
  }

  /// Whether a further message of an unlisted source is accepted in this second.
  func mayAsk(_ source: IPAddress) -> Bool { guestRates.consume(source, at: loop.now) }

  /// True once per interval: unlisted sources must not be able to fill the log.
  func mayLog(_ next: inout Instant) -> Bool {
    guard loop.now >= next else { return false }
    next = loop.now + Limits.logInterval
    return true
  }

  private static func serves(_ listener: SocketAddress, local: SocketAddress) -> Bool {
    guard listener.port == local.port else { return false }
    return listener.ip == local.ip || (listener.ip.isUnspecified && listener.ip.family == local.ip.family)
  }

  /// Packets from a loopback address do not leave the machine, unless its owner has enabled that (route_localnet).
  private func leaves(_ listener: SocketAddress, toward remote: SocketAddress) -> Bool {
    guard listener.ip.isLoopback, !remote.ip.isLoopback else { return true }
    if let known = ways[remote.ip], known.until > loop.now { return known.isOpen }
    let isOpen = routeAddress(toward: remote, from: listener.ip) != nil
    if ways.count >= Limits.routes { ways.removeAll(keepingCapacity: true) }
    ways[remote.ip] = (isOpen, loop.now + Limits.routeTime)
    return isOpen
  }

  /// A listener's address as `remote` sees it: for a wildcard one the address on the route.
  private func reachable(_ listener: SocketAddress, from remote: SocketAddress) -> SocketAddress? {
    guard listener.ip.isUnspecified else { return listener }
    if let known = routes[remote.ip], known.until > loop.now { return known.local.map { SocketAddress($0, listener.port) } }
    let local = routeAddress(toward: remote)
    if routes.count >= Limits.routes { routes.removeAll(keepingCapacity: true) }
    routes[remote.ip] = (local, loop.now + (local == nil ? Limits.noRouteTime : Limits.routeTime))
    return local.map { SocketAddress($0, listener.port) }
  }
}

extension UserAgent.PeerFailure {
  /// The peer's failure that a system error shows; nil: none.
  init?(_ code: Int32) {
    switch code {
    case ECONNREFUSED: self = .refused
    case EHOSTUNREACH, ENETUNREACH: self = .noRoute
    default: return nil
    }
  }
}
