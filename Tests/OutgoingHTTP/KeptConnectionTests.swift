import Foundation
import HTTP
import Logging
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

@testable import OutgoingHTTP

/// Which connection a request goes over, with a foreign HTTP/2 server.
@Suite(.enabled(if: Peer.python != nil, "no Python with h2: `Scripts/install test` makes it"), .serialized)
struct KeptConnectionTests {
  /// Requests on their own loop, and what they logged.
  private final class Desk {
    let peer: Peer
    let loop: EventLoop
    let transfers: HTTPTransfers
    let lines = Lines()

    init() throws {
      peer = try Peer()
      loop = try EventLoop(name: "kept")
      let lines = lines
      transfers = HTTPTransfers(
        loop: loop, tls: TLSFiles(authorities: peer.certificate), logger: Logger(label: "t") { _ in lines })
      _ = curlIsReady
    }

    /// Sends all at once and waits until all have ended; returns the statuses, nil for a failure.
    func ask(_ paths: [String], timeout: Duration = .seconds(20), goesAgain: Bool = false) -> [Int?] {
      var answers = [Int?](repeating: nil, count: paths.count)
      var open = paths.count
      for (index, path) in paths.enumerated() {
        let request = HTTPClientRequest(
          connection: "peer", url: "https://127.0.0.1:\(peer.port)/3/device/\(path)", headers: [], body: [1],
          timeout: path.hasPrefix("888") ? timeout : .seconds(20), goesAgain: goesAgain)
        transfers.start(request) { [loop] result in
          answers[index] = (try? result.get())?.status
          open -= 1
          if open == 0 { loop.stop() }
        }
      }
      loop.run()
      return answers
    }

    func connections(_ count: Int) throws -> [Int] { try (0..<count).map { _ in try peer.request()["connection"] as? Int ?? 0 } }

    func stop() {
      transfers.close()
      peer.stop()
    }
  }

  final class Lines: LogHandler, @unchecked Sendable {
    let texts = Mutex<[String]>([])
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }
    func log(event: LogEvent) { texts.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") } }
  }

  @Test func `a connection that leaves a request without an answer, and all others too, is not asked again`() throws {
    let desk = try Desk()
    defer { desk.stop() }
    #expect(desk.ask(["200"]) == [200])
    #expect(desk.ask(["888"], timeout: .milliseconds(300)) == [nil])
    #expect(desk.ask(["200"]) == [200])
    #expect(try desk.connections(3) == [1, 1, 2])
  }

  @Test func `one that answers others is kept`() throws {
    let desk = try Desk()
    defer { desk.stop() }
    #expect(desk.ask(["200"]) == [200])
    // the second is answered while the first waits
    #expect(desk.ask(["888", "200"], timeout: .seconds(1)) == [nil, 200])
    #expect(desk.ask(["200"]) == [200])
    #expect(try desk.connections(4) == [1, 1, 1, 1])
  }

  @Test
  func `a connection that had served breaks without an answer: the request is repeated over a new one, and the log says so`()
    throws
  {
    let desk = try Desk()
    defer { desk.stop() }
    #expect(desk.ask(["200"]) == [200])
    #expect(desk.ask(["999"], goesAgain: true) == [nil], "the new one breaks as well: no third time")
    #expect(try desk.connections(3) == [1, 1, 2])
    let said = desk.lines.texts.withLock { $0 }
    #expect(
      said.count == 1 && said[0].contains("a connection stalled") && said[0].contains("127.0.0.1:\(desk.peer.port)"),
      "\(said)")
    #expect(!said.joined().contains("device"))
    // a caller that retries by itself gets the failure
    #expect(desk.ask(["200"]) == [200])
    #expect(desk.ask(["999"]) == [nil])
    #expect(try desk.connections(2) == [3, 3])
  }
}
