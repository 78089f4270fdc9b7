import Logging
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

@testable import TrunklineResolver

/// c-ares on a loop, without a name server of its own: `Tests/Interop` has one.
@Suite struct ResolverTests {
  /// Asks on a fresh loop and gives all answers. A server has 20 ms for the first try instead of 1.5 s: none here would answer later.
  private func answers(_ questions: [DNSQuestion], servers: [SocketAddress]) throws -> [DNSQuestion: DNSAnswer] {
    let loop = try EventLoop(name: "dns test")
    let got = Mutex<[DNSQuestion: DNSAnswer]>([:])
    let resolver = try Resolver(
      loop: loop, servers: servers, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, firstTime: .milliseconds(20)
    ) {
      question, answer in
      let all = got.withLock { got in
        got[question] = answer
        return got.count
      }
      if all == questions.count { loop.stop() }
    }
    LoopBound(resolver, to: loop).post { for question in questions { $0.ask(question) } }
    loop.run()
    resolver.close()
    return got.withLock { $0 }
  }

  @Test func `other name servers are said to whoever names them`() throws {
    let loop = try EventLoop(name: "dns test")
    let resolver = try Resolver(loop: loop, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) { _, _ in }
    let said = Mutex<[String]>([])
    resolver.serversChanged = { servers in said.withLock { $0 = servers } }
    LoopBound(resolver, to: loop).post { resolver in
      do { try resolver.restart(servers: [SocketAddress(.loopback, 5_353)]) } catch { Issue.record(error) }
      loop.stop()
    }
    loop.run()
    resolver.close()
    #expect(said.withLock { $0 } == ["127.0.0.1:5353"])
  }

  @Test func `this machine's own names come from its hosts file`() throws {
    let answers = try answers([DNSQuestion("localhost", .a)], servers: [])
    guard case .addresses(let found, _)? = answers.values.first else {
      Issue.record("\(answers)")
      return
    }
    #expect(found.contains(.loopback))
  }

  @Test func `a name server has 1.5 s for its first try`() { #expect(Limits.firstTime == .milliseconds(1_500)) }

  @Test func `where nobody answers, every question fails, and no thread waits`() throws {
    let refused = try answers(
      [DNSQuestion("a.example", .naptr), DNSQuestion("_sip._udp.a.example", .srv), DNSQuestion("x..y", .a)],
      servers: [SocketAddress(.loopback, 1)])
    #expect(refused.count == 3 && refused.values.allSatisfy { $0 == .failed || $0 == .none }, "\(refused)")
  }
}
