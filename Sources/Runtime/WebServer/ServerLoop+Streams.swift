import Glibc
import HTTP
import TrunklineBytes
import TrunklinePlatform

/// Answers in pieces.
extension ServerLoop {
  /// Begins a stream without a stated end.
  func begin(_ stream: any ResponseStream, _ connection: HTTPConnection, _ response: HTTPResponse) {
    // Its client may have lost the right while the answer was made.
    if let refusal = response.licence?.refusal() {
      return respond(connection, refusal.response, isHead: false, keepsAlive: false)
    }
    let client = response.licence?.client ?? ""
    if let leaving = endless.begin(connection.number, of: client, at: loop.now), let other = connections[leaving] {
      endStream(other, HTTPProblem(.tooMany, "another stream replaced this one, which was idle for the longest time"))
    }
    connection.phase = .streaming
    (connection.stream, connection.licence, connection.appended) = (.init(stream, .none), response.licence, 0)
    // It has its own slot: the share of its address is for requests.
    if let counted = connection.counted, settings.makesRoom {
      admission.release(counted, at: loop.now)
      connection.counted = nil
    }
    setDeadline(connection, nil)
    send(connection, head(response, length: nil, keepsAlive: false).encoded + response.body)
    watch(connection)
  }

  /// Begins a long answer. HTTP/1.0 has no chunks: there the connection's end is the body's.
  func begin(
    whole stream: any ResponseStream, _ connection: HTTPConnection, _ response: HTTPResponse, _ exchange: HTTPConnection.Exchange
  ) {
    let keepsAlive = exchange.keepsAlive && !exchange.isOld
    connection.phase = .streaming
    connection.stream = .init(stream, exchange.isOld ? .none : .chunks(keepsAlive: keepsAlive))
    connection.licence = response.licence
    whole.insert(connection.number)
    setDeadline(connection, loop.now + Limits.answerTime)
    var head = head(response, length: nil, keepsAlive: keepsAlive)
    if !exchange.isOld { head.fields.append(.init("transfer-encoding", "chunked")) }
    send(connection, head.encoded)
    sendPiece(connection, response.body)
    watch(connection)
  }

  /// Feeds each stream whose client has read all that was written.
  func feedStreams() {
    for number in whole { feedWhole(number) }
    for number in endless.numbers { feedEndless(number) }
  }

  /// When streams must be fed at the latest, after their pieces are written as far as possible. Octets left in a queue wake the
  /// loop by themselves.
  var nextFeed: Instant? {
    guard !endless.isEmpty || !whole.isEmpty else { return nil }
    func isOwed(_ number: UInt64) -> Bool {
      connections[number].map { $0.queuedBytes == 0 && $0.stream?.mayHaveMore == true } ?? false
    }
    return whole.contains(where: isOwed) || endless.numbers.contains(where: isOwed) ? loop.now : loop.now + Limits.streamInterval
  }

  private func feedWhole(_ number: UInt64) {
    guard let connection = connections[number], let stream = connection.stream else {
      whole.remove(number)
      return
    }
    guard connection.queuedBytes == 0 else { return }
    // Its client lost the right: the connection is cut, so that no client accepts a part as the whole.
    guard connection.licence?.refusal() == nil else { return drop(connection, nil) }
    guard let octets = stream.source.next() else { return finish(stream, connection) }
    connection.stream?.mayHaveMore = !octets.isEmpty
    guard !octets.isEmpty else { return }
    sendPiece(connection, octets)
    setDeadline(connection, loop.now + Limits.answerTime)
  }

  private func feedEndless(_ number: UInt64) {
    guard let connection = connections[number], let stream = connection.stream else { return endless.end(number) }
    if let refusal = connection.licence?.refusal() { return endStream(connection, refusal) }
    let unread = connection.queuedBytes + Self.unacknowledged(connection.socket.fd)
    guard endless.look(number, sent: connection.appended, unread: unread, at: loop.now) else {
      logger.notice(
        "a stream is closed: its client does not read",
        metadata: [
          "port": "\(settings.setting)", "token": "\(connection.licence?.client ?? "")", "address": "\(connection.address)",
          "unread_bytes": "\(unread)", "seconds": "\(Limits.unreadTime.milliseconds / 1_000)",
        ])
      return drop(connection, nil)
    }
    guard connection.queuedBytes == 0 else { return }
    guard let octets = stream.source.next() else {
      endless.end(number)
      connection.stream = nil
      return close(connection)
    }
    connection.stream?.mayHaveMore = !octets.isEmpty
    if !octets.isEmpty { send(connection, octets) }
  }

  /// With its last message, which states why.
  private func endStream(_ connection: HTTPConnection, _ why: HTTPProblem) {
    logger.notice(
      "a stream is ended",
      metadata: [
        "port": "\(settings.setting)", "token": "\(connection.licence?.client ?? "")", "address": "\(connection.address)",
        "why": "\(why.detail)",
      ])
    endless.end(connection.number)
    if let last = connection.stream?.source.last(why), !last.isEmpty { send(connection, last) }
    connection.stream = nil
    close(connection)
    // A client that reads nothing would keep the connection until its answer's time is over.
    setDeadline(connection, loop.now + settings.closeTime)
  }

  /// Octets in the kernel that the peer has not acknowledged: while they do not decrease, it reads nothing.
  private static func unacknowledged(_ descriptor: Int32) -> Int {
    var count: Int32 = 0
    return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(max(0, count)) : 0
  }

  private func sendPiece(_ connection: HTTPConnection, _ octets: [UInt8]) {
    guard let stream = connection.stream, !octets.isEmpty else { return }
    guard case .chunks = stream.coding else { return send(connection, octets) }
    send(connection, Array("\(String(octets.count, radix: 16))\r\n".utf8) + octets + [13, 10])
  }

  private func finish(_ stream: HTTPConnection.Stream, _ connection: HTTPConnection) {
    whole.remove(connection.number)
    connection.stream = nil
    if stream.source.isBroken { return drop(connection, nil) }
    guard case .chunks(let keepsAlive) = stream.coding else { return close(connection) }
    send(connection, Array("0\r\n\r\n".utf8))
    guard keepsAlive else { return close(connection) }
    connection.phase = .request
    setDeadline(connection, loop.now + Limits.answerTime)
  }
}
