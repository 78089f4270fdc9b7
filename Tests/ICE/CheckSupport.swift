import Testing
import TrunklineBytes
import TrunklineSTUN

@testable import TrunklineICE

/// A connectivity check as a full agent sends it.
struct Check {
  var recipient = "gate"
  var sender = "appl"
  var password = "gatewaypasswordgateway"
  var nominates = false
  var isControlled = false
  var extra: [UInt8] = []

  func bytes(_ serial: UInt64 = 1) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 1)
    defer { buffer.deallocate() }
    var writer = STUNWriter(.request, transaction: TransactionID(high: 0, low: serial), into: buffer)
    writer.addUsername(recipient: recipient.utf8, sender: sender.utf8)
    writer.addPriority(100)
    if isControlled { writer.addControlled(tieBreaker: 5) } else { writer.addControlling(tieBreaker: 5) }
    if nominates { writer.addUseCandidate() }
    writer.addIntegrity(IntegrityKey(password: password))
    writer.addFingerprint()
    return Array(buffer[0..<(writer.finish() ?? 0)])
  }
}

extension LiteAgent {
  /// Handles a check; the answer's bytes beside the verdict.
  mutating func take(_ bytes: [UInt8], from: SocketAddress, at now: Instant = .zero) -> (verdict: Verdict, reply: [UInt8]) {
    let reply = UnsafeMutableRawBufferPointer.allocate(byteCount: 128, alignment: 1)
    defer { reply.deallocate() }
    let outcome = bytes.withUnsafeBytes { handle($0, from: from, at: now, reply: reply) }
    return (outcome.verdict, Array(reply[0..<outcome.replyCount]))
  }
}

func address(_ last: UInt8, _ port: UInt16 = 5000) -> SocketAddress { SocketAddress(IPAddress(192, 0, 2, last), port) }
func seconds(_ value: Double) -> Instant { Instant(nanoseconds: Int64(value * 1e9)) }
func withMessage<R>(_ bytes: [UInt8], _ body: (STUNMessage) throws -> R) throws -> R {
  try bytes.withUnsafeBytes { raw in try body(try STUNMessage(raw)) }
}
