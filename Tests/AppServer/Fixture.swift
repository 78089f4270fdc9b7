import AppServer
import AppSessions
import Foundation
import JSONWebToken
import Logging
import TestSockets
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

/// A control that welcomes every client and records the events.
final class Ears: @unchecked Sendable {
  weak var app: AppServer?
  private let condition = NSCondition()
  private var events: [SessionEvent] = []
  private var refusing = false
  private var hold: DispatchSemaphore?

  func received(_ event: SessionEvent) -> Bool {
    condition.lock()
    guard !refusing else {
      condition.unlock()
      return false
    }
    events.append(event)
    let hold = hold
    self.hold = nil
    condition.broadcast()
    if case .connected(_, let session, _, resumed: false) = event {
      app?.post(.welcome(session, calls: [], gone: [], live: []))
    }
    condition.unlock()
    hold?.wait()
    return true
  }

  /// Makes the next event block the app thread until the semaphore is signalled.
  func holdThread(with semaphore: DispatchSemaphore) { condition.withLock { hold = semaphore } }

  func refuseEvents(_ on: Bool) { condition.withLock { refusing = on } }

  /// Waits for an event, at most 10 s.
  func waitFor(_ what: (SessionEvent) -> Bool) -> SessionEvent? {
    let limit = Date(timeIntervalSinceNow: 10)
    condition.lock()
    defer { condition.unlock() }
    while true {
      if let found = events.first(where: what) { return found }
      if !condition.wait(until: limit) { return nil }
    }
  }
}

/// An app server on a free loopback port; `deinit` stops it.
final class Fixture {
  static let keys = { try! KeySet(.HS256, keyFile: Array("a secret of at least thirty-two bytes".utf8)) }()
  static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  let app: AppServer
  let ears = Ears()

  static var sessions: SessionSettings {
    SessionSettings(verifier: TokenVerifier(keys: keys, audience: "trunkline"), users: ["alice", "bob"])
  }

  init(_ change: (inout AppServer.Settings) -> Void = { _ in }) throws {
    var settings = AppServer.Settings(address: SocketAddress(.loopback, 0), sessions: Self.sessions)
    change(&settings)
    app = try AppServer.start(settings, logger: Self.logger) { [ears] in ears.received($0) }
    ears.app = app
  }

  deinit { app.stop() }

  func waitFor(_ what: (SessionEvent) -> Bool) -> SessionEvent? { ears.waitFor(what) }

  static func token(_ user: String = "alice", _ device: String = "d1", lives: Int64 = 3_600) -> String {
    let exp = Int64(Date().timeIntervalSince1970) + lives
    return try! TokenSigner(keys: keys).sign(Claims(sub: user, dev: device, aud: ["trunkline"], exp: exp))
  }

  func connect(receiveBuffer: Int32? = nil) throws -> TestSocket {
    let socket = try TestSocket(app.address, receiveBuffer: receiveBuffer)
    #expect(socket.upgrade() == 101)
    return socket
  }

  func login(_ user: String = "alice", _ device: String = "d1", receiveBuffer: Int32? = nil) throws -> TestSocket {
    let socket = try connect(receiveBuffer: receiveBuffer)
    socket.send(hello(Self.token(user, device), device))
    guard case .message(.welcome)? = socket.message()?.body else { throw TestTrouble() }
    return socket
  }

  func hello(_ token: String, _ device: String = "d1") -> ClientFrame {
    ClientFrame(.hello(Hello(.auth(token), device: .init(id: device))), id: Identifier(high: 1, low: 1))
  }

  func answersPing(_ socket: TestSocket) -> Bool {
    socket.send(ClientFrame(.ping))
    return socket.message()?.body == .message(.pong)
  }
}

struct TestTrouble: Error {}
let alice = DeviceKey(user: "alice", device: "d1")
let someCall = Identifier(high: 5, low: 5)

/// True if `body`, run 60 times, leaves no threads or descriptors behind. Other tests run in this process at the same time, so a
/// few more or less mean nothing, and a bad moment gets two more attempts.
func leavesNothing(_ body: () throws -> Void) rethrows -> Bool {
  func count() -> (threads: Int64, descriptors: Int) {
    (NamedThread.live.value, (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0)
  }
  for _ in 0..<3 {
    let before = count()
    for _ in 0..<60 { try body() }
    let after = count()
    if after.threads - before.threads < 30, after.descriptors - before.descriptors < 30 { return true }
  }
  return false
}
