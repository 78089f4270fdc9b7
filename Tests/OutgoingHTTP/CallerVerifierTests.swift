import Foundation
import Logging
import Synchronization
import Testing
import TrunklinePlatform

@testable import OutgoingHTTP

/// The verify thread against a small verifier of the standard library.
@Suite(.enabled(if: Peer.python != nil, "no Python: `Scripts/install test` makes it"), .serialized) struct CallerVerifierTests {
  private func ask(_ verifier: CallerVerifier, _ to: String) async -> String? {
    await withCheckedContinuation { done in
      verifier.ask(CallerQuestion(identities: ["a.b.c;info=<https://x>;ppt=shaken"], from: "+15550001", to: to, date: "today")) {
        done.resume(returning: $0)
      }
    }
  }
  private func verifier(_ port: UInt16, timeout: Duration = .milliseconds(500)) throws -> CallerVerifier {
    try CallerVerifier(
      url: "http://127.0.0.1:\(port)/check", timeout: timeout, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  @Test func `the service's word counts: A, B or C with 200, and nothing else`() async throws {
    let peer = try Peer("verifier_peer.py")
    defer { peer.stop() }
    let verifier = try verifier(peer.port, timeout: .seconds(5))
    defer { verifier.stop() }
    #expect(await ask(verifier, "+1A") == "A")
    let question = try peer.request()
    #expect(question["path"] as? String == "/check" && question["type"] as? String == "application/json")
    #expect(question["identity"] as? [String] == ["a.b.c;info=<https://x>;ppt=shaken"] && question["date"] as? String == "today")
    #expect(question["from"] as? String == "+15550001" && question["to"] as? String == "+1A")
    #expect(await ask(verifier, "+1C") == "C")
    for to in ["+1Z", "+1no", "+1bad", "+1500", "+1big"] { #expect(await ask(verifier, to) == nil, "\(to)") }
  }

  @Test func `a service that is silent or not there gives nothing, in time, and the end of the thread answers who waits`()
    async throws
  {
    let peer = try Peer("verifier_peer.py")
    let patient = try verifier(peer.port, timeout: .seconds(20))
    let hasty = try verifier(peer.port)
    #expect(await ask(hasty, "+1never") == nil)
    let answered = Mutex<[String?]>([])
    patient.ask(CallerQuestion(identities: [], from: "", to: "+1never")) { answer in answered.withLock { $0.append(answer) } }
    patient.stop()
    #expect(answered.withLock { $0 } == [nil])
    peer.stop()
    #expect(await ask(hasty, "+1A") == nil)
    hasty.stop()
  }
}
