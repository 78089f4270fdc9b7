import Testing
import TrunklineBytes
import TrunklineSTUN

@testable import TrunklineTURN

/// What a server, or a sender that claims to be one, may send: nothing of it traps, and nothing that is forged has an effect.
@Suite struct TURNBadInputTests {
  @Test func `answers without our integrity have no effect once there are credentials`() throws {
    let rig = TURNRig()
    rig.start()
    rig.receive(rig.challenge(try rig.sent()))
    let request = try rig.sent()
    let forger = IntegrityKey(password: "another")
    rig.receive(rig.answer(request, isSigned: false) { $0.addRelayedAddress(TURNRig.relayed) })
    rig.receive(
      rig.answer(request, isSigned: false) { writer in
        writer.addRelayedAddress(TURNRig.relayed)
        writer.addIntegrity(forger)
      })
    rig.receive(rig.error(request, .insufficientCapacity, isSigned: false))
    rig.receive(rig.error(request, .allocationMismatch, isSigned: false))
    #expect(rig.takeEvents().isEmpty && rig.client.state == .allocating && rig.client.ignored == 4)
    rig.receive(rig.success(request))
    #expect(rig.client.state == .allocated)
  }

  @Test func `an answer to nothing that was asked has no effect`() throws {
    let rig = TURNRig()
    rig.start()
    _ = rig.take()
    let stranger = rig.write(.success, .allocate, TransactionID(high: 9, low: 9)) { $0.addRelayedAddress(TURNRig.relayed) }
    rig.receive(stranger)
    rig.receive(rig.write(.request, .allocate, TransactionID(high: 9, low: 9)) { _ in })
    #expect(rig.client.state == .allocating && rig.client.ignored == 2 && rig.take().isEmpty)
  }

  @Test func `data of peers without a permission, and of unbound channels, is dropped`() throws {
    let rig = TURNRig()
    try rig.allocate()
    let stranger = rig.write(.indication, .data, TransactionID(high: 1, low: 2)) { writer in
      writer.addPeer(SocketAddress(IPAddress(203, 0, 113, 9), 40_000))
      [7].withUnsafeBytes { writer.addData($0) }
    }
    #expect(rig.receive(stranger) == nil)
    for frame: [UInt8] in [
      [0x40, 0, 0, 1, 1], [0x4f, 0xff, 0, 1, 1], [0x50, 0, 0, 1, 1], [0x40], [0x40, 0, 0xff, 0xff, 1], [],
    ] {
      #expect(rig.receive(frame) == nil)
    }
    rig.client.bind(TURNRig.gateway, at: rig.now, into: &rig.output)
    for frame: [UInt8] in [[0x40], [0x40, 0], [0x40, 0, 0], [0x40, 0, 0, 2, 1], [0x40, 0, 0xff, 0xff, 1]] {
      #expect(rig.receive(frame) == nil, "shorter than it says: \(frame)")
    }
  }

  @Test(arguments: ["0.0.0.0:5000", "192.0.2.1:0", "239.1.1.1:5000", "[::]:5000"])
  func `a relayed address that cannot be one is a malformed answer`(text: String) throws {
    let rig = TURNRig()
    rig.start()
    rig.receive(rig.challenge(try rig.sent()))
    rig.receive(rig.success(try rig.sent(), relayed: try #require(SocketAddress(text))))
    #expect(rig.takeEvents() == [.failed(.malformed)])
  }

  @Test func `a 401 without realm or nonce, or with ones that fit no message, is a malformed answer`() throws {
    let (long, longest) = ([UInt8](repeating: 0x61, count: 680), [UInt8](repeating: 0x62, count: 763))
    let cases: [(realm: [UInt8]?, nonce: [UInt8]?)] = [(nil, nil), (TURNRig.realm, nil), (nil, [1]), (long, longest)]
    for (realm, nonce) in cases {
      let rig = TURNRig()
      rig.start()
      rig.receive(
        rig.answer(try rig.sent(), .error, isSigned: false) { writer in
          writer.addError(.unauthenticated)
          if let realm { writer.addRealm(realm) }
          if let nonce { writer.addNonce(nonce) }
        })
      #expect(rig.takeEvents() == [.failed(.malformed)], "\(realm?.count ?? 0), \(nonce?.count ?? 0)")
    }
  }

  @Test func `every prefix and every changed octet of a server's messages is survived, at each state`() throws {
    let base = TURNRig()
    base.start()
    let first = try base.sent()
    let challenge = base.challenge(first)
    let second = base.copy()
    second.receive(challenge)
    let request = try second.sent()
    let success = second.success(request)
    let third = second.copy()
    third.receive(success)
    let data = third.write(.indication, .data, TransactionID(high: 1, low: 2)) { writer in
      writer.addPeer(TURNRig.gateway)
      [7, 8].withUnsafeBytes { writer.addData($0) }
    }
    for (rig, message) in [(base, challenge), (second, success), (third, data), (base, success), (third, challenge)] {
      for count in 0..<message.count {
        let rig = rig.copy()
        rig.receive(Array(message[..<count]))
        for bit in 0..<8 {
          var changed = message
          changed[count] ^= 1 << bit
          let other = rig.copy()
          other.receive(changed)
          other.wait(.seconds(700))
        }
      }
    }
  }

  @Test(arguments: 1...40) func `noise in any order is survived`(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let rig = TURNRig(isStream: seed % 2 == 0)
    rig.client.permit(TURNRig.gateway.ip, at: rig.now, into: &rig.output)
    rig.start()
    for _ in 0..<300 {
      let asked = rig.take()
      switch Int(random.next() % 8) {
      case 0: rig.receive((0..<Int(random.next() % 60)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
      case 1: if let one = asked.randomElement(using: &random) { rig.receive(rig.challenge(one)) }
      case 2: if let one = asked.randomElement(using: &random) { rig.receive(rig.success(one)) }
      case 3: if let one = asked.randomElement(using: &random) { rig.receive(rig.challenge(one, .staleNonce)) }
      case 4:
        rig.client.bind(
          SocketAddress(TURNRig.gateway.ip, UInt16(truncatingIfNeeded: random.next())), at: rig.now, into: &rig.output)
      case 5: rig.wait(.milliseconds(Int64(random.next() % 100_000)))
      case 6: rig.receive([0x40, UInt8(truncatingIfNeeded: random.next() % 9), 0, 2, 1, 2])
      default: if let one = asked.randomElement(using: &random) { rig.receive(rig.error(one, .forbidden)) }
      }
      _ = rig.takeEvents()
      #expect(rig.client.transactions.count <= 2 + 2 * Limits.peers)
    }
  }
}
