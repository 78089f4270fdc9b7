import Glibc
import TrunklineBytes
import TrunklinePlatform

/// Accepting connections, and making room for them.
extension ServerLoop {
  func accept() {
    guard let listener else { return }
    for _ in 0..<Limits.acceptsPerStep {
      do throws(SystemError) {
        guard let socket = try listener.accept() else { return }
        accept(socket)
      } catch {
        guard error.isOutOfDescriptors else {
          return logger.error("a connection was not accepted", metadata: ["about": "\(error)"])
        }
        shed(listener, error)
      }
    }
  }

  /// Without descriptors a connection would stay in the backlog and wake the loop for ever. The oldest connection without a
  /// request is closed; if there is none, the new one is closed by way of the reserve.
  private func shed(_ listener: TCPListener, _ error: SystemError) {
    metrics.refused[.descriptors].increment()
    if mayLog() { logger.error("connection refused: \(error)", metadata: ["port": "\(settings.setting)"]) }
    if dropOldestSilent() { return }
    if reserve >= 0 { Glibc.close(reserve) }
    _ = try? listener.accept()
    reserve = open("/dev/null", O_RDONLY | O_CLOEXEC)
  }

  private func accept(_ socket: TCPSocket) {
    let peer = socket.remoteAddress.ip.unmapped
    if silentCount >= max(1, settings.connections / 2) { evict() }
    guard hasRoom() else { return refuse(.tooMany, peer) }
    let isProxy = settings.proxies.contains { $0.contains(peer) }
    if !isProxy, let refusal = admit(peer) { return refuse(refusal, peer) }
    var stream: TLSStream?
    if let tls {
      stream = TLSStream(tls, descriptor: socket.fd)
      guard stream != nil else {
        if !isProxy { admission.release(peer, at: loop.now) }
        return refuse(.handshake, peer)
      }
    }
    lastNumber += 1
    let connection = HTTPConnection(
      number: lastNumber, socket: socket, tls: stream, peer: peer, isProxy: isProxy, bodyBytes: settings.bodyBytes,
      hasSink: settings.hasSink, at: loop.now)
    connection.counted = isProxy ? nil : peer
    do throws(SystemError) {
      try loop.register(socket.fd, .readable) { [unowned self, unowned connection] events in ready(connection, events) }
    } catch {
      if !isProxy { admission.release(peer, at: loop.now) }
      return refuse(.descriptors, peer)
    }
    connections[connection.number] = connection
    waiting.insert(connection.number)
    silent.append(connection.number)
    silentCount += 1
    metrics.connections.set(Int64(connections.count))
    // Its first octets are there (TCP_DEFER_ACCEPT). Read now: of many that come at once, those accepted first would count as silent
    // and be closed for the others.
    ready(connection, .readable)
  }

  /// Whether there is room for one more connection, whose client is not known yet.
  private func hasRoom() -> Bool {
    guard settings.makesRoom else { return connections.count < settings.connections || evict() }
    let strangers = connections.values.count { !$0.isTrusted && $0.phase != .streaming }
    if strangers >= settings.connections - settings.reserved { return dropIdlest { !$0.isTrusted } }
    return connections.count < settings.connections || dropIdlest { _ in true }
  }

  private func admit(_ peer: IPAddress) -> ConnectionRefusal? {
    let refusal = admission.admit(peer, at: loop.now)
    guard refusal == .tooManyFromAddress, settings.makesRoom, dropIdlest({ Self.areNeighbours($0.counted, peer) }) else {
      return refusal
    }
    return admission.admit(peer, at: loop.now)
  }

  /// Whether two addresses share one limit.
  private static func areNeighbours(_ a: IPAddress?, _ b: IPAddress) -> Bool {
    guard let a, a.family == b.family else { return false }
    return a.family == .v4 ? a == b : a.high >> 16 == b.high >> 16
  }

  /// Closes, of the matching connections that wait for nothing of ours, the one without a request for the longest time; those
  /// with good credentials last.
  private func dropIdlest(_ fits: (HTTPConnection) -> Bool) -> Bool {
    let idle = connections.values.filter { connection in
      let waits = [.handshaking, .request].contains(connection.phase) || connection.hasShutDown
      return waits && connection.webSocket == nil && fits(connection)
    }
    let leaving = idle.min { a, b in
      (a.isTrusted ? 1 : 0, a.served, a.number) < (b.isTrusted ? 1 : 0, b.served, b.number)
    }
    guard let leaving else { return false }
    drop(leaving, nil)
    metrics.refused[.silent].increment()
    return true
  }

  func refuse(_ why: ConnectionRefusal, _ peer: IPAddress) {
    metrics.refused[why].increment()
    guard mayLog() else { return }
    logger.notice(
      "connection refused", metadata: ["port": "\(settings.setting)", "why": "\(why.rawValue)", "address": "\(peer)"])
  }

  /// Limits the log to one line per interval; the counters contain all.
  func mayLog() -> Bool {
    guard loop.now - refusalsLoggedAt >= Limits.logInterval || refusalsLoggedAt == .zero else { return false }
    refusalsLoggedAt = loop.now
    return true
  }

  @discardableResult private func evict() -> Bool {
    guard dropOldestSilent() else { return false }
    metrics.refused[.silent].increment()
    return true
  }

  private func dropOldestSilent() -> Bool {
    while silentHead < silent.count {
      let number = silent[silentHead]
      silentHead += 1
      guard let connection = connections[number], connection.isSilent else { continue }
      drop(connection, nil)
      return true
    }
    return false
  }

  /// A complete request arrived.
  func noLongerSilent(_ connection: HTTPConnection) {
    guard connection.isSilent else { return }
    connection.isSilent = false
    silentCount -= 1
    trimSilent()
  }

  private func trimSilent() {
    while silentHead < silent.count, connections[silent[silentHead]]?.isSilent != true { silentHead += 1 }
    // Compacted when half is unused: constant work per connection, and a list about as long as the connections.
    guard silentHead > 1_024, silentHead > silent.count / 2 else { return }
    silent.removeFirst(silentHead)
    silentHead = 0
  }

  /// Removes a closed connection. The delegate is notified of a WebSocket's end, unless it was before.
  func drop(_ connection: HTTPConnection, _ code: UInt16?) {
    guard connections.removeValue(forKey: connection.number) != nil else { return }
    loop.unregister(connection.socket.fd)
    waiting.remove(connection.number)
    dirty.remove(connection.number)
    endless.end(connection.number)
    whole.remove(connection.number)
    connection.stream = nil
    if connection.isSilent {
      connection.isSilent = false
      silentCount -= 1
      trimSilent()
    }
    if let exchange = connection.exchange { exchanges[exchange.number] = nil }
    if let counted = connection.counted { admission.release(counted, at: loop.now) }
    metrics.connections.set(Int64(connections.count))
    if connection.webSocket != nil { forget(connection, code) }
  }

  /// Behind a proxy the address that it names replaces the proxy's own (the last one: the client itself may have written those
  /// before it). False if that address may not have another connection.
  func countForwarded(_ connection: HTTPConnection, _ forwarded: [String]) -> Bool {
    guard connection.isProxy, let text = forwarded.last,
      let address = IPAddress(text) ?? SocketAddress(text)?.ip, address.unmapped != connection.counted
    else { return true }
    if let counted = connection.counted { admission.release(counted, at: loop.now) }
    connection.counted = nil
    if let refusal = admission.admit(address.unmapped, at: loop.now) {
      refuse(refusal, address)
      return false
    }
    connection.counted = address.unmapped
    return true
  }
}
