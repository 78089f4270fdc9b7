import Bytes
import Foundation
import Platform

/// One HTTP request to the admin endpoint; blocks, for the command line only.
struct AdminClient {
  struct Answer {
    var status: Int
    var bytes: [UInt8]
    var body: String { String(decoding: bytes, as: UTF8.self) }
  }
  struct Failure: Error, CustomStringConvertible { var description: String }

  static let timeoutSeconds = 5
  static let answerBytes = 16 << 20

  let address: SocketAddress
  let token: String?
  /// Seconds.
  var timeout = Self.timeoutSeconds

  func request(_ method: String, _ path: String) throws -> Answer {
    let fd = socket(address.ip.family == .v4 ? AF_INET : AF_INET6, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard fd >= 0 else { throw failure("cannot make a socket") }
    defer { close(fd) }
    var limit = timeval(tv_sec: timeout, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] { setsockopt(fd, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size)) }
    guard address.withSockaddr({ connect(fd, $0, $1) }) == 0 else {
      throw failure("cannot reach the gateway's admin endpoint at \(address)")
    }
    var head = "\(method) \(path) HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\nContent-Length: 0\r\n"
    if let token { head += "Authorization: Bearer \(token)\r\n" }
    try send(Array((head + "\r\n").utf8), fd)
    return try parse(receive(fd))
  }

  private func send(_ bytes: [UInt8], _ fd: Int32) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { throw failure("cannot send to \(address)") }
      rest = rest.dropFirst(count)
    }
  }

  private func receive(_ fd: Int32) throws -> [UInt8] {
    var all: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while all.count < Self.answerBytes {
      let count = recv(fd, &chunk, chunk.count, 0)
      if count < 0 { throw failure("no answer from \(address)") }
      if count == 0 { break }
      all += chunk[..<count]
      if Self.isComplete(all) { break }
    }
    return all
  }

  /// Servers may keep the connection open: the answer ends where Content-Length says.
  private static func isComplete(_ bytes: [UInt8]) -> Bool {
    guard let end = headEnd(bytes), let length = length(bytes[..<end]) else { return false }
    return bytes.count - end >= length
  }

  /// Where the body begins.
  private static func headEnd(_ bytes: [UInt8]) -> Int? {
    bytes.indices.dropLast(3).first { bytes[$0..<($0 + 4)].elementsEqual([13, 10, 13, 10]) }.map { $0 + 4 }
  }

  private static func length(_ head: ArraySlice<UInt8>) -> Int? {
    for line in String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    where line.lowercased().hasPrefix("content-length:") {
      return Int(line.dropFirst(15).trimmingCharacters(in: .whitespaces))
    }
    return nil
  }

  private func parse(_ bytes: [UInt8]) throws -> Answer {
    let line = String(decoding: bytes.prefix { $0 != 13 }.prefix(256), as: UTF8.self)
    let words = line.split(separator: " ")
    guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]), let end = Self.headEnd(bytes) else {
      throw Failure(description: "\(address) does not speak HTTP")
    }
    return Answer(status: status, bytes: Array(bytes[end...]))
  }

  private func failure(_ what: String) -> Failure { Failure(description: "\(what): \(String(cString: strerror(errno)))") }
}
