import Testing
import TrunklineBytes
import TrunklineSTUN

@testable import TrunklineICE

@Suite struct LiteAgentTests {
  let key = IntegrityKey(password: "gatewaypasswordgateway")
  var agent = LiteAgent(ufrag: "gate", password: "gatewaypasswordgateway")

  @Test mutating func `a check is answered before the remote description is known, and validates its address`() throws {
    #expect(agent.generation == 1 && agent.nomination == nil)
    let (verdict, reply) = agent.take(Check().bytes(77), from: address(1), at: seconds(3))
    #expect(verdict == .validated(isNew: true))
    try withMessage(reply) { message in
      #expect(message.messageClass == .success && message.transaction.low == 77)
      #expect(message.mappedAddress == address(1))
      #expect(message.hasIntegrity(key) && message.hasFingerprint)
    }
    #expect(agent.isValidated(address(1), at: seconds(3)) && !agent.isValidated(address(1, 5001), at: seconds(3)))
    #expect(agent.nomination == nil)
    #expect(agent.take(Check().bytes(), from: address(1), at: seconds(4)).verdict == .validated(isNew: false))
  }

  @Test mutating func `the latest USE-CANDIDATE wins, also mid-call`() {
    func nominated(_ last: UInt8, isNew: Bool) -> LiteAgent.Verdict {
      .nominated(LiteAgent.Nomination(remote: address(last), generation: 1), isNew: isNew)
    }
    let check = Check(nominates: true).bytes()
    #expect(agent.take(check, from: address(1)).verdict == nominated(1, isNew: true))
    #expect(agent.take(check, from: address(1)).verdict == nominated(1, isNew: false))
    #expect(agent.take(Check().bytes(), from: address(2)).verdict == .validated(isNew: true))
    #expect(agent.nomination?.remote == address(1))
    #expect(agent.take(check, from: address(2), at: seconds(600)).verdict == nominated(2, isNew: true))
    #expect(agent.nomination?.remote == address(2))
  }

  @Test(arguments: [
    (Check(recipient: "gatf"), LiteAgent.Refusal.unknownUfrag), (Check(recipient: ""), .unknownUfrag),
    (Check(sender: "appm"), .wrongRemoteUfrag),
    (Check(password: "gatewaypasswordgatewaz", nominates: true), .wrongIntegrity),
  ])
  mutating func `a stranger is ignored in silence and nothing is learnt`(_ check: Check, _ reason: LiteAgent.Refusal) {
    agent.setRemote(ufrag: "appl", generation: 1)
    let (verdict, reply) = agent.take(check.bytes(), from: address(1))
    #expect(verdict == .ignored(reason) && reply.isEmpty)
    #expect(!agent.isValidated(address(1), at: .zero) && agent.nomination == nil)
  }

  @Test mutating func `answers, indications, garbage and checks without integrity are ignored`() throws {
    let (_, success) = agent.take(Check().bytes(), from: address(1))
    #expect(agent.take(success, from: address(2)).verdict == .ignored(.notARequest))
    var indication = Check().bytes()
    indication[1] = 0x11
    indication.removeLast(8)
    indication[3] -= 8
    #expect(agent.take(indication, from: address(2)).verdict == .ignored(.notARequest))
    #expect(agent.take([1, 2, 3], from: address(2)).verdict == .ignored(.malformed))
    var bare = Array(Check().bytes().dropLast(32))
    bare[3] -= 32
    #expect(agent.take(bare, from: address(2)).verdict == .ignored(.noIntegrity))
    #expect(!agent.isValidated(address(2), at: .zero))
  }

  @Test mutating func `a peer that thinks it is controlled gets 487`() throws {
    let (verdict, reply) = agent.take(Check(nominates: true, isControlled: true).bytes(), from: address(1))
    #expect(verdict == .roleConflict)
    try withMessage(reply) { #expect($0.messageClass == .error && $0.errorCode == 487 && $0.hasIntegrity(key)) }
    #expect(!agent.isValidated(address(1), at: .zero) && agent.nomination == nil)
  }

  @Test mutating func `an attribute that must be understood gets 420 with its type`() throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 1)
    defer { buffer.deallocate() }
    // PRIORITY, behind the header and 16 bytes of USERNAME, gets another type before the message is closed.
    var writer = STUNWriter(.request, transaction: TransactionID(high: 0, low: 1), into: buffer)
    writer.addUsername(recipient: "gate".utf8, sender: "appl".utf8)
    writer.addPriority(1)
    buffer[20 + 16] = 0x7f
    buffer[20 + 17] = 0xfe
    writer.addIntegrity(key)
    let size = writer.finish()
    let count = try #require(size)
    let (verdict, reply) = agent.take(Array(buffer[0..<count]), from: address(1))
    #expect(verdict == .unknownAttribute)
    try withMessage(reply) { #expect($0.errorCode == 420 && $0.hasIntegrity(key)) }
    #expect(reply.contains(0x7f))
    #expect(!agent.isValidated(address(1), at: .zero))
  }

  @Test mutating func `after a restart the old pair serves until the new one is nominated, and is received 5 s more`() {
    let old = Check(nominates: true).bytes()
    let new = Check(recipient: "next", sender: "app2", password: "anotherpasswordanother", nominates: true)
    _ = agent.take(old, from: address(1))
    agent.restart(ufrag: "next", password: "anotherpasswordanother", remoteUfrag: "app2", generation: 2)
    #expect(agent.generation == 2)
    #expect(agent.nomination == LiteAgent.Nomination(remote: address(1), generation: 1))
    #expect(
      agent.take(old, from: address(1), at: seconds(60)).verdict
        == .nominated(.init(remote: address(1), generation: 1), isNew: false))

    #expect(
      agent.take(new.bytes(), from: address(9), at: seconds(100)).verdict
        == .nominated(.init(remote: address(9), generation: 2), isNew: true))
    // A late check of the old generation is answered but takes nothing back.
    #expect(agent.take(old, from: address(1), at: seconds(104)).verdict == .validated(isNew: false))
    #expect(agent.nomination?.remote == address(9))
    #expect(agent.isValidated(address(1), at: seconds(104.9)) && !agent.isValidated(address(1), at: seconds(105)))
    #expect(agent.take(old, from: address(1), at: seconds(105)).verdict == .ignored(.unknownUfrag))
    #expect(agent.isValidated(address(9), at: seconds(105)))
  }

  @Test mutating func `restarts without nomination keep the nominated generation and the newest`() {
    _ = agent.take(Check(nominates: true).bytes(), from: address(1))
    for number in 2...9 {
      agent.restart(ufrag: "gen\(number)", password: "pwd\(number)", remoteUfrag: nil, generation: number)
      #expect(
        agent.take(Check(nominates: true).bytes(), from: address(1)).verdict
          == .nominated(.init(remote: address(1), generation: 1), isNew: false))
      let check = Check(recipient: "gen\(number)", password: "pwd\(number)").bytes()
      #expect(agent.take(check, from: address(UInt8(number))).verdict == .validated(isNew: true))
    }
    agent.restart(ufrag: "gen5", password: "pwd5", remoteUfrag: nil, generation: 5)  // not newer: ignored
    #expect(agent.generation == 9)
  }

  @Test mutating func `a restart keeps the same address usable under the new ufrag`() {
    _ = agent.take(Check(nominates: true).bytes(), from: address(1))
    agent.restart(ufrag: "next", password: "anotherpasswordanother", remoteUfrag: nil, generation: 2)
    let new = Check(recipient: "next", password: "anotherpasswordanother", nominates: true).bytes()
    #expect(
      agent.take(new, from: address(1), at: seconds(1)).verdict
        == .nominated(.init(remote: address(1), generation: 2), isNew: true))
    #expect(agent.isValidated(address(1), at: seconds(60)))
  }

  @Test mutating func `validated addresses are bounded and the nominated one stays`() {
    _ = agent.take(Check(nominates: true).bytes(), from: address(1), at: .zero)
    for last in 2...20 { _ = agent.take(Check().bytes(), from: address(UInt8(last)), at: seconds(Double(last))) }
    #expect(agent.isValidated(address(1), at: seconds(20)))
    let live = (1...20).filter { agent.isValidated(address(UInt8($0)), at: seconds(20)) }
    #expect(live == [1] + Array(14...20))
  }

  @Test mutating func `who starts over is checked and nominates anew, with its new ufrag and in the new generation`() {
    _ = agent.take(Check(nominates: true).bytes(), from: address(1))
    agent.startOver(remoteUfrag: "late", generation: 3)
    #expect(agent.generation == 3 && agent.nomination == nil && !agent.isValidated(address(1), at: .zero))
    #expect(agent.take(Check(sender: "early", nominates: true).bytes(), from: address(1)).verdict == .ignored(.wrongRemoteUfrag))
    #expect(
      agent.take(Check(sender: "late", nominates: true).bytes(), from: address(1)).verdict
        == .nominated(.init(remote: address(1), generation: 3), isNew: true))
  }

  @Test mutating func `a reply buffer that is too small gives no reply`() {
    let reply = UnsafeMutableRawBufferPointer.allocate(byteCount: 40, alignment: 1)
    defer { reply.deallocate() }
    let outcome = Check().bytes().withUnsafeBytes { agent.handle($0, from: address(1), at: .zero, reply: reply) }
    #expect(outcome.replyCount == 0)
  }

  @Test mutating func `mutated checks never trap and never nominate without the password`() {
    let random = RandomSource.seeded(4)
    let seed = Check(password: "wrong", nominates: true).bytes()
    for _ in 0..<30_000 {
      var bytes = seed
      for _ in 0...(random.next() % 4) {
        let at = Int(random.next() % UInt64(bytes.count))
        if random.next() % 8 == 0, bytes.count > 24 {
          bytes.removeLast(4)
        } else {
          bytes[at] = UInt8(truncatingIfNeeded: random.next())
        }
      }
      if random.next() % 2 == 0 {
        bytes[2] = 0
        bytes[3] = UInt8(truncatingIfNeeded: bytes.count - 20)
      }
      _ = agent.take(bytes, from: address(1))
    }
    #expect(agent.nomination == nil)
  }
}
