import Glibc
import Logging
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

@testable import TrunklineResolver

/// c-ares before a name server that does what it should not.
@Suite struct BadAnswerTests {
  /// A name server on loopback: `answer` makes a message of each question's.
  private final class BadServer: Sendable {
    let address: SocketAddress
    private let fds: [Int32]
    private let thread: NamedThread
    private let isOver: Flag
    /// Questions that came.
    let asked: Flag

    final class Flag: Sendable {
      let value = Atomic<Int>(0)
    }

    init(_ answer: @escaping @Sendable ([UInt8]) -> [UInt8]?) throws {
      let (datagrams, listener, port) = try Self.sockets()
      let (isOver, asked) = (Flag(), Flag())
      (fds, address, self.isOver, self.asked) = ([datagrams, listener], SocketAddress(.loopback, port), isOver, asked)
      thread = try NamedThread.start(name: "bad-names") {
        while isOver.value.load(ordering: .relaxed) == 0 {
          var polls = [
            pollfd(fd: datagrams, events: Int16(POLLIN), revents: 0), pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
          ]
          guard poll(&polls, 2, 20) > 0 else { continue }
          if polls[0].revents != 0 { Self.serve(datagrams: datagrams, asked, answer) }
          if polls[1].revents != 0 { Self.serve(listener: listener, answer) }
        }
      }
    }

    /// Of one port; that of the datagrams may be in use for connections.
    private static func sockets() throws -> (datagrams: Int32, listener: Int32, port: UInt16) {
      for _ in 0..<20 {
        let datagrams = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let port = try #require(bind(datagrams, 0))
        if bind(listener, port) != nil, listen(listener, 4) == 0 { return (datagrams, listener, port) }
        close(datagrams)
        close(listener)
      }
      throw NoPort()
    }
    private struct NoPort: Error {}

    /// The port that it has got.
    private static func bind(_ fd: Int32, _ port: UInt16) -> UInt16? {
      var address = sockaddr_in()
      (address.sin_family, address.sin_port) = (sa_family_t(AF_INET), port.bigEndian)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          Glibc.bind(fd, $0, length) == 0 && getsockname(fd, $0, &length) == 0
        }
      }
      return isBound ? UInt16(bigEndian: address.sin_port) : nil
    }

    private static func serve(datagrams fd: Int32, _ asked: Flag, _ answer: ([UInt8]) -> [UInt8]?) {
      var buffer = [UInt8](repeating: 0, count: 4_096)
      var from = sockaddr_in()
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeMutablePointer(to: &from) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { from in
          let count = recvfrom(fd, &buffer, buffer.count, 0, from, &length)
          guard count > 0 else { return }
          asked.value.add(1, ordering: .relaxed)
          if let reply = answer(Array(buffer[..<count])) { sendto(fd, reply, reply.count, 0, from, length) }
        }
      }
    }

    /// One question of a connection (RFC 1035 §4.2.2).
    private static func serve(listener fd: Int32, _ answer: ([UInt8]) -> [UInt8]?) {
      let peer = accept(fd, nil, nil)
      defer { close(peer) }
      var patience = timeval(tv_sec: 2, tv_usec: 0)
      setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
      var buffer = [UInt8](repeating: 0, count: 4_096)
      var question: [UInt8] = []
      while question.count < 2 || question.count < 2 + Int(question[0]) << 8 + Int(question[1]) {
        let count = recv(peer, &buffer, buffer.count, 0)
        guard count > 0 else { return }
        question += buffer[..<count]
      }
      guard let reply = answer(Array(question[2...])) else { return }
      let framed = [UInt8(reply.count >> 8), UInt8(reply.count & 255)] + reply
      _ = send(peer, framed, framed.count, Int32(MSG_NOSIGNAL))
    }

    func stop() {
      isOver.value.store(1, ordering: .relaxed)
      thread.join()
      for fd in fds { close(fd) }
    }
  }

  /// `carrier.example`, as labels.
  private static let name: [UInt8] = [7] + Array("carrier".utf8) + [7] + Array("example".utf8) + [0]

  /// A reply to `question`: its header and question, then these records.
  private static func reply(_ question: [UInt8], flags: UInt8 = 0x81, records: [[UInt8]]) -> [UInt8] {
    var out = Array(question[..<2]) + [flags, 0x80, 0, 1, UInt8(records.count >> 8), UInt8(records.count & 255), 0, 0, 0, 0]
    var end = 12
    while question[end] != 0 { end += Int(question[end]) + 1 }
    out += question[12..<(end + 5)]
    return records.reduce(out, +)
  }

  private static func record(
    _ owner: [UInt8] = [0xc0, 12], type: UInt8, time: UInt32 = 60, _ data: [UInt8]
  ) -> [UInt8] {
    owner + [0, type, 0, 1] + (0..<4).map { UInt8(truncatingIfNeeded: time >> (24 - 8 * UInt32($0))) }
      + [UInt8(data.count >> 8), UInt8(data.count & 255)] + data
  }

  /// What becomes of a question of `carrier.example`.
  private func ask(_ kind: DNSQuestion.Kind, _ answer: @escaping @Sendable ([UInt8]) -> [UInt8]?) throws -> (
    DNSAnswer?, asked: Int
  ) {
    let server = try BadServer(answer)
    defer { server.stop() }
    let loop = try EventLoop(name: "dns test")
    let got = Mutex<DNSAnswer?>(nil)
    let resolver = try Resolver(
      loop: loop, servers: [server.address], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
      firstTime: .milliseconds(100)
    ) { _, answer in
      got.withLock { $0 = answer }
      loop.stop()
    }
    LoopBound(resolver, to: loop).post { $0.ask(DNSQuestion("carrier.example", kind)) }
    loop.run()
    resolver.close()
    return (got.withLock { $0 }, server.asked.value.load(ordering: .relaxed))
  }

  @Test func `an answer to another question, or of another number, is no answer`() throws {
    let address = Self.record(type: 1, [192, 0, 2, 1])
    for change in [0, 13] {
      let (answer, asked) = try ask(.a) { question in
        var reply = Self.reply(question, records: [address])
        reply[change] ^= 1
        return reply
      }
      #expect(answer == .failed && asked >= 3, "octet \(change): \(String(describing: answer)) after \(asked)")
    }
  }

  @Test func `records of another name than the one asked for are not taken`() throws {
    let other: [UInt8] = [5] + Array("other".utf8) + [7] + Array("example".utf8) + [0]
    let address = try ask(.a) { Self.reply($0, records: [Self.record(other, type: 1, [192, 0, 2, 66])]) }
    #expect(address.0 == DNSAnswer.none || address.0 == .failed, "\(String(describing: address.0))")
    let server = try ask(.srv) {
      Self.reply($0, records: [Self.record(other, type: 33, [0, 1, 0, 1, 0x13, 0xc4] + other)])
    }
    #expect(server.0 == DNSAnswer.none || server.0 == .failed, "\(String(describing: server.0))")
    // behind an alias they are
    let alias = try ask(.srv) {
      Self.reply(
        $0,
        records: [
          Self.record(type: 5, time: 5, other), Self.record(other, type: 33, [0, 1, 0, 1, 0x13, 0xc4] + other),
        ])
    }
    #expect(
      alias.0 == .srv([SRVRecord(priority: 1, weight: 1, port: 5_060, target: "other.example")], timeToLive: .seconds(5)),
      "\(String(describing: alias.0))")
  }

  @Test func `an answer that is cut off anywhere fails, and one that says so is asked for by TCP`() throws {
    let records = (1...3).map { Self.record(type: 33, [0, $0, 0, 1, 0x13, 0xc4] + Self.name) }
    let questions = BadServer.Flag()
    let (truncated, _) = try ask(.srv) { question in
      let isCut = questions.value.add(1, ordering: .relaxed).oldValue == 0
      return isCut ? Self.reply(question, flags: 0x83, records: []) : Self.reply(question, records: records)
    }
    guard case .srv(let found, _)? = truncated else {
      Issue.record("\(String(describing: truncated))")
      return
    }
    #expect(found.map(\.priority) == [1, 2, 3])
    for cut in stride(from: 1, through: 90, by: 11) {
      let (answer, _) = try ask(.srv) { Array(Self.reply($0, records: records).dropLast(cut)) }
      #expect(answer == .failed, "\(cut) octets less: \(String(describing: answer))")
    }
  }

  @Test func `a hundred records count, each once, and an alias of itself ends`() throws {
    let (many, _) = try ask(.a) { question in
      Self.reply(question, records: (0..<100).map { Self.record(type: 1, [192, 0, 2, UInt8($0)]) })
    }
    guard case .addresses(let found, _)? = many else {
      Issue.record("\(String(describing: many))")
      return
    }
    #expect(Set(found).count == 100)
    let other: [UInt8] = [5] + Array("other".utf8) + [7] + Array("example".utf8) + [0]
    let loop = [Self.record(type: 5, other), Self.record(other, type: 5, Self.name)]
    for kind in [DNSQuestion.Kind.a, .srv, .naptr] {
      let (answer, _) = try ask(kind) { Self.reply($0, records: loop) }
      #expect(answer == DNSAnswer.none || answer == .failed, "\(kind): \(String(describing: answer))")
    }
  }

  /// As written, and as it counts.
  private static let times: [(time: UInt32, seconds: Int64)] = [
    (0, 0), (1, 1), (0x8000_0000, 0), (0xffff_ffff, 0), (0x7fff_ffff, 0x7fff_ffff),
  ]

  @Test(arguments: times)
  func `a time to live with its top bit set counts as zero (RFC 2181 §8)`(time: UInt32, seconds: Int64) throws {
    let (answer, _) = try ask(.a) { Self.reply($0, records: [Self.record(type: 1, time: time, [192, 0, 2, 1])]) }
    #expect(answer == .addresses([IPAddress(192, 0, 2, 1)], timeToLive: .seconds(seconds)))
    let (server, _) = try ask(.srv) {
      Self.reply($0, records: [Self.record(type: 33, time: time, [0, 1, 0, 1, 0x13, 0xc4] + Self.name)])
    }
    #expect(
      server == .srv([SRVRecord(priority: 1, weight: 1, port: 5_060, target: "carrier.example")], timeToLive: .seconds(seconds)))
  }
}
