import Bytes
import HTTP

/// Answers that come in pieces.
extension HTTPServer {
  /// One without a stated end.
  func begin(_ stream: any ResponseStream, _ connection: HTTPConnection, _ response: HTTPResponse) {
    guard endless < Limits.streams else {
      return refuseRequest(connection, 503, "at most \(Limits.streams) streams at a time")
    }
    endless += 1
    connection.phase = .streaming
    connection.stream = .init(stream, .none)
    streams.insert(connection.number)
    setDeadline(connection, nil)
    send(connection, head(response, length: nil, keepsAlive: false).encoded + response.body)
    watch(connection)
  }

  /// A long one. HTTP/1.0 has no chunks: there the connection's end is the body's.
  func begin(
    whole stream: any ResponseStream, _ connection: HTTPConnection, _ response: HTTPResponse, _ exchange: HTTPConnection.Exchange
  ) {
    let keepsAlive = exchange.keepsAlive && !exchange.isOld
    connection.phase = .streaming
    connection.stream = .init(stream, exchange.isOld ? .none : .chunks(keepsAlive: keepsAlive))
    streams.insert(connection.number)
    setDeadline(connection, loop.now + Limits.answerTime)
    var head = head(response, length: nil, keepsAlive: keepsAlive)
    if !exchange.isOld { head.fields.append(.init("transfer-encoding", "chunked")) }
    send(connection, head.encoded)
    sendPiece(connection, response.body)
    watch(connection)
  }

  /// Gives each stream whose client has taken all what it has now. True if one may have more.
  func feedStreams() -> Bool {
    var hasMore = false
    for number in streams {
      guard let connection = connections[number], let stream = connection.stream else {
        streams.remove(number)
        continue
      }
      guard connection.queuedBytes == 0 else { continue }
      guard let octets = stream.source.next() else {
        finish(stream, connection)
        continue
      }
      guard !octets.isEmpty else { continue }
      sendPiece(connection, octets)
      if stream.source.hasEnd { setDeadline(connection, loop.now + Limits.answerTime) } else { hasMore = true }
    }
    return hasMore
  }

  private func sendPiece(_ connection: HTTPConnection, _ octets: [UInt8]) {
    guard let stream = connection.stream, !octets.isEmpty else { return }
    guard case .chunks = stream.coding else { return send(connection, octets) }
    send(connection, Array("\(String(octets.count, radix: 16))\r\n".utf8) + octets + [13, 10])
  }

  private func finish(_ stream: HTTPConnection.Stream, _ connection: HTTPConnection) {
    streams.remove(connection.number)
    endStream(of: connection)
    if stream.source.isBroken { return drop(connection, nil) }
    guard case .chunks(let keepsAlive) = stream.coding else { return close(connection) }
    send(connection, Array("0\r\n\r\n".utf8))
    guard keepsAlive else { return close(connection) }
    connection.phase = .request
    setDeadline(connection, loop.now + Limits.answerTime)
  }

  /// The connection has no stream any more, or is gone.
  func endStream(of connection: HTTPConnection) {
    if let stream = connection.stream, !stream.source.hasEnd { endless -= 1 }
    connection.stream = nil
  }
}
