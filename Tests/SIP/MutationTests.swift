import Testing
import TrunklineBytes
import TrunklineSIP

/// Mutated messages through every accessor: whatever the bytes, nothing traps and every error is a `ParseError`.
@Suite struct MutationTests {
  static let seeds = ["esc01", "intmeth", "longreq", "wsinv", "badinv01", "multi01", "mcl01"]

  @Test func `no mutation of a message traps`() throws {
    #if DEBUG
      let rounds = 15_000
    #else
      let rounds = 200_000
    #endif
    var corpus = [carrierInvite]
    for name in Self.seeds { corpus.append(try torture(name)) }
    var random = SplitMix64(seed: 4475)
    var readable = 0
    for _ in 0..<rounds { if exercise(mutate(corpus, &random)) { readable += 1 } }
    #expect(readable > rounds / 20, "the mutations are too coarse to reach the typed headers: \(readable)")
  }

  private func mutate(_ corpus: [[UInt8]], _ random: inout SplitMix64) -> [UInt8] {
    var bytes = corpus[Int(random.next() % UInt64(corpus.count))]
    let interesting = Array("\r\n \t\0;,:<>\"\\@=/%?[]0918".utf8) + [128, 255]
    for _ in 0..<(1 + random.next() % 4) where !bytes.isEmpty {
      let at = Int(random.next() % UInt64(bytes.count))
      switch random.next() % 6 {
      case 0: bytes[at] = UInt8(truncatingIfNeeded: random.next())
      case 1: bytes[at] = interesting[Int(random.next() % UInt64(interesting.count))]
      case 2: bytes.insert(interesting[Int(random.next() % UInt64(interesting.count))], at: at)
      case 3: bytes.removeSubrange(at..<min(bytes.count, at + Int(random.next() % 9)))
      case 4:
        bytes.insert(
          contentsOf: bytes[at..<min(bytes.count, at + Int(random.next() % 60))], at: Int(random.next() % UInt64(bytes.count)))
      default: if random.next() % 8 == 0 { bytes.removeSubrange(at...) }
      }
    }
    return bytes
  }

  /// Whether the message was good enough to be acted on.
  private func exercise(_ bytes: [UInt8]) -> Bool {
    var framer = StreamFramer()
    framer.append(bytes)
    while framer.next() != nil {}
    guard let message = try? Message(bytes) else { return false }
    let good = (try? message.checked()) != nil
    _ = try? message.vias
    for name in [HeaderName.from, .to, .contact, .route, .recordRoute, .pAssertedIdentity, .diversion] {
      for address in (try? message.addresses(name)) ?? [] {
        _ = message.displayName(of: address)
        _ = message.parameter("q", of: address)
        _ = address.uri.parameter("transport", in: message.bytes)
      }
    }
    for name in [HeaderName.supported, .require, message.fields.last?.name ?? .other] { _ = try? message.tokens(name) }
    for name in [HeaderName.wwwAuthenticate, message.fields.first?.name ?? .other] { _ = try? message.authentication(name) }
    _ = (message.reasons, message.privacy, message.retryAfterSeconds, message.expiresSeconds)
    _ = (try? message.accepts("application/sdp"), try? message.sessionBody)
    if message.defect == nil { _ = try? Message(message.written()) }
    return good
  }
}

func != (frame: StreamFramer.Frame?, none: _OptionalNilComparisonType) -> Bool { !(frame == none) }
