import Bytes
import Glibc
import HTTP
import Platform

/// Answers without a stated end.
extension HTTPServer {
  func begin(_ stream: any ResponseStream, _ connection: HTTPConnection, _ response: HTTPResponse) {
    // the token may have gone while the answer was made
    if let refusal = response.licence?.refusal() {
      return respond(connection, refusal.response, isHead: false, keepsAlive: false)
    }
    let client = response.licence?.client ?? ""
    if let leaving = streams.begin(connection.number, of: client, at: loop.now), let other = connections[leaving] {
      endStream(other, APIError(.tooMany, "another stream took the place of this one, which was idle for the longest time"))
    }
    connection.phase = .streaming
    (connection.stream, connection.licence, connection.appended) = (stream, response.licence, 0)
    // it has a place of its own: the share of its address is for requests
    if let counted = connection.counted, settings.makesRoom {
      admission.release(counted, at: loop.now)
      connection.counted = nil
    }
    setDeadline(connection, nil)
    send(connection, head(response, length: nil, keepsAlive: false).encoded + response.body)
    watch(connection)
  }

  /// Gives each stream whose client has taken all what it has now. True if one may have more.
  func feedStreams() -> Bool {
    var hasMore = false
    for number in streams.numbers {
      guard let connection = connections[number], let stream = connection.stream else {
        streams.end(number)
        continue
      }
      if let refusal = connection.licence?.refusal() {
        endStream(connection, refusal)
        continue
      }
      let unread = connection.queuedBytes + Self.unacknowledged(connection.socket.fd)
      guard streams.look(number, sent: connection.appended, unread: unread, at: loop.now) else {
        logger.notice(
          "a stream is closed: its client reads nothing",
          metadata: [
            "port": "\(settings.setting)", "token": "\(connection.licence?.client ?? "")", "address": "\(connection.address)",
            "unread_bytes": "\(unread)", "seconds": "\(Limits.unreadTime.milliseconds / 1_000)",
          ])
        drop(connection, nil)
        continue
      }
      guard connection.queuedBytes == 0 else { continue }
      guard let octets = stream.next() else {
        streams.end(number)
        connection.stream = nil
        close(connection)
        continue
      }
      guard !octets.isEmpty else { continue }
      send(connection, octets)
      hasMore = true
    }
    return hasMore
  }

  /// With its last message, which says why.
  private func endStream(_ connection: HTTPConnection, _ why: APIError) {
    logger.notice(
      "a stream is ended",
      metadata: [
        "port": "\(settings.setting)", "token": "\(connection.licence?.client ?? "")", "address": "\(connection.address)",
        "why": "\(why.message)",
      ])
    streams.end(connection.number)
    if let last = connection.stream?.last(why), !last.isEmpty { send(connection, last) }
    connection.stream = nil
    close(connection)
    // who reads nothing would keep the connection until its answer's time is over
    setDeadline(connection, loop.now + settings.closeTime)
  }

  /// Octets that the kernel has and the peer has not taken: it reads nothing while they do not become fewer.
  private static func unacknowledged(_ descriptor: Int32) -> Int {
    var count: Int32 = 0
    return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(max(0, count)) : 0
  }
}
