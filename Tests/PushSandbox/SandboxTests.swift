import Foundation
import JSONWebToken
import Logging
import OutgoingHTTP
import PushPolicy
import PushSandbox
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

/// The stand-in against our own sender over real sockets, TLS and HTTP/2.
@Suite(.serialized) struct SandboxTests {
  final class Reports: Sendable {
    private let all = Mutex<[PushReport]>([])
    private let event: EventDescriptor
    init() throws { event = try EventDescriptor() }
    func add(_ report: PushReport) {
      all.withLock { $0.append(report) }
      event.signal()
    }
    var count: Int { all.withLock { $0.count } }
    func wait(_ count: Int) -> [PushReport] {
      let end = MonotonicClock.now() + .seconds(20)
      while all.withLock({ $0.count }) < count, MonotonicClock.now() < end {
        _ = event.wait(milliseconds: 200)
        event.clear()
      }
      return all.withLock { $0 }
    }
  }

  struct Bench {
    let sandbox: PushSandbox
    let sender: PushSender
    let reports: Reports
    let folder: URL

    init(answers: [String] = [], topics: Set<String> = [], checked: Bool = true) throws {
      let loopback = try #require(SocketAddress("127.0.0.1:0"))
      var options = PushSandbox.Options(address: loopback, appsAddress: loopback)
      options.answers = try answers.map { try #require(SandboxAnswer($0)) }
      options.rules = SandboxRules(key: checked ? try Self.keys(TestKeys.p256) : nil, topics: topics)
      sandbox = try PushSandbox(options) { _ in }
      folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-sandbox-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let file = folder.appendingPathComponent("cert.pem")
      try sandbox.certificate.write(to: file, atomically: true, encoding: .utf8)
      let reports = try Reports()
      self.reports = reports
      sender = try PushSender(
        providers: try Self.providers(sandbox, TestKeys.p256), tls: TLSFiles(authorities: file.path),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      ) { reports.add($0) }
    }

    static func keys(_ pem: String) throws -> KeySet { try KeySet(.ES256, keyFile: Array(pem.utf8)) }

    static func providers(_ sandbox: PushSandbox, _ pem: String, keyID: String = "K1") throws -> PushProviders {
      let signer = try TokenSigner(keys: try keys(pem), kid: keyID)
      let endpoint = ("127.0.0.1", sandbox.address.port)
      return PushProviders([
        APNsProvider(.key(signer, keyID: keyID, team: "T1"), production: endpoint, sandbox: endpoint),
        FCMProvider(
          project: "p1", account: "a@example.org", signer: signer, service: endpoint, tokens: (endpoint.0, endpoint.1, "/token")),
      ])
    }

    func wake(_ device: String, call: UInt64 = 7, _ target: PushTarget? = nil) {
      let id = Identifier(high: 7, low: call)
      sender.wake(
        PushKey(call: id, user: "u", device: device),
        target ?? PushTarget(.apns, token: Self.token, topic: "org.example.app.voip"),
        CallPush(call: id, deadline: 1, handle: "+15550001", name: "Jane", gateway: "wss://gw", wake: "w\(call)"),
        deadline: MonotonicClock.now() + .seconds(45))
    }
    static let token = String(repeating: "0b", count: 32)

    func stop() {
      sender.stop()
      sandbox.stop()
      try? FileManager.default.removeItem(at: folder)
    }
  }

  /// An app that waits on the plain port.
  final class App {
    private let socket: Int32
    private var bytes: [UInt8] = []

    init(_ sandbox: PushSandbox, token: String) throws {
      let client = try TCPSocket(connect: sandbox.appsAddress)
      socket = dup(client.fd)
      _ = fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK)
      var poll = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
      _ = Glibc.poll(&poll, 1, 5_000)
      let line = Array("{\"token\":\"\(token)\"}\n".utf8)
      _ = line.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, 0) }
    }
    deinit { close(socket) }

    /// The next push, at most 10 s away.
    func push() throws -> [String: Any] {
      while !bytes.contains(10) {
        var poll = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&poll, 1, 10_000) > 0 else { return [:] }
        var buffer = [UInt8](repeating: 0, count: 8_192)
        let count = recv(socket, &buffer, buffer.count, 0)
        guard count > 0 else { return [:] }
        bytes.append(contentsOf: buffer[..<count])
      }
      let end = try #require(bytes.firstIndex(of: 10))
      defer { bytes.removeSubrange(...end) }
      return try JSONSerialization.jsonObject(with: Data(bytes[..<end])) as? [String: Any] ?? [:]
    }
  }

  @Test func `INC-9: a push reaches the app that waits for it, call id and wake token inside`() throws {
    let bench = try Bench()
    defer { bench.stop() }
    let app = try App(bench.sandbox, token: Bench.token)
    // The app's line and the push travel on two connections: the first push may be too early, as with a real app.
    var push: [String: Any] = [:]
    for attempt in 1...5 where push.isEmpty {
      bench.wake("d\(attempt)")
      _ = bench.reports.wait(attempt)
      if attempt == 1 || push.isEmpty { push = try app.push() }
    }
    let payload = try #require(push["payload"] as? [String: Any])
    #expect(push["service"] as? String == "apns")
    #expect(payload["call"] as? String == Identifier(high: 7, low: 7).description && payload["wake"] as? String == "w7")
    #expect(bench.reports.wait(1).allSatisfy { $0.outcome == .accepted })
  }

  @Test func `FCM: the access token is fetched and the data message arrives`() throws {
    let bench = try Bench()
    defer { bench.stop() }
    bench.wake("a1", PushTarget(.fcm, token: "fcm-token"))
    #expect(bench.reports.wait(1).map(\.outcome) == [.accepted])
  }

  @Test(
    arguments: [
      (["410"], "Unregistered", 1), (["400"], "BadDeviceToken", 1), (["403"], "InvalidProviderToken", 1),
      (["429"], "TooManyRequests", 1),
      (["503", "real"], "accepted", 2), (["goaway", "real"], "accepted", 2), (["drop", "real"], "accepted", 2),
      (["413", "real"], "accepted", 2),
      (["500", "500"], "InternalServerError", 2), (["delay:50"], "accepted", 1),
    ] as [([String], String, Int)])
  func `it answers as it is told to`(_ answers: [String], _ reason: String, _ attempts: Int) throws {
    let bench = try Bench(answers: answers)
    defer { bench.stop() }
    bench.wake("d1")
    let report = try #require(bench.reports.wait(1).first)
    #expect(report.reason == reason && report.attempts == attempts)
  }

  @Test func `TOK-4: a token signed by another key, and a topic that does not exist, are refused by name`() throws {
    let bench = try Bench(topics: ["org.example.other.voip"])
    defer { bench.stop() }
    bench.wake("d1")
    #expect(bench.reports.wait(1).first?.reason == "TopicDisallowed")
    bench.sender.replace(try Bench.providers(bench.sandbox, TestKeys.other, keyID: "K2"))
    bench.wake("d2")
    #expect(bench.reports.wait(2).last?.reason == "InvalidProviderToken")
  }

  @Test func `reordered pushes reach the app the other way round`() throws {
    let bench = try Bench(answers: ["reorder", "real"])
    defer { bench.stop() }
    let app = try App(bench.sandbox, token: Bench.token)
    bench.wake("d1", call: 1)
    _ = bench.reports.wait(1)
    bench.wake("d1", call: 2)
    _ = bench.reports.wait(2)
    let order = try (0..<2).map { _ in (try app.push()["payload"] as? [String: Any])?["wake"] as? String }
    #expect(order == ["w2", "w1"])
  }

  @Test func `what is no TLS or no HTTP/2 is closed, and the next client is served`() throws {
    let bench = try Bench()
    defer { bench.stop() }
    for junk in ["GET / HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}\u{0}\u{5}hello", String(repeating: "x", count: 70_000)] {
      let client = try TCPSocket(connect: bench.sandbox.address)
      var poll = pollfd(fd: client.fd, events: Int16(POLLOUT), revents: 0)
      _ = Glibc.poll(&poll, 1, 5_000)
      _ = try Array(junk.utf8).withUnsafeBytes { try client.write($0) }
    }
    bench.wake("d1")
    #expect(bench.reports.wait(1).map(\.outcome) == [.accepted])
  }
}
