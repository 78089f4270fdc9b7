import CallFlow
import Logging
import Synchronization
import Testing

@testable import Control

@Suite struct ControlLogTests {
  private final class Lines: Sendable {
    let kept = Mutex<[(message: String, metadata: Logger.Metadata)]>([])
  }
  private struct Keeper: LogHandler {
    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info
    init(_ lines: Lines) { self.lines = lines }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }
    func log(event: LogEvent) { lines.kept.withLock { $0.append((event.message.description, event.metadata ?? [:])) } }
  }

  @Test(arguments: [(true, "••••••••••11"), (false, "+15550001111")])
  func `a refused INVITE is logged with its Call-ID and the caller, masked unless the configuration says full`(
    masks: Bool, number: String
  ) throws {
    let lines = Lines()
    let surroundings = try Surroundings(
      hasPorts: false, logger: Logger(label: "test") { _ in Keeper(lines) }, masksNumbers: masks)
    surroundings.inbox.post(
      .app(.connected(.init(user: "alice", device: "phone"), .init("s"), .init(), resumed: false)))
    surroundings.receive(Surroundings.invite(to: "+15551230001"))
    #expect(surroundings.eventually { $0.sip.contains { $0.hasPrefix("SIP/2.0 503") } })
    surroundings.stop()
    let line = try #require(lines.kept.withLock { $0.first { $0.message == "call refused" } }).metadata
    #expect(line["reason"] == "mediaPorts" && line["trunk"] == "carrier" && line["direction"] == "in")
    #expect(line["number"] == "\(number)" && line["call"] == "a@127.0.0.1")
  }

  @Test func `no name of a value in the log has a space`() throws {
    let lines = Lines()
    let surroundings = try Surroundings(logger: Logger(label: "test") { _ in Keeper(lines) })
    surroundings.receive(Surroundings.invite(to: "+19990000000"))
    #expect(surroundings.eventually { $0.records.count == 1 })
    surroundings.stop()
    let names = lines.kept.withLock { $0 }.flatMap(\.metadata.keys)
    #expect(!names.isEmpty && names.allSatisfy { !$0.contains(" ") })
  }
}
